//! Messages while one of their two links is cut, silently and by its carrier, again and again.

use super::{LINKS, Links, Load, MIRRORED, classed, cut_loads, scenario};
use crate::experiments::prelude::*;
use crate::flow::{MessageFlow, Messages, TripCount, Trips, ms, us};
use crate::percentiles::Percentiles;
use crate::report::{CUTS, Record, both};
use linkbraid_lab::Fault;
use serde::Serialize;
use serde_json::{Value, json};

/// How long messages find their lanes before anything happens.
const WARM: Duration = Duration::from_millis(300);
/// How long they are watched before a cut, and from the cut until the link is mended: twice as long as a silent cut may
/// go unnoticed.
const WATCH: Duration = Duration::from_millis(300);
/// How long a mended link may take until it is used again.
const RETURN_LIMIT: Duration = Duration::from_secs(10);
/// How often that is looked at: seldom, because each look takes CPU time from what is measured.
const LOOK: Duration = Duration::from_millis(50);
/// Bonds are made again this often in each repeat, so that no link is held down for failing again and again; each then
/// sees [`STEPS`]: 108 cuts in the three repeats of a whole run.
const ROUNDS: u32 = 9;
const QUICK_ROUNDS: u32 = 2;
/// A bond without a class, to compare with, sees fewer.
const BASE_ROUNDS: u32 = 2;
const STEPS: [(usize, Fault); 4] =
    [(0, Fault::Silent), (1, Fault::Carrier), (0, Fault::Carrier), (1, Fault::Silent)];
/// What a trace shows of the time around a cut.
const TRACE_BEFORE: Duration = Duration::from_millis(50);
const TRACE_AFTER: Duration = Duration::from_millis(250);
/// Messages come closer to each other than in other cases, so that some are always on their way.
const PERIOD_DIVISOR: u32 = 2;

pub(super) struct Kind {
    word: &'static str,
    policy: &'static str,
    /// The number of the first of the two links.
    first: usize,
}

pub(super) const MIRROR: Kind = Kind { word: "mirror", policy: "mirror", first: LINKS - 2 };
const PLAIN: Kind = Kind { word: "unmirrored", policy: "no class", first: 0 };

pub(super) struct Done {
    pub object: String,
    pub kind: &'static str,
    pub cut: Duration,
    pub mended: Duration,
    pub again: Duration,
}

pub(super) struct Round {
    pub trips: Trips,
    pub cuts: Vec<Done>,
}

/// One cut. Times are in milliseconds.
#[derive(Debug, Serialize)]
pub(super) struct Cut {
    /// What was cut: `HOST/NIC`.
    object: String,
    /// How: `carrier` or `silent`.
    kind: &'static str,
    pub(super) cut_ms: f64,
    /// From its mending until both links were in use again.
    pub(super) again_ms: f64,
    /// The same messages for as long just before the cut: the base.
    pub(super) before: TripCount,
    /// Those sent while it was cut.
    pub(super) during: TripCount,
    /// Those sent from its mending on until both links were in use again.
    pub(super) after: TripCount,
}

pub(super) fn run(run: &mut Run<'_>, links: Links, messages: Messages) -> Result<(), Error> {
    let messages = Messages { period: messages.period / PERIOD_DIVISOR, ..messages };
    if cut_loads(run).any(|load| run.wants(&id(&MIRROR, load)))
        && let Some(bed) = classed(run, links, "mirror", MIRRORED)?
    {
        let rounds = mirror_rounds(run);
        all(run, &bed, &MIRROR, messages, rounds)?;
    }
    if cut_loads(run).any(|load| run.wants(&id(&PLAIN, load))) {
        let bed = run.bonded("unmirrored", links.topology(2))?;
        all(run, &bed, &PLAIN, messages, BASE_ROUNDS)?;
    }
    Ok(())
}

fn mirror_rounds(run: &Run<'_>) -> u32 {
    if run.settings.quick { QUICK_ROUNDS } else { ROUNDS }
}

