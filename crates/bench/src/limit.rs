//! What links can carry at most: their rate less the framing.

use crate::sample::Parameters;

/// Bytes of a full-size frame, Ethernet header and all, as a token bucket counts them (no preamble, no FCS).
const FRAME: f64 = 1514.0;
/// Of these, a TCP segment's data: less the headers of Ethernet, IPv4 and TCP, and TCP's timestamps (RFC 7323).
const TCP: f64 = 1448.0;
/// The same for UDP over IPv4.
const UDP: f64 = 1472.0;

/// The goodput in Mbit/s that the links of sender and receiver allow, both directions where both are used; `None` where
/// links have no rate of their own.
pub fn goodput_mbit(parameters: &Parameters) -> Option<f64> {
    let near: u32 = parameters.rate_mbit.iter().sum();
    let far: u32 = parameters.far_rate_mbit.iter().sum();
    let rate = if far == 0 { near } else { near.min(far) };
    let payload = if parameters.load == "udp" { UDP } else { TCP };
    let ways = if parameters.direction == "both" { 2.0 } else { 1.0 };
    (rate > 0).then(|| f64::from(rate) * ways * payload / FRAME)
}

#[cfg(test)]
mod tests;
