/* SPDX-License-Identifier: (GPL-2.0-only OR BSD-2-Clause) */
/*
 * Policy hash=layer3+4: by both IP addresses and both ports. One flow, one lane, but its fragments may be on another one: they
 * go by the addresses alone, the first like all others. What is no IP goes as hash=layer2 has it.
 */
#ifndef LB_POLICY_HASH_LAYER3_4_BPF_H
#define LB_POLICY_HASH_LAYER3_4_BPF_H

#include "hash.bpf.h"

static __always_inline __u32 hash_layer3_4_of(struct __sk_buff *skb)
{
	struct frame_view view = {};
	__u32 hash;

	view_frame(skb, &view);
	if (!view.is_ipv4 && !view.is_ipv6)
		return macs_hash(skb);
	hash = add_addresses(0, &view);
	if (view.protocol && !view.is_fragment)
		hash = mix(hash, (__u32)view.ports[0] << 16 | view.ports[1]);
	return hash;
}

#endif
