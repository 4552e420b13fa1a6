/* SPDX-License-Identifier: (GPL-2.0-only OR BSD-2-Clause) */
/*
 * Decapsulates frames on the interface where their packets arrive. Without it they pass IP, UDP, VXLAN and a queue of the VXLAN
 * device before lb_path_in puts them into the queue of the fabric's interface; here they go there at once.
 *
 * Only for TCP connections that end in a socket of this network namespace: no program can remove the marks of a tunnel from a
 * buffer (encapsulation, SKB_GSO_UDP_TUNNEL), and a NIC that forwarded it would take it for one. A socket ignores them.
 * All else takes the usual path: a connection's handshake, what comes after its socket is gone, and what a router marked (ECN).
 */
#ifndef LB_EARLY_BPF_H
#define LB_EARLY_BPF_H

/* RFC 7348, and the group of draft-smith-vxlan-group-policy. */
struct lb_vxlan {
	__u8 flags;
	__u8 policy;
	__be16 group;
	/* Its lower 8 bits are reserved. */
	__be32 network;
};

#define LB_VXLAN_FLAGS 0x88

/* Behind the outer IP header. */
struct lb_tunnel {
	struct udphdr udp;
	struct lb_vxlan vxlan;
	struct ethhdr frame;
} __attribute__((packed, aligned(2)));

/* The bytes of the outer IP header, and of all headers with those of Ethernet before and behind it. */
#define LB_OUTER (path.v6 ? sizeof(struct ipv6hdr) : sizeof(struct iphdr))
#define LB_PACKET (sizeof(struct ethhdr) + LB_OUTER + sizeof(struct lb_tunnel))

/* What is removed: all but one Ethernet header. */
#define LB_PACKET_HEADERS ((int)(LB_PACKET - sizeof(struct ethhdr)))

/* Two bits of congestion notification, RFC 3168. Where both headers have the same, nothing is to be joined (RFC 6040). */
#define LB_ECN 3

/* The ports of TCP. */
struct lb_ports {
	__be16 source;
	__be16 dest;
};

/* Makes the first bytes of a packet readable. The packet, or NULL if it has not so many. */
static __always_inline void *readable(struct __sk_buff *skb, __u32 bytes)
{
	if ((void *)(long)skb->data + bytes > (void *)(long)skb->data_end && bpf_skb_pull_data(skb, bytes))
		return NULL;
	if ((void *)(long)skb->data + bytes > (void *)(long)skb->data_end)
		return NULL;
	return (void *)(long)skb->data;
}

static __always_inline const struct lb_tunnel *tunnel_of(const void *packet)
{
	return packet + sizeof(struct ethhdr) + LB_OUTER;
}

/* The upper half of the second byte has the lower half of the traffic class. */
static __always_inline __u8 ecn_of_v6(const struct ipv6hdr *ip)
{
	return ip->flow_lbl[0] >> 4 & LB_ECN;
}

static __always_inline __u8 outer_ecn(const void *packet)
{
	const struct iphdr *ip = packet + sizeof(struct ethhdr);

	return path.v6 ? ecn_of_v6((const void *)ip) : ip->tos & LB_ECN;
}

/* RFC 1071, of an IP header without options. */
static __always_inline int sum_holds(const struct iphdr *ip)
{
	const __u16 *words = (const void *)ip;
	__u32 sum = 0;

	for (int i = 0; i < (int)sizeof(*ip) / 2; i++)
		sum += words[i];
	sum = (sum & 0xffff) + (sum >> 16);
	sum = (sum & 0xffff) + (sum >> 16);
	return sum == 0xffff;
}

/* Whether IP would deliver it here, whole and with so many bytes for UDP. */
static __always_inline int is_outer_v4(const struct iphdr *ip, __u32 bytes)
{
	return ip->version == 4 && ip->ihl == 5 && ip->protocol == IPPROTO_UDP && bpf_ntohl(ip->daddr) == path.local[0] &&
	       !(ip->frag_off & bpf_htons(0x3fff)) && bpf_ntohs(ip->tot_len) == bytes + sizeof(*ip) && sum_holds(ip);
}

