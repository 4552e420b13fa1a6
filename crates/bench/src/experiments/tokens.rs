//! A token that pairs of programs bounce: Fig. 5 of the ELT paper.

use super::fabric;
use crate::experiments::prelude::*;
use crate::flow::{Window, rounds};

/// The rate of each link, Mbit/s.
const RATE: u32 = 100;
const BYTES: [usize; 15] = [4, 8, 16, 32, 64, 128, 256, 512, 1024, 2048, 4096, 8192, 16384, 32768, 65536];
const QUICK_BYTES: [usize; 4] = [4, 64, 512, 65536];
const PAIRS: [usize; 6] = [1, 2, 3, 4, 5, 6];
/// Hosts, the server first and its clients in the order in which they take part.
const HOSTS: [&str; 7] = ["a", "b", "c", "d", "e", "f", "g"];
const QUICK_PAIRS: [usize; 2] = [1, 6];
const TIME: Duration = Duration::from_millis(400);
const QUICK_TIME: Duration = Duration::from_millis(200);
/// Before that, for windows of TCP to open.
const WARM_UP: Duration = Duration::from_millis(150);
/// A long token is under way for long when others share its link: from this size on it gets this many times the time.
const LONG: usize = 16_384;
const LONG_FACTOR: u32 = 4;
const METRIC: &str = "token_mbyte";
/// What two links came to against one at their best, in the paper (16.4 and 8.9 MB/s).
const PAPER_GAIN: f64 = 1.843;
/// Below this size the paper's two links were as fast as one; ours may lose this much.
const SMALL: usize = 512;
const SMALL_GOAL: f64 = 0.9;

/// The labs by the server's links. Each client of these is a plain host: it knows one MAC of the server, so it uses one of the links.
const CLIENTS: [&str; 4] = ["one", "two", "three", "four"];
/// Here all clients are programs of one host, which bonds as many links.
const PEERS: [&str; 2] = ["peer-one", "peer-two"];

fn id(links: &str, pairs: usize, bytes: usize) -> String {
    format!("tokens/{links}/{pairs}/{bytes}")
}

/// A server with so many links, and all clients with one each.
fn server(links: usize) -> Topology {
    let link = || LinkSpec::switch(0, Some(RATE));
    let lab = Topology::empty("lab", 1).host(std::iter::repeat_n(link(), links));
    HOSTS[1..].iter().fold(lab, |lab, _| lab.plain_host([link()]))
}

pub(super) fn run(run: &mut Run<'_>) -> Result<(), Error> {
    let mut beds = Vec::new();
    for (labs, lab) in [
        (&CLIENTS[..], server as fn(usize) -> Topology),
        (&PEERS, |links| Topology::symmetric(2, links, Some(RATE))),
    ] {
        for (name, links) in labs.iter().zip(1..) {
            beds.push(if links == 1 { run.bare(name, lab(links)) } else { run.bonded(name, lab(links)) }?);
        }
    }
    let quick = run.settings.quick;
    let (sizes, counts): (&[usize], &[usize]) =
        if quick { (&QUICK_BYTES, &QUICK_PAIRS) } else { (&BYTES, &PAIRS) };
    run.plan(beds.len() * counts.len() * sizes.len());
    for turn in 0..run.settings.repeat {
        for pairs in counts {
            for bytes in sizes {
                for bed in &beds {
                    measure(run, bed, turn, *pairs, *bytes)?;
                }
            }
        }
    }
    for pairs in counts {
        for bytes in sizes {
            for (one, more) in [(CLIENTS[0], &CLIENTS[1..]), (PEERS[0], &PEERS[1..])] {
                let one = id(one, *pairs, *bytes);
                more.iter()
                    .for_each(|links| run.report.put_beside(&id(links, *pairs, *bytes), &one, &[METRIC]));
            }
        }
    }
    goals(run, sizes, counts);
    Ok(())
}

fn measure(run: &mut Run<'_>, bed: &Bed, turn: u32, pairs: usize, bytes: usize) -> Result<(), Error> {
    let time = if run.settings.quick { QUICK_TIME } else { TIME };
    let time = time * if bytes < LONG { 1 } else { LONG_FACTOR };
    let id = id(bed.name(), pairs, bytes);
    if !run.wants(&id) {
        return Ok(());
    }
    run.check()?;
    run.step(&id);
    let server = bed.host(HOSTS[0])?;
    let clients = (1..=pairs).map(|n| bed.host(HOSTS[if PEERS.contains(&bed.name()) { 1 } else { n }]));
    let clients: Vec<_> = clients.collect::<Result<_, _>>()?;
    let address = server.ipv4();
    let window = Window::At(Instant::now() + WARM_UP, time);
    let bounced: Result<Vec<u64>, Error> = std::thread::scope(|scope| {
        let bounce = |client| scope.spawn(move || rounds(client, server, address, bytes, window));
        let begun: Vec<_> = clients.into_iter().map(bounce).collect();
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
    for [one, two] in [[CLIENTS[0], CLIENTS[1]], PEERS] {
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
        panel.ticks = fabric::ticks(&BYTES);
        Panel { title, x_label: "bytes in a token".into(), y_label: "MB/s".into(), ..panel }
    };
    let panels = vec![
        panel("one", format!("A server with one link of {RATE} Mbit/s, six plain hosts")),
        panel("two", "Two links, six plain hosts".into()),
        panel("three", "Three links, six plain hosts".into()),
        panel("four", "Four links, six plain hosts".into()),
        panel("peer-one", "One link, two hosts".into()),
        panel("peer-two", "Two links, both hosts bond".into()),
    ];
    Figure { title: "tokens: bounced by pairs of programs".into(), panels }
}

#[cfg(test)]
mod tests {
    use super::{HOSTS, PAIRS, server};

    #[test]
    fn each_pair_has_a_client_of_its_own() {
        let lab = server(4);
        let names: Vec<&str> = lab.hosts.iter().map(|host| host.name.as_str()).collect();
        assert_eq!(names, HOSTS);
        assert_eq!(lab.hosts.iter().map(|host| host.links.len()).collect::<Vec<_>>(), [4, 1, 1, 1, 1, 1, 1]);
        assert!(PAIRS.iter().all(|pairs| *pairs < HOSTS.len()));
    }
}
