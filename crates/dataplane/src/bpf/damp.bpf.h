/* SPDX-License-Identifier: (GPL-2.0-only OR BSD-2-Clause) */
/*
 * Duplicate-ACK damping. Stripes of one flow arrive a little out of order. The receiver reports each gap with
 * SACK (RFC 2018), and the sender's RACK (RFC 8985), which waits for a quarter of the smallest RTT, takes the
 * gap for a loss. Here the sender's own ingress program edits those reports, so that TCP hears of losses only:
 *
 *  - a lane keeps its frames in order, so when data sent *later on the same lane* has arrived for a moment, a hole before
 *    it is a loss;
 *  - a hole older than twice the skew seen so far counts as a loss too (but see lb_config.damp_ns_min and _max);
 *  - SACK blocks above the lowest hole that is neither are taken out of the ACK. If none is left and the ACK says
 *    nothing else, it is dropped.
 *
 * A flow whose round trip is long against the skew needs none of this (is_tolerated()): RACK's quarter is longer, and TCP
 * that hears of arrivals late takes the lanes' difference for a queue. All its ACKs pass as they are.
 * For most of them only those stripes are looked at that they newly report (is_plain_progress()).
 *
 * Always passed on: SYN, FIN, RST, data, changed windows, ECN echoes, DSACK blocks (RFC 2883), an eighth of a
 * flow's ACKs, all ACKs of flows without SACK and of flows that were not striped. An ACK after which no other one is
 * expected soon passes with all its blocks (must_pass_ack()): without it TCP would wait for its timer, for 200 ms.
 *
 * What holes say about their lanes leads to penalties and quarantine (penalty.bpf.h). A flow that gets no more ACKs while
 * it has a hole avoids the hole's lane (avoided_slots()): what TCP sends next is a tail loss probe or follows a time-out.
 *
 * Called by lb_ingress. Reads lb_plans; writes lb_flows, and lb_progresses through penalty.bpf.h.
 */
#ifndef LB_DAMP_BPF_H
#define LB_DAMP_BPF_H

/* No stripe is this old; less than half of what 32 bits of microseconds hold. */
#define AGE_US_MAX (1u << 30)
/* In flight: too few stripes for most of them to be followed by another one on their lane. */
#define SMALL_FLIGHT(n_lanes) ((n_lanes) + 2)
/* A flow with so many losses reported lately has real ones. */
#define LOSSES_MIN 5
/* So many of them are taken back for each duplicate that the receiver reports. */
#define LOSSES_RETRACTED 2
/* A TCP header with time stamps alone; a longer one may carry SACK. */
#define TCP_HEADER_PLAIN 32
/* RACK waits for a quarter of the flow's least round trip, and for as much more each time that it was wrong (tcp_rack_reo_wnd()). */
#define RACK_SHARE 4
/* A duplicate takes such a part off the least round trip of a flow whose TCP waits by itself: that learns of it as well, so some do
 * no harm, and many say that the least was taken behind a full queue. */
#define LEAST_RETRACTED 32
/* All stripes of a flow whose TCP waits by itself are looked at once in so much time, us: there are many where a round trip is long. */
#define TOLERATED_LOOK_US 2000
/* In lb_flow.hole_lane: nobody has looked yet. */
#define UNSEEN_LANE (LB_NO_LANE - 1)
/* Counters of a flow's ACKs are halved when so many were seen, so that they describe the present. */
#define SHARE_WINDOW 1024

