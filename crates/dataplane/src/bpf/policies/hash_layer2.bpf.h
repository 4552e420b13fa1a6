/* SPDX-License-Identifier: (GPL-2.0-only OR BSD-2-Clause) */
/* Policy hash=layer2: by both MACs and the EtherType. One peer, one lane. */
#ifndef LB_POLICY_HASH_LAYER2_BPF_H
#define LB_POLICY_HASH_LAYER2_BPF_H

#include "hash.bpf.h"

static __always_inline __u32 hash_layer2_of(struct __sk_buff *skb)
{
	return macs_hash(skb);
}

#endif
