/* SPDX-License-Identifier: (GPL-2.0-only OR BSD-2-Clause) */
/* Policy flow: one flow, one lane, by the kernel's hash of it; no hash leads to a borrowed lane. */
#ifndef LB_POLICY_FLOW_BPF_H
#define LB_POLICY_FLOW_BPF_H

static __always_inline __u32 flow_lane(struct __sk_buff *skb, const struct lb_config *bond, __u32 number,
				       const struct lb_plan *plan, __u32 avoid)
{
	return because(live_hashed_lane(plan, bpf_get_hash_recalc(skb), avoid), LB_WHY_FLOW, avoid);
}

#endif
