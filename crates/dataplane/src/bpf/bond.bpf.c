// SPDX-License-Identifier: (GPL-2.0-only OR BSD-2-Clause)
/*
 * The data path of a bond: programs on the tc hooks (tcx or clsact).
 *
 *   lb_egress   on the internal port of the bond (a bridge), by which all that it sends leaves, egress:
 *               frame -> plan of the next hop (and class) -> lane -> MACs -> member
 *   lb_mark     on the bond itself, egress: marks what its host sends
 *   lb_copies   on each member, egress: drops what the bridge itself sends there
 *   lb_ingress  on each member, ingress: own, copied and flooded frames dropped, MACs put right, ARP+ to
 *               the daemon; what passes goes on to the bridge
 *
 * A bridge sends what its host has for many out of every port, whatever the port's flags say (br_flood, net/bridge/br_forward.c),
 * and everything out of a port that has just come and has no flags yet. Only what it sends by the internal port is to leave.
 *
 * They only follow tables that the daemon writes; they know no protocol and outlive the daemon.
 */
#include <linux/bpf.h>
#include <linux/if_ether.h>
#include <linux/if_packet.h>
#include <linux/ip.h>
#include <linux/ipv6.h>
#include <linux/pkt_cls.h>
#include <linux/tcp.h>
#include <stddef.h>
#include <bpf/bpf_endian.h>
#include <bpf/bpf_helpers.h>

#include "intf.h"
#include "policies.h"
#include "explain.h"
#include "latency.h"
#include "global.bpf.h"
#include "maps.bpf.h"
#include "stats.bpf.h"
#include "explain.bpf.h"
#include "parse.bpf.h"
#include "peer.bpf.h"
#include "sack.bpf.h"
#include "lanes.bpf.h"
#include "stripes.bpf.h"
#include "penalty.bpf.h"
#include "delivery.bpf.h"
#include "damp.bpf.h"
#include "plain.bpf.h"
#include "answer.bpf.h"
#include "guest.bpf.h"
#include "pairs.bpf.h"
#include "class.bpf.h"
#include "first.bpf.h"
#include "mirror.bpf.h"
#include "send.bpf.h"
#include "steer.bpf.h"
#include "take.bpf.h"
#include "stamp.bpf.h"

/* skb->tc_index of what the host sends, until it leaves by the internal port. The same in every build: programs of two may be in their places. */
#define HOST_MARK 0x6c62

SEC("tcx/egress")
int lb_mark(struct __sk_buff *skb)
{
	skb->tc_index = HOST_MARK;
	return TC_ACT_UNSPEC;
}

/*
 * What arrived by a member of this bond. The bridge passes it on to other members, and to the internal port, where a member that
 * somebody has put back by hand has no flags yet: it would go round without end.
 */
static __always_inline int is_from_member(struct __sk_buff *skb)
{
	return slot_of(skb->ingress_ifindex) != LB_NO_SLOT;
}

SEC("tcx/egress")
int lb_copies(struct __sk_buff *skb)
{
	return skb->tc_index == HOST_MARK || is_from_member(skb) ? TC_ACT_SHOT : TC_ACT_UNSPEC;
}

/* Counts a frame that leaves: its member, its lanes and its class. */
static __always_inline void count_way(struct __sk_buff *skb, const struct way_out *way)
{
	count_member(skb, way->slot, 1);
	if (way->generation)
		count_lane(skb, way, way->lane);
	if (way->second)
		count_lane(skb, way, way->second - 1);
	if (way->class)
		count_class(skb, way->class);
}

/* What is told of a frame that is only asked about (explain.h). It goes nowhere. */
static __always_inline int tell(struct __sk_buff *skb, const struct way_out *way, enum lb_reason reason)
{
	__u32 slot = way->verdict ? way->slot + 1 : 0;

	skb->cb[0] = reason | way->class << LB_EXPLAIN_CLASS_SHIFT | slot << LB_EXPLAIN_SLOT_SHIFT |
		     way->second << LB_EXPLAIN_SECOND_SHIFT;
	skb->cb[1] = way->base | way->plan << LB_EXPLAIN_PLAN_SHIFT;
	skb->cb[2] = way->lane;
	return TC_ACT_SHOT;
}

SEC("tcx/egress")
int lb_egress(struct __sk_buff *skb)
{
	struct way_out way = {};
	enum lb_reason reason;

	if (skb->tc_index != HOST_MARK && is_from_member(skb)) {
		count_reason(skb, LB_TX_LOOP);
		return TC_ACT_SHOT;
	}
	skb->tc_index = 0;
	reason = steer(skb, &way);
	if (reason == BY_PLAN)
		reason = send_by_plan(skb, &way);
	if (is_explained(skb))
		return tell(skb, &way, reason);
	count_reason(skb, reason);
	if (way.verdict != TC_ACT_REDIRECT)
		return TC_ACT_SHOT;
	count_way(skb, &way);
	if (way.class)
		go_first(skb, way.class, way.slot);
	stamp(skb, the_bond(), way.class);
	return TC_ACT_REDIRECT;
}

/* Damping's word on a frame that take() let in; 0 where it has none. */
static __always_inline enum lb_reason judge_ack(struct __sk_buff *skb, __u32 number)
{
	const struct lb_config *bond = the_bond();

	if (!bond || !(bond->flags & LB_CONFIG_DAMPING))
		return 0;
	/* Over one lane nothing is striped; a class of the flow's may have more lanes, though. */
	if (!bond->n_rules) {
		const struct lb_plan *plan = bpf_map_lookup_elem(&lb_plans, &number);

		if (!plan || plan->n_lanes < 2)
			return 0;
	}
	return damp(skb);
}

SEC("tcx/ingress")
int lb_ingress(struct __sk_buff *skb)
{
	struct way_in way = { .slot = LB_NO_SLOT };
	enum lb_reason reason = take(skb, &way);

	if (reason == LB_RX_PEER || reason == LB_RX_PLAIN || reason == LB_RX_FOR_GUEST) {
		enum lb_reason finer = judge_ack(skb, way.plan);

		reason = finer ? finer : reason;
	}
	count_reason(skb, reason);
	switch (verdict_of(reason)) {
	case LB_PASS:
		count_member(skb, way.slot, 0);
		return TC_ACT_UNSPEC;
	case LB_PASS_UNCOUNTED:
		return TC_ACT_UNSPEC;
	case LB_PASS_AGAIN:
		return bpf_redirect(skb->ifindex, BPF_F_INGRESS);
	case LB_DROP_COUNTED:
		count_member(skb, way.slot, 0);
		return TC_ACT_SHOT;
	default:
		return TC_ACT_SHOT;
	}
}

char LICENSE[] SEC("license") = "Dual BSD/GPL";
