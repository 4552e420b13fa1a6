/* SPDX-License-Identifier: (GPL-2.0-only OR BSD-2-Clause) */
/*
 * The data path's part in measuring latency: while it is switched on, a buffer that leaves by a member tells when the
 * bond chose the member, and its class. The rest is done by latency.bpf.c, which is loaded only then.
 */
#ifndef LB_STAMP_BPF_H
#define LB_STAMP_BPF_H

static __always_inline void stamp(struct __sk_buff *skb, const struct lb_config *bond, __u32 class)
{
	__u64 now;

	if (!bond || !(bond->flags & LB_CONFIG_LATENCY))
		return;
	now = bpf_ktime_get_ns();
	skb->cb[0] = (__u32)now;
	skb->cb[1] = now >> 32;
	skb->cb[2] = LB_STAMP_MARK | class;
	skb->cb[3] = bond->bond_ifindex;
	skb->cb[4] = stamp_tag(now);
}

#endif
