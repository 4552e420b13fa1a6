/* SPDX-License-Identifier: (GPL-2.0-only OR BSD-2-Clause) */
/*
 * When an application handed over the data that is in a buffer.
 *
 * A TCP socket has a list of send calls, each with the sequence number of its first byte: so each buffer finds the call
 * of its own first byte, however long the data waited for the window, for memory or for the congestion control, and
 * whatever was sent after it. A datagram leaves within its send call; for such sockets the time of the latest is enough.
 *
 * Sockets are known by their address, so what is kept of one may be of an earlier one that had the same address.
 */
#ifndef LB_CALLS_BPF_H
#define LB_CALLS_BPF_H

/* TCP sockets, and sockets for datagrams, whose calls are remembered; the least recently used one makes room. */
#define STREAMS_MAX 2048
#define DATAGRAMS_MAX 8192
/* Calls remembered of a TCP socket; a power of two. */
#define CALLS_MAX 64
/* Calls whose data waits behind much unsent data share a place if they are closer than this part of it. */
#define CALLS_GRAIN 16

struct call {
	__u64 ns;
	__u32 seq;
	__u32 pad;
};

/* A TCP socket. Written by its send calls and by what leaves (`left`), in races that only cost accuracy. */
struct stream {
	/* Its ports, which tell it from an earlier one at the same address. */
	__u32 ports;
	/* Calls so far; the newest is at n - 1. */
	__u32 n;
	/* Data before this sequence number is a retransmission. */
	__u32 left;
	__u32 pad;
	struct call calls[CALLS_MAX];
};

struct {
	__uint(type, BPF_MAP_TYPE_LRU_HASH);
	__uint(max_entries, STREAMS_MAX);
	__type(key, __u64);
	__type(value, struct stream);
} lb_streams SEC(".maps");

/* The latest send call, ns. */
struct {
	__uint(type, BPF_MAP_TYPE_LRU_HASH);
	__uint(max_entries, DATAGRAMS_MAX);
	__type(key, __u64);
	__type(value, __u64);
} lb_datagrams SEC(".maps");

/* What a new row of lb_streams is made from: too big for the stack. */
static const struct stream no_calls;

static __always_inline __u32 ports_of(const struct sock *sk)
{
	return BPF_CORE_READ(sk, __sk_common.skc_dport) << 16 | BPF_CORE_READ(sk, __sk_common.skc_num);
}

static __always_inline int is_internet(const struct sock *sk)
{
	__u16 family = BPF_CORE_READ(sk, __sk_common.skc_family);

	return family == AF_INET || family == AF_INET6;
}

static __always_inline int is_stream(const struct sock *sk)
{
	return BPF_CORE_READ(sk, sk_type) == SOCK_STREAM && BPF_CORE_READ(sk, sk_protocol) == IPPROTO_TCP;
}

static __always_inline int is_for_datagrams(const struct sock *sk)
{
	__u16 type = BPF_CORE_READ(sk, sk_type);

	return type == SOCK_DGRAM || type == SOCK_RAW;
}

static __always_inline void note_stream_call(const struct sock *sk, __u64 now)
{
	const struct tcp_sock *tcp = (const void *)sk;
	__u32 seq = BPF_CORE_READ(tcp, write_seq), unsent = seq - BPF_CORE_READ(tcp, snd_nxt);
	__u32 ports = ports_of(sk);
	__u64 key = (__u64)sk;
	struct stream *stream = bpf_map_lookup_elem(&lb_streams, &key);
	struct call *call;

	if (!stream || stream->ports != ports) {
		if (bpf_map_update_elem(&lb_streams, &key, &no_calls, BPF_ANY))
			return;
		stream = bpf_map_lookup_elem(&lb_streams, &key);
		if (!stream)
			return;
		stream->ports = ports;
		stream->left = seq;
	}
	call = &stream->calls[(stream->n - 1) & (CALLS_MAX - 1)];
	if (stream->n && call->seq == seq) {
		/* The last call was refused, and handed nothing over. */
		call->ns = now;
		return;
	}
	if (stream->n && seq - call->seq < unsent / CALLS_GRAIN)
		return;
	call = &stream->calls[stream->n & (CALLS_MAX - 1)];
	call->ns = now;
	call->seq = seq;
	stream->n++;
}

static __always_inline void note_call(const struct sock *sk)
{
	__u64 now, key = (__u64)sk;

	if (!sk || !is_internet(sk) || BPF_CORE_READ(sk, __sk_common.skc_net.net, net_cookie) != meter.net_cookie)
		return;
	now = bpf_ktime_get_ns();
	if (is_stream(sk))
		note_stream_call(sk, now);
	else if (is_for_datagrams(sk))
		bpf_map_update_elem(&lb_datagrams, &key, &now, BPF_ANY);
}

