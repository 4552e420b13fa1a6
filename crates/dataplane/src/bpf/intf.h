/* SPDX-License-Identifier: (GPL-2.0-only OR BSD-2-Clause) */
/*
 * What the programs and the daemon share: limits, reasons and the layout of every map value. Programs of another build are taken over
 * with their maps only if this file and those with the maps are the same there, so whoever changes what a row means says it here.
 *
 * The daemon's side is generated from this file when it is built (crates/dataplane/build.rs). All integers are in host byte order unless the type says otherwise; MACs are in wire order.
 */
#ifndef LB_INTF_H
#define LB_INTF_H

#include <linux/types.h>

#define LB_ETH_P_ARP_PLUS 0x88B5
/* TYPE of an announcement, and of a PROBE, which may be padded to any length. */
#define LB_ARP_PLUS_CHANGE 3
#define LB_ARP_PLUS_PROBE 5
/* TLVs of ARP+ (docs/arp-plus.md, section 3). */
#define LB_TLV_HOST 2
#define LB_TLV_SEQUENCE 3
/* A frame that leaves by two lanes, with a trailer (struct lb_mirror_trailer). IEEE Std 802, local experimental 2. */
#define LB_ETH_P_MIRROR 0x88B6
#define LB_MIRROR_VERSION 1
/* Streams of mirrored frames that are remembered; the least recently used one makes room. */
#define LB_MIRRORS_MAX 512
/* How many frames behind the newest one the first copy of a mirrored frame may be; a power of two. */
#define LB_MIRROR_WINDOW 1024
/* A copy is no more frames behind than this. */
#define LB_MIRROR_LATE_MAX (1 << 20)

/* Members of one bond. */
#define LB_MEMBERS_MAX 16
/* Interfaces with a smaller index are found without a hash. */
#define LB_NEAR_INTERFACES 4096
/* Lanes of one plan. */
#define LB_LANES_MAX 16
/* Plans: number 0 is for plain hosts, the others belong to peers up to the first one of segments. */
#define LB_PLAIN_PLAN_FIRST 4097
/* For plain hosts of one segment while there are several: this plus the slot of its elected member. */
#define LB_PLANS_MAX (LB_PLAIN_PLAN_FIRST + LB_MEMBERS_MAX)
/* Plain hosts whose segment is known; the least recently used one makes room. */
#define LB_PLAIN_HOSTS_MAX 8192
/* Plain hosts that get a member of their own to send to, and four more that are probed. */
#define LB_ANSWERS_MAX 1028
/* MACs of peers, with those they had a while ago. */
#define LB_PEER_MACS_MAX 65536
/* Places of peers' MACs that are found without a hash: one for each value of a MAC's last bits; a power of two. */
#define LB_NEAR_PEERS 1024
/* Striped TCP flows whose stripes are remembered; the least recently used one makes room. The loader makes it more on large machines. */
#define LB_FLOWS_MIN 2048
/* Stripes remembered of a flow; a power of two. */
#define LB_STRIPES_MAX 256
/* Classes, with number 0, the default class: all traffic that no rule matches. */
#define LB_CLASSES_MAX 8
/* Rules of one bond. */
#define LB_RULES_MAX 64
/* Two sets of rules, so that one can be written while the other one is in force. */
#define LB_RULE_ROWS (2 * LB_RULES_MAX)
/* Guests that are known; the least recently used one makes room. */
#define LB_GUESTS_MAX 4096
/* Addresses of guests, here and behind peers, by which their frames go over all lanes. */
#define LB_GUEST_PAIRS_MAX 32768
/* Addresses that guests here were seen to use; the least recently used one makes room. */
#define LB_GUESTS_SEEN_MAX 4096
/* Multicast frames of guests that are remembered, to tell when a switch sends one back. */
#define LB_GUESTS_SENT_MAX 8192
/* The bit of a MAC's first byte in which a member's alias differs from its MAC: locally administered. */
#define LB_ALIAS_BIT 2
/* A class that has sent nothing for so long lends its members, ns. */
#define LB_BORROW_IDLE_NS (100 * 1000 * 1000)
/* Frames with precedence may take so much of a member at once, ns at nine tenths of its rate. */
#define LB_FIRST_BURST_NS (20 * 1000 * 1000)
/* Whoever takes more has none for so long, ns. */
#define LB_FIRST_WAIT_NS (100 * 1000 * 1000)
/* The longest ARP+ frame handed to the daemon, with its Ethernet header, in bytes. */
#define LB_ARP_PLUS_BYTES_MAX 1514
/* Frames of strangers waiting for the daemon, and those of hosts that it knows, in bytes of ring buffer. */
#define LB_ARP_PLUS_RING_BYTES (256 * 1024)
#define LB_KNOWN_RING_BYTES (512 * 1024)
/* What is no longer than this takes less of them, in bytes. */
#define LB_ARP_PLUS_SHORT_MAX 248
/* For one host that the daemon knows, and for all strangers of one kind together: bytes of ring buffer in 2^26 ns (67 ms). */
#define LB_BUDGET (128 * 1024)
#define LB_BUDGET_NS_SHIFT 26
/* Whose budget: a peer's has the number of its plan. */
#define LB_STRANGERS 0
#define LB_OURSELVES LB_PLAIN_PLAN_FIRST
#define LB_PROBED_HOSTS (LB_PLAIN_PLAN_FIRST + 1)
#define LB_STRANGERS_AGAIN (LB_PLAIN_PLAN_FIRST + 2)
#define LB_STRANGERS_PROBES (LB_PLAIN_PLAN_FIRST + 3)
/* MACs of strangers that were heard lately are remembered in so many sets (a power of two) of so many places. */
#define LB_STRANGER_SETS 131072
#define LB_STRANGER_PLACES 4
/* A stranger is heard again if it was heard at most so many units of 2^26 ns before (2.5 s): true hosts speak each second. */
#define LB_STRANGER_AGE_MAX 37
/* "No member": a slot that is never valid. */
#define LB_NO_SLOT 0xff
/* "No lane", where generation and lane are kept together. */
#define LB_NO_LANE 0xffffffff

