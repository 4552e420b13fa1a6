/* SPDX-License-Identifier: (GPL-2.0-only OR BSD-2-Clause) */
/*
 * The peer that a MAC belongs to. Called by take() (the way in) and steer() (the way out). Reads lb_near_peers,
 * lb_peer_macs; writes nothing.
 */
#ifndef LB_PEER_BPF_H
#define LB_PEER_BPF_H

/* Copies the peer's row; its plan is 0 where the MAC is no peer's. */
static __always_inline void find_peer(const struct lb_mac_key *key, struct lb_peer_mac *peer)
{
	__u32 place = (key->mac.b[4] << 8 | key->mac.b[5]) & (LB_NEAR_PEERS - 1);
	const struct lb_near_peer *near = bpf_map_lookup_elem(&lb_near_peers, &place);
	const struct lb_peer_mac *found;

	/* A copy, for pointers into two maps would make the verifier walk all that follows twice. */
	if (near && near->peer.plan && same_mac(&near->mac, &key->mac)) {
		*peer = near->peer;
		return;
	}
	found = bpf_map_lookup_elem(&lb_peer_macs, key);
	if (found)
		*peer = *found;
	else
		__builtin_memset(peer, 0, sizeof(*peer));
}

/* Whether the row is that of a member. A guest's MAC and an alias lead to a peer, too. */
static __always_inline int is_member_of_peer(const struct lb_peer_mac *peer)
{
	return peer->plan && !(peer->flags & (LB_PEER_GUEST | LB_PEER_ALIAS));
}

#endif
