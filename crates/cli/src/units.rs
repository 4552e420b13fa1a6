//! Values of labs on the command line: pure syntax, each with its allowed range in the refusal.
//!
//! Those of requests are in [`linkbraid_api::value`].

use linkbraid_api::value::{ranged, with_unit};
use linkbraid_lab::{HOSTS_MAX, LINKS_MAX, RATE_MBIT, demo};
use std::ops::RangeInclusive;

/// The rate of a lab's links in Mbit/s; nothing where they are not shaped.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Rate(pub Option<u32>);

/// The rate of a lab's links: `none`, or with a unit.
pub fn rate(text: &str) -> Result<Rate, String> {
    if text == "none" {
        return Ok(Rate(None));
    }
    mbit(text, &RATE_MBIT, "none and ").map(|mbit| Rate(Some(mbit)))
}

/// The rate of the demo's links in Mbit/s.
pub fn demo_rate(text: &str) -> Result<u32, String> {
    mbit(text, &demo::RATES, "")
}

/// Whole numbers of `mbit` or `gbit`, as tc(8) writes them; `besides` names what else is allowed.
fn mbit(text: &str, range: &RangeInclusive<u32>, besides: &str) -> Result<u32, String> {
    let allowed = format!("{besides}{}mbit to {}gbit", range.start(), range.end() / 1000);
    match with_unit(text, &[("mbit", 1), ("gbit", 1000)], "a rate", &allowed)? {
        Some(mbit) if range.contains(&mbit) => Ok(mbit),
        _ => Err(format!("'{text}' is outside the allowed range; allowed are {allowed}")),
    }
}

/// How many links a host of the demo has.
pub fn demo_links(text: &str) -> Result<u32, String> {
    ranged(text, *demo::LINKS.start(), *demo::LINKS.end(), "links")
}

/// How long a flow of the demo runs.
pub fn demo_seconds(text: &str) -> Result<u32, String> {
    ranged(text, *demo::SECONDS.start(), *demo::SECONDS.end(), "seconds")
}

/// How many hosts a lab has.
pub fn lab_hosts(text: &str) -> Result<u32, String> {
    ranged(text, 1, HOSTS_MAX as u32, "hosts")
}

/// How many links a host of a lab has.
pub fn lab_links(text: &str) -> Result<u32, String> {
    ranged(text, 1, LINKS_MAX as u32, "links")
}

/// How many hosts of a lab are plain ones.
pub fn lab_plain(text: &str) -> Result<u32, String> {
    ranged(text, 0, HOSTS_MAX as u32, "hosts")
}

#[cfg(test)]
mod tests;
