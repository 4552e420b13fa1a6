/* SPDX-License-Identifier: (GPL-2.0-only OR BSD-2-Clause) */
/*
 * The way in: from a frame on a member to a frame of the bond. Called by lb_ingress. The bridge takes what
 * passes. Reads lb_near_slots, lb_slots, lb_own_macs, lb_near_peers, lb_peer_macs, lb_guest_pairs, lb_members, lb_plans,
 * lb_answers, lb_bond; writes lb_arp_plus, lb_plain_hosts, lb_mirrors, lb_strangers, lb_seed.
 */
#ifndef LB_TAKE_BPF_H
#define LB_TAKE_BPF_H

/* Whether so much more of a ring may be used for the sake of one peer, or of all strangers of one kind. */
static __always_inline int is_within_budget(__u32 whose, __u32 bytes)
{
	struct lb_budget *budget = bpf_map_lookup_elem(&lb_budgets, &whose);
	__u32 window = bpf_ktime_get_ns() >> LB_BUDGET_NS_SHIFT;

	if (!budget)
		return 0;
	if (budget->window != window) {
		budget->window = window;
		budget->bytes = 0;
	}
	budget->bytes += bytes;
	return budget->bytes <= LB_BUDGET;
}

/*
 * How many windows ago this was heard, more than LB_STRANGER_AGE_MAX if it was not. `marks`: it is heard now. The oldest of a set
 * makes room.
 */
static __noinline __u32 windows_since(__u64 heard, int marks)
{
	__u8 window = bpf_ktime_get_ns() >> LB_BUDGET_NS_SHIFT, age, highest = 0;
	struct lb_strangers *set;
	__u32 at = 0, mark, oldest = 0;
	__u64 *seed = bpf_map_lookup_elem(&lb_seed, &at), hash;

	if (!seed)
		return LB_STRANGER_AGE_MAX + 1;
	if (!*seed)
		*seed = (__u64)bpf_get_prandom_u32() << 32 | bpf_get_prandom_u32() | 1;
	hash = (heard ^ *seed) * 0x9e3779b97f4a7c15ull;
	at = hash >> 16 & (LB_STRANGER_SETS - 1);
	mark = hash >> 40 << 8;
	set = bpf_map_lookup_elem(&lb_strangers, &at);
	if (!set)
		return LB_STRANGER_AGE_MAX + 1;
#pragma unroll
	for (int i = 0; i < LB_STRANGER_PLACES; i++) {
		age = window - (__u8)set->heard[i];
		if (!((set->heard[i] ^ mark) >> 8) && age <= LB_STRANGER_AGE_MAX) {
			if (marks)
				set->heard[i] = mark | window;
			return age;
		}
		if (age > highest) {
			highest = age;
			oldest = i;
		}
	}
	if (marks)
		set->heard[oldest & (LB_STRANGER_PLACES - 1)] = mark | window;
	return LB_STRANGER_AGE_MAX + 1;
}

/*
 * Whose budget a stranger's message is counted in. True hosts say again who they are; who floods makes up another MAC each
 * time, because each is believed at most once a window. PROBEs come between those that have said who they are.
 */
static __always_inline __u32 stranger_kind(const struct lb_mac *mac, __u32 slot, __u8 type)
{
	__u64 host = mac_number(mac), probe = host ^ (__u64)(type << 8 | slot) << 20;
	__u32 since;

	if (type < LB_ARP_PLUS_PROBE) {
		since = windows_since(host, 1);
		return since && since <= LB_STRANGER_AGE_MAX ? LB_STRANGERS_AGAIN : LB_STRANGERS;
	}
	if (windows_since(host, 0) > LB_STRANGER_AGE_MAX)
		return LB_STRANGERS;
	return windows_since(probe, 1) ? LB_STRANGERS_PROBES : LB_STRANGERS;
}

/* What a message of ARP+ begins with. */
struct message_head {
	__be16 protocol;
	__u8 hlen, plen, count, type;
};

/* All zero if the frame is no message of ARP+. */
static __always_inline struct message_head message_head(struct __sk_buff *skb)
{
	struct message_head head = {};

	if (bpf_skb_load_bytes(skb, offsetof(struct ethhdr, h_proto), &head, sizeof(head)) ||
	    head.protocol != bpf_htons(LB_ETH_P_ARP_PLUS))
		__builtin_memset(&head, 0, sizeof(head));
	return head;
}

#define HASHED(hash, more) (((hash) ^ (more)) * 0x9e3779b97f4a7c15ull)

/*
 * Whether the daemon has this mapping of that host already, by these two members. Most announcements are such, and hundreds of hosts
 * would wake it for each of them. Only what this build writes is recognised: TLVs in its order. Nothing is believed or refused because of it.
 */
