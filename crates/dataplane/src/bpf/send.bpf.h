/* SPDX-License-Identifier: (GPL-2.0-only OR BSD-2-Clause) */
/*
 * Sends a frame whose way is decided: out of a member, with its MACs or as it is, or a copy to each segment. Called by steer().
 * Reads lb_bond, lb_members, lb_plans; writes counters.
 */
#ifndef LB_SEND_BPF_H
#define LB_SEND_BPF_H

/*
 * Where a frame goes, and why: what is counted of it, or told of it, once that is decided. It begins with zeros alone, else the
 * compiler would copy it from a map of constants.
 */
struct way_out {
	int verdict; /* of bpf_redirect(); 0: it is dropped */
	__u32 class;
	__u32 slot;
	__u32 base;	  /* the plan of the next hop plus 1; 0: no plan decides */
	__u32 plan;	  /* the one that is used: the same, or the one that the class has in its place */
	__u32 generation; /* of that one; 0: the frame takes no lane of a plan */
	__u32 lane;	  /* that it takes; because() where it is asked */
	__u32 second;	  /* the lane of the copy of a mirrored frame, which has left, plus 1; 0: none */
	enum lb_reason reason; /* what it counts as if it leaves by a plan, unless it is mirrored */
	struct lb_mac to;      /* whom it is for then */
	__u16 pad;
};

/* What send_over() does with the MACs. */
enum macs {
	PUT_MACS,
	/* The frame goes from the bond's MAC to the right one already, so that the bond's first member need not touch it. */
	HAS_MACS,
	/* It comes from the member's alias: it is for a guest behind a peer. */
	PUT_ALIAS,
};

/* The frame leaves by the member as it is now. */
static __always_inline void redirect_to(const struct lb_member *member, __u32 slot, struct way_out *way)
{
	way->slot = slot;
	way->verdict = bpf_redirect(member->ifindex, 0);
}

/* Puts the MACs of the lane into the frame and sends it out of the member. */
static __always_inline enum lb_reason send_over(struct __sk_buff *skb, const struct lb_config *bond, __u32 slot,
						const struct lb_mac *to, enum macs how, enum lb_reason reason,
						struct way_out *way)
{
	const struct lb_member *member = member_at(slot);
	struct lb_mac macs[2];

	if (!member || !member->ifindex)
		return LB_TX_NO_LANE;
	macs[0] = *to;
	macs[1] = member->mac;
	if (how == PUT_ALIAS)
		macs[1].b[0] ^= LB_ALIAS_BIT;
	/* The header may sit in a buffer shared with a clone: the helper makes it ours before it changes. */
	if (!(how == HAS_MACS && same_mac(&member->mac, &bond->mac)) &&
	    bpf_skb_store_bytes(skb, 0, macs, sizeof(macs), 0))
		return LB_TX_REWRITE;
	redirect_to(member, slot, way);
	return reason;
}

/* A copy to each segment, the last one with the buffer itself. */
GLOBAL int send_to_segments(struct __sk_buff *skb, const struct lb_mac *to, enum lb_reason reason, struct way_out *way)
{
	const struct lb_config *bond = the_bond();
	__u32 n;

	if (!bond || !to || !way)
		return LB_TX_NO_LANE;
	/* No copies of a frame that is only asked about. */
	n = is_explained(skb) ? 0 : bond->n_segments;
	for (__u32 i = 1; i < LB_MEMBERS_MAX; i++) {
		const struct lb_member *member;
		__u32 slot;

		if (i >= n)
			break;
		slot = bond->elected[i];
		member = member_at(slot);
		if (!member || !member->ifindex)
			continue;
		if (bpf_skb_store_bytes(skb, ETH_ALEN, &member->mac, ETH_ALEN, 0))
			return LB_TX_REWRITE;
		count_member(skb, slot, 1);
		count_reason(skb, LB_TX_MULTICAST_COPY);
		bpf_clone_redirect(skb, member->ifindex, 0);
	}
	return send_over(skb, bond, bond->elected[0], to, PUT_MACS, reason, way);
}

/* A guest's frame leaves by a member as it is. */
static __always_inline enum lb_reason send_guest(__u32 slot, struct way_out *way)
{
	const struct lb_member *member = member_at(slot);

	if (!member || !member->ifindex)
		return LB_TX_NO_LANE;
	redirect_to(member, slot, way);
	return LB_TX_GUEST;
}

/* A copy to each segment but the first, by the member that speaks for the guest there; the frame itself to the first one. */
GLOBAL int send_guest_to_segments(struct __sk_buff *skb, const struct lb_mac *guest, struct way_out *way)
{
	const struct lb_config *bond = the_bond();
	__u32 n;

	if (!bond || !guest || !way)
		return LB_TX_NO_LANE;
	/* No copies of a frame that is only asked about. */
	n = is_explained(skb) ? 0 : bond->n_segments;
	for (__u32 i = 1; i < LB_MEMBERS_MAX; i++) {
		const struct lb_member *member;
		__u32 slot;

		if (i >= n)
			break;
		slot = guest_slot(bond, guest, segment_plan(bond->elected[i]));
		member = member_at(slot);
		if (!member || !member->ifindex)
			continue;
		count_member(skb, slot, 1);
		count_reason(skb, LB_TX_MULTICAST_COPY);
		bpf_clone_redirect(skb, member->ifindex, 0);
	}
	return send_guest(guest_slot(bond, guest, segment_plan(bond->elected[0])), way);
}

/* A guest's frame to a peer: to the peer's member that answers the guest's own, if there is one. */
static __always_inline enum lb_reason send_guest_to_peer(struct __sk_buff *skb, const struct lb_config *bond,
							 const struct lb_mac *guest, __u32 number,
							 struct way_out *way)
{
	const struct lb_plan *plan = bpf_map_lookup_elem(&lb_plans, &number);
	const struct lb_member *first;
	__u32 slot, plain = 0;

	if (!plan || !plan->n_lanes)
		return LB_TX_NO_LANE;
	first = member_at(plan->lanes[0].slot);
	if (first && bond->n_segments > 1)
		plain = segment_plan(first->elected);
	slot = guest_slot(bond, guest, plain);
	for (__u32 i = 0; i < LB_LANES_MAX; i++) {
		if (i >= plan->n_lanes)
			break;
		if (plan->lanes[i].slot != slot)
			continue;
		if (bpf_skb_store_bytes(skb, 0, &plan->lanes[i].peer_mac, ETH_ALEN, 0))
			return LB_TX_REWRITE;
		break;
	}
	return send_guest(slot, way);
}

#endif
