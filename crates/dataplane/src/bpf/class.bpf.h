/* SPDX-License-Identifier: (GPL-2.0-only OR BSD-2-Clause) */
/*
 * Classes: the first rule that matches a frame names its class, and the class has plans of its own. Called by
 * steer() while there are rules. Reads lb_rules, lb_class_plans, lb_plans; writes lb_classes and the rules' counts.
 */
#ifndef LB_CLASS_BPF_H
#define LB_CLASS_BPF_H

#define IPV6_FRAGMENT 44
#define SOCKET_RAW 3
/* No frame has this DSCP. */
#define NO_DSCP 0xff

/* What rules look at in a frame, read once. */
struct frame_view {
	__be32 source[4];
	__be32 destination[4];
	__u16 ports[2]; /* source, destination */
	__be16 ethertype;
	__u8 protocol; /* TCP or UDP if the ports are known, else 0 */
	__u8 dscp;
	__u8 is_ipv4;
	__u8 is_ipv6;
	__u8 is_fragment;
	__u8 pad;
};

/* An IPv6 fragment header (RFC 8200, section 4.5). */
struct fragment_header {
	__u8 next;
	__u8 reserved;
	__be16 offset; /* and flags, in the low three bits */
	__be32 id;
};

struct class_walk {
	struct __sk_buff *skb;
	struct frame_view view;
	__u32 first; /* row of the first rule */
	__u32 row;   /* that of the first one that matches */
	__u32 class;
	__u32 is_found;
};

/* Only the first fragment has ports; the socket that sent a later one knows them, unless it is no TCP or UDP socket. */
static __always_inline int socket_ports(struct __sk_buff *skb, struct frame_view *view, __u8 protocol)
{
	struct bpf_sock *sk = skb->sk;

	if (!sk)
		return 0;
	sk = bpf_sk_fullsock(sk);
	if (!sk || sk->protocol != protocol || sk->type == SOCKET_RAW)
		return 0;
	view->ports[0] = sk->src_port;
	view->ports[1] = bpf_ntohs(sk->dst_port);
	return 1;
}

static __always_inline void view_frame(struct __sk_buff *skb, struct frame_view *view)
{
	__u32 at = network_header(skb, &view->ethertype);
	__be16 ports[2];
	__u8 protocol;
	int is_later;

	view->dscp = NO_DSCP;
	if (view->ethertype == bpf_htons(ETH_P_IP)) {
		struct iphdr ip;

		if (bpf_skb_load_bytes(skb, at, &ip, sizeof(ip)))
			return;
		view->is_ipv4 = 1;
		view->dscp = ip.tos >> 2;
		view->source[0] = ip.saddr;
		view->destination[0] = ip.daddr;
		protocol = ip.protocol;
		is_later = ip.frag_off & bpf_htons(0x1fff);
		view->is_fragment = !!(ip.frag_off & bpf_htons(0x3fff));
		at += ip.ihl * 4;
	} else if (view->ethertype == bpf_htons(ETH_P_IPV6)) {
		struct ipv6hdr ip;

		if (bpf_skb_load_bytes(skb, at, &ip, sizeof(ip)))
			return;
		view->is_ipv6 = 1;
		view->dscp = (ip.priority << 4 | ip.flow_lbl[0] >> 4) >> 2;
		__builtin_memcpy(view->source, &ip.saddr, sizeof(view->source));
		__builtin_memcpy(view->destination, &ip.daddr, sizeof(view->destination));
		protocol = ip.nexthdr;
		is_later = 0;
		at += sizeof(ip);
		if (protocol == IPV6_FRAGMENT) {
			struct fragment_header fragment;

			if (bpf_skb_load_bytes(skb, at, &fragment, sizeof(fragment)))
				return;
			view->is_fragment = 1;
			protocol = fragment.next;
			is_later = fragment.offset & bpf_htons(0xfff8);
			at += sizeof(fragment);
		}
	} else {
		return;
	}
	if (protocol != IP_PROTOCOL_TCP && protocol != IP_PROTOCOL_UDP)
		return;
	if (is_later) {
		if (!socket_ports(skb, view, protocol))
			return;
	} else {
		if (bpf_skb_load_bytes(skb, at, ports, sizeof(ports)))
			return;
		view->ports[0] = bpf_ntohs(ports[0]);
		view->ports[1] = bpf_ntohs(ports[1]);
	}
	view->protocol = protocol;
}

static __always_inline int is_host(const struct lb_rule *rule, const __be32 *address)
{
	__be32 differs = 0;

#pragma unroll
	for (__u32 i = 0; i < 4; i++)
		differs |= (address[i] ^ rule->host[i]) & rule->host_mask[i];
	return !differs;
}

static __always_inline int is_port(const struct lb_rule *rule, __u16 port)
{
	return port >= rule->port_first && port <= rule->port_last;
}

