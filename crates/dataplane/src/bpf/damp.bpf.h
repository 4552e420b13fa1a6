/* SPDX-License-Identifier: (GPL-2.0-only OR BSD-2-Clause) */
/*
 * Duplicate-ACK damping. Stripes of one flow arrive a little out of order; the receiver reports each gap with
 * SACK (RFC 2018), and the sender's RACK (RFC 8985), whose patience is a quarter of the smallest RTT, takes the
 * gap for a loss. Here the sender's own ingress program edits those reports, so that TCP hears of losses only:
 *
 *  - a lane keeps its frames in order, so when data sent *later on the same lane* has arrived, what misses in
 *    front of it is lost for certain;
 *  - a hole older than twice the skew seen so far counts as lost too (but see lb_config.damp_ns_min and _max);
 *  - SACK blocks above the lowest hole that is neither are taken out of the ACK. If none is left and the ACK says
 *    nothing else, it is dropped.
 *
 * Always passed on: SYN, FIN, RST, data, changed windows, ECN echoes, DSACK blocks (RFC 2883), an eighth of a
 * flow's ACKs, all ACKs of flows without SACK and of flows that were not striped. TCP is told all, whatever the holes are,
 * by an ACK that may be the last one for long (is_last_word): it would wait for its timer, for 200 ms.
 *
 * A lane whose holes keep filling late is a busy one (another host's traffic queues there, or its weight is wrong):
 * its bytes are made dearer (lb_progress.drag), and cheaper again as time goes by without such holes.
 *
 * A lane that has swallowed several stripes in a row, all of them old, while other lanes of the flow delivered, is dead
 * for all we know: it is shunned for a moment, and for twice as long each time that it is found so again, until the
 * daemon's probes have found out. A machine that had a hiccup looks the same; then what the lane still had arrives
 * after TCP sent it again, the receiver reports duplicates, and the lane is used as before. And a flow whose ACKs have ceased with a hole open (TCP's tail loss probe and time-outs come now) stays off the hole's lane.
 * Writes lb_flows, and the drag and the shunned lanes in lb_progresses. Called by lb_egress (remember_stripe) and
 * lb_ingress (damp).
 */
#ifndef LB_DAMP_BPF_H
#define LB_DAMP_BPF_H

/* A flow whose buffers are shorter than this is not worth remembering: it finishes before it reorders. */
#define STRIPE_BYTES_MIN 1000
/* Buffers that follow each other on one lane are one stripe up to this length. */
#define STRIPE_BYTES_MAX 65536
/* In lb_stripe.sent_us: the end of the stripe has arrived. */
#define STRIPE_ARRIVED 1u
/* No stripe is this old; less than half of what 32 bits of microseconds hold. */
#define AGE_US_MAX (1u << 30)
/* A flow that has not been acknowledged for so long is stalled, and its sender is probing, ns; see is_stuck() too. */
#define STALL_NS (2 * 1000 * 1000)
/* In flight: too few stripes for most of them to be followed by another one on their lane. */
#define SMALL_FLIGHT(n_lanes) ((n_lanes) + 2)
/* A flow with so many holes told lately has real losses. */
#define LOSSES_MIN 5
/* So many of them are taken back for each duplicate that the receiver reports. */
#define LOSSES_UNTOLD 2
/* The number of holes told is halved each time so many stripes have left. */
#define LOSSES_WINDOW 512
/* A TCP header with time stamps alone; a longer one may carry SACK. */
#define TCP_HEADER_PLAIN 32
/* A flow that has not been reordered yet is given this much skew, ns. */
#define SKEW_NS_FIRST (2 * 1000 * 1000)
/* Counters of a flow's ACKs are halved when so many were seen, so that they speak of the present. */
#define SHARE_WINDOW 1024
/* A hole that took longer to fill was not the stripes' order but its lane's queue, ns. */
#define LATE_NS (6 * 1000 * 1000)
/* Such a hole doubles its lane's drag and adds this; the greatest drag is 1024 times the cost. */
#define DRAG_STEP 16
#define DRAG_MAX (1024 * 256)
/* But not twice within so much time: what made one flow's data late did so to all flows at once, us. */
#define DRAG_PAUSE_US (LATE_NS / 1000)
/* A lane is dead for all we know after so many old stripes without a word. */
#define SILENT_STRIPES 3
/* For how long it is shunned first, at most, and after how much time in use that begins anew, us. At first a little
 * longer than the daemon's probes need: a dead lane that is tried before costs a flow its timer more often than not. */
