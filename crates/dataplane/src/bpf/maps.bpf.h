/* SPDX-License-Identifier: (GPL-2.0-only OR BSD-2-Clause) */
/* The maps that join the daemon's decisions to the data path. */
#ifndef LB_MAPS_BPF_H
#define LB_MAPS_BPF_H

/* The bond itself. Written by the daemon, read by all. */
struct {
	__uint(type, BPF_MAP_TYPE_ARRAY);
	__uint(max_entries, 1);
	__type(key, __u32);
	__type(value, struct lb_config);
} lb_bond SEC(".maps");

/* Members by slot. Written by the daemon, read by all. */
struct {
	__uint(type, BPF_MAP_TYPE_ARRAY);
	__uint(max_entries, LB_MEMBERS_MAX);
	__type(key, __u32);
	__type(value, struct lb_member);
} lb_members SEC(".maps");

/* Interface index to slot. Written by the daemon, read by ingress. */
struct {
	__uint(type, BPF_MAP_TYPE_HASH);
	__uint(max_entries, LB_MEMBERS_MAX);
	__type(key, __u32);
	__type(value, __u32);
} lb_slots SEC(".maps");

/* The same for small indices: the slot plus 1; 0 where there is none. Written by the daemon, read by ingress. */
struct {
	__uint(type, BPF_MAP_TYPE_ARRAY);
	__uint(max_entries, LB_NEAR_INTERFACES);
	__type(key, __u32);
	__type(value, __u32);
} lb_near_slots SEC(".maps");

/* The members' MACs (and the bond's) to slots. Written by the daemon, read by ingress. */
struct {
	__uint(type, BPF_MAP_TYPE_HASH);
	__uint(max_entries, 2 * LB_MEMBERS_MAX);
	__type(key, struct lb_mac_key);
	__type(value, __u32);
} lb_own_macs SEC(".maps");

/* MACs of peers. Written by the daemon, read by egress (next hop) and ingress (sender). */
struct {
	__uint(type, BPF_MAP_TYPE_HASH);
	__uint(map_flags, BPF_F_NO_PREALLOC);
	__uint(max_entries, LB_PEER_MACS_MAX);
	__type(key, struct lb_mac_key);
	__type(value, struct lb_peer_mac);
} lb_peer_macs SEC(".maps");

/* The same without a hash, for one MAC of each place. Written by the daemon, read by egress and ingress. */
struct {
	__uint(type, BPF_MAP_TYPE_ARRAY);
	__uint(max_entries, LB_NEAR_PEERS);
	__type(key, __u32);
	__type(value, struct lb_near_peer);
} lb_near_peers SEC(".maps");

/* Plain hosts to the slot they were heard on, while there are several segments. Written by ingress, read by all. */
struct {
	__uint(type, BPF_MAP_TYPE_LRU_HASH);
	__uint(max_entries, LB_PLAIN_HOSTS_MAX);
	__type(key, struct lb_mac_key);
	__type(value, __u32);
} lb_plain_hosts SEC(".maps");

/* Plain hosts to the member that each is to send to. Written by the daemon, read by all. */
struct {
	__uint(type, BPF_MAP_TYPE_HASH);
	__uint(max_entries, LB_ANSWERS_MAX);
	__type(key, struct lb_mac_key);
	__type(value, struct lb_answer);
} lb_answers SEC(".maps");

/* Plans. Written by the daemon, read by egress and by damping. */
struct {
	__uint(type, BPF_MAP_TYPE_ARRAY);
	__uint(max_entries, LB_PLANS_MAX);
	__type(key, __u32);
	__type(value, struct lb_plan);
} lb_plans SEC(".maps");

/* Rules, those in force in one half; see lb_config. Written by the daemon, read by egress. */
struct {
	__uint(type, BPF_MAP_TYPE_ARRAY);
	__uint(max_entries, LB_RULE_ROWS);
	__type(key, __u32);
	__type(value, struct lb_rule);
} lb_rules SEC(".maps");

/* Classes. Written by the daemon and egress, read by egress. */
struct {
	__uint(type, BPF_MAP_TYPE_ARRAY);
	__uint(max_entries, LB_CLASSES_MAX);
	__type(key, __u32);
	__type(value, struct lb_class);
} lb_classes SEC(".maps");

/* Which classes have precedence, one row. Written by the daemon, read by egress. */
struct {
	__uint(type, BPF_MAP_TYPE_ARRAY);
	__uint(max_entries, 1);
	__type(key, __u32);
	__type(value, struct lb_precedence);
} lb_precedence SEC(".maps");

