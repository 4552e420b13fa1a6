/* SPDX-License-Identifier: (GPL-2.0-only OR BSD-2-Clause) */
/*
 * The stripes of a flow: which sequence numbers left by which lane, and when. Damping (damp.bpf.h) judges ACKs by them.
 * Called by choose_lane() on the way out. Reads lb_empty_flow; writes lb_flows.
 */
#ifndef LB_STRIPES_BPF_H
#define LB_STRIPES_BPF_H

/* A flow whose buffers are shorter than this is not remembered: it finishes before it is reordered. */
#define STRIPE_BYTES_MIN 1000
/* Buffers that follow each other on one lane are one stripe up to this length. */
#define STRIPE_BYTES_MAX 65536
/* So many stripes are to cover what a flow has in flight, of the LB_STRIPES_MAX that are remembered. */
#define STRIPES_IN_FLIGHT (LB_STRIPES_MAX * 3 / 4)
/* Buffers that were cut share a lane only while each lane of the plan may have so many such stripes in flight. */
#define STRIPES_A_LANE 2
/* In lb_stripe.sent_us: the end of the stripe has arrived; and its delivery was counted. */
#define STRIPE_ARRIVED 1u
#define STRIPE_COUNTED 2u
#define STRIPE_FLAGS (STRIPE_ARRIVED | STRIPE_COUNTED)
/* A flow that has not been acknowledged for so long is stalled, and its sender may be probing, ns; see is_stuck() too. */
#define STALL_NS (2 * 1000 * 1000)
/* The initial skew of a flow, ns. */
#define SKEW_NS_FIRST (2 * 1000 * 1000)
/* The number of losses reported lately is halved each time so many stripes have left. */
#define LOSSES_WINDOW 512
/* A flow stays away for so long from a lane that seems silent to it alone, us: as long as a first quarantine. */
#define AVOID_US (160 * 1000)
/* After so much time in which other lanes were used, what is remembered of a flow may be of other sequence numbers, us. */
#define OUTDATED_US (1000 * 1000)

static __always_inline __u32 now_us(__u64 ns)
{
	return ns / 1000;
}

/* No ACK came for twice the usual time: nothing is left in flight that could cause one. */
static __always_inline int is_stuck(const struct lb_flow *flow, __u64 now)
{
	__u64 silence = now - flow->acked_ns;

	return silence > STALL_NS && silence > 2000ull * flow->lag_us;
}

/* The stripe began to leave more than half of STALL_NS ago. */
static __always_inline int is_aged(const struct lb_stripe *stripe, __u64 now)
{
	return now_us(now) - (stripe->sent_us & ~STRIPE_FLAGS) > STALL_NS / 2000;
}

/* What leaves now is a tail loss probe (RFC 8985): for a while no ACK came and nothing left. */
static __always_inline int is_probe(const struct lb_flow *flow, const struct lb_stripe *newest, __u64 now)
{
	/* A stripe grows for half of STALL_NS at most, so its last buffer is old, too. */
	return now_us(now) - (newest->sent_us & ~STRIPE_FLAGS) > STALL_NS / 1000 && is_stuck(flow, now);
}

static __always_inline void avoid_lane(struct lb_flow *flow, __u32 lane, __u64 now)
{
	flow->avoided_lane = lane;
	flow->avoided_us = now_us(now) | 1;
}

/* The slot of a lane, as a bit; 0 for one of another plan. */
static __always_inline __u32 slot_bit(const struct lb_plan *plan, __u32 lane)
{
	if (lane >> 4 != plan->generation)
		return 0;
	return 1u << (plan->lanes[lane & (LB_LANES_MAX - 1)].slot & (LB_MEMBERS_MAX - 1));
}

/*
 * The slots that a flow must avoid, a bit each: that of its hole if it is stuck, and, unless some are `failed` anyway, that of
 * the lane that seems silent to it alone.
 */
