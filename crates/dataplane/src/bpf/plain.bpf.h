/* SPDX-License-Identifier: (GPL-2.0-only OR BSD-2-Clause) */
/*
 * Plain hosts while members are on separate switches: which segment each was heard on, and the plan to reach it by.
 * Called by take() (the way in) and steer() (the way out). Reads lb_members, lb_plans; writes lb_plain_hosts.
 */
#ifndef LB_PLAIN_BPF_H
#define LB_PLAIN_BPF_H

/*
 * A frame from a plain host arrived: notes on which slot, unless the host is known to be in this segment. All members of
 * one segment hear its broadcasts, so to note each slot would mean a write for each frame.
 */
static __always_inline void hear_plain_host(const struct lb_mac_key *host, __u32 slot, const struct lb_member *member)
{
	__u32 *heard = bpf_map_lookup_elem(&lb_plain_hosts, host);

	if (heard) {
		const struct lb_member *there = member_at(*heard);

		if (*heard == slot || (there && there->ifindex && there->elected == member->elected))
			return;
	}
	/* No host has such an address. */
	if (is_multicast(&host->mac) || is_zero_mac(&host->mac))
		return;
	bpf_map_update_elem(&lb_plain_hosts, host, &slot, BPF_ANY);
}

/* The segment of a plain host, named by the slot of its elected member; LB_NO_SLOT if the host has not been heard. */
static __always_inline __u32 segment_of(const struct lb_mac_key *host)
{
	/* Linux 6.1 takes no key from what a caller's pointer leads to. */
	struct lb_mac_key key = *host;
	__u32 *heard = bpf_map_lookup_elem(&lb_plain_hosts, &key);
	const struct lb_member *member = heard ? member_at(*heard) : NULL;

	return member && member->ifindex ? member->elected : LB_NO_SLOT;
}

/* The plan for the plain hosts of a segment; where it is empty, the one over all members. */
static __always_inline __u32 segment_plan(__u32 elected)
{
	__u32 number = LB_PLAIN_PLAN_FIRST + elected;
	const struct lb_plan *plan = bpf_map_lookup_elem(&lb_plans, &number);

	return plan && plan->n_lanes ? number : 0;
}

#endif
