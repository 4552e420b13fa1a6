/* SPDX-License-Identifier: (GPL-2.0-only OR BSD-2-Clause) */
/*
 * Mirroring: a frame leaves by two lanes, and the receiver takes in the first copy that arrives. A copy is the frame with
 * the EtherType LB_ETH_P_MIRROR and a trailer (struct lb_mirror_trailer) behind it, padded before to the least length of
 * a frame. The receiver puts EtherType and length right, and lets the frame arrive once more.
 *
 * Called by steer() and take(). Reads lb_plans, lb_members, lb_own_macs, lb_peer_macs; writes lb_mirror_sent, lb_mirrors.
 */
#ifndef LB_MIRROR_BPF_H
#define LB_MIRROR_BPF_H

/* The least length of an Ethernet frame without its checksum. */
#define FRAME_BYTES_MIN 60
#define NO_LANE 0xff
/* How good a second lane is: another member of ours, another one of the peer's. */
#define OTHER_SLOT 2
#define OTHER_PEER_MAC 1
/* Beside the class that send_twice() is told: the frame is for a guest. */
#define MIRROR_FOR_GUEST 0x100

/* A walk over the lanes of live members that finds the first one and the one that shares least with it. */
struct pair_walk {
	const struct lb_plan *plan;
	__u32 failed; /* slots, a bit each */
	__u32 first;
	__u32 second;
	__u32 score; /* of the second */
};

static long step_pair(__u32 i, struct pair_walk *walk)
{
	const struct lb_lane *lane = &walk->plan->lanes[i & (LB_LANES_MAX - 1)];
	const struct lb_lane *first = &walk->plan->lanes[walk->first & (LB_LANES_MAX - 1)];
	__u32 score;

	if (i >= walk->plan->n_lanes)
		return 1;
	if (walk->failed >> (lane->slot & 31) & 1)
		return 0;
	if (walk->first == NO_LANE) {
		walk->first = i;
		return 0;
	}
	score = (lane->slot != first->slot ? OTHER_SLOT : 0) |
		(same_mac(&lane->peer_mac, &first->peer_mac) ? 0 : OTHER_PEER_MAC);
	if (score > walk->score) {
		walk->score = score;
		walk->second = i;
	}
	return 0;
}

/* Two lanes, the first one in the low byte; NO_LANE as the second where there is none. */
GLOBAL __u32 mirror_lanes(const struct lb_plan *plan, __u32 failed)
{
	struct pair_walk walk = { .plan = plan, .failed = failed, .first = NO_LANE, .second = NO_LANE };

	if (!plan)
		return NO_LANE << 8;
	/* Where all have failed the plan is used as it is. */
	if (!(plan->slots & ~failed))
		walk.failed = 0;
	bpf_loop(LB_LANES_MAX, step_pair, &walk, 0);
	return (walk.second & 0xff) << 8 | (walk.first & 0xff);
}

/* The sum of the trailer's words (RFC 1071), folded. */
static __always_inline __u32 sum_of(const struct lb_mirror_trailer *trailer)
{
	const __u16 *words = (const __u16 *)trailer;
	__u32 sum = 0;

#pragma unroll
	for (__u32 i = 0; i < sizeof(*trailer) / 2; i++)
		sum += words[i];
	sum = (sum & 0xffff) + (sum >> 16);
	return (sum & 0xffff) + (sum >> 16);
}

//= docs/arp-plus.md#16.5
static __always_inline __u32 next_sequence(__u32 class)
{
	__u32 *sent = bpf_map_lookup_elem(&lb_mirror_sent, &class);
	__u32 sequence;

	if (!sent)
		return 0;
	sequence = __sync_fetch_and_add(sent, 1) + 1;
	return sequence ? sequence : __sync_fetch_and_add(sent, 1) + 1;
}

/* Whether the member takes the frame with so many bytes more. */
static __always_inline int is_taken(struct __sk_buff *skb, __u32 ifindex, __s32 more)
{
	__u32 mtu = 0;

	return !bpf_check_mtu(skb, ifindex, &mtu, more, 0);
}

/*
 * Sets skb->protocol to the EtherType of the header, which only the removal of a VLAN tag does. A driver whose NIC computes
 * checksums of IP only must not take this frame for IP.
 */
