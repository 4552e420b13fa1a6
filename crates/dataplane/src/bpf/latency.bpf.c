// SPDX-License-Identifier: (GPL-2.0-only OR BSD-2-Clause)
/*
 * The meter: where the time of a frame goes, for one bond, in two stages and in all, by class.
 *
 *   application   from the send call to the moment the bond has chosen a member
 *   driver        from there until the member's driver is given the frame: the member's queueing discipline
 *   total         from the send call until the member's driver is given the frame
 *
 *   send call -> lb_inet_sendmsg      notes the time for the socket (calls.bpf.h); or lb_syscall, see there
 *   bond      -> lb_egress            stamps the buffer (stamp.bpf.h, in the data path)
 *   member    -> lb_queued            counts the stage `application`, remembers the stamp
 *   driver    -> lb_started           counts the stages `driver` and `total`
 *
 * Counted are buffers: one of several segments counts once, in `driver` when its last segment is in the driver. A frame
 * without a send call of its own (an ACK, a retransmission, a forwarded frame, an answer of the kernel) counts in `driver`
 * only; one that the member's discipline dropped, in `application` only; all others in each. Further copies of a frame are not counted.
 */
#include <linux/bpf.h>
#include <linux/in.h>
#include <linux/ip.h>
#include <linux/ipv6.h>
#include <linux/tcp.h>
#include <linux/unistd.h>
#include <bpf/bpf_core_read.h>
#include <bpf/bpf_endian.h>
#include <bpf/bpf_helpers.h>
#include <bpf/bpf_tracing.h>

#include "intf.h"
#include "latency.h"
#include "kernel.bpf.h"

/* Written by the daemon before it loads the programs. */
const volatile struct lb_meter meter SEC(".rodata.meter") = {};

#include "calls.bpf.h"

/* Buffers between the bond and the members' drivers, or there already; the oldest makes room. */
#define WAITING_MAX 16384

struct waiting {
	__u64 ns;
	/* The send call; 0 if there was none. */
	__u64 called;
	/* The member, as an address to compare. */
	__u64 dev;
	__u32 class;
	/* Segments that are not in the driver yet; 0 once the buffer is counted. */
	__u32 segments;
};

/* By tag, which the segments of a buffer inherit if it is cut up on the way. */
struct {
	__uint(type, BPF_MAP_TYPE_LRU_HASH);
	__uint(max_entries, WAITING_MAX);
	__type(key, __u32);
	__type(value, struct waiting);
} lb_waiting SEC(".maps");

/* By class * LB_STAGES + stage. */
struct {
	__uint(type, BPF_MAP_TYPE_PERCPU_ARRAY);
	__uint(max_entries, LB_CLASSES_MAX * LB_STAGES);
	__type(key, __u32);
	__type(value, struct lb_latency);
} lb_latencies SEC(".maps");

static __always_inline void add_wide(struct lb_wide *sum, __u64 value)
{
	sum->low += value;
	if (sum->low < value)
		sum->high++;
}

/* The number of the highest bit of a value that is not 0: BPF has no instruction for it. */
static __always_inline __u32 highest_bit(__u32 value)
{
	__u32 bit = 0;

	for (__u32 step = 16; step; step >>= 1)
		if (value >> step) {
			value >>= step;
			bit += step;
		}
	return bit;
}

static __always_inline __u32 bucket_of(__u32 ticks)
{
	__u32 exponent;

	if (ticks < 1 << LB_BUCKET_BITS)
		return ticks;
	exponent = highest_bit(ticks) - LB_BUCKET_BITS;
	return (exponent << LB_BUCKET_BITS) + (ticks >> exponent);
}

static __always_inline void account(__u32 class, enum lb_stage stage, __u64 ns)
{
	__u32 key = class * LB_STAGES + stage;
	struct lb_latency *latency = bpf_map_lookup_elem(&lb_latencies, &key);
	__u64 ticks = ns >> LB_TICK_SHIFT, bucket;

	if (!latency)
		return;
	if (ticks > LB_TICKS_MAX)
		ticks = LB_TICKS_MAX;
	if (!latency->count || ticks < latency->min_ticks)
		latency->min_ticks = ticks;
	if (ticks > latency->max_ticks)
		latency->max_ticks = ticks;
	latency->count++;
	add_wide(&latency->ticks, ticks);
	add_wide(&latency->square_ticks, ticks * ticks);
	bucket = bucket_of(ticks);
	/* In one register, or the verifier of 6.1 forgets the comparison. */
	asm volatile("" : "+r"(bucket));
	if (bucket < LB_BUCKETS)
		latency->buckets[bucket]++;
}