/* What may be reported to TCP, found by a walk over the stripes in flight. */
struct judgement {
	__u32 ack;
	__u32 reinstated_us; /* a stripe sent before this says nothing about reinstated lanes */
	__u32 old_us;     /* holes in stripes sent before this are old */
	__u32 hidden_us;  /* what is hidden of stripes sent before this is hidden no longer */
	__u32 generation;
	__u16 lanes_seen; /* lanes on which data sent later than this point has arrived */
	__u16 heard;      /* lanes of the plan in force on which something has arrived */
	__u32 limit;      /* the lowest hole that reordering between lanes can explain */
	__u32 sent_us;    /* when its stripe left */
	__u32 hole_lane;  /* the lane of the lowest hole, if it is covered */
	__u32 plan;       /* the generation of the plan in force */
	__u64 silent;     /* for each of its lanes, four bits: the number of old stripes of which nothing has arrived */
	__u16 n;          /* stripes in flight, at most LB_STRIPES_MAX */
	__u16 missing;    /* those of them of which not all has arrived */
	__u8 is_limited;
	__u8 is_covered;  /* the stripe of the lowest hole is still remembered */
	__u8 is_stuck;    /* no ACK came for a while */
	__u8 by_age;      /* some hole counts as a loss for its age alone */
	__u8 sacked;      /* some stripe's end has arrived as no ACK said before */
	__u8 must_pass;   /* the ACK passes with all blocks */
	__u8 is_tolerated; /* because TCP waits by itself */
	__u8 is_overtaken; /* data has arrived that left after a hole on its lane */
	__u8 is_doubted;   /* so it has for a moment only, and that is no proof yet */
};

/* The walk, newest first. */
struct judge_walk {
	struct lb_flow *flow;
	const struct sack_view *sack;
	struct judgement *found;
};

/* A stripe of a lane is old, and nothing of it has arrived. One from before the lane was reinstated is not counted. */
static __always_inline void count_silent(struct judgement *found, const struct lb_stripe *stripe)
{
	__u32 shift = 4 * (stripe->lane & (LB_LANES_MAX - 1));

	if (!before(stripe->sent_us, found->reinstated_us) && (found->silent >> shift & 0xf) < SILENT_STRIPES)
		found->silent += 1ull << shift;
}

/* The end of a stripe has arrived. What left before it by the same lane should have. */
static __always_inline void note_end(struct judgement *found, struct lb_stripe *stripe, __u32 bit)
{
	found->sacked |= !(stripe->sent_us & STRIPE_ARRIVED);
	stripe->sent_us |= STRIPE_ARRIVED;
	found->lanes_seen |= bit;
	found->heard |= bit;
}

static long step_judge(__u32 i, struct judge_walk *walk)
{
	struct judgement *found = walk->found;
	struct lb_stripe *stripe = &walk->flow->stripes[(walk->flow->head - 1 - i) & (LB_STRIPES_MAX - 1)];
	__u32 bit = 1u << (stripe->lane & (LB_LANES_MAX - 1));
	int starts_arrived, ends_arrived, is_proven;

	/* Unused, or acknowledged with all that left before it. */
	if (stripe->start == stripe->end || !before(found->ack, stripe->end))
		return 1;
	found->n++;
	if (!before(found->ack, stripe->start)) {
		found->is_covered = 1;
		found->hole_lane = stripe->lane;
	}
	/* Lanes of another plan are other lanes. */
	if (stripe->lane >> 4 != found->generation) {
		found->generation = stripe->lane >> 4;
		found->lanes_seen = 0;
	}
	ends_arrived = is_sacked(walk->sack, stripe->end - 1);
	if (ends_arrived) {
		note_end(found, stripe, bit);
		if (is_whole(walk->sack, stripe->start, stripe->end))
			return 0;
	} else if (stripe->sent_us & STRIPE_ARRIVED) {
		found->lanes_seen |= bit;
		/*
		 * An earlier ACK reported this and was damped, and this one does not report it: TCP would take it for lost.
		 * If the flow is stuck the ACK passes all the same: there may be no further one, and to send some stripes
		 * again for nothing costs less than a time-out. Likewise when it has been hidden for as long as anything may be.
		 */
		if (!found->is_stuck && before(walk->flow->reported_to, stripe->end) &&
		    !before(stripe->sent_us, found->hidden_us)) {
			found->limit = stripe->start;
			found->is_limited = 1;
		}
		return 0;
	}
	found->missing++;
	starts_arrived = is_sacked(walk->sack, stripe->start);
	found->is_overtaken |= !!(found->lanes_seen & bit);
	/* A plan that is over: one of its lanes is presumed failed, and TCP would wait for its timers. */
	is_proven = (found->lanes_seen & bit && !found->is_doubted) || stripe->lane >> 4 != found->plan;
	if (!is_proven && before(stripe->sent_us, found->old_us)) {
		found->by_age = 1;
		is_proven = 1;
		if (!starts_arrived && !ends_arrived)
			count_silent(found, stripe);
	}
	if (!is_proven) {
		found->limit = starts_arrived ? stripe->start + 1 : stripe->start;
		found->sent_us = stripe->sent_us;
		found->is_limited = 1;
	}
	if (starts_arrived) {
		found->lanes_seen |= bit;
		found->heard |= bit;
	}
	return 0;
}

