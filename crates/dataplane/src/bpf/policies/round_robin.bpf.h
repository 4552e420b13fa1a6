/* SPDX-License-Identifier: (GPL-2.0-only OR BSD-2-Clause) */
/*
 * Policy round-robin: each frame, or buffer of segments, leaves by the lane that has sent fewest for its weight. Also ACKs do, and
 * nothing is remembered of flows, so nothing is damped.
 */
#ifndef LB_POLICY_ROUND_ROBIN_BPF_H
#define LB_POLICY_ROUND_ROBIN_BPF_H

static __always_inline __u32 round_robin_lane(struct __sk_buff *skb, const struct lb_config *bond, __u32 number,
					      const struct lb_plan *plan, __u32 avoid)
{
	struct lb_progress *progress = progress_of(number, plan);
	__u32 lane, behind;

	if (!progress)
		return because(0, LB_WHY_LATEST, avoid);
	lane = behind = index_of(latest_lane(plan, progress));
	if (avoid)
		lane = latest_live_lane(plan, avoid, progress, behind);
	if (is_explained(skb))
		return because(lane, LB_WHY_LATEST, avoid);
	lane = index_of(lane);
	if (lane != behind)
		catch_up(progress, behind, lane);
	__sync_fetch_and_add(&progress->time[lane], (__u64)wire_frames(skb) * plan->lanes[lane].byte_cost);
	return because(lane, LB_WHY_LATEST, avoid);
}

#endif