static __always_inline void note_protocol(struct __sk_buff *skb)
{
	/* To push a tag moves the one in the metadata into the frame. So two are needed, since there is none yet. */
	bpf_skb_vlan_push(skb, bpf_htons(ETH_P_8021Q), 0);
	bpf_skb_vlan_push(skb, bpf_htons(ETH_P_8021Q), 0);
	bpf_skb_vlan_pop(skb);
	bpf_skb_vlan_pop(skb);
}

/*
 * What a mirrored frame may not be: one of those that only untagged frames are, or a tag, which the kernel of the receiver would
 * take for that of the frame on the wire.
 */
//= docs/arp-plus.md#16.3
static __always_inline int is_not_mirrored(__be16 protocol)
{
	return protocol == bpf_htons(LB_ETH_P_ARP_PLUS) || protocol == bpf_htons(LB_ETH_P_MIRROR) ||
	       protocol == bpf_htons(ETH_P_8021Q) || protocol == bpf_htons(ETH_P_8021AD);
}

/* Whether a frame has a mirrored form; its EtherType is read. */
static __always_inline int may_wrap(struct __sk_buff *skb, __be16 *protocol)
{
	return !bpf_skb_load_bytes(skb, offsetof(struct ethhdr, h_proto), protocol, sizeof(*protocol)) &&
	       !skb->vlan_present && !is_not_mirrored(*protocol);
}

/* The frame in its mirrored form; 0 if it was left as it is, less if it cannot be sent any more. */
static __always_inline int wrap(struct __sk_buff *skb, const struct lb_config *bond, __u32 class, __u32 padded)
{
	const __be16 mirror = bpf_htons(LB_ETH_P_MIRROR);
	struct lb_mirror_trailer trailer = { .epoch = bpf_htonl(bond->epoch), .class = class,
					     .version = LB_MIRROR_VERSION };

	__be16 protocol;

	if (!may_wrap(skb, &protocol))
		return 0;
	trailer.protocol = protocol;
	//= docs/arp-plus.md#16.1
	if (bpf_skb_change_tail(skb, padded + sizeof(trailer), 0))
		return 0;
	trailer.sequence = bpf_htonl(next_sequence(class));
	trailer.balance = ~sum_of(&trailer);
	if (bpf_skb_store_bytes(skb, padded, &trailer, sizeof(trailer), 0) ||
	    bpf_skb_store_bytes(skb, offsetof(struct ethhdr, h_proto), &mirror, sizeof(mirror), 0))
		return -1;
	note_protocol(skb);
	return 1;
}

static __always_inline int put_macs(struct __sk_buff *skb, const struct lb_lane *lane, const struct lb_member *member,
				    __u32 class)
{
	struct lb_mac macs[2] = { lane->peer_mac, member->mac };

	if (class & MIRROR_FOR_GUEST)
		macs[1].b[0] ^= LB_ALIAS_BIT;
	return !bpf_skb_store_bytes(skb, 0, macs, sizeof(macs), 0);
}

/* Sends a frame by the two lanes of mirror_lanes() of the plan `number`. LB_TX_MIRROR_ONCE: it was neither sent nor changed. */
GLOBAL int send_twice(struct __sk_buff *skb, __u32 number, __u32 lanes, __u32 class)
{
	const struct lb_plan *plan = bpf_map_lookup_elem(&lb_plans, &number);
	const struct lb_config *bond = the_bond();
	const struct lb_member *member, *copies;
	const struct lb_lane *first, *second;
	__u32 bytes = skb->len, padded = bytes < FRAME_BYTES_MIN ? FRAME_BYTES_MIN : bytes;
	__s32 more = padded + sizeof(struct lb_mirror_trailer) - bytes;
	__be16 protocol;
	int is_wrapped;

	if (!plan || !bond)
		return LB_TX_NO_LANE;
	first = &plan->lanes[lanes & (LB_LANES_MAX - 1)];
	second = &plan->lanes[lanes >> 8 & (LB_LANES_MAX - 1)];
	member = member_at(first->slot);
	copies = member_at(second->slot);
	if (lanes >> 8 == NO_LANE || skb->gso_size || !member || !member->ifindex || !copies || !copies->ifindex)
		return LB_TX_MIRROR_ONCE;
	if (!is_taken(skb, member->ifindex, more) || !is_taken(skb, copies->ifindex, more))
		return LB_TX_MIRROR_ONCE;
	if (is_explained(skb) && !may_wrap(skb, &protocol))
		return LB_TX_MIRROR_ONCE;
	if (is_explained(skb))
		return put_macs(skb, first, member, class) ? LB_TX_MIRROR : LB_TX_REWRITE;
	is_wrapped = wrap(skb, bond, class & (LB_CLASSES_MAX - 1), padded);
	if (!is_wrapped)
		return LB_TX_MIRROR_ONCE;
	if (is_wrapped < 0 || !put_macs(skb, second, copies, class))
		return LB_TX_REWRITE;
	count_member(skb, second->slot, 1);
	count_reason(skb, LB_TX_MIRROR_COPY);
	go_first(skb, class & (LB_CLASSES_MAX - 1), second->slot);
	bpf_clone_redirect(skb, copies->ifindex, 0);
	return put_macs(skb, first, member, class) ? LB_TX_MIRROR : LB_TX_REWRITE;
}

