//! Many ports hear each broadcast, and a switch that forgets a MAC floods: neither may show.

use super::Experiment;
use crate::bed::{BOND, Bed};
use crate::deliver::{self, Kind};
use crate::plot::{Figure, Panel, Series};
use crate::report::{Bound, Delivery, Flood, Goal, Report};
use crate::run::Run;
use crate::stats::Spread;
use linkbraid_api::Error;
use linkbraid_lab::iperf::{Cc, Traffic};
use linkbraid_lab::{LinkSpec, PortCount, Topology, tool};
use std::time::Duration;

pub(super) const EXPERIMENT: Experiment = Experiment {
    name: "multicast",
    about: "broadcast and multicast exactly once with four members on one switch, and what the switch floods in steady state",
    paper: "ELT, section on broadcast and multicast",
    run,
    figure,
};

const RATE: u32 = 100;
const LINKS: usize = 4;
const KINDS: [Kind; 3] = [Kind::Broadcast, Kind::Multicast, Kind::MulticastIpv6];
/// Datagrams of each kind and way.
const DATAGRAMS: u32 = 10_000;
const QUICK_DATAGRAMS: u32 = 1_000;
/// After this many seconds the switch forgets a MAC it has not heard: short, so that steady state is reached in a
/// short run. Real ones take 300.
const AGEING_S: u64 = 3;
/// Each kind both ways, and three traffics.
const STEPS: u32 = 9;
/// Each traffic of the second half takes this long: longer than any entry lives without being heard.
const STEADY_S: u64 = 3 * AGEING_S;
const QUICK_STEADY_S: u64 = 2 * AGEING_S;

fn run(run: &mut Run<'_>) -> Result<(), Error> {
    let links = || vec![LinkSpec::switch(0, Some(RATE)); LINKS];
    let lab = Topology::empty("lab", 1).host(links()).host(links());
    let bed = run.bonded("three", lab.plain_host([LinkSpec::switch(0, Some(RATE))]))?;
    let datagrams = if run.settings.quick { QUICK_DATAGRAMS } else { DATAGRAMS };
    run.plan_steps(STEPS);
    for kind in KINDS {
        for (from, to) in [("a", ["b", "c"]), ("c", ["a", "b"])] {
            let id = format!("{}/from-{from}", kind.word());
            run.step(&id);
            match deliver::send(&bed, kind, from, &to, datagrams) {
                Ok(deliveries) => {
                    for delivery in deliveries {
                        run.say(&format!(
                            "  {} {from} -> {}: {} sent, {} once, {} more than once, {} never",
                            kind.name(),
                            delivery.to,
                            delivery.sent,
                            delivery.once,
                            delivery.more,
                            delivery.never,
                        ))?;
                        run.delivery(delivery);
                    }
                }
                Err(error) => run.fail(id, error)?,
            }
        }
    }
    floods(run, &bed)?;
    goals(run);
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
        let command = match done {
            Ok(command) => command,
            Err(error) => {
                run.fail(format!("flood/{name}"), error)?;
                continue;
            }
        };
        let after = ports(bed)?;
        let flood = Flood {
            traffic: name.into(),
            command,
            frames: after.in_frames.saturating_sub(before.in_frames),
            flooded: after.flooded.saturating_sub(before.flooded),
            ageing_s: AGEING_S,
        };
        run.say(&format!("  {name}: {} frames into the switch, {} flooded", flood.frames, flood.flooded))?;
        run.flood(flood);
    }
    Ok(())
}

/// All ports of the switch together.
fn ports(bed: &Bed) -> Result<PortCount, Error> {
    let mut sum = PortCount::default();
    for host in bed.lab().hosts() {
        for link in host.links()? {
            let count = link.port_count()?;
            sum.in_frames += count.in_frames;
            sum.flooded += count.flooded;
        }
    }
    Ok(sum)
}

fn goals(run: &mut Run<'_>) {
    let mut goals = Vec::new();
    for delivery in &run.report.deliveries {
        let case = format!("{} {} -> {}", delivery.kind, delivery.from, delivery.to);
        let wrong = (delivery.more + delivery.never) as f64;
        goals.push(Goal::new(&case, "datagrams not exactly once", Bound::AtMost, 0.0, Some(wrong)));
    }
    for flood in &run.report.floods {
        let flooded = Some(flood.flooded as f64);
        goals.push(Goal::new(&flood.traffic, "frames flooded by the switch", Bound::AtMost, 0.0, flooded));
    }
    goals.into_iter().for_each(|goal| run.goal(goal));
}

fn figure(report: &Report) -> Figure {
    let way = |delivery: &Delivery| format!("{} to {}", delivery.from, delivery.to);
    let mut ways: Vec<String> = report.deliveries.iter().map(way).collect();
    ways.sort();
    ways.dedup();
    let once = |kind: Kind| {
        let of_way = |way: &String| {
            let mut all = report.deliveries.iter();
            let found = all.find(|d| d.kind == kind.name() && format!("{} to {}", d.from, d.to) == *way)?;
            Spread::of([found.once as f64 * 100.0 / found.sent.max(1) as f64])
        };
        let points = ways.iter().enumerate().filter_map(|(i, way)| Some((i as f64, of_way(way)?)));
        Series { name: kind.name().into(), points: points.collect() }
    };
    let series = KINDS.map(once).into();
    let traffics: Vec<String> = report.floods.iter().map(|flood| flood.traffic.clone()).collect();
    let flooded = report.floods.iter().enumerate().filter_map(|(i, flood)| {
        let share = flood.flooded as f64 * 1e6 / flood.frames.max(1) as f64;
        Some((i as f64, Spread::of([share])?))
    });
    let panels = vec![
        Panel {
            title: format!("Datagrams over {BOND}, {LINKS} members on one switch"),
            x_label: "from host to host (c is plain)".into(),
            y_label: "% that came exactly once".into(),
            ..Panel::bars(ways, series)
        },
        Panel {
            title: format!("Flooded by a switch that forgets in {AGEING_S} s"),
            x_label: "traffic".into(),
            y_label: "of a million frames".into(),
            ..Panel::bars(traffics, vec![Series { name: "flooded".into(), points: flooded.collect() }])
        },
    ];
    Figure { title: "multicast: exactly once, and no flooding".into(), panels }
}
