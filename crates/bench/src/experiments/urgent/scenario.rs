//! Round trips beside bulk traffic: on an idle link, in one channel with it, and in a channel of their own.

mod measure;
mod ratios;

pub(super) use measure::settings;
pub(super) use ratios::ratios;

use super::{DEDICATED, LINKS, Load, PRIORITY, RATE, classed, loads, topology};
use crate::bed::Bed;
use crate::flow::Messages;
use crate::percentiles::Percentiles;
use crate::planned::Planned;
use crate::report::{Case, Medians, MessageCase, MessageMedians, MessageTrace, RoundTrips};
use crate::run::Run;
use crate::sample::Sample;
use linkbraid_api::Error;
use linkbraid_lab::Order;
use measure::Found;

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
    case: MessageCase,
    all: Percentiles,
    traces: Vec<MessageTrace>,
}

struct Beds {
    bare: Bed,
    one: Bed,
    two: Option<Bed>,
}

impl Beds {
    fn get(&self, place: Place) -> Option<&Bed> {
        match place {
            Place::Bare => Some(&self.bare),
            Place::One => Some(&self.one),
            Place::Two => self.two.as_ref(),
        }
    }
}

pub(super) fn run(run: &mut Run<'_>, messages: Messages) -> Result<(), Error> {
    if !loads(run).iter().any(|load| wanted(run, *load)) {
        return Ok(());
    }
    let beds = Beds {
        bare: run.bare("bare", topology(1))?,
        one: run.bonded("one", topology(LINKS))?,
        two: classed(run, "two", DEDICATED)?,
    };
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
    let mut measured: Vec<Measured> = Vec::new();
    let mut bulk: Vec<Sample> = Vec::new();
    for repeat in 0..run.settings.repeat {
        run.step(&id(load.word, BULK));
        match run.sample(&beds.bare, &load.bulk(run, 1)) {
            Ok(sample) => bulk.push(Sample { repeat, ..sample }),
            Err(error) => run.fail(format!("{} #{}", id(load.word, BULK), repeat + 1), error)?,
        }
        for scenario in SCENARIOS {
            let (Some(bed), Some(bulk_bed)) = (beds.get(scenario.place), beds.get(scenario.bulk)) else {
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
        let parameters = Planned::new("", &beds.bare, load.bulk(run, 1)).parameters();
        let medians = Medians::of(&bulk, &parameters.rate_mbit);
        let (id, lab) = (id(load.word, BULK), beds.bare.name().to_owned());
        run.report.cases.push(Case { id, lab, parameters, medians, samples: bulk, ratios: Vec::new() });
    }
    let first = run.report.messages.len();
    run.report.messages.extend(measured.into_iter().map(finish));
    for index in first..run.report.messages.len() {
        run.report.messages[index].ratios = ratios(&run.report, &run.report.messages[index]);
    }
    Ok(())
}

fn take_in(
    measured: &mut Vec<Measured>,
    bed: &Bed,
    load: Load,
    scenario: Scenario,
    repeat: u32,
    Found { settings, sample, percentiles, trace, queue }: Found,
) -> Result<(), Error> {
    let id = id(load.word, scenario.word);
    let index = match measured.iter().position(|one| one.case.id == id) {
        Some(index) => index,
        None => {
            let bonded = if bed.is_bonded("a") { LINKS } else { 0 };
            let number = |n: usize| u32::try_from(n).unwrap_or(u32::MAX);
            let case = MessageCase {
                id,
                lab: bed.name().into(),
                scenario: scenario.word.into(),
                load: load.word.into(),
                members: number(bonded),
                bulk_links: number(scenario.bulk_links),
                rate_mbit: RATE,
                messages: settings,
                queue: format!("tbf, {queue}"),
                samples: Vec::new(),
                medians: MessageMedians::default(),
                ratios: Vec::new(),
                histogram: Vec::new(),
                trace: MessageTrace::default(),
            };
            measured.push(Measured { case, all: Percentiles::new()?, traces: Vec::new() });
            measured.len() - 1
        }
    };
    let one = &mut measured[index];
    one.all.join(&percentiles)?;
    one.case.samples.push(RoundTrips { repeat, ..sample });
    one.traces.push(trace);
    Ok(())
}

fn finish(measured: Measured) -> MessageCase {
    let Measured { case, all, mut traces } = measured;
    let medians = MessageMedians::of(&case.samples);
    let middle = medians.median_us.map_or(0.0, |spread| spread.median);
    let distance = |sample: &RoundTrips| (sample.median_us - middle).abs();
    let typical = (0..case.samples.len())
        .min_by(|x, y| distance(&case.samples[*x]).total_cmp(&distance(&case.samples[*y])))
        .unwrap_or(0);
    MessageCase { medians, histogram: all.bins(), trace: traces.swap_remove(typical), ..case }
}

/// One measurement, for whoever watches.
fn line(id: &str, repeat: u32, sample: &RoundTrips) -> String {
    let bulk =
        sample.bulk.as_ref().map_or_else(String::new, |bulk| format!("  bulk {:.1} Mbit/s", bulk.mbit));
    let lost = if sample.lost > 0 { format!("  {} lost", sample.lost) } else { String::new() };
    format!(
        "  #{} {id:<10} {:>9.0} us, 99 % {:>9.0} us, max {:>9.0} us of {}{lost}{bulk}  CPU {:.0} %",
        repeat + 1,
        sample.median_us,
        sample.p99_us,
        sample.max_us,
        sample.sent,
        sample.cpu_share * 100.0,
    )
}
