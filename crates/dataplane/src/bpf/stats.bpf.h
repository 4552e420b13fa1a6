/* SPDX-License-Identifier: (GPL-2.0-only OR BSD-2-Clause) */
/*
 * Counters. Each frame is counted once, by its entry program, under the reason that decided about it; further
 * copies for separate segments and for the daemon count as frames of their own. Written by all programs, per CPU.
 */
#ifndef LB_STATS_BPF_H
#define LB_STATS_BPF_H

struct {
	__uint(type, BPF_MAP_TYPE_PERCPU_ARRAY);
	__uint(max_entries, LB_REASONS_MAX);
	__type(key, __u32);
	__type(value, struct lb_count);
} lb_reasons SEC(".maps");

struct {
	__uint(type, BPF_MAP_TYPE_PERCPU_ARRAY);
	__uint(max_entries, LB_MEMBERS_MAX);
	__type(key, __u32);
	__type(value, struct lb_member_counts);
} lb_member_counters SEC(".maps");

/* Frames that each rule matched, by its place in lb_rules. */
struct {
	__uint(type, BPF_MAP_TYPE_PERCPU_ARRAY);
	__uint(max_entries, LB_RULE_ROWS);
	__type(key, __u32);
	__type(value, struct lb_count);
} lb_rule_counters SEC(".maps");

/* Frames sent by each class, except the default class. */
struct {
	__uint(type, BPF_MAP_TYPE_PERCPU_ARRAY);
	__uint(max_entries, LB_CLASSES_MAX);
	__type(key, __u32);
	__type(value, struct lb_count);
} lb_class_counters SEC(".maps");

/* Of these, those without the precedence that their class has, because it sent too much. */
struct {
	__uint(type, BPF_MAP_TYPE_PERCPU_ARRAY);
	__uint(max_entries, LB_CLASSES_MAX);
	__type(key, __u32);
	__type(value, struct lb_count);
} lb_class_over SEC(".maps");

/* Frames on the wire that this buffer stands for. */
static __always_inline __u32 wire_frames(struct __sk_buff *skb)
{
	return skb->gso_segs ? skb->gso_segs : 1;
}

static __always_inline void add_count(struct lb_count *count, struct __sk_buff *skb)
{
	count->frames += wire_frames(skb);
	count->bytes += skb->len;
}

static __always_inline void count_reason(struct __sk_buff *skb, enum lb_reason reason)
{
	__u32 key = reason;
	struct lb_count *count = bpf_map_lookup_elem(&lb_reasons, &key);

	if (count)
		add_count(count, skb);
}

/* The verdict of LB_REASONS. */
static __always_inline enum lb_verdict verdict_of(enum lb_reason reason)
{
#define LB_REASON_VERDICT(number, name, verdict, sentence) \
	case LB_##name: \
		return LB_##verdict;
	switch (reason) {
		LB_REASONS(LB_REASON_VERDICT)
	default:
		return LB_DROP;
	}
#undef LB_REASON_VERDICT
}

static __always_inline void count_member(struct __sk_buff *skb, __u32 slot, int is_tx)
{
	struct lb_member_counts *counts = bpf_map_lookup_elem(&lb_member_counters, &slot);

	if (counts)
		add_count(is_tx ? &counts->tx : &counts->rx, skb);
}

static __always_inline void count_rule(struct __sk_buff *skb, __u32 row)
{
	struct lb_count *count = bpf_map_lookup_elem(&lb_rule_counters, &row);

	if (count)
		add_count(count, skb);
}

static __always_inline void count_class(struct __sk_buff *skb, __u32 class)
{
	struct lb_count *count = bpf_map_lookup_elem(&lb_class_counters, &class);

	if (count)
		add_count(count, skb);
}

#endif
