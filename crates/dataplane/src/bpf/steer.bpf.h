/* SPDX-License-Identifier: (GPL-2.0-only OR BSD-2-Clause) */
/*
 * The way out: from a frame on the bond to a member and a pair of MACs. Called by lb_egress.
 * Reads lb_bond, lb_members, lb_near_peers, lb_peer_macs, lb_guest_pairs, lb_plain_hosts, lb_answers, lb_plans, lb_rules,
 * lb_class_plans, lb_look; writes lb_progresses, lb_lane_counters, lb_used, lb_flows, lb_classes, lb_guests, lb_guests_sent, lb_guests_seen. Of a frame that is only
 * asked about it writes nothing, but that old progress is forgotten where the lanes have changed.
 */
#ifndef LB_STEER_BPF_H
#define LB_STEER_BPF_H

#include "policies.bpf.h"

static __always_inline void note_use(__u32 plan)
{
	__u32 zero = 0;
	__u8 *used = bpf_map_lookup_elem(&lb_used, &zero), *look = bpf_map_lookup_elem(&lb_look, &zero);

	/* Most frames find it written: processors do not take the row from each other. */
	if (used && look && plan < LB_PLANS_MAX && used[plan] != *look)
		used[plan] = *look;
}

static __always_inline void count_lane(struct __sk_buff *skb, const struct way_out *way, __u32 lane)
{
	struct lb_lane_counts *counts = bpf_map_lookup_elem(&lb_lane_counters, &way->plan);

	if (!counts)
		return;
	if (counts->generation != way->generation) {
		__builtin_memset(counts->lanes, 0, sizeof(counts->lanes));
		counts->generation = way->generation;
	}
	add_count(&counts->lanes[index_of(lane)], skb);
	note_use(way->plan);
}

/* A lane of a plan that has several, and why (because()). */
GLOBAL __u32 choose_lane(struct __sk_buff *skb, __u32 number)
{
	const struct lb_plan *plan = bpf_map_lookup_elem(&lb_plans, &number);
	const struct lb_config *bond = the_bond();

	if (!plan || !bond)
		return 0;
	return lane_by_policy(skb, bond, number, plan, unusable_slots(bond, plan));
}

/*
 * Whether the source is another MAC of the bond's. The bridge changes its MAC before the tables do, and what it sends
 * meanwhile is not from a guest: treated so, it would leave by any member under the MAC of another one, and the switch would
 * send the replies to the wrong port. The frame gets the MAC that the tables have.
 */
static __always_inline int is_ours(struct __sk_buff *skb, const struct lb_config *bond, const struct lb_mac *source)
{
	struct lb_mac_key key = mac_key(source);

	return bpf_map_lookup_elem(&lb_own_macs, &key) &&
	       !bpf_skb_store_bytes(skb, ETH_ALEN, &bond->mac, ETH_ALEN, 0);
}

/*
 * A guest's frame that keeps its MAC. Reports of groups leave as the bond's own: the switch is to send the groups to the
 * elected member.
 */
GLOBAL int steer_guest(struct __sk_buff *skb, const struct lb_mac *guest, const struct lb_mac_key *to,
		       const struct lb_peer_mac *peer, struct way_out *way)
{
	const struct lb_config *bond = the_bond();
	__u32 several, segment = LB_NO_SLOT;

	if (!bond || !guest || !to || !peer || !way)
		return LB_TX_NO_LANE;
	several = bond->n_segments > 1;

	if (is_multicast(&to->mac)) {
		if (is_group_report(skb) && !is_dead(bond, bond->elected[0]))
			return several ? send_to_segments(skb, &to->mac, LB_TX_REPORT, way) :
					 send_over(skb, bond, bond->elected[0], &to->mac, PUT_MACS, LB_TX_REPORT,
						   way);
	} else if (is_member_of_peer(peer)) {
		return send_guest_to_peer(skb, bond, guest, peer->plan, way);
	} else if (several) {
		segment = segment_of(to);
	}
	if (several && segment == LB_NO_SLOT)
		return send_guest_to_segments(skb, guest, way);
	return send_guest(guest_slot(bond, guest, several ? segment_plan(segment) : 0), way);
}

/* The daemon needs to know when the bond's MAC was advertised to all: plain hosts then forget what each had learned. */
GLOBAL int multicast_reason(struct __sk_buff *skb, __be16 protocol)
{
	const struct lb_config *bond = the_bond();
	struct naming naming;

	return bond && may_name(skb, protocol) && find_naming(skb, &bond->mac, &naming) ? LB_TX_ASKED_ALL : LB_TX_MULTICAST;
}

