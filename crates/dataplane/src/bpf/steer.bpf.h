/* SPDX-License-Identifier: (GPL-2.0-only OR BSD-2-Clause) */
/*
 * The way out: from a frame on the bond to a member and a pair of MACs. Called by lb_egress.
 * Reads lb_bond, lb_members, lb_near_peers, lb_peer_macs, lb_plain_hosts, lb_answers, lb_plans, lb_rules,
 * lb_class_plans; writes lb_progresses, lb_lane_counters, lb_flows, lb_classes, lb_guests.
 */
#ifndef LB_STEER_BPF_H
#define LB_STEER_BPF_H

/* A buffer with no more bytes from its TCP header on may be an ACK without data. */
#define ACK_BYTES_MAX 64
/* How far a lane may be ahead of the others, in bytes: traffic that is bound to one lane is not charged beyond it. */
#define LEAD_BYTES_MAX (2 * 65536)
/* How often the way out looks at the clock to refresh lanes, in buffers; a power of two. */
#define REFRESH_TURNS 64

static __always_inline struct lb_progress *progress_of(__u32 number, const struct lb_plan *plan)
{
	struct lb_progress *progress = bpf_map_lookup_elem(&lb_progresses, &number);

	if (progress && progress->generation != plan->generation) {
		/* The lanes changed: all start together. Two CPUs here at once do the same. */
		__builtin_memset(progress->time, 0, sizeof(progress->time));
		__builtin_memset(progress->penalty, 0, sizeof(progress->penalty));
		__builtin_memset(progress->quarantine_us, 0, sizeof(progress->quarantine_us));
		__builtin_memset(progress->last_quarantine_us, 0, sizeof(progress->last_quarantine_us));
		__builtin_memset(progress->deliveries, 0, sizeof(progress->deliveries));
		progress->generation = plan->generation;
	}
	return progress;
}

static __always_inline void count_lane(struct __sk_buff *skb, __u32 number, __u32 generation, __u32 lane)
{
	struct lb_lane_counts *counts = bpf_map_lookup_elem(&lb_lane_counters, &number);

	if (!counts)
		return;
	if (counts->generation != generation) {
		__builtin_memset(counts->lanes, 0, sizeof(counts->lanes));
		counts->generation = generation;
	}
	add_count(&counts->lanes[index_of(lane)], skb);
}

/* Adds a buffer to its lane's virtual time, as long as the lane is not too far ahead of the `latest` one. */
static __always_inline void charge_lane(struct __sk_buff *skb, const struct lb_plan *plan,
					struct lb_progress *progress, __u32 lane, __u32 latest)
{
	__u64 cost = plan->lanes[lane].byte_cost, ahead, *time = &progress->time[lane];

	cost += cost * progress->penalty[lane] >> 8;
	ahead = *time - progress->time[index_of(latest)];
	if ((__s64)ahead < (__s64)(LEAD_BYTES_MAX * cost))
		__sync_fetch_and_add(time, skb->wire_len * cost);
}

/* The lane of a buffer where the policy is to spread, or to mirror. `avoid`: slots, a bit each. */
static __always_inline __u32 spread_lane(struct __sk_buff *skb, const struct lb_config *bond, __u32 number,
					 const struct lb_plan *plan, __u32 hash, __u32 avoid)
{
	struct lb_progress *progress = progress_of(number, plan);
	__u32 lane, latest, is_tcp, is_bare_ack, is_damped;
	struct lb_flow *flow = 0;
	struct tcp_view view;

	if (!progress)
		return hashed_lane(plan, hash);
	latest = latest_lane(plan, progress);
	is_tcp = view_tcp(skb, &view);
	/* A new connection may reuse the ports of one that is gone. */
	if (is_tcp && view.flags & TCP_SYN)
		bpf_map_delete_elem(&lb_flows, &view.flow);
	/* ACKs without data stay in order on one lane: reordered ones slow the sender down. */
	is_bare_ack = is_tcp && !view.payload && skb->len <= view.tcp_at + ACK_BYTES_MAX;
	lane = is_bare_ack ? hashed_lane(plan, hash) : latest;
	is_damped = is_tcp && view.payload && bond->flags & LB_CONFIG_DAMPING;
	if (is_damped) {
		flow = bpf_map_lookup_elem(&lb_flows, &view.flow);
		if (flow)
			avoid |= stuck_slot(flow, plan);
		if (flow && !avoid)
			lane = growing_lane(flow, plan, view.seq, view.payload, lane);
	}
	if (avoid) {
		latest = latest_live_lane(plan, avoid, progress, latest);
		lane = is_bare_ack ? next_live_lane_out(plan, avoid, lane) : latest;
	}
	/* Lanes of traffic that no ACKs come back for are refreshed, too. */
	if (!(++progress->turns & (REFRESH_TURNS - 1)))
		refresh_lanes_if_due(progress, number, bpf_ktime_get_ns());
	lane = index_of(lane);
	charge_lane(skb, plan, progress, lane, latest);
	if (is_damped)
		remember_stripe(skb, &view, flow, number, plan->generation << 4 | lane);
	return lane;
}

