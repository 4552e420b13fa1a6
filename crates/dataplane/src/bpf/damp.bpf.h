/* SPDX-License-Identifier: (GPL-2.0-only OR BSD-2-Clause) */
/*
 * Duplicate-ACK damping. Stripes of one flow arrive a little out of order; the receiver reports each gap with
 * SACK (RFC 2018), and the sender's RACK (RFC 8985), whose patience is a quarter of the smallest RTT, takes the
 * gap for a loss. Here the sender's own ingress holds such reports back until they mean something:
 *
 *  - a lane keeps its frames in order, so when data sent *later on the same lane* as the hole has arrived, the
 *    hole is a loss for certain and TCP is told at once;
 *  - a hole older than twice the skew seen so far is told too, since then it is not the lanes' doing;
 *  - any younger report is held back: the first ACK of a hole passes with its SACK blocks made unreadable (it
 *    moves the window), further ones say nothing else and are dropped.
 *
 * Always passed on: SYN, FIN, RST, data, changed windows, ECN echoes, DSACK blocks (RFC 2883), and an eighth
 * of a flow's ACKs. Only flows that were striped are in lb_flows, so no other flow is touched.
 * Writes lb_flows. Called by lb_egress (remember_stripe) and lb_ingress (damp).
 */
#ifndef LB_DAMP_BPF_H
#define LB_DAMP_BPF_H

#define TCP_OPTIONS_BYTES_MAX 40
#define TCP_OPTION_END 0
#define TCP_OPTION_NOP 1
#define TCP_OPTION_SACK 5
/* An experimental kind (RFC 4727) that receivers skip by its length. */
#define TCP_OPTION_UNREADABLE 253
#define SACK_BLOCKS_MAX 4
/* A flow whose buffers are shorter than this is not worth remembering: it finishes before it reorders. */
#define STRIPE_BYTES_MIN 1000
/* A TCP header with time stamps alone; a longer one may carry SACK. */
#define TCP_HEADER_PLAIN 32
/* A flow that has not been reordered yet is given this much skew, ns. */
#define SKEW_NS_FIRST (2 * 1000 * 1000)
/* Counters of a flow's ACKs are halved when so many were seen, so that they speak of the present. */
#define SHARE_WINDOW 1024

struct sack_view {
	__u32 at; /* offset of the option in the TCP header; 0: none */
	__u32 n;
	__u32 left[SACK_BLOCKS_MAX];
	__u32 right[SACK_BLOCKS_MAX];
};

static __always_inline int before(__u32 a, __u32 b)
{
	return (__s32)(a - b) < 0;
}

static __always_inline void remember_stripe(struct __sk_buff *skb, const struct tcp_view *view, __u32 lane)
{
	struct lb_flow *flow = bpf_map_lookup_elem(&lb_flows, &view->flow);
	struct lb_stripe *stripe;

	if (!flow) {
		__u32 zero = 0;
		struct lb_flow *empty = bpf_map_lookup_elem(&lb_empty_flow, &zero);

		if (!empty || skb->len < STRIPE_BYTES_MIN)
			return;
		empty->skew_ns = SKEW_NS_FIRST;
		bpf_map_update_elem(&lb_flows, &view->flow, empty, BPF_NOEXIST);
		flow = bpf_map_lookup_elem(&lb_flows, &view->flow);
		if (!flow)
			return;
	}
	stripe = &flow->stripes[flow->head++ & (LB_STRIPES_MAX - 1)];
	stripe->start = view->seq;
	stripe->end = view->seq + view->payload;
	stripe->lane = lane;
}

/* A walk over the options; bpf_loop keeps it small for the verifier. */
struct option_walk {
	__u8 options[TCP_OPTIONS_BYTES_MAX + 8]; /* zero behind their end */
	__u32 bytes;
	__u32 at;
	__u32 sack_at;
	__u32 sack_bytes; /* 0: none found */
};

static long step_option(__u32 i, struct option_walk *walk)
{
	__u32 at = walk->at;
	__u8 kind, length;

	if (at > TCP_OPTIONS_BYTES_MAX - 2 || at + 2 > walk->bytes)
		return 1;
	kind = walk->options[at];
	length = walk->options[at + 1];
	if (kind == TCP_OPTION_NOP) {
		walk->at = at + 1;
		return 0;
	}
	if (kind == TCP_OPTION_END || length < 2 || at + length > walk->bytes)
		return 1;
	if (kind == TCP_OPTION_SACK) {
		walk->sack_at = at;
		walk->sack_bytes = length;
		return 1;
	}
	walk->at = at + length;
	return 0;
}

