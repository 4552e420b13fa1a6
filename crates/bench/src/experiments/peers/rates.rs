//! Goodput of each system, in turns with one bare link.

use super::RATE;
use super::awake::Awake;
use super::here::Missing;
use super::system::{self, MPTCP, OURS, SYSTEMS, System};
use crate::experiments::prelude::*;
use crate::planned::{Against, Planned};
use linkbraid_lab::counters::parse_snmp;
use std::cell::Cell;

const LINKS: [usize; 3] = [1, 2, 4];
const QUICK_LINKS: [usize; 1] = [2];

#[derive(Debug, Clone, Copy)]
pub(crate) struct Load {
    pub word: &'static str,
    pub title: &'static str,
    traffic: fn(&Run<'_>, u32) -> Traffic,
    /// Whether it is measured with one link, too: what a system costs where it gains nothing.
    alone: bool,
    quick: bool,
}

const fn load(
    word: &'static str,
    title: &'static str,
    quick: bool,
    traffic: fn(&Run<'_>, u32) -> Traffic,
) -> Load {
    Load { word, title, traffic, alone: false, quick }
}

pub(crate) const LOADS: [Load; 4] = [
    Load { alone: true, ..load("cubic-1", "one TCP flow, cubic", true, |run, _| run.tcp(Cc::Cubic)) },
    load("bbr-1", "one TCP flow, bbr", false, |run, _| run.tcp(Cc::Bbr)),
    load("cubic-8", "eight TCP flows, cubic", true, |run, _| run.tcp(Cc::Cubic).flows(8)),
    load("udp", "UDP", true, |run, mbit| run.udp(mbit)),
];

pub(crate) fn id(load: &str, links: usize, system: &str) -> String {
    format!("{load}/n{links}/{system}")
}

/// The name of the bare link's case.
pub(super) fn base(load: &str) -> String {
    format!("{load}/single")
}

/// A system's lab that is up.
struct Up {
    system: &'static System,
    links: usize,
    bed: Bed,
}

pub(super) fn run(run: &mut Run<'_>, awake: &Awake, missing: &Missing) -> Result<(), Error> {
    let quick = run.settings.quick;
    let links: &[usize] = if quick { &QUICK_LINKS } else { &LINKS };
    let loads: Vec<&Load> = LOADS.iter().filter(|load| !quick || load.quick).collect();
    if !loads.iter().any(|load| run.wants(&format!("{}/", load.word))) {
        return Ok(());
    }
    let single = system::single(run, missing)?;
    let mut up = Vec::new();
    for &links in links {
        for system in SYSTEMS.iter().filter(|system| system.has_rates(quick)) {
            let name = format!("n{links}/{}", system.word);
            if let Some(reason) = missing.reason(system) {
                run.skip(name, reason);
                continue;
            }
            run.say(&format!("  setting up {name}"))?;
            let bed = system.up(run, missing, &name, links);
            up.extend(run.noted(name, bed)?.map(|bed| Up { system, links, bed }));
        }
    }
    let wanted =
        |load: &Load| up.iter().filter(|up| measured(load, up.links) && sends(load, up.system)).count();
    run.plan(loads.iter().map(|load| 1 + wanted(load)).sum());
    for load in loads {
        one_load(run, awake, load, &single, &up)?;
    }
    Ok(())
}

fn measured(load: &Load, links: usize) -> bool {
    load.alone || links > 1
}

fn sends(load: &Load, system: &System) -> bool {
    system.carries_udp() || load.word != "udp"
}

fn one_load(run: &mut Run<'_>, awake: &Awake, load: &Load, single: &Bed, up: &[Up]) -> Result<(), Error> {
    let resting = |_: &Bed, begins: bool| {
        awake.rest(begins);
        Ok(())
    };
    let joins = Cell::new(0);
    let counted = |bed: &Bed, begins: bool| {
        awake.rest(begins);
        paths(bed, begins, &joins)
    };
    let base = base(load.word);
    let mut cases =
        vec![Planned { around: Some(&resting), ..Planned::new(&base, single, (load.traffic)(run, RATE)) }];
    for Up { system, links, bed } in up.iter().filter(|up| measured(load, up.links)) {
        let id = id(load.word, *links, system.word);
        if !sends(load, system) {
            run.skip(id, "MPTCP is TCP");
            continue;
        }
        let total = RATE.saturating_mul(u32::try_from(*links).unwrap_or(1));
        let traffic = system.traffic((load.traffic)(run, total));
        let mut case =
            Planned::new(id, bed, traffic).against(Against::mbit("single", [base.clone()], *links as f64));
        let mptcp = self::id(load.word, *links, MPTCP);
        if system.word == OURS && up.iter().any(|up| up.links == *links && up.system.is_mptcp()) {
            case = case.against(Against::mbit(MPTCP, [mptcp], 1.0));
        }
        case.around = Some(if system.is_mptcp() { &counted } else { &resting });
        case.condition = system.word.to_owned();
        cases.push(case);
    }
    let measured = run.interleave(&cases);
    awake.rest(false);
    measured
}

/// Makes sure that MPTCP was used, and over all paths: it falls back to TCP without a word.
fn paths(bed: &Bed, begins: bool, before: &Cell<u64>) -> Result<(), Error> {
    let host = bed.host("b")?;
    let now = joined(host)?;
    if begins {
        before.set(now);
        return Ok(());
    }
    enough(host, now.saturating_sub(before.get()))
}

/// Makes sure that MPTCP is used over all paths of a host to which nothing was connected before.
pub(super) fn all_paths(bed: &Bed) -> Result<(), Error> {
    let host = bed.host("b")?;
    enough(host, joined(host)?)
}

fn enough(host: Host<'_>, found: u64) -> Result<(), Error> {
    let more = host.spec().links.len().saturating_sub(1) as u64;
    if found < more {
        let cause = format!("{found} subflows joined, {more} at least were to");
        return Err(Error::new("mptcp", "not all paths were used", cause));
    }
    Ok(())
}

/// Subflows that joined a connection on a host, so far.
fn joined(host: Host<'_>) -> Result<u64, Error> {
    Ok(parse_snmp(&host.proc_net("netstat")?, "MPTcpExt", "MPJoinAckRx").unwrap_or(0))
}
