/* SPDX-License-Identifier: (GPL-2.0-only OR BSD-2-Clause) */
/*
 * How fast lanes deliver (lb_progress.deliveries): the daemon makes their shares of it (crates/proto/src/host/rates.rs).
 *
 * A stripe takes the time that any takes, which is the least that was seen on its lane, and then waits for those before it and
 * for its own bytes to pass the slowest link. That service begins when the stripe before it was delivered, if that was
 * later. Bytes over such times are the lane's rate, whoever else uses the link. Where the service is too short to tell
 * it from chance the stripe says nothing. Called by damp() on the way in. Writes lb_progresses, lb_flows.
 */
#ifndef LB_DELIVERY_BPF_H
#define LB_DELIVERY_BPF_H

/* The least time that a lane took counts for half as much more after such a period, us: the way may be a longer one by now. */
#define LEAST_PERIOD_US (10 * 1000 * 1000)

/*
 * A stripe that waited for none before it counts if it is so long, or took so much longer than the least, us: a link that was idle
 * may pass some bytes at once.
 */
#define LONE_BYTES_MIN 32768
#define LONE_US_MIN 3000
/*
 * An ACK that comes so long after the one before it says nothing: it was delayed, as ACKs of single segments are (40 ms), or the
 * ones before it came with data, and those are not looked at.
 */
#define ACK_PAUSE_NS (30 * 1000 * 1000)

/* Whether a stripe that waited for none counts. */
static __always_inline int is_long(__u32 bytes, __s32 service, __s32 least)
{
	return service >= least && (bytes >= LONE_BYTES_MIN || service >= LONE_US_MIN);
}

/* All of a stripe has arrived, as an ACK says at `us`. */
static __always_inline void note_delivery(struct lb_progress *progress, struct lb_flow *flow, const struct lb_stripe *stripe,
					  __u32 us)
{
	struct lb_delivery *lane = &progress->deliveries[stripe->lane & (LB_LANES_MAX - 1)];
	__u32 sent = stripe->sent_us & ~STRIPE_FLAGS, took = us - sent, bytes = stripe->end - stripe->start;
	__u32 least, waited, start;
	int has_waited;

	if (stripe->lane >> 4 != progress->generation)
		return;
	if (us - lane->since_us > LEAST_PERIOD_US) {
		lane->least_us += lane->least_us / 2;
		lane->since_us = us;
	}
	if (!lane->least_us || took < lane->least_us)
		lane->least_us = took;
	if (!flow->least_us || took < flow->least_us)
		flow->least_us = took;
	least = lane->least_us;
	/* The one before it may have been delivered long before this one was sent. */
	waited = lane->last_us - sent;
	has_waited = waited >= least && waited <= took;
	start = has_waited ? lane->last_us : sent + least;
	if (has_waited)
		bytes += lane->late_bytes;
	lane->late_bytes = 0;
	/* One ACK may say it of several: they are what the first one is. */
	if (us != lane->last_us)
		lane->is_busy = has_waited || is_long(bytes, us - start, least);
	if (lane->is_busy) {
		lane->busy_bytes += bytes;
		lane->busy_us += us - start;
	}
	lane->last_us = us;
}

/* A walk over the stripes from the tail on. */
struct delivery_walk {
	struct lb_progress *progress;
	struct lb_flow *flow;
	__u32 ack;
	__u32 from;
	__u32 n;
	__u32 sacked;
};

static long step_delivery(__u32 i, struct delivery_walk *walk)
{
	struct lb_flow *flow = walk->flow;
	struct lb_stripe *stripe = &flow->stripes[(walk->from + i) & (LB_STRIPES_MAX - 1)];
	int is_acked = !before(walk->ack, stripe->end);

	if (i >= walk->n || !(is_acked || walk->sacked))
		return 1;
	flow->tail += is_acked;
	if ((is_acked || stripe->sent_us & STRIPE_ARRIVED) && !(stripe->sent_us & STRIPE_COUNTED)) {
		if (flow->is_clocked && !before(stripe->start, flow->resent_to))
			note_delivery(walk->progress, flow, stripe, now_us(flow->acked_ns));
		stripe->sent_us |= STRIPE_COUNTED;
	}
	return 0;
}

