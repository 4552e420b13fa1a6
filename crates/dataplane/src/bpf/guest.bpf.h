/* SPDX-License-Identifier: (GPL-2.0-only OR BSD-2-Clause) */
/*
 * Guests: machines and containers behind the bond, with MACs of their own. Each sends, and is reached, by one member of each
 * segment, so that a switch sees its MAC on one port. What goes over all lanes does not carry its MAC (pairs.bpf.h). Called on
 * the way out and on the way in. Reads lb_plans, lb_bond; writes lb_guests, lb_guests_sent.
 */
#ifndef LB_GUEST_BPF_H
#define LB_GUEST_BPF_H

/* How often at most it is noted that a guest sends, ns. */
#define GUEST_NOTE_NS (100 * 1000 * 1000)
/* What a switch sends back to us, it sends back within this time, ns. */
#define GUEST_BACK_NS (500 * 1000 * 1000)
/* By so many bytes of a frame it is told from others. */
#define GUEST_SENT_BYTES 40

/* A guest sends. The daemon's word that one is here (RARP) is not a sign of the guest's own life. */
static __always_inline void note_guest(struct __sk_buff *skb, const struct lb_mac *guest, __be16 protocol)
{
	struct lb_mac_key key = mac_key(guest);
	struct lb_guest *known = bpf_map_lookup_elem(&lb_guests, &key);
	struct lb_guest new = { .last_ns = bpf_ktime_get_ns(), .port = skb->ingress_ifindex };

	if (!known) {
		bpf_map_update_elem(&lb_guests, &key, &new, BPF_ANY);
	} else if (protocol != bpf_htons(ETH_P_RARP) && new.last_ns - known->last_ns > GUEST_NOTE_NS) {
		known->last_ns = new.last_ns;
		known->port = new.port;
	}
}

/*
 * A multicast frame, by whose it is and what it begins with: Ethernet, ARP, or the header of IPv4 and six bytes behind it. What a
 * short frame lacks is 0, as on the wire.
 */
GLOBAL int fill_guest_sent(struct __sk_buff *skb, struct lb_guest_sent *key)
{
	__u32 words[GUEST_SENT_BYTES / 4] = {}, len = skb->len, hash = 0;

	if (!key)
		return 0;
	if (len > GUEST_SENT_BYTES)
		len = GUEST_SENT_BYTES;
	if (len < ETH_HLEN || bpf_skb_load_bytes(skb, 0, words, len))
		return 0;
#pragma clang loop unroll(full)
	for (__u32 i = 0; i < GUEST_SENT_BYTES / 4; i++)
		hash = (hash ^ words[i]) * 0x9e3779b1;
	__builtin_memcpy(&key->mac, (__u8 *)words + ETH_ALEN, ETH_ALEN);
	key->pad[0] = key->pad[1] = 0;
	key->hash = hash;
	return 1;
}

/* A guest sends a frame to many. What a buffer of several frames looks like on the wire is not known: it stands for all. */
static __always_inline void note_sent(struct __sk_buff *skb)
{
	struct lb_guest_sent key = {};
	__u64 now = bpf_ktime_get_ns();

	if (!fill_guest_sent(skb, &key))
		return;
	if (wire_frames(skb) > 1)
		key.hash = 0;
	bpf_map_update_elem(&lb_guests_sent, &key, &now, BPF_ANY);
}

static __always_inline int was_sent(const struct lb_guest_sent *key, __u64 now)
{
	__u64 *sent = bpf_map_lookup_elem(&lb_guests_sent, key);

	return sent && now - *sent < GUEST_BACK_NS;
}

/*
 * Whether a multicast frame is a guest's own, which the switch sent back on another port. Another one from its MAC comes from
 * somebody else who has it, as routers do that share one (VRRP, RFC 5798); long after what the guest sent here it shows that it
 * lives elsewhere now.
 */
static __always_inline int is_sent_back(struct __sk_buff *skb, const struct lb_mac_key *source)
{
	const struct lb_guest *guest = bpf_map_lookup_elem(&lb_guests, source);
	__u64 now = bpf_ktime_get_ns();
	struct lb_guest_sent key = {};

	if (!guest)
		return 0;
	if (now - guest->last_ns < GUEST_BACK_NS) {
		if (!fill_guest_sent(skb, &key) || was_sent(&key, now))
			return 1;
		key.hash = 0;
		return was_sent(&key, now);
	}
	bpf_map_delete_elem(&lb_guests, source);
	return 0;
}

struct guest_walk {
	const struct lb_plan *plan;
	__u32 hash;
	__u32 failed; /* slots, a bit each */
	__u32 slot;
	__u32 score;
};

static long step_guest(__u32 i, struct guest_walk *walk)
{
	const struct lb_lane *lane = &walk->plan->lanes[i & (LB_LANES_MAX - 1)];
	__u32 score = walk->hash ^ (lane->slot + 1) * 0x9e3779b1u;

	if (i >= walk->plan->n_lanes)
		return 1;
	if (lane->class || walk->failed >> (lane->slot & 31) & 1)
		return 0;
	score = (score ^ score >> 15) * 0x85ebca6bu;
	score = (score ^ score >> 13) * 0xc2b2ae35u;
	score ^= score >> 16;
	/* Slower members score less. */
	score = lane->byte_cost ? score / lane->byte_cost : score;
	if (walk->slot == LB_NO_SLOT || score > walk->score) {
		walk->slot = lane->slot;
		walk->score = score;
	}
	return 0;
}

/*
 * The member of the plan `number` that speaks for a guest: the one whose hash with the guest's MAC is highest (rendezvous
 * hashing). So a guest moves only when its own member fails, or one that suits it better comes.
 */
GLOBAL __u32 guest_slot(const struct lb_config *bond, const struct lb_mac *guest, __u32 number)
{
	const struct lb_plan *plan = bpf_map_lookup_elem(&lb_plans, &number);
	struct guest_walk walk = { .plan = plan, .slot = LB_NO_SLOT };

	if (!plan || !bond || !guest)
		return LB_NO_SLOT;
	walk.hash = (guest->b[2] << 24 | guest->b[3] << 16 | guest->b[4] << 8 | guest->b[5]) * 2654435761u ^
		    (guest->b[0] << 8 | guest->b[1]);
	walk.failed = failed_slots(bond);
	bpf_loop(LB_LANES_MAX, step_guest, &walk, 0);
	if (walk.slot == LB_NO_SLOT) {
		/* All have failed: any is better than none. */
		walk.failed = 0;
		bpf_loop(LB_LANES_MAX, step_guest, &walk, 0);
	}
	return walk.slot;
}

#endif
