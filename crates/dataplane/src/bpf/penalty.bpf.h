/* SPDX-License-Identifier: (GPL-2.0-only OR BSD-2-Clause) */
/*
 * What damping learns of lanes, and what it does to them (lb_progress).
 *
 * A lane whose holes keep filling late is busy: other traffic queues there, or its weight is wrong. Each byte on it costs
 * more (its penalty), so it gets fewer. Penalties decay with time. A lane whose way is longer than others' is always later
 * by that, and not busy.
 *
 * A lane on which several old stripes in a row brought nothing, while other lanes of the flow delivered, is presumed
 * failed: it is quarantined for a moment, and for twice as long each time that this happens again, until the daemon's
 * probes have decided. A lane that was only delayed looks the same at first. Then its data arrives after TCP sent it again,
 * the receiver reports duplicates, and the lane is reinstated.
 *
 * A plan for plain hosts serves everybody outside, and any of them could report what it likes. What one of them says alone
 * raises a penalty to PENALTY_MAX_ALONE at most, and keeps no flow but its own off a lane. Two in a row must agree for more.
 *
 * Called by damp() on the way in and choose_lane() on the way out. Reads lb_plans; writes lb_progresses.
 */
#ifndef LB_PENALTY_BPF_H
#define LB_PENALTY_BPF_H

/* A hole that took longer to fill, beyond what its lane's way is longer, was not the stripes' order but the lane's queue, ns. */
#define LATE_NS (6 * 1000 * 1000)
/* Such a hole doubles its lane's penalty and adds this; the greatest penalty is 1024 times the cost. */
#define PENALTY_STEP 16
#define PENALTY_MAX (1024 * 256)
/* 8 times the cost: what one plain host alone can do. */
#define PENALTY_MAX_ALONE (8 * 256)
/* Two plain hosts agree if they say the same within so much time, us. */
#define WITNESS_US (1000 * 1000)
/* A lane's penalty grows once in so much time: what delayed one flow's data delayed all flows', us. */
#define PENALTY_PAUSE_US (LATE_NS / 1000)
/* A lane is presumed failed after so many old stripes of which nothing arrived. */
#define SILENT_STRIPES 3
/* The first quarantine, the longest one, and the time in use after which the next one is a first one again, us. The first
 * one is a little longer than the daemon's probes need: to try a failed lane before usually costs a flow a time-out. */
#define QUARANTINE_US_FIRST (160 * 1000)
#define QUARANTINE_US_MAX (5 * 1000 * 1000)
#define QUARANTINE_US_FORGOTTEN (1000 * 1000)
/* A duplicate that is reported later than this after its lane was quarantined may have other reasons, us. */
#define REINSTATE_US_MAX (100 * 1000)
/* In virtual time, how far a quarantined lane is put ahead of all others: farther than they come meanwhile.
 * Where all lanes are quarantined they go on from there; refresh_lanes() takes the lead off before it could add up. */
#define QUARANTINE_LEAD (1ull << 58)
/* The interval of refresh_lanes(), ns; each time every penalty loses 1/32. In so much time it falls to a half, ns. */
#define REFRESH_NS (20 * 1000 * 1000)
#define PENALTY_HALF_NS (22ull * REFRESH_NS)
/* How far a lane may be ahead of the others, in bytes: traffic that is bound to one lane is not charged beyond it. */
#define LEAD_BYTES_MAX (2 * 65536)

/* What a byte costs on a lane, its penalty included. */
static __always_inline __u64 byte_cost(const struct lb_plan *plan, const struct lb_progress *progress, __u32 lane)
{
	__u64 cost = plan->lanes[lane].byte_cost;

	return cost + (cost * progress->penalty[lane] >> 8);
}

/* The far end of a flow, as a witness; never 0. Addresses of one IPv6 network of 64 bits are one. */
static __always_inline __u32 witness_of(const struct lb_flow_key *flow)
{
	__u32 who = flow->destination[0] ^ flow->destination[1] * 0x9e3779b1;

	return who ? who : 1;
}

/* Whether a lane of this plan may be judged by what `who` says: it is that of one peer, or another host said the same. */
static __always_inline int is_agreed(const struct lb_plan *plan, struct lb_witness *last, __u32 who, __u32 us)
{
	int is_agreed = !is_zero_mac(&plan->lanes[0].peer_mac) ||
			(last->who && last->who != who && us - last->at_us < WITNESS_US);

	/* One that says so again and again does not hide who said it before. */
	if (!is_agreed) {
		last->who = who;
		last->at_us = us;
	}
	return is_agreed;
}

/*
 * A hole of a lane took `us` to fill, more than LATE_NS. The lane is late if that is more even without what its way takes
 * longer than the shortest one; if it has delivered nothing yet, that is not known.
 */
