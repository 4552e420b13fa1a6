/* SPDX-License-Identifier: (GPL-2.0-only OR BSD-2-Clause) */
/*
 * Addresses of guests. By them unicast IP of guests goes over all lanes to a peer, under members' MACs, and gets the guests'
 * MACs back there. What is for a guest comes from the alias of a member, so that it is not taken for what the peer is to route.
 * Called on the way out and on the way in. Reads lb_guest_pairs, lb_guests_until; writes lb_guests_seen, lb_seen_changes.
 */
#ifndef LB_PAIRS_BPF_H
#define LB_PAIRS_BPF_H

#define VLAN_NUMBER 0x0fff
/* A guest that says nothing of an address for so long may have been elsewhere meanwhile, ns. */
#define GUEST_AGAIN_NS (1000 * 1000 * 1000)

/* The Ethernet header from its EtherType on, with one tag. */
struct ethertypes {
	__be16 protocol;
	__be16 tci;
	__be16 tagged;
};

/* Sets the key's VLAN; where the network header starts, and its protocol. 0: it has more than one tag, or one of another kind. */
static __always_inline __u32 read_vlan(struct __sk_buff *skb, struct lb_guest_key *key, __be16 *protocol)
{
	const __be16 tag = bpf_htons(ETH_P_8021Q);
	struct ethertypes types;

	if (bpf_skb_load_bytes(skb, offsetof(struct ethhdr, h_proto), &types, sizeof(types)))
		return 0;
	*protocol = types.protocol;
	if (skb->vlan_present) {
		key->vlan = skb->vlan_tci & VLAN_NUMBER;
		return types.protocol == tag || skb->vlan_proto != tag ? 0 : sizeof(struct ethhdr);
	}
	if (types.protocol != tag)
		return sizeof(struct ethhdr);
	key->vlan = bpf_ntohs(types.tci) & VLAN_NUMBER;
	*protocol = types.tagged;
	return sizeof(struct ethhdr) + sizeof(types) - sizeof(types.protocol);
}

/* A key without an address yet, and where the IP header starts; 0: there is none. */
static __always_inline __u32 read_ip(struct __sk_buff *skb, struct lb_guest_key *key)
{
	__be16 protocol = 0;
	__u32 at;

	__builtin_memset(key, 0, sizeof(*key));
	at = read_vlan(skb, key, &protocol);
	key->is_ipv6 = protocol == bpf_htons(ETH_P_IPV6);
	return key->is_ipv6 || protocol == bpf_htons(ETH_P_IP) ? at : 0;
}

/* Reads an address into the key. */
static __always_inline int read_address(struct __sk_buff *skb, struct lb_guest_key *key, __u32 at)
{
	if (key->is_ipv6)
		return !bpf_skb_load_bytes(skb, at, key->address, sizeof(key->address));
	return !bpf_skb_load_bytes(skb, at, key->address, sizeof(key->address[0]));
}

/* Whose the source address is of the IP header at `at`; NULL where it is not known. */
static __always_inline const struct lb_guest_pair *source_pair(struct __sk_buff *skb, struct lb_guest_key *key, __u32 at)
{
	at += key->is_ipv6 ? offsetof(struct ipv6hdr, saddr) : offsetof(struct iphdr, saddr);
	return read_address(skb, key, at) ? bpf_map_lookup_elem(&lb_guest_pairs, key) : NULL;
}

static __always_inline const struct lb_guest_pair *destination_pair(struct __sk_buff *skb, struct lb_guest_key *key,
								    __u32 at)
{
	at += key->is_ipv6 ? offsetof(struct ipv6hdr, daddr) : offsetof(struct iphdr, daddr);
	return read_address(skb, key, at) ? bpf_map_lookup_elem(&lb_guest_pairs, key) : NULL;
}

/* Neighbour discovery, which leaves as it is: its MACs are what neighbours learn. */
static __always_inline int is_discovery(struct __sk_buff *skb, const struct lb_guest_key *key, __u32 at)
{
	struct {
		__u8 next;
		__u8 hop_limit;
	} ip;

	if (!key->is_ipv6 || bpf_skb_load_bytes(skb, at + offsetof(struct ipv6hdr, nexthdr), &ip, sizeof(ip)))
		return 0;
	return ip.next == IP_PROTOCOL_ICMPV6 && ip.hop_limit == ND_HOP_LIMIT;
}