/* Fills in what the stripes in flight say, newest first. */
GLOBAL int walk_stripes(struct lb_flow *flow, const struct sack_view *sack, struct judgement *found)
{
	struct judge_walk walk = { .flow = flow, .sack = sack, .found = found };

	if (flow && sack && found)
		bpf_loop(LB_STRIPES_MAX, step_judge, &walk, 0);
	return 0;
}

/* The age up to which reordering between lanes explains a hole, ns. */
static __always_inline __u64 reordering_window(const struct lb_config *bond, const struct lb_flow *flow, __u64 now)
{
	int is_stalled = now - flow->acked_ns > STALL_NS;
	__u64 ns = 2 * flow->skew_ns, least = is_stalled ? bond->damp_ns_min / 4 : bond->damp_ns_min;

	if (ns < least)
		return least;
	return ns > bond->damp_ns_max ? bond->damp_ns_max : ns;
}

/* A hole opens, if none is open. */
static __always_inline void begin_hole(struct lb_flow *flow, __u32 ack, __u64 now)
{
	if (flow->hole_since_ns)
		return;
	flow->hole_since_ns = now;
	flow->hole = ack;
	flow->hole_lane = UNSEEN_LANE;
	flow->reported = 0;
	flow->resent = 0;
}

/*
 * The ACK moved beyond the hole: its age teaches how far the lanes are apart. Not if TCP sent it again: then its age is
 * that of the repair, and would delay the next loss by as much.
 */
static __always_inline void end_hole(const struct lb_config *bond, struct lb_flow *flow, __u32 who, __u64 now)
{
	__u64 age = now - flow->hole_since_ns;

	if (age > LATE_NS && flow->hole_lane != LB_NO_LANE)
		penalize_if_late(flow->plan, flow->hole_lane, now_us(age), now, who);
	if (!flow->reported && !flow->resent && age <= bond->damp_ns_max) {
		if (age > flow->skew_ns)
			flow->skew_ns = age;
		else
			flow->skew_ns -= (flow->skew_ns - age) >> 7;
	}
	flow->hole_since_ns = 0;
}

/*
 * Whether no other ACK that reports the holes may come for long: it answers a probe, or all but one stripe has arrived, and
 * that one is later than lanes were lately; or losses are to be expected and too little is in flight to prove them.
 */
static __always_inline int must_pass_ack(const struct lb_flow *flow, const struct judgement *found, __u32 n_lanes,
					 __u64 now)
{
	if (flow->probed || (found->is_covered && found->missing <= 1 && now - flow->hole_since_ns > flow->skew_ns))
		return 1;
	return flow->losses >= LOSSES_MIN && found->n < SMALL_FLIGHT(n_lanes);
}

/*
 * TCP waits for holes long enough by itself: for longer than one takes that is not late, and for longer than they took lately, or
 * will do so once it was wrong.
 */
GLOBAL int is_tolerated(const struct lb_flow *flow)
{
	return flow && flow->least_us >= RACK_SHARE * (LATE_NS / 1000) && 2 * now_us(flow->skew_ns) <= flow->least_us;
}

/* Whether holes that data of their own lane has overtaken may be filled soon: frames swap where processors take turns at a queue. */
static __always_inline int is_overtaking(const struct lb_config *bond, const struct lb_flow *flow, __u64 now)
{
	return bond->overtaking_us && (!flow->overtaken_us || now_us(now) - flow->overtaken_us < bond->overtaking_us);
}

static __always_inline void note_overtaken(struct lb_flow *flow, const struct judgement *found, __u64 now)
{
	if (!found->is_overtaken)
		flow->overtaken_us = 0;
	else if (!flow->overtaken_us)
		flow->overtaken_us = now_us(now) | 1;
}

