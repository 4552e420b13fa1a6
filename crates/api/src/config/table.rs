//! Tables of a TOML file, and what stands behind their keys.

use super::Place;
use crate::{Error, value::Value as _};
use std::borrow::Cow;
use toml::{
    Spanned,
    de::{DeTable, DeValue},
};

/// The command that explains how to write the file.
const HINT: &str = "linkbraid apply --help";

/// A file under a name.
#[derive(Debug, Clone, Copy)]
pub struct Source<'a> {
    pub file: &'a str,
    pub text: &'a str,
}

impl Source<'_> {
    /// The line of a byte, from 1.
    pub fn line(&self, at: usize) -> u32 {
        let before = self.text.as_bytes().get(..at).unwrap_or_default();
        u32::try_from(before.iter().filter(|byte| **byte == b'\n').count())
            .map_or(u32::MAX, |count| count + 1)
    }

    /// A refusal that names the line of a byte.
    pub fn refuse(&self, at: usize, what: impl Into<String>, cause: impl Into<String>) -> Error {
        Error::new(format!("{}:{}", self.file, self.line(at)), what, cause).hint(HINT)
    }
}

/// One table: whose keys are all known.
#[derive(Debug)]
pub struct Table<'a> {
    source: Source<'a>,
    /// How messages name it; empty for the file itself.
    name: String,
    /// Where it is named.
    at: usize,
    map: &'a DeTable<'a>,
}

/// A value with its name and where that stands.
#[derive(Debug)]
pub struct Named<'a> {
    pub name: &'a str,
    pub at: usize,
    pub value: &'a Spanned<DeValue<'a>>,
}

impl<'a> Table<'a> {
    /// The file itself.
    pub fn root(source: Source<'a>, map: &'a DeTable<'a>, known: &[String]) -> Result<Self, Error> {
        Self { source, name: String::new(), at: 0, map }.check(known)
    }

    /// A table below; `name` is how messages call it, such as `bond 'bond0'`.
    pub fn below(&self, name: String, named: &Named<'a>, known: &[String]) -> Result<Self, Error> {
        match named.value.get_ref() {
            DeValue::Table(map) => Self { source: self.source, name, at: named.at, map }.check(known),
            other => Err(self.source.refuse(named.at, name, not_a(other, "a table"))),
        }
    }

    /// Refuses keys that are not known; the first in the file.
    fn check(self, known: &[String]) -> Result<Self, Error> {
        let is_known = |key: &str| known.iter().any(|known| known == key);
        let unknown = self.map.keys().filter(|key| !is_known(key.get_ref()));
        match unknown.min_by_key(|key| key.span().start) {
            None => Ok(self),
            Some(key) => {
                let cause = format!("no such key; allowed are {}", known.join(", "));
                Err(self.refuse(key.span().start, key.get_ref(), cause))
            }
        }
    }

    /// A refusal of a key.
    fn refuse(&self, at: usize, key: &str, cause: impl Into<String>) -> Error {
        let what = match self.name.as_str() {
            "" => format!("key '{key}'"),
            name => format!("{name}: key '{key}'"),
        };
        self.source.refuse(at, what, cause)
    }

    /// A refusal of the whole.
    pub fn refuse_whole(&self, cause: impl Into<String>) -> Error {
        self.source.refuse(self.at, &self.name, cause)
    }

    /// A refusal of what stands at a byte.
    pub fn refuse_at(&self, at: usize, what: impl AsRef<str>, cause: impl Into<String>) -> Error {
        self.source.refuse(at, format!("{}: {}", self.name, what.as_ref()), cause)
    }

    /// Where it is named, as a byte.
    pub fn at(&self) -> usize {
        self.at
    }

    /// The place of a byte.
    pub fn place(&self, at: usize) -> Place {
        Place { file: self.source.file.to_owned(), line: self.source.line(at) }
    }

    /// How a message about this file names a place, which may be in another one.
    pub fn seen(&self, place: &Place) -> String {
        if place.file == self.source.file { format!("line {}", place.line) } else { place.to_string() }
    }