/*
 * What becomes of a frame. Users see the first word: sent, pass or drop.
 */
enum lb_verdict {
	LB_SENT,           /* redirected to a member */
	LB_PASS,           /* goes on to the bridge, and counts as received by its member */
	LB_PASS_UNCOUNTED, /* goes on to the bridge */
	LB_PASS_AGAIN,     /* arrives on its member once more, in another form */
	LB_PASS_TO_DAEMON, /* the daemon has it, and nobody else gets it */
	LB_DROP,
	LB_DROP_COUNTED,   /* dropped, and counts as received by its member */
};

/*
 * Reasons, each with the verdict that follows from it. Never renumbered; a retired number stays "unused". The build
 * script reads these lines. X(number, NAME, VERDICT, "sentence")
 */
#define LB_REASONS(X) \
	X(0, UNUSED, DROP, "never counted") \
	X(1, TX_PEER, SENT, "left over a lane of the peer's plan") \
	X(2, TX_PLAIN, SENT, "left for a plain host over any member") \
	X(3, TX_MULTICAST, SENT, "broadcast or multicast, left over the members in turn") \
	X(4, TX_REPORT, SENT, "IGMP or MLD report, left by the elected member") \
	X(5, TX_GUEST, SENT, "source is not the bond's MAC: left by the member that speaks for that guest") \
	X(6, TX_MULTICAST_COPY, SENT, "further copy of a frame for a separate segment") \
	X(7, TX_NO_LANE, DROP, "no live lane") \
	X(8, TX_SHORT, DROP, "shorter than an Ethernet header") \
	X(9, TX_REWRITE, DROP, "the kernel refused to rewrite the MAC header") \
	X(10, RX_PEER, PASS, "from a peer, MAC header put right") \
	X(11, RX_PLAIN, PASS, "from a plain host") \
	X(12, RX_MULTICAST, PASS, "broadcast or multicast, first copy") \
	X(13, RX_GUEST, PASS, "for a guest behind the bond") \
	X(14, RX_NOT_OURS, PASS_UNCOUNTED, "arrived on an interface that is not a member yet or any more") \
	X(15, RX_OWN, DROP, "one of our own frames, looped back by the switch") \
	X(16, RX_COPY, DROP, "another copy of a broadcast or multicast") \
	X(17, RX_FLOODED, DROP, "flooded by the switch: for another member's MAC") \
	X(18, RX_STRANGER, DROP, "flooded by the switch: for a MAC that is not ours") \
	X(19, RX_SHORT, DROP, "shorter than an Ethernet header") \
	X(20, RX_ARP_PLUS, PASS_TO_DAEMON, "ARP+, handed to the daemon") \
	X(21, RX_ARP_PLUS_LONG, DROP, "ARP+ frame longer than the limit") \
	X(22, RX_ARP_PLUS_FULL, DROP, "ARP+ frame while the daemon's queue was full") \
	X(23, RX_REWRITE, DROP, "the kernel refused to rewrite the MAC header") \
	X(24, RX_ACK_DAMPED, DROP_COUNTED, "duplicate ACK about a hole that reordering between lanes can explain") \
	X(25, RX_ACK_MASKED, PASS, "ACK that moves the window; its SACK blocks about a hole that reordering between lanes can explain were removed") \
	X(26, RX_ACK_LOST, PASS, "ACK that proves a loss: later data on the same lane arrived") \
	X(27, RX_ACK_OLD, PASS, "ACK about a hole older than reordering between lanes can explain") \
	X(28, RX_ACK_DSACK, PASS, "ACK that reports a duplicate (DSACK)") \
	X(29, RX_ACK_SHARE, PASS, "duplicate ACK let through: too many of the flow's ACKs were damped") \
	X(30, RX_ACK_WINDOW, PASS, "duplicate ACK that also has data, changes the window or echoes congestion") \
	X(31, TX_PLAIN_SEGMENT, SENT, "left for a plain host over the members of its segment") \
	X(32, TX_PLAIN_UNKNOWN, SENT, "for a plain host not yet heard from: a copy left in each segment") \
	X(33, TX_ANSWER, SENT, "ARP or neighbour discovery for one plain host; names the member that the host is to send to") \
	X(34, TX_ASKED_ALL, SENT, "ARP or neighbour discovery for all; names the bond's MAC") \
	X(35, RX_PROBED, PASS_TO_DAEMON, "copy of a plain host's reply to an ARP probe, handed to the daemon") \
	X(36, RX_PROBED_LOST, DROP, "copy of a plain host's reply to an ARP probe while the daemon's queue was full; the reply itself passed") \
	X(37, TX_CLASS_BLOCKED, DROP, "no live lane of its class, which may not fall back to the default class") \
	X(38, TX_MIRROR, SENT, "mirrored: left over two lanes of the peer's plan; this is the first one") \
	X(39, TX_MIRROR_COPY, SENT, "mirrored: its copy over the second lane") \
	X(40, TX_MIRROR_ONCE, SENT, "not mirrored: too long for the trailer, of several segments, in a VLAN, or no second lane") \
	X(41, RX_MIRROR, PASS_AGAIN, "first copy of a mirrored frame; the frame in it is counted again under its own reason") \
	X(42, RX_MIRROR_COPY, DROP_COUNTED, "second copy of a mirrored frame") \
	X(43, RX_MIRROR_LATE, DROP, "mirrored frame too late to tell whether it is a second copy") \
	X(44, RX_MIRROR_STRANGER, DROP, "mirrored frame from a host that is not a peer") \
	X(45, RX_MIRROR_BAD, DROP, "mirrored frame with an invalid trailer") \
	X(46, RX_ACK_LAST, PASS, "ACK about a hole that reordering between lanes can explain, let through because no further ACK is expected soon") \
	X(47, RX_SOLICITED, PASS_TO_DAEMON, "a plain host's answer to a neighbour solicitation of the daemon, handed to it") \
	X(48, RX_TO_PROBE, DROP, "for the address that the daemon's neighbour solicitations come from: no answer that it waits for, or its queue was full") \
	X(49, TX_LOOP, DROP, "arrived on a member, and the bridge would have sent it by another one") \
	X(50, RX_NOT_YET, DROP, "for many or for another host, on an interface that is not a member yet or any more") \
	X(51, TX_FROM_GUEST, SENT, "from a guest to a peer itself: left over a lane of the peer's plan") \
	X(52, TX_FOR_GUEST, SENT, "for a guest behind a peer: left over a lane of the peer's plan, from the alias of a member") \
	X(53, RX_FOR_GUEST, PASS, "from the alias of a peer's member, for a guest here; MAC header put right") \
	X(54, RX_NO_GUEST, PASS, "from the alias of a peer's member, for an address that is no guest's; taken in as from a plain host") \
	X(55, RX_GUEST_AWAY, DROP, "from the alias of a peer's member, for a guest that is behind a peer") \
	X(56, RX_TAGGED, DROP, "ARP+ or mirrored frame in a VLAN: both are for the untagged network only") \
	X(57, RX_ARP_PLUS_RATE, DROP, "ARP+ frame beyond what one peer, or all strangers together, may send in a short time") \
	X(58, RX_ACK_TOLERATED, PASS, "ACK about a hole that TCP itself waits for: the round trip is long against what lanes differ by")

