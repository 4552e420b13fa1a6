//! Values as the command line and the configuration file write them: pure syntax, each with its allowed range in the
//! refusal.
//!
//! A refusal is the CAUSE part of an error line: `'VALUE' ...; RANGE`.

use crate::{
    BondClass, Borrow, Error, Fallback, Policy, Poll, Rule, Stripe, Weight, check_class_name, limits,
};
use std::net::IpAddr;

/// An interface name as the kernel takes it (`dev_valid_name` in net/core/dev.c), without `%`, which the kernel
/// replaces by a number.
pub fn interface(text: &str) -> Result<String, String> {
    let allowed = "a name has 1 to 15 bytes, no space, '/', ':' or '%'";
    let bad = |c: char| c.is_whitespace() || c.is_control() || matches!(c, '/' | ':' | '%');
    if text.is_empty()
        || text.len() > limits::INTERFACE_NAME_MAX
        || text.contains(bad)
        || [".", ".."].contains(&text)
    {
        return Err(format!("'{text}' cannot be an interface name; {allowed}"));
    }
    Ok(text.to_owned())
}

/// `ADDRESS/PREFIX` of either family, as it stands.
pub fn cidr(text: &str) -> Result<String, String> {
    let allowed = "write ADDRESS/PREFIX, such as 198.18.0.1/24 or 2001:db8::1/64";
    let Some((address, prefix)) = text.split_once('/') else {
        return Err(format!("'{text}' lacks a prefix length; {allowed}"));
    };
    let Ok(address) = address.parse::<IpAddr>() else {
        return Err(format!("'{text}' is not an IP address; {allowed}"));
    };
    let longest = if address.is_ipv4() { 32 } else { 128 };
    match digits(prefix) {
        Some(length) if length <= longest => Ok(format!("{address}/{length}")),
        _ => Err(format!("'{text}' is outside the allowed prefix lengths 0 to {longest}")),
    }
}

/// One of the policies, by its exact word.
pub fn policy(text: &str) -> Result<Policy, String> {
    match text {
        "spread" => Ok(Policy::Spread),
        "flow" => Ok(Policy::Flow),
        "active-backup" => Ok(Policy::ActiveBackup),
        "mirror" => Err("'mirror' is of classes only; allowed are spread, flow and active-backup".to_owned()),
        _ => Err(format!("'{text}' is no policy; allowed are spread, flow and active-backup")),
    }
}

/// One of the policies of a class.
pub fn class_policy(text: &str) -> Result<Policy, String> {
    match text {
        "mirror" => Ok(Policy::Mirror),
        _ => policy(text).map_err(|_| {
            format!("'{text}' is no policy; allowed are spread, flow, active-backup and mirror")
        }),
    }
}

/// The name of a class.
pub fn class(text: &str) -> Result<String, String> {
    match check_class_name(text) {
        Ok(()) => Ok(text.to_owned()),
        Err(error) => Err(format!("'{text}' is {}; {}", error.what, error.cause)),
    }
}

/// `NAME=IF[,IF...]`
pub fn bond_class(text: &str) -> Result<BondClass, String> {
    let Some((name, members)) = text.split_once('=') else {
        return Err(format!("'{text}' lacks its members; write NAME=IF[,IF...], such as urgent=eth3"));
    };
    let members = members.split(',').map(interface).collect::<Result<_, _>>()?;
    Ok(BondClass { name: class(name)?, members })
}

/// What belongs to a class; a refusal says all of it, with the rule.
pub fn rule(text: &str) -> Result<Rule, Error> {
    text.parse()
}

/// An MTU in bytes, a plain number.
pub fn mtu(text: &str) -> Result<u32, String> {
    ranged(text, limits::MTU_MIN, limits::MTU_MAX, "bytes")
}

/// The MTU of a fabric in bytes, a plain number.
pub fn fabric_mtu(text: &str) -> Result<u32, String> {
    ranged(text, limits::MTU_MIN, limits::FABRIC_MTU_MAX, "bytes")
}

/// A node's number.
pub fn node(text: &str) -> Result<u16, String> {
    small(text, 0, limits::NODES_MAX - 1)
}

/// A number of nodes.
pub fn nodes(text: &str) -> Result<u16, String> {
    small(text, limits::NODES_MIN, limits::NODES_MAX)
}

/// A number of queues.
pub fn queues(text: &str) -> Result<u16, String> {
    small(text, 1, limits::QUEUES_MAX)
}

fn small(text: &str, low: u16, high: u16) -> Result<u16, String> {
    let number = digits(text).and_then(|number| u16::try_from(number).ok());
    number
        .filter(|number| (low..=high).contains(number))
        .ok_or_else(|| format!("'{text}' is outside the allowed range {low} to {high}"))
}

/// A member's share: `auto` or Mbit/s as a plain number.
pub fn weight(text: &str) -> Result<Weight, String> {
    if text == "auto" {
        return Ok(Weight::Auto);
    }
    let (low, high) = (limits::WEIGHT_MBIT_MIN, limits::WEIGHT_MBIT_MAX);
    // Who writes 0 means "no traffic there", which is not a matter of shares.
    if digits(text) == Some(0) {
        return Err(format!(
            "'{text}' would leave the member without traffic; allowed are {low} to {high} Mbit/s, or auto"
        ));
    }
    ranged(text, low, high, "Mbit/s").map(Weight::Mbit).map_err(|cause| cause + ", or auto")
}

