//! A link that becomes slower under a flow, and faster again; that fails silently, and comes back.

use crate::experiments::prelude::*;
use crate::flow::{TcpFlow, TcpRecord};
use linkbraid_lab::Fault;

const LINKS: usize = 4;
/// What each link carries at first, and what one of them carries for a while, Mbit/s. None tells either.
const RATE: u32 = 100;
const SLOW: u32 = 25;
const CHANGING: usize = 3;
/// How long the flow runs before the first change; what is known of lanes by then need not be learned again.
const WARM: Duration = Duration::from_secs(5);
/// How long after a change shares may still be wrong.
const FOLLOW: Duration = Duration::from_secs(2);
/// How long the flow is measured, before the first change and after each one.
const WINDOW: Duration = Duration::from_secs(3);
/// Of what all links carry together then.
const GOAL: f64 = 0.95;

/// The changes, with what the link carries after each, in Mbit/s; 0: nothing gets through, and its carrier stays.
const CHANGES: [(&str, u32); 4] = [("slower", SLOW), ("faster", RATE), ("silent", 0), ("back", RATE)];

pub(super) fn run(run: &mut Run<'_>) -> Result<(), Error> {
    if !run.wants("changing/") {
        return Ok(());
    }
    let bed = run.bonded("changing", Topology::symmetric(2, LINKS, Some(RATE)));
    let Some(bed) = run.noted("changing", bed)? else { return Ok(()) };
    for &(word, cc) in run.ccs() {
        let id = |how: &str| format!("changing/{word}/{how}");
        for turn in 0..run.settings.repeat {
            run.step(&format!("changing/{word}"));
            let shares = flow(run, &bed, cc);
            let Some(shares) = run.noted(format!("changing/{word}"), shares)? else { break };
            for ((how, mbit), share) in CHANGES.into_iter().zip(shares) {
                let made = match mbit {
                    0 => format!("eth{CHANGING} of a cut at the switch"),
                    _ => format!("eth{CHANGING} of both hosts at {mbit} Mbit/s"),
                };
                let typed = format!("{made}, {} s after", FOLLOW.as_secs());
                run.note(&id(how), &typed, turn, &[("share", "of what the links carry", share)])?;
            }
        }
        for (how, _) in CHANGES {
            let share = run.report.median(&id(how), "share");
            let what = format!("of what the links carry, 2 s after one of them is {how}");
            run.judge(&id(how), &what, Bound::AtLeast, GOAL, share);
        }
    }
    Ok(())
}

/// One flow under both changes: what it had of the links after each, against what it had of them before the first one.
fn flow(run: &Run<'_>, bed: &Bed, cc: Cc) -> Result<[f64; CHANGES.len()], Error> {
    let flow = TcpFlow::start(bed.host("a")?, bed.host("b")?, cc)?;
    let made = changes(run, bed);
    let record = flow.stop();
    // Whatever became of the flow, the next one begins with links as they were.
    change(bed, RATE)?;
    let made = made?;
    if let Some(lost) = record.lost {
        return Err(Error::new("changing", "the flow ended", lost));
    }
    let before = bytes(&record, made[0], None) / f64::from(4 * RATE);
    Ok(std::array::from_fn(|n| {
        bytes(&record, made[n], Some(FOLLOW)) / f64::from(3 * RATE + CHANGES[n].1) / before
    }))
}

fn changes(run: &Run<'_>, bed: &Bed) -> Result<[Instant; CHANGES.len()], Error> {
    run.pause(WARM + WINDOW)?;
    let mut made = [Instant::now(); CHANGES.len()];
    for (at, (_, mbit)) in made.iter_mut().zip(CHANGES) {
        change(bed, mbit)?;
        *at = Instant::now();
        run.pause(FOLLOW + WINDOW)?;
    }
    Ok(made)
}

fn change(bed: &Bed, mbit: u32) -> Result<(), Error> {
    let link = bed.host("a")?.link(CHANGING)?;
    if mbit == 0 {
        return link.fail(Fault::Silent).map(|_| ());
    }
    link.mend()?;
    ["a", "b"].into_iter().try_for_each(|host| bed.host(host)?.link(CHANGING)?.set_rate(mbit))
}

/// What arrived in the window that begins so long after a change, or that ends with it.
fn bytes(record: &TcpRecord, change: Instant, after: Option<Duration>) -> f64 {
    let change = change.saturating_duration_since(record.zero);
    let from = after.map_or_else(|| change.saturating_sub(WINDOW), |after| change + after);
    record.progress.between(from, from + WINDOW) as f64
}