#define SHUN_US_FIRST (160 * 1000)
#define SHUN_US_MAX (5 * 1000 * 1000)
#define SHUN_US_FORGOTTEN (1000 * 1000)
/* A duplicate that is reported so long after its lane was shunned may have other reasons, us. */
#define PARDON_US_MAX (100 * 1000)
/* In virtual time, how far a shunned lane is put ahead of all others: farther than they will come while it is shunned.
 * Where only shunned lanes are left, others are taken along; ease_all() takes the lead off before it could add up. */
#define SHUN_LEAD (1ull << 58)
/* Each time so much has passed, every drag loses 1/32, ns. */
#define EASE_NS (20 * 1000 * 1000)

static __always_inline __u32 now_us(__u64 ns)
{
	return ns / 1000;
}

/* No ACK came for twice the time that one takes: there is nothing left in flight that could bring one. */
static __always_inline int is_stuck(const struct lb_flow *flow, __u64 now)
{
	__u64 silence = now - flow->acked_ns;

	return silence > STALL_NS && silence > 2000ull * flow->lag_us;
}

/* A stripe that began to leave half a stall ago. */
static __always_inline int is_aged(const struct lb_stripe *stripe, __u64 now)
{
	return now_us(now) - (stripe->sent_us & ~STRIPE_ARRIVED) > STALL_NS / 2000;
}

/* What leaves now is TCP's probe (RFC 8985, tail loss probe): neither did an ACK come for a while nor did anything leave. */
static __always_inline int is_probe(const struct lb_flow *flow, const struct lb_stripe *newest, __u64 now)
{
	/* A stripe grows for half of that at most while there is a hole, so its last buffer is as old. */
	return now_us(now) - (newest->sent_us & ~STRIPE_ARRIVED) > STALL_NS / 1000 && is_stuck(flow, now);
}

/* Egress: the slot that a flow without ACKs must stay off, as a bit; 0 for none. */
static __always_inline __u32 stuck_slot(const struct lb_flow *flow, const struct lb_plan *plan)
{
	if (!flow->hole_since_ns || flow->hole_lane >> 4 != plan->generation ||
	    !is_stuck(flow, bpf_ktime_get_ns()))
		return 0;
	return 1u << (plan->lanes[flow->hole_lane & (LB_LANES_MAX - 1)].slot & (LB_MEMBERS_MAX - 1));
}

/* Egress: a buffer of a flow, or of one that is not known yet, leaves on a lane. */
static __always_inline void remember_stripe(struct __sk_buff *skb, const struct tcp_view *view,
					    struct lb_flow *flow, __u32 number, __u32 lane)
{
	__u32 end = view->seq + view->payload;
	struct lb_stripe *stripe;
	int is_pause = 0;

	if (!flow) {
		__u32 zero = 0;
		struct lb_flow *empty = bpf_map_lookup_elem(&lb_empty_flow, &zero);

		if (!empty || skb->len < STRIPE_BYTES_MIN)
			return;
		empty->skew_ns = SKEW_NS_FIRST;
		empty->next = view->seq;
		empty->told_to = view->seq;
		bpf_map_update_elem(&lb_flows, &view->flow, empty, BPF_NOEXIST);
		flow = bpf_map_lookup_elem(&lb_flows, &view->flow);
		if (!flow)
			return;
	}
	flow->plan = number;
	stripe = &flow->stripes[(flow->head - 1) & (LB_STRIPES_MAX - 1)];
	if (flow->hole_since_ns) {
		__u64 now = bpf_ktime_get_ns();

		if (is_probe(flow, stripe, now))
			flow->probed = 1;
		is_pause = is_aged(stripe, now);
	}
	/* What is sent again proves nothing: its arrival could be that of the first copy. */
	if (before(view->seq, flow->next)) {
		if (!before(flow->hole, view->seq) && before(flow->hole, end))
			flow->resent = 1;
		return;
	}
	/* While a hole is open a stripe does not grow for long, or what goes on over one lane would look like a pause. */
	if (!is_pause && flow->head && stripe->lane == lane && stripe->end == view->seq &&
	    end - stripe->start <= STRIPE_BYTES_MAX) {
		stripe->end = end;
	} else {
		stripe = &flow->stripes[flow->head & (LB_STRIPES_MAX - 1)];
		stripe->start = view->seq;
		stripe->end = end;
		stripe->lane = lane;
		stripe->sent_us = now_us(bpf_ktime_get_ns()) & ~STRIPE_ARRIVED;
		flow->head++;
		if (!(flow->head & (LOSSES_WINDOW - 1)))
			flow->losses >>= 1;
	}
	flow->next = end;
}