static __always_inline int is_address(const struct in6_addr *address, const volatile __u32 *words)
{
	const __be32 *own = address->in6_u.u6_addr32;

	return own[0] == words[0] && own[1] == words[1] && own[2] == words[2] && own[3] == words[3];
}

static __always_inline int is_outer_v6(const struct ipv6hdr *ip, __u32 bytes)
{
	return ip->version == 6 && ip->nexthdr == IPPROTO_UDP && is_address(&ip->daddr, path.local) &&
	       bpf_ntohs(ip->payload_len) == bytes;
}

/*
 * Whether IP, UDP and VXLAN would take it, and no router has marked it. Over IPv6 there is a checksum (RFC 8200, section 8.1), over
 * IPv4 there is none. It is not looked at: all that gets here has one of TCP, and what has a wrong tag or address is dropped.
 */
static __always_inline int is_vxlan(const struct __sk_buff *skb, const void *packet)
{
	const struct lb_tunnel *tunnel = tunnel_of(packet);
	const void *ip = packet + sizeof(struct ethhdr);
	__u32 bytes = skb->len - ETH_HLEN - LB_OUTER;

	if (path.v6 ? !tunnel->udp.check || !is_outer_v6(ip, bytes) : tunnel->udp.check || !is_outer_v4(ip, bytes))
		return 0;
	return outer_ecn(packet) != LB_ECN && tunnel->udp.dest == bpf_htons(path.port) &&
	       bpf_ntohs(tunnel->udp.len) == bytes && tunnel->vxlan.flags == LB_VXLAN_FLAGS && !tunnel->vxlan.policy;
}

/* Whether it comes from that peer, with the tag that it was given. */
static __always_inline int is_of(const void *packet, const struct lb_path_in *in)
{
	const struct lb_tunnel *tunnel = tunnel_of(packet);
	const void *outer = packet + sizeof(struct ethhdr);
	const struct ipv6hdr *v6 = outer;
	const struct iphdr *v4 = outer;

	if (path.v6 ? !is_address(&v6->saddr, in->remote) : bpf_ntohl(v4->saddr) != in->remote[0])
		return 0;
	return bpf_ntohl(tunnel->vxlan.network) == in->network << 8 && bpf_ntohs(tunnel->vxlan.group) == in->group;
}

/* Whether this is a TCP connection of a socket here that can take data. */
static __always_inline int ends_here(struct __sk_buff *skb, struct bpf_sock_tuple *tuple, __u32 bytes)
{
	struct bpf_sock *sock = bpf_sk_lookup_tcp(skb, tuple, bytes, BPF_F_CURRENT_NETNS, 0);
	int here;

	if (!sock)
		return 0;
	here = sock->state == BPF_TCP_ESTABLISHED || sock->state == BPF_TCP_FIN_WAIT1 ||
	       sock->state == BPF_TCP_FIN_WAIT2 || sock->state == BPF_TCP_CLOSE_WAIT ||
	       sock->state == BPF_TCP_CLOSING || sock->state == BPF_TCP_LAST_ACK;
	bpf_sk_release(sock);
	return here;
}

static __always_inline int is_for_socket_v4(struct __sk_buff *skb)
{
	const void *packet = readable(skb, LB_PACKET + sizeof(struct iphdr) + sizeof(struct lb_ports));
	struct bpf_sock_tuple tuple = {};
	const struct lb_ports *ports;
	const struct iphdr *ip;

	if (!packet)
		return 0;
	ip = packet + LB_PACKET;
	ports = (const void *)(ip + 1);
	if (ip->version != 4 || ip->ihl != 5 || ip->protocol != IPPROTO_TCP ||
	    (ip->frag_off & bpf_htons(0x3fff)) || (ip->tos & LB_ECN) != outer_ecn(packet))
		return 0;
	tuple.ipv4.saddr = ip->saddr;
	tuple.ipv4.daddr = ip->daddr;
	tuple.ipv4.sport = ports->source;
	tuple.ipv4.dport = ports->dest;
	return ends_here(skb, &tuple, sizeof(tuple.ipv4));
}