static __always_inline enum lb_reason send_answer(struct __sk_buff *skb, const struct lb_config *bond, __u32 slot,
						  const struct naming *naming, const struct lb_mac *to, struct way_out *way)
{
	if (!name_member(skb, naming, bond, slot))
		return LB_TX_REWRITE;
	return send_over(skb, bond, slot, to, HAS_MACS, LB_TX_ANSWER, way);
}

/* No reason yet: the frame leaves over a lane of a plan. */
#define BY_PLAN LB_UNUSED

/* A copy for each segment. On one switch (the usual case) the members take turns: BY_PLAN. */
static __always_inline enum lb_reason steer_multicast(struct __sk_buff *skb, const struct lb_config *bond,
						      const struct lb_mac *group, __be16 protocol, struct way_out *way)
{
	__u32 plain = 0;
	const struct lb_plan *plan = bpf_map_lookup_elem(&lb_plans, &plain);

	if (!plan || !plan->n_lanes || !bond->n_segments)
		return LB_TX_NO_LANE;
	if (bond->n_segments > 1)
		return send_to_segments(skb, group, multicast_reason(skb, protocol), way);
	if (is_group_report(skb) && !is_dead(bond, bond->elected[0]))
		return send_over(skb, bond, bond->elected[0], group, HAS_MACS, LB_TX_REPORT, way);
	return BY_PLAN;
}

/* For a plain host: its answer, or a copy for each segment, or BY_PLAN, and `number` becomes that of the plan. */
GLOBAL int steer_plain(struct __sk_buff *skb, const struct lb_mac_key *host, __be16 protocol, __u32 *number,
		       struct way_out *way)
{
	const struct lb_config *bond = the_bond();
	__u32 segment;

	if (!bond || !host || !number || !way)
		return LB_TX_NO_LANE;
	segment = bond->n_segments > 1 ? segment_of(host) : LB_NO_SLOT;
	if (may_name(skb, protocol)) {
		__u32 slot = answer_slot(bond, host, segment);
		struct naming naming;

		if (slot != LB_NO_SLOT && find_naming(skb, &bond->mac, &naming))
			return send_answer(skb, bond, slot, &naming, &host->mac, way);
	}
	if (bond->n_segments > 1) {
		/* As a switch does with an address that it has not learned. */
		if (segment == LB_NO_SLOT)
			return send_to_segments(skb, &host->mac, LB_TX_PLAIN_UNKNOWN, way);
		*number = segment_plan(segment);
	}
	return BY_PLAN;
}

/*
 * The plan of the peer over whose lanes a frame for one host leaves; 0 where there is none. Guests' frames need both ends'
 * addresses to be known; else they leave as to a plain host, and so does what is for a guest's MAC or for one like an alias.
 */
static __always_inline __u32 peer_plan(struct __sk_buff *skb, const struct lb_mac_key *to, const struct lb_mac *source,
				       int is_guest, const struct lb_peer_mac *peer)
{
	if (!is_guest && is_member_of_peer(peer))
		return peer->plan;
	if (!(peer->flags & (is_guest ? LB_PEER_GUEST | LB_PEER_TAKES_GUESTS : LB_PEER_GUEST)))
		return 0;
	return are_paired(skb, to, is_guest ? source : NULL, peer) ? peer->plan : 0;
}

static __always_inline enum lb_reason peer_reason(int is_guest, const struct lb_peer_mac *peer)
{
	if (peer->flags & LB_PEER_GUEST)
		return LB_TX_FOR_GUEST;
	return is_guest ? LB_TX_FROM_GUEST : LB_TX_PEER;
}

static __always_inline enum macs macs_for(enum lb_reason reason)
{
	if (reason == LB_TX_FOR_GUEST)
		return PUT_ALIAS;
	return reason == LB_TX_FROM_GUEST ? PUT_MACS : HAS_MACS;
}

static __always_inline int is_to_peer(enum lb_reason reason)
{
	return reason == LB_TX_PEER || reason == LB_TX_FROM_GUEST || reason == LB_TX_FOR_GUEST;
}

/*
 * A frame leaves twice by the plan `number`: first the copy, then the frame itself. LB_TX_MIRROR_ONCE: it has no mirrored form, and is to
 * leave as it is by the lane in `way`.
 */
GLOBAL int send_mirrored(struct __sk_buff *skb, __u32 number, __u32 class, struct way_out *way)
{
	const struct lb_plan *plan = bpf_map_lookup_elem(&lb_plans, &number);
	const struct lb_config *bond = the_bond();
	const struct lb_member *member;
	enum lb_reason reason;
	__u32 avoided, lanes, slot;

	if (!plan || !bond || !way)
		return LB_TX_NO_LANE;
	avoided = unusable_slots(bond, plan);
	lanes = mirror_lanes(plan, avoided);
	reason = send_twice(skb, number, lanes, class);
	way->lane = because(lanes & 0xff, LB_WHY_PAIR, avoided);
	if (reason != LB_TX_MIRROR)
		return reason;
	slot = plan->lanes[index_of(lanes)].slot;
	member = member_at(slot);
	if (!member)
		return LB_TX_NO_LANE;
	way->second = (lanes >> 8) + 1;
	redirect_to(member, slot, way);
	return LB_TX_MIRROR;
}

