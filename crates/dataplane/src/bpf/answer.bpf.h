/* SPDX-License-Identifier: (GPL-2.0-only OR BSD-2-Clause) */
/*
 * Receive balancing for plain hosts: ARP (RFC 826) and neighbour discovery (RFC 4861) advertise the bond's MAC. What goes
 * to one plain host alone advertises the MAC of the member that the daemon chose for it. Called by steer().
 * Reads lb_answers, lb_members; writes to the frame in name_member() only.
 */
#ifndef LB_ANSWER_BPF_H
#define LB_ANSWER_BPF_H

/* A longer frame advertises no MAC: Ethernet header, a tag and a neighbour advertisement are 90 bytes. */
#define NAMING_BYTES_MAX 128
#define ARP_ETHERNET 1
#define ARP_REQUEST 1
#define ARP_REPLY 2
#define ND_SOLICITATION 135
#define ND_ADVERTISEMENT 136
#define ND_SOURCE_MAC 1
#define ND_TARGET_MAC 2
/* The hop limit of neighbour discovery, which proves that it came through no router. */
#define ND_HOP_LIMIT 255

/* ARP over Ethernet and IPv4. */
struct arp_message {
	__be16 hardware;
	__be16 protocol;
	__u8 hardware_bytes;
	__u8 protocol_bytes;
	__be16 operation;
	struct lb_mac sender;
	__u8 sender_ip[4];
	struct lb_mac target;
	__u8 target_ip[4];
};

/* A neighbour solicitation or advertisement with its first option, where Linux puts the MAC. */
struct nd_message {
	struct ipv6hdr ip;
	__u8 type;
	__u8 code;
	__sum16 check;
	__u32 flags;
	__u8 target[16];
	__u8 option;
	__u8 option_words;
	struct lb_mac mac;
};

_Static_assert(sizeof(struct arp_message) == 28, "arp_message");
_Static_assert(sizeof(struct nd_message) == 72, "nd_message");

/* Where a frame advertises a MAC, and the address that it is to belong to. */
struct naming {
	__u32 mac_at;
	__u32 address_at;
	__u32 check_at; /* the checksum over it; 0: ARP has none */
};

static __always_inline int load_arp(struct __sk_buff *skb, __u32 at, struct arp_message *arp)
{
	return !bpf_skb_load_bytes(skb, at, arp, sizeof(*arp)) && arp->hardware == bpf_htons(ARP_ETHERNET) &&
	       arp->protocol == bpf_htons(ETH_P_IP) && arp->hardware_bytes == ETH_ALEN && arp->protocol_bytes == 4;
}

/* A cheap test that rules most frames out before find_naming(). */
static __always_inline int may_name(struct __sk_buff *skb, __be16 protocol)
{
	return protocol != bpf_htons(ETH_P_IP) && skb->len <= NAMING_BYTES_MAX;
}

/* Whether the frame advertises `mac` as its sender's, and where. */
GLOBAL int find_naming(struct __sk_buff *skb, const struct lb_mac *mac, struct naming *naming)
{
	__be16 protocol;
	__u32 at = network_header(skb, &protocol);

	if (!mac || !naming)
		return 0;
	if (protocol == bpf_htons(ETH_P_ARP)) {
		struct arp_message arp;

		if (!load_arp(skb, at, &arp))
			return 0;
		if (arp.operation != bpf_htons(ARP_REQUEST) && arp.operation != bpf_htons(ARP_REPLY))
			return 0;
		naming->mac_at = at + offsetof(struct arp_message, sender);
		naming->address_at = at + offsetof(struct arp_message, sender_ip);
		naming->check_at = 0;
		return same_mac(&arp.sender, mac);
	}
	if (protocol == bpf_htons(ETH_P_IPV6)) {
		struct nd_message nd;
		__u8 option;

		if (bpf_skb_load_bytes(skb, at, &nd, sizeof(nd)))
			return 0;
		if (nd.ip.nexthdr != IP_PROTOCOL_ICMPV6 || nd.ip.hop_limit != ND_HOP_LIMIT || nd.code)
			return 0;
		if (nd.type != ND_SOLICITATION && nd.type != ND_ADVERTISEMENT)
			return 0;
		option = nd.type == ND_SOLICITATION ? ND_SOURCE_MAC : ND_TARGET_MAC;
		if (nd.option != option || nd.option_words != 1)
			return 0;
		naming->mac_at = at + offsetof(struct nd_message, mac);
		naming->address_at = at + (nd.type == ND_SOLICITATION ? offsetof(struct nd_message, ip.saddr) :
									offsetof(struct nd_message, target));
		naming->check_at = at + offsetof(struct nd_message, check);
		return same_mac(&nd.mac, mac);
	}
	return 0;
}

/* The slot chosen for a plain host, if its member can be used; else LB_NO_SLOT. */
static __always_inline __u32 answer_slot(const struct lb_config *bond, const struct lb_mac_key *host, __u32 segment)
{
	struct lb_mac_key key = *host;
	const struct lb_answer *answer = bpf_map_lookup_elem(&lb_answers, &key);
	const struct lb_member *member = answer ? member_at(answer->slot) : NULL;

	if (!member || !member->ifindex || !member->live || is_dead(bond, answer->slot))
		return LB_NO_SLOT;
	/* The host could not reach a member on another switch. */
	if (bond->n_segments > 1 && (segment == LB_NO_SLOT || member->elected != segment))
		return LB_NO_SLOT;
	return answer->slot;
}

/* Replaces the bond's MAC by the member's. */
static __always_inline int name_member(struct __sk_buff *skb, const struct naming *naming,
				       const struct lb_config *bond, __u32 slot)
{
	const struct lb_member *member = member_at(slot);
	/* Checksums are over words of 16 bits, and the MAC stands at an even offset. */
	struct {
		__u8 pad[2];
		struct lb_mac mac;
	} __attribute__((aligned(4))) old = { .mac = bond->mac }, new = {};
	__s64 change;

	if (!member)
		return 0;
	new.mac = member->mac;
	if (bpf_skb_store_bytes(skb, naming->mac_at, &new.mac, sizeof(new.mac), 0))
		return 0;
	if (!naming->check_at)
		return 1;
	change = bpf_csum_diff((__be32 *)&old, sizeof(old), (__be32 *)&new, sizeof(new), 0);
	return !bpf_l4_csum_replace(skb, naming->check_at, 0, change, 0);
}

#endif