/*
 * `old` is the newest sequence number in this place of the window. LB_RX_MIRROR: this frame is the first copy. A number that is
 * very far behind is not old: so many frames went to other hosts in between that the numbers wrapped.
 */
//= docs/arp-plus.md#16.5
static __always_inline enum lb_reason judge_sequence(__u32 old, __u32 sequence)
{
	if (old == sequence)
		return LB_RX_MIRROR_COPY;
	return old && old - sequence < LB_MIRROR_LATE_MAX ? LB_RX_MIRROR_LATE : LB_RX_MIRROR;
}

/* Whether this is the first copy. Where two CPUs ask at once, only one gets LB_RX_MIRROR. */
static __always_inline enum lb_reason note_sequence(const struct lb_mirror_key *key, __u32 sequence)
{
	struct lb_mirror *mirror = bpf_map_lookup_elem(&lb_mirrors, key);
	enum lb_reason reason;
	__u32 *seen, old, now, zero = 0;

	if (!mirror) {
		const struct lb_mirror *empty = bpf_map_lookup_elem(&lb_empty_mirror, &zero);

		if (empty)
			bpf_map_update_elem(&lb_mirrors, key, empty, BPF_NOEXIST);
		mirror = bpf_map_lookup_elem(&lb_mirrors, key);
		/* One copy too many is better than none. */
		if (!mirror)
			return LB_RX_MIRROR;
	}
	seen = &mirror->seen[sequence & (LB_MIRROR_WINDOW - 1)];
	old = *(volatile __u32 *)seen;
	reason = judge_sequence(old, sequence);
	if (reason != LB_RX_MIRROR)
		return reason;
	now = __sync_val_compare_and_swap(seen, old, sequence);
	if (now == old)
		return LB_RX_MIRROR;
	/* Another CPU changed it meanwhile: with the other copy, or with a frame that is a whole window away. */
	return now == sequence ? LB_RX_MIRROR_COPY : LB_RX_MIRROR_LATE;
}

/* Restores the frame, if it is the first copy and comes from a peer. */
static __noinline enum lb_reason unwrap(struct __sk_buff *skb, __u32 plan)
{
	__u32 zero = 0, bytes = skb->len;
	struct lb_mirror_view *view = bpf_map_lookup_elem(&lb_mirror_view, &zero);
	struct lb_mirror_trailer *trailer;
	enum lb_reason reason;

	//= docs/arp-plus.md#16.1
	if (!view || bytes < FRAME_BYTES_MIN + sizeof(*trailer))
		return LB_RX_MIRROR_BAD;
	trailer = &view->trailer;
	bytes -= sizeof(*trailer);
	if (bpf_skb_load_bytes(skb, bytes, trailer, sizeof(*trailer)))
		return LB_RX_MIRROR_BAD;
	//= docs/arp-plus.md#16.2
	if (trailer->version != LB_MIRROR_VERSION || trailer->class >= LB_CLASSES_MAX || !trailer->sequence ||
	    trailer->zero || sum_of(trailer) != 0xffff)
		return LB_RX_MIRROR_BAD;
	if (is_not_mirrored(trailer->protocol))
		return LB_RX_MIRROR_BAD;
	view->key.plan = plan;
	view->key.epoch = trailer->epoch;
	view->key.class = trailer->class;
	reason = note_sequence(&view->key, bpf_ntohl(trailer->sequence));
	if (reason != LB_RX_MIRROR)
		return reason;
	if (bpf_skb_store_bytes(skb, offsetof(struct ethhdr, h_proto), &trailer->protocol, sizeof(trailer->protocol), 0) ||
	    bpf_skb_change_tail(skb, bytes, 0))
		return LB_RX_REWRITE;
	return LB_RX_MIRROR;
}

#endif