/* What TCP may be told, found by looking at the stripes in flight, newest first. */
struct judge_walk {
	struct lb_flow *flow;
	const struct sack_view *sack;
	__u32 ack;
	__u32 tried_us;   /* no stripe sent before this speaks of lanes that were taken back */
	__u32 old_us;     /* holes in stripes sent before this are old */
	__u32 generation;
	__u32 lanes_seen; /* lanes on which data sent later than this point has arrived */
	__u32 limit;      /* the lowest hole that may be the lanes' doing */
	__u32 sent_us;    /* when its stripe left */
	__u32 hole_lane;  /* the lane of the lowest hole, if it is covered */
	__u32 n;          /* stripes in flight */
	__u32 missing;    /* those of them of which not all has arrived */
	__u32 plan;       /* the generation of the plan in force; of its lanes: */
	__u32 heard;      /* those on which something has arrived */
	__u64 silent;     /* old stripes without a word, four bits each */
	__u8 is_limited;
	__u8 is_covered;  /* the stripe of the lowest hole is still remembered */
	__u8 is_stuck;    /* no ACK came for a while */
	__u8 by_age;      /* some hole counts as a loss for its age alone */
	__u8 is_last;     /* TCP is told everything, whatever the holes are */
};

/* A stripe of a lane is old, and nothing of it has arrived. One from before the lane was tried anew says nothing new. */
static __always_inline void count_silent(struct judge_walk *walk, const struct lb_stripe *stripe)
{
	__u32 shift = 4 * (stripe->lane & (LB_LANES_MAX - 1));

	if (!before(stripe->sent_us, walk->tried_us) && (walk->silent >> shift & 0xf) < SILENT_STRIPES)
		walk->silent += 1ull << shift;
}

static long step_judge(__u32 i, struct judge_walk *walk)
{
	struct lb_stripe *stripe = &walk->flow->stripes[(walk->flow->head - 1 - i) & (LB_STRIPES_MAX - 1)];
	__u32 bit = 1u << (stripe->lane & (LB_LANES_MAX - 1));
	int starts_arrived, is_proven;

	/* Unused, or acknowledged with all that left before it. */
	if (stripe->start == stripe->end || !before(walk->ack, stripe->end))
		return 1;
	walk->n++;
	if (!before(walk->ack, stripe->start)) {
		walk->is_covered = 1;
		walk->hole_lane = stripe->lane;
	}
	/* Lanes of another plan are other lanes. */
	if (stripe->lane >> 4 != walk->generation) {
		walk->generation = stripe->lane >> 4;
		walk->lanes_seen = 0;
	}
	if (is_sacked(walk->sack, stripe->end - 1)) {
		/* A lane keeps its order: what misses in front of this has been lost. */
		stripe->sent_us |= STRIPE_ARRIVED;
		walk->lanes_seen |= bit;
		walk->heard |= bit;
		return 0;
	}
	if (stripe->sent_us & STRIPE_ARRIVED) {
		walk->lanes_seen |= bit;
		/*
		 * This was reported while it was hidden, and is not now: TCP would take it for lost. A flow that
		 * is stuck is told all the same: there may be no further ACK, and to send some stripes again for nothing
		 * costs less than TCP's timer.
		 */
		if (!walk->is_stuck && before(walk->flow->told_to, stripe->end)) {
			walk->limit = stripe->start;
			walk->is_limited = 1;
		}
		return 0;
	}
	walk->missing++;
	starts_arrived = is_sacked(walk->sack, stripe->start);
	/* The lanes of a plan that is over: one of them is dead for all we know, and TCP would wait for its timers. */
	is_proven = walk->lanes_seen & bit || stripe->lane >> 4 != walk->plan;
	if (!is_proven && before(stripe->sent_us, walk->old_us)) {
		walk->by_age = 1;
		is_proven = 1;
		if (!starts_arrived)
			count_silent(walk, stripe);
	}
	if (!is_proven) {
		walk->limit = starts_arrived ? stripe->end - 1 : stripe->start;
		walk->sent_us = stripe->sent_us;
		walk->is_limited = 1;
	}
	if (starts_arrived) {
		walk->lanes_seen |= bit;
		walk->heard |= bit;
	}
	return 0;
}

