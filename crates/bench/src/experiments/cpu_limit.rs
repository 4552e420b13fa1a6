//! What two links are worth to a host whose CPU is slow: Table 1 of BondingPlus.

pub(crate) mod guest;

use crate::experiments::prelude::*;
use crate::planned::{Against, Planned};
use crate::run::cpu_limited;
use crate::share::{Share, THROTTLED};
use linkbraid_lab::Options;

/// The rate of a link in Mbit/s: at the least share the CPU is the limit, at the largest the links are.
const RATE: u32 = 250;
/// Thousandths of one core; `None` is a host without a limit. They begin so low since a throttled iperf3 has little to do:
/// on a fast core 5 % fill both links, most of the kernel's work being charged to nobody (softirq).
const SHARES: [Option<u32>; 8] =
    [Some(5), Some(10), Some(20), Some(30), Some(50), Some(200), Some(1000), None];
const QUICK_SHARES: [Option<u32>; 3] = [Some(10), Some(30), None];
const KINDS: [&str; 2] = ["bare", "two"];

/// Two NICs of the paper's fastest machine over what one NIC carried (180 of 94.05 Mbit/s, Tables 1 and 2).
const PAPER_GAIN: f64 = 1.914;
/// Of what the bare link carries with the same share of the CPU, what two links must carry at least.
const SAME_GOAL: f64 = 0.9;

fn word(share: Option<u32>) -> String {
    share.map_or_else(|| "full".to_owned(), |permille| format!("{}%", percent(permille)))
}

fn percent(permille: u32) -> f64 {
    f64::from(permille) / 10.0
}

fn id(kind: &str, share: Option<u32>) -> String {
    format!("{kind}/{}", word(share))
}

pub(super) fn run(run: &mut Run<'_>) -> Result<(), Error> {
    run.plan_steps(guest::steps(run));
    of_processes(run)?;
    guest::run(run)
}

/// Where what the host's processes do is limited.
fn of_processes(run: &mut Run<'_>) -> Result<(), Error> {
    let share = match Share::make() {
        Ok(share) => share,
        Err(error) => {
            KINDS.iter().for_each(|kind| run.skip_for(*kind, &error));
            return Ok(());
        }
    };
    let shares = if run.settings.quick { &QUICK_SHARES[..] } else { &SHARES[..] };
    run.plan(KINDS.len() * shares.len());
    // A NIC that leaves all work to the CPU: no offloads.
    let lab = |links| {
        let topology = Topology::symmetric(2, links, Some(RATE));
        Topology { options: Options { segment: true, ..topology.options }, ..topology }
    };
    let bare = run.bare(KINDS[0], lab(1))?;
    let two = run.bonded(KINDS[1], lab(2))?;
    // All of the host's processes: what sends, and the daemon.
    share.add(two.daemon_id("a")?)?;
    run.report.labs.iter_mut().for_each(|lab| lab.commands.extend(share.commands()));
    measure(run, shares, &share, [&bare, &two])?;
    goals(run, shares);
    Ok(())
}

fn measure(run: &mut Run<'_>, shares: &[Option<u32>], share: &Share, beds: [&Bed; 2]) -> Result<(), Error> {
    let all = KINDS.into_iter().zip(beds).flat_map(|kind| shares.iter().map(move |share| (kind, *share)));
    let mut cases: Vec<Planned<'_>> = Vec::new();
    for ((kind, bed), permille) in all {
        let mut case = Planned::new(id(kind, permille), bed, run.tcp(Cc::Cubic));
        case.share = Some((share, permille));
        case.condition =
            permille.map_or_else(String::new, |p| format!("host 'a' has {} % of a core", percent(p)));
        let full = id(KINDS[0], None);
        if case.id != full {
            case =
                case.against(Against::mbit("full", [full], bed.lab().topology().hosts[0].links.len() as f64));
        }
        if kind == KINDS[1] {
            case = case.against(Against::mbit("same", [id(KINDS[0], permille)], 2.0));
        }
        cases.push(case);
    }
    // Turns go from share to share, the bare link next to the bond.
    cases.sort_by_key(|case| {
        shares.iter().position(|permille| case.id.ends_with(&format!("/{}", word(*permille))))
    });
    let done = run.interleave(&cases);
    share.limit(None)?;
    done
}

fn goals(run: &mut Run<'_>, shares: &[Option<u32>]) {
    let [_, two] = KINDS;
    for permille in shares {
        let id = id(two, *permille);
        let [full, same] = ["full", "same"].map(|name| run.report.mid_ratio(&id, name));
        let busy = cpu_limited(&run.report, &id);
        if permille.is_none() {
            let what = "times one bare link, two links with a whole CPU (the paper's fastest machine)";
            run.goal(Goal::new(&id, what, Bound::AtLeast, PAPER_GAIN, full).unless(busy.clone()));
        }
        let what = "of one bare link with the same share of the CPU, two links";
        run.goal(Goal::new(&id, what, Bound::AtLeast, SAME_GOAL, same).unless(busy));
    }
}

pub(super) fn figure(report: &Report) -> Figure {
    let measured =
        |share: &Option<u32>| KINDS.iter().any(|kind| report.measure(&id(kind, *share), "mbit").is_some());
    let shares: Vec<Option<u32>> = SHARES.into_iter().filter(measured).collect();
    let pair = |value: &dyn Fn(&str) -> Option<Spread>| {
        Panel::groups(shares.iter().map(|share| (word(*share), *share)))
            .bar("one bare link", |share| value(&id(KINDS[0], share)))
            .bar("two links, bonded", |share| value(&id(KINDS[1], share)))
    };
    let paper = format!("the paper, its fastest machine: {PAPER_GAIN}");
    let (goodput, over) = (pair(&|id| report.spread(id, "mbit")), pair(&|id| report.ratio(id, "full")));
    let throttled = pair(&|id| report.spread(id, THROTTLED));
    let share = "share of one core that the sender's processes may use";
    let panels = vec![
        goodput.panel(format!("Goodput, links of {RATE} Mbit/s"), share, "Mbit/s"),
        over.flat(paper, PAPER_GAIN).panel("Over the bare link of a host without a limit", share, "ratio"),
        throttled.panel("Periods in which the quota was used up", share, "of all"),
        guest::panel(report),
    ];
    Figure { title: "cpu-limit: two links and a slow CPU".into(), panels }
}
