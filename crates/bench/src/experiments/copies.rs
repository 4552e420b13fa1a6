//! Files that are copied at once, some of them from another host: Fig. 6 and Table 2 of the ELT paper.

mod testbed;

use super::beside_plain;
use crate::experiments::prelude::*;
use crate::run::cpu_limited;
use linkbraid_lab::serve::Service;
use testbed::{Copied, Server, Testbed, installed};

/// Copies at once, and how many of them may be remote.
const COPIES: usize = 8;
const QUICK_REMOTE: [usize; 2] = [0, 8];
const SIZES: [usize; 5] = [1, 2, 4, 6, 8];
const QUICK_SIZES: [usize; 2] = [1, 8];
/// What serves the files of all sizes; file servers serve the largest ones.
const ALL_SIZES: Service = Service::Http;
const FILE_SERVERS: [Service; 2] = [Service::Smb, Service::Nfs];
/// The labs, by the number of the server's links.
const KINDS: [&str; 2] = ["one", "two"];
/// The metric: bytes of all files until the last is on the disk.
const METRIC: &str = "copy_mbyte";
const CPU: &str = "cpu_share";

/// Local copies were this many times as fast as those over one link: a rate that drops by 67 to 71 % (the middle of them).
const PAPER_LOCAL: f64 = 3.2;
/// What two links gain at least where all copies are remote and files are large: two links cannot carry more than twice
/// what one does, and the copies begin one by one.
const GAIN: f64 = 1.8;
/// What the links may be set to, Mbit/s: where a disk is faster than the paper's relation allows, the machine's
/// CPU would be what limits a link.
const RATES: std::ops::RangeInclusive<u32> = 20..=300;
/// The plain host's link, as many times the server's.
const FAST: u32 = 10;
/// How often local copies are timed before the links' rate is chosen.
const LOOKS: usize = 5;

/// What is measured at a time.
#[derive(Debug, Clone, Copy)]
struct Case {
    service: Service,
    kind: &'static str,
    size: usize,
    remote: usize,
}

impl Case {
    fn id(self) -> String {
        let Self { service, kind, size, remote } = self;
        let by = if service == ALL_SIZES { String::new() } else { format!("-{service:?}").to_lowercase() };
        format!("copies/{kind}-{remote}/{size}MB{by}")
    }
}

/// The sizes of files that a server serves, of these.
fn sizes_of(service: Service, sizes: &[usize]) -> &[usize] {
    if service == ALL_SIZES { sizes } else { &sizes[sizes.len() - 1..] }
}

pub(super) fn run(run: &mut Run<'_>) -> Result<(), Error> {
    let testbed = match installed(ALL_SIZES).and_then(|()| Testbed::make(&SIZES)) {
        Ok(testbed) => testbed,
        Err(error) => {
            run.skip_for(run.report.experiment.clone(), &error);
            return Ok(());
        }
    };
    let mut services = vec![ALL_SIZES];
    for service in FILE_SERVERS {
        match installed(service) {
            Ok(()) => services.push(service),
            Err(error) => run.skip_for(format!("{service:?}").to_lowercase(), &error),
        }
    }
    let quick = run.settings.quick;
    let sizes = if quick { &QUICK_SIZES[..] } else { &SIZES[..] };
    let remotes: Vec<usize> = if quick { QUICK_REMOTE.to_vec() } else { (0..=COPIES).collect() };
    let rate = rate(run, &testbed)?;
    let lab = |links| beside_plain(links, rate, rate * FAST);
    let beds = [run.bare(KINDS[0], lab(1))?, run.bonded(KINDS[1], lab(2))?];
    for lab in &mut run.report.labs {
        lab.commands.extend(testbed.commands());
    }
    let cases = services.iter().map(|service| sizes_of(*service, sizes).len()).sum::<usize>();
    run.plan(KINDS.len() * cases * remotes.len());
    for service in services {
        let servers = beds.iter().map(|bed| testbed.serve(bed, service)).collect::<Result<Vec<_>, _>>()?;
        for turn in 0..run.settings.repeat {
            copies(run, &testbed, (service, &servers), sizes_of(service, sizes), (&remotes, turn))?;
        }
        put_beside(run, service, sizes_of(service, sizes), &remotes);
        judge(run, service, sizes);
    }
    Ok(())
}