/* A lane of a plan that has several. Not static, so that the verifier walks it once, and not from each caller's state. */
__noinline __u32 choose_lane(struct __sk_buff *skb, __u32 number)
{
	const struct lb_plan *plan = bpf_map_lookup_elem(&lb_plans, &number);
	const struct lb_config *bond = the_bond();
	__u32 avoid, hash;

	if (!plan || !bond)
		return 0;
	avoid = unusable_slots(bond, plan);
	if (plan->policy == LB_ACTIVE_BACKUP)
		return avoid ? next_live_lane_out(plan, avoid, 0) : 0;
	hash = bpf_get_hash_recalc(skb);
	if (plan->policy == LB_FLOW) {
		__u32 lane = hashed_lane(plan, hash);

		return avoid ? next_live_lane_out(plan, avoid, lane) : lane;
	}
	return spread_lane(skb, bond, number, plan, hash, avoid);
}

/*
 * Puts the MACs of the lane into the frame and sends it out of the member. `has_macs`: the frame goes from the
 * bond's MAC to `to` already, so that the bond's first member need not touch it.
 */
static __always_inline enum lb_reason send_over(struct __sk_buff *skb, const struct lb_config *bond, __u32 slot,
						const struct lb_mac *to, int has_macs, enum lb_reason reason,
						int *verdict)
{
	const struct lb_member *member = member_at(slot);
	struct lb_mac macs[2];

	if (!member || !member->ifindex)
		return LB_TX_NO_LANE;
	macs[0] = *to;
	macs[1] = member->mac;
	/* The header may sit in a buffer shared with a clone: the helper makes it ours before it changes. */
	if (!(has_macs && same_mac(&member->mac, &bond->mac)) &&
	    bpf_skb_store_bytes(skb, 0, macs, sizeof(macs), 0))
		return LB_TX_REWRITE;
	count_member(skb, slot, 1);
	*verdict = bpf_redirect(member->ifindex, 0);
	return reason;
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

/* A copy to each segment, the last one with the buffer itself. */
static __always_inline enum lb_reason send_to_segments(struct __sk_buff *skb, const struct lb_config *bond,
						       const struct lb_mac *to, enum lb_reason reason, int *verdict)
{
	for (__u32 i = 1; i < LB_MEMBERS_MAX; i++) {
		const struct lb_member *member;
		__u32 slot;

		if (i >= bond->n_segments)
			break;
		slot = bond->elected[i];
		member = member_at(slot);
		if (!member || !member->ifindex)
			continue;
		if (bpf_skb_store_bytes(skb, ETH_ALEN, &member->mac, ETH_ALEN, 0))
			return LB_TX_REWRITE;
		count_member(skb, slot, 1);
		count_reason(skb, LB_TX_MULTICAST_COPY);
		bpf_clone_redirect(skb, member->ifindex, 0);
	}
	return send_over(skb, bond, bond->elected[0], to, 0, reason, verdict);
}

/* A guest's frame leaves by a member as it is. */
static __always_inline enum lb_reason send_guest(struct __sk_buff *skb, __u32 slot, int *verdict)
{
	const struct lb_member *member = member_at(slot);

	if (!member || !member->ifindex)
		return LB_TX_NO_LANE;
	count_member(skb, slot, 1);
	*verdict = bpf_redirect(member->ifindex, 0);
	return LB_TX_GUEST;
}

/* A copy to each segment but the first, by the member that speaks for the guest there; the frame itself to the first one. */
static __always_inline enum lb_reason send_guest_to_segments(struct __sk_buff *skb, const struct lb_config *bond,
							     const struct lb_mac *guest, int *verdict)
{
	for (__u32 i = 1; i < LB_MEMBERS_MAX; i++) {
		const struct lb_member *member;
		__u32 slot;

		if (i >= bond->n_segments)
			break;
		slot = guest_slot(bond, guest, segment_plan(bond->elected[i]));
		member = member_at(slot);
		if (!member || !member->ifindex)
			continue;
		count_member(skb, slot, 1);
		count_reason(skb, LB_TX_MULTICAST_COPY);
		bpf_clone_redirect(skb, member->ifindex, 0);
	}
	return send_guest(skb, guest_slot(bond, guest, segment_plan(bond->elected[0])), verdict);
}

/* A guest's frame to a peer: to the peer's member that answers the guest's own, if there is one. */
static __always_inline enum lb_reason send_guest_to_peer(struct __sk_buff *skb, const struct lb_config *bond,
							 const struct lb_mac *guest, __u32 number, int *verdict)
{
	const struct lb_plan *plan = bpf_map_lookup_elem(&lb_plans, &number);
	const struct lb_member *first;
	__u32 slot, plain = 0;

	if (!plan || !plan->n_lanes)
		return LB_TX_NO_LANE;
	first = member_at(plan->lanes[0].slot);
	if (first && bond->n_segments > 1)
		plain = segment_plan(first->elected);
	slot = guest_slot(bond, guest, plain);
	for (__u32 i = 0; i < LB_LANES_MAX; i++) {
		if (i >= plan->n_lanes)
			break;
		if (plan->lanes[i].slot != slot)
			continue;
		if (bpf_skb_store_bytes(skb, 0, &plan->lanes[i].peer_mac, ETH_ALEN, 0))
			return LB_TX_REWRITE;
		break;
	}
	return send_guest(skb, slot, verdict);
}

/* A guest's frame. Reports of groups leave as the bond's own: the switch is to send the groups to the elected member. */
static __always_inline enum lb_reason steer_guest(struct __sk_buff *skb, const struct lb_config *bond,
						  const struct lb_mac *guest, const struct lb_mac_key *to,
						  __be16 protocol, int *verdict)
{
	__u32 several = bond->n_segments > 1, segment = LB_NO_SLOT;
	struct lb_peer_mac peer;

	note_guest(guest, protocol);
	if (is_multicast(&to->mac)) {
		if (is_group_report(skb) && !is_dead(bond, bond->elected[0]))
			return several ? send_to_segments(skb, bond, &to->mac, LB_TX_REPORT, verdict) :
					 send_over(skb, bond, bond->elected[0], &to->mac, 0, LB_TX_REPORT, verdict);
	} else {
		find_peer(to, &peer);
		if (peer.plan)
			return send_guest_to_peer(skb, bond, guest, peer.plan, verdict);
		if (several)
			segment = segment_of(to);
	}
	if (several && segment == LB_NO_SLOT)
		return send_guest_to_segments(skb, bond, guest, verdict);
	return send_guest(skb, guest_slot(bond, guest, several ? segment_plan(segment) : 0), verdict);
}

/* The daemon needs to know when the bond's MAC was advertised to all: plain hosts then forget what each had learned. */
static __always_inline enum lb_reason multicast_reason(struct __sk_buff *skb, const struct lb_config *bond,
						       __be16 protocol)
{
	struct naming naming;

	return may_name(skb, protocol) && find_naming(skb, &bond->mac, &naming) ? LB_TX_ASKED_ALL : LB_TX_MULTICAST;
}

static __always_inline enum lb_reason send_answer(struct __sk_buff *skb, const struct lb_config *bond, __u32 slot,
						  const struct naming *naming, const struct lb_mac *to, int *verdict)
{
	if (!name_member(skb, naming, bond, slot))
		return LB_TX_REWRITE;
	return send_over(skb, bond, slot, to, 1, LB_TX_ANSWER, verdict);
}

/* No reason yet: the frame leaves over a lane of a plan. */
#define BY_PLAN LB_UNUSED

/* A copy for each segment. On one switch (the usual case) the members take turns: BY_PLAN. */
static __always_inline enum lb_reason steer_multicast(struct __sk_buff *skb, const struct lb_config *bond,
						      const struct lb_mac *group, __be16 protocol, int *verdict)
{
	__u32 plain = 0;
	const struct lb_plan *plan = bpf_map_lookup_elem(&lb_plans, &plain);

	if (!plan || !plan->n_lanes || !bond->n_segments)
		return LB_TX_NO_LANE;
	if (bond->n_segments > 1)
		return send_to_segments(skb, bond, group, multicast_reason(skb, bond, protocol), verdict);
	if (is_group_report(skb) && !is_dead(bond, bond->elected[0]))
		return send_over(skb, bond, bond->elected[0], group, 1, LB_TX_REPORT, verdict);
	return BY_PLAN;
}

/* For a plain host: its answer, or a copy for each segment, or BY_PLAN, and `number` becomes that of the plan. */
static __always_inline enum lb_reason steer_plain(struct __sk_buff *skb, const struct lb_config *bond,
						  const struct lb_mac_key *host, __be16 protocol, __u32 *number,
						  int *verdict)
{
	__u32 segment = bond->n_segments > 1 ? segment_of(host) : LB_NO_SLOT;

	if (may_name(skb, protocol)) {
		__u32 slot = answer_slot(bond, host, segment);
		struct naming naming;

		if (slot != LB_NO_SLOT && find_naming(skb, &bond->mac, &naming))
			return send_answer(skb, bond, slot, &naming, &host->mac, verdict);
	}
	if (bond->n_segments > 1) {
		/* As a switch does with an address that it has not learned. */
		if (segment == LB_NO_SLOT)
			return send_to_segments(skb, bond, &host->mac, LB_TX_PLAIN_UNKNOWN, verdict);
		*number = segment_plan(segment);
	}
	return BY_PLAN;
}

static __always_inline enum lb_reason unicast_reason(__u32 number)
{
	if (number >= LB_PLAIN_PLAN_FIRST)
		return LB_TX_PLAIN_SEGMENT;
	return number ? LB_TX_PEER : LB_TX_PLAIN;
}

/* The copy of a mirrored frame has left; now the frame itself. */
static __always_inline enum lb_reason send_mirrored(struct __sk_buff *skb, __u32 number, const struct lb_plan *plan,
						    __u32 lanes, int *verdict)
{
	const struct lb_member *member = member_at(plan->lanes[index_of(lanes)].slot);

	if (!member)
		return LB_TX_NO_LANE;
	count_lane(skb, number, plan->generation, lanes);
	count_lane(skb, number, plan->generation, lanes >> 8);
	*verdict = bpf_redirect(member->ifindex, 0);
	return LB_TX_MIRROR;
}

/*
 * The frame leaves by the plan `base`, or by the one that its class has in its place. `to` becomes the MAC of the peer's
 * member. `reason`: what it counts as, unless it is dropped or mirrored.
 */
static __always_inline enum lb_reason send_by_plan(struct __sk_buff *skb, const struct lb_config *bond, __u32 base,
						   __u32 class, struct lb_mac *to, enum lb_reason reason,
						   int *verdict)
{
	__u32 number = class ? class_plan(bond, base, class) : base, chosen;
	const struct lb_plan *plan = bpf_map_lookup_elem(&lb_plans, &number);
	const struct lb_lane *lane;
	int has_macs = 1;

	if (!plan || !plan->n_lanes)
		return number == base ? LB_TX_NO_LANE : LB_TX_CLASS_BLOCKED;
	if (plan->policy == LB_MIRROR && reason == LB_TX_PEER) {
		chosen = mirror_lanes(plan, unusable_slots(bond, plan));
		reason = send_twice(skb, bond, plan, chosen, class);
		if (reason == LB_TX_MIRROR)
			return send_mirrored(skb, number, plan, chosen, verdict);
		if (reason != LB_TX_MIRROR_ONCE)
			return reason;
	} else {
		chosen = plan->n_lanes == 1 ? 0 : choose_lane(skb, number);
	}
	count_lane(skb, number, plan->generation, chosen);
	lane = &plan->lanes[index_of(chosen)];
	if (!is_zero_mac(&lane->peer_mac)) {
		has_macs = same_mac(to, &lane->peer_mac);
		*to = lane->peer_mac;
	}
	return send_over(skb, bond, lane->slot, to, has_macs, reason, verdict);
}

/* A frame for one host. BY_PLAN: it leaves by the plan `number`. */
static __always_inline enum lb_reason steer_unicast(struct __sk_buff *skb, const struct lb_config *bond,
						    const struct lb_mac_key *host, __be16 protocol, __u32 *number,
						    int *verdict)
{
	struct lb_peer_mac peer;

	find_peer(host, &peer);
	*number = peer.plan;
	return peer.plan ? BY_PLAN : steer_plain(skb, bond, host, protocol, number, verdict);
}

/* Decides about one frame and sends it; `verdict` is that of the program where it is sent. */
static __always_inline enum lb_reason steer(struct __sk_buff *skb, int *verdict, __u32 *class)
{
	const struct lb_config *bond = the_bond();
	struct lb_mac_key to;
	enum lb_reason reason;
	struct lb_mac source;
	struct ethhdr *eth;
	__u32 number = 0;
	__be16 protocol;

	if (!has_ethernet(skb, &eth))
		return LB_TX_SHORT;
	if (!bond)
		return LB_TX_NO_LANE;
	__builtin_memcpy(&source, eth->h_source, sizeof(source));
	to = mac_key((const struct lb_mac *)eth->h_dest);
	protocol = eth->h_proto;
	if (!same_mac(&source, &bond->mac) && !is_ours(skb, bond, &source))
		return steer_guest(skb, bond, &source, &to, protocol, verdict);
	if (bond->n_rules)
		*class = class_of(skb, bond);
	if (is_multicast(&to.mac)) {
		reason = steer_multicast(skb, bond, &to.mac, protocol, verdict);
		if (reason != BY_PLAN)
			return reason;
		reason = multicast_reason(skb, bond, protocol);
	} else {
		reason = steer_unicast(skb, bond, &to, protocol, &number, verdict);
		if (reason != BY_PLAN)
			return reason;
		reason = unicast_reason(number);
	}
	return send_by_plan(skb, bond, number, *class, &to.mac, reason, verdict);
}

#endif
