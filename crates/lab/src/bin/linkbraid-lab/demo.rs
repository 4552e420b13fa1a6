//! `linkbraid lab demo`.

use linkbraid_lab::demo::{Demo, run as play};
use linkbraid_lab::iperf::Cc;
use linkbraid_terminal::args::lab::{CcArg, LabDemoArgs};
use linkbraid_terminal::report::{self, Failed};
use std::io::{self, ErrorKind, IsTerminal, Write};

/// Plays the demo on standard output; with `json`, on standard error, and its summary on standard output.
pub fn run(args: &LabDemoArgs, json: bool) -> Result<(), Failed> {
    let demo = Demo {
        links: args.links,
        rate_mbit: args.rate,
        seconds: args.seconds,
        cc: match args.cc {
            CcArg::Cubic => Cc::Cubic,
            CcArg::Bbr => Cc::Bbr,
        },
        terminal: if json { io::stderr().is_terminal() } else { io::stdout().is_terminal() },
    };
    if json {
        let summary = play(demo, &mut io::stderr()).map_err(Failed::refused)?;
        return report::print(&linkbraid_terminal::json(&summary));
    }
    let mut out = Watched { out: io::stdout(), gone: false };
    match play(demo, &mut out) {
        Err(error) if !out.gone => Err(Failed::refused(error)),
        // Either it is over, or nobody watches any more.
        _ => Ok(()),
    }
}

/// A writer that remembers whether its reader has gone away, which is no error.
struct Watched<W> {
    out: W,
    gone: bool,
}

impl<W: Write> Write for Watched<W> {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        let written = self.out.write(bytes);
        self.note(written)
    }

    fn flush(&mut self) -> io::Result<()> {
        let flushed = self.out.flush();
        self.note(flushed)
    }
}

impl<W> Watched<W> {
    fn note<T>(&mut self, outcome: io::Result<T>) -> io::Result<T> {
        if let Err(error) = &outcome {
            self.gone |= error.kind() == ErrorKind::BrokenPipe;
        }
        outcome
    }
}