#define LB_REASONS_MAX 64

#define LB_REASON_ENUM(number, name, verdict, sentence) LB_##name = number,
enum lb_reason { LB_REASONS(LB_REASON_ENUM) LB_REASONS_END };
#undef LB_REASON_ENUM

/* lb_config.flags */
#define LB_CONFIG_DAMPING 1
/* Latency is measured: frames leave with a stamp. */
#define LB_CONFIG_LATENCY 2
/* The rules in force are in the second half of lb_rules. */
#define LB_CONFIG_SECOND_RULES 4

/* The upper bits, one for each slot: members that carry nothing while no daemon runs (fabrics). */
#define LB_CONFIG_HELD_SHIFT 16

/* lb_plan.flags. While no member of its lanes is live, the plan of the default class is used: */
#define LB_PLAN_SHARES 1
/* Some lanes belong to classes that may be busy: */
#define LB_PLAN_BORROWS 2

/* lb_rule.conditions: those that must hold. */
#define LB_RULE_PRIORITY 1
#define LB_RULE_MARK 2
#define LB_RULE_DSCP 4
#define LB_RULE_PORT 8
#define LB_RULE_HOST 16
#define LB_RULE_ETHERTYPE 32
#define LB_RULE_CGROUP 64

/* lb_peer_mac.flags. This MAC is a guest's behind the peer; the peer may be sent its frames under members' MACs: */
#define LB_PEER_GUEST 1
/* This is the alias of a member: by it the peer sends what is for guests here. Nothing is sent to it. */
#define LB_PEER_ALIAS 2
/* Of a member's MAC or alias: the peer has guests, whose frames may come from here. */
#define LB_PEER_HAS_GUESTS 4
/* Of a member's MAC: the peer gives guests' frames their MACs back. */
#define LB_PEER_TAKES_GUESTS 8