static __noinline int is_repeated(struct __sk_buff *skb, const struct message_head *head, __u32 slot, __u32 whose,
				  const struct lb_mac *source)
{
	struct {
		__u8 version[3], host[2];
		__u64 id[2], epoch;
		__u8 sequence[2];
		__u32 number;
	} __attribute__((packed)) said;
	struct lb_budget *last = bpf_map_lookup_elem(&lb_budgets, &whose);
	__u64 mapping, pair;

	if (!last || head->type != LB_ARP_PLUS_CHANGE)
		return 0;
	if (bpf_skb_load_bytes(skb, sizeof(struct ethhdr) + 4 + head->plen + ETH_ALEN * head->count, &said, sizeof(said)))
		return 0;
	if (said.host[0] != LB_TLV_HOST || said.sequence[0] != LB_TLV_SEQUENCE)
		return 0;
	mapping = HASHED(HASHED(HASHED(HASHED(0, said.id[0]), said.id[1]), said.epoch), said.number);
	pair = 1ull << (HASHED(mac_number(source), slot) >> 58);
	if (last->mapping != mapping) {
		last->mapping = mapping;
		last->pairs = 0;
	}
	if (last->pairs & pair)
		return 1;
	last->pairs |= pair;
	return 0;
}

#define RECORD_BYTES(frame_bytes) (offsetof(struct lb_arp_plus_record, frame) + (frame_bytes))

/* Puts the frame into that ring, in a record that has room for `most` bytes of it. `wakes`: flags of bpf_ringbuf_submit. */
static __always_inline enum lb_reason put_record(struct __sk_buff *skb, void *ring, __u32 slot, __u32 whose, __u32 bytes,
						 const __u32 most, __u64 wakes)
{
	struct lb_arp_plus_record *record;

	/* Two comparisons that clang cannot join: before 6.10 the verifier learns no bounds from the joined one. */
	if (bytes < sizeof(struct ethhdr))
		return LB_RX_ARP_PLUS_LONG;
	asm volatile("" : "+r"(bytes));
	if (bytes > most)
		return LB_RX_ARP_PLUS_LONG;
	record = bpf_ringbuf_reserve(ring, RECORD_BYTES(most), 0);
	if (!record)
		return LB_RX_ARP_PLUS_FULL;
	record->slot = slot;
	record->heard_again = whose == LB_STRANGERS_AGAIN;
	record->bytes = bytes;
	if (bpf_skb_load_bytes(skb, 0, record->frame, bytes)) {
		bpf_ringbuf_discard(record, 0);
		return LB_RX_ARP_PLUS_LONG;
	}
	bpf_ringbuf_submit(record, wakes);
	return LB_RX_ARP_PLUS;
}

/* Puts the frame into one of the daemon's rings; LB_RX_ARP_PLUS if that went well. `whose`: who pays for it (LB_STRANGERS). */
static __noinline enum lb_reason hand_to_daemon(struct __sk_buff *skb, __u32 slot, __u32 whose)
{
	struct message_head head = message_head(skb);
	__u32 bytes = skb->len, most;
	struct lb_mac source;
	__u64 wakes;

	if (bpf_skb_load_bytes(skb, ETH_ALEN, &source, ETH_ALEN))
		return LB_RX_ARP_PLUS_LONG;
	//= docs/arp-plus.md#10.4
	/* What follows the head of a PROBE is padding. */
	if (bytes > LB_ARP_PLUS_SHORT_MAX && head.type == LB_ARP_PLUS_PROBE)
		bytes = LB_ARP_PLUS_SHORT_MAX;
	//= docs/arp-plus.md#7.13
	if (whose == LB_STRANGERS && head.type)
		whose = stranger_kind(&source, slot, head.type);
	most = bytes <= LB_ARP_PLUS_SHORT_MAX ? LB_ARP_PLUS_SHORT_MAX : LB_ARP_PLUS_BYTES_MAX;
	if (bytes > LB_ARP_PLUS_BYTES_MAX)
		return LB_RX_ARP_PLUS_LONG;
	if (!is_within_budget(whose, RECORD_BYTES(most)))
		return LB_RX_ARP_PLUS_RATE;
	if (whose == LB_STRANGERS || whose == LB_STRANGERS_AGAIN || whose == LB_STRANGERS_PROBES)
		return most == LB_ARP_PLUS_SHORT_MAX ? put_record(skb, &lb_arp_plus, slot, whose, bytes, LB_ARP_PLUS_SHORT_MAX, 0)
						     : put_record(skb, &lb_arp_plus, slot, whose, bytes, LB_ARP_PLUS_BYTES_MAX, 0);
	/* The kernel by itself wakes a reader who has read all but this frame, which is not so where one waits that woke nobody. */
	wakes = is_repeated(skb, &head, slot, whose, &source) ? BPF_RB_NO_WAKEUP : BPF_RB_FORCE_WAKEUP;
	return most == LB_ARP_PLUS_SHORT_MAX ? put_record(skb, &lb_known, slot, whose, bytes, LB_ARP_PLUS_SHORT_MAX, wakes)
					     : put_record(skb, &lb_known, slot, whose, bytes, LB_ARP_PLUS_BYTES_MAX, wakes);
}

