/* SPDX-License-Identifier: (GPL-2.0-only OR BSD-2-Clause) */
/* What policies by a hash share. Kernel bonding hashes the same fields (drivers/net/bonding/bond_main.c, bond_xmit_hash()). */
#ifndef LB_POLICY_HASH_BPF_H
#define LB_POLICY_HASH_BPF_H

static __always_inline __u32 rotated(__u32 word, __u32 bits)
{
	return word << bits | word >> (32 - bits);
}

/* Takes a word into a hash; this and the end in finished() are those of MurmurHash3 (A. Appleby, public domain). */
static __always_inline __u32 mix(__u32 hash, __u32 word)
{
	hash ^= rotated(word * 0xcc9e2d51, 15) * 0x1b873593;
	return rotated(hash, 13) * 5 + 0xe6546b64;
}

static __always_inline __u32 macs_hash(struct __sk_buff *skb)
{
	/* Both MACs and the EtherType, and two bytes that stay 0. */
	__u32 words[4] = {};

	bpf_skb_load_bytes(skb, 0, words, ETH_HLEN);
	return mix(mix(mix(mix(0, words[0]), words[1]), words[2]), words[3]);
}

static __always_inline __u32 add_addresses(__u32 hash, const struct frame_view *view)
{
#pragma unroll
	for (__u32 i = 0; i < 4; i++)
		hash = mix(mix(hash, view->source[i]), view->destination[i]);
	return hash;
}

static __always_inline __u32 finished(__u32 hash)
{
	hash = (hash ^ hash >> 16) * 0x85ebca6b;
	hash = (hash ^ hash >> 13) * 0xc2b2ae35;
	return hash ^ hash >> 16;
}

#endif
