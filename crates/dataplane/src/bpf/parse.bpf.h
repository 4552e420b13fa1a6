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
#define IP_PROTOCOL_IPIP 4
#define IP_PROTOCOL_TCP 6
#define IP_PROTOCOL_UDP 17
#define IP_PROTOCOL_IPV6 41
#define IP_PROTOCOL_GRE 47
#define IP_PROTOCOL_ICMPV6 58
#define IPV6_HOP_BY_HOP 0

/* IANA's port, and the one that Linux uses unless it is told another one. */
#define VXLAN_PORT 4789
#define VXLAN_PORT_LINUX 8472
#define VXLAN_HAS_NETWORK 0x08
#define GENEVE_PORT 6081
/* Of the first byte, and of the second one. */
#define GENEVE_VERSION 0xc0
#define GENEVE_OPTIONS 0x3f
#define GENEVE_CONTROL 0x80
#define GRE_CHECKSUM 0x8000
#define GRE_KEY 0x2000
#define GRE_SEQUENCE 0x1000

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
	__be16 protocol; /* of the network header that is read */
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

/* A MAC as a number, and back. */
static __always_inline __u64 mac_number(const struct lb_mac *mac)
{
	return (__u64)mac->b[0] << 40 | (__u64)mac->b[1] << 32 | (__u64)mac->b[2] << 24 | mac->b[3] << 16 |
	       mac->b[4] << 8 | mac->b[5];
}

static __always_inline struct lb_mac to_mac(__u64 number)
{
	struct lb_mac mac = { { number >> 40, number >> 32, number >> 24, number >> 16, number >> 8, number } };

	return mac;
}

/* Where the network header behind the Ethernet header at `at` starts, and its protocol; looks behind one tag. */
static __always_inline __u32 network_header_of(struct __sk_buff *skb, __u32 at, __be16 *protocol)
{
	struct {
		__be16 tci;
		__be16 protocol;
	} tag;

	if (bpf_skb_load_bytes(skb, at + offsetof(struct ethhdr, h_proto), protocol, sizeof(*protocol)))
		*protocol = 0;
	at += sizeof(struct ethhdr);
	if (*protocol != bpf_htons(ETH_P_8021Q) && *protocol != bpf_htons(ETH_P_8021AD))
		return at;
	if (bpf_skb_load_bytes(skb, at, &tag, sizeof(tag)))
		tag.protocol = 0;
	*protocol = tag.protocol;
	return at + sizeof(tag);
}

static __always_inline __u32 network_header(struct __sk_buff *skb, __be16 *protocol)
{
	return network_header_of(skb, 0, protocol);
}

/*
 * The protocol behind the IP header at `at`; 0 for a fragment, and for what is no IP. An IPv6 extension header is a protocol
 * like any other. `view` gets the addresses, and where that protocol starts (tcp_at) with how many bytes (payload). A
 * function of its own, because the way in has no stack left.
 */
static __noinline __u32 view_ip(struct __sk_buff *skb, struct tcp_view *view, __u32 at)
{
	__u32 header, bytes, next;

	if (view->protocol == bpf_htons(ETH_P_IP)) {
		struct iphdr ip;

		if (bpf_skb_load_bytes(skb, at, &ip, sizeof(ip)))
			return 0;
		header = ip.ihl * 4;
		if (header < sizeof(ip) || ip.frag_off & bpf_htons(0x3fff))
			return 0;
		/* A buffer over 64 KiB has no length in its header. */
		bytes = ip.tot_len ? bpf_ntohs(ip.tot_len) : skb->len - at;
		if (bytes < header)
			return 0;
		bytes -= header;
		next = ip.protocol;
		view->flow.source[0] = ip.saddr;
		view->flow.destination[0] = ip.daddr;
	} else if (view->protocol == bpf_htons(ETH_P_IPV6)) {
		struct ipv6hdr ip;

		if (bpf_skb_load_bytes(skb, at, &ip, sizeof(ip)))
			return 0;
		header = sizeof(ip);
		bytes = ip.payload_len ? bpf_ntohs(ip.payload_len) : skb->len - at;
		next = ip.nexthdr;
		__builtin_memcpy(view->flow.source, &ip.saddr, sizeof(ip.saddr));
		__builtin_memcpy(view->flow.destination, &ip.daddr, sizeof(ip.daddr));
	} else {
		return 0;
	}
	view->tcp_at = at + header;
	view->payload = bytes;
	return next;
}

/*
 * Tunnels: TCP in VXLAN (RFC 7348), Geneve (RFC 8926), GRE (RFC 2784, 2890) and IP in IP (RFC 2003, 2473, 4213) is
 * damped like bare TCP. What is edited there leaves the sums of the outer headers as they are: the TCP checksum balances it.
 */

/* UDP and what follows it, of VXLAN and of Geneve. */
struct udp_tunnel {
	__be16 source;
	__be16 port;
	__be16 length;
	__be16 check;
	__u8 first; /* VXLAN's flags; Geneve's version and the length of its options */
	__u8 second;
	__be16 protocol; /* Geneve's */
	__be32 network;  /* its lower 8 bits are reserved */
};

