/* SPDX-License-Identifier: (GPL-2.0-only OR BSD-2-Clause) */
/* Policy hash=layer2+3: by both MACs, the EtherType and both IP addresses. One pair of addresses, one lane. */
#ifndef LB_POLICY_HASH_LAYER2_3_BPF_H
#define LB_POLICY_HASH_LAYER2_3_BPF_H

#include "hash.bpf.h"

static __always_inline __u32 hash_layer2_3_of(struct __sk_buff *skb)
{
	struct frame_view view = {};

	view_frame(skb, &view);
	return add_addresses(macs_hash(skb), &view);
}

#endif
