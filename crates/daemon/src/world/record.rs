//! Records for `show`, `peers`, `lanes`, `class show` and `stats`.

use crate::{
    io::{error::About as _, identity::hex},
    world::{bond::Bond, member::Member},
};
use linkbraid_api::{
    AddressMove, BondRecord, BondSettings, CounterRecord, Error, FindingRecord, Health, MemberRecord,
    PeerMemberRecord, PeerRecord, PeerState, Records, Severity, StatsRecord,
};
use linkbraid_dataplane::Count;
use linkbraid_proto::{
    Time,
    arp_plus::{self, Peer, PeerClass, PeerKey},
    host::{DEFAULT_CLASS, Host},
    inspector::{Held, Verdict},
};
use linkbraid_wire::{MacAddr, Refusal};
use std::collections::{BTreeSet, HashMap};

mod classes;
pub(crate) mod findings;
mod guests;
mod keys;
mod lanes;
mod picked;

pub(crate) use classes::{classes, latency};
pub(crate) use lanes::{lanes, lanes_to};
use picked::{is_peer, no_peer};

/// ARP+ counters are numbered after those of the data path, which has room for 64.
const PROTOCOL_NUMBERS_FROM: u32 = 100;
/// And those of the inspector after them; its names say whose they are.
const INSPECTOR_NUMBERS_FROM: u32 = 200;
/// And those of the answers to plain hosts after them.
const ANSWER_NUMBERS_FROM: u32 = 300;
/// And those of authentication after them.
const AUTH_NUMBERS_FROM: u32 = 400;

/// `show`
pub(crate) fn bonds(bonds: &[&Bond], now: Time) -> Result<Records, Error> {
    Ok(Records::Bonds(bonds.iter().map(|bond| one_bond(bond, now)).collect::<Result<_, _>>()?))
}

fn one_bond(bond: &Bond, now: Time) -> Result<BondRecord, Error> {
    let absent = bond.absent().map(|absent| absent.name.clone()).collect::<Vec<_>>();
    let driven = bond.driven();
    let live = driven.host.members().iter().filter(|member| member.live()).count();
    let used = slots_to_peers(&driven.host);
    let is_down = findings::is_down(bond);
    let reason = |member: &Member| match reason(&driven.host, member, &used, now) {
        reason if reason.is_empty() && is_down => "the bond is set down".to_owned(),
        reason => reason,
    };
    let mut idle = driven.members.iter().filter(|member| !reason(member).is_empty());
    let findings = findings::findings(bond, &driven, now);
    let speakers = bond.path.speakers().about(&bond.saved.name, "cannot read who speaks for its guests")?;
    let named =
        |slot: u8| driven.members.iter().find(|member| member.slot == slot).map(|member| member.name.clone());
    let speak_for = |guest: MacAddr| speakers.of(guest.0).into_iter().filter_map(named).collect();
    let saved = &bond.saved;
    let (health, why) = match (findings.first(), idle.next(), absent.first()) {
        (None, None, None) => (Health::Ok, String::new()),
        (Some(finding), ..) if is_down => (Health::Down, in_short(finding, &saved.name)),
        _ if live == 0 => (Health::Down, "no member carries traffic".to_owned()),
        // With what is shown below it.
        (Some(finding), ..) if finding.severity == Severity::Error => {
            (Health::Degraded, in_short(finding, &saved.name))
        }
        (_, Some(member), _) => (Health::Degraded, format!("'{}': {}", member.name, reason(member))),
        (_, None, Some(name)) => (Health::Degraded, format!("'{name}': its interface is not there")),
        (Some(finding), None, None) => (Health::Degraded, in_short(finding, &saved.name)),
    };
    Ok(BondRecord {
        name: saved.name.to_string(),
        health,
        reason: why,
        mac: bond.mac.to_string(),
        mtu: saved.mtu,
        addresses: bond.addresses.iter().map(|(ip, prefix)| format!("{ip}/{prefix}")).collect(),
        settings: BondSettings { latency: bond.latency.is_some(), ..saved.settings.clone() },
        stripe_bytes: bond.stripe_bytes,
        hook: bond.path.hook().map_or_else(String::new, |hook| hook.to_string()),
        host_id: hex(&saved.host_id),
        keys: bond.keys.records.clone(),
        arp_plus_state: driven.host.arp_plus().state().to_string(),
        peers: driven.host.arp_plus().peers().len() as u32,
        members: driven
            .members
            .iter()
            .map(|member| one_member(bond, &driven.host, member, &reason(member)))
            .collect::<Result<_, _>>()?,
        absent,
        guests: guests::here(&driven.host, speak_for),
        moved: saved
            .members
            .iter()
            .flat_map(|member| {
                member.before.addresses.iter().filter(|address| !address.automatic).map(|address| {
                    AddressMove {
                        address: format!("{}/{}", address.ip, address.prefix),
                        member: member.before.link.name.clone(),
                    }
                })
            })
            .collect(),
        conflicts: driven.host.arp_plus().conflicts().iter().map(|open| open.conflict.to_string()).collect(),
        findings,
        events: driven.history.events().cloned().collect(),
    })
}

