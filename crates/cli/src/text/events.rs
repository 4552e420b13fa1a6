//! `monitor`, and what happened lately in `show`.

use super::{Clock, Style, Tone};
use linkbraid_api::{EventKind, EventRecord};
use linkbraid_terminal::{human, report::one_line};

/// Room for `member eth1`, so that what is next stands in a column where names are short, as they mostly are.
const OBJECT_WIDTH: usize = 12;

/// Room for `down -> delayed`, likewise.
const CHANGE_WIDTH: usize = 15;

/// Between two columns.
const GAP: &str = "  ";

/// A space where no line is broken.
const TIE: char = '\u{a0}';

/// One event, one line: `12:00:01.234  bond0  member eth1  up -> down  no carrier (found in 3.2 ms)`. On a terminal that
/// is too narrow, the words go on below.
pub fn event(record: &EventRecord, style: &Style, clock: &Clock) -> String {
    let bond = one_line(&record.bond);
    let begin = format!("{}{GAP}{bond}{GAP}", clock.time(record.time_ms));
    let indent = begin.chars().count();
    let lines = match style.width {
        Some(width) => Words::of(record).lines(width.saturating_sub(indent), style),
        None => vec![Words::of(record).line(style)],
    };
    begin + &lines.join(&format!("\n{:indent$}", "")) + "\n"
}

/// The parts of an event that do not depend on where it is shown.
#[derive(Debug)]
pub struct Words {
    kind: (&'static str, Option<Tone>),
    /// Empty where it has been named before.
    name: String,
    old: Option<String>,
    new: Option<String>,
    /// With ties.
    why: String,
}

impl Words {
    /// The words for one event.
    pub fn of(record: &EventRecord) -> Self {
        let kind = match record.kind {
            EventKind::Bond => ("bond", None),
            EventKind::Member => ("member", None),
            EventKind::Lane => ("lane", None),
            EventKind::Peer => ("peer", None),
            EventKind::Conflict => ("conflict", Some(Tone::Bad)),
            EventKind::Fabric => ("fabric", None),
            EventKind::Node => ("node", None),
            EventKind::Lost => ("lost", Some(Tone::Uneasy)),
        };
        // The bond has been named before.
        let named = record.object != record.bond && record.kind != EventKind::Lost;
        Self {
            kind,
            name: if named { one_line(&record.object) } else { String::new() },
            old: record.old.as_deref().map(one_line),
            new: record.new.as_deref().map(one_line),
            why: why(record),
        }
    }

    /// All in one line.
    fn line(&self, style: &Style) -> String {
        format!("{}{GAP}{}", self.head(style), self.why.replace(TIE, " ")).trim_end().to_owned()
    }

    /// In as many lines as it takes to stay within `width` where words allow it.
    pub fn lines(&self, width: usize, style: &Style) -> Vec<String> {
        let plain = Style::new(false);
        if self.line(&plain).chars().count() <= width {
            return vec![self.line(style)];
        }
        let mut lines = match self.head(&plain).trim_end().chars().count() <= width {
            true => vec![self.head(style).trim_end().to_owned()],
            false => {
                let mut lines = human::wrap(&self.object(style, 0), width);
                lines.extend(Some(self.change(style, 0)).filter(|change| !change.is_empty()));
                lines
            }
        };
        lines.extend(human::wrap(&self.why, width).iter().map(|line| line.replace(TIE, " ")));
        lines
    }

    /// `member eth1  up -> down`, in columns
    fn head(&self, style: &Style) -> String {
        let object = self.object(style, OBJECT_WIDTH);
        match self.old.is_some() || self.new.is_some() {
            true => format!("{object}{GAP}{}", self.change(style, CHANGE_WIDTH)),
            false => object,
        }
    }

    /// `member eth1`
    fn object(&self, style: &Style, width: usize) -> String {
        let (word, tone) = self.kind;
        let plain = if self.name.is_empty() { word.to_owned() } else { format!("{word} {}", self.name) };
        let padding = " ".repeat(width.saturating_sub(plain.chars().count()));
        let rest = &plain[word.len()..];
        match tone {
            Some(tone) => format!("{}{rest}{padding}", style.paint(tone, word)),
            None => plain + &padding,
        }
    }

    /// `up -> down`
    fn change(&self, style: &Style, width: usize) -> String {
        let (old, new) = match (&self.old, &self.new) {
            (None, None) => return String::new(),
            (Some(old), Some(new)) if old == new => (None, new.as_str()),
            (old, new) => (Some(old.as_deref().unwrap_or("new")), new.as_deref().unwrap_or("gone")),
        };
        let before = old.map_or_else(String::new, |old| format!("{old} -> "));
        let padding = " ".repeat(width.saturating_sub(before.chars().count() + new.chars().count()));
        let new = tone(new).map_or_else(|| new.to_owned(), |tone| style.paint(tone, new));
        before + &new + &padding
    }
}

/// `no carrier (found in 3.2 ms)`, the part in brackets tied together
fn why(record: &EventRecord) -> String {
    let text = match record.text.trim() {
        "" => record.reason.replace('_', " "),
        text => text.to_owned(),
    };
    let took = record.took_us.map(|us| {
        // To lose something is found out, to get it takes time.
        let better = record.new.as_deref().and_then(tone).is_some_and(|tone| matches!(tone, Tone::Good));
        let how = if better { "took" } else { "found in" };
        format!("({how} {})", human::took(us)).replace(' ', &TIE.to_string())
    });
    one_line([text, took.unwrap_or_default()].join(" ").trim())
}

/// How the state of a bond, a member, a lane or a peer is meant; a word not known here is only a word.
pub fn tone(state: &str) -> Option<Tone> {
    match state {
        "ok" | "up" | "alive" => Some(Tone::Good),
        "degraded" | "delayed" | "suspect" | "init" | "silent" => Some(Tone::Uneasy),
        "down" | "cut" | "gone" | "dead" => Some(Tone::Bad),
        _ => None,
    }
}

#[cfg(test)]
mod tests;
