//! Many ports hear each broadcast, and a switch that forgets a MAC floods: neither may show.

pub(crate) mod even;

use crate::bed::BOND;
use crate::deliver::{self, Kind};
use crate::experiments::prelude::*;
use crate::flow::Count;
use crate::report::{DELIVERIES, FLOODS, Record};
use linkbraid_lab::{PortCount, tool};
use serde_json::json;

const RATE: u32 = 100;
const LINKS: usize = 4;
const KINDS: [Kind; 3] = [Kind::Broadcast, Kind::Multicast, Kind::MulticastIpv6];
const DATAGRAMS: u64 = 10_000;
const QUICK_DATAGRAMS: u64 = 1_000;
/// After this many seconds the switch forgets a MAC it has not heard: short, so that steady state is reached in a
/// short run. Real ones take 300.
const AGEING_S: u64 = 3;
/// Each kind both ways, and three traffics.
const STEPS: u32 = 9;
/// Each traffic of the second half takes this long: longer than any entry lives without being heard.
const STEADY_S: u64 = 3 * AGEING_S;
const QUICK_STEADY_S: u64 = 2 * AGEING_S;

pub(super) fn run(run: &mut Run<'_>) -> Result<(), Error> {
    let links = || vec![LinkSpec::switch(0, Some(RATE)); LINKS];
    let lab = Topology::empty("lab", 1).host(links()).host(links());
    let bed = run.bonded("three", lab.plain_host([LinkSpec::switch(0, Some(RATE))]))?;
    let datagrams = if run.settings.quick { QUICK_DATAGRAMS } else { DATAGRAMS };
    run.plan_steps(STEPS);
    run.plan(even::cases());
    for kind in KINDS {
        for (from, to) in [("a", ["b", "c"]), ("c", ["a", "b"])] {
            let id = format!("{}/from-{from}", kind.name().replace(' ', "-"));
            run.step(&id);
            let counts = deliver::send(&bed, kind, from, &to, datagrams);
            let counts = run.noted(id, counts)?.unwrap_or_default();
            for (to, Count { sent, lost, duplicated, .. }) in to.into_iter().zip(counts) {
                let (kind, once) = (kind.name(), sent - lost - duplicated);
                run.say(&format!(
                    "  {kind} {from} -> {to}: {sent} sent, {once} once, {duplicated} more than once, {lost} never"
                ))?;
                let totals = json!({ "sent": sent, "once": once, "more": duplicated, "never": lost });
                let parameters = json!({ "kind": kind, "from": from, "to": to });
                let record = Record { totals, parameters, ..Record::default() };
                run.report.record(DELIVERIES, &format!("{kind} {from} -> {to}"), record);
            }
        }
    }
    floods(run, &bed)?;
    goals(run);
    drop(bed);
    even::run(run)?;
    Ok(())
}

fn floods(run: &mut Run<'_>, bed: &Bed) -> Result<(), Error> {
    if let Some(switch) = bed.lab().switch(0) {
        let hundredths = AGEING_S * 100;
        tool::ip_batch(switch.name(), &[format!("link set br0 type bridge ageing_time {hundredths}")])?;
    }
    let steady = if run.settings.quick { QUICK_STEADY_S } else { STEADY_S };
    let seconds = u32::try_from(steady).unwrap_or(u32::MAX);
    let half = RATE * u32::try_from(LINKS).unwrap_or(1) / 2;
    for (name, traffic) in [
        ("TCP flow", Some(Traffic::tcp(Cc::Cubic, seconds))),
        ("silence", None),
        ("UDP after silence", Some(Traffic::udp(half, seconds))),
    ] {
        run.step(&format!("flood/{name}"));
        let before = ports(bed)?;
        let done = match &traffic {
            Some(traffic) => run.sample(bed, traffic).map(|sample| sample.command),
            // Nobody sends anything that an application asked for.
            None => run.pause(Duration::from_secs(steady)).map(|()| String::new()),
        };
        let Some(command) = run.noted(format!("flood/{name}"), done)? else { continue };
        let after = ports(bed)?;
        let frames = after.in_frames.saturating_sub(before.in_frames);
        let flooded = after.flooded.saturating_sub(before.flooded);
        run.say(&format!("  {name}: {frames} frames into the switch, {flooded} flooded"))?;
        let totals = json!({ "frames": frames, "flooded": flooded });
        let parameters = json!({ "traffic": name, "command": command, "ageing_s": AGEING_S });
        run.report.record(FLOODS, name, Record { totals, parameters, ..Record::default() });
    }
    Ok(())
}

fn ports(bed: &Bed) -> Result<PortCount, Error> {
    let mut sum = PortCount::default();
    for link in bed.links()? {
        let count = link.port_count()?;
        sum.in_frames += count.in_frames;
        sum.flooded += count.flooded;
    }
    Ok(sum)
}

fn goals(run: &mut Run<'_>) {
    let mut goals = Vec::new();
    for id in run.report.ids(DELIVERIES) {
        let wrong =
            run.report.sum(id, "more").zip(run.report.sum(id, "never")).map(|(more, never)| more + never);
        goals.push(Goal::new(id, "datagrams not exactly once", Bound::AtMost, 0.0, wrong));
    }
    for id in run.report.ids(FLOODS) {
        let flooded = run.report.sum(id, "flooded");
        goals.push(Goal::new(id, "frames flooded by the switch", Bound::AtMost, 0.0, flooded));
    }
    run.goals(goals);
}

pub(super) fn figure(report: &Report) -> Figure {
    let way = |id: &str| format!("{} to {}", report.word(id, "from"), report.word(id, "to"));
    let mut ways: Vec<String> = report.ids(DELIVERIES).into_iter().map(way).collect();
    ways.sort();
    ways.dedup();
    let share = |id: &str, part: &str, of: &str, all: f64| {
        Some(Spread::one(report.sum(id, part)? * all / report.sum(id, of)?.max(1.0)))
    };
    let all = Panel::groups(ways.into_iter().map(|way| (way.clone(), way)));
    let exactly = KINDS.into_iter().fold(all, |panel, kind| {
        panel.bar(kind.name(), |way| {
            let id = format!("{} {}", kind.name(), way.replace(" to ", " -> "));
            share(&id, "once", "sent", 100.0)
        })
    });
    let title = format!("Datagrams over {BOND}, {LINKS} members on one switch");
    let flooded = Panel::groups(report.ids(FLOODS).into_iter().map(|id| (id.to_owned(), id)))
        .bar("flooded", |id| share(id, "flooded", "frames", 1e6));
    let forgets = format!("Flooded by a switch that forgets in {AGEING_S} s");
    let panels = vec![
        exactly.panel(title, "from host to host (c is plain)", "% that came exactly once"),
        flooded.panel(forgets, "traffic", "of a million frames"),
        even::panel(report),
    ];
    Figure { title: "multicast: exactly once, evenly, and no flooding".into(), panels }
}
