//! Values as the command line and the configuration file write them: pure syntax, each with its allowed range in the
//! refusal.
//!
//! A refusal is the CAUSE part of an error line: `'VALUE' ...; RANGE`.

use crate::{
    config::{number, string, switch},
    limits,
};
use clap::ValueEnum;
use serde::{Deserialize, Serialize};
use std::{borrow::Cow, net::IpAddr, time::Duration};
use toml::de::DeValue;

/// The value of an option.
pub trait Value: Sized {
    /// What the help calls it, such as `TIME`.
    const NAME: &'static str;

    /// The type that it has in TOML.
    const KIND: Kind = Kind::Text;

    /// Reads what a user writes.
    ///
    /// # Errors
    /// The cause, with what is allowed.
    fn read(text: &str) -> Result<Self, String>;

    /// Writes it so that [`read`](Value::read) makes the same of it.
    fn text(&self) -> String;

    /// What is allowed, for the help, where the sentence does not say it.
    fn range() -> String {
        String::new()
    }
}

/// What TOML writes a value as.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Kind {
    /// A string.
    Text,
    /// A whole number.
    Number,
    /// A whole number, or this word.
    NumberOr(&'static str),
    /// `true`, `false`, `"on"` or `"off"`.
    Switch,
}

impl Kind {
    /// The value as the command line writes it. A refusal is a cause.
    pub(crate) fn text<'v>(self, value: &'v DeValue<'_>) -> Result<Cow<'v, str>, String> {
        match (self, value) {
            (Self::NumberOr(word), DeValue::String(text)) if text == word => Ok(word.into()),
            (Self::NumberOr(_), DeValue::Integer(_)) | (Self::Number, _) => number(value),
            (Self::NumberOr(word), _) => Err(format!("write a whole number, or \"{word}\"")),
            (Self::Switch, _) => switch(value).map(Into::into),
            (Self::Text, _) => string(value).map(Into::into),
        }
    }
}

impl Value for bool {
    const NAME: &'static str = "ON|OFF";
    const KIND: Kind = Kind::Switch;

    fn read(text: &str) -> Result<Self, String> {
        match text {
            "on" => Ok(true),
            "off" => Ok(false),
            _ => Err(format!("'{text}' is not allowed; allowed are on and off")),
        }
    }

    fn text(&self) -> String {
        if *self { "on" } else { "off" }.to_owned()
    }
}

/// A plain number in a range.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
#[cfg_attr(test, derive(schemars::JsonSchema), schemars(inline))]
#[serde(transparent)]
pub struct Number<const MIN: u32, const MAX: u32>(pub u32);

impl<const MIN: u32, const MAX: u32> Value for Number<MIN, MAX> {
    const NAME: &'static str = "N";
    const KIND: Kind = Kind::Number;

    fn read(text: &str) -> Result<Self, String> {
        ranged(text, MIN, MAX, "").map(Self)
    }

    fn text(&self) -> String {
        self.0.to_string()
    }

    fn range() -> String {
        format!("{MIN} to {MAX}")
    }
}

/// A time in milliseconds, written in `ms` or `s`; the upper limit is whole seconds.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
#[cfg_attr(test, derive(schemars::JsonSchema), schemars(inline))]
#[serde(transparent)]
pub struct Millis<const MIN: u32, const MAX: u32>(pub u32);

impl<const MIN: u32, const MAX: u32> Millis<MIN, MAX> {
    /// The same as a `Duration`.
    pub const fn duration(self) -> Duration {
        Duration::from_millis(self.0 as u64)
    }
}

impl<const MIN: u32, const MAX: u32> Value for Millis<MIN, MAX> {
    const NAME: &'static str = "TIME";

    fn read(text: &str) -> Result<Self, String> {
        let ms = with_unit(text, &[("ms", 1), ("s", 1000)], "a time", &Self::range())?;
        match ms {
            Some(ms) if (MIN..=MAX).contains(&ms) => Ok(Self(ms)),
            _ => Err(format!("'{text}' is outside the allowed range; allowed are {}", Self::range())),
        }
    }

    fn text(&self) -> String {
        match self.0 {
            ms if ms >= 1000 && ms.is_multiple_of(1000) => format!("{}s", ms / 1000),
            ms => format!("{ms}ms"),
        }
    }

    fn range() -> String {
        format!("{MIN}ms to {}s", MAX / 1000)
    }
}

/// A whole number with one of these units, times what the unit stands for; none where that does not fit. `what` and `allowed`
/// are for the refusal.
pub fn with_unit(
    text: &str,
    units: &[(&str, u32)],
    what: &str,
    allowed: &str,
) -> Result<Option<u32>, String> {
    let split = text.find(|c: char| !c.is_ascii_digit()).unwrap_or(text.len());
    let (number, unit) = text.split_at(split);
    let cause = match (digits(number), unit) {
        (None, _) => format!("is not {what}"),
        (_, "") => "has no unit".to_owned(),
        (Some(number), _) => match units.iter().find(|(name, _)| *name == unit) {
            Some((_, times)) => return Ok(number.ok().and_then(|number| number.checked_mul(*times))),
            None => format!("has the unknown unit '{unit}'"),
        },
    };
    Err(format!("'{text}' {cause}; allowed are {allowed}"))
}

/// Reads one of these words.
pub(crate) fn one_of<T: ValueEnum>(text: &str, allowed: &[T]) -> Result<T, String> {
    if let Some(found) = allowed.iter().find(|one| word(*one) == text) {
        return Ok(found.clone());
    }
    Err(format!("'{text}' is not allowed; {}", allowed_are(allowed)))
}

