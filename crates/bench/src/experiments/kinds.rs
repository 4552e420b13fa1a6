//! Kinds of traffic by policy: what a flow that is not bare TCP gets when it is spread, and on one link.

use crate::experiments::prelude::*;
use crate::flow::{Datagrams, Pace, QuicFlow};
use crate::percentiles::Percentiles;
use crate::planned::{Against, Planned, compare};
use crate::run::CCS;
use linkbraid_api::Policy;
use linkbraid_lab::wait_for;

const RATE: u32 = 100;
const LINKS: usize = 4;
/// A VXLAN device on each host, over what has its address.
const TUNNEL: &str = "vxlan0";
/// The longest time that both ends of a tunnel may take to reach each other with buffers of the bond's length.
const TUNNEL_LIMIT: Duration = Duration::from_secs(10);
/// Of all links, and how much may be sent again in a flow, or taken for lost in 10,000 packets.
const TUNNEL_GOAL: (f64, f64) = (0.95, 20.0);
const QUIC_GOAL: (f64, f64) = (0.85, 50.0);

/// Datagrams that have their own pace: payload bytes, how many at once, and how often.
struct Media {
    name: &'static str,
    bytes: usize,
    burst: u64,
    period: Duration,
}

/// A conversation with pictures, and a picture of much detail: 5 and 60 Mbit/s.
const MEDIA: [Media; 2] = [
    Media { name: "media-5", bytes: 1200, burst: 1, period: Duration::from_micros(1920) },
    Media { name: "media-60", bytes: 1200, burst: 6, period: Duration::from_micros(960) },
];

/// How a flow travels: over the bare link, or over the bond by a policy.
const WAYS: [(&str, Option<Policy>); 3] =
    [("single", None), ("spread", Some(Policy::Spread)), ("flow", Some(Policy::Flow))];

/// The labs: one link and no bond, and four of them.
struct Beds {
    single: Bed,
    bond: Bed,
}

impl Beds {
    /// Has something done where a flow is to travel.
    fn on<T>(&self, policy: Option<Policy>, act: impl FnOnce(&Bed) -> Result<T, Error>) -> Result<T, Error> {
        let Some(policy) = policy else { return act(&self.single) };
        let follow = Bed::following(policy);
        follow(&self.bond, true)?;
        let done = act(&self.bond);
        follow(&self.bond, false)?;
        done
    }
}

fn case_id(kind: &str, way: &str) -> String {
    format!("{kind}/{way}")
}

pub(super) fn run(run: &mut Run<'_>) -> Result<(), Error> {
    let ccs = run.ccs();
    run.plan(WAYS.len() * (3 * ccs.len() + MEDIA.len()));
    let single = run.bare("single", Topology::symmetric(2, 1, Some(RATE)))?;
    let bond = run.bonded("bond", Topology::symmetric(2, LINKS, Some(RATE)))?;
    let mut beds = Beds { single, bond };
    let address = tunnel(&mut beds)?;
    for &(word, cc) in ccs {
        tcp(run, &beds, &format!("tcp-{word}"), &run.tcp(cc))?;
        let tunneled = format!("vxlan-{word}");
        tcp(run, &beds, &tunneled, &run.tcp(cc).to(&address))?;
        let id = case_id(&tunneled, "spread");
        let (share, again) = (run.report.mid_ratio(&id, "single"), run.report.median(&id, "segments_again"));
        let share = share.map(|share| share / LINKS as f64);
        run.judge(&id, "of four links' goodput", Bound::AtLeast, TUNNEL_GOAL.0, share);
        run.judge(&id, "segments sent again", Bound::AtMost, TUNNEL_GOAL.1, again);
        quic(run, &beds, word, cc)?;
    }
    MEDIA.iter().try_for_each(|media| self::media(run, &beds, media))
}

/// A tunnel between the hosts of each lab; the far end's address, which is the same in both.
fn tunnel(beds: &mut Beds) -> Result<String, Error> {
    let address = |number: usize| format!("198.19.255.{}", number + 1);
    for (bed, below) in [(&mut beds.single, "eth0"), (&mut beds.bond, crate::bed::BOND)] {
        for (name, other) in [("a", "b"), ("b", "a")] {
            let (host, other) = (bed.host(name)?, bed.host(other)?);
            let (near, far, own) = (host.ipv4().to_owned(), other.ipv4().to_owned(), address(host.index()));
            for line in [
                format!(
                    "ip link add {TUNNEL} type vxlan id 1 dstport 4789 local {near} remote {far} dev {below}"
                ),
                format!("ip address add {own}/24 dev {TUNNEL}"),
                format!("ip link set {TUNNEL} up"),
            ] {
                bed.set_up(name, &line)?;
            }
        }
        for host in [bed.host("a")?, bed.host("b")?] {
            wait_for(TUNNEL_LIMIT, &format!("'{TUNNEL}' to have buffers as long as '{below}'"), || {
                let lengths = (host.gso_max_size(TUNNEL), host.gso_max_size(below));
                if matches!(&lengths, (Ok(own), Ok(wanted)) if own == wanted) {
                    Ok(())
                } else {
                    Err(format!("{lengths:?}"))
                }
            })?;
        }
        bed.host("a")?.wait_ping(&address(1), TUNNEL_LIMIT)?;
    }
    Ok(address(1))
}