/* The daemon proves by ARP probes (from no address: RFC 5227, section 1.1) that a plain host can be reached. */
static __always_inline void copy_probe_reply(struct __sk_buff *skb, __u32 slot, const struct lb_mac_key *host)
{
	const struct lb_answer *answer = bpf_map_lookup_elem(&lb_answers, host);
	const __u8 nowhere[4] = {};
	struct arp_message arp;

	if (!answer || !(answer->flags & LB_ANSWER_PROBED) || !load_arp(skb, sizeof(struct ethhdr), &arp))
		return;
	if (arp.operation != bpf_htons(ARP_REPLY) || __builtin_memcmp(arp.target_ip, nowhere, sizeof(nowhere)))
		return;
	count_reason(skb, hand_to_daemon(skb, slot, LB_PROBED_HOSTS) == LB_RX_ARP_PLUS ? LB_RX_PROBED : LB_RX_PROBED_LOST);
}

/*
 * A frame for the address that a member's neighbour solicitations come from (docs/arp-plus.md, 12.7), which only the daemon's
 * probes use: what is for it is not the kernel's. 0 for all other frames.
 */
static __noinline enum lb_reason take_to_probe(struct __sk_buff *skb, __u32 slot, const struct lb_mac_key *host,
					       const struct lb_mac *mac)
{
	const struct lb_answer *answer;
	struct {
		__be64 prefix;
		__be16 mark;
		struct lb_mac mac;
		__u8 type;
		__u8 pad[7];
	} to;

	/* The destination, and what follows the header. */
	if (bpf_skb_load_bytes(skb, sizeof(struct ethhdr) + offsetof(struct ipv6hdr, daddr), &to, sizeof(to)))
		return 0;
	if (to.prefix != bpf_cpu_to_be64(0xfe80ULL << 48) || to.mark != bpf_htons(0x4c42) || !same_mac(&to.mac, mac))
		return 0;
	answer = bpf_map_lookup_elem(&lb_answers, host);
	if (!answer || !(answer->flags & LB_ANSWER_PROBED) || to.type != ND_ADVERTISEMENT)
		return LB_RX_TO_PROBE;
	return hand_to_daemon(skb, slot, LB_PROBED_HOSTS) == LB_RX_ARP_PLUS ? LB_RX_SOLICITED : LB_RX_TO_PROBE;
}

/*
 * The EtherType of a frame that is in a VLAN, 0 for others. The kernel has taken the outer tag out of the frame by now. A tag of
 * VLAN 0 is a priority, and names no VLAN.
 */
static __always_inline __be16 protocol_in_vlan(struct __sk_buff *skb, __be16 protocol)
{
	__be16 inner = 0;

	if (protocol == bpf_htons(ETH_P_8021Q) || protocol == bpf_htons(ETH_P_8021AD)) {
		bpf_skb_load_bytes(skb, sizeof(struct ethhdr) + sizeof(__be16), &inner, sizeof(inner));
		return inner;
	}
	return skb->vlan_present && skb->vlan_tci & 0xfff ? protocol : 0;
}

static __always_inline int put_mac(struct __sk_buff *skb, __u32 at, const struct lb_mac *mac)
{
	return !bpf_skb_store_bytes(skb, at, mac, ETH_ALEN, 0);
}

/* A frame for the MAC of the member `owner` arrived on another one. Whether only because the switch flooded it. */
static __always_inline int is_flooded(const struct lb_config *bond, const struct lb_member *member, __u32 slot,
				      __u32 owner_slot)
{
	const struct lb_member *owner = member_at(owner_slot);

	/*
	 * While the MAC's own member has failed, its switch floods frames for it, and so does another switch, which never learns
	 * that MAC: the elected member of the segment takes them in.
	 */
	if (!owner || member->elected != slot)
		return 1;
	return owner->elected == member->elected && owner->live && !is_dead(bond, owner_slot);
}

/* A frame for a MAC that is not ours. Where it is a guest's, its own member takes it in. */
static __noinline enum lb_reason take_guest(const struct lb_config *bond, __u32 slot, const struct lb_member *member,
					    const struct lb_mac *guest)
{
	__u32 number = bond->n_segments > 1 ? segment_plan(member->elected) : 0;

	return guest_slot(bond, guest, number) == slot ? LB_RX_GUEST : LB_RX_STRANGER;
}

