//! The rates of the links as text: bars that are drawn over, or one line after the other.

use crate::counters::Rate;
use std::fmt::Write;
use std::time::Duration;

/// The width of a bar at a link's full rate.
const WIDTH: usize = 40;

/// Draws rates.
#[derive(Debug)]
pub(super) struct Screen {
    names: Vec<String>,
    full_mbit: f64,
    terminal: bool,
    drawn: bool,
}

impl Screen {
    /// For links of these names and this rate.
    pub(super) fn new(names: Vec<String>, rate_mbit: u32, terminal: bool) -> Self {
        Self { names, full_mbit: f64::from(rate_mbit), terminal, drawn: false }
    }

    /// The next picture, `passed` after the start: what each link sends.
    pub(super) fn draw(&mut self, passed: Duration, rates: &[Rate]) -> String {
        let sum: f64 = rates.iter().map(|rate| rate.tx_mbit).sum();
        if self.terminal { self.bars(rates, sum) } else { self.line(passed, rates, sum) }
    }

    fn line(&self, passed: Duration, rates: &[Rate], sum: f64) -> String {
        let mut text = format!("  {:>4.0} s", passed.as_secs_f64());
        for (name, rate) in self.names.iter().zip(rates) {
            // Writing to a string can't fail.
            let _ = write!(text, "  {name} {:5.1}", rate.tx_mbit);
        }
        let _ = writeln!(text, "  sum {sum:6.1} Mbit/s");
        text
    }

    fn bars(&mut self, rates: &[Rate], sum: f64) -> String {
        let mut text = String::new();
        if std::mem::replace(&mut self.drawn, true) {
            // Back up over the last picture.
            let _ = write!(text, "\x1b[{}A", self.names.len() + 1);
        }
        for (name, rate) in self.names.iter().zip(rates) {
            let _ = writeln!(
                text,
                "\x1b[2K  {name:<6} {} {:7.1} Mbit/s",
                bar(rate.tx_mbit / self.full_mbit),
                rate.tx_mbit
            );
        }
        let _ = writeln!(text, "\x1b[2K  {:<6} {:WIDTH$} {sum:7.1} Mbit/s", "sum", "");
        text
    }
}

/// A bar of [`WIDTH`] columns, filled to a share of 0 to 1.
fn bar(share: f64) -> String {
    let filled = (share.clamp(0.0, 1.0) * WIDTH as f64).round() as usize;
    "█".repeat(filled) + &"░".repeat(WIDTH - filled)
}

#[cfg(test)]
mod tests;