static __always_inline int read_stamp(const struct sk_buff *skb, struct lb_stamp *stamp)
{
	const char *at = skb->cb + bpf_core_field_offset(struct qdisc_skb_cb, data);

	return bpf_probe_read_kernel(stamp, sizeof(*stamp), at);
}

static __always_inline __u32 segments_of(const struct sk_buff *skb)
{
	const struct skb_shared_info *shared = (const void *)(skb->head + skb->end);
	__u32 segments = BPF_CORE_READ(shared, gso_segs);

	return segments ? segments : 1;
}

static __always_inline int is_our_namespace(const struct net_device *dev)
{
	return dev->nd_net.net->net_cookie == meter.net_cookie;
}

/* Send calls, first method: where the Internet protocols take them in. Kernels without function entry hooks refuse these. */
SEC("fentry/inet_sendmsg")
int BPF_PROG(lb_inet_sendmsg, struct socket *socket)
{
	note_call(socket->sk);
	return 0;
}

SEC("fentry/inet6_sendmsg")
int BPF_PROG(lb_inet6_sendmsg, struct socket *socket)
{
	note_call(socket->sk);
	return 0;
}

/* sendfile() and splice(), before 6.5. */
SEC("fentry/inet_sendpage")
int BPF_PROG(lb_inet_sendpage, struct socket *socket)
{
	note_call(socket->sk);
	return 0;
}

/* The second method: at the entry of every system call. It misses what io_uring and the kernel itself send. */
SEC("tp_btf/sys_enter")
int BPF_PROG(lb_syscall, struct pt_regs *registers, long number)
{
	switch (number) {
	case __NR_sendto:
	case __NR_sendmsg:
	case __NR_sendmmsg:
	case __NR_write:
	case __NR_writev:
	case __NR_sendfile:
		note_call(socket_of(FIRST_ARGUMENT(registers)));
		break;
	case __NR_splice:
		note_call(socket_of(THIRD_ARGUMENT(registers)));
		break;
	}
	return 0;
}

SEC("tp_btf/net_dev_queue")
int BPF_PROG(lb_queued, struct sk_buff *skb)
{
	struct waiting waiting = {}, *known;
	struct lb_stamp stamp;
	__u32 class;
	__u64 called;

	if (read_stamp(skb, &stamp) || (stamp.mark & ~LB_STAMP_CLASS) != LB_STAMP_MARK ||
	    stamp.bond_ifindex != meter.bond_ifindex || !is_our_namespace(skb->dev))
		return 0;
	waiting.ns = (__u64)stamp.ns_high << 32 | stamp.ns_low;
	class = stamp.mark & LB_STAMP_CLASS;
	if (stamp.tag != stamp_tag(waiting.ns))
		return 0;
	/* A member that is itself stacked on another interface queues the buffer there once more. */
	known = bpf_map_lookup_elem(&lb_waiting, &stamp.tag);
	if (known && known->ns == waiting.ns)
		return 0;
	called = call_of(skb);
	if (called && called <= waiting.ns) {
		account(class, LB_STAGE_APPLICATION, waiting.ns - called);
		waiting.called = called;
	}
	waiting.dev = (__u64)skb->dev;
	waiting.class = class;
	waiting.segments = segments_of(skb);
	bpf_map_update_elem(&lb_waiting, &stamp.tag, &waiting, BPF_ANY);
	return 0;
}

SEC("tp_btf/net_dev_start_xmit")
int BPF_PROG(lb_started, const struct sk_buff *skb, const struct net_device *dev)
{
	struct waiting *waiting;
	struct lb_stamp stamp;
	__u32 segments;
	__u64 now;

	if (read_stamp(skb, &stamp) || !stamp.tag)
		return 0;
	waiting = bpf_map_lookup_elem(&lb_waiting, &stamp.tag);
	if (!waiting || !waiting->segments || waiting->dev != (__u64)dev)
		return 0;
	segments = segments_of(skb);
	if (waiting->segments > segments) {
		__sync_fetch_and_sub(&waiting->segments, segments);
		return 0;
	}
	waiting->segments = 0;
	now = bpf_ktime_get_ns();
	account(waiting->class, LB_STAGE_DRIVER, now - waiting->ns);
	if (waiting->called)
		account(waiting->class, LB_STAGE_TOTAL, now - waiting->called);
	return 0;
}

char LICENSE[] SEC("license") = "Dual BSD/GPL";