static __always_inline int read_sack(struct __sk_buff *skb, const struct tcp_view *view, struct sack_view *sack)
{
	struct option_walk walk = {};
	__u32 bytes = view->header - sizeof(struct tcphdr);

	__builtin_memset(sack, 0, sizeof(*sack));
	if (!bytes || bytes > TCP_OPTIONS_BYTES_MAX)
		return 0;
	if (bpf_skb_load_bytes(skb, view->tcp_at + sizeof(struct tcphdr), walk.options, bytes))
		return 0;
	walk.bytes = bytes;
	bpf_loop(TCP_OPTIONS_BYTES_MAX, step_option, &walk, 0);
	sack->n = (walk.sack_bytes - 2) / 8;
	if (walk.sack_bytes < 10 || walk.sack_bytes != 2 + 8 * sack->n || sack->n > SACK_BLOCKS_MAX)
		return 0;
	sack->at = sizeof(struct tcphdr) + walk.sack_at;
#pragma unroll
	for (__u32 i = 0; i < SACK_BLOCKS_MAX; i++) {
		__be32 block[2];

		if (i >= sack->n)
			break;
		if (bpf_skb_load_bytes(skb, view->tcp_at + sack->at + 2 + sizeof(block) * i, block, sizeof(block)))
			return 0;
		sack->left[i] = bpf_ntohl(block[0]);
		sack->right[i] = bpf_ntohl(block[1]);
	}
	return 1;
}

/* RFC 2883: the first block reports a duplicate if it lies below the ACK or inside the second block. */
static __always_inline int is_dsack(const struct tcp_view *view, const struct sack_view *sack)
{
	if (before(sack->left[0], view->ack))
		return 1;
	return sack->n > 1 && !before(sack->left[0], sack->left[1]) && !before(sack->right[1], sack->right[0]);
}

static __always_inline int is_sacked(const struct sack_view *sack, __u32 seq)
{
#pragma unroll
	for (__u32 i = 0; i < SACK_BLOCKS_MAX; i++)
		if (i < sack->n && !before(seq, sack->left[i]) && before(seq, sack->right[i]))
			return 1;
	return 0;
}

/* The search for the lane of a hole, newest stripe first. */
struct proof_walk {
	const struct lb_flow *flow;
	const struct sack_view *sack;
	__u32 hole;
	__u32 generation;
	__u32 lanes_seen; /* lanes on which data younger than this point has arrived */
	int proven;
};

static long step_proof(__u32 i, struct proof_walk *walk)
{
	const struct lb_stripe *stripe = &walk->flow->stripes[(walk->flow->head - 1 - i) & (LB_STRIPES_MAX - 1)];
	__u32 bit = 1u << (stripe->lane & (LB_LANES_MAX - 1));

	if (!i)
		walk->generation = stripe->lane >> 4;
	/* Lanes of another plan are other lanes; an unused entry has no bytes. */
	if (stripe->lane >> 4 != walk->generation || stripe->start == stripe->end)
		return 1;
	if (!before(walk->hole, stripe->start) && before(walk->hole, stripe->end)) {
		walk->proven = !!(walk->lanes_seen & bit);
		return 1;
	}
	if (is_sacked(walk->sack, stripe->start))
		walk->lanes_seen |= bit;
	return 0;
}

/* Has a stripe arrived that left after the hole's, on the hole's own lane? */
static __always_inline int loss_is_proven(const struct lb_flow *flow, const struct sack_view *sack, __u32 hole)
{
	struct proof_walk walk = { .flow = flow, .sack = sack, .hole = hole };

	bpf_loop(LB_STRIPES_MAX, step_proof, &walk, 0);
	return walk.proven;
}

/* Makes the SACK option one that TCP skips, and mends the checksum. */
static __always_inline void mask_sack(struct __sk_buff *skb, const struct tcp_view *view, const struct sack_view *sack)
{
	/* The checksum runs over 16-bit words from the TCP header on. */
	__u32 word_at = view->tcp_at + (sack->at & ~1u);
	__u16 old, new;

	if (bpf_skb_load_bytes(skb, word_at, &old, sizeof(old)))
		return;
	new = old;
	if (sack->at & 1)
		((__u8 *)&new)[1] = TCP_OPTION_UNREADABLE;
	else
		((__u8 *)&new)[0] = TCP_OPTION_UNREADABLE;
	if (bpf_l4_csum_replace(skb, view->tcp_at + offsetof(struct tcphdr, check), old, new, sizeof(new)))
		return;
	bpf_skb_store_bytes(skb, word_at, &new, sizeof(new), 0);
}