struct gre {
	__be16 flags;
	__be16 protocol;
};

static __always_inline int may_be_tunnel(__u32 next)
{
	return next == IP_PROTOCOL_UDP || next == IP_PROTOCOL_GRE || next == IP_PROTOCOL_IPIP ||
	       next == IP_PROTOCOL_IPV6;
}

static __always_inline int is_tunnel_port(__be16 port)
{
	return port == bpf_htons(VXLAN_PORT) || port == bpf_htons(VXLAN_PORT_LINUX) || port == bpf_htons(GENEVE_PORT);
}

/* Where the inner Ethernet header (`protocol` becomes ETH_P_TEB) or IP header is; 0: no tunnel. `network`: a number of it. */
static __always_inline __u32 udp_tunnel_end(struct __sk_buff *skb, __u32 at, __be16 *protocol, __be32 *network)
{
	struct udp_tunnel tunnel;

	if (bpf_skb_load_bytes(skb, at, &tunnel, sizeof(tunnel)))
		return 0;
	at += sizeof(tunnel);
	*network = tunnel.network & bpf_htonl(0xffffff00);
	*protocol = bpf_htons(ETH_P_TEB);
	if (!is_tunnel_port(tunnel.port))
		return 0;
	if (tunnel.port != bpf_htons(GENEVE_PORT))
		return tunnel.first & VXLAN_HAS_NETWORK ? at : 0;
	if (tunnel.first & GENEVE_VERSION || tunnel.second & GENEVE_CONTROL)
		return 0;
	*protocol = tunnel.protocol;
	return at + (tunnel.first & GENEVE_OPTIONS) * 4;
}

static __always_inline __u32 gre_end(struct __sk_buff *skb, __u32 at, __be16 *protocol, __be32 *network)
{
	struct gre gre;

	if (bpf_skb_load_bytes(skb, at, &gre, sizeof(gre)) ||
	    gre.flags & ~bpf_htons(GRE_CHECKSUM | GRE_KEY | GRE_SEQUENCE))
		return 0;
	at += sizeof(gre);
	if (gre.flags & bpf_htons(GRE_CHECKSUM))
		at += 4;
	if (gre.flags & bpf_htons(GRE_KEY)) {
		if (bpf_skb_load_bytes(skb, at, network, sizeof(*network)))
			return 0;
		at += 4;
	}
	if (gre.flags & bpf_htons(GRE_SEQUENCE))
		at += 4;
	*protocol = gre.protocol;
	return at;
}

/* The protocol behind the IP header in a tunnel, as view_ip(). `next`: the one behind the outer IP header. */
static __noinline __u32 enter_tunnel(struct __sk_buff *skb, struct tcp_view *view, __u32 next)
{
	__be16 protocol = next == IP_PROTOCOL_IPV6 ? bpf_htons(ETH_P_IPV6) : bpf_htons(ETH_P_IP);
	__u32 at = view->tcp_at;
	__be32 network = 0;

	if (next == IP_PROTOCOL_UDP)
		at = udp_tunnel_end(skb, at, &protocol, &network);
	else if (next == IP_PROTOCOL_GRE)
		at = gre_end(skb, at, &protocol, &network);
	if (at && protocol == bpf_htons(ETH_P_TEB))
		at = network_header_of(skb, at, &protocol);
	view->protocol = protocol;
	/* Its place until that of TCP is read. */
	view->ack = network ^ bpf_htonl(next);
	return at;
}

/* The same addresses in another network, or in none, are another flow; likewise in both directions. */
static __always_inline __u32 view_inner(struct __sk_buff *skb, struct tcp_view *view, __u32 next)
{
	__u32 at = enter_tunnel(skb, view, next);

	if (!at)
		return 0;
	__builtin_memset(&view->flow, 0, sizeof(view->flow));
	next = view_ip(skb, view, at);
	view->flow.source[1] ^= view->ack;
	view->flow.destination[1] ^= view->ack;
	return next;
}

/* Whole TCP segments over IPv4, or IPv6 without extension headers, bare or in a tunnel; everything else is not TCP to us. */
static __always_inline int view_tcp(struct __sk_buff *skb, struct tcp_view *view)
{
	struct tcphdr tcp;
	__be16 protocol;
	__u32 at = network_header(skb, &protocol), next;

	__builtin_memset(view, 0, sizeof(*view));
	view->protocol = protocol;
	next = view_ip(skb, view, at);
	if (next != IP_PROTOCOL_TCP) {
		if (!may_be_tunnel(next) || view_inner(skb, view, next) != IP_PROTOCOL_TCP ||
		    view->tcp_at + view->payload > skb->len)
			return 0;
	}
	if (bpf_skb_load_bytes(skb, view->tcp_at, &tcp, sizeof(tcp)))
		return 0;
	view->header = tcp.doff * 4;
	if (view->header < sizeof(tcp) || view->payload < view->header)
		return 0;
	view->payload -= view->header;
	view->flow.source_port = tcp.source;
	view->flow.destination_port = tcp.dest;
	view->seq = bpf_ntohl(tcp.seq);
	view->ack = bpf_ntohl(tcp.ack_seq);
	view->window = bpf_ntohs(tcp.window);
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