/* Fills in what one look at the stripes in flight says. */
static __always_inline void look_at_stripes(const struct lb_config *bond, const struct lb_plan *plan,
					    const struct lb_progress *progress, struct lb_flow *flow, __u32 ack,
					    const struct sack_view *sack, __u64 window, __u64 now, int is_doubted,
					    struct judgement *found)
{
	__builtin_memset(found, 0, sizeof(*found));
	found->plan = plan->generation;
	found->reinstated_us = progress->reinstated_us;
	if (now_us(now) - found->reinstated_us > QUARANTINE_US_FORGOTTEN)
		found->reinstated_us = now_us(now) - AGE_US_MAX;
	found->is_stuck = is_stuck(flow, now);
	found->ack = ack;
	/* No stripe counts as old before the first hole has shown how long reports take. */
	found->hidden_us = now_us(now) - now_us(bond->damp_ns_max) - flow->lag_us;
	found->old_us = flow->lag_us ? now_us(now) - now_us(window) - flow->lag_us : now_us(now) - AGE_US_MAX;
	found->is_doubted = is_doubted;
	walk_stripes(flow, sack, found);
}

/* Fills in what the stripes in flight say. */
static __always_inline void judge_stripes(const struct lb_config *bond, const struct lb_plan *plan,
					  const struct lb_progress *progress, struct lb_flow *flow, __u32 ack,
					  const struct sack_view *sack, __u64 now, int is_new,
					  struct judgement *found)
{
	__u64 window = reordering_window(bond, flow, now);

	look_at_stripes(bond, plan, progress, flow, ack, sack, window, now, is_overtaking(bond, flow, now), found);
	note_overtaken(flow, found, now);
	/* Too little is still to arrive: there may be no further ACK to tell of the loss. */
	if (found->is_doubted && found->is_overtaken && found->missing < SMALL_FLIGHT(plan->n_lanes)) {
		__u8 sacked = found->sacked;

		look_at_stripes(bond, plan, progress, flow, ack, sack, window, now, 0, found);
		found->sacked |= sacked;
	}
	if (!found->is_covered && now - flow->hole_since_ns <= window) {
		/* More is in flight than is remembered: only age can show it. */
		found->limit = ack;
		found->is_limited = 1;
	} else if (is_new && found->is_limited && found->limit == ack) {
		flow->lag_us = now_us(now) - found->sent_us + 1;
	}
	found->is_tolerated = is_tolerated(flow);
	found->must_pass = found->is_tolerated || must_pass_ack(flow, found, plan->n_lanes, now);
}

/*
 * The lane of the lowest hole is presumed failed if its stripes brought nothing and other lanes delivered. Of plain hosts, one
 * keeps its own flow off it, and two all.
 */
static __always_inline void judge_lane(const struct lb_plan *plan, struct lb_progress *progress, struct lb_flow *flow,
				       const struct judgement *found, __u32 who, __u64 now)
{
	__u32 lane = found->hole_lane & (LB_LANES_MAX - 1);

	if (found->hole_lane >> 4 != progress->generation || (found->silent >> 4 * lane & 0xf) < SILENT_STRIPES ||
	    !found->heard || found->heard & 1u << lane || progress->quarantine_us[lane])
		return;
	if (is_agreed(plan, &progress->silent[lane], who, now_us(now)))
		quarantine_lane(progress, lane, now);
	else
		avoid_lane(flow, found->hole_lane, now);
}

static __always_inline __u32 all_blocks(const struct sack_view *sack)
{
	return (1u << sack->n) - 1;
}

/* The blocks that report losses only, a bit each. */
static __always_inline __u32 loss_blocks(const struct sack_view *sack, const struct judgement *found)
{
	__u32 blocks = 0;

#pragma unroll
	for (__u32 i = 0; i < SACK_BLOCKS_MAX; i++)
		if (i < sack->n && (!found->is_limited || before(sack->left[i], found->limit)))
			blocks |= 1u << i;
	return blocks;
}

