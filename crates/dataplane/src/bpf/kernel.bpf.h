/* SPDX-License-Identifier: (GPL-2.0-only OR BSD-2-Clause) */
/*
 * What the meter reads of the kernel's own structures. Only names and types matter: libbpf looks the places up in the
 * type information of the running kernel (BTF) when it loads the programs.
 */
#ifndef LB_KERNEL_BPF_H
#define LB_KERNEL_BPF_H

#pragma clang attribute push(__attribute__((preserve_access_index)), apply_to = record)

struct net {
	__u64 net_cookie;
};

typedef struct {
	struct net *net;
} possible_net_t;

struct net_device {
	possible_net_t nd_net;
};

struct sock_common {
	__be16 skc_dport;
	__u16 skc_num;
	unsigned short skc_family;
	volatile unsigned char skc_state;
	possible_net_t skc_net;
};

struct sock {
	struct sock_common __sk_common;
	__u16 sk_type;
	__u16 sk_protocol;
};

struct tcp_sock {
	__u32 write_seq;
	__u32 snd_nxt;
};

struct socket {
	struct sock *sk;
};

struct sk_buff {
	struct net_device *dev;
	struct sock *sk;
	char cb[48];
	unsigned int len;
	__u16 transport_header;
	__u16 network_header;
	unsigned int end;
	unsigned char *head;
	unsigned char *data;
};

struct skb_shared_info {
	unsigned short gso_segs;
};

struct qdisc_skb_cb {
	unsigned char data[20];
};

struct super_block {
	unsigned long s_magic;
};

struct inode {
	struct super_block *i_sb;
};

struct file {
	struct inode *f_inode;
	void *private_data;
};

struct fdtable {
	unsigned int max_fds;
	struct file **fd;
};

struct files_struct {
	struct fdtable *fdt;
};

struct task_struct {
	struct files_struct *files;
};

/* The registers that hold a system call's first and third argument. */
#if defined(__TARGET_ARCH_x86)
struct pt_regs {
	unsigned long di;
	unsigned long dx;
};
#define FIRST_ARGUMENT(registers) BPF_CORE_READ(registers, di)
#define THIRD_ARGUMENT(registers) BPF_CORE_READ(registers, dx)
#elif defined(__TARGET_ARCH_arm64)
struct pt_regs {
	__u64 regs[31];
	__u64 orig_x0;
};
#define FIRST_ARGUMENT(registers) BPF_CORE_READ(registers, orig_x0)
#define THIRD_ARGUMENT(registers) BPF_CORE_READ(registers, regs[2])
#else
#error "which registers hold the arguments of a system call?"
#endif

#pragma clang attribute pop

/* include/linux/socket.h */
#define AF_INET 2
#define AF_INET6 10
/* enum sock_type, include/linux/net.h */
#define SOCK_STREAM 1
#define SOCK_DGRAM 2
#define SOCK_RAW 3
/* enum, include/net/tcp_states.h: sockets of these states are of smaller types. */
#define TCP_TIME_WAIT 6
#define TCP_NEW_SYN_RECV 12
/* include/uapi/linux/magic.h */
#define SOCKFS_MAGIC 0x534F434B

#endif
