/* SPDX-License-Identifier: (GPL-2.0-only OR BSD-2-Clause) */
/* Policy hash=vlan+srcmac: by the VLAN and the MAC that the frame comes from. One guest, one lane. */
#ifndef LB_POLICY_HASH_VLAN_SRCMAC_BPF_H
#define LB_POLICY_HASH_VLAN_SRCMAC_BPF_H

#include "hash.bpf.h"

/* Of a tag, beside the priority. */
#define VLAN_ID 0xfff

static __always_inline __u32 hash_vlan_srcmac_of(struct __sk_buff *skb)
{
	__u32 source[3] = {};
	__be16 tag[2] = {};

	/* The two bytes before it are of the destination. */
	bpf_skb_load_bytes(skb, ETH_ALEN - 2, source, sizeof(__u32) * 2);
	source[0] &= bpf_htonl(0xffff);
	if (skb->vlan_present)
		source[2] = skb->vlan_tci & VLAN_ID;
	else if (!bpf_skb_load_bytes(skb, ETH_HLEN - 2, tag, sizeof(tag)) &&
		 (tag[0] == bpf_htons(ETH_P_8021Q) || tag[0] == bpf_htons(ETH_P_8021AD)))
		source[2] = bpf_ntohs(tag[1]) & VLAN_ID;
	return mix(mix(mix(0, source[0]), source[1]), source[2]);
}

#endif
