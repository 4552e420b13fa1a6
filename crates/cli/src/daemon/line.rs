//! One line of the daemon's log, for people: the object, what happened, why.
//!
//! The journal gets the priority in front, as in sd-daemon(3), so that `journalctl -p warning` finds what needs a hand.
//! Elsewhere the line begins with the time and the level.

use linkbraid_terminal::report::one_line;
use std::fmt::{self, Debug, Write as _};
use tracing::field::{Field, Visit};
use tracing::{Event, Level, Subscriber};
use tracing_subscriber::fmt::format::Writer;
use tracing_subscriber::fmt::time::{FormatTime as _, SystemTime};
use tracing_subscriber::fmt::{FmtContext, FormatEvent, FormatFields};
use tracing_subscriber::registry::LookupSpan;

/// How lines are written.
pub struct Lines {
    /// They go to the journal.
    pub journal: bool,
}

impl<S, N> FormatEvent<S, N> for Lines
where
    S: Subscriber + for<'a> LookupSpan<'a>,
    N: for<'a> FormatFields<'a> + 'static,
{
    fn format_event(
        &self,
        _: &FmtContext<'_, S, N>,
        mut writer: Writer<'_>,
        event: &Event<'_>,
    ) -> fmt::Result {
        let level = event.metadata().level();
        if self.journal {
            write!(writer, "<{}>", priority(level))?;
        } else {
            SystemTime.format_time(&mut writer)?;
            write!(writer, " {level:>5} ")?;
        }
        let mut words = Words::default();
        event.record(&mut words);
        writeln!(writer, "{}", one_line(&words.text()))
    }
}

/// As syslog(3) has it.
const fn priority(level: &Level) -> u8 {
    match *level {
        Level::ERROR => 3,
        Level::WARN => 4,
        Level::INFO => 6,
        _ => 7,
    }
}

/// What one event says.
#[derive(Default)]
struct Words {
    /// The bond, fabric or file, and its part.
    objects: Vec<String>,
    message: String,
    causes: Vec<String>,
    hint: String,
    others: String,
}

impl Words {
    fn add(&mut self, name: &str, value: String) {
        match name {
            "message" => self.message = value,
            "bond" | "fabric" | "file" | "name" | "member" | "class" => self.objects.push(value),
            "error" | "cause" | "why" => self.causes.push(value),
            "hint" => self.hint = value,
            // A word for programs; the message says the same.
            "reason" => {}
            // To a string, this cannot fail.
            other => drop(write!(self.others, " {other}={value}")),
        }
    }

    fn text(&self) -> String {
        let mut text = String::new();
        for object in self.objects.iter().filter(|object| !self.message.starts_with(&format!("{object}: "))) {
            text += &format!("{object}: ");
        }
        text += &self.message;
        for cause in &self.causes {
            // Many an error begins with the same object.
            let mut cause = cause.as_str();
            for object in &self.objects {
                cause = cause.strip_prefix(&format!("{object}: ")).unwrap_or(cause);
            }
            text += &format!("{}{cause}", if self.message.is_empty() { "" } else { ": " });
        }
        text += &self.others;
        if !self.hint.is_empty() {
            text += &format!("; hint: {}", self.hint);
        }
        text
    }
}

impl Visit for Words {
    fn record_str(&mut self, field: &Field, value: &str) {
        self.add(field.name(), value.to_owned());
    }

    fn record_debug(&mut self, field: &Field, value: &dyn Debug) {
        self.add(field.name(), format!("{value:?}"));
    }
}

#[cfg(test)]
mod tests;
