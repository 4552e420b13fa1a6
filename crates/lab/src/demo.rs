//! The demo: two hosts, a switch, one TCP flow; first over one link, then over all of them.

mod screen;

use crate::counters::{Meter, Rate};
use crate::host::Host;
use crate::interrupt::Interrupt;
use crate::iperf::{self, Cc, Outcome, Traffic};
use crate::lab::Lab;
use crate::spec::Topology;
use crate::{daemon, stolen, tool, wait};
use linkbraid_api::{Error, PeerRecord, PeerState};
use screen::Screen;
use serde::{Deserialize, Serialize};
use std::io::Write;
use std::time::{Duration, Instant};

/// The bond on both hosts.
const BOND: &str = "bond0";
/// How long the two hosts may take to find each other.
const PEERS_LIMIT: Duration = Duration::from_secs(20);
/// How often the rates are shown: redrawn on a terminal, and as lines.
const REDRAW: [Duration; 2] = [Duration::from_millis(250), Duration::from_secs(1)];

/// What to show.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
pub struct Demo {
    /// Links of each host.
    pub links: u32,
    /// The rate of each, Mbit/s.
    pub rate_mbit: u32,
    /// How long each flow runs, seconds.
    pub seconds: u32,
    /// TCP's congestion control.
    pub cc: Cc,
    /// Whether the output is a terminal: bars that move, instead of a line a second.
    pub terminal: bool,
}

impl Default for Demo {
    fn default() -> Self {
        Self { links: 4, rate_mbit: 100, seconds: 8, cc: Cc::Cubic, terminal: false }
    }
}

/// What the demo came to.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct Summary {
    /// What was asked for.
    pub demo: Demo,
    /// The flow over one link alone.
    pub single: Outcome,
    /// The flow over the bond.
    pub bonded: Outcome,
    /// The rate of each link while the bond carried the flow: mean over its run, Mbit/s of frames.
    pub links: Vec<Rate>,
    /// What others on the same physical machine took of the processors' time meanwhile, 0 to 1.
    pub stolen: f64,
}

impl Summary {
    /// Bonded goodput over the goodput of one link, both in their median second.
    pub fn ratio(&self) -> f64 {
        self.bonded.median_mbit() / self.single.median_mbit().max(f64::MIN_POSITIVE)
    }

    /// The one sentence.
    pub fn sentence(&self) -> String {
        let Demo { links, rate_mbit, cc, .. } = self.demo;
        format!(
            "One TCP flow ({}): {:.1} Mbit/s over one link of {rate_mbit} Mbit/s, {:.1} Mbit/s over {links} of them bonded, \
             {:.2} times as much.",
            cc.name(),
            self.single.median_mbit(),
            self.bonded.median_mbit(),
            self.ratio(),
        )
    }
}

/// Runs the demo, and writes to `out` what happens. Leaves nothing behind, also when interrupted (SIGINT, SIGTERM).
pub fn run(demo: Demo, out: &mut dyn Write) -> Result<Summary, Error> {
    tool::require(&["ip", "tc", "bridge", "ethtool", "iperf3"])?;
    let binary = daemon::binary()?;
    let interrupt = Interrupt::catch("lab demo")?;
    let topology = Topology::symmetric(2, demo.links as usize, Some(demo.rate_mbit)).named("demo");
    let lab = Lab::up(topology)?;
    let (a, b) = (lab.host("a")?, lab.host("b")?);
    let mut stage = Stage { demo, out, interrupt: &interrupt };
    stage.say(&format!(
        "two hosts, a and b; {} links of {} Mbit/s each; one ordinary switch",
        demo.links, demo.rate_mbit
    ))?;

    let before = stolen::processors()?;
    stage.say("\none link alone")?;
    let (single, _) = stage.flow(a, b)?;
    stage.say(&format!("  {}", rate(&single)))?;

    stage.say(&format!("\n{} links, bonded", demo.links))?;
    let _daemons = [a.daemon_of(&binary)?, b.daemon_of(&binary)?];
    let bonded = stage.bonded_flow(a, b);
    // The data path of a bond outlives its daemon: it is taken down by name, also after a failure.
    let removed = [a, b].map(|host| host.linkbraid(&format!("bond del {BOND}")));
    let (bonded, links) = bonded?;
    removed.into_iter().collect::<Result<Vec<_>, _>>()?;
    stage.say(&format!("  {}", rate(&bonded)))?;
    let summary =
        Summary { demo, single, bonded, links, stolen: stolen::share(&before, &stolen::processors()?) };
    if let Some(remark) = stolen::remark(summary.stolen) {
        stage.say(&format!("\n{remark}"))?;
    }
    stage.say(&format!("\n{}", summary.sentence()))?;
    Ok(summary)
}

