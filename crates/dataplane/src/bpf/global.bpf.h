/* SPDX-License-Identifier: (GPL-2.0-only OR BSD-2-Clause) */
/*
 * Global functions. The verifier walks such a function once, for all arguments that its types allow, and its callers go on from one
 * state; a static one it walks again from each state of each caller, and to load a bond then takes six times as long
 * (docs/design/loading.md). So every function that has branches or loops, and is called from many states, is one.
 *
 * What that asks for: at most five arguments, which are numbers, the frame, or pointers to plain structs of known size, without
 * pointers in them; each pointer is compared with NULL, although no caller passes it, but the `skb`. Where a caller has the
 * bond or the plan already, it is looked up again: a few instructions. Linux 6.1 takes no key of a map from such a pointer. The
 * stack of a global function is free again when it returns, which keeps the longest chain of calls within 512 bytes.
 */
#ifndef LB_GLOBAL_BPF_H
#define LB_GLOBAL_BPF_H

#define GLOBAL __noinline

#endif
