//! What an experiment does, for whoever looks at a terminal: one line that is drawn over.

use indicatif::{ProgressBar, ProgressDrawTarget, ProgressState, ProgressStyle};
use linkbraid_bench::{Progress, Step};
use std::fmt::Write;
use std::io::{self, IsTerminal};
use std::time::Duration;

/// How often the line is drawn, times a second; the time left is counted down meanwhile.
const DRAWS: u8 = 5;
const TICK: Duration = Duration::from_millis(500);
/// With a known number of steps, and without one.
const KNOWN: &str = "{prefix} [{bar:24}] {pos} of {len}, {left} left  {wide_msg}";
const UNKNOWN: &str = "{prefix} {spinner} {elapsed}  {wide_msg}";

pub struct Bar(ProgressBar);

impl Bar {
    /// A line on standard error for experiment `number` of `of`; nothing if that is no terminal which can be drawn on.
    pub fn new(name: &str, (number, of): (usize, usize)) -> Option<Self> {
        let plain = std::env::var_os("TERM").is_none_or(|term| term == "dumb");
        if plain || !io::stderr().is_terminal() {
            return None;
        }
        let target = ProgressDrawTarget::stderr_with_hz(DRAWS);
        Some(Self::on(target, name, (number, of)))
    }

    fn on(target: ProgressDrawTarget, name: &str, (number, of): (usize, usize)) -> Self {
        let bar = ProgressBar::with_draw_target(None, target);
        let place = if of > 1 { format!(" ({number} of {of})") } else { String::new() };
        bar.set_style(style(UNKNOWN));
        bar.set_prefix(format!("{name}{place}"));
        bar.set_message("makes its labs");
        bar.enable_steady_tick(TICK);
        Self(bar)
    }

    pub fn end(self) {
        self.0.finish_and_clear();
    }
}

impl Progress for Bar {
    fn line(&mut self, _line: &str) {
        // The tables at the end have it all.
    }

    fn warn(&mut self, line: &str) {
        self.0.println(line);
    }

    fn begin(&mut self, step: Step<'_>) {
        if let Some(of) = step.of {
            if self.0.length().is_none() {
                self.0.set_style(style(KNOWN));
            }
            self.0.set_length(u64::from(of));
        }
        self.0.set_position(u64::from(step.number.saturating_sub(1)));
        self.0.set_message(step.case.to_owned());
    }
}

/// Both templates are ours, so that one that cannot be read is a mistake that a test finds.
fn style(template: &str) -> ProgressStyle {
    ProgressStyle::with_template(template)
        .unwrap_or_else(|_| ProgressStyle::default_bar())
        .progress_chars("=> ")
        .with_key("left", |state: &ProgressState, out: &mut dyn Write| {
            // A line that cannot be written is not missed.
            let _ = out.write_str(&left(state.elapsed(), state.pos(), state.len().unwrap_or(0)));
        })
        .with_key("elapsed", |state: &ProgressState, out: &mut dyn Write| {
            let _ = out.write_str(&clock(state.elapsed()));
        })
}

/// The time left if the steps to come take as long as those that are done.
fn left(elapsed: Duration, done: u64, all: u64) -> String {
    if done == 0 {
        return "-:--".into();
    }
    clock(elapsed.mul_f64(all.saturating_sub(done) as f64 / done as f64))
}

/// `M:SS`, or `H:MM:SS`.
fn clock(time: Duration) -> String {
    let seconds = time.as_secs();
    let (hours, minutes, seconds) = (seconds / 3600, seconds / 60 % 60, seconds % 60);
    if hours > 0 { format!("{hours}:{minutes:02}:{seconds:02}") } else { format!("{minutes}:{seconds:02}") }
}

#[cfg(test)]
mod tests;