/* LB_STRIPES_MAX is that power of two. */
#define STRIPES_BITS 8
_Static_assert(LB_STRIPES_MAX == 1 << STRIPES_BITS, "a search has as many steps");

/* Stripes that follow each other: a place among those that are remembered, and their number. */
struct stripe_range {
	__u32 from;
	__u32 n;
};

/* A walk back over stripes in flight. */
struct newest_walk {
	struct lb_flow *flow;
	struct stripe_range *found;
	__u32 left;
	__u32 right;
	__u32 at;
	__u32 n;
};

static long step_newest(__u32 i, struct newest_walk *walk)
{
	__u32 at = walk->at - i;
	struct lb_stripe *stripe = &walk->flow->stripes[at & (LB_STRIPES_MAX - 1)];
	__u32 last = stripe->end - 1;

	if (i >= walk->n || before(last, walk->left) || stripe->sent_us & STRIPE_ARRIVED)
		return 1;
	/* Of the first one a part may be missing. */
	if (before(last, walk->right)) {
		stripe->sent_us |= STRIPE_ARRIVED;
		walk->found->from = at;
		walk->found->n++;
	}
	return 0;
}

/* A step towards the last stripe that starts before the end of the block. */
static long step_search(__u32 i, struct newest_walk *walk)
{
	__u32 further = walk->n + (LB_STRIPES_MAX / 2 >> (i & 31));

	if (further < walk->flow->head - walk->flow->tail &&
	    before(walk->flow->stripes[(walk->at + further) & (LB_STRIPES_MAX - 1)].start, walk->right))
		walk->n = further;
	return 0;
}

/*
 * Finds the stripes that the first SACK block, which is of what arrived last (RFC 2018), reports at its end and that were not known to
 * have arrived; marks them. That costs less than to look at all that is in flight, and finds nothing where a gap in the
 * midst was filled.
 */
GLOBAL int mark_newest(struct lb_flow *flow, const struct sack_view *sack, struct stripe_range *found)
{
	struct newest_walk walk = { .flow = flow, .found = found };

	if (!flow || !sack || !found || flow->head == flow->tail)
		return 0;
	walk.left = sack->left[0];
	walk.right = sack->right[0];
	walk.at = flow->tail;
	/* They are in the order of their numbers. */
	bpf_loop(STRIPES_BITS, step_search, &walk, 0);
	walk.at += walk.n++;
	bpf_loop(LB_STRIPES_MAX, step_newest, &walk, 0);
	return 0;
}

/*
 * Takes the deliveries that an ACK reports by its number and, if `sacked`, by its SACK blocks; else of `n` stripes from `newest` on
 * (mark_newest()).
 */
GLOBAL int note_deliveries(struct lb_flow *flow, __u32 ack, __u32 sacked, __u32 newest, __u32 n)
{
	struct delivery_walk walk = { .flow = flow, .ack = ack, .sacked = sacked };
	__u32 from = flow ? flow->plan : 0;

	walk.progress = bpf_map_lookup_elem(&lb_progresses, &from);
	/* Nobody can have what was not sent. */
	if (!walk.progress || !flow || before(flow->next, ack))
		return 0;
	if (flow->head - flow->tail > LB_STRIPES_MAX)
		flow->tail = flow->head - LB_STRIPES_MAX;
	walk.from = flow->tail;
	walk.n = flow->head - flow->tail;
	bpf_loop(LB_STRIPES_MAX, step_delivery, &walk, 0);
	if (n) {
		walk.from = newest;
		walk.n = n;
		walk.sacked = 1;
		bpf_loop(LB_STRIPES_MAX, step_delivery, &walk, 0);
	}
	/* Sequence numbers wrap. */
	from = flow->tail == flow->head ? ack : flow->stripes[flow->tail & (LB_STRIPES_MAX - 1)].start;
	if (before(flow->resent_to, from))
		flow->resent_to = from;
	return 0;
}

#endif
