//! Each scenario against those of the same run that it is compared with.

use super::{BULK, id};
use crate::report::{MessageCase, MessageRatio, Report, RoundTrips};
use crate::stats::Spread;

/// A case against its bases, in each repeat that both have.
pub(in super::super) fn ratios(report: &Report, case: &MessageCase) -> Vec<MessageRatio> {
    let load = &case.load;
    let over = |name: &str, word: &str, value: fn(&RoundTrips) -> f64| {
        let base = report.message_case(&id(load, word))?;
        let pairs = case.samples.iter().filter_map(|sample| {
            let base = base.samples.iter().find(|base| base.repeat == sample.repeat)?;
            (value(base) > 0.0).then(|| value(sample) / value(base))
        });
        Some(ratio(name, &base.id, pairs.collect()))
    };
    let bulk = || {
        let base = report.case(&id(load, BULK))?;
        let pairs = case.samples.iter().filter_map(|sample| {
            let base = base.samples.iter().find(|base| base.repeat == sample.repeat)?;
            (base.mbit > 0.0).then_some(sample.bulk.as_ref()?.mbit / base.mbit)
        });
        Some(ratio("bulk", &base.id, pairs.collect()))
    };
    let median = |base| over("median", base, |sample| sample.median_us);
    let p99 = |base| over("p99", base, |sample| sample.p99_us);
    let mut ratios = Vec::new();
    if case.scenario != "idle" {
        ratios.extend([median("idle"), p99("idle")]);
    }
    if case.scenario.starts_with("one") {
        ratios.extend([median("two"), p99("two")]);
    }
    if case.scenario == "two" {
        ratios.extend([median("busy"), p99("busy")]);
    }
    if case.bulk_links > 0 {
        ratios.push(bulk());
    }
    ratios.into_iter().flatten().collect()
}

fn ratio(name: &str, base: &str, pairs: Vec<f64>) -> MessageRatio {
    let spread = Spread::of(pairs.iter().copied());
    MessageRatio { name: name.into(), base: base.into(), pairs, spread }
}