/* The age up to which a hole is the lanes' doing, ns. */
static __always_inline __u64 patience(const struct lb_config *bond, const struct lb_flow *flow, int is_stalled)
{
	__u64 ns = 2 * flow->skew_ns, least = is_stalled ? bond->damp_ns_min / 4 : bond->damp_ns_min;

	if (ns < least)
		return least;
	return ns > bond->damp_ns_max ? bond->damp_ns_max : ns;
}

/* A lane was late: it gets less. */
static __always_inline void drag_lane(struct lb_progress *progress, __u32 lane, __u64 now)
{
	__u32 drag;

	if (progress->generation != lane >> 4)
		return;
	lane &= LB_LANES_MAX - 1;
	/* What a shunned lane still had to bring says nothing about what it will do. */
	if (progress->shun_us[lane] || now_us(now) - progress->dragged_us[lane] < DRAG_PAUSE_US)
		return;
	progress->dragged_us[lane] = now_us(now);
	drag = progress->drag[lane];
	drag += drag + DRAG_STEP;
	progress->drag[lane] = drag < DRAG_MAX ? drag : DRAG_MAX;
}

/* The lane of the lowest hole has swallowed everything for a while, and other lanes have not. */
static __always_inline void shun_lane(struct lb_progress *progress, const struct judge_walk *walk, __u64 now)
{
	__u32 lane = walk->hole_lane & (LB_LANES_MAX - 1), us;

	if (walk->hole_lane >> 4 != progress->generation || (walk->silent >> 4 * lane & 0xf) < SILENT_STRIPES ||
	    !walk->heard || walk->heard & 1u << lane || progress->shun_us[lane])
		return;
	us = 2 * progress->last_shun_us[lane];
	if (!us || now_us(now) - progress->shunned_us[lane] > SHUN_US_FORGOTTEN)
		us = SHUN_US_FIRST;
	if (us > SHUN_US_MAX)
		us = SHUN_US_MAX;
	progress->shunned_us[lane] = now_us(now);
	progress->last_shun_us[lane] = us;
	progress->shun_us[lane] = us;
	__sync_fetch_and_add(&progress->time[lane], SHUN_LEAD);
}

/* A shunned lane is used again, as if it had never been off. */
static __always_inline void take_back(struct lb_progress *progress, __u32 lane, __u64 latest, __u32 us)
{
	progress->time[lane] = latest;
	progress->shunned_us[lane] = us;
	progress->tried_us = us;
	progress->shun_us[lane] = 0;
}

/*
 * Time passes: lanes that were late get more again, and shunned ones are tried anew. Not static, so that the verifier
 * walks its loop once, and not from each caller's state.
 */
__noinline int ease_all(__u32 number, __u64 now)
{
	const struct lb_plan *plan = bpf_map_lookup_elem(&lb_plans, &number);
	struct lb_progress *progress = bpf_map_lookup_elem(&lb_progresses, &number);
	__u32 us = now_us(now);
	__u64 latest, base;

	if (!plan || !progress)
		return 0;
	progress->eased_ns = now;
	latest = progress->time[latest_lane(plan, progress)];
	base = latest < SHUN_LEAD ? 0 : latest;
	latest -= base;
#pragma clang loop unroll(disable)
	for (__u32 i = 0; i < LB_LANES_MAX; i++) {
		progress->drag[i] -= (progress->drag[i] + 31) / 32;
		if (base && i < plan->n_lanes)
			__sync_fetch_and_add(&progress->time[i], -base);
		if (progress->shun_us[i] && us - progress->shunned_us[i] >= progress->shun_us[i])
			take_back(progress, i, latest, us);
	}
	return 0;
}

static __always_inline void ease_lanes(const struct lb_progress *progress, __u32 number, __u64 now)
{
	if (now - progress->eased_ns >= EASE_NS)
		ease_all(number, now);
}

/*
 * A byte came twice: TCP sent it again, and the lane that was to have lost it had not. Not static, and a loop of
 * its own, since the caller's stack has no room for a walk.
 */
__noinline int pardon_lane(const struct lb_flow *flow, __u32 seq)
{
	__u32 us = now_us(bpf_ktime_get_ns()), number = flow ? flow->plan : 0, lane;
	const struct lb_plan *plan = bpf_map_lookup_elem(&lb_plans, &number);
	struct lb_progress *progress = bpf_map_lookup_elem(&lb_progresses, &number);

	if (!plan || !progress || !flow)
		return 0;
	for (__u32 i = 0; i < LB_STRIPES_MAX; i++) {
		const struct lb_stripe *stripe = &flow->stripes[i];

		if (stripe->start == stripe->end || before(seq, stripe->start) || !before(seq, stripe->end))
			continue;
		lane = stripe->lane & (LB_LANES_MAX - 1);
		if (stripe->lane >> 4 != progress->generation || !progress->shun_us[lane] ||
		    us - progress->shunned_us[lane] > PARDON_US_MAX)
			return 0;
		progress->last_shun_us[lane] = 0;
		take_back(progress, lane, progress->time[latest_lane(plan, progress)], us);
		return 1;
	}
	return 0;
}

