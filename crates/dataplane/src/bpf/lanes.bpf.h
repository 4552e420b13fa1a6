/* SPDX-License-Identifier: (GPL-2.0-only OR BSD-2-Clause) */
/*
 * Chooses a lane of a plan: by a flow's hash, or by virtual time; among all members, or among live ones. Called by
 * choose_lane() and for guests. Reads no map by itself; writes the progress it is given.
 */
#ifndef LB_LANES_BPF_H
#define LB_LANES_BPF_H

/*
 * A lane's number as an index. The mask changes nothing, but old verifiers forget the bounds of a number that was
 * spilled. The empty asm keeps clang from removing the mask.
 */
static __always_inline __u32 index_of(__u32 lane)
{
	asm volatile("" : "+r"(lane));
	return lane & (LB_LANES_MAX - 1);
}

/* The lane a flow hash belongs to, by weight. */
GLOBAL __u32 hashed_lane(const struct lb_plan *plan, __u32 hash)
{
	__u32 point = hash & 0xffff;

	if (!plan)
		return 0;
	for (__u32 i = 0; i < LB_LANES_MAX - 1; i++)
		if (i + 1 >= plan->n_lanes || point < plan->lanes[i].hash_below)
			return i;
	return LB_LANES_MAX - 1;
}

/* The lane that is furthest behind in virtual time: byte-fair and weighted, no division and no clock. */
GLOBAL __u32 latest_lane(const struct lb_plan *plan, const struct lb_progress *progress)
{
	__u32 best = 0;
	__u64 best_time;

	if (!plan || !progress)
		return 0;
	best_time = progress->time[0];
	for (__u32 i = 1; i < LB_LANES_MAX; i++) {
		if (i >= plan->n_lanes)
			break;
		if (progress->time[i] < best_time) {
			best = i;
			best_time = progress->time[i];
		}
	}
	return best;
}

/* A walk over the lanes of live members. */
struct live_walk {
	const struct lb_plan *plan;
	struct lb_progress *progress;
	__u64 time;
	__u32 failed; /* slots, a bit each */
	__u32 lane; /* the lane found; before, where to start */
	__u32 n;
};

static __always_inline int is_dead_lane(const struct live_walk *walk, __u32 lane)
{
	return walk->failed >> (walk->plan->lanes[lane & (LB_LANES_MAX - 1)].slot & 31) & 1;
}

static long step_next(__u32 i, struct live_walk *walk)
{
	__u32 lane = walk->lane + i;

	if (i >= walk->n)
		return 1;
	if (lane >= walk->n)
		lane -= walk->n;
	if (is_dead_lane(walk, lane))
		return 0;
	walk->lane = lane;
	return 1;
}

static long step_latest(__u32 i, struct live_walk *walk)
{
	__u64 time = walk->progress->time[i & (LB_LANES_MAX - 1)];

	if (i >= walk->n)
		return 1;
	if (time < walk->time && !is_dead_lane(walk, i)) {
		walk->time = time;
		walk->lane = i;
	}
	return 0;
}

/* The lane itself, or the next one whose member is live; itself if none is. */
GLOBAL __u32 next_live_lane(const struct lb_plan *plan, __u32 failed, __u32 lane)
{
	struct live_walk walk = { .plan = plan, .failed = failed, .lane = lane };

	if (!plan)
		return 0;
	walk.n = plan->n_lanes;
	bpf_loop(LB_LANES_MAX, step_next, &walk, 0);
	return walk.lane;
}

/* The lane of a hash; where its member may not be used, the next one whose member may. */
static __always_inline __u32 live_hashed_lane(const struct lb_plan *plan, __u32 hash, __u32 avoid)
{
	__u32 lane = index_of(hashed_lane(plan, hash));

	return avoid ? next_live_lane(plan, avoid, lane) : lane;
}

/* As latest_lane(), among live members; `latest`, the lane among all, where none is live. */
GLOBAL __u32 latest_live_lane(const struct lb_plan *plan, __u32 failed, struct lb_progress *progress,
			      __u32 latest)
{
	struct live_walk walk = { .plan = plan, .progress = progress, .time = ~0ull, .failed = failed, .lane = latest };

	if (!plan || !progress)
		return 0;
	walk.n = plan->n_lanes;
	bpf_loop(LB_LANES_MAX, step_latest, &walk, 0);
	return walk.lane;
}

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

/* A lane that was passed over. Otherwise a member, once live again, would have to catch up on everything that it missed. */
static __always_inline void catch_up(struct lb_progress *progress, __u32 behind, __u32 lane)
{
	progress->time[index_of(behind)] = progress->time[index_of(lane)];
}

#endif
