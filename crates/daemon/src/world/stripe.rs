//! How long a piece of a flow stays on one lane.
//!
//! A stripe that takes about 100 to 300 us of a lane's rate reorders little and still lets GRO merge; see
//! docs/design/striping.md for what was measured. TCP cuts its buffers to the bond's `gso_max_size`, so that is where a
//! stripe's length is set; the kernel takes room for headers off it.

use linkbraid_api::{Policy, Stripe};

/// The time one stripe takes on the slowest lane, us.
const STRIPE_US: u64 = 200;
/// The same where the lanes are not what limits: 64 KiB at 1 Gbit/s.
const LONG_STRIPE_US: u64 = 525;
/// TCP over IPv4 with time stamps: headers in each packet, in bytes.
const HEADERS_BYTES: u32 = 52;
/// What `sk_dst_gso_max_size` (net/core/sock.c) takes off for headers: `MAX_TCP_HEADER + 1`, in bytes.
const KERNEL_HEADROOM_BYTES: u32 = 320 + 1;
/// The kernel's own default, and the longest a stripe may be, in bytes.
pub(crate) const GSO_BYTES_MAX: u32 = 65536;
/// A stripe has at least this many segments, or nothing could be merged. Round robin is by frames: it does without.
const SEGMENTS_MIN: u32 = 2;

/// The bond's `gso_max_size` in bytes, for the rates of its live members in kbit/s. `long`: these are not what limits.
pub(crate) fn gso_max_size(policy: Policy, stripe: Stripe, long: bool, rates_kbit: &[u64], mtu: u32) -> u32 {
    if rates_kbit.len() < 2 {
        return GSO_BYTES_MAX;
    }
    let slowest = rates_kbit.iter().copied().min().unwrap_or(1).max(1);
    let bytes = match stripe {
        Stripe::Auto if policy == Policy::RoundRobin => 0,
        Stripe::Auto => slowest * if long { LONG_STRIPE_US } else { STRIPE_US } / 8000,
        Stripe::Us(us) => slowest * u64::from(us) / 8000,
        Stripe::Bytes(bytes) => bytes.into(),
    };
    let segment = mtu.saturating_sub(HEADERS_BYTES).max(1);
    let least = if policy == Policy::RoundRobin { 1 } else { SEGMENTS_MIN };
    let segments = (u32::try_from(bytes).unwrap_or(u32::MAX) / segment).max(least);
    segments.saturating_mul(segment).saturating_add(KERNEL_HEADROOM_BYTES).min(GSO_BYTES_MAX)
}

/// What the longest buffer has of data, in bytes, for the bond's `gso_max_size`.
pub(crate) fn data_bytes(gso_max_size: u32) -> u32 {
    gso_max_size - KERNEL_HEADROOM_BYTES
}

#[cfg(test)]
mod tests {
    use super::{GSO_BYTES_MAX, gso_max_size};
    use linkbraid_api::{Policy, Stripe};

    const SEGMENT: u32 = 1448;

    fn segments(stripe: Stripe, rates_mbit: &[u64]) -> u32 {
        let rates: Vec<u64> = rates_mbit.iter().map(|mbit| mbit * 1000).collect();
        (gso_max_size(Policy::Spread, stripe, false, &rates, 1500) - 321) / SEGMENT
    }

    #[test]
    fn one_member_needs_no_stripes() {
        assert_eq!(gso_max_size(Policy::Spread, Stripe::Auto, false, &[1_000_000], 1500), GSO_BYTES_MAX);
    }

    #[test]
    fn a_stripe_is_short_in_time_and_has_two_segments_at_least() {
        assert_eq!(segments(Stripe::Auto, &[20, 20]), 2);
        assert_eq!(segments(Stripe::Auto, &[500, 500]), 8);
        assert_eq!(segments(Stripe::Auto, &[1000, 1000]), 17);
        assert_eq!(segments(Stripe::Us(400), &[1000, 1000]), 34);
    }

    #[test]
    fn where_lanes_are_not_what_limits_it_is_longer_unless_the_user_says() {
        let long = |stripe, kbit: u64| {
            (gso_max_size(Policy::Spread, stripe, true, &[kbit; 2], 1500) - 321) / SEGMENT
        };
        assert_eq!(long(Stripe::Auto, 1_000_000), 45);
        assert_eq!(long(Stripe::Auto, 200_000), 9);
        assert_eq!(long(Stripe::Us(200), 1_000_000), 17);
    }

    #[test]
    fn round_robin_is_by_frames_unless_the_user_says() {
        let length =
            |stripe| (gso_max_size(Policy::RoundRobin, stripe, false, &[1_000_000; 2], 1500) - 321) / SEGMENT;
        assert_eq!((length(Stripe::Auto), length(Stripe::Us(200))), (1, 17));
    }

    #[test]
    fn the_slowest_member_decides() {
        assert_eq!(segments(Stripe::Auto, &[1000, 100]), 2);
    }

    #[test]
    fn a_stripe_is_at_most_one_buffer() {
        assert_eq!(gso_max_size(Policy::Spread, Stripe::Auto, false, &[40_000_000; 4], 1500), GSO_BYTES_MAX);
        assert_eq!(
            gso_max_size(Policy::Spread, Stripe::Bytes(1 << 20), false, &[10_000; 4], 9000),
            GSO_BYTES_MAX
        );
    }
}