    /// The value of a key, if it is there. A refusal is a cause.
    pub fn get<T>(
        &self,
        key: &str,
        read: impl FnOnce(&'a DeValue<'a>) -> Result<T, String>,
    ) -> Result<Option<T>, Error> {
        let Some(value) = self.map.get(key) else { return Ok(None) };
        read(value.get_ref()).map(Some).map_err(|cause| self.refuse(value.span().start, key, cause))
    }

    /// The value of a key that is on or off; off if it is not there.
    pub fn flag(&self, key: &str) -> Result<bool, Error> {
        Ok(self.get(key, |value| bool::read(switch(value)?))?.unwrap_or_default())
    }

    /// The value of a key that must be there.
    pub fn need<T>(
        &self,
        key: &str,
        read: impl FnOnce(&'a DeValue<'a>) -> Result<T, String>,
    ) -> Result<T, Error> {
        self.get(key, read)?.ok_or_else(|| self.refuse_whole(format!("the key '{key}' is missing")))
    }

    /// The values of a key that is a list, or a single value, with the place of each.
    pub fn list(&self, key: &str) -> Vec<&'a Spanned<DeValue<'a>>> {
        match self.map.get(key) {
            None => Vec::new(),
            Some(value) => match value.get_ref() {
                DeValue::Array(list) => list.iter().collect(),
                _ => vec![value],
            },
        }
    }

    /// The strings of a key that is a list of them, or one; each read by `read`.
    pub fn strings<T>(
        &self,
        key: &str,
        read: impl Fn(&str) -> Result<T, String>,
    ) -> Result<Vec<(usize, T)>, Error> {
        let one = |value: &'a Spanned<DeValue<'a>>| {
            let at = value.span().start;
            let value = string(value.get_ref()).and_then(&read);
            value.map(|value| (at, value)).map_err(|cause| self.refuse(at, key, cause))
        };
        self.list(key).into_iter().map(one).collect()
    }

    /// What is in a table of things that have names, in the order of the file. `kind` is what they are.
    pub fn named(&self, key: &str, kind: &str) -> Result<Vec<Named<'a>>, Error> {
        let Some(value) = self.map.get(key) else { return Ok(Vec::new()) };
        let DeValue::Table(map) = value.get_ref() else {
            return Err(self.refuse(
                value.span().start,
                key,
                not_a(value.get_ref(), &format!("[{key}.{kind}]")),
            ));
        };
        let mut all: Vec<Named<'a>> = map
            .iter()
            .map(|(name, value)| Named { name: name.get_ref(), at: name.span().start, value })
            .collect();
        all.sort_by_key(|named| named.at);
        Ok(all)
    }
}

fn not_a(value: &DeValue<'_>, wanted: &str) -> String {
    format!("it is {}; write {wanted}", kind(value))
}

fn kind(value: &DeValue<'_>) -> &'static str {
    match value {
        DeValue::String(_) => "a string",
        DeValue::Integer(_) => "a number",
        DeValue::Float(_) => "a number with a fraction",
        DeValue::Boolean(_) => "true or false",
        DeValue::Datetime(_) => "a date",
        DeValue::Array(_) => "a list",
        DeValue::Table(_) => "a table",
    }
}

/// A string.
pub fn string<'v>(value: &'v DeValue<'_>) -> Result<&'v str, String> {
    value.as_str().ok_or_else(|| not_a(value, "a string"))
}

/// A whole number, as the command line writes it.
pub fn number<'v>(value: &'v DeValue<'_>) -> Result<Cow<'v, str>, String> {
    let Some(number) = value.as_integer() else { return Err(not_a(value, "a whole number")) };
    match number.radix() {
        10 => Ok(number.as_str().trim_start_matches('+').into()),
        radix => match u64::from_str_radix(number.as_str(), radix) {
            Ok(number) => Ok(number.to_string().into()),
            Err(_) => Err(format!("'{}' is too large", number.as_str())),
        },
    }
}

/// `true` and `false`, or what the command calls them; in the words of the command.
pub fn switch<'v>(value: &'v DeValue<'_>) -> Result<&'v str, String> {
    match value {
        DeValue::Boolean(true) => Ok("on"),
        DeValue::Boolean(false) => Ok("off"),
        DeValue::String(text) => Ok(text),
        other => Err(not_a(other, "true or false")),
    }
}