/* The receiver reports a duplicate: what was reported as a loss was none. Such mistakes must not feed on themselves. */
static __always_inline void retract_losses(const struct lb_config *bond, struct lb_flow *flow, __u32 seq)
{
	flow->losses -= flow->losses < LOSSES_RETRACTED ? flow->losses : LOSSES_RETRACTED;
	flow->avoided_us = 0;
	reinstate_by_duplicate(flow, stripe_of(flow, seq));
	if (is_tolerated(flow)) {
		flow->least_us -= flow->least_us / LEAST_RETRACTED;
	} else if (flow->guessed) {
		/* TCP repaired what was not broken: the lanes differ by more than was thought. */
		flow->skew_ns = 2 * flow->skew_ns < bond->damp_ns_max ? 2 * flow->skew_ns : bond->damp_ns_max;
		flow->guessed = 0;
	}
}

static __always_inline void note_losses(struct lb_flow *flow, const struct judgement *found)
{
	if (!found->by_age)
		flow->hole_lane = LB_NO_LANE;
	flow->guessed |= found->by_age;
	flow->losses += !flow->reported;
	flow->reported = 1;
}

/* Why the ACK passes or is damped, given the blocks that report losses; the flow learns from it. */
static __always_inline enum lb_reason judge_segment(const struct lb_config *bond, struct lb_flow *flow,
						    const struct tcp_view *view, const struct sack_view *sack,
						    const struct judgement *found, __u32 blocks, int is_new)
{
	if (is_dsack(view, sack)) {
		retract_losses(bond, flow, sack->left[0]);
		return LB_RX_ACK_DSACK;
	}
	if (blocks) {
		note_losses(flow, found);
		return found->by_age ? LB_RX_ACK_OLD : LB_RX_ACK_LOST;
	}
	if (found->is_tolerated)
		return LB_RX_ACK_TOLERATED;
	/* Perhaps no loss, so it is not counted as one. */
	if (found->must_pass)
		return LB_RX_ACK_LAST;
	if (is_new)
		return LB_RX_ACK_MASKED;
	if (view->payload || view->window != flow->window || view->flags & (TCP_ECE | TCP_CWR))
		return LB_RX_ACK_WINDOW;
	if (8 * (flow->damped + 1) > 7 * flow->seen + 64)
		return LB_RX_ACK_SHARE;
	flow->damped++;
	return LB_RX_ACK_DAMPED;
}

/* Passes these blocks on, and no others. */
GLOBAL int pass_blocks(struct __sk_buff *skb, struct lb_flow *flow, const struct tcp_view *view,
		       const struct sack_view *sack, __u32 blocks)
{
	__u32 to;

	if (!flow || !view || !sack)
		return 0;
	to = flow->reported_to;
#pragma unroll
	for (__u32 i = 0; i < SACK_BLOCKS_MAX; i++)
		if (blocks & 1u << i && before(to, sack->right[i]))
			to = sack->right[i];
	flow->reported_to = to;
	if (blocks != all_blocks(sack))
		keep_blocks(skb, view, sack, blocks);
	return 0;
}

static __always_inline void turn_round(struct lb_flow_key *flow)
{
	__be16 port = flow->source_port;

	flow->source_port = flow->destination_port;
	flow->destination_port = port;
#pragma unroll
	for (__u32 i = 0; i < 4; i++) {
		__u32 word = flow->source[i];

		flow->source[i] = flow->destination[i];
		flow->destination[i] = word;
	}
}

/* The striped flow that a segment acknowledges; NULL where the segment is of no interest to damping. */
static __always_inline struct lb_flow *acknowledged_flow(struct __sk_buff *skb, struct tcp_view *view)
{
	if (!view_tcp(skb, view) || (view->flags & (TCP_SYN | TCP_FIN | TCP_RST | TCP_ACK)) != TCP_ACK)
		return NULL;
	/* Bulk data coming in acknowledges too, but cannot report a hole. */
	if (view->payload && view->header <= TCP_HEADER_PLAIN)
		return NULL;
	turn_round(&view->flow);
	return bpf_map_lookup_elem(&lb_flows, &view->flow);
}

static __always_inline void note_ack(struct lb_flow *flow, const struct tcp_view *view, __u64 now)
{
	flow->is_clocked = now - flow->acked_ns < ACK_PAUSE_NS;
	flow->acked_ns = now;
	flow->probed = 0;
	flow->window = view->window;
}

