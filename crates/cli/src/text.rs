//! Records as text for people; JSON for programs comes straight from the records.

mod bonds;
mod classes;
mod clock;
mod doctor;
mod events;
mod explain;
mod fabrics;
mod findings;
mod guests;
mod lanes;
mod latency;
mod peers;
mod stats;

pub use bonds::bonds;
pub use classes::classes;
pub use clock::Clock;
pub use doctor::diagnosis;
pub use events::{event, tone};
pub use explain::explain;
pub use fabrics::{fabric_stats, fabrics};
pub use findings::findings;
pub use lanes::lanes;
pub use latency::latency;
pub use peers::peers;
pub use stats::stats;

pub use linkbraid_terminal::{json, json_line};

use linkbraid_api::{Health, Records, Severity};

/// How text is dressed: colours, or nothing.
#[derive(Debug, Clone, Copy)]
pub struct Style {
    colour: bool,
    /// How many characters a line may have where that is known; lines that are for one event or finding stay whole
    /// otherwise.
    width: Option<usize>,
}

/// The health that a word stands for.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Tone {
    /// All is well.
    Good,
    /// It works, but not as it should.
    Uneasy,
    /// It does not work.
    Bad,
}

/// What a terminal has at least.
const WIDTH: usize = 80;

/// Records as one JSON text.
pub fn records_json(records: &Records) -> String {
    match records {
        Records::Bonds(bonds) => json(bonds),
        Records::Peers(peers) => json(peers),
        Records::Lanes(lanes) => json(lanes),
        Records::Stats(stats) => json(stats),
        Records::Latency(latency) => json(latency),
        Records::Classes(classes) => json(classes),
        Records::Fabrics(fabrics) => json(fabrics),
        Records::FabricStats(stats) => json(stats),
        Records::Findings(findings) => json(findings),
        Records::Explained(record) => json(record),
        Records::Applied(record) => json(record),
        Records::Changes(changes) => json(changes),
    }
}

/// All records with an empty line between two, or what is said of none.
fn each<R>(records: &[R], none: &str, text: impl Fn(&R) -> String) -> String {
    if records.is_empty() {
        return format!("{none}\n");
    }
    records.iter().map(text).collect::<Vec<_>>().join("\n")
}

/// Lines `  NAME  VALUE`, without those that have no value.
fn facts(facts: &[(&str, String)]) -> String {
    let mut out = String::new();
    for (name, value) in facts.iter().filter(|(_, value)| !value.is_empty()) {
        out.push_str(&format!("  {name:<8}  {value}\n"));
    }
    out
}

pub fn health(health: Health, style: &Style) -> String {
    let (word, tone) = match health {
        Health::Ok => ("ok", Tone::Good),
        Health::Degraded => ("degraded", Tone::Uneasy),
        Health::Down => ("down", Tone::Bad),
    };
    style.paint(tone, word)
}

fn severity(severity: Severity) -> (&'static str, Tone) {
    match severity {
        Severity::Ok => ("ok", Tone::Good),
        Severity::Warning => ("warning", Tone::Uneasy),
        Severity::Error => ("error", Tone::Bad),
    }
}

impl Style {
    /// With or without colour, as wide as it gets.
    pub fn new(colour: bool) -> Self {
        Self { colour, width: None }
    }

    /// The same, in lines of at most so many characters where words allow it.
    #[must_use]
    pub fn width(self, width: Option<usize>) -> Self {
        Self { width, ..self }
    }

    /// The command of a step: what it adds is green, what it removes red, what it changes yellow.
    pub fn step(self, command: &str) -> String {
        let tone = match command.split(' ').nth(2) {
            Some("add") => Tone::Good,
            Some("del") => Tone::Bad,
            _ => Tone::Uneasy,
        };
        self.paint(tone, command)
    }

    fn paint(self, tone: Tone, text: &str) -> String {
        let code = match tone {
            Tone::Good => "32",
            Tone::Uneasy => "33",
            Tone::Bad => "31",
        };
        if self.colour { format!("\x1b[{code}m{text}\x1b[0m") } else { text.to_owned() }
    }
}

#[cfg(test)]
pub mod tests;