/* What those have taken of each member. Written by egress. */
struct {
	__uint(type, BPF_MAP_TYPE_ARRAY);
	__uint(max_entries, LB_MEMBERS_MAX);
	__type(key, __u32);
	__type(value, struct lb_first);
} lb_first SEC(".maps");

/* Plans of classes in place of each plan. Written by the daemon, read by egress. */
struct {
	__uint(type, BPF_MAP_TYPE_ARRAY);
	__uint(max_entries, LB_PLANS_MAX);
	__type(key, __u32);
	__type(value, struct lb_class_plans);
} lb_class_plans SEC(".maps");

/* The newest sequence number of each class's mirrored frames, whoever they went to. Written by egress. */
struct {
	__uint(type, BPF_MAP_TYPE_ARRAY);
	__uint(max_entries, LB_CLASSES_MAX);
	__type(key, __u32);
	__type(value, __u32);
} lb_mirror_sent SEC(".maps");

/* Mirrored frames that came. Written by ingress. */
struct {
	__uint(type, BPF_MAP_TYPE_LRU_HASH);
	__uint(max_entries, LB_MIRRORS_MAX);
	__type(key, struct lb_mirror_key);
	__type(value, struct lb_mirror);
} lb_mirrors SEC(".maps");

/* The initial value of a stream of mirrored frames, too large for the stack. Never written. */
struct {
	__uint(type, BPF_MAP_TYPE_ARRAY);
	__uint(max_entries, 1);
	__type(key, __u32);
	__type(value, struct lb_mirror);
} lb_empty_mirror SEC(".maps");

/* The mirrored frame that a CPU looks at: the way in has no stack left for it. */
struct {
	__uint(type, BPF_MAP_TYPE_PERCPU_ARRAY);
	__uint(max_entries, 1);
	__type(key, __u32);
	__type(value, struct lb_mirror_view);
} lb_mirror_view SEC(".maps");

/* How far each lane of each plan is. Written by egress. */
struct {
	__uint(type, BPF_MAP_TYPE_ARRAY);
	__uint(max_entries, LB_PLANS_MAX);
	__type(key, __u32);
	__type(value, struct lb_progress);
} lb_progresses SEC(".maps");

/* What each lane carried. Written by egress, read by the daemon. */
struct {
	__uint(type, BPF_MAP_TYPE_PERCPU_ARRAY);
	__uint(max_entries, LB_PLANS_MAX);
	__type(key, __u32);
	__type(value, struct lb_lane_counts);
} lb_lane_counters SEC(".maps");

/* The number of the daemon's look at counters, which is never 0. Written by the daemon, read by egress. */
struct {
	__uint(type, BPF_MAP_TYPE_ARRAY);
	__uint(max_entries, 1);
	__type(key, __u32);
	__type(value, __u8);
} lb_look SEC(".maps");

/* Before which look each plan was used last: the daemon reads the counters of no others. Written by egress, read by the daemon. */
struct {
	__uint(type, BPF_MAP_TYPE_ARRAY);
	__uint(max_entries, 1);
	__type(key, __u32);
	__type(value, __u8[LB_PLANS_MAX]);
} lb_used SEC(".maps");

/* Striped TCP flows. Written by egress and ingress. */
struct {
	__uint(type, BPF_MAP_TYPE_LRU_HASH);
	__uint(max_entries, LB_FLOWS_MIN);
	__type(key, struct lb_flow_key);
	__type(value, struct lb_flow);
} lb_flows SEC(".maps");

/* One empty flow a CPU: a map value to start a flow from, too large for the stack. */
struct {
	__uint(type, BPF_MAP_TYPE_PERCPU_ARRAY);
	__uint(max_entries, 1);
	__type(key, __u32);
	__type(value, struct lb_flow);
} lb_empty_flow SEC(".maps");

/* ARP+ frames for the daemon. Written by ingress, read by the daemon. */
struct {
	__uint(type, BPF_MAP_TYPE_RINGBUF);
	__uint(max_entries, LB_ARP_PLUS_RING_BYTES);
} lb_arp_plus SEC(".maps");

/* The same of hosts that the daemon knows, its own that come back, and answers of plain hosts to its probes: what strangers send takes none of their room. */
struct {
	__uint(type, BPF_MAP_TYPE_RINGBUF);
	__uint(max_entries, LB_KNOWN_RING_BYTES);
} lb_known SEC(".maps");

/* What of each budget is used, by plan number. Written by ingress. */
struct {
	__uint(type, BPF_MAP_TYPE_ARRAY);
	__uint(max_entries, LB_PLANS_MAX);
	__type(key, __u32);
	__type(value, struct lb_budget);
} lb_budgets SEC(".maps");