/*
 * The ACK moved: what does the end of the hole teach about the lanes' skew? Nothing where TCP sent it again: that would make
 * the next loss wait for as long as this one's repair took.
 */
static __always_inline void end_hole(const struct lb_config *bond, struct lb_flow *flow,
				     struct lb_progress *progress, __u64 now)
{
	__u64 age = now - flow->hole_since_ns;

	if (age > LATE_NS && flow->hole_lane != LB_NO_LANE)
		drag_lane(progress, flow->hole_lane, now);
	if (!flow->told && !flow->resent && age <= bond->damp_ns_max) {
		if (age > flow->skew_ns)
			flow->skew_ns = age;
		else
			flow->skew_ns -= (flow->skew_ns - age) >> 7;
	}
	flow->hole_since_ns = 0;
}

/* The blocks that tell only of losses, a bit each. */
static __always_inline __u32 honest_blocks(const struct sack_view *sack, const struct judge_walk *walk)
{
	__u32 keep = 0;

#pragma unroll
	for (__u32 i = 0; i < SACK_BLOCKS_MAX; i++)
		if (i < sack->n && (!walk->is_limited || before(sack->left[i], walk->limit)))
			keep |= 1u << i;
	return keep;
}

static __always_inline __u32 told_to(const struct lb_flow *flow, const struct sack_view *sack, __u32 keep)
{
	__u32 to = flow->told_to;

#pragma unroll
	for (__u32 i = 0; i < SACK_BLOCKS_MAX; i++)
		if (keep & 1u << i && before(to, sack->right[i]))
			to = sack->right[i];
	return to;
}

/*
 * Whether this may be the last ACK for long that speaks of the holes: it answers a probe, or all but one stripe has arrived, and
 * that one is later than lanes were lately; or losses are to be expected and too little is in flight to prove them.
 */
static __always_inline int is_last_word(const struct lb_flow *flow, const struct judge_walk *walk, __u32 n_lanes,
					__u64 now)
{
	if (flow->probed || (walk->is_covered && walk->missing <= 1 && now - flow->hole_since_ns > flow->skew_ns))
		return 1;
	return flow->losses >= LOSSES_MIN && walk->n < SMALL_FLIGHT(n_lanes);
}

/* Looks at the stripes in flight; returns the blocks that tell only of losses. */
static __always_inline __u32 judge_blocks(const struct lb_config *bond, struct lb_flow *flow,
					  const struct tcp_view *view, const struct sack_view *sack, __u64 now,
					  int is_new, __u32 n_lanes, struct judge_walk *walk)
{
	__u64 ns = patience(bond, flow, now - flow->acked_ns > STALL_NS);

	walk->is_stuck = is_stuck(flow, now);
	walk->flow = flow;
	walk->sack = sack;
	walk->ack = view->ack;
	/* Without a first hole's lag no stripe is old yet. */
	walk->old_us = flow->lag_us ? now_us(now) - now_us(ns) - flow->lag_us : now_us(now) - AGE_US_MAX;
	bpf_loop(LB_STRIPES_MAX, step_judge, walk, 0);
	if (!walk->is_covered && now - flow->hole_since_ns <= ns) {
		/* More is in flight than is remembered: only age can tell. */
		walk->limit = view->ack;
		walk->is_limited = 1;
	} else if (is_new && walk->is_limited && walk->limit == view->ack) {
		flow->lag_us = now_us(now) - walk->sent_us + 1;
	}
	walk->is_last = is_last_word(flow, walk, n_lanes, now);
	return honest_blocks(sack, walk);
}

