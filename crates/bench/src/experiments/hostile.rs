//! What a stranger on the switch can do to two hosts with bonds, without a key and with one: each attack of the list in turn, while
//! datagrams flow between the two and to a gateway, and a third host joins.

mod look;
mod table;

pub(crate) use table::tables;

use crate::bed::BOND;
use crate::experiments::prelude::*;
use crate::flow::{DatagramRecord, Datagrams};
use crate::report::{HOSTILE, Record};
use linkbraid_api::{PeerRecord, PeerState};
use linkbraid_lab::flow::{Flood, Flooded};
use linkbraid_lab::hostile::{ATTACKS, Attack, Known};
use linkbraid_lab::{packet::Tap, wait_until};
use look::Look;
use serde_json::json;

const LINKS: usize = 2;
/// Hosts with bonds, the gateway, the stranger, and the host that joins.
const VICTIMS: [&str; 2] = ["a", "b"];
const GATEWAY: &str = "c";
const STRANGER: &str = "d";
const JOINS: &str = "e";
/// How hosts know each other.
const MODES: [&str; 2] = ["off", "require"];
/// Datagrams a second of each flow.
const PACE: u32 = 1000;
/// How long an attack lasts, and the flood.
const SECONDS: [u64; 2] = [5, 60];
const QUICK_SECONDS: [u64; 2] = [3, 5];
/// The attack goes on for so long before the third host joins.
const BEFORE_JOIN: Duration = Duration::from_secs(1);
/// How long a host that joins is waited for.
const JOIN_LIMIT: Duration = Duration::from_secs(10);
/// How long all may take to be as before.
const AGAIN_LIMIT: Duration = Duration::from_secs(20);

/// Lanes to the joining host as a plain host, which end anyway.
const PLAIN_LANES_GOAL: f64 = (VICTIMS.len() * LINKS) as f64;
/// In how many milliseconds a true host is to be in, whatever is sent.
const JOIN_GOAL_MS: f64 = 2000.0;
/// In how many milliseconds after it all lanes are to be proven.
const AGAIN_GOAL_MS: f64 = 5000.0;
/// Lines of a daemon's log.
const LINES_GOAL: f64 = 200.0;
/// What a daemon may take of one core, in percent, and of memory beyond what it had.
const CPU_GOAL: f64 = 60.0;
const GROWTH_GOAL: f64 = (16 << 20) as f64;

pub(super) fn run(run: &mut Run<'_>) -> Result<(), Error> {
    let links = |number| vec![LinkSpec::switch(0, None); number];
    let lab = Topology::empty("lab", 1).host(links(LINKS)).host(links(LINKS));
    let lab = lab.plain_host(links(1)).plain_host(links(1)).plain_host(links(LINKS));
    let mut bed = run.bonded("two-and-a-stranger", lab)?;
    bed.start_daemon(JOINS)?;
    run.plan_steps(u32::try_from(MODES.len() * ATTACKS.len()).unwrap_or(u32::MAX));
    for mode in MODES {
        if !run.wants(mode) {
            continue;
        }
        require_key(&bed, mode)?;
        for attack in &ATTACKS {
            let id = format!("{mode}/{}", attack.name);
            if run.wants(&id) {
                run.step(&id);
                let done = one(run, &bed, mode, attack);
                let done = run.noted(&id, done)?;
                // What went wrong in one must not be found in the next.
                let left = bed.host(JOINS)?.linkbraid(&format!("bond del {BOND}"));
                forget_neighbours(&bed)?;
                bed.meet_within(AGAIN_LIMIT)?;
                if let (Some(record), Ok(_)) = (done, left) {
                    run.report.record(HOSTILE, &id, record);
                    goals(run, &id, mode, attack);
                }
            }
        }
    }
    Ok(())
}

/// What ARP was told by the stranger would last for half a minute, as on any Ethernet.
fn forget_neighbours(bed: &Bed) -> Result<(), Error> {
    for name in VICTIMS.into_iter().chain([GATEWAY]) {
        bed.host(name)?.sh("ip neigh flush all")?;
    }
    Ok(())
}

/// Where the key of all hosts is.
fn key_file(bed: &Bed) -> String {
    bed.lab().folder().join("bond.key").display().to_string()
}

