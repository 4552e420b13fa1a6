// SPDX-License-Identifier: (GPL-2.0-only OR BSD-2-Clause)
/*
 * The fast path of a fabric: two programs on the tc hooks that move frames between the fabric's interface and a VXLAN device
 * whose frames carry their destination as metadata ("external"). They never enter user space.
 *
 *   lb_path_out   on the interface, egress: a frame to a peer that is up and takes it gets the peer's address and tag, and leaves by
 *                the VXLAN device; all others go on to the queues
 *   lb_path_in    on the VXLAN device, ingress: what carries the tag of a peer that is up comes in by the interface; nothing
 *                else comes in at all
 *
 * and where the kernel has tcx, early.bpf.h:
 *
 *   lb_path_early on the interface where packets to this node arrive: what lb_path_in does, before IP and UDP, for frames of TCP
 *                connections that end here
 *
 * They only follow tables that the daemon writes. While none runs, they move no frames.
 */
#include <linux/bpf.h>
#include <linux/if_ether.h>
#include <linux/if_packet.h>
#include <linux/in.h>
#include <linux/ip.h>
#include <linux/ipv6.h>
#include <linux/pkt_cls.h>
#include <linux/tcp.h>
#include <linux/udp.h>
#include <bpf/bpf_endian.h>
#include <bpf/bpf_helpers.h>

#include "fast_path.h"

/* struct vxlan_metadata, include/net/vxlan.h */
struct lb_vxlan_metadata {
	__u32 gbp;
};

/* Written by the daemon before it loads the programs. */
const volatile struct lb_path_config path SEC(".rodata.path") = {};

/* By node. A row is replaced whole: nobody sees half of one. */
struct {
	__uint(type, BPF_MAP_TYPE_HASH);
	__uint(map_flags, BPF_F_NO_PREALLOC);
	__uint(max_entries, LB_NODES_MAX);
	__type(key, __u32);
	__type(value, struct lb_path_out);
} lb_paths_out SEC(".maps");

struct {
	__uint(type, BPF_MAP_TYPE_HASH);
	__uint(map_flags, BPF_F_NO_PREALLOC);
	__uint(max_entries, LB_NODES_MAX);
	__type(key, __u32);
	__type(value, struct lb_path_in);
} lb_paths_in SEC(".maps");

struct {
	__uint(type, BPF_MAP_TYPE_PERCPU_ARRAY);
	__uint(max_entries, LB_NODES_MAX);
	__type(key, __u32);
	__type(value, struct lb_path_counts);
} lb_path_counts SEC(".maps");

struct {
	__uint(type, BPF_MAP_TYPE_PERCPU_ARRAY);
	__uint(max_entries, LB_PATH_REASONS_END);
	__type(key, __u32);
	__type(value, __u64);
} lb_path_reasons SEC(".maps");

/* As lb_holder in maps.bpf.h, but never an array: the kernel takes the socket out when the daemon dies, however it dies. */
struct {
	__uint(type, BPF_MAP_TYPE_XSKMAP);
	__uint(max_entries, 1);
	__type(key, __u32);
	__type(value, __u32);
} lb_path_holder SEC(".maps");

/* Counts a frame; the verdict of LB_PATH_REASONS. */
static __always_inline int count(enum lb_path_reason reason)
{
	__u32 key = reason;
	__u64 *counter = bpf_map_lookup_elem(&lb_path_reasons, &key);

	if (counter)
		++*counter;
#define LB_PASS TC_ACT_UNSPEC
#define LB_DROP TC_ACT_SHOT
#define LB_PATH_REASON_VERDICT(number, name, verdict, sentence) \
	case LB_PATH_##name: \
		return LB_##verdict;
	switch (reason) {
		LB_PATH_REASONS(LB_PATH_REASON_VERDICT)
	default:
		return LB_DROP;
	}
#undef LB_PATH_REASON_VERDICT
}

static __always_inline int lives(void)
{
	__u32 zero = 0;

	return bpf_map_lookup_elem(&lb_path_holder, &zero) != NULL;
}

static __always_inline __u64 flags(void)
{
	return path.v6 ? BPF_F_TUNINFO_IPV6 : 0;
}

/* The node that a derived address of this fabric belongs to; LB_NODES_MAX if it is none. */
static __always_inline __u32 node_of(const __u8 *mac)
{
	__u32 node = mac[4] << 8 | mac[5];

	for (int i = 0; i < 4; i++)
		if (mac[i] != path.mac[i])
			return LB_NODES_MAX;
	return node < LB_NODES_MAX ? node : LB_NODES_MAX;
}

static __always_inline int is_own(const __u8 *mac)
{
	for (int i = 0; i < 6; i++)
		if (mac[i] != path.mac[i])
			return 0;
	return 1;
}

static __always_inline int is_zero(const __u8 *mac)
{
	return !(mac[0] | mac[1] | mac[2] | mac[3] | mac[4] | mac[5]);
}