/// Rounds of each load in a repeat.
pub(super) fn rounds(run: &Run<'_>) -> usize {
    (mirror_rounds(run) + BASE_ROUNDS) as usize
}

fn id(kind: &Kind, load: Load) -> String {
    format!("{}/{}", kind.word, load.word)
}

/// All cuts of one bond, under both loads in turns.
fn all(run: &mut Run<'_>, bed: &Bed, kind: &Kind, messages: Messages, rounds: u32) -> Result<(), Error> {
    for load in cut_loads(run).collect::<Vec<_>>() {
        let id = id(kind, load);
        if !run.wants(&id) {
            continue;
        }
        let messages = Messages { over: load.over, ..messages };
        let (mut found, mut real_time) = (Vec::new(), true);
        let drops = bed.backlog_drops()?;
        for round in 0..rounds * run.settings.repeat {
            run.step(&id);
            let taken = one_round(run, bed, kind, messages, round);
            if let Some((flow, is_real_time)) = run.noted(format!("{id} #{}", round + 1), taken)? {
                real_time &= is_real_time;
                let line = line(&id, round, &flow);
                found.push(flow);
                run.say(&line)?;
            }
        }
        let parameters = json!({
            "lab": bed.name(), "policy": kind.policy, "load": load.word, "rate_mbit": bed.links()?.first().and_then(|link| link.spec().rate_mbit),
        });
        let parameters = both(parameters, scenario::settings(&messages, real_time));
        let drops = bed.backlog_drops()?.saturating_sub(drops);
        take(&mut run.report, &id, parameters, drops, &found)?;
    }
    Ok(())
}

/// Four cuts under one flow, on bonds that have seen none.
fn one_round(
    run: &Run<'_>,
    bed: &Bed,
    kind: &Kind,
    messages: Messages,
    round: u32,
) -> Result<(Round, bool), Error> {
    bed.make_again()?;
    bed.wait_settled(RETURN_LIMIT)?;
    // What one host does at once, the other learns from it: both are cut off in turns.
    let name = if round.is_multiple_of(2) { "a" } else { "b" };
    let flow = MessageFlow::start(bed.host("a")?, bed.host("b")?, messages)?;
    run.pause(WARM)?;
    let cuts = STEPS.iter().map(|step| one_cut(run, bed, &flow, name, kind, *step)).collect::<Result<_, _>>();
    let real_time = flow.real_time;
    let trips = flow.stop()?;
    Ok((Round { trips, cuts: cuts? }, real_time))
}

fn one_cut(
    run: &Run<'_>,
    bed: &Bed,
    flow: &MessageFlow,
    host: &str,
    kind: &Kind,
    (step, fault): (usize, Fault),
) -> Result<Done, Error> {
    let link = bed.host(host)?.link(kind.first + step)?;
    let at = |instant: Instant| instant.saturating_duration_since(flow.zero);
    run.pause(WATCH)?;
    let cut = link.fail(fault)?;
    let watched = run.pause(WATCH);
    let mended = link.mend()?;
    watched?;
    let deadline = Instant::now() + RETURN_LIMIT;
    while !bed.is_settled()? {
        if Instant::now() >= deadline {
            let object = format!("host {host}");
            let what = format!("waiting for '{}' to be used again", link.nic());
            return Err(Error::new(object, what, format!("not within {RETURN_LIMIT:?}")));
        }
        run.pause(LOOK)?;
    }
    Ok(Done {
        object: format!("{host}/{}", link.nic()),
        kind: fault.word(),
        cut: at(cut),
        mended: at(mended),
        again: flow.zero.elapsed(),
    })
}