/* lb_answer.flags: the daemon probes this host and waits for its answers. */
#define LB_ANSWER_PROBED 1

struct lb_mac {
	unsigned char b[6];
};

/* The bond. Written by the daemon, read by all programs. */
struct lb_config {
	__u32 bond_ifindex;
	__u32 flags;
	/* Damping: the least and the greatest age from which on a hole is reported to TCP as a loss, ns. */
	__u64 damp_ns_min;
	__u64 damp_ns_max;
	struct lb_mac mac;
	/* Rules in force; 0: all frames are of class 0. */
	__u8 n_rules;
	/* Segments with a live member; their elected members, lowest segment first. */
	__u8 n_segments;
	__u8 elected[LB_MEMBERS_MAX];
	/* Members that failed since the plans were written, a bit a slot: their lanes are not used. */
	__u32 failed_slots;
	/* Sent with mirrored frames: another number each time the daemon loads the programs. */
	__u32 epoch;
	/* What the longest buffer of TCP has of data, bytes; 0: not known yet. Shorter ones that follow each other share a lane up to it. */
	__u32 stripe_bytes;
	/* Damping: data that a lane's later data has overtaken may still arrive for so long, us. */
	__u32 overtaking_us;
};

/* A member, by slot. Written by the daemon. */
struct lb_member {
	__u32 ifindex; /* 0: the slot is free */
	struct lb_mac mac;
	__u8 live;
	/* The slot that takes in broadcasts of this member's segment. */
	__u8 elected;
};

/* Key of every map keyed by MAC. */
struct lb_mac_key {
	struct lb_mac mac;
	__u8 pad[2];
};

/* A MAC of a peer. Written by the daemon. */
struct lb_peer_mac {
	__u32 plan;
	/* The MAC that other hosts know the peer by. */
	struct lb_mac primary;
	/* The slot that takes in this peer's broadcasts. */
	__u8 broadcast_slot;
	__u8 flags;
};

/* A peer's MAC in its place; a place with plan 0 is free. Written by the daemon, the MAC last. */
struct lb_near_peer {
	struct lb_peer_mac peer;
	struct lb_mac mac;
	__u8 pad[2];
};

