//! A token that pairs of programs bounce: Fig. 5 of the ELT paper.

use super::beside_plain;
use crate::experiments::prelude::*;
use crate::flow::rounds;

/// Rates of the server's links and of the plain host's, Mbit/s.
const SLOW: u32 = 100;
const FAST: u32 = 1000;
const BYTES: [usize; 12] = [4, 8, 16, 32, 64, 128, 256, 512, 1024, 2048, 4096, 8192];
const QUICK_BYTES: [usize; 4] = [4, 64, 512, 8192];
const PAIRS: [usize; 6] = [1, 2, 3, 4, 5, 6];
const QUICK_PAIRS: [usize; 2] = [1, 6];
const TIME: Duration = Duration::from_millis(400);
const QUICK_TIME: Duration = Duration::from_millis(200);
const METRIC: &str = "token_mbyte";
/// What two links came to against one at their best, in the paper (16.4 and 8.9 MB/s).
const PAPER_GAIN: f64 = 1.843;
/// Below this size the paper's two links were as fast as one; ours may lose this much.
const SMALL: usize = 512;
const SMALL_GOAL: f64 = 0.9;

/// The labs: with one link, and with two of them. A plain host knows one MAC of the server, so what it sends takes one link.
const PLAIN: [&str; 2] = ["one", "two"];
const PEERS: [&str; 2] = ["peer-one", "peer-two"];

fn id(links: &str, pairs: usize, bytes: usize) -> String {
    format!("tokens/{links}/{pairs}/{bytes}")
}

pub(super) fn run(run: &mut Run<'_>) -> Result<(), Error> {
    let lab = |links| beside_plain(links, SLOW, FAST);
    let one = run.bare("one", lab(1))?;
    let two = run.bonded("two", lab(2))?;
    let peer_one = run.bare("peer-one", Topology::symmetric(2, 1, Some(SLOW)))?;
    let peer_two = run.bonded("peer-two", Topology::symmetric(2, 2, Some(SLOW)))?;
    let beds = [&one, &two, &peer_one, &peer_two];
    let quick = run.settings.quick;
    let (sizes, counts): (&[usize], &[usize]) =
        if quick { (&QUICK_BYTES, &QUICK_PAIRS) } else { (&BYTES, &PAIRS) };
    run.plan(beds.len() * counts.len() * sizes.len());
    for turn in 0..run.settings.repeat {
        for pairs in counts {
            for bytes in sizes {
                for bed in beds {
                    measure(run, bed, turn, *pairs, *bytes)?;
                }
            }
        }
    }
    for pairs in counts {
        for bytes in sizes {
            for [one, two] in [PLAIN, PEERS] {
                let [one, two] = [one, two].map(|links| id(links, *pairs, *bytes));
                run.report.put_beside(&two, &one, &[METRIC]);
            }
        }
    }
    goals(run, sizes, counts);
    Ok(())
}

fn measure(run: &mut Run<'_>, bed: &Bed, turn: u32, pairs: usize, bytes: usize) -> Result<(), Error> {
    let time = if run.settings.quick { QUICK_TIME } else { TIME };
    let id = id(bed.name(), pairs, bytes);
    if !run.wants(&id) {
        return Ok(());
    }
    run.check()?;
    run.step(&id);
    let (server, client) = (bed.host("a")?, bed.host("b")?);
    let address = server.ipv4();
    let bounced: Result<Vec<u64>, Error> = std::thread::scope(|scope| {
        let begun: Vec<_> =
            (0..pairs).map(|_| scope.spawn(|| rounds(client, server, address, bytes, time))).collect();
        begun
            .into_iter()
            .map(|pair| match pair.join() {
                Ok(half) => half.map(|half| half.len()),
                Err(_) => Err(Error::new(&id, "cannot bounce a token", "its thread panicked")),
            })
            .collect()
    });
    if let Some(counts) = run.noted(&id, bounced)? {
        let mbyte = counts.iter().sum::<u64>() as f64 * bytes as f64 / time.as_secs_f64() / 1e6;
        let typed = format!("{pairs} pairs, {bytes} bytes to and fro");
        run.note(&id, &typed, turn, &[(METRIC, "MB/s", mbyte)])?;
        run.report.note_bytes(&id, bytes);
    }
    Ok(())
}

fn goals(run: &mut Run<'_>, sizes: &[usize], counts: &[usize]) {
    let best = |links: &str| {
        let all = counts.iter().flat_map(|pairs| sizes.iter().map(|bytes| id(links, *pairs, *bytes)));
        all.filter_map(|id| run.report.median(&id, METRIC)).max_by(f64::total_cmp)
    };
    let mut goals = Vec::new();
    for [one, two] in [PLAIN, PEERS] {
        let gain = best(two).zip(best(one)).map(|(two, one)| two / one);
        let what = "times the best of one link, the best of two (the paper's ratio)";
        goals.push(Goal::new(&format!("tokens/{two}"), what, Bound::AtLeast, PAPER_GAIN, gain));
        let all = counts.iter().flat_map(|pairs| sizes.iter().map(move |bytes| (*pairs, *bytes)));
        let small = all.filter(|(_, bytes)| *bytes < SMALL);
        let least = small
            .filter_map(|(pairs, bytes)| {
                run.report.times(&id(two, pairs, bytes), METRIC, &id(one, pairs, bytes))
            })
            .min_by(f64::total_cmp);
        let what = "of one link, two links with tokens below 512 bytes, the least";
        goals.push(Goal::new(&format!("tokens/{two}"), what, Bound::AtLeast, SMALL_GOAL, least));
    }
    run.goals(goals);
}

pub(super) fn figure(report: &Report) -> Figure {
    let panel = |links: &str, title: String| {
        let all = Panel::over(BYTES.map(|bytes| (bytes as f64).log2()));
        let mut panel = PAIRS.into_iter().fold(all, |panel, pairs| {
            let name = if pairs == 1 { "1 pair".to_owned() } else { format!("{pairs} pairs") };
            panel.line(name, |x| report.spread(&id(links, pairs, x.exp2().round() as usize), METRIC))
        });
        panel.ticks = BYTES.map(|bytes| ((bytes as f64).log2(), bytes.to_string())).into();
        Panel { title, x_label: "bytes in a token".into(), y_label: "MB/s".into(), ..panel }
    };
    let panels = vec![
        panel("one", format!("One link of {SLOW} Mbit/s, a plain host")),
        panel("two", format!("Two links of {SLOW} Mbit/s, a plain host")),
        panel("peer-one", format!("One link of {SLOW} Mbit/s")),
        panel("peer-two", format!("Two links of {SLOW} Mbit/s, both hosts bond")),
    ];
    Figure { title: "tokens: bounced by pairs of programs".into(), panels }
}
