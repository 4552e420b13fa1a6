/* SPDX-License-Identifier: (GPL-2.0-only OR BSD-2-Clause) */
/*
 * The SACK option of a TCP header (RFC 2018): reads it, and removes blocks. Reads no map; writes to the frame in
 * keep_blocks() only. Called by damping.
 */
#ifndef LB_SACK_BPF_H
#define LB_SACK_BPF_H

#define TCP_OPTIONS_BYTES_MAX 40
#define TCP_OPTION_END 0
#define TCP_OPTION_NOP 1
#define TCP_OPTION_SACK 5
#define SACK_BLOCKS_MAX 4

static __always_inline int before(__u32 a, __u32 b)
{
	return (__s32)(a - b) < 0;
}

/* A walk over the options; bpf_loop keeps it small for the verifier. */
struct option_walk {
	__u8 options[TCP_OPTIONS_BYTES_MAX + 8]; /* zero behind their end */
	__u32 bytes;
	__u32 at;
	__u32 sack_at;
	__u32 sack_bytes; /* 0: none found */
};

struct sack_view {
	__u32 at; /* offset of the option in the TCP header; 0: none */
	__u32 n;
	__u32 left[SACK_BLOCKS_MAX];
	__u32 right[SACK_BLOCKS_MAX];
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

static __always_inline int load_options(struct __sk_buff *skb, const struct tcp_view *view, __u8 *options)
{
	__u32 bytes = view->header - sizeof(struct tcphdr);

	/*
	 * Options come in words of four bytes. Kept apart, since old verifiers learn nothing from a joined comparison, nor
	 * of a copy that was put on the stack before: so this is no copy.
	 */
	asm volatile("" : "+r"(bytes));
	if (bytes < 4)
		return 0;
	asm volatile("" : "+r"(bytes));
	if (bytes > TCP_OPTIONS_BYTES_MAX)
		return 0;
	return !bpf_skb_load_bytes(skb, view->tcp_at + sizeof(struct tcphdr), options, bytes);
}

/* 0: there is none. */
GLOBAL int read_sack(struct __sk_buff *skb, const struct tcp_view *view, struct sack_view *sack)
{
	struct option_walk walk = {};

	if (!view || !sack)
		return 0;
	__builtin_memset(sack, 0, sizeof(*sack));
	if (!load_options(skb, view, walk.options))
		return 0;
	walk.bytes = view->header - sizeof(struct tcphdr);
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

/* Whether one block reports all of this. */
static __always_inline int is_whole(const struct sack_view *sack, __u32 start, __u32 end)
{
#pragma unroll
	for (__u32 i = 0; i < SACK_BLOCKS_MAX; i++)
		if (i < sack->n && !before(start, sack->left[i]) && !before(sack->right[i], end))
			return 1;
	return 0;
}

/*
 * Keeps the blocks of `keep` (a bit each) in the option, replaces the others by padding and updates the checksum.
 * A frame that cannot be changed stays as it is.
 */
static __always_inline void keep_blocks(struct __sk_buff *skb, const struct tcp_view *view,
					const struct sack_view *sack, __u32 keep)
{
	__u8 options[TCP_OPTIONS_BYTES_MAX] = {}, head[2] = { TCP_OPTION_NOP, TCP_OPTION_NOP };
	const __u64 padding = 0x0101010101010101ull;
	__u32 at = view->tcp_at + sack->at, kept = 0;
	__s64 change;

	if (!load_options(skb, view, options))
		return;
	change = bpf_csum_diff((__be32 *)options, sizeof(options), NULL, 0, 0);
	at += 2;
#pragma unroll
	for (__u32 i = 0; i < SACK_BLOCKS_MAX; i++) {
		__be32 block[2] = { bpf_htonl(sack->left[i]), bpf_htonl(sack->right[i]) };

		if (i >= sack->n || !(keep & 1u << i))
			continue;
		if (bpf_skb_store_bytes(skb, at, block, sizeof(block), 0))
			return;
		at += sizeof(block);
		kept++;
	}
#pragma unroll
	for (__u32 i = 0; i < SACK_BLOCKS_MAX; i++) {
		if (kept + i >= sack->n)
			continue;
		if (bpf_skb_store_bytes(skb, at, &padding, sizeof(padding), 0))
			return;
		at += sizeof(padding);
	}
	if (kept) {
		head[0] = TCP_OPTION_SACK;
		head[1] = 2 + 8 * kept;
	}
	if (bpf_skb_store_bytes(skb, view->tcp_at + sack->at, head, sizeof(head), 0))
		return;
	if (!load_options(skb, view, options))
		return;
	change = bpf_csum_diff(NULL, 0, (__be32 *)options, sizeof(options), change);
	bpf_l4_csum_replace(skb, view->tcp_at + offsetof(struct tcphdr, check), 0, change, 0);
}

#endif