/// Sets the mode of the victims; the first time that a key is needed it is made.
fn require_key(bed: &Bed, mode: &str) -> Result<(), Error> {
    if mode == "off" {
        return Ok(());
    }
    let key = key_file(bed);
    bed.host(VICTIMS[0])?.linkbraid(&format!("key new {key}"))?;
    for name in VICTIMS {
        bed.host(name)?.linkbraid(&format!("bond set {BOND} --key {key} --auth {mode}"))?;
    }
    bed.meet()
}

/// One attack, and all that is seen of it.
fn one(run: &mut Run<'_>, bed: &Bed, mode: &str, attack: &'static Attack) -> Result<Record, Error> {
    let [a, b] = [bed.host(VICTIMS[0])?, bed.host(VICTIMS[1])?];
    let (gateway, stranger) = (bed.host(GATEWAY)?, bed.host(STRANGER)?);
    let known = Known::listen(stranger, [a, b], gateway)?;
    let tap = Tap::try_open(stranger, "eth0", 0)?;
    tap.bypass_queue().map_err(|e| Error::new(STRANGER, "cannot flood", e.to_string()))?;
    let seconds = if run.settings.quick { QUICK_SECONDS } else { SECONDS };
    let time = Duration::from_secs(seconds[usize::from(attack.is_flood())]);
    let before = Look::at(bed)?;
    let flows =
        [Datagrams::flow(a, b, PACE)?, Datagrams::flow(b, a, PACE)?, Datagrams::flow(a, gateway, PACE)?];
    let begun = Instant::now();
    let flood = Flood::start(tap, attack.per_second, move |number| (attack.frame)(&known, number));
    run.pause(BEFORE_JOIN)?;
    let joined = join(bed, mode)?;
    run.pause(time.saturating_sub(begun.elapsed()))?;
    let flooded = flood.stop()?;
    let records = flows.map(Datagrams::stop).into_iter().collect::<Result<Vec<_>, Error>>()?;
    let after = Look::at(bed)?;
    let stopped = Instant::now();
    // After the look: the answer has a place for each of them, and so takes memory of the daemon's.
    let entered = VICTIMS.iter().map(|name| entered(bed, name)).sum::<Result<u64, Error>>()?;
    let lanes = || look::lanes(bed).unwrap_or(0);
    let all = VICTIMS.len() * LINKS * (2 * LINKS);
    // One that does not come back is said by the time.
    let _ = wait_until(AGAIN_LIMIT, "all lanes to be proven", lanes, |up| *up == all || joined.is_none());
    record(run, (mode, attack), (flooded, joined, entered, stopped.elapsed()), &records, &before, &after)
}

type Seen = (Flooded, Option<Duration>, u64, Duration);

fn record(
    run: &mut Run<'_>,
    (mode, attack): (&str, &Attack),
    (flooded, joined, entered, again): Seen,
    flows: &[DatagramRecord],
    before: &Look,
    after: &Look,
) -> Result<Record, Error> {
    // Those that never left are nobody's loss.
    let lost = |flow: &DatagramRecord| {
        let count = flow.way(0, 1).count(|_| true);
        count.lost - count.refused
    };
    let join_ms = joined.unwrap_or(JOIN_LIMIT).as_secs_f64() * 1e3;
    let totals = json!({
        "lost": lost(&flows[0]) + lost(&flows[1]),
        "gateway_lost": lost(&flows[2]),
        "sent": flows.iter().map(|flow| flow.way(0, 1).count(|_| true).sent).sum::<u64>(),
        "lanes_lost": after.lanes_lost - before.lanes_lost,
        "plain_lanes_lost": after.plain_lanes_lost - before.plain_lanes_lost,
        "entered": entered,
        "join_ms": join_ms,
        "again_ms": again.as_secs_f64() * 1e3,
        "lines": after.lines - before.lines,
        "cpu_percent": after.cpu_since(before),
        "grown_bytes": after.grown_since(before),
        "frames_a_second": flooded.per_second(),
        "refused": flooded.refused,
    });
    let short = |key: &str| totals[key].as_f64().unwrap_or(0.0);
    run.say(&format!(
        "  {mode}/{}: {:.0} frames/s; lanes lost {}, datagrams lost {} and {}; entered {entered}; in after {join_ms:.0} ms; {} lines, CPU {:.0} %",
        attack.name,
        short("frames_a_second"),
        short("lanes_lost"),
        short("lost"),
        short("gateway_lost"),
        short("lines"),
        short("cpu_percent"),
    ))?;
    let parameters = json!({ "mode": mode, "attack": attack.name, "about": attack.about, "wanted_a_second": attack.per_second });
    Ok(Record { totals, parameters, ..Record::default() })
}