/// A finding as a reason; the name of the bond is there already.
fn in_short(finding: &FindingRecord, bond: &str) -> String {
    match finding.object == bond {
        true => finding.text.clone(),
        false => format!("'{}': {}", finding.object, finding.text),
    }
}

/// The members that some plan to a peer uses.
fn slots_to_peers(host: &Host) -> BTreeSet<u8> {
    let own = host.own_side();
    let lanes = host.arp_plus().peers().flat_map(|peer| {
        own.class_numbers()
            .chain([DEFAULT_CLASS])
            .flat_map(|class| own.peer_lanes(peer, host.inspector(), class).lanes)
            .collect::<Vec<_>>()
    });
    lanes.map(|lane| lane.slot).collect()
}

/// Why a member carries no traffic, in words. `used` are those that plans to peers use: where there is no peer to prove a
/// member with, nothing speaks against it.
fn reason(host: &Host, member: &Member, used: &BTreeSet<u8>, now: Time) -> String {
    let proven = || host.inspector().member_sound(member.slot) == Verdict::Alive;
    let unused = !used.is_empty() && !used.contains(&member.slot) && !proven();
    let known = host.member(member.slot);
    let reason = match member.reason(known) {
        "" if known.is_some_and(|known| !known.sound) || unused => "no lane of it is proven",
        reason => reason,
    };
    match host.inspector().held(member.slot, now).filter(|_| !reason.is_empty()) {
        Some(held) => format!("{reason}; {}", held_down(held)),
        None => reason.to_owned(),
    }
}

/// How long what failed again and again still waits, in words.
fn held_down(held: Held) -> String {
    format!("held down for {} s more after {} failures", held.left.as_secs_f64().ceil(), held.failures)
}

fn one_member(bond: &Bond, host: &Host, member: &Member, reason: &str) -> Result<MemberRecord, Error> {
    let counts = bond.path.member_counts(member.slot).about(&bond.saved.name, "cannot read counters")?;
    let segment = host.arp_plus().segments().iter().find(|segment| segment.slots.contains(&member.slot));
    Ok(MemberRecord {
        interface: member.name.clone(),
        mac: member.mac.to_string(),
        live: host.member(member.slot).is_some_and(|known| known.live()),
        reason: reason.to_owned(),
        speed_mbit: member.speed_mbit,
        weight_mbit: member.weight_mbit(),
        measured_kbit: host.member_kbit(member.slot),
        share_from: Some(lanes::share_from(host, member.slot, host.is_spread_by_measure(member.slot))),
        segment: segment.map_or(0, |segment| segment.number),
        elected: segment.is_some_and(|segment| segment.elected == Some(member.slot)),
        tx_frames: counts.tx.frames,
        tx_bytes: counts.tx.bytes,
        rx_frames: counts.rx.frames,
        rx_bytes: counts.rx.bytes,
        class: bond.class_name(member.class).map(Into::into),
    })
}

