//! How a switch or a port fails without any loss of carrier.

/// What forwards nothing although every carrier stays.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub enum Fault {
    /// Frames that leave by that port of that host.
    From(usize, u8),
    /// Frames to that port of that host.
    To(usize, u8),
    /// Every frame through that switch.
    Switch(u8),
}