fn tcp(run: &mut Run<'_>, beds: &Beds, kind: &str, traffic: &Traffic) -> Result<(), Error> {
    let base = case_id(kind, "single");
    let choices: Vec<_> = WAYS.iter().filter_map(|(way, policy)| Some((*way, (*policy)?))).collect();
    let around: Vec<_> = choices.iter().map(|(_, policy)| Bed::following(*policy)).collect();
    let mut cases = vec![Planned::new(&base, &beds.single, traffic.clone())];
    cases.extend(choices.iter().zip(&around).map(|((way, policy), around)| Planned {
        around: Some(around),
        condition: policy.word(),
        ..Planned::new(case_id(kind, way), &beds.bond, traffic.clone()).against(against(&base))
    }));
    run.interleave(&cases)
}

fn against(base: &str) -> Against {
    Against::mbit("single", [base.to_owned()], LINKS as f64)
}

fn quic(run: &mut Run<'_>, beds: &Beds, word: &str, cc: Cc) -> Result<(), Error> {
    let kind = format!("quic-{word}");
    for turn in 0..run.settings.repeat {
        for (way, policy) in WAYS {
            let id = case_id(&kind, way);
            if !run.wants(&id) {
                continue;
            }
            run.step(&id);
            let [from, time] =
                [run.settings.omit, run.settings.seconds].map(|s| Duration::from_secs(s.into()));
            let flow = beds.on(policy, |bed| {
                let flow = QuicFlow::start(bed.host("a")?, bed.host("b")?, cc)?;
                run.pause((from + time).saturating_sub(flow.now()))?;
                flow.stop()
            });
            let Some(record) = run.noted(&id, flow)? else { continue };
            let mbit = record.progress.between(from, from + time) as f64 * 8.0 / time.as_secs_f64() / 1e6;
            let lost = record.packets.lost as f64 * 1e4 / record.packets.sent.max(1) as f64;
            let typed = format!("quinn, one stream, {word}");
            run.note(
                &id,
                &typed,
                turn,
                &[("mbit", "Mbit/s", mbit), ("lost_per_10k", "of 10,000 taken for lost", lost)],
            )?;
        }
    }
    // One link with QUIC itself loses what its queue has no room for; with TCP it carries what it can.
    let base = case_id(&format!("tcp-{word}"), "single");
    for (way, _) in &WAYS[1..] {
        compare(&mut run.report, &case_id(&kind, way), &against(&base));
    }
    let id = case_id(&kind, "spread");
    let share = run.report.mid_ratio(&id, "single").map(|share| share / LINKS as f64);
    let lost = run.report.median(&id, "lost_per_10k");
    run.judge(&id, "of four links' goodput with TCP", Bound::AtLeast, QUIC_GOAL.0, share);
    run.judge(&id, "of 10,000 packets taken for lost", Bound::AtMost, QUIC_GOAL.1, lost);
    Ok(())
}

fn media(run: &mut Run<'_>, beds: &Beds, media: &Media) -> Result<(), Error> {
    for turn in 0..run.settings.repeat {
        for (way, policy) in WAYS {
            let id = case_id(media.name, way);
            if !run.wants(&id) {
                continue;
            }
            run.step(&id);
            let time = Duration::from_secs(run.settings.seconds.into());
            let record = beds.on(policy, |bed| {
                let (a, b) = (bed.host("a")?, bed.host("b")?);
                let pace = Pace { bytes: media.bytes, ..Pace::new(media.burst, media.period) };
                let flow = Datagrams::between([(a, a.ipv4()), (b, b.ipv4())], pace)?;
                run.pause(time)?;
                flow.stop()
            });
            let Some(record) = run.noted(&id, record)? else { continue };
            let sent = record.way(0, 1);
            let count = sent.count(|_| true);
            let late = Percentiles::of(sent.variations(Duration::ZERO..time))?.at_us(0.99);
            let typed = format!(
                "{} datagrams of {} bytes each {} us",
                media.burst,
                media.bytes,
                media.period.as_micros()
            );
            let values = [
                ("lost", "datagrams", count.lost as f64),
                ("out_of_order", "datagrams", count.reordered as f64),
                ("variation_p99_us", "us", late),
            ];
            run.note(&id, &typed, turn, &values)?;
        }
    }
    let id = case_id(media.name, "spread");
    let lost = run.report.spread(&id, "lost").map(|lost| lost.max);
    run.judge(&id, "datagrams lost", Bound::AtMost, 0.0, lost);
    Ok(())
}

pub(super) fn figure(report: &Report) -> Figure {
    let named = |kinds: &[&str]| -> Vec<String> {
        CCS.iter().flat_map(|(word, _)| kinds.iter().map(move |kind| format!("{kind}-{word}"))).collect()
    };
    let panel = |metric: &'static str, title: &str, unit: &str, kinds: &[String]| {
        let mut panel = Panel::groups(kinds.iter().map(|kind| (kind.clone(), kind.clone())));
        for (way, _) in WAYS {
            panel = panel.bar(way, move |kind: String| report.spread(&case_id(&kind, way), metric));
        }
        panel.panel(format!("{title}, {LINKS} links of {RATE} Mbit/s"), "kind of traffic", unit)
    };
    let media = MEDIA.map(|media| media.name.to_owned());
    Figure {
        title: "kinds: traffic that is not bare TCP".into(),
        panels: vec![
            panel("mbit", "Goodput of one flow", "Mbit/s", &named(&["tcp", "vxlan", "quic"])),
            panel("again_per_10k", "Segments sent again", "of 10,000", &named(&["tcp", "vxlan"])),
            panel("lost_per_10k", "Packets of QUIC taken for lost", "of 10,000", &named(&["quic"])),
            panel("variation_p99_us", "99th percentile of delay variation", "us", &media),
        ],
    }
}