/// `peers`
pub(crate) fn peers(bonds: &[&Bond], now: Time, wanted: Option<&str>) -> Result<Records, Error> {
    let is_wanted = |peer: &&Peer| wanted.is_none_or(|wanted| is_peer(peer, wanted));
    let mut all = Vec::new();
    for bond in bonds {
        let driven = bond.driven();
        let peers = driven.host.arp_plus().peers().filter(is_wanted);
        all.extend(peers.map(|peer| one_peer(bond, &driven.host, peer, now)));
    }
    match wanted.filter(|_| all.is_empty()) {
        Some(wanted) => Err(no_peer(bonds, wanted)),
        None => Ok(Records::Peers(all)),
    }
}

fn one_peer(bond: &Bond, host: &Host, peer: &Peer, now: Time) -> PeerRecord {
    PeerRecord {
        bond: bond.saved.name.to_string(),
        address: peer.address().map(|address| address.to_string()),
        host_id: match peer.key {
            PeerKey::Host(host) => Some(hex(&host.0)),
            PeerKey::Address(_) | PeerKey::Plain(_) => None,
        },
        epoch: peer.epoch,
        state: match peer.state {
            arp_plus::PeerState::Alive => PeerState::Alive,
            arp_plus::PeerState::Silent => PeerState::Silent,
        },
        mac: peer.mac().to_string(),
        members: peer
            .members
            .iter()
            .map(|member| PeerMemberRecord {
                mac: member.mac.to_string(),
                live: member.up,
                weight_mbit: member.weight_mbit,
                class: match peer.class_of(member) {
                    PeerClass::Default => None,
                    PeerClass::Named(name) => Some(name.to_owned()),
                    PeerClass::Unknown => Some(format!("{} (name not announced)", member.class)),
                },
            })
            .collect(),
        heard_ms: u64::try_from(now.since(peer.last_heard).as_millis()).unwrap_or(u64::MAX),
        proven: peer.answers,
        guests: guests::of_peer(host, peer),
    }
}

/// `stats`
pub(crate) fn stats(bonds: &[&Bond], _now: Time) -> Result<Records, Error> {
    let mut records = Vec::new();
    for bond in bonds {
        let reasons = bond.path.reasons().about(&bond.saved.name, "cannot read counters")?;
        let counter = |number, name: &str, text: &str, verdict: &str, count: Count| CounterRecord {
            name: name.to_owned(),
            number,
            description: text.to_owned(),
            verdict: verdict.to_owned(),
            frames: count.frames,
            bytes: count.bytes,
        };
        let mut counters: Vec<CounterRecord> = reasons
            .iter()
            .map(|(reason, count)| {
                counter(reason.number, reason.name, reason.sentence, reason.verdict, *count)
            })
            .collect();
        let mut protocol = |from: u32, number: u32, name: &str, text: &str, frames: u64| {
            counters.push(counter(from + number, name, text, "protocol", Count { frames, bytes: 0 }));
        };
        let driven = bond.driven();
        let probes = driven.host.inspector().counters();
        // One counter a reason, whichever protocol the refused frame was for.
        let refused: HashMap<arp_plus::Counter, u64> =
            Refusal::ALL.iter().map(|refusal| ((*refusal).into(), probes.refused(*refusal))).collect();
        for (c, frames) in driven.host.arp_plus().counters().iter() {
            let frames = frames + refused.get(&c).copied().unwrap_or(0);
            protocol(PROTOCOL_NUMBERS_FROM, c.number(), c.name(), c.description(), frames);
        }
        for (c, frames) in probes.iter() {
            let name = format!("probe_{}", c.name());
            protocol(INSPECTOR_NUMBERS_FROM, c.number(), &name, c.description(), frames);
        }
        for (c, frames) in driven.host.answers().counters().iter() {
            let name = format!("answer_{}", c.name());
            protocol(ANSWER_NUMBERS_FROM, c.number(), &name, c.description(), frames);
        }
        for (c, frames) in driven.host.auth().counters().iter() {
            let name = format!("auth_{}", c.name());
            protocol(AUTH_NUMBERS_FROM, c.number(), &name, c.description(), frames);
        }
        records.push(StatsRecord { bond: bond.saved.name.to_string(), counters });
    }
    Ok(Records::Stats(records))
}
