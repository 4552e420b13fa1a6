// SPDX-License-Identifier: (GPL-2.0-only OR BSD-2-Clause)
/*
 * A port of the lab's switch, or one end of the lab's cable.
 *
 * lab_port_in sits on the port's tc ingress: frames that come in from the host.
 * lab_port_out sits on its tc egress: frames on their way to the host, before the port's output queue (tbf).
 *
 * veth keeps a sender's socket charged until its frame is consumed, across the switch and the receiver's queue. A
 * real switch gives no such back-pressure: it drops. So every frame that comes in goes on as a clone, which has no
 * socket, and the original ends here.
 *
 * Reads ports (written by port.rs), writes counts (read by port.rs) and learned (its own).
 */
#include <linux/bpf.h>
#include <linux/pkt_cls.h>
#include <bpf/bpf_helpers.h>

#define LAB_PORTS_MAX 1024
#define LAB_MACS_MAX 8192

/* Marks the clone on its second way through ingress; marks do not survive a change of namespace, so hosts can't set it. */
#define LAB_SEEN 0x1ab5ee01

/* What port.rs asks of one port. Rates are in parts of a million. */
struct lab_port {
	__u32 cut_in;       /* drop all that comes in from the host */
	__u32 cut_out;      /* drop all that goes out to the host */
	__u32 loss_in_ppm;  /* drop at random what comes in */
	__u32 loss_out_ppm; /* drop at random what goes out */
	__u32 mark_out_ppm; /* set CE at random on ECN-capable packets that go out */
	__u32 cable;        /* the port at the other end of a cable, or 0 in a switch */
	__u32 sticky;       /* the first port that a MAC is seen on keeps it */
	__u32 keep_socket;  /* let the frame itself pass: back-pressure as veth has it */
};
_Static_assert(sizeof(struct lab_port) == 32, "port.rs writes 8 words");

/* What one port has seen; frames count the segments of a GSO buffer, bytes all their headers. */
struct lab_count {
	__u64 in_frames;
	__u64 in_bytes;
	__u64 out_frames;
	__u64 out_bytes;
	__u64 cut;
	__u64 lost;
	__u64 marked;
	__u64 flooded;
	__u64 backlog;
};
_Static_assert(sizeof(struct lab_count) == 72, "port.rs reads 9 words");

/* written by user space / read by both programs; key: interface index */
struct {
	__uint(type, BPF_MAP_TYPE_HASH);
	__uint(max_entries, LAB_PORTS_MAX);
	__type(key, __u32);
	__type(value, struct lab_port);
} ports SEC(".maps");

/* written by both programs / read by user space; key: interface index */
struct {
	__uint(type, BPF_MAP_TYPE_PERCPU_HASH);
	__uint(max_entries, LAB_PORTS_MAX);
	__type(key, __u32);
	__type(value, struct lab_count);
} counts SEC(".maps");

/* where a source MAC was seen, as the bridge learns it; written by lab_port_in / read by lab_port_out */
struct {
	__uint(type, BPF_MAP_TYPE_LRU_HASH);
	__uint(max_entries, LAB_MACS_MAX);
	__type(key, __u64);
	__type(value, __u32);
} learned SEC(".maps");

static __always_inline int chance(__u32 ppm)
{
	return ppm && (((__u64)bpf_get_prandom_u32() * 1000000) >> 32) < ppm;
}

static __always_inline __u64 segments(const struct __sk_buff *skb)
{
	return skb->gso_segs ? skb->gso_segs : 1;
}

static __always_inline __u64 mac_key(const __u8 *mac)
{
	__u64 key = 0;

	for (int i = 0; i < 6; i++)
		key = key << 8 | mac[i];
	return key;
}

static __always_inline void learn(const struct __sk_buff *skb, __u32 port, __u32 sticky)
{
	const __u8 *data = (void *)(long)skb->data, *end = (void *)(long)skb->data_end;
	__u32 *known;
	__u64 key;

	if (data + 14 > end)
		return;
	key = mac_key(data + 6);
	known = bpf_map_lookup_elem(&learned, &key);
	if (known && (*known == port || sticky))
		return;
	bpf_map_update_elem(&learned, &key, &port, BPF_ANY);
}

/* A unicast frame on its way to a port where its receiver was never seen: the switch did not know better. */
static __always_inline int is_flood(const struct __sk_buff *skb, __u32 port)
{
	const __u8 *data = (void *)(long)skb->data, *end = (void *)(long)skb->data_end;
	const __u32 *known;
	__u64 key;

	if (data + 14 > end || data[0] & 1)
		return 0;
	key = mac_key(data);
	known = bpf_map_lookup_elem(&learned, &key);
	return !known || *known != port;
}

SEC("tc")
int lab_port_in(struct __sk_buff *skb)
{
	__u32 port = skb->ifindex;
	const struct lab_port *conf;
	struct lab_count *count;
	long failed;

	if (skb->mark == LAB_SEEN) {
		skb->mark = 0;
		return TC_ACT_OK;
	}
	conf = bpf_map_lookup_elem(&ports, &port);
	count = bpf_map_lookup_elem(&counts, &port);
	if (!conf || !count)
		return TC_ACT_OK;
	count->in_frames += segments(skb);
	count->in_bytes += skb->wire_len;
	if (conf->cut_in) {
		count->cut += segments(skb);
		return TC_ACT_SHOT;
	}
	if (chance(conf->loss_in_ppm)) {
		count->lost += segments(skb);
		return TC_ACT_SHOT;
	}
	learn(skb, port, conf->sticky);
	if (conf->cable) {
		failed = bpf_clone_redirect(skb, conf->cable, 0);
	} else if (conf->keep_socket) {
		return TC_ACT_OK;
	} else {
		skb->mark = LAB_SEEN;
		failed = bpf_clone_redirect(skb, port, BPF_F_INGRESS);
	}
	/* A cable's far end counts its own drops in its tbf; here only the CPU's backlog can be full. */
	if (failed && !conf->cable)
		count->backlog += segments(skb);
	return TC_ACT_STOLEN;
}

SEC("tc")
int lab_port_out(struct __sk_buff *skb)
{
	__u32 port = skb->ifindex;
	const struct lab_port *conf = bpf_map_lookup_elem(&ports, &port);
	struct lab_count *count = bpf_map_lookup_elem(&counts, &port);

	if (!conf || !count)
		return TC_ACT_OK;
	count->out_frames += segments(skb);
	count->out_bytes += skb->wire_len;
	if (!conf->cable && is_flood(skb, port))
		count->flooded += segments(skb);
	if (conf->cut_out) {
		count->cut += segments(skb);
		return TC_ACT_SHOT;
	}
	if (chance(conf->loss_out_ppm)) {
		count->lost += segments(skb);
		return TC_ACT_SHOT;
	}
	if (chance(conf->mark_out_ppm) && bpf_skb_ecn_set_ce(skb) > 0)
		count->marked += segments(skb);
	return TC_ACT_OK;
}

char LICENSE[] SEC("license") = "Dual BSD/GPL";
