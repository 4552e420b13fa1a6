/* SPDX-License-Identifier: (GPL-2.0-only OR BSD-2-Clause) */
/* Policy active-backup: the first lane that lives carries everything. */
#ifndef LB_POLICY_ACTIVE_BACKUP_BPF_H
#define LB_POLICY_ACTIVE_BACKUP_BPF_H

static __always_inline __u32 active_backup_lane(struct __sk_buff *skb, const struct lb_config *bond, __u32 number,
						const struct lb_plan *plan, __u32 avoid)
{
	return because(avoid ? next_live_lane(plan, avoid, 0) : 0, LB_WHY_FIRST, avoid);
}

#endif
