//! The numbers behind a link that behaves like a link: burst and buffers of its token bucket.

/// The Ethernet header in bytes; `tbf` counts it, but no preamble, gap or checksum.
pub const ETHERNET_HEADER: u32 = 14;

/// How much of its rate a link may send at once, in microseconds. A larger burst would be a link of infinite speed for
/// as long as it lasts, and would flatter every scheme that stripes.
const BURST_US: u64 = 300;

/// From this rate on (Mbit/s) timers of a virtual machine are too coarse for [`BURST_US`], and a short burst costs rate.
const COARSE_RATE_MBIT: u64 = 400;

/// The burst of a fast link, in microseconds of its rate.
const COARSE_BURST_US: u64 = 600;

/// The least burst, in quarters of a full frame. A bucket cuts a buffer of several segments that does not fit, as a NIC does
/// with each; one that just fits passes whole, needs the bucket full, and loses whatever the timer is late. Two segments
/// have a little less than two frames, so this is less than that.
const LEAST_QUARTERS: u64 = 7;

/// The burst of a link in bytes: 300 us of its rate (600 us above 400 Mbit/s), at least one full frame and three quarters.
pub fn burst(rate_mbit: u32, mtu: u32) -> u32 {
    let rate = u64::from(rate_mbit);
    let us = if rate > COARSE_RATE_MBIT { COARSE_BURST_US } else { BURST_US };
    let least = u64::from(mtu + ETHERNET_HEADER) * LEAST_QUARTERS / 4;
    u32::try_from((rate * us / 8).max(least)).unwrap_or(u32::MAX)
}

/// The rate of a switch port in kbit/s that is so much faster than its link.
pub(crate) fn port_rate_kbit(rate_mbit: u32, margin_percent: u32) -> u64 {
    u64::from(rate_mbit) * 10 * u64::from(100 + margin_percent)
}

/// The output buffer of a switch port in bytes: 20 ms of its rate, at least 128 KiB (what a cheap switch has for all its ports).
pub fn port_buffer(rate_mbit: u32) -> u32 {
    u32::try_from((u64::from(rate_mbit) * 20_000 / 8).max(128 << 10)).unwrap_or(u32::MAX)
}

/// The queue of a host's NIC in bytes: the kernel's default of 1000 frames.
pub fn host_queue(mtu: u32) -> u32 {
    (mtu + ETHERNET_HEADER).saturating_mul(1000)
}

/// The share of a link's rate that TCP's payload can have, with full frames and timestamps: 0.956 at MTU 1500.
pub fn tcp_share(mtu: u32, ipv6: bool) -> f64 {
    let headers = if ipv6 { 40 } else { 20 } + 32;
    f64::from(mtu.saturating_sub(headers)) / f64::from(mtu + ETHERNET_HEADER)
}

#[cfg(test)]
mod tests;
