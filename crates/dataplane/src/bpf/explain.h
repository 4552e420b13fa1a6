/* SPDX-License-Identifier: (GPL-2.0-only OR BSD-2-Clause) */
/*
 * What a frame that is only asked about brings back from lb_egress, in the cb[] of its context: what the data path and its
 * reader (crates/dataplane/src/explain.rs) share. Several values share a word; each has its shift.
 */
#ifndef LB_EXPLAIN_H
#define LB_EXPLAIN_H

/* In cb[0] and cb[4] of a frame that is asked about; see explain.bpf.h. */
#define LB_EXPLAIN 0x6578706c

/* Optional values are stored plus 1; 0 means absent. */
/* cb[0], a byte each: the reason; the class; the slot, if any; the second lane of a mirrored frame, if any. */
#define LB_EXPLAIN_CLASS_SHIFT 8
#define LB_EXPLAIN_SLOT_SHIFT 16
#define LB_EXPLAIN_SECOND_SHIFT 24
/* cb[1], two bytes each: the plan of the next hop, if any; the one that was used, in its place or itself. */
#define LB_EXPLAIN_PLAN_SHIFT 16
/* cb[2]: the lane, a byte; why, a byte (enum lb_why); the slots that were avoided, a bit each. */
#define LB_EXPLAIN_WHY_SHIFT 8
#define LB_EXPLAIN_AVOIDED_SHIFT 16
/* cb[3]: the place of the rule that matched, among those in force, if any. */

/* Why a frame takes its lane. */
enum lb_why {
	LB_WHY_NONE = 0,   /* it takes no lane of a plan */
	LB_WHY_ONLY = 1,   /* the plan has no other one */
	LB_WHY_FIRST = 2,  /* the first one carries all (active-backup) */
	LB_WHY_FLOW = 3,   /* by the hash of its flow (policy flow) */
	LB_WHY_ACK = 4,    /* by the hash of its flow: an ACK without data */
	LB_WHY_LATEST = 5, /* it is furthest behind in virtual time */
	LB_WHY_GROWS = 6,  /* the flow's last stripe there is too short yet */
	LB_WHY_PAIR = 7,   /* the first one, and the one that shares least with it (mirror) */
	LB_WHY_HASH = 8,   /* by a hash of what its policy names (policies hash=...) */
};

#endif