/* Counts an ACK with SACK. */
static __always_inline void count_seen(struct lb_flow *flow)
{
	if (++flow->seen >= SHARE_WINDOW) {
		flow->seen >>= 1;
		flow->damped >>= 1;
	}
}

/*
 * Whether the ACK passes as it is without a look at all stripes. TCP waits by itself, all stripes were looked at lately, and the ACK
 * reports no duplicate. It does report that the oldest stripe has arrived, or others that become `newest`. The lane of a hole that
 * opens is found at the next look, if the hole is still there.
 */
static __always_inline int is_plain_progress(struct lb_flow *flow, const struct tcp_view *view, const struct sack_view *sack,
					     __u64 now, struct stripe_range *newest)
{
	if (now_us(now) - flow->looked_us >= TOLERATED_LOOK_US || !is_tolerated(flow) || is_dsack(view, sack) ||
	    flow->head - flow->tail > LB_STRIPES_MAX)
		return 0;
	mark_newest(flow, sack, newest);
	return newest->n || !before(view->ack, flow->stripes[flow->tail & (LB_STRIPES_MAX - 1)].end);
}

/* Decides about one segment that acknowledges a striped flow, and edits it. Returns 0 where damping has no opinion. */
GLOBAL int damp(struct __sk_buff *skb)
{
	const struct lb_config *bond = the_bond();
	const struct lb_plan *plan;
	struct lb_progress *progress;
	struct stripe_range newest = {};
	struct judgement found;
	struct sack_view sack;
	struct tcp_view view;
	struct lb_flow *flow;
	enum lb_reason reason;
	__u32 blocks, number;
	int is_new;
	__u64 now;

	flow = acknowledged_flow(skb, &view);
	if (!flow || !bond)
		return 0;
	/* That of its class, if it has one. */
	number = flow->plan;
	plan = bpf_map_lookup_elem(&lb_plans, &number);
	progress = bpf_map_lookup_elem(&lb_progresses, &number);
	if (!plan || !progress || plan->n_lanes < 2 || plan->policy != LB_SPREAD)
		return 0;
	now = bpf_ktime_get_ns();
	refresh_lanes_if_due(progress, number, now);
	if (flow->hole_since_ns && before(flow->hole, view.ack))
		end_hole(bond, flow, witness_of(&view.flow), now);
	if (!read_sack(skb, &view, &sack)) {
		note_ack(flow, &view, now);
		note_deliveries(flow, view.ack, 0, 0, 0);
		return 0;
	}
	/* Data beyond the stripes: another rule, another plan, and that has one lane. */
	if (before(flow->next, sack.right[0]))
		return 0;
	begin_hole(flow, view.ack, now);
	count_seen(flow);
	if (is_plain_progress(flow, &view, &sack, now, &newest)) {
		note_ack(flow, &view, now);
		note_deliveries(flow, view.ack, 0, newest.from, newest.n);
		pass_blocks(skb, flow, &view, &sack, all_blocks(&sack));
		return LB_RX_ACK_TOLERATED;
	}
	flow->looked_us = now_us(now);
	is_new = flow->hole_lane == UNSEEN_LANE;
	judge_stripes(bond, plan, progress, flow, view.ack, &sack, now, is_new, &found);
	if (is_new)
		flow->hole_lane = found.is_covered ? found.hole_lane : LB_NO_LANE;
	if (found.is_covered && found.by_age)
		judge_lane(plan, progress, flow, &found, witness_of(&view.flow), now);
	blocks = loss_blocks(&sack, &found);
	reason = judge_segment(bond, flow, &view, &sack, &found, blocks, is_new);
	note_ack(flow, &view, now);
	note_deliveries(flow, view.ack, found.sacked, 0, 0);
	if (reason == LB_RX_ACK_DAMPED)
		return reason;
	if (reason == LB_RX_ACK_DSACK)
		blocks |= 1;
	if (found.must_pass)
		blocks = all_blocks(&sack);
	pass_blocks(skb, flow, &view, &sack, blocks);
	return reason;
}

#endif