/// What an error says of the words that there are.
pub(crate) fn allowed_are<T: ValueEnum>(allowed: &[T]) -> String {
    let mut words: Vec<String> = allowed.iter().map(word).collect();
    let last = words.pop().unwrap_or_default();
    format!("allowed are {} and {last}", words.join(", "))
}

/// The word of a value that is one of some.
pub(crate) fn word<T: ValueEnum>(value: &T) -> String {
    value.to_possible_value().map(|word| word.get_name().to_owned()).unwrap_or_default()
}

/// Makes an enum the value of an option.
macro_rules! words {
    ($ty:ty, $name:literal) => {
        impl $crate::value::Value for $ty {
            const NAME: &'static str = $name;

            fn read(text: &str) -> Result<Self, String> {
                $crate::value::one_of(text, <Self as clap::ValueEnum>::value_variants())
            }

            fn text(&self) -> String {
                $crate::value::word(self)
            }
        }
    };
}
pub(crate) use words;

/// `ADDRESS/PREFIX` of either family.
pub fn address(text: &str) -> Result<(IpAddr, u8), String> {
    let allowed = "write ADDRESS/PREFIX, such as 198.18.0.1/24 or 2001:db8::1/64";
    let Some((address, prefix)) = text.split_once('/') else {
        return Err(format!("'{text}' has no prefix length; {allowed}"));
    };
    let Ok(address) = address.parse::<IpAddr>() else {
        return Err(format!("'{text}' is not an IP address; {allowed}"));
    };
    let longest = if address.is_ipv4() { 32 } else { 128 };
    match digits(prefix).and_then(|length| u8::try_from(length.ok()?).ok()) {
        Some(length) if length <= longest => Ok((address, length)),
        _ => Err(format!("'{text}' is outside the allowed prefix lengths 0 to {longest}")),
    }
}

/// The same as text, written in one way.
pub fn cidr(text: &str) -> Result<String, String> {
    address(text).map(|(address, prefix)| format!("{address}/{prefix}"))
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

/// The codepoints that have names: class selectors (RFC 2474, section 4.2.2), assured forwarding (RFC 2597, section 6),
/// expedited forwarding (RFC 3246, section 2.7) and lower effort (RFC 8622, section 4).
pub(crate) fn named_dscps() -> impl Iterator<Item = (u8, String)> {
    let selectors = (0..8).map(|class| (class * 8, format!("cs{class}")));
    let assured =
        (1..=4).flat_map(|class| (1..=3).map(move |drop| (class * 8 + drop * 2, format!("af{class}{drop}"))));
    selectors.chain(assured).chain([(46, "ef".to_owned()), (1, "le".to_owned())])
}

/// What is written for one.
pub(crate) const DSCPS: &str = "0 to 63, cs0 to cs7, af11 to af43, ef, le";

/// A differentiated services codepoint (RFC 2474, section 3), by its number or its name.
pub fn dscp(text: &str) -> Result<u8, String> {
    let named = named_dscps().find(|(_, name)| name == text).map(|(number, _)| number);
    let numbered =
        || digits(text)?.ok().and_then(|number| u8::try_from(number).ok()).filter(|number| *number < 64);
    named.or_else(numbered).ok_or_else(|| format!("'{text}' is not a DSCP; allowed are {DSCPS}"))
}

/// The priority of a socket.
pub fn priority(text: &str) -> Result<u32, String> {
    ranged(text, 0, u32::MAX, "")
}

/// A firewall mark, decimal or behind `0x`.
pub fn mark(text: &str) -> Result<u32, String> {
    let mark = hex_or_digits(text).and_then(|mark| u32::try_from(mark).ok());
    mark.ok_or_else(|| {
        format!("'{text}' is not a mark; allowed are 0 to {}, or the same behind 0x", u32::MAX)
    })
}

/// A port of TCP or UDP.
pub fn port(text: &str) -> Result<u16, String> {
    small(text, 1, u16::MAX)
}

pub(crate) fn hex_or_digits(text: &str) -> Option<u64> {
    let Some(hex) = text.strip_prefix("0x") else { return long_digits(text) };
    let is_hex = !hex.is_empty() && hex.bytes().all(|byte| byte.is_ascii_hexdigit());
    // What does not fit is too large for every range.
    is_hex.then(|| u64::from_str_radix(hex, 16).unwrap_or(u64::MAX))
}

/// Digits only, as [`digits`]; what does not fit is too large for every range.
pub(crate) fn long_digits(text: &str) -> Option<u64> {
    let is_number = !text.is_empty() && text.bytes().all(|byte| byte.is_ascii_digit());
    is_number.then(|| text.parse().unwrap_or(u64::MAX))
}

fn small(text: &str, low: u16, high: u16) -> Result<u16, String> {
    let number = ranged(text, low.into(), high.into(), "")?;
    u16::try_from(number).map_err(|error| error.to_string())
}

/// Digits only, no sign, no space, no unit: the number, or that it does not fit.
fn digits(text: &str) -> Option<Result<u32, ()>> {
    let plain = !text.is_empty() && text.bytes().all(|byte| byte.is_ascii_digit());
    plain.then(|| text.parse().map_err(drop))
}

/// A whole number in a range, with its unit in the refusal, if it has one.
pub fn ranged(text: &str, low: u32, high: u32, unit: &str) -> Result<u32, String> {
    let range = format!("{low} to {high} {unit}");
    let range = range.trim_end();
    match digits(text) {
        Some(Ok(value)) if (low..=high).contains(&value) => Ok(value),
        Some(_) => Err(format!("'{text}' is outside the allowed range {range}")),
        None => Err(format!("'{text}' is not a whole number; allowed are {range}")),
    }
}

#[cfg(test)]
mod tests;