/* What is known of a frame that came. */
struct way_in {
	__u32 slot; /* of the member by which it came */
	__u32 plan; /* the one that leads back to its sender */
};

/* Decides about one frame. */
GLOBAL int take(struct __sk_buff *skb, struct way_in *way)
{
	const struct lb_config *bond = the_bond();
	const struct lb_member *member;
	struct lb_peer_mac peer;
	struct lb_mac source, destination;
	struct lb_mac_key key;
	struct ethhdr *eth;
	__u32 slot = slot_of(skb->ifindex);
	enum lb_reason reason;
	__be16 protocol, in_vlan;
	__u32 *found;
	int is_own, is_peer, is_lane;

	member = member_at(slot);
	if (!way || !bond || !bond->bond_ifindex)
		return LB_RX_NOT_OURS;
	if (!member)
		return skb->pkt_type == PACKET_HOST ? LB_RX_NOT_OURS : LB_RX_NOT_YET;
	way->slot = slot;
	if (!has_ethernet(skb, &eth))
		return LB_RX_SHORT;
	protocol = eth->h_proto;
	in_vlan = protocol_in_vlan(skb, protocol);
	if (in_vlan == bpf_htons(LB_ETH_P_ARP_PLUS) || in_vlan == bpf_htons(LB_ETH_P_MIRROR))
		return LB_RX_TAGGED;
	__builtin_memcpy(&source, eth->h_source, sizeof(source));
	__builtin_memcpy(&destination, eth->h_dest, sizeof(destination));
	key = mac_key(&source);
	find_peer(&key, &peer);
	is_own = !peer.plan && bpf_map_lookup_elem(&lb_own_macs, &key);
	/* A peer's guest that speaks by its own MAC does so as a plain host. */
	is_peer = is_member_of_peer(&peer);
	if (protocol == bpf_htons(LB_ETH_P_ARP_PLUS))
		return hand_to_daemon(skb, slot, is_peer ? peer.plan : is_own ? LB_OURSELVES : LB_STRANGERS);
	if (is_own)
		return LB_RX_OWN;
	is_lane = is_peer || peer.flags & LB_PEER_ALIAS;
	if (is_lane) {
		way->plan = peer.plan;
	} else if (bond->n_segments > 1) {
		hear_plain_host(&key, slot, member);
		way->plan = segment_plan(member->elected);
	}
	if (is_multicast(&destination)) {
		__u32 accepts = is_peer ? peer.broadcast_slot : member->elected;

		//= docs/arp-plus.md#16.1
		if (protocol == bpf_htons(LB_ETH_P_MIRROR))
			return LB_RX_MIRROR_BAD;
		if (accepts != slot)
			return LB_RX_COPY;
		if (!is_peer && is_sent_back(skb, &key))
			return LB_RX_OWN;
		if (is_peer && !same_mac(&source, &peer.primary) && !put_mac(skb, ETH_ALEN, &peer.primary))
			return LB_RX_REWRITE;
		return LB_RX_MULTICAST;
	}
	if (!same_mac(&destination, &member->mac)) {
		key = mac_key(&destination);
		found = bpf_map_lookup_elem(&lb_own_macs, &key);
		if (!found)
			return take_guest(bond, slot, member, &destination);
		if (*found != slot && is_flooded(bond, member, slot, *found))
			return LB_RX_FLOODED;
	} else if (protocol == bpf_htons(ETH_P_ARP)) {
		/* Of a peer, too: a plain host may have the MAC that a peer claims. */
		copy_probe_reply(skb, slot, &key);
	} else if (!is_peer && protocol == bpf_htons(ETH_P_IPV6) && skb->len <= NAMING_BYTES_MAX) {
		reason = take_to_probe(skb, slot, &key, &member->mac);
		if (reason)
			return reason;
	}
	//= docs/arp-plus.md#16.4
	if (protocol == bpf_htons(LB_ETH_P_MIRROR))
		return is_lane ? unwrap(skb, peer.plan) : LB_RX_MIRROR_STRANGER;
	reason = 0;
	if (peer.flags & (LB_PEER_ALIAS | LB_PEER_HAS_GUESTS))
		reason = take_by_address(skb, peer.plan, peer.flags, mac_number(&peer.primary));
	if (reason == LB_RX_FOR_GUEST || reason == LB_RX_GUEST_AWAY || reason == LB_RX_REWRITE)
		return reason;
	if (!same_mac(&destination, &bond->mac) && !put_mac(skb, 0, &bond->mac))
		return LB_RX_REWRITE;
	/* The source is right. */
	if (reason)
		return reason;
	if (!is_peer)
		return LB_RX_PLAIN;
	if (!same_mac(&source, &peer.primary) && !put_mac(skb, ETH_ALEN, &peer.primary))
		return LB_RX_REWRITE;
	return LB_RX_PEER;
}

#endif
