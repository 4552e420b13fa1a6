/* SPDX-License-Identifier: (GPL-2.0-only OR BSD-2-Clause) */
/*
 * Policy spread: byte-fair weighted round robin over all lanes, also within one flow. TCP flows are remembered (lb_flows), for
 * damping. Also the policy of what mirror sends once: to plain hosts.
 */
#ifndef LB_POLICY_SPREAD_BPF_H
#define LB_POLICY_SPREAD_BPF_H

/* A buffer with no more bytes from its TCP header on may be an ACK without data. */
#define ACK_BYTES_MAX 64
/* How often the way out looks at the clock to refresh lanes, in buffers; a power of two. */
#define REFRESH_TURNS 64

/* Adds a buffer to its lane's virtual time, as long as the lane is not too far ahead of the `latest` one. */
static __always_inline void charge_lane(struct __sk_buff *skb, const struct lb_plan *plan,
					struct lb_progress *progress, __u32 lane, __u32 latest)
{
	__u64 cost = byte_cost(plan, progress, lane), ahead, *time = &progress->time[lane];

	ahead = *time - progress->time[index_of(latest)];
	if ((__s64)ahead < (__s64)(LEAD_BYTES_MAX * cost))
		__sync_fetch_and_add(time, skb->wire_len * cost);
}

static __always_inline __u32 spread_lane(struct __sk_buff *skb, const struct lb_config *bond, __u32 number,
					 const struct lb_plan *plan, __u32 avoid)
{
	struct lb_progress *progress = progress_of(number, plan);
	__u32 lane, latest, behind, is_tcp, is_bare_ack, is_damped;
	struct lb_flow *flow = 0;
	struct tcp_view view;

	if (!progress)
		return index_of(hashed_lane(plan, bpf_get_hash_recalc(skb)));
	latest = behind = index_of(latest_lane(plan, progress));
	is_tcp = view_tcp(skb, &view);
	/* A new connection may reuse the ports of one that is gone. */
	if (is_tcp && view.flags & TCP_SYN && !is_explained(skb))
		bpf_map_delete_elem(&lb_flows, &view.flow);
	/* ACKs without data stay in order on one lane: reordered ones slow the sender down. */
	is_bare_ack = is_tcp && !view.payload && skb->len <= view.tcp_at + ACK_BYTES_MAX;
	lane = is_bare_ack ? because(index_of(hashed_lane(plan, bpf_get_hash_recalc(skb))), LB_WHY_ACK, 0) :
			     because(latest, LB_WHY_LATEST, 0);
	is_damped = is_tcp && view.payload && bond->flags & LB_CONFIG_DAMPING;
	if (is_damped) {
		flow = bpf_map_lookup_elem(&lb_flows, &view.flow);
		if (flow)
			avoid |= avoided_slots(flow, plan, avoid);
		if (flow && !avoid)
			lane = growing_lane(bond, flow, plan, view.seq, view.payload, lane);
	}
	if (avoid) {
		latest = latest_live_lane(plan, avoid, progress, latest);
		lane = is_bare_ack ? because(next_live_lane(plan, avoid, index_of(lane)), LB_WHY_ACK, 0) :
				     because(latest, LB_WHY_LATEST, 0);
	}
	if (is_explained(skb))
		return because(lane, 0, avoid);
	lane = index_of(lane);
	if (latest != behind)
		catch_up(progress, behind, latest);
	/* Lanes of traffic that no ACKs come back for are refreshed, too. */
	if (!(++progress->turns & (REFRESH_TURNS - 1)))
		refresh_lanes_if_due(progress, number, bpf_ktime_get_ns());
	charge_lane(skb, plan, progress, lane, latest);
	if (is_damped)
		remember_stripe(skb, &view, flow, progress, number, plan->generation << 4 | lane);
	return lane;
}

#endif
