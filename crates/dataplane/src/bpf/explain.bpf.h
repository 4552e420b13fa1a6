/* SPDX-License-Identifier: (GPL-2.0-only OR BSD-2-Clause) */
/*
 * Frames that are only asked about (BPF_PROG_TEST_RUN): they take the way of all others, but nothing is counted, remembered or
 * sent, and they bring back why (explain.h). Called by lb_egress and by all on its way that would leave a trace.
 */
#ifndef LB_EXPLAIN_BPF_H
#define LB_EXPLAIN_BPF_H

/* Families of sockets. */
#define AF_UNSPEC 0
#define AF_INET 2
#define AF_INET6 10

/*
 * Whether the kernel made this frame for a test run (net/bpf/test_run.c, bpf_prog_test_run_skb): its socket is of no protocol, and
 * of the frame's family or, for a frame with a VLAN tag, of none. Besides only the socket of a TAP is like that, and neither a guest
 * nor a host can write the control block, which has the mark twice.
 */
GLOBAL int is_of_test_run(struct __sk_buff *skb)
{
	struct bpf_sock *sk = skb->sk;

	if (!sk || skb->cb[0] != LB_EXPLAIN)
		return 0;
	sk = bpf_sk_fullsock(sk);
	return sk && !sk->protocol &&
	       (sk->family == AF_INET || sk->family == AF_INET6 || sk->family == AF_UNSPEC);
}

/*
 * One comparison for all other frames. That word may hold anything there, left by whoever had the buffer before, so it is not
 * enough.
 */
static __always_inline int is_explained(struct __sk_buff *skb)
{
	return __builtin_expect(skb->cb[4] == LB_EXPLAIN, 0) && is_of_test_run(skb);
}

/* A lane, why it is taken, and slots that the frame may not leave by now. As an index it counts by its low bits alone (index_of). */
static __always_inline __u32 because(__u32 lane, enum lb_why why, __u32 avoided)
{
	return lane | why << LB_EXPLAIN_WHY_SHIFT | avoided << LB_EXPLAIN_AVOIDED_SHIFT;
}

#endif