/* An address of a guest in its VLAN. */
struct lb_guest_key {
	__be32 address[4]; /* an IPv4 address in the first word */
	__u16 vlan;        /* 0: none */
	__u8 is_ipv6;
	__u8 pad;
};

/* Whose address that is. Written by the daemon, read by egress and ingress. */
struct lb_guest_pair {
	/* Of the peer that the guest is behind; 0: it is here, and peers know of it. */
	__u32 plan;
	struct lb_mac mac;
	__u8 pad[2];
};

/* A guest here. Written by egress and ingress, read by the daemon. */
struct lb_guest {
	__u64 last_ns;  /* when it sent last, since boot */
	__u32 port;     /* the bridge's port that it sent by, by interface index; 0: none, as a macvlan's */
	__u32 pad;
};

/* An address that a guest here gave as its own in ARP or neighbour discovery. Written by egress, read by the daemon. */
struct lb_guest_seen {
	__u64 last_ns;
	struct lb_mac mac;
	__u8 pad[2];
};

/* A multicast frame that a guest here sent: whose, and a hash of its first bytes. */
struct lb_guest_sent {
	struct lb_mac mac;
	__u8 pad[2];
	__u32 hash;
};

/* The member that a plain host is to send to. Written by the daemon. */
struct lb_answer {
	__u8 slot;
	__u8 flags;
	__u8 pad[2];
};

struct lb_lane {
	/* The peer's member; all zero keeps the destination (plain hosts). */
	struct lb_mac peer_mac;
	__u8 slot;
	/* Borrowed from this class, while that sends nothing; 0: a lane of the plan's own. */
	__u8 class;
	/* Cost of a byte on this lane: 256 times the heaviest weight over its own. */
	__u32 byte_cost;
	/* A flow hash (16 bits) below this belongs to this lane or an earlier one; never to a borrowed lane. */
	__u32 hash_below;
};

/* The lanes to use now. Written by the daemon, read by egress; a reader may see half of a change for one frame. */
struct lb_plan {
	/* Different each time the lanes change, and from those of all other plans: progress is then counted again. */
	__u32 generation;
	__u32 n_lanes;
	/* The lanes' members, a bit a slot. */
	__u32 slots;
	__u8 policy;
	__u8 flags;
	__u8 pad[2];
	struct lb_lane lanes[LB_LANES_MAX];
};

/* A rule that chooses a class. Written by the daemon, read by egress. */
struct lb_rule {
	/* The sender is a process in this control group (version 2) or below it; its depth below the root. */
	__u64 cgroup;
	__u32 cgroup_level;
	__u32 conditions; /* LB_RULE_*; all that are set must hold */
	__u32 priority;
	__u32 mark;
	__u32 mark_mask;
	/* Source or destination; an IPv4 address in the first word. */
	__be32 host[4];
	__be32 host_mask[4];
	/* Behind a VLAN tag. */
	__be16 ethertype;
	/* Source or destination port from the first to the last. */
	__u16 port_first;
	__u16 port_last;
	__u8 port_protocol; /* TCP or UDP */
	__u8 dscp;
	__u8 class;
	__u8 is_ipv6; /* the host is */
	__u8 pad[2];
};

/* A class. Written by the daemon; the time by egress. */
struct lb_class {
	__u64 sent_ns; /* when it last sent by its own members, if it lends them; to a sixteenth of LB_BORROW_IDLE_NS */
	__u32 slots;   /* its own members, a bit a slot */
	__u32 lends;   /* others may use them while it sends nothing */
};

/* Which classes have precedence. Written by the daemon, read by egress. */
struct lb_precedence {
	__u32 classes;               /* a bit each */
	__u32 kbit[LB_MEMBERS_MAX];  /* what each member carries, in kbit/s; 0: not known, and no bound */
};

/* What frames with precedence have taken of a member, by slot. Written by egress. */
struct lb_first {
	__u64 paid_until_ns;
	__u64 waits_until_ns;
};

/* By the number of a plan: the plans that classes have in its place, 0 for none. Written by the daemon, read by egress. */
struct lb_class_plans {
	__u16 number[LB_CLASSES_MAX];
};

