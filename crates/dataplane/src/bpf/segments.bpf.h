/* SPDX-License-Identifier: (GPL-2.0-only OR BSD-2-Clause) */
/*
 * How long the frames are that a buffer becomes, and how TCP is made to send none that the fast path does not take. Called by
 * lb_path_out.
 */
#ifndef LB_SEGMENTS_BPF_H
#define LB_SEGMENTS_BPF_H

/* Options of TCP: RFC 9293, section 3.2; RFC 5925 (TCP-AO signs the options). */
#define LB_TCPOPT_END 0
#define LB_TCPOPT_NOP 1
#define LB_TCPOPT_MSS 2
#define LB_TCPOPT_AO 29

/* Where the TCP header of a frame begins; 0 if it has none, or if its packet is a fragment or has extension headers. */
static __always_inline __u32 tcp_at(const struct __sk_buff *skb)
{
	const struct ethhdr *eth = (void *)(long)skb->data;
	const struct ipv6hdr *ip6 = (const void *)(eth + 1);
	const struct iphdr *ip = (const void *)(eth + 1);
	const void *end = (void *)(long)skb->data_end;

	if ((const void *)(ip + 1) > end)
		return 0;
	if (eth->h_proto == bpf_htons(ETH_P_IP)) {
		if (ip->version != 4 || ip->ihl != 5 || ip->protocol != IPPROTO_TCP || (ip->frag_off & bpf_htons(0x3fff)) ||
		    (const void *)(ip + 1) + sizeof(struct tcphdr) > end)
			return 0;
		return ETH_HLEN + sizeof(*ip);
	}
	if (eth->h_proto != bpf_htons(ETH_P_IPV6) || (const void *)(ip6 + 1) + sizeof(struct tcphdr) > end ||
	    ip6->version != 6 || ip6->nexthdr != IPPROTO_TCP)
		return 0;
	return ETH_HLEN + sizeof(*ip6);
}

/* The header at that place; NULL if it is not readable. */
static __always_inline const struct tcphdr *tcp_header(const struct __sk_buff *skb, __u32 at)
{
	const struct tcphdr *tcp = (void *)(long)skb->data + at;

	return (const void *)(tcp + 1) > (void *)(long)skb->data_end ? NULL : tcp;
}

/* The length of the longest frame that this buffer is cut into. */
static __always_inline __u32 longest(const struct __sk_buff *skb, __u32 at, const struct lb_path_out *out)
{
	const struct tcphdr *tcp;
	__u32 segment;

	if (!skb->gso_size)
		return skb->len;
	tcp = at ? tcp_header(skb, at) : NULL;
	if (tcp)
		return at + 4 * tcp->doff + skb->gso_size;
	segment = ETH_HLEN + LB_SEGMENT_HEADERS + skb->gso_size;
	return segment < out->frame ? segment : out->frame;
}

/* The options of a TCP header. */
struct lb_options {
	struct __sk_buff *skb;
	/* Where the next one begins, and where they end. */
	__u32 at;
	__u32 end;
	/* Where they have the longest segment; 0 if nowhere, or if they must not be changed. */
	__u32 mss;
};

/* Looks at one of them, for bpf_loop(). Whether it was the last. */
static long look_at_option(__u32 number, struct lb_options *options)
{
	__u8 option[2];
	__u32 next;

	(void)number;
	if (options->at + 1 >= options->end)
		return 1;
	if (bpf_skb_load_bytes(options->skb, options->at, option, sizeof(option)))
		return 1;
	if (option[0] == LB_TCPOPT_END)
		return 1;
	if (option[0] == LB_TCPOPT_NOP) {
		options->at++;
		return 0;
	}
	next = options->at + option[1];
	if (option[0] == LB_TCPOPT_AO || option[1] < sizeof(option) || next > options->end) {
		options->mss = 0;
		return 1;
	}
	if (option[0] == LB_TCPOPT_MSS && option[1] == sizeof(option) + sizeof(__be16))
		options->mss = options->at + sizeof(option);
	options->at = next;
	return 0;
}

/*
 * A connection that begins announces the longest segments that it takes (RFC 9293, section 3.7.1): no longer ones than the path
 * does. The answer to it goes the same way at the other end.
 */
static __always_inline void clamp(struct __sk_buff *skb, __u32 at, __u32 room)
{
	const struct tcphdr *tcp = tcp_header(skb, at);
	__u32 most = room - at - sizeof(*tcp);
	struct lb_options options = {};
	__be16 old, new;
	__u32 where;

	if (!tcp || !tcp->syn || room < at + sizeof(*tcp) + LB_MSS_MIN)
		return;
	options.skb = skb;
	options.at = at + sizeof(*tcp);
	options.end = at + 4 * tcp->doff;
	bpf_loop(LB_TCP_OPTIONS_MAX, look_at_option, &options, 0);
	where = options.mss;
	if (!where || bpf_skb_load_bytes(skb, where, &old, sizeof(old)) || bpf_ntohs(old) <= most)
		return;
	new = bpf_htons(most);
	if (bpf_skb_store_bytes(skb, where, &new, sizeof(new), 0))
		return;
	/* The sum is of pairs of bytes from the header's first on. */
	if ((where - at) & 1) {
		old = __builtin_bswap16(old);
		new = __builtin_bswap16(new);
	}
	bpf_l4_csum_replace(skb, at + __builtin_offsetof(struct tcphdr, check), old, new, sizeof(new));
}

#endif
