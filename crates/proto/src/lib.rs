//! Pure state machines: ARP+, the plan.
