//! What an experiment reports to whoever watches while it runs.

use std::io::Write;

/// What is about to be measured.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Step<'a> {
    /// The experiment's name.
    pub experiment: &'a str,
    /// The case's name.
    pub case: &'a str,
    /// Which measurement it is, from 1.
    pub number: u32,
    /// Of how many; absent where that is not known, as with a part of an experiment.
    pub of: Option<u32>,
}

/// Whoever watches. Whatever can be written to is one that gets a line a measurement.
pub trait Progress {
    /// A measurement is done; or something was found out that the report has, too.
    fn line(&mut self, line: &str);

    /// Something went wrong, and the experiment goes on.
    fn warn(&mut self, line: &str) {
        self.line(line);
    }

    /// A measurement begins.
    fn begin(&mut self, _step: Step<'_>) {}
}

impl<W: Write> Progress for W {
    fn line(&mut self, line: &str) {
        // Nobody may be looking any more; the results still count.
        let _ = writeln!(self, "{line}").and_then(|()| self.flush());
    }
}