/* What striped flows sent over a lane, and what their ACKs say of its rate (delivery.bpf.h). Counters wrap. */
struct lb_delivery {
	/* Bytes of stripes that it served for some time, and that time, us. */
	__u32 busy_bytes;
	__u32 busy_us;
	/* The last delivery, us, and whether that counted. */
	__u32 last_us;
	__u32 is_busy;
	/* Bytes of late segments that left by the lane since then, in no stripe. */
	__u32 late_bytes;
	/* Bytes of striped flows that left by the lane, those that had been sent before, too. Processors that add at once lose some. */
	__u32 sent_bytes;
	/* Of these, what was sent again: by the lane that had it first, and once for each time. */
	__u32 lost_bytes;
	/* The least time from a stripe's departure to its ACK, us, and when it was raised last. */
	__u32 least_us;
	__u32 since_us;
};

/* Somebody whose reports spoke against a lane towards plain hosts: the address, hashed, 0 for nobody, and when, us. */
struct lb_witness {
	__u32 who;
	__u32 at_us;
};

/* How far each lane is in virtual time. Written by egress; what damping learns of lanes by both. */
struct lb_progress {
	__u32 generation;
	/* Buffers that took a turn. */
	__u32 turns;
	__u64 time[LB_LANES_MAX];
	/* What a byte costs more on a lane whose data arrives late, in 1/256 of its cost. */
	__u32 penalty[LB_LANES_MAX];
	/* When a lane's penalty grew, and when its quarantine began or ended, us; when the last quarantine of any lane ended, us. */
	__u32 penalized_us[LB_LANES_MAX];
	__u32 quarantined_us[LB_LANES_MAX];
	__u32 reinstated_us;
	__u32 pad;
	/* How long its quarantine lasts, us; 0 when there is none. And how long the last one was to last. */
	__u32 quarantine_us[LB_LANES_MAX];
	__u32 last_quarantine_us[LB_LANES_MAX];
	__u64 refreshed_ns;
	struct lb_delivery deliveries[LB_LANES_MAX];
	/* Who said last that a lane was silent, and that it was late. */
	struct lb_witness silent[LB_LANES_MAX];
	struct lb_witness late[LB_LANES_MAX];
};

struct lb_count {
	__u64 frames;
	__u64 bytes;
};

/* Per CPU and plan. Written by egress, read by the daemon; counts since the generation began. */
struct lb_lane_counts {
	__u32 generation;
	__u32 pad;
	struct lb_count lanes[LB_LANES_MAX];
};

/* Per CPU and member. */
struct lb_member_counts {
	struct lb_count tx;
	struct lb_count rx;
};

/* A TCP flow as its sender sees it. */
struct lb_flow_key {
	__u32 source[4];
	__u32 destination[4];
	__be16 source_port;
	__be16 destination_port;
};

/* A stripe that left: sequence numbers [start, end) on one lane. */
struct lb_stripe {
	__u32 start;
	__u32 end;
	__u32 lane;    /* generation << 4 | lane */
	__u32 sent_us; /* low bits of the clock; the last two say that its end has arrived, and that this was counted */
};

/* A striped flow. Written by egress (stripes) and ingress (the rest), in races that only cost accuracy. */
struct lb_flow {
	__u64 hole_since_ns; /* 0: no hole is watched */
	/* How long holes took that filled by themselves: a decaying maximum. */
	__u64 skew_ns;
	/* The lowest hole: its sequence number, and whether it was reported to TCP as a loss. */
	__u32 hole;
	__u32 reported;
	/* Time from a stripe's departure to the first report of a hole in it, us. */
	__u32 lag_us;
	/* Holes were reported as losses for their age alone, and no duplicate has been reported since. */
	__u32 guessed;
	/* ACKs with SACK seen and damped lately; halved together. */
	__u32 seen;
	__u32 damped;
	__u32 window;
	/* The sequence number after the newest stripe; what starts before it is sent again. */
	__u32 next;
	/* Stripes remembered so far; the newest is at head - 1. Those before the tail are acknowledged. */
	__u32 head;
	__u32 tail;
	/* What starts before this sequence number was sent again, or may have been: its delivery says nothing. */
	__u32 resent_to;
	/* Losses reported to TCP lately; halved every few hundred stripes. */
	__u32 losses;
	/* The last ACK of this flow. */
	__u64 acked_ns;
	/* Below this sequence number TCP has seen all SACK blocks. */
	__u32 reported_to;
	/* The lane of the lowest hole, as in lb_stripe; LB_NO_LANE once it is known to be a loss, or not known. */
	__u32 hole_lane;
	/* The number of the plan by which it was striped last. */
	__u32 plan;
	/* TCP has sent the lowest hole again, whether it was reported or not. */
	__u16 resent;
	/* It sent a probe, which no ACK has answered yet. */
	__u16 probed;
	/* The last ACK followed another one so soon that it may say when its data was delivered. */
	__u32 is_clocked;
	/* A lane, as in lb_stripe, that this flow alone stays away from, and since when, us; 0: none. */
	__u32 avoided_lane;
	__u32 avoided_us;
	/* The least time from a stripe's departure to the ACK that reported it, us; 0: not known. Less where TCP's own seems to be less. */
	__u32 least_us;
	/* When all stripes in flight were last looked at, us. */
	__u32 looked_us;
	/* Since when data has been seen to have arrived that left after a hole on its lane, us; 0: none has. */
	__u32 overtaken_us;
	struct lb_stripe stripes[LB_STRIPES_MAX];
};