static __always_inline __u32 avoided_slots(struct lb_flow *flow, const struct lb_plan *plan, __u32 failed)
{
	__u32 slots = 0;
	__u64 now;

	if (!flow->hole_since_ns && !flow->avoided_us)
		return 0;
	now = bpf_ktime_get_ns();
	if (flow->hole_since_ns && is_stuck(flow, now))
		slots |= slot_bit(plan, flow->hole_lane);
	if (now_us(now) - flow->avoided_us >= AVOID_US)
		flow->avoided_us = 0;
	if (flow->avoided_us && !failed)
		slots |= slot_bit(plan, flow->avoided_lane);
	return slots;
}

/* A flow that is striped for the first time; NULL if it is not worth it. */
static __always_inline struct lb_flow *new_flow(struct __sk_buff *skb, const struct tcp_view *view)
{
	__u32 zero = 0;
	struct lb_flow *empty = bpf_map_lookup_elem(&lb_empty_flow, &zero);

	if (!empty || skb->len < STRIPE_BYTES_MIN)
		return NULL;
	empty->skew_ns = SKEW_NS_FIRST;
	empty->next = view->seq;
	empty->reported_to = view->seq;
	empty->resent_to = view->seq;
	bpf_map_update_elem(&lb_flows, &view->flow, empty, BPF_NOEXIST);
	return bpf_map_lookup_elem(&lb_flows, &view->flow);
}

static __always_inline void add_stripe(struct lb_flow *flow, __u32 start, __u32 end, __u32 lane)
{
	struct lb_stripe *stripe = &flow->stripes[flow->head & (LB_STRIPES_MAX - 1)];

	stripe->start = start;
	stripe->end = end;
	stripe->lane = lane;
	stripe->sent_us = now_us(bpf_ktime_get_ns()) & ~STRIPE_FLAGS;
	flow->head++;
	if (!(flow->head & (LOSSES_WINDOW - 1)))
		flow->losses >>= 1;
}

/* Whether what starts at `seq` may become part of a stripe. One that grows for long would look slow, and its sender's silence like a pause. */
static __always_inline int can_grow(const struct lb_flow *flow, const struct lb_stripe *newest, __u32 seq)
{
	return newest->end == seq && flow->tail != flow->head && !is_aged(newest, bpf_ktime_get_ns());
}

/* Bytes that have left and are not known to have arrived; of no more stripes than are remembered. */
static __always_inline __u32 in_flight(const struct lb_flow *flow)
{
	__u32 oldest = flow->head - flow->tail > LB_STRIPES_MAX ? flow->head : flow->tail;

	return flow->next - flow->stripes[oldest & (LB_STRIPES_MAX - 1)].start;
}

/*
 * The lane of the newest stripe, which may grow to `bytes`, while it is too short; else `lane`. So it is while the remembered stripes would
 * not cover all that is in flight if they were like it: that grows with the flow's round trip. And while it is shorter than
 * the bond's stripes, because something cut the buffers (a bridge cuts those of tunnels), unless too few for the lanes are in flight.
 */
static __always_inline __u32 growing_lane(const struct lb_config *bond, const struct lb_flow *flow, const struct lb_plan *plan,
					  __u32 seq, __u32 payload, __u32 lane)
{
	const struct lb_stripe *newest = &flow->stripes[(flow->head - 1) & (LB_STRIPES_MAX - 1)];
	__u32 bytes = seq + payload - newest->start, flight = in_flight(flow);

	if (newest->lane >> 4 != plan->generation || bytes > STRIPE_BYTES_MAX)
		return lane;
	if ((newest->end - newest->start) * STRIPES_IN_FLIGHT >= flight &&
	    (bytes > bond->stripe_bytes || bytes * plan->n_lanes * STRIPES_A_LANE > flight))
		return lane;
	/* Last, as it reads the clock. */
	if (!can_grow(flow, newest, seq))
		return lane;
	return because(newest->lane & (LB_LANES_MAX - 1), LB_WHY_GROWS, 0);
}