/// Hosts in the table of a victim that there are not.
fn entered(bed: &Bed, name: &str) -> Result<u64, Error> {
    let peers: Vec<PeerRecord> = bed.host(name)?.ask(&format!("peers {BOND}"))?;
    let own: Vec<String> = bed.lab().hosts().map(|host| host.mac(0)).collect();
    let invented = |peer: &&PeerRecord| !own.contains(&peer.mac);
    Ok(peers.iter().filter(invented).count() as u64)
}

/// A third host makes its bond; how long after that both victims and itself know each other, if they do.
fn join(bed: &Bed, mode: &str) -> Result<Option<Duration>, Error> {
    let host = bed.host(JOINS)?;
    let key = if mode == "off" { String::new() } else { format!(" --key {} --auth {mode}", key_file(bed)) };
    let members: Vec<String> = (0..LINKS).map(|link| format!("eth{link}")).collect();
    host.linkbraid(&format!("bond add {BOND} --member {}{key}", members.join(",")))?;
    let begun = Instant::now();
    let knows = |who: &str, whom: &str| -> Result<bool, Error> {
        // Only this one: the answer has a place for each, and thousands may be invented.
        let mac = bed.host(whom)?.mac(0);
        let peers: Vec<PeerRecord> = bed.host(who)?.ask(&format!("peers {BOND} --peer {mac}"))?;
        Ok(peers.iter().any(|peer| peer.state == PeerState::Alive && peer.members.len() == LINKS))
    };
    let all = || {
        VICTIMS.iter().all(|name| knows(name, JOINS).unwrap_or(false) && knows(JOINS, name).unwrap_or(false))
    };
    Ok(wait_until(JOIN_LIMIT, "the third host to be in", all, |all| *all).ok().map(|_| begun.elapsed()))
}

fn goals(run: &mut Run<'_>, id: &str, mode: &str, attack: &Attack) {
    let keyed = mode != "off";
    if attack.needs_key && !keyed {
        return;
    }
    let mut goals = vec![
        ("lanes lost", "lanes_lost", 0.0),
        ("lanes to plain hosts lost", "plain_lanes_lost", PLAIN_LANES_GOAL),
        ("ms until a third host was in", "join_ms", JOIN_GOAL_MS),
        ("ms until all lanes were proven again", "again_ms", AGAIN_GOAL_MS),
        ("lines in the logs", "lines", LINES_GOAL),
        ("percent of a core of the busier daemon", "cpu_percent", CPU_GOAL),
        ("bytes that a daemon grew by", "grown_bytes", GROWTH_GOAL),
    ];
    if !attack.moves_macs {
        goals.push(("datagrams lost between two hosts", "lost", 0.0));
    }
    if !attack.moves_macs && !attack.forges_arp {
        goals.push(("datagrams lost to the gateway", "gateway_lost", 0.0));
    }
    if keyed {
        goals.push(("invented hosts in the tables", "entered", 0.0));
    }
    for (what, metric, limit) in goals {
        let value = run.report.sum(id, metric);
        run.judge(id, what, Bound::AtMost, limit, value);
    }
}

pub(super) fn figure(report: &Report) -> Figure {
    let all = |metric: &'static str| {
        let attacks = ATTACKS.iter().map(|attack| (attack.name.to_owned(), attack.name));
        MODES.iter().fold(Panel::groups(attacks), |panel, mode| {
            panel.bar(*mode, move |name| report.spread(&format!("{mode}/{name}"), metric))
        })
    };
    let panels = vec![
        all("join_ms").panel("Until a third host is in", "attack", "ms"),
        all("cpu_percent").panel("CPU of the busier daemon", "attack", "% of a core"),
    ];
    Figure { title: "hostile: a stranger on the switch".into(), panels }
}