/* Whether all conditions of the rule match; the most expensive one comes last. */
static __always_inline int is_chosen(const struct lb_rule *rule, struct __sk_buff *skb, const struct frame_view *view)
{
	__u32 conditions = rule->conditions;

	if (conditions & LB_RULE_PRIORITY && skb->priority != rule->priority)
		return 0;
	if (conditions & LB_RULE_MARK && (skb->mark & rule->mark_mask) != rule->mark)
		return 0;
	if (conditions & LB_RULE_ETHERTYPE && view->ethertype != rule->ethertype)
		return 0;
	if (conditions & LB_RULE_DSCP && view->dscp != rule->dscp)
		return 0;
	if (conditions & LB_RULE_PORT && (view->protocol != rule->port_protocol ||
					  (!is_port(rule, view->ports[0]) && !is_port(rule, view->ports[1]))))
		return 0;
	if (conditions & LB_RULE_HOST && (!(rule->is_ipv6 ? view->is_ipv6 : view->is_ipv4) ||
					  (!is_host(rule, view->source) && !is_host(rule, view->destination))))
		return 0;
	return !(conditions & LB_RULE_CGROUP) ||
	       bpf_skb_ancestor_cgroup_id(skb, rule->cgroup_level) == rule->cgroup;
}

static long step_rule(__u32 i, struct class_walk *walk)
{
	__u32 row = walk->first + i;
	const struct lb_rule *rule = bpf_map_lookup_elem(&lb_rules, &row);

	if (!rule)
		return 1;
	if (!is_chosen(rule, walk->skb, &walk->view))
		return 0;
	walk->row = row;
	walk->class = rule->class;
	walk->is_found = 1;
	return 1;
}

/* The class of a frame; its rule is counted, or noted. */
GLOBAL __u32 class_of(struct __sk_buff *skb)
{
	const struct lb_config *bond = the_bond();
	struct class_walk walk = { .skb = skb };

	if (!bond)
		return 0;
	if (bond->flags & LB_CONFIG_SECOND_RULES)
		walk.first = LB_RULES_MAX;
	view_frame(skb, &walk.view);
	bpf_loop(bond->n_rules, step_rule, &walk, 0);
	if (walk.is_found) {
		if (is_explained(skb))
			skb->cb[3] = walk.row - walk.first + 1;
		else
			count_rule(skb, walk.row);
	}
	return walk.class & (LB_CLASSES_MAX - 1);
}

/* The class sends by its own members: for a while other classes may not borrow them. */
static __always_inline void keep_own(__u32 class, const struct lb_plan *plan)
{
	struct lb_class *own = bpf_map_lookup_elem(&lb_classes, &class);
	__u64 now;

	if (!own || !own->lends || !(plan->slots & own->slots))
		return;
	now = bpf_ktime_get_ns();
	/* All CPUs share this row, so it is not written for each frame. */
	if (now - own->sent_ns > LB_BORROW_IDLE_NS / 16)
		own->sent_ns = now;
}

/* The number of the plan that a class has in place of the plan `base`; `base` where it has none that it can use. */
GLOBAL __u32 class_plan(struct __sk_buff *skb, __u32 base, __u32 class)
{
	const struct lb_class_plans *plans = bpf_map_lookup_elem(&lb_class_plans, &base);
	const struct lb_config *bond = the_bond();
	const struct lb_plan *plan;
	__u32 number;

	if (!plans || !bond)
		return base;
	number = plans->number[class & (LB_CLASSES_MAX - 1)];
	if (!number)
		return base;
	plan = bpf_map_lookup_elem(&lb_plans, &number);
	if (!plan || (plan->flags & LB_PLAN_SHARES && !(plan->slots & ~failed_slots(bond))))
		return base;
	if (!is_explained(skb))
		keep_own(class, plan);
	return number;
}

/* A walk over the lanes of a plan that finds those borrowed from a class which is busy now. */
struct lent_walk {
	const struct lb_plan *plan;
	__u64 now;
	__u32 slots; /* theirs, a bit each */
};

static long step_lent(__u32 i, struct lent_walk *walk)
{
	const struct lb_lane *lane = &walk->plan->lanes[i & (LB_LANES_MAX - 1)];
	const struct lb_class *lender;
	__u32 class = lane->class;

	if (i >= walk->plan->n_lanes)
		return 1;
	if (!class)
		return 0;
	lender = bpf_map_lookup_elem(&lb_classes, &class);
	if (!lender || walk->now - lender->sent_ns < LB_BORROW_IDLE_NS)
		walk->slots |= 1u << (lane->slot & 31);
	return 0;
}

/* The slots that a plan with borrowed lanes must avoid now, a bit each; none if all its other ones have failed. */
GLOBAL __u32 lent_slots(const struct lb_plan *plan, __u32 failed)
{
	struct lent_walk walk = { .plan = plan, .now = bpf_ktime_get_ns() };

	if (!plan)
		return 0;
	bpf_loop(LB_LANES_MAX, step_lent, &walk, 0);
	return plan->slots & ~(failed | walk.slots) ? walk.slots : 0;
}

/* The slots that a plan must avoid now, a bit each: those of failed members and those whose class is busy. */
static __always_inline __u32 unusable_slots(const struct lb_config *bond, const struct lb_plan *plan)
{
	__u32 failed = failed_slots(bond);

	return plan->flags & LB_PLAN_BORROWS ? failed | lent_slots(plan, failed) : failed;
}

#endif