#include "segments.bpf.h"

SEC("tcx/egress")
int lb_path_out(struct __sk_buff *skb)
{
	const struct ethhdr *eth = (void *)(long)skb->data;
	struct lb_vxlan_metadata metadata = {};
	const struct lb_path_out *out;
	struct lb_path_counts *counts;
	struct bpf_tunnel_key key = {};
	__u32 node, tcp;
	__u64 bytes;

	/* With a tag of a VLAN beside it, or in it, a frame is longer than the interface's MTU says. */
	if ((void *)(eth + 1) > (void *)(long)skb->data_end || skb->vlan_present ||
	    eth->h_proto == bpf_htons(ETH_P_8021Q) || eth->h_proto == bpf_htons(ETH_P_8021AD))
		return TC_ACT_UNSPEC;
	//= docs/fabric.md#7.5
	node = node_of(eth->h_dest);
	if (node == LB_NODES_MAX || !is_own(eth->h_source))
		return TC_ACT_UNSPEC;
	out = bpf_map_lookup_elem(&lb_paths_out, &node);
	if (!out || !lives())
		return TC_ACT_UNSPEC;
	tcp = tcp_at(skb);
	//= docs/fabric.md#7.9
	if (tcp && out->room < out->frame)
		clamp(skb, tcp, out->room);
	if (!out->network)
		return TC_ACT_UNSPEC;
	/* Short frames of a flow must not overtake its long ones: only TCP's are all short. */
	if ((!tcp && out->room < out->frame) || longest(skb, tcp, out) > out->room)
		return count(LB_PATH_LONG);
	key.tunnel_id = out->network;
	key.tunnel_ttl = 64;
	for (int i = 0; i < 4; i++) {
		key.remote_ipv6[i] = out->remote[i];
		key.local_ipv6[i] = path.local[i];
	}
	metadata.gbp = out->group;
	bytes = skb->len;
	/* IPv6 wants a checksum of the outer datagram, IPv4 does without, as the kernel's own VXLAN does. */
	if (bpf_skb_set_tunnel_key(skb, &key, sizeof(key),
				   flags() | BPF_F_DONT_FRAGMENT | (path.v6 ? 0 : BPF_F_ZERO_CSUM_TX)) ||
	    bpf_skb_set_tunnel_opt(skb, &metadata, sizeof(metadata)))
		return count(LB_PATH_REFUSED);
	counts = bpf_map_lookup_elem(&lb_path_counts, &node);
	if (counts) {
		counts->tx_frames++;
		counts->tx_bytes += bytes;
	}
	return bpf_redirect(path.vxlan, 0);
}

SEC("tcx/ingress")
int lb_path_in(struct __sk_buff *skb)
{
	const struct ethhdr *eth = (void *)(long)skb->data;
	struct lb_vxlan_metadata metadata = {};
	const struct lb_path_in *in;
	struct lb_path_counts *counts;
	struct bpf_tunnel_key key = {};
	__u32 node;
	int probes;

	if ((void *)(eth + 1) > (void *)(long)skb->data_end)
		return count(LB_PATH_DROP_SHORT);
	if (!lives())
		return count(LB_PATH_DROP_DEAD);
	//= docs/fabric.md#7.6
	node = node_of(eth->h_source);
	probes = is_zero(eth->h_dest);
	if (node == LB_NODES_MAX || !(probes || is_own(eth->h_dest)))
		return count(LB_PATH_DROP_MAC);
	if (bpf_skb_get_tunnel_key(skb, &key, sizeof(key), flags()))
		return count(LB_PATH_DROP_SHORT);
	in = bpf_map_lookup_elem(&lb_paths_in, &node);
	/* Without a group there is no such option. */
	if (!in || in->network != key.tunnel_id ||
	    bpf_skb_get_tunnel_opt(skb, &metadata, sizeof(metadata)) < 0 || (__u16)metadata.gbp != in->group)
		return count(LB_PATH_DROP_TAG);
	if (key.remote_ipv6[0] != in->remote[0] ||
	    (path.v6 && (key.remote_ipv6[1] != in->remote[1] || key.remote_ipv6[2] != in->remote[2] ||
			key.remote_ipv6[3] != in->remote[3])))
		return count(LB_PATH_DROP_ADDRESS);
	counts = bpf_map_lookup_elem(&lb_path_counts, &node);
	if (!counts)
		return count(LB_PATH_DROP_MAC);
	//= docs/fabric.md#7.7
	if (probes) {
		counts->probes++;
		return TC_ACT_SHOT;
	}
	counts->rx_frames++;
	counts->rx_bytes += skb->len;
	return bpf_redirect(path.tap, BPF_F_INGRESS);
}

#include "early.bpf.h"

char LICENSE[] SEC("license") = "Dual BSD/GPL";
