//! Records for `class show` and `stats --latency`.

use crate::{
    io::{error::About as _, group::Groups, state::SavedClass},
    world::{bond::Bond, member::Member},
};
use linkbraid_api::{ClassRecord, Error, LatencyRecord, QueueRecord, Records, RuleRecord};
use linkbraid_dataplane::{Count, Latency, Stage};
use linkbraid_proto::{Time, host::DEFAULT_CLASS};
use std::time::Duration;

/// `class show`
pub(crate) fn classes(bonds: &[&Bond], _now: Time) -> Result<Records, Error> {
    let mut records = Vec::new();
    for bond in bonds.iter().filter(|bond| !bond.saved.classes.is_empty()) {
        let what = "cannot read counters";
        let counts = bond.path.rule_counts().about(&bond.saved.name, what)?;
        let driven = bond.driven();
        let order: Vec<(u8, Option<usize>)> = bond.rules.in_order(&bond.saved.classes);
        for class in &bond.saved.classes {
            let rule = |(at, of): (usize, &(u8, Option<usize>))| {
                let matches = match of {
                    (number, _) if *number != class.number => return None,
                    (_, Some(place)) => class.rules.get(*place)?.to_string(),
                    (_, None) => format!("cgroup={}", Groups::path(&bond.rules.group, &class.name)),
                };
                // None while the control group that it names is not there.
                let written = bond.rules.place(class.number, of.1).and_then(|at| counts.get(at));
                let count = written.copied().unwrap_or_default();
                Some(RuleRecord { number: at as u32 + 1, matches, frames: count.frames, bytes: count.bytes })
            };
            let own = driven.members.iter().filter(|member| member.class == class.number);
            let sent: Count = bond.path.class_counts(class.number).about(&bond.saved.name, what)?;
            let over = bond.path.class_over(class.number).about(&bond.saved.name, what)?;
            // The members that its frames to plain hosts leave by.
            let uses = driven.host.own_side().plain_lanes(None, class.number);
            records.push(ClassRecord {
                bond: bond.saved.name.to_string(),
                name: class.name.to_string(),
                members: own.map(|member| member.name.clone()).collect(),
                uses: uses.lanes.iter().map(|lane| driven.name_of(lane.slot)).collect(),
                settings: class.settings,
                rules: order.iter().enumerate().filter_map(rule).collect(),
                tx_frames: sent.frames,
                tx_bytes: sent.bytes,
                tx_over: over.frames,
                queues: queues(bond, &driven.members, class),
            });
        }
    }
    Ok(Records::Classes(records))
}

/// The queues of members, for a class that has precedence in them. Those of members of other classes are none that it waits in.
fn queues(bond: &Bond, members: &[Member], class: &SavedClass) -> Vec<QueueRecord> {
    let is_its = |member: &&Member| member.class == DEFAULT_CLASS || member.class == class.number;
    let record = |member: &Member| {
        let queue = bond.queue(member.ifindex)?;
        Some(QueueRecord { member: member.name.clone(), kind: queue.kind.clone(), ours: queue.is_ours() })
    };
    members.iter().filter(|_| class.has_precedence()).filter(is_its).filter_map(record).collect()
}

/// `stats --latency`
pub(crate) fn latency(bonds: &[&Bond], _now: Time) -> Result<Records, Error> {
    let mut records = Vec::new();
    for bond in bonds {
        let name = &bond.saved.name;
        let Some(meter) = &bond.latency else {
            return Err(Error::new(name, "no latency is measured", "it is off")
                .hint(format!("linkbraid bond set {name} --latency on")));
        };
        let rows = meter.read().about(name, "cannot read the latency")?;
        records.extend(rows.iter().filter_map(|row| one_latency(bond, row)));
    }
    Ok(Records::Latency(records))
}

/// None for a class that is gone.
fn one_latency(bond: &Bond, row: &Latency) -> Option<LatencyRecord> {
    Some(LatencyRecord {
        bond: bond.saved.name.to_string(),
        class: if row.class == DEFAULT_CLASS {
            "rest".to_owned()
        } else {
            bond.class_name(row.class)?.into()
        },
        stage: match row.stage {
            Stage::Application => "application".to_owned(),
            Stage::Driver => "driver".to_owned(),
            Stage::Total => "total".to_owned(),
        },
        count: row.count,
        min_ns: nanoseconds(row.min),
        mean_ns: nanoseconds(row.mean),
        stddev_ns: nanoseconds(row.stddev),
        p50_ns: nanoseconds(row.p50),
        p90_ns: nanoseconds(row.p90),
        p99_ns: nanoseconds(row.p99),
        p999_ns: nanoseconds(row.p999),
        max_ns: nanoseconds(row.max),
    })
}

fn nanoseconds(duration: Duration) -> u64 {
    u64::try_from(duration.as_nanos()).unwrap_or(u64::MAX)
}