GLOBAL int penalize_if_late(__u32 number, __u32 lane, __u32 us, __u64 now, __u32 who)
{
	const struct lb_plan *plan = bpf_map_lookup_elem(&lb_plans, &number);
	struct lb_progress *progress = bpf_map_lookup_elem(&lb_progresses, &number);
	__u32 least, shortest, penalty, most = PENALTY_MAX;

	if (!plan || !progress || progress->generation != lane >> 4)
		return 0;
	lane &= LB_LANES_MAX - 1;
	/* What a quarantined lane still brings says nothing about what it will do. */
	if (progress->quarantine_us[lane] || now_us(now) - progress->penalized_us[lane] < PENALTY_PAUSE_US)
		return 0;
	least = progress->deliveries[lane].least_us;
	shortest = least;
#pragma clang loop unroll(disable)
	for (__u32 i = 0; i < LB_LANES_MAX; i++) {
		__u32 other = progress->deliveries[i].least_us;

		if (other && other < shortest)
			shortest = other;
	}
	if (!least || us - LATE_NS / 1000 <= least - shortest)
		return 0;
	progress->penalized_us[lane] = now_us(now);
	penalty = progress->penalty[lane];
	if (!is_agreed(plan, &progress->late[lane], who, now_us(now)))
		most = penalty < PENALTY_MAX_ALONE ? PENALTY_MAX_ALONE : penalty;
	penalty += penalty + PENALTY_STEP;
	progress->penalty[lane] = penalty < most ? penalty : most;
	return 1;
}

static __always_inline void quarantine_lane(struct lb_progress *progress, __u32 lane, __u64 now)
{
	__u32 us = 2 * progress->last_quarantine_us[lane];

	if (!us || now_us(now) - progress->quarantined_us[lane] > QUARANTINE_US_FORGOTTEN)
		us = QUARANTINE_US_FIRST;
	if (us > QUARANTINE_US_MAX)
		us = QUARANTINE_US_MAX;
	progress->quarantined_us[lane] = now_us(now);
	progress->last_quarantine_us[lane] = us;
	progress->quarantine_us[lane] = us;
	__sync_fetch_and_add(&progress->time[lane], QUARANTINE_LEAD);
}

/* Ends a quarantine. The lane need not catch up with the others, which are at `time`. */
static __always_inline void reinstate_lane(struct lb_progress *progress, __u32 lane, __u64 time, __u32 us)
{
	progress->time[lane] = time;
	progress->quarantined_us[lane] = us;
	progress->reinstated_us = us;
	progress->quarantine_us[lane] = 0;
}

/*
 * Decays penalties, ends quarantines that are over, and takes the lead off where all lanes have it. A lead that a penalty made is
 * worth no more than the penalty is now: on slow links the others would need many seconds to catch up.
 */
GLOBAL int refresh_lanes(__u32 number, __u64 now)
{
	const struct lb_plan *plan = bpf_map_lookup_elem(&lb_plans, &number);
	struct lb_progress *progress = bpf_map_lookup_elem(&lb_progresses, &number);
	__u32 us = now_us(now), halves;
	__u64 latest, base, most;

	if (!plan || !progress)
		return 0;
	/* While nothing is sent nobody refreshes. */
	halves = (now - progress->refreshed_ns) / PENALTY_HALF_NS;
	if (halves > 31)
		halves = 31;
	progress->refreshed_ns = now;
	latest = progress->time[index_of(latest_lane(plan, progress))];
	base = latest < QUARANTINE_LEAD ? 0 : latest;
	latest -= base;
#pragma clang loop unroll(disable)
	for (__u32 i = 0; i < LB_LANES_MAX; i++) {
		progress->penalty[i] = (progress->penalty[i] - (progress->penalty[i] + 31) / 32) >> halves;
		if (base && i < plan->n_lanes)
			__sync_fetch_and_add(&progress->time[i], -base);
		if (progress->quarantine_us[i] && us - progress->quarantined_us[i] >= progress->quarantine_us[i])
			reinstate_lane(progress, i, latest, us);
		most = LEAD_BYTES_MAX * byte_cost(plan, progress, i);
		if (!progress->quarantine_us[i] && (__s64)(progress->time[i] - latest) > (__s64)most)
			progress->time[i] = latest + most;
	}
	return 0;
}

static __always_inline void refresh_lanes_if_due(const struct lb_progress *progress, __u32 number, __u64 now)
{
	if (now - progress->refreshed_ns >= REFRESH_NS)
		refresh_lanes(number, now);
}

/* A byte of this stripe arrived twice: TCP sent it again, and the lane that seemed to have lost it had not. */
GLOBAL int reinstate_by_duplicate(const struct lb_flow *flow, __u32 stripe)
{
	__u32 number = flow ? flow->plan : 0, lane, us;
	struct lb_progress *progress = bpf_map_lookup_elem(&lb_progresses, &number);
	const struct lb_plan *plan;

	if (!progress || !flow || stripe >= LB_STRIPES_MAX)
		return 0;
	lane = flow->stripes[stripe].lane;
	if (lane >> 4 != progress->generation)
		return 0;
	lane &= LB_LANES_MAX - 1;
	us = now_us(bpf_ktime_get_ns());
	if (!progress->quarantine_us[lane] || us - progress->quarantined_us[lane] > REINSTATE_US_MAX)
		return 0;
	plan = bpf_map_lookup_elem(&lb_plans, &number);
	progress->last_quarantine_us[lane] = 0;
	reinstate_lane(progress, lane, progress->time[index_of(latest_lane(plan, progress))], us);
	return 1;
}

#endif
