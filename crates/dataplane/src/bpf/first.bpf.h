/* SPDX-License-Identifier: (GPL-2.0-only OR BSD-2-Clause) */
/*
 * Precedence: frames of some classes leave before others that wait in the queue of the same member. They get the priority that
 * queueing disciplines know as interactive; the daemon sees to one on each member that heeds it (pfifo_fast, net/sched/sch_generic.c).
 * Reads lb_precedence; writes lb_first and the counts of what had no precedence.
 */
#ifndef LB_FIRST_BPF_H
#define LB_FIRST_BPF_H

/* TC_PRIO_INTERACTIVE and TC_PRIO_BESTEFFORT (linux/pkt_sched.h). */
#define PRIORITY_FIRST 6
#define PRIORITY_OTHERS 0

/*
 * Whether a class with precedence may have it on a member now. All classes together have it for nine tenths of what the member
 * carries, so that others never wait for ever. Whoever sends more waits like others for a while: with a frame now before and now
 * behind those in the queue, its frames would come out of order again and again. CPUs that meet here may miss a few frames.
 */
static __always_inline int may_go_first(struct __sk_buff *skb, __u32 slot, __u32 kbit)
{
	struct lb_first *first = bpf_map_lookup_elem(&lb_first, &slot);
	__u64 now = bpf_ktime_get_ns(), paid;

	if (!first || now < first->waits_until_ns)
		return 0;
	if (!kbit)
		return 1;
	paid = first->paid_until_ns > now ? first->paid_until_ns : now;
	/* Bits over kbit/s are ms; a tenth is for others. */
	paid += (__u64)skb->len * 80000000 / 9 / kbit;
	if (paid - now > LB_FIRST_BURST_NS) {
		first->waits_until_ns = now + LB_FIRST_WAIT_NS;
		return 0;
	}
	first->paid_until_ns = paid;
	return 1;
}

/* Gives a frame that leaves by a member its precedence, if it has one. */
GLOBAL int go_first(struct __sk_buff *skb, __u32 class, __u32 slot)
{
	__u32 zero = 0;
	const struct lb_precedence *precedence = bpf_map_lookup_elem(&lb_precedence, &zero);
	struct lb_count *over;

	if (!precedence || !(precedence->classes & 1u << (class & (LB_CLASSES_MAX - 1))))
		return 0;
	if (may_go_first(skb, slot, precedence->kbit[slot & (LB_MEMBERS_MAX - 1)])) {
		skb->priority = PRIORITY_FIRST;
		return 1;
	}
	skb->priority = PRIORITY_OTHERS;
	over = bpf_map_lookup_elem(&lb_class_over, &class);
	if (over)
		add_count(over, skb);
	return 0;
}

#endif
