/* SPDX-License-Identifier: (GPL-2.0-only OR BSD-2-Clause) */
/*
 * Headers. Ethernet is read in place; IP and TCP are copied out, because a buffer may hold them in fragments.
 * Reads no map and writes nothing.
 */
#ifndef LB_PARSE_BPF_H
#define LB_PARSE_BPF_H

#define TCP_FIN 0x01
#define TCP_SYN 0x02
#define TCP_RST 0x04
#define TCP_ACK 0x10
#define TCP_ECE 0x40
#define TCP_CWR 0x80

#define IP_PROTOCOL_IGMP 2
#define IP_PROTOCOL_TCP 6
#define IP_PROTOCOL_ICMPV6 58
#define IPV6_HOP_BY_HOP 0

/* A TCP segment, or a buffer of several. */
struct tcp_view {
	struct lb_flow_key flow; /* as its sender sees it */
	__u32 seq;
	__u32 ack;
	__u32 payload; /* bytes */
	__u32 window;  /* unscaled */
	__u32 tcp_at;  /* offset of the TCP header */
	__u32 header;  /* length of the TCP header with options */
	__u8 flags;
};

static __always_inline int has_ethernet(struct __sk_buff *skb, struct ethhdr **eth)
{
	void *end = (void *)(long)skb->data_end;

	*eth = (void *)(long)skb->data;
	if ((void *)(*eth + 1) <= end)
		return 1;
	if (bpf_skb_pull_data(skb, sizeof(**eth)))
		return 0;
	*eth = (void *)(long)skb->data;
	end = (void *)(long)skb->data_end;
	return (void *)(*eth + 1) <= end;
}

static __always_inline int is_multicast(const struct lb_mac *mac)
{
	return mac->b[0] & 1;
}

static __always_inline int same_mac(const struct lb_mac *a, const struct lb_mac *b)
{
	return !((a->b[0] ^ b->b[0]) | (a->b[1] ^ b->b[1]) | (a->b[2] ^ b->b[2]) | (a->b[3] ^ b->b[3]) |
		 (a->b[4] ^ b->b[4]) | (a->b[5] ^ b->b[5]));
}

static __always_inline int is_zero_mac(const struct lb_mac *mac)
{
	return !(mac->b[0] | mac->b[1] | mac->b[2] | mac->b[3] | mac->b[4] | mac->b[5]);
}

/* Where the network header starts, and its protocol; looks behind one tag that is still in the frame. */
static __always_inline __u32 network_header(struct __sk_buff *skb, __be16 *protocol)
{
	struct {
		__be16 tci;
		__be16 protocol;
	} tag;

	if (bpf_skb_load_bytes(skb, offsetof(struct ethhdr, h_proto), protocol, sizeof(*protocol)))
		*protocol = 0;
	if (*protocol != bpf_htons(ETH_P_8021Q) && *protocol != bpf_htons(ETH_P_8021AD))
		return sizeof(struct ethhdr);
	if (bpf_skb_load_bytes(skb, sizeof(struct ethhdr), &tag, sizeof(tag)))
		tag.protocol = 0;
	*protocol = tag.protocol;
	return sizeof(struct ethhdr) + sizeof(tag);
}

/* Whole TCP segments over IPv4, or IPv6 without extension headers; everything else is not TCP to us. */
static __always_inline int view_tcp(struct __sk_buff *skb, struct tcp_view *view)
{
	struct tcphdr tcp;
	__be16 protocol;
	__u32 at = network_header(skb, &protocol);
	__u32 bytes; /* from the TCP header on */

	__builtin_memset(view, 0, sizeof(*view));
	if (protocol == bpf_htons(ETH_P_IP)) {
		struct iphdr ip;
		__u32 header;

		if (bpf_skb_load_bytes(skb, at, &ip, sizeof(ip)))
			return 0;
		header = ip.ihl * 4;
		if (ip.protocol != IP_PROTOCOL_TCP || header < sizeof(ip) || ip.frag_off & bpf_htons(0x3fff))
			return 0;
		/* A buffer over 64 KiB has no length in its header. */
		bytes = ip.tot_len ? bpf_ntohs(ip.tot_len) : skb->len - at;
		if (bytes < header)
			return 0;
		bytes -= header;
		at += header;
		view->flow.source[0] = ip.saddr;
		view->flow.destination[0] = ip.daddr;
	} else if (protocol == bpf_htons(ETH_P_IPV6)) {
		struct ipv6hdr ip;

		if (bpf_skb_load_bytes(skb, at, &ip, sizeof(ip)))
			return 0;
		if (ip.nexthdr != IP_PROTOCOL_TCP)
			return 0;
		at += sizeof(ip);
		bytes = ip.payload_len ? bpf_ntohs(ip.payload_len) : skb->len - at;
		__builtin_memcpy(view->flow.source, &ip.saddr, sizeof(ip.saddr));
		__builtin_memcpy(view->flow.destination, &ip.daddr, sizeof(ip.daddr));
	} else {
		return 0;
	}
	if (bpf_skb_load_bytes(skb, at, &tcp, sizeof(tcp)))
		return 0;
	view->header = tcp.doff * 4;
	if (view->header < sizeof(tcp) || bytes < view->header)
		return 0;
	view->flow.source_port = tcp.source;
	view->flow.destination_port = tcp.dest;
	view->seq = bpf_ntohl(tcp.seq);
	view->ack = bpf_ntohl(tcp.ack_seq);
	view->payload = bytes - view->header;
	view->window = bpf_ntohs(tcp.window);
	view->tcp_at = at;
	view->flags = ((__u8 *)&tcp)[13];
	return 1;
}

/* IGMP, or MLD behind its hop-by-hop header (RFC 3810, section 5). */
static __always_inline int is_group_report(struct __sk_buff *skb)
{
	__be16 protocol;
	__u32 at = network_header(skb, &protocol);

	if (protocol == bpf_htons(ETH_P_IP)) {
		struct iphdr ip;

		return !bpf_skb_load_bytes(skb, at, &ip, sizeof(ip)) && ip.protocol == IP_PROTOCOL_IGMP;
	}
	if (protocol == bpf_htons(ETH_P_IPV6)) {
		struct ipv6hdr ip;
		__u8 options[8], type;

		if (bpf_skb_load_bytes(skb, at, &ip, sizeof(ip)) || ip.nexthdr != IPV6_HOP_BY_HOP)
			return 0;
		at += sizeof(ip);
		if (bpf_skb_load_bytes(skb, at, options, sizeof(options)))
			return 0;
		if (options[0] != IP_PROTOCOL_ICMPV6 || options[1])
			return 0;
		if (bpf_skb_load_bytes(skb, at + sizeof(options), &type, sizeof(type)))
			return 0;
		return (type >= 130 && type <= 132) || type == 143;
	}
	return 0;
}

#endif
