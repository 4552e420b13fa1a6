//! Round trips beside bulk traffic: on an idle link, in one channel with it, and in a channel of their own.

mod measure;

pub(super) use measure::settings;

use super::record::MessageTrace;
use super::{DEDICATED, LINKS, Load, PRIORITY, RATE, classed, loads, topology};
use crate::bed::Bed;
use crate::flow::Messages;
use crate::percentiles::Percentiles;
use crate::planned::Planned;
use crate::report::{MESSAGES, Report};
use crate::run::Run;
use crate::sample::Sample;
use crate::stats::Spread;
use linkbraid_api::Error;
use linkbraid_lab::Order;
use measure::Found;
use serde_json::{Value, json};

/// Which lab.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Place {
    /// One link without linkbraid.
    Bare,
    /// A bond without classes.
    One,
    /// A bond with a class for messages.
    Two,
}

/// One way to send messages.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct Scenario {
    pub word: &'static str,
    pub title: &'static str,
    place: Place,
    priority: i32,
    order: Order,
    /// Links that the bulk traffic beside it may use.
    bulk_links: usize,
    /// Where that traffic is.
    bulk: Place,
}

const fn scenario(word: &'static str, title: &'static str, place: Place, bulk_links: usize) -> Scenario {
    Scenario { word, title, place, priority: PRIORITY, order: Order::Fifo, bulk_links, bulk: place }
}

/// The bare link for reference, also while another lab has the bulk traffic of `two`, which takes CPU time and nothing of
/// the link; the same link idle; the papers' three.
pub(super) const SCENARIOS: [Scenario; 6] = [
    scenario("bare", "bare link, idle", Place::Bare, 0),
    Scenario { bulk: Place::Two, ..scenario("busy", "bare link, bulk elsewhere", Place::Bare, LINKS - 1) },
    scenario("idle", "two channels, idle", Place::Two, 0),
    Scenario { priority: 0, ..scenario("one-0", "one channel, priority 0", Place::One, LINKS) },
    Scenario { order: Order::Priority, ..scenario("one-6", "one channel, priority 6", Place::One, LINKS) },
    scenario("two", "two channels", Place::Two, LINKS - 1),
];

/// The bulk traffic alone on one bare link.
pub(super) const BULK: &str = "bulk";

pub(super) fn id(load: &str, word: &str) -> String {
    format!("{load}/{word}")
}

/// What has been measured of one case.
struct Measured {
    id: String,
    /// How it was set up.
    record: Value,
    samples: Vec<Value>,
    all: Percentiles,
    traces: Vec<MessageTrace>,
}

/// The labs by their place; one that could not be made is none.
type Beds = [Option<Bed>; 3];

pub(super) fn run(run: &mut Run<'_>, messages: Messages) -> Result<(), Error> {
    if !loads(run).iter().any(|load| wanted(run, *load)) {
        return Ok(());
    }
    let bare = run.bare("bare", topology(1))?;
    let one = run.bonded("one", topology(LINKS))?;
    let beds = [Some(bare), Some(one), classed(run, "two", DEDICATED)?];
    for load in loads(run).iter().copied().filter(|load| wanted(run, *load)).collect::<Vec<_>>() {
        one_load(run, &beds, load, messages)?;
    }
    Ok(())
}

fn wanted(run: &Run<'_>, load: Load) -> bool {
    SCENARIOS.iter().map(|scenario| scenario.word).chain([BULK]).any(|word| run.wants(&id(load.word, word)))
}

