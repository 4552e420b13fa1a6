//! Limits that more than one place checks; the range of an option stands with it.

/// The longest interface name in bytes: `IFNAMSIZ` of `linux/if.h` less its final zero.
pub const INTERFACE_NAME_MAX: usize = 15;

/// The smallest weight in Mbit/s.
pub const WEIGHT_MBIT_MIN: u32 = 1;

/// The largest weight in Mbit/s: 1 Tbit/s, above any Ethernet link.
pub const WEIGHT_MBIT_MAX: u32 = 1_000_000;

/// The shortest stripe in microseconds.
pub const STRIPE_US_MIN: u32 = 10;

/// The longest stripe in microseconds: beyond it the lanes' skew exceeds what a TCP receiver takes for reordering.
pub const STRIPE_US_MAX: u32 = 10_000;

/// The shortest stripe in bytes; the bond rounds it up to two segments.
pub const STRIPE_BYTES_MIN: u32 = 1024;

/// The longest stripe in bytes: the largest GSO buffer whose length fits into IPv4's (`GSO_LEGACY_MAX_SIZE`).
pub const STRIPE_BYTES_MAX: u32 = 65_536;

/// The fewest nodes of a fabric.
pub const NODES_MIN: u16 = 2;

/// The most nodes of a fabric (docs/fabric.md, section 1).
pub const NODES_MAX: u16 = 512;

/// The most queues of a node.
pub const QUEUES_MAX: u16 = 64;

/// The most classes of a bond besides that of all other traffic; ARP+ numbers them 1 to 7.
pub const CLASSES_MAX: usize = 7;

/// The longest name of a class in bytes.
pub const CLASS_NAME_MAX: usize = 15;

/// The most rules of a bond, those of all its classes together.
pub const RULES_MAX: usize = 64;

/// The longest text of a rule in bytes; only the path of a control group makes one long.
pub const RULE_BYTES_MAX: usize = 1024;

/// The largest configuration file in bytes: with all that JSON escapes it still is one line of the socket.
pub const CONFIG_BYTES_MAX: usize = 128 << 10;

/// The most members of a bond.
pub const MEMBERS_MAX: usize = 16;