/* The socket behind a file descriptor of this process; 0 if it is something else. */
static __always_inline const struct sock *socket_of(__u32 descriptor)
{
	const struct task_struct *task = (const void *)bpf_get_current_task();
	const struct fdtable *table = BPF_CORE_READ(task, files, fdt);
	const struct socket *socket;
	struct file **files, *file;

	if (descriptor >= BPF_CORE_READ(table, max_fds))
		return 0;
	files = BPF_CORE_READ(table, fd);
	if (bpf_probe_read_kernel(&file, sizeof(file), files + descriptor) || !file)
		return 0;
	if (BPF_CORE_READ(file, f_inode, i_sb, s_magic) != SOCKFS_MAGIC)
		return 0;
	socket = BPF_CORE_READ(file, private_data);
	return BPF_CORE_READ(socket, sk);
}

/* The call that handed over the byte `seq`; 0 if it is not known. */
static __always_inline __u64 find_call(const struct stream *stream, __u32 seq)
{
	__u32 n = stream->n;

	for (__u32 i = 1; i <= CALLS_MAX; i++) {
		const struct call *call = &stream->calls[(n - i) & (CALLS_MAX - 1)];

		if (i > n)
			break;
		if ((__s32)(seq - call->seq) >= 0)
			return call->ns;
	}
	return 0;
}

/*
 * Bytes of the packet from a place in its headers on. Of a mirrored frame there is a trailer behind the packet, which
 * only IP's own length leaves out; a length of 0 means a packet too big for that field (BIG TCP).
 */
static __always_inline __s32 bytes_from(const struct sk_buff *skb, const unsigned char *at)
{
	const unsigned char *network = skb->head + skb->network_header;
	struct iphdr ip;
	__u32 bytes;

	_Static_assert(__builtin_offsetof(struct iphdr, id) == __builtin_offsetof(struct ipv6hdr, payload_len),
		       "one read for both");
	if (bpf_probe_read_kernel(&ip, sizeof(ip), network))
		return 0;
	bytes = bpf_ntohs(ip.version == 4 ? ip.tot_len : ip.id);
	if (!bytes)
		return (__s32)skb->len - (__s32)(at - skb->data);
	if (ip.version != 4)
		bytes += sizeof(struct ipv6hdr);
	return (__s32)bytes - (__s32)(at - network);
}

/* The call of the first byte in a TCP buffer; 0 for one without data, or with data that left before. */
static __always_inline __u64 stream_call(const struct sk_buff *skb, const struct sock *sk)
{
	unsigned char *at = skb->head + skb->transport_header;
	__u64 key = (__u64)sk;
	struct stream *stream;
	struct tcphdr tcp;
	__s32 payload;
	__u32 seq;

	if (bpf_probe_read_kernel(&tcp, sizeof(tcp), at))
		return 0;
	/* In a tunnel the outer header is not TCP. */
	if (tcp.dest != BPF_CORE_READ(sk, __sk_common.skc_dport) ||
	    tcp.source != bpf_htons(BPF_CORE_READ(sk, __sk_common.skc_num)))
		return 0;
	if (tcp.syn) {
		/* A new connection. */
		bpf_map_delete_elem(&lb_streams, &key);
		return 0;
	}
	stream = bpf_map_lookup_elem(&lb_streams, &key);
	if (!stream || stream->ports != ports_of(sk))
		return 0;
	payload = bytes_from(skb, at) - tcp.doff * 4;
	seq = bpf_ntohl(tcp.seq);
	if (payload <= 0 || (__s32)(seq - stream->left) < 0)
		return 0;
	stream->left = seq + payload;
	return find_call(stream, seq);
}

/* When the application handed over what is in the buffer; 0 if no send call of it is known. */
static __always_inline __u64 call_of(const struct sk_buff *skb)
{
	const struct sock *sk = skb->sk;
	unsigned char state;
	__u64 *latest, key = (__u64)sk;

	if (!sk)
		return 0;
	state = BPF_CORE_READ(sk, __sk_common.skc_state);
	if (state == TCP_TIME_WAIT || state == TCP_NEW_SYN_RECV)
		return 0;
	if (is_stream(sk))
		return stream_call(skb, sk);
	if (!is_internet(sk) || !is_for_datagrams(sk))
		return 0;
	latest = bpf_map_lookup_elem(&lb_datagrams, &key);
	return latest ? *latest : 0;
}

#endif