/*
 * The lanes are others than those of its newest stripe, which left long ago: the flow may have sent any number of bytes since,
 * over a plan with one lane, of which nothing is remembered.
 */
static __always_inline int is_outdated(const struct lb_flow *flow, __u32 generation)
{
	const struct lb_stripe *newest = &flow->stripes[(flow->head - 1) & (LB_STRIPES_MAX - 1)];

	return newest->lane >> 4 != generation &&
	       now_us(bpf_ktime_get_ns()) - (newest->sent_us & ~STRIPE_FLAGS) > OUTDATED_US;
}

/* The number of the stripe that has a byte, LB_STRIPES_MAX where none does. */
GLOBAL __u32 stripe_of(const struct lb_flow *flow, __u32 seq)
{
	if (!flow)
		return LB_STRIPES_MAX;
#pragma clang loop unroll(disable)
	for (__u32 i = 0; i < LB_STRIPES_MAX; i++) {
		const struct lb_stripe *stripe = &flow->stripes[i];

		if (stripe->start != stripe->end && !before(seq, stripe->start) && before(seq, stripe->end))
			return i;
	}
	return LB_STRIPES_MAX;
}

/* What left at `seq` did so too long ago to be remembered. */
static __always_inline int is_forgotten(const struct lb_flow *flow, __u32 seq)
{
	__u32 oldest = flow->head < LB_STRIPES_MAX ? 0 : flow->head;

	return before(seq, flow->stripes[oldest & (LB_STRIPES_MAX - 1)].start);
}

/* Of a stripe something is sent again. */
static __always_inline void note_loss(struct lb_progress *progress, const struct lb_stripe *stripe, __u32 bytes)
{
	if (stripe->lane >> 4 == progress->generation && !(stripe->sent_us & STRIPE_ARRIVED))
		__sync_fetch_and_add(&progress->deliveries[stripe->lane & (LB_LANES_MAX - 1)].lost_bytes, bytes);
}

/* A buffer leaves by a lane. `flow` is NULL for a flow that is not known yet. */
static __always_inline void remember_stripe(struct __sk_buff *skb, const struct tcp_view *view,
					    struct lb_flow *flow, struct lb_progress *progress,
					    __u32 number, __u32 lane)
{
	__u32 end = view->seq + view->payload;
	struct lb_delivery *delivery;
	struct lb_stripe *newest;

	if (flow && is_outdated(flow, lane >> 4)) {
		bpf_map_delete_elem(&lb_flows, &view->flow);
		flow = NULL;
	}
	if (!flow) {
		flow = new_flow(skb, view);
		if (!flow)
			return;
	}
	delivery = &progress->deliveries[lane & (LB_LANES_MAX - 1)];
	delivery->sent_bytes += view->payload;
	flow->plan = number;
	newest = &flow->stripes[(flow->head - 1) & (LB_STRIPES_MAX - 1)];
	if (flow->hole_since_ns && is_probe(flow, newest, bpf_ktime_get_ns()))
		flow->probed = 1;
	if (before(view->seq, flow->next)) {
		if (!is_forgotten(flow, view->seq)) {
			__u32 at = stripe_of(flow, view->seq);

			/* It leaves for the first time: this host forwards it, and it was overtaken on its way here. */
			if (at == LB_STRIPES_MAX) {
				__sync_fetch_and_add(&delivery->late_bytes, view->payload);
				return;
			}
			note_loss(progress, &flow->stripes[at & (LB_STRIPES_MAX - 1)], view->payload);
		}
		/* A retransmission proves nothing: what arrives may be the first copy. */
		if (!before(flow->hole, view->seq) && before(flow->hole, end))
			flow->resent = 1;
		if (before(flow->resent_to, end))
			flow->resent_to = end;
		return;
	}
	if (newest->lane == lane && end - newest->start <= STRIPE_BYTES_MAX && can_grow(flow, newest, view->seq))
		newest->end = end;
	else
		add_stripe(flow, view->seq, end, lane);
	flow->next = end;
}

#endif