/*
 * The frame leaves by the plan that steer() found, or by the one that its class has in its place, to the MAC of the peer's member.
 */
GLOBAL int send_by_plan(struct __sk_buff *skb, struct way_out *way)
{
	const struct lb_config *bond = the_bond();
	__u32 base, class, number, chosen;
	const struct lb_plan *plan;
	const struct lb_lane *lane;
	enum lb_reason reason;
	enum macs how;

	if (!bond || !way)
		return LB_TX_NO_LANE;
	reason = way->reason;
	how = macs_for(reason);
	base = way->base - 1;
	class = way->class;
	number = class ? class_plan(skb, base, class) : base;
	plan = bpf_map_lookup_elem(&lb_plans, &number);
	way->plan = number;
	if (!plan || !plan->n_lanes)
		return number == base ? LB_TX_NO_LANE : LB_TX_CLASS_BLOCKED;
	way->generation = plan->generation;
	if (plan->policy == LB_MIRROR && is_to_peer(reason)) {
		reason = send_mirrored(skb, number, class | (how == PUT_ALIAS ? MIRROR_FOR_GUEST : 0), way);
		if (reason != LB_TX_MIRROR_ONCE)
			return reason;
		chosen = way->lane;
	} else {
		chosen = plan->n_lanes == 1 ? because(0, LB_WHY_ONLY, 0) : choose_lane(skb, number);
		way->lane = chosen;
	}
	lane = &plan->lanes[index_of(chosen)];
	if (!is_zero_mac(&lane->peer_mac)) {
		if (how == HAS_MACS && !same_mac(&way->to, &lane->peer_mac))
			how = PUT_MACS;
		way->to = lane->peer_mac;
	}
	return send_over(skb, bond, lane->slot, &way->to, how, reason, way);
}

/* What is kept of a guest's frame. */
GLOBAL int note_guest_frame(struct __sk_buff *skb, const struct lb_mac *guest, __be16 protocol, int is_for_many)
{
	struct naming naming;

	if (!guest)
		return 0;
	note_guest(skb, guest, protocol);
	if (is_for_many)
		note_sent(skb);
	if (may_name(skb, protocol) && find_naming(skb, guest, &naming))
		note_address(skb, guest, &naming);
	return 0;
}

/* Decides about one frame, and sends it unless that is BY_PLAN. A function beside send_by_plan(), as both need much stack. */
GLOBAL int steer(struct __sk_buff *skb, struct way_out *way)
{
	const struct lb_config *bond = the_bond();
	struct lb_peer_mac peer = {};
	struct lb_mac_key to;
	enum lb_reason reason;
	struct lb_mac source;
	struct ethhdr *eth;
	__u32 number = 0;
	__be16 protocol;
	int is_guest;

	if (!has_ethernet(skb, &eth))
		return LB_TX_SHORT;
	if (!bond || !way)
		return LB_TX_NO_LANE;
	__builtin_memcpy(&source, eth->h_source, sizeof(source));
	to = mac_key((const struct lb_mac *)eth->h_dest);
	protocol = eth->h_proto;
	is_guest = !same_mac(&source, &bond->mac) && !is_ours(skb, bond, &source);
	if (!is_multicast(&to.mac)) {
		find_peer(&to, &peer);
		number = peer_plan(skb, &to, &source, is_guest, &peer);
	}
	if (is_guest) {
		if (!is_explained(skb))
			note_guest_frame(skb, &source, protocol, is_multicast(&to.mac));
		if (!number)
			return steer_guest(skb, &source, &to, &peer, way);
	}
	if (bond->n_rules)
		way->class = class_of(skb);
	if (number) {
		reason = peer_reason(is_guest, &peer);
	} else if (is_multicast(&to.mac)) {
		reason = steer_multicast(skb, bond, &to.mac, protocol, way);
		if (reason != BY_PLAN)
			return reason;
		reason = multicast_reason(skb, protocol);
	} else {
		reason = steer_plain(skb, &to, protocol, &number, way);
		if (reason != BY_PLAN)
			return reason;
		reason = number ? LB_TX_PLAIN_SEGMENT : LB_TX_PLAIN;
	}
	way->base = number + 1;
	way->to = to.mac;
	way->reason = reason;
	return BY_PLAN;
}

#endif
