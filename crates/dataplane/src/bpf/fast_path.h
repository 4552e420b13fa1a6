/* SPDX-License-Identifier: (GPL-2.0-only OR BSD-2-Clause) */
/*
 * What the programs of a fabric's fast path and the daemon share; the daemon's side is generated from this file. Numbers are in host byte order, MACs and IPv6 addresses in wire order.
 */
#ifndef LB_FAST_PATH_H
#define LB_FAST_PATH_H

#include <linux/types.h>

/* Nodes of one fabric. */
#define LB_NODES_MAX 512
/* Headers of a segment behind its Ethernet header, at most: IP and TCP with options, and those of a tunnel before them. */
#define LB_SEGMENT_HEADERS 200
/* Options of TCP that are looked at in one header. */
#define LB_TCP_OPTIONS_MAX 16
/* No connection gets segments that are shorter than this: that a host of IPv4 always takes (RFC 9293, section 3.7.1). */
#define LB_MSS_MIN 536

/* What does not change while the node runs. */
struct lb_path_config {
	/* The address that is derived for this node. */
	__u8 mac[6];
	/* Whether nodes have IPv6 addresses. */
	__u8 v6;
	__u8 pad;
	/* The UDP port of VXLAN. */
	__u16 port;
	__u16 pad2;
	/* The fabric's interface. */
	__u32 tap;
	/* The VXLAN device. */
	__u32 vxlan;
	/* This node's own address: IPv4 in the first word, in host order; IPv6 in all four, in wire order. */
	__u32 local[4];
};

/* The path to a peer. */
struct lb_path_out {
	/* As in lb_path_config. */
	__u32 remote[4];
	/* What the peer wants its frames to carry. Network 0: the path is closed, but may open. */
	__u32 network;
	__u32 group;
	/* The longest frame that the path takes, and that the interface sends, both with the Ethernet header, in bytes. */
	__u32 room;
	__u32 frame;
};

/* The path from a peer. */
struct lb_path_in {
	/* As in lb_path_config. */
	__u32 remote[4];
	/* What its frames must carry. */
	__u32 network;
	__u32 group;
};

/* What went by it, for each peer. */
struct lb_path_counts {
	__u64 tx_frames;
	__u64 tx_bytes;
	__u64 rx_frames;
	__u64 rx_bytes;
	/* Frames that ask whether they arrive. */
	__u64 probes;
};

/*
 * Why a frame did not go by it, or was dropped. Numbers are never reused; X as in LB_REASONS (intf.h): what passes goes
 * on to the queues, or came early to the interface.
 */
#define LB_PATH_REASONS(X) \
	X(0, LONG, PASS, "frames that went by the queues because the path takes less") \
	X(1, REFUSED, PASS, "frames that went by the queues because the kernel did not take their tag") \
	X(2, DROP_SHORT, DROP, "what came to the VXLAN device and was no frame in VXLAN") \
	X(3, DROP_MAC, DROP, "frames whose addresses are not those of another node and of this one") \
	X(4, DROP_TAG, DROP, "frames of a node that is not up, or without the tag that it was given") \
	X(5, DROP_ADDRESS, DROP, "frames that came from another address than their node's") \
	X(6, DROP_DEAD, DROP, "frames that came while no daemon ran") \
	X(7, EARLY, PASS, "frames received by VXLAN that were taken from their packets before IP and UDP")

#define LB_PATH_REASON_ENUM(number, name, verdict, sentence) LB_PATH_##name = number,
enum lb_path_reason { LB_PATH_REASONS(LB_PATH_REASON_ENUM) LB_PATH_REASONS_END };
#undef LB_PATH_REASON_ENUM

#endif