/* Decides about one segment that acknowledges a striped flow. Returns 0 where damping has no opinion. */
static __always_inline enum lb_reason damp(struct __sk_buff *skb, const struct lb_config *bond)
{
	const struct lb_plan *plan;
	struct lb_progress *progress;
	struct judge_walk walk = {};
	struct lb_flow_key key;
	struct sack_view sack;
	struct tcp_view view;
	struct lb_flow *flow;
	enum lb_reason reason;
	__u32 keep, all, number;
	int is_new;
	__u64 now;

	if (!view_tcp(skb, &view) || (view.flags & (TCP_SYN | TCP_FIN | TCP_RST | TCP_ACK)) != TCP_ACK)
		return 0;
	/* Bulk data coming in acknowledges too, but with no gap to report it is of no interest here. */
	if (view.payload && view.header <= TCP_HEADER_PLAIN)
		return 0;
	__builtin_memcpy(key.source, view.flow.destination, sizeof(key.source));
	__builtin_memcpy(key.destination, view.flow.source, sizeof(key.destination));
	key.source_port = view.flow.destination_port;
	key.destination_port = view.flow.source_port;
	flow = bpf_map_lookup_elem(&lb_flows, &key);
	if (!flow)
		return 0;
	/* That of its class, if it has one. */
	number = flow->plan;
	plan = bpf_map_lookup_elem(&lb_plans, &number);
	progress = bpf_map_lookup_elem(&lb_progresses, &number);
	if (!plan || !progress || plan->n_lanes < 2 || plan->policy != LB_SPREAD)
		return 0;
	now = bpf_ktime_get_ns();
	ease_lanes(progress, number, now);
	if (flow->hole_since_ns && before(flow->hole, view.ack))
		end_hole(bond, flow, progress, now);
	if (!read_sack(skb, &view, &sack)) {
		flow->acked_ns = now;
		flow->probed = 0;
		flow->window = view.window;
		return 0;
	}
	/* Data beyond the stripes: another rule, another plan, and that has one lane. */
	if (before(flow->next, sack.right[0]))
		return 0;
	is_new = !flow->hole_since_ns;
	if (is_new) {
		flow->hole_since_ns = now;
		flow->hole = view.ack;
		flow->told = 0;
		flow->resent = 0;
	}
	if (++flow->seen >= SHARE_WINDOW) {
		flow->seen >>= 1;
		flow->damped >>= 1;
	}
	all = (1u << sack.n) - 1;
	walk.plan = plan->generation;
	walk.tried_us = progress->tried_us;
	if (now_us(now) - walk.tried_us > SHUN_US_FORGOTTEN)
		walk.tried_us = now_us(now) - AGE_US_MAX;
	keep = judge_blocks(bond, flow, &view, &sack, now, is_new, plan->n_lanes, &walk);
	if (is_new)
		flow->hole_lane = walk.is_covered ? walk.hole_lane : LB_NO_LANE;
	if (walk.is_covered && walk.by_age)
		shun_lane(progress, &walk, now);
	flow->acked_ns = now;
	flow->probed = 0;
	if (is_dsack(&view, &sack)) {
		/* What was told as a loss was none: such mistakes must not feed on themselves. */
		flow->losses -= flow->losses < LOSSES_UNTOLD ? flow->losses : LOSSES_UNTOLD;
		pardon_lane(flow, sack.left[0]);
		if (flow->guessed) {
			/* TCP repaired what was not broken: the lanes differ by more than was thought. */
			flow->skew_ns = 2 * flow->skew_ns < bond->damp_ns_max ? 2 * flow->skew_ns : bond->damp_ns_max;
			flow->guessed = 0;
		}
		keep |= 1;
		reason = LB_RX_ACK_DSACK;
	} else if (keep) {
		reason = walk.by_age ? LB_RX_ACK_OLD : LB_RX_ACK_LOST;
		if (!walk.by_age)
			flow->hole_lane = LB_NO_LANE;
		flow->guessed |= walk.by_age;
		flow->losses += !flow->told;
		flow->told = 1;
	} else if (walk.is_last) {
		/* Perhaps no loss, so it counts as none, and teaches nothing. */
		reason = LB_RX_ACK_LAST;
	} else if (is_new) {
		reason = LB_RX_ACK_MASKED;
	} else if (view.payload || view.window != flow->window || view.flags & (TCP_ECE | TCP_CWR)) {
		reason = LB_RX_ACK_WINDOW;
	} else if (8 * (flow->damped + 1) > 7 * flow->seen + 64) {
		reason = LB_RX_ACK_SHARE;
	} else {
		flow->damped++;
		return LB_RX_ACK_DAMPED;
	}
	if (walk.is_last)
		keep = all;
	if (keep)
		flow->told_to = told_to(flow, &sack, keep);
	flow->window = view.window;
	if (keep != all)
		keep_blocks(skb, &view, &sack, keep);
	return reason;
}

#endif