/// Takes all rounds of one case into the report, if there are any.
pub(super) fn take(
    report: &mut Report,
    id: &str,
    parameters: Value,
    backlog_drops: u64,
    rounds: &[Round],
) -> Result<(), Error> {
    let Some(normal) = normal(rounds)? else { return Ok(()) };
    let limit = normal * 2;
    let (mut cuts, mut traces) = (Vec::new(), Vec::new());
    for (trips, done) in
        rounds.iter().flat_map(|round| round.cuts.iter().map(move |done| (&round.trips, done)))
    {
        let shown = trips.between(done.cut.saturating_sub(TRACE_BEFORE), done.cut + TRACE_AFTER);
        cuts.push(cut(trips, done, limit));
        traces.push(scenario::points(shown, |sent| since(sent, done.cut)));
    }
    let totals = json!({
        "normal_us": us(normal),
        "late_us": us(limit),
        "twice": rounds.iter().map(|round| round.trips.twice).sum::<u64>(),
        "backlog_drops": backlog_drops,
    });
    let turns = cuts.iter().map(|cut| json!(cut)).collect();
    report.record(CUTS, id, Record { turns, totals, parameters });
    for index in worst(&cuts) {
        let name = format!("{}: {} lost", cuts[index].kind, cuts[index].during.lost);
        report.draw(id, &name, std::mem::take(&mut traces[index]));
    }
    Ok(())
}

/// The median round trip of what was sent just before the cuts.
fn normal(rounds: &[Round]) -> Result<Option<Duration>, Error> {
    let quiet = rounds.iter().flat_map(|round| round.cuts.iter().map(move |done| (&round.trips, done)));
    let trips = quiet.flat_map(|(trips, done)| trips.between(done.cut.saturating_sub(WATCH), done.cut));
    let all = Percentiles::of(trips.filter_map(|trip| trip.took))?;
    Ok((!all.is_empty()).then(|| Duration::from_secs_f64(all.at_us(0.5) / 1e6)))
}

pub(super) fn cut(trips: &Trips, done: &Done, limit: Duration) -> Cut {
    let count = |from, to| trips.count(from, to, limit);
    // What is on its way as the link is cut may be lost with it, so it counts as sent while the link is cut.
    let begin = done.cut.saturating_sub(limit / 2);
    let length = done.mended.saturating_sub(begin);
    Cut {
        object: done.object.clone(),
        kind: done.kind,
        cut_ms: ms(done.mended.saturating_sub(done.cut)),
        again_ms: ms(done.again.saturating_sub(done.mended)),
        before: count(begin.saturating_sub(length), begin),
        during: count(begin, done.mended),
        after: count(done.mended, done.again),
    }
}

/// Milliseconds from one time to another, negative if that was before.
fn since(time: Duration, from: Duration) -> f64 {
    if time >= from { ms(time - from) } else { -ms(from - time) }
}

/// Of each kind of cut, the one with the most messages lost or late.
fn worst(cuts: &[Cut]) -> Vec<usize> {
    let mut kinds: Vec<&str> = cuts.iter().map(|cut| cut.kind).collect();
    kinds.sort_unstable();
    kinds.dedup();
    let of_kind = |kind: &str| {
        let of_kind = cuts.iter().enumerate().filter(|(_, cut)| cut.kind == kind);
        // The first of several that are alike.
        of_kind.rev().max_by_key(|(_, cut)| cut.during.lost + cut.during.late).map(|(index, _)| index)
    };
    kinds.into_iter().filter_map(of_kind).collect()
}

/// One round, for whoever watches.
fn line(id: &str, round: u32, flow: &Round) -> String {
    let normal =
        Percentiles::of(flow.trips.between(Duration::ZERO, WARM).iter().filter_map(|trip| trip.took));
    let normal = normal.map_or(0.0, |all| all.at_us(0.5));
    let each: Vec<String> = flow
        .cuts
        .iter()
        .map(|done| {
            let cut = cut(&flow.trips, done, Duration::from_secs_f64(normal * 2.0 / 1e6));
            format!(
                "{} {}: {} lost, {} late ({} before), back after {:.0} ms",
                cut.kind, cut.object, cut.during.lost, cut.during.late, cut.before.late, cut.again_ms
            )
        })
        .collect();
    format!("  #{} {id} ({normal:.0} us): {}", round + 1, each.join("; "))
}