/* Strangers that were heard lately. Written by ingress. */
struct {
	__uint(type, BPF_MAP_TYPE_ARRAY);
	__uint(max_entries, LB_STRANGER_SETS);
	__type(key, __u32);
	__type(value, struct lb_strangers);
} lb_strangers SEC(".maps");

/* Part of the hash of strangers' MACs: who sends does not know it, so none can be made that share a set with a true host's. */
struct {
	__uint(type, BPF_MAP_TYPE_ARRAY);
	__uint(max_entries, 1);
	__type(key, __u32);
	__type(value, __u64);
} lb_seed SEC(".maps");

/* Guests here. Written by egress and ingress, read by the daemon. */
struct {
	__uint(type, BPF_MAP_TYPE_LRU_HASH);
	__uint(max_entries, LB_GUESTS_MAX);
	__type(key, struct lb_mac_key);
	__type(value, struct lb_guest);
} lb_guests SEC(".maps");

/* When guests here sent multicast frames, ns since boot. Written by egress, read by ingress. */
struct {
	__uint(type, BPF_MAP_TYPE_LRU_HASH);
	__uint(max_entries, LB_GUESTS_SENT_MAX);
	__type(key, struct lb_guest_sent);
	__type(value, __u64);
} lb_guests_sent SEC(".maps");

/* Addresses of guests, here and behind peers. Written by the daemon, read by egress and ingress. */
struct {
	__uint(type, BPF_MAP_TYPE_HASH);
	__uint(map_flags, BPF_F_NO_PREALLOC);
	__uint(max_entries, LB_GUEST_PAIRS_MAX);
	__type(key, struct lb_guest_key);
	__type(value, struct lb_guest_pair);
} lb_guest_pairs SEC(".maps");

/* Until when guests' frames may go over all lanes, ns since boot: a daemon that lives says so. Written by it, read by egress. */
struct {
	__uint(type, BPF_MAP_TYPE_ARRAY);
	__uint(max_entries, 1);
	__type(key, __u32);
	__type(value, __u64);
} lb_guests_until SEC(".maps");

/* Addresses that guests here were seen to use. Written by egress, read by the daemon. */
struct {
	__uint(type, BPF_MAP_TYPE_LRU_HASH);
	__uint(max_entries, LB_GUESTS_SEEN_MAX);
	__type(key, struct lb_guest_key);
	__type(value, struct lb_guest_seen);
} lb_guests_seen SEC(".maps");

/* How often an address came to that table, got another MAC there, or was named again after a while. Written by egress, read by the daemon. */
struct {
	__uint(type, BPF_MAP_TYPE_ARRAY);
	__uint(max_entries, 1);
	__type(key, __u32);
	__type(value, __u64);
} lb_seen_changes SEC(".maps");

/*
 * An unused socket of the daemon: the kernel removes it when the daemon's process ends, for whatever reason. (On kernels
 * without such sockets an array, whose row is always there.)
 */
struct {
	__uint(type, BPF_MAP_TYPE_XSKMAP);
	__uint(max_entries, 1);
	__type(key, __u32);
	__type(value, __u32);
} lb_holder SEC(".maps");

static __always_inline const struct lb_config *the_bond(void)
{
	__u32 zero = 0;

	return bpf_map_lookup_elem(&lb_bond, &zero);
}

/* The slot of an interface; LB_NO_SLOT if it is no member. */
static __always_inline __u32 slot_of(__u32 ifindex)
{
	__u32 *found = bpf_map_lookup_elem(&lb_near_slots, &ifindex);

	if (found && *found)
		return *found - 1;
	found = bpf_map_lookup_elem(&lb_slots, &ifindex);
	return found ? *found : LB_NO_SLOT;
}

static __always_inline const struct lb_member *member_at(__u32 slot)
{
	return bpf_map_lookup_elem(&lb_members, &slot);
}

/* Members that no frame is to leave by, a bit a slot: failed since the plans were written, or without the daemon. */
static __always_inline __u32 failed_slots(const struct lb_config *bond)
{
	__u32 held = bond->flags >> LB_CONFIG_HELD_SHIFT, zero = 0;

	if (held && !bpf_map_lookup_elem(&lb_holder, &zero))
		return bond->failed_slots | held;
	return bond->failed_slots;
}

static __always_inline int is_dead(const struct lb_config *bond, __u32 slot)
{
	return failed_slots(bond) >> (slot & 31) & 1;
}

static __always_inline struct lb_mac_key mac_key(const struct lb_mac *mac)
{
	struct lb_mac_key key = { .mac = *mac };

	return key;
}

#endif
