/* SPDX-License-Identifier: (GPL-2.0-only OR BSD-2-Clause) */
/*
 * Latency: what the data path, the meter (latency.bpf.c) and its reader (crates/dataplane/src/latency.rs) share. The reader's
 * side is generated from this file. All times are in ns, or in ticks of 1 << LB_TICK_SHIFT ns.
 */
#ifndef LB_LATENCY_H
#define LB_LATENCY_H

#include <linux/stddef.h>
#include <linux/types.h>

/* From the send call to the bond, from the bond to the member's driver, and both together. */
enum lb_stage {
	LB_STAGE_APPLICATION = 0,
	LB_STAGE_DRIVER = 1,
	LB_STAGE_TOTAL = 2,
	LB_STAGES = 3,
};

/* Sums and buckets count ticks, so that a square fits 64 bits. */
#define LB_TICK_SHIFT 4
/* Longer latencies count as this long: 68.7 s. */
#define LB_TICKS_MAX 0xffffffffull
/*
 * Buckets: one for each value below 1 << LB_BUCKET_BITS ticks (256 ns), from there on as many for each power of two: none
 * is wider than a sixteenth of what is in it.
 */
#define LB_BUCKET_BITS 4
#define LB_BUCKETS ((32 - LB_BUCKET_BITS + 1) << LB_BUCKET_BITS)

/* Whose frames and sockets are measured: tracepoints see the whole machine. */
struct lb_meter {
	/* The bond's network namespace, SO_NETNS_COOKIE. */
	__u64 net_cookie;
	__u32 bond_ifindex;
	__u32 pad;
};

/* A sum that outgrows 64 bits. */
struct lb_wide {
	__u64 low;
	__u64 high;
};

/* One stage of one class on one CPU. Written by the meter, read by the daemon. */
struct lb_latency {
	__u64 count;
	__u64 min_ticks;
	__u64 max_ticks;
	struct lb_wide ticks;
	struct lb_wide square_ticks;
	__u64 buckets[LB_BUCKETS];
};

/*
 * What lb_egress leaves in a buffer, in the 20 bytes of its control block that belong to queueing disciplines
 * (qdisc_skb_cb.data, the cb[] of a tc program) and that nobody touches between the bond and the member's queue. Whoever
 * queues the buffer may overwrite it from its start on, so the tag comes last: no discipline of the kernel uses more
 * than 17 bytes.
 */
struct lb_stamp {
	__u32 ns_low;
	__u32 ns_high;
	__u32 mark; /* LB_STAMP_MARK | class */
	__u32 bond_ifindex;
	__u32 tag; /* stamp_tag() of the time; never 0 */
};

/* "lat" and the class, which no other user of these bytes writes. */
#define LB_STAMP_MARK 0x6c617400u
#define LB_STAMP_CLASS 0xffu

/* What a stamp is found by in the member's queue: unique among the buffers of the last 4 s. */
static __always_inline __u32 stamp_tag(__u64 ns)
{
	return (__u32)ns | 1;
}

_Static_assert(sizeof(struct lb_meter) == 16, "lb_meter");
_Static_assert(sizeof(struct lb_latency) == 7 * 8 + 8 * LB_BUCKETS, "lb_latency");
_Static_assert(sizeof(struct lb_stamp) == 20, "lb_stamp");

#endif