/* The age up to which a hole is the lanes' doing, ns. */
static __always_inline __u64 patience(const struct lb_config *bond, const struct lb_flow *flow)
{
	__u64 ns = 2 * flow->skew_ns;

	if (ns < bond->damp_ns_min)
		return bond->damp_ns_min;
	return ns > bond->damp_ns_max ? bond->damp_ns_max : ns;
}

/* The ACK moved: what does the end of the hole teach about the lanes' skew? */
static __always_inline void end_hole(const struct lb_config *bond, struct lb_flow *flow, __u64 now)
{
	__u64 age = now - flow->hole_since_ns;

	if (!flow->told && age <= bond->damp_ns_max) {
		if (age > flow->skew_ns)
			flow->skew_ns = age;
		else
			flow->skew_ns -= (flow->skew_ns - age) >> 7;
	}
	flow->hole_since_ns = 0;
}

/* Decides about one segment that acknowledges a striped flow. Returns 0 where damping has no opinion. */
static __always_inline enum lb_reason damp(struct __sk_buff *skb, const struct lb_config *bond)
{
	struct lb_flow_key key;
	struct sack_view sack;
	struct tcp_view view;
	struct lb_flow *flow;
	__u64 now;

	if (!view_tcp(skb, &view) || (view.flags & (TCP_SYN | TCP_FIN | TCP_RST | TCP_ACK)) != TCP_ACK)
		return 0;
	/* Bulk data coming in acknowledges too, but with no gap to report it is of no interest here. */
	if (view.payload && view.header <= TCP_HEADER_PLAIN)
		return 0;
	__builtin_memcpy(key.source, view.flow.destination, sizeof(key.source));
	__builtin_memcpy(key.destination, view.flow.source, sizeof(key.destination));
	key.source_port = view.flow.destination_port;
	key.destination_port = view.flow.source_port;
	flow = bpf_map_lookup_elem(&lb_flows, &key);
	if (!flow)
		return 0;
	now = bpf_ktime_get_ns();
	if (flow->hole_since_ns && before(flow->hole, view.ack))
		end_hole(bond, flow, now);
	if (!read_sack(skb, &view, &sack)) {
		flow->window = view.window;
		return 0;
	}
	if (is_dsack(&view, &sack)) {
		/* TCP repaired what was not broken: the lanes differ by more than was thought. */
		flow->skew_ns = 2 * flow->skew_ns < bond->damp_ns_max ? 2 * flow->skew_ns : bond->damp_ns_max;
		return LB_RX_ACK_DSACK;
	}
	if (++flow->seen >= SHARE_WINDOW) {
		flow->seen >>= 1;
		flow->damped >>= 1;
	}
	if (!flow->hole_since_ns) {
		flow->hole_since_ns = now;
		flow->hole = view.ack;
		flow->told = 0;
		flow->window = view.window;
		if (loss_is_proven(flow, &sack, view.ack)) {
			flow->told = 1;
			return LB_RX_ACK_LOST;
		}
		mask_sack(skb, &view, &sack);
		return LB_RX_ACK_MASKED;
	}
	if (flow->told)
		return LB_RX_ACK_LOST;
	if (now - flow->hole_since_ns > patience(bond, flow)) {
		flow->told = 1;
		return LB_RX_ACK_OLD;
	}
	if (loss_is_proven(flow, &sack, view.ack)) {
		flow->told = 1;
		return LB_RX_ACK_LOST;
	}
	if (view.payload || view.window != flow->window || view.flags & (TCP_ECE | TCP_CWR)) {
		flow->window = view.window;
		mask_sack(skb, &view, &sack);
		return LB_RX_ACK_WINDOW;
	}
	if (8 * (flow->damped + 1) > 7 * flow->seen + 64) {
		mask_sack(skb, &view, &sack);
		return LB_RX_ACK_SHARE;
	}
	flow->damped++;
	return LB_RX_ACK_DAMPED;
}

#endif