/*
 * The last bytes of a mirrored frame, whose own EtherType is in here. All its words add up to zero (in ones' complement),
 * so that a checksum which a NIC computes up to the end of the frame is what it would be without them.
 */
struct lb_mirror_trailer {
	__be32 epoch;    /* the sender's: sequence numbers begin again with it */
	__be32 sequence; /* of the class; never 0 */
	__be16 protocol;
	__u8 class;
	__u8 version;
	__be16 balance;
	__be16 zero;
};

/* Mirrored frames of one class of one peer. */
struct lb_mirror_key {
	__u32 plan; /* of the peer, at the receiver */
	__be32 epoch;
	__u32 class;
};

/* A mirrored frame as ingress reads it. */
struct lb_mirror_view {
	struct lb_mirror_trailer trailer;
	struct lb_mirror_key key;
};

/* Which of them have arrived. Written by ingress. */
struct lb_mirror {
	/* The newest sequence number that ends in these bits; 0: none. */
	__u32 seen[LB_MIRROR_WINDOW];
};

/* An ARP+ frame, or the answer of a plain host to a probe, on its way to the daemon. */
struct lb_arp_plus_record {
	__u16 slot;
	__u16 heard_again; /* 1 for a stranger who was heard before */
	__u32 bytes;
	__u8 frame[LB_ARP_PLUS_BYTES_MAX];
	__u8 pad[2];
};

/* What of a budget is used, and what its owner said last. Written by ingress, in races that only cost accuracy. */
struct lb_budget {
	__u32 window; /* the time, in units of its length */
	__u32 bytes;
	__u64 mapping; /* a hash of host id, epoch and sequence, 0 until something was said */
	__u64 pairs;   /* of members, over which that was heard: a bit for each, which a few may share */
};

/* MACs of strangers whose hashes name this set: 24 more bits of the hash, and the low 8 of the window that they were heard in. */
struct lb_strangers {
	__u32 heard[LB_STRANGER_PLACES];
};

_Static_assert(sizeof(struct lb_config) == 64, "lb_config");
_Static_assert(sizeof(struct lb_member) == 12, "lb_member");
_Static_assert(sizeof(struct lb_peer_mac) == 12, "lb_peer_mac");
_Static_assert(sizeof(struct lb_near_peer) == 20, "lb_near_peer");
_Static_assert(sizeof(struct lb_guest_key) == 20, "lb_guest_key");
_Static_assert(sizeof(struct lb_guest_pair) == 12, "lb_guest_pair");
_Static_assert(sizeof(struct lb_guest) == 16, "lb_guest");
_Static_assert(sizeof(struct lb_guest_seen) == 16, "lb_guest_seen");
_Static_assert(sizeof(struct lb_guest_sent) == 12, "lb_guest_sent");
_Static_assert(sizeof(struct lb_answer) == 4, "lb_answer");
_Static_assert(sizeof(struct lb_lane) == 16, "lb_lane");
_Static_assert(sizeof(struct lb_plan) == 272, "lb_plan");
_Static_assert(sizeof(struct lb_rule) == 72, "lb_rule");
_Static_assert(sizeof(struct lb_mirror_trailer) == 16, "lb_mirror_trailer");
_Static_assert(sizeof(struct lb_class) == 16, "lb_class");
_Static_assert(sizeof(struct lb_class_plans) == 16, "lb_class_plans");
_Static_assert(sizeof(struct lb_flow_key) == 36, "lb_flow_key");

#endif