/* A daemon that has died no longer answers for what peers know of guests. */
static __always_inline int is_guests_time(void)
{
	__u32 zero = 0;
	const __u64 *until = bpf_map_lookup_elem(&lb_guests_until, &zero);

	return until && bpf_ktime_get_ns() < *until;
}

/*
 * Whether a frame for the MAC `to` may leave over the lanes of its peer: the addresses belong to these MACs. `guest`: the MAC
 * here that it comes from; NULL: the host.
 */
static __noinline int are_paired(struct __sk_buff *skb, const struct lb_mac_key *to, const struct lb_mac *guest,
				 const struct lb_peer_mac *peer)
{
	const struct lb_guest_pair *pair;
	struct lb_guest_key key;
	__u32 at;

	//= docs/arp-plus.md#14.10
	if (!is_guests_time())
		return 0;
	at = read_ip(skb, &key);
	if (!at || is_discovery(skb, &key, at))
		return 0;
	//= docs/arp-plus.md#14.8
	if (guest) {
		pair = source_pair(skb, &key, at);
		if (!pair || pair->plan || !same_mac(&pair->mac, guest))
			return 0;
	}
	if (!(peer->flags & LB_PEER_GUEST))
		return 1;
	pair = destination_pair(skb, &key, at);
	return pair && pair->plan == peer->plan && same_mac(&pair->mac, &to->mac);
}

/*
 * A frame from a MAC with these flags, of the peer with this plan and primary MAC, gets the MACs of the guests that have its
 * addresses. 0: it is no IP, or it comes from no guest and is for none. A host whose own MAC is like an alias is not cut off:
 * what is for no guest's address passes as a plain host's. (Numbers, for the way in has no stack left for more.)
 */
static __noinline enum lb_reason take_by_address(struct __sk_buff *skb, __u32 plan, __u32 flags, __u64 primary)
{
	enum lb_reason reason = LB_RX_PEER;
	const struct lb_guest_pair *pair;
	struct lb_guest_key key;
	__u32 at = read_ip(skb, &key);
	struct lb_mac source;

	if (!at)
		return 0;
	//= docs/arp-plus.md#14.9
	if (flags & LB_PEER_ALIAS) {
		pair = destination_pair(skb, &key, at);
		if (!pair)
			return LB_RX_NO_GUEST;
		/* As from a plain host it could be routed to the peer that it came from, and back. */
		if (pair->plan)
			return LB_RX_GUEST_AWAY;
		if (bpf_skb_store_bytes(skb, 0, &pair->mac, sizeof(pair->mac), 0))
			return LB_RX_REWRITE;
		reason = LB_RX_FOR_GUEST;
	}
	pair = flags & LB_PEER_HAS_GUESTS ? source_pair(skb, &key, at) : NULL;
	if (pair && pair->plan == plan)
		source = pair->mac;
	else if (reason == LB_RX_PEER)
		return 0;
	else
		source = to_mac(primary);
	return bpf_skb_store_bytes(skb, ETH_ALEN, &source, sizeof(source), 0) ? LB_RX_REWRITE : reason;
}

/* Notes the address that a guest gives as its own, in ARP or neighbour discovery. An ARP probe gives none (RFC 5227). */
static __noinline void note_address(struct __sk_buff *skb, const struct lb_mac *guest, const struct naming *naming)
{
	struct lb_guest_seen now = { .mac = *guest, .last_ns = bpf_ktime_get_ns() }, *seen;
	struct lb_guest_key key = { .is_ipv6 = naming->check_at != 0 };
	__be16 protocol;
	__u32 zero = 0;
	__u64 *changes;

	if (!read_vlan(skb, &key, &protocol) || !read_address(skb, &key, naming->address_at))
		return;
	if (!(key.address[0] | key.address[1] | key.address[2] | key.address[3]))
		return;
	seen = bpf_map_lookup_elem(&lb_guests_seen, &key);
	if (seen && same_mac(&seen->mac, guest) && now.last_ns - seen->last_ns < GUEST_AGAIN_NS) {
		if (now.last_ns - seen->last_ns > GUEST_NOTE_NS)
			seen->last_ns = now.last_ns;
		return;
	}
	bpf_map_update_elem(&lb_guests_seen, &key, &now, BPF_ANY);
	changes = bpf_map_lookup_elem(&lb_seen_changes, &zero);
	if (changes)
		__sync_fetch_and_add(changes, 1);
}

#endif