static __always_inline int is_for_socket_v6(struct __sk_buff *skb)
{
	const void *packet = readable(skb, LB_PACKET + sizeof(struct ipv6hdr) + sizeof(struct lb_ports));
	struct bpf_sock_tuple tuple = {};
	const struct lb_ports *ports;
	const struct ipv6hdr *ip;

	if (!packet)
		return 0;
	ip = packet + LB_PACKET;
	ports = (const void *)(ip + 1);
	if (ip->version != 6 || ip->nexthdr != IPPROTO_TCP || ecn_of_v6(ip) != outer_ecn(packet))
		return 0;
	__builtin_memcpy(tuple.ipv6.saddr, &ip->saddr, sizeof(tuple.ipv6.saddr));
	__builtin_memcpy(tuple.ipv6.daddr, &ip->daddr, sizeof(tuple.ipv6.daddr));
	tuple.ipv6.sport = ports->source;
	tuple.ipv6.dport = ports->dest;
	return ends_here(skb, &tuple, sizeof(tuple.ipv6));
}

SEC("tcx/ingress")
int lb_path_early(struct __sk_buff *skb)
{
	const struct lb_tunnel *tunnel;
	struct lb_path_counts *counts;
	const struct lb_path_in *in;
	struct ethhdr frame;
	const void *packet;
	__u64 verified;
	__u32 node;
	int here;

	/* Cheap tests first: every packet that arrives passes here. */
	if (skb->protocol != (path.v6 ? bpf_htons(ETH_P_IPV6) : bpf_htons(ETH_P_IP)) || skb->vlan_present ||
	    skb->pkt_type != PACKET_HOST)
		return TC_ACT_UNSPEC;
	tunnel = tunnel_of((void *)(long)skb->data);
	if ((void *)(&tunnel->udp + 1) <= (void *)(long)skb->data_end && tunnel->udp.dest != bpf_htons(path.port))
		return TC_ACT_UNSPEC;
	packet = readable(skb, LB_PACKET);
	if (!packet || !is_vxlan(skb, packet))
		return TC_ACT_UNSPEC;
	tunnel = tunnel_of(packet);
	//= docs/fabric.md#7.6
	node = node_of(tunnel->frame.h_source);
	if (node == LB_NODES_MAX || !is_own(tunnel->frame.h_dest) || !lives())
		return TC_ACT_UNSPEC;
	in = bpf_map_lookup_elem(&lb_paths_in, &node);
	counts = bpf_map_lookup_elem(&lb_path_counts, &node);
	if (!in || !counts || !is_of(packet, in))
		return TC_ACT_UNSPEC;
	frame = tunnel->frame;
	if (frame.h_proto == bpf_htons(ETH_P_IP))
		here = is_for_socket_v4(skb);
	else
		here = frame.h_proto == bpf_htons(ETH_P_IPV6) && is_for_socket_v6(skb);
	if (!here)
		return TC_ACT_UNSPEC;
	/* What the NIC verified of inner checksums is still valid. */
	verified = bpf_csum_level(skb, BPF_CSUM_LEVEL_QUERY) > 0 ? BPF_F_ADJ_ROOM_NO_CSUM_RESET : 0;
	if (bpf_skb_adjust_room(skb, -LB_PACKET_HEADERS, BPF_ADJ_ROOM_MAC, BPF_F_ADJ_ROOM_FIXED_GSO | verified))
		return TC_ACT_UNSPEC;
	if (verified)
		bpf_csum_level(skb, BPF_CSUM_LEVEL_DEC);
	if (bpf_skb_store_bytes(skb, 0, &frame, sizeof(frame), 0))
		return count(LB_PATH_DROP_SHORT);
	/* The NIC's queue means nothing on the fabric's interface; the usual path resets it, too. */
	skb->queue_mapping = 0;
	count(LB_PATH_EARLY);
	counts->rx_frames++;
	counts->rx_bytes += skb->len;
	return bpf_redirect(path.tap, BPF_F_INGRESS);
}

#endif