/// All scenarios in turns, so that whatever else the machine does meets them alike.
fn one_load(run: &mut Run<'_>, beds: &Beds, load: Load, messages: Messages) -> Result<(), Error> {
    let [Some(bare), ..] = beds else { return Ok(()) };
    let mut measured: Vec<Measured> = Vec::new();
    let mut bulk: Vec<Sample> = Vec::new();
    for repeat in 0..run.settings.repeat {
        run.step(&id(load.word, BULK));
        let sample = run.sample(bare, &load.bulk(run, 1));
        let sample = run.noted(format!("{} #{}", id(load.word, BULK), repeat + 1), sample)?;
        bulk.extend(sample.map(|sample| Sample { repeat, ..sample }));
        for scenario in SCENARIOS {
            let [Some(bed), Some(bulk_bed)] =
                [scenario.place, scenario.bulk].map(|place| beds[place as usize].as_ref())
            else {
                continue;
            };
            run.step(&id(load.word, scenario.word));
            match measure::take(run, [bed, bulk_bed], load, scenario, messages) {
                Ok(found) => {
                    let line = line(&id(load.word, scenario.word), repeat, &found.sample);
                    take_in(&mut measured, bed, load, scenario, repeat, found)?;
                    run.say(&line)?;
                }
                Err(error) => {
                    run.fail(format!("{} #{}", id(load.word, scenario.word), repeat + 1), error)?;
                }
            }
        }
    }
    if !bulk.is_empty() {
        let parameters = Planned::new("", bare, load.bulk(run, 1)).parameters();
        run.samples(&id(load.word, BULK), bare, &parameters, &bulk)?;
    }
    for one in measured {
        run.report.record(MESSAGES, &finish(one))?;
    }
    compare(&mut run.report, load.word);
    Ok(())
}

/// Puts each scenario beside those of the same run that it is compared with.
pub(super) fn compare(report: &mut Report, load: &str) {
    for scenario in SCENARIOS {
        let own = id(load, scenario.word);
        let bases = [
            (scenario.word != "idle", "idle"),
            (scenario.word.starts_with("one"), "two"),
            (scenario.word == "two", "busy"),
        ];
        for base in bases.into_iter().filter(|(is, _)| *is).map(|(_, word)| id(load, word)) {
            for metric in ["median_us", "p99_us"] {
                report.compare((&own, metric), &base, &[(&base, metric)]);
            }
        }
        let base = id(load, BULK);
        report.compare((&own, "bulk.mbit"), &base, &[(&base, "mbit")]);
    }
}

fn take_in(
    measured: &mut Vec<Measured>,
    bed: &Bed,
    load: Load,
    scenario: Scenario,
    repeat: u32,
    Found { settings, mut sample, percentiles, trace, queue }: Found,
) -> Result<(), Error> {
    let id = id(load.word, scenario.word);
    let index = match measured.iter().position(|one| one.id == id) {
        Some(index) => index,
        None => {
            let record = json!({
                "lab": bed.name(),
                "scenario": scenario.word,
                "load": load.word,
                "members": if bed.is_bonded("a") { LINKS } else { 0 },
                "bulk_links": scenario.bulk_links,
                "rate_mbit": RATE,
                "messages": settings,
                "queue": format!("tbf, {queue}"),
            });
            let (samples, traces) = (Vec::new(), Vec::new());
            measured.push(Measured { id, record, samples, all: Percentiles::new()?, traces });
            measured.len() - 1
        }
    };
    let one = &mut measured[index];
    one.all.join(&percentiles)?;
    sample["repeat"] = repeat.into();
    one.samples.push(sample);
    one.traces.push(trace);
    Ok(())
}

/// The record of a case, with the trace of the typical sample.
fn finish(Measured { id, mut record, samples, all, traces }: Measured) -> Value {
    let medians: Vec<f64> = samples.iter().filter_map(|sample| sample["median_us"].as_f64()).collect();
    let middle = Spread::of(medians.iter().copied()).map_or(0.0, |spread| spread.median);
    let distance = |place: &usize| (medians[*place] - middle).abs();
    let typical = (0..medians.len()).min_by(|x, y| distance(x).total_cmp(&distance(y)));
    record["id"] = id.into();
    record["trace"] = json!(typical.map(|typical| &traces[typical]));
    record["samples"] = json!(samples);
    record["histogram"] = json!(all.bins());
    record
}

/// One measurement, for whoever watches.
fn line(id: &str, repeat: u32, sample: &Value) -> String {
    let of = |key: &str| sample[key].as_f64().unwrap_or(0.0);
    let bulk = sample["bulk"]["mbit"].as_f64();
    let bulk = bulk.map_or_else(String::new, |mbit| format!("  bulk {mbit:.1} Mbit/s"));
    let lost = if of("lost") > 0.0 { format!("  {} lost", of("lost")) } else { String::new() };
    format!(
        "  #{} {id:<10} {:>9.0} us, 99 % {:>9.0} us, max {:>9.0} us of {}{lost}{bulk}  CPU {:.0} %",
        repeat + 1,
        of("median_us"),
        of("p99_us"),
        of("max_us"),
        of("sent"),
        of("cpu_share") * 100.0,
    )
}