/// A stripe: `auto`, a time (`us`, `ms`) or a size (`B`, `KiB`).
pub fn stripe(text: &str) -> Result<Stripe, String> {
    if text == "auto" {
        return Ok(Stripe::Auto);
    }
    let allowed = format!(
        "allowed are auto, {}us to {}ms and {}B to {}KiB",
        limits::STRIPE_US_MIN,
        limits::STRIPE_US_MAX / 1000,
        limits::STRIPE_BYTES_MIN,
        limits::STRIPE_BYTES_MAX >> 10
    );
    let split = text.find(|c: char| !c.is_ascii_digit()).unwrap_or(text.len());
    let (number, unit) = text.split_at(split);
    if !number.is_empty() && unit.is_empty() {
        return Err(format!("'{text}' lacks a unit; {allowed}"));
    }
    let Some(number) = digits(number) else {
        return Err(format!("'{text}' is neither a time nor a size; {allowed}"));
    };
    let (value, low, high, make): (_, _, _, fn(u32) -> Stripe) = match unit {
        "us" => (Some(number), limits::STRIPE_US_MIN, limits::STRIPE_US_MAX, Stripe::Us),
        "ms" => (number.checked_mul(1000), limits::STRIPE_US_MIN, limits::STRIPE_US_MAX, Stripe::Us),
        "B" => (Some(number), limits::STRIPE_BYTES_MIN, limits::STRIPE_BYTES_MAX, Stripe::Bytes),
        "KiB" => {
            (number.checked_mul(1024), limits::STRIPE_BYTES_MIN, limits::STRIPE_BYTES_MAX, Stripe::Bytes)
        }
        _ => return Err(format!("'{text}' has the unknown unit '{unit}'; {allowed}")),
    };
    match value {
        Some(value) if (low..=high).contains(&value) => Ok(make(value)),
        _ => Err(format!("'{text}' is outside the allowed range; {allowed}")),
    }
}

/// The time between two proofs of a lane, in milliseconds.
pub fn probe_interval(text: &str) -> Result<u32, String> {
    time_ms(text, limits::PROBE_INTERVAL_MS_MIN, limits::PROBE_INTERVAL_MS_MAX)
}

/// How many intervals without proof cost a lane, a plain number.
pub fn probe_multiplier(text: &str) -> Result<u8, String> {
    let (low, high) = (limits::PROBE_MULTIPLIER_MIN, limits::PROBE_MULTIPLIER_MAX);
    let value = ranged(text, low.into(), high.into(), "intervals")?;
    u8::try_from(value).map_err(|error| error.to_string())
}

/// How long a member whose carrier is back waits, in milliseconds.
pub fn up_delay(text: &str) -> Result<u32, String> {
    time_ms(text, 0, limits::UP_DELAY_MS_MAX)
}

/// A time in `ms` or `s`, a whole number of either; the limits are milliseconds, the upper one whole seconds.
fn time_ms(text: &str, low: u32, high: u32) -> Result<u32, String> {
    let allowed = format!("allowed are {low}ms to {}s", high / 1000);
    let split = text.find(|c: char| !c.is_ascii_digit()).unwrap_or(text.len());
    let (number, unit) = text.split_at(split);
    let ms = match (digits(number), unit) {
        (Some(_), "") => return Err(format!("'{text}' lacks a unit; {allowed}")),
        (Some(number), "ms") => Some(number),
        (Some(number), "s") => number.checked_mul(1000),
        (Some(_), _) => return Err(format!("'{text}' has the unknown unit '{unit}'; {allowed}")),
        (None, _) => return Err(format!("'{text}' is not a time; {allowed}")),
    };
    match ms {
        Some(ms) if (low..=high).contains(&ms) => Ok(ms),
        _ => Err(format!("'{text}' is outside the allowed range; {allowed}")),
    }
}

/// What a class does without its members, by its exact word.
pub fn fallback(text: &str) -> Result<Fallback, String> {
    match text {
        "share" => Ok(Fallback::Share),
        "block" => Ok(Fallback::Block),
        _ => Err(format!("'{text}' is not allowed; allowed are share and block")),
    }
}

/// When all other traffic may use a class's members, by its exact word.
pub fn borrow(text: &str) -> Result<Borrow, String> {
    match text {
        "never" => Ok(Borrow::Never),
        "idle" => Ok(Borrow::Idle),
        _ => Err(format!("'{text}' is not allowed; allowed are never and idle")),
    }
}

/// How the threads of a fabric wait, by its exact word.
pub fn poll(text: &str) -> Result<Poll, String> {
    match text {
        "adaptive" => Ok(Poll::Adaptive),
        "busy" => Ok(Poll::Busy),
        "sleep" => Ok(Poll::Sleep),
        _ => Err(format!("'{text}' is not allowed; allowed are adaptive, busy and sleep")),
    }
}

/// An option that is on or off.
pub fn switch(text: &str) -> Result<bool, String> {
    match text {
        "on" => Ok(true),
        "off" => Ok(false),
        _ => Err(format!("'{text}' is not allowed; allowed are on and off")),
    }
}

/// Digits only: no sign, no space, no unit.
pub fn digits(text: &str) -> Option<u32> {
    if text.is_empty() || !text.bytes().all(|b| b.is_ascii_digit()) {
        return None;
    }
    text.parse().ok()
}

/// A whole number in a range, its unit named in the refusal.
pub fn ranged(text: &str, low: u32, high: u32, unit: &str) -> Result<u32, String> {
    let numeric = !text.is_empty() && text.bytes().all(|b| b.is_ascii_digit());
    match digits(text) {
        Some(value) if (low..=high).contains(&value) => Ok(value),
        _ if numeric => Err(format!("'{text}' is outside the allowed range {low} to {high} {unit}")),
        _ => Err(format!("'{text}' is not a whole number; allowed are {low} to {high} {unit}")),
    }
}