/// The rate of a flow: its median second, and its slowest.
fn rate(flow: &Outcome) -> String {
    let slowest = flow.each_second.iter().copied().min_by(f64::total_cmp);
    let slowest = slowest.map_or_else(String::new, |mbit| format!(", {mbit:.1} in the slowest"));
    format!("{:.1} Mbit/s in the median second{slowest}", flow.median_mbit())
}

/// Where the demo is reported, and what may end it.
struct Stage<'a> {
    demo: Demo,
    out: &'a mut dyn Write,
    interrupt: &'a Interrupt,
}

impl Stage<'_> {
    fn say(&mut self, line: &str) -> Result<(), Error> {
        let cannot = |e: std::io::Error| Error::new("lab demo", "cannot write", e.to_string());
        writeln!(self.out, "{line}").and_then(|()| self.out.flush()).map_err(cannot)?;
        self.interrupt.check()
    }

    /// Makes both bonds and sends the flow over them.
    fn bonded_flow(&mut self, a: Host<'_>, b: Host<'_>) -> Result<(Outcome, Vec<Rate>), Error> {
        self.bond(a)?;
        self.bond(b)?;
        self.meet(a, b)?;
        self.flow(a, b)
    }

    /// Makes the bond of one host, as its user would.
    fn bond(&mut self, host: Host<'_>) -> Result<(), Error> {
        for line in host.bond_lines(BOND) {
            self.say(&format!("  {}# linkbraid {line}", host.name()))?;
            host.linkbraid(&line)?;
        }
        Ok(())
    }

    /// Waits until both hosts have found each other.
    fn meet(&mut self, a: Host<'_>, b: Host<'_>) -> Result<(), Error> {
        for host in [a, b] {
            wait::wait_for(PEERS_LIMIT, &format!("host '{}' to find its peer", host.name()), || {
                self.interrupt.check().map_err(|e| e.to_string())?;
                let peers =
                    host.ask::<Vec<PeerRecord>>(&format!("peers {BOND}")).map_err(|e| e.to_string())?;
                let is_there = peers.iter().any(|peer| peer.state == PeerState::Alive);
                if is_there { Ok(()) } else { Err(format!("{peers:?}")) }
            })?;
        }
        Ok(())
    }

    /// One flow from `a` to `b`, shown while it runs; its result and the mean rate of each link.
    fn flow(&mut self, a: Host<'_>, b: Host<'_>) -> Result<(Outcome, Vec<Rate>), Error> {
        let traffic = Traffic::tcp(self.demo.cc, self.demo.seconds);
        let mut iperf = iperf::start(a, b, &traffic)?;
        self.say(&format!("  a# {}", iperf.command()))?;
        let links = (0..self.demo.links).map(|link| format!("eth{link}")).collect();
        let mut screen = Screen::new(links, self.demo.rate_mbit, self.demo.terminal);
        let every = if self.demo.terminal { REDRAW[0] } else { REDRAW[1] };
        // What the flow does while it finds its speed is shown, but is not in the mean.
        let begin = Instant::now();
        let warm = Duration::from_secs(u64::from(traffic.omit));
        let end = warm + Duration::from_secs(u64::from(traffic.seconds));
        let mut live = Meter::start(a.nic_counts()?);
        let (mut whole, mut mean) = (None::<Meter>, Vec::new());
        while !iperf.ended() {
            wait_a_moment(every, &mut iperf);
            self.interrupt.check()?;
            let passed = begin.elapsed();
            if passed > end {
                break;
            }
            let counts = a.nic_counts()?;
            match &whole {
                Some(meter) => mean = meter.clone().rates(counts.clone()),
                None if passed >= warm => whole = Some(Meter::start(counts.clone())),
                None => {}
            }
            let text = screen.draw(passed, &live.rates(counts));
            write!(self.out, "{text}")
                .and_then(|()| self.out.flush())
                .map_err(|e| Error::new("lab demo", "cannot write", e.to_string()))?;
        }
        Ok((iperf.finish()?, mean))
    }
}

/// Waits until the next picture is due or the flow has ended.
fn wait_a_moment(every: Duration, iperf: &mut iperf::Iperf<'_>) {
    let due = Instant::now() + every;
    // Reaching the limit is the usual case, not an error.
    let _ = wait::wait_until(
        every * 2,
        "the next picture",
        || iperf.ended() || Instant::now() >= due,
        |done| *done,
    );
}

#[cfg(test)]
mod tests;