/// One turn of all copies from a server.
fn copies(
    run: &mut Run<'_>,
    testbed: &Testbed,
    (service, servers): (Service, &[Server<'_>]),
    sizes: &[usize],
    (remotes, turn): (&[usize], u32),
) -> Result<(), Error> {
    for size in sizes {
        for remote in remotes {
            for (kind, server) in KINDS.into_iter().zip(servers) {
                let case = Case { service, kind, size: *size, remote: *remote };
                if wanted(run, case, remotes) {
                    measure(run, &case.id(), turn, || testbed.copy(server, *size, *remote))?;
                }
            }
        }
    }
    Ok(())
}

fn put_beside(run: &mut Run<'_>, service: Service, sizes: &[usize], remotes: &[usize]) {
    for size in sizes {
        for remote in remotes {
            let case = |kind, remote| Case { service, kind, size: *size, remote }.id();
            let [one, two] = KINDS.map(|kind| case(kind, *remote));
            run.report.put_beside(&two, &one, &[METRIC]);
            for kind in KINDS.into_iter().filter(|_| *remote > 0) {
                let [own, local] = [*remote, 0].map(|remote| case(kind, remote));
                run.report.put_beside(&own, &local, &[METRIC]);
            }
        }
    }
}

/// Two links against one, with all copies remote and the largest files.
fn judge(run: &mut Run<'_>, service: Service, sizes: &[usize]) {
    let Some(largest) = sizes.last() else { return };
    let [one, two] = KINDS.map(|kind| Case { service, kind, size: *largest, remote: COPIES }.id());
    let gain = run.report.times(&two, METRIC, &one);
    let what = "times the rate over one link, two links, all eight copies remote";
    let busy = cpu_limited(&run.report, &two);
    run.goal(Goal::new(&two, what, Bound::AtLeast, GAIN, gain).unless(busy));
}

/// Whether a case is to be measured, or one that is compared with it.
fn wanted(run: &Run<'_>, case: Case, remotes: &[usize]) -> bool {
    let [one, two] = KINDS;
    run.wants(&case.id())
        || (case.kind == one && run.wants(&Case { kind: two, ..case }.id()))
        || (case.remote == 0
            && remotes.iter().any(|remote| run.wants(&Case { remote: *remote, ..case }.id())))
}

/// Mbit/s of a link such that local copies are as many times as fast as its bytes as they were in the paper.
fn rate(run: &mut Run<'_>, testbed: &Testbed) -> Result<u32, Error> {
    let largest = SIZES[SIZES.len() - 1];
    let mut local = Vec::new();
    for _ in 0..LOOKS {
        run.check()?;
        local.push(testbed.copy_here(largest)?);
    }
    let middle = Spread::of(local).map_or(0.0, |local| local.median);
    let wanted = middle * 8.0 / PAPER_LOCAL;
    let rate = (wanted as u32).clamp(*RATES.start(), *RATES.end());
    run.say(&format!("  local copies: {middle:.1} MB/s on {}; links of {rate} Mbit/s", testbed.place()))?;
    Ok(rate)
}

fn measure(
    run: &mut Run<'_>,
    id: &str,
    turn: u32,
    copy: impl FnOnce() -> Result<Copied, Error>,
) -> Result<(), Error> {
    run.check()?;
    run.step(id);
    let Some(Copied { mbyte, cpu_share, typed }) = run.noted(format!("{id} #{}", turn + 1), copy())? else {
        return Ok(());
    };
    let values = [(METRIC, "MB/s", mbyte), (CPU, "of the machine", cpu_share)];
    run.note(id, &typed, turn, &values)
}

/// The gain that the paper found, the smallest and the largest.
const PAPER_GAIN: [f64; 2] = [2.3, 3.0];

pub(super) fn figure(report: &Report) -> Figure {
    let [one, two] = KINDS;
    let [least, most] = PAPER_GAIN.map(|gain| (format!("the paper, all remote: {gain:.1}"), gain));
    let panel =
        |title: &str, y: &str, panel: Panel| panel.titled(title, "copies that are remote, of eight", y);
    let rates = |kind| by_size(|case| report.spread(&Case { kind, ..case }.id(), METRIC));
    let gains = by_size(|case| {
        report.beside(&Case { kind: two, ..case }.id(), METRIC, &Case { kind: one, ..case }.id())
    });
    let flat = |panel: Panel, (name, y)| panel.reference(name, vec![(0.0, y), (COPIES as f64, y)]);
    let panels = vec![
        panel("One link", "MB/s", rates(one)),
        panel("Two links, bonded", "MB/s", rates(two)),
        flat(flat(panel("Two links over one", "ratio", gains), least), most),
    ];
    Figure { title: "copies: eight files at once".into(), panels }
}

/// Values over the number of remote copies, a line a size, and one for each file server.
fn by_size(value: impl Fn(Case) -> Option<Spread>) -> Panel {
    let all = Panel::over((0..=COPIES).map(|remote| remote as f64));
    let lines = std::iter::once(ALL_SIZES)
        .chain(FILE_SERVERS)
        .flat_map(|service| sizes_of(service, &SIZES).iter().map(move |size| (service, *size)));
    lines.fold(all, |panel, (service, size)| {
        let by = if service == ALL_SIZES {
            String::new()
        } else {
            format!(", {}", format!("{service:?}").to_uppercase())
        };
        panel.line(format!("{size} MB{by}"), |remote| {
            value(Case { service, kind: KINDS[0], size, remote: remote as usize })
        })
    })
}
