/* SPDX-License-Identifier: (GPL-2.0-only OR BSD-2-Clause) */
/*
 * Cuts a buffer of several UDP datagrams (UDP_SEGMENT, udp(7)) into single ones before it is spread: as one stripe it would
 * arrive out of order by more than QUIC bears. No program can cut a buffer, but the kernel does for an interface that takes
 * single segments only: a macvlan above the bond, which hands them to the bond again. Called by lb_egress. Reads lb_cutter.
 */
#ifndef LB_CUT_BPF_H
#define LB_CUT_BPF_H

/* skb->tc_index of what was sent to be cut: what comes back whole all the same must not be sent again. */
#define CUT_MARK 0x6c62

/* Whether the frame has been there already. */
static __always_inline int is_cut(struct __sk_buff *skb)
{
	return skb->tc_index == CUT_MARK;
}

/*
 * Datagrams of one flow, and no tunnel whose TCP is damped. What a TCP socket of this host has sent is in a tunnel, whatever
 * its port.
 */
static __always_inline int are_datagrams(struct __sk_buff *skb)
{
	void *end = (void *)(long)skb->data_end;
	struct ethhdr *eth = (void *)(long)skb->data;
	struct ipv6hdr *ip6 = (void *)(eth + 1);
	struct iphdr *ip = (void *)(eth + 1);
	struct bpf_sock *socket = skb->sk;
	__be16 port;
	__u32 at;

	if (socket)
		socket = bpf_sk_fullsock(socket);
	if ((socket && socket->protocol == IP_PROTOCOL_TCP) || (void *)(ip + 1) > end)
		return 0;
	if (eth->h_proto == bpf_htons(ETH_P_IP)) {
		if (ip->protocol != IP_PROTOCOL_UDP)
			return 0;
		at = sizeof(*eth) + ip->ihl * 4;
	} else {
		if (eth->h_proto != bpf_htons(ETH_P_IPV6) || (void *)(ip6 + 1) > end || ip6->nexthdr != IP_PROTOCOL_UDP)
			return 0;
		at = sizeof(*eth) + sizeof(*ip6);
	}
	return !bpf_skb_load_bytes(skb, at + offsetof(struct udp_tunnel, port), &port, sizeof(port)) &&
	       !is_tunnel_port(port);
}

/* Sends the buffer to be cut; 0 where there is nothing to cut. */
static __always_inline int cut(struct __sk_buff *skb, int *verdict)
{
	__u32 zero = 0, *cutter;

	if (!skb->gso_size || is_cut(skb) || !are_datagrams(skb))
		return 0;
	cutter = bpf_map_lookup_elem(&lb_cutter, &zero);
	if (!cutter)
		return 0;
	skb->tc_index = CUT_MARK;
	*verdict = bpf_redirect(*cutter, 0);
	return 1;
}

#endif
