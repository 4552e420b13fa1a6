//! Bonds, their members and classes, and the ARP+ table as a whole.

use crate::{
    view::View,
    write::{Family, Writer, kbit, mbit, number, yes},
};
use linkbraid_api::{BondRecord, Health, MemberRecord, PeerState, Severity, value::Value as _};
use std::fmt;

const INFO: Family<4> = Family {
    name: "bond",
    help: "How the bond carries traffic; always 1.",
    labels: ["bond", "policy", "auth", "hook"],
};
const UP: Family<1> =
    Family { name: "bond_up", help: "1 if the bond carries traffic, else 0.", labels: ["bond"] };
const HEALTHY: Family<1> = Family {
    name: "bond_healthy",
    help: "1 if every member carries traffic and nothing is wrong, as the first line of 'linkbraid show' says; else 0.",
    labels: ["bond"],
};
const FINDINGS: Family<2> = Family {
    name: "bond_findings",
    help: "What is not as it is to be, by severity ('warning', 'error'); 'linkbraid check' says what and what helps.",
    labels: ["bond", "severity"],
};
const CONFLICTS: Family<1> = Family {
    name: "bond_conflicts",
    help: "Open conflicts: another host claims an address, a MAC or a host id of this one.",
    labels: ["bond"],
};
const ABSENT: Family<1> = Family {
    name: "bond_absent_members",
    help: "Members that the bond waits for because their interfaces are not there.",
    labels: ["bond"],
};
const REDUNDANCY: Family<1> = Family {
    name: "bond_redundancy_left",
    help: "Own members that can still fail before the bond carries no traffic.",
    labels: ["bond"],
};
const GUESTS: Family<1> =
    Family { name: "bond_guests", help: "Machines and containers behind the bond.", labels: ["bond"] };
const MTU: Family<1> = Family { name: "bond_mtu_bytes", help: "The MTU of the bond.", labels: ["bond"] };
const STRIPE: Family<1> = Family {
    name: "bond_stripe_bytes",
    help: "The stripe in force: the part of a TCP buffer that travels over one lane.",
    labels: ["bond"],
};
const TABLE: Family<2> = Family {
    name: "arp_plus_peers",
    help: "Hosts in the ARP+ table by state: 'alive' were heard lately, 'silent' were not.",
    labels: ["bond", "state"],
};
const PROVEN: Family<1> = Family {
    name: "arp_plus_proven_peers",
    help: "Hosts in the ARP+ table that have answered a probe in their present life; only they have metrics of their own.",
    labels: ["bond"],
};
const LEFT_OUT: Family<1> = Family {
    name: "peers_left_out",
    help: "Peers that have no metrics of their own because the bond has too many peers.",
    labels: ["bond"],
};

const MEMBER: Family<4> = Family {
    name: "member",
    help: "The class of a member (absent: it carries the default class) and its network segment; always 1.",
    labels: ["bond", "member", "class", "segment"],
};
const MEMBER_UP: Family<2> = Family {
    name: "member_up",
    help: "1 if the member is ready to carry traffic: in the bond, up and with carrier; else 0.",
    labels: ["bond", "member"],
};
const MEMBER_CARRIES: Family<2> = Family {
    name: "member_carries",
    help: "1 if the member carries traffic, which also takes a proven lane where there are peers; else 0.",
    labels: ["bond", "member"],
};
const MEMBER_SPEED: Family<2> = Family {
    name: "member_speed_bytes_per_second",
    help: "The link's own speed, if its driver reports one.",
    labels: ["bond", "member"],
};
const MEMBER_TOLD: Family<2> = Family {
    name: "member_told_bytes_per_second",
    help: "The member's weight: the rate that its link or the user tells.",
    labels: ["bond", "member"],
};
const MEMBER_MEASURED: Family<2> = Family {
    name: "member_measured_bytes_per_second",
    help: "The most that was measured to leave by the member to one peer; absent while nothing has waited for it.",
    labels: ["bond", "member"],
};
const MEMBER_TX_BYTES: Family<2> = Family {
    name: "member_transmit_bytes",
    help: "Bytes that left by the member since it joined, with Ethernet headers.",
    labels: ["bond", "member"],
};
const MEMBER_TX_FRAMES: Family<2> = Family {
    name: "member_transmit_frames",
    help: "Frames that left by the member since it joined; a TCP buffer that the NIC cuts counts once.",
    labels: ["bond", "member"],
};
const MEMBER_RX_BYTES: Family<2> = Family {
    name: "member_receive_bytes",
    help: "Bytes received by the member since it joined, with Ethernet headers.",
    labels: ["bond", "member"],
};
const MEMBER_RX_FRAMES: Family<2> = Family {
    name: "member_receive_frames",
    help: "Frames received by the member since it joined; those that GRO has merged count once.",
    labels: ["bond", "member"],
};

const CLASS_TX_BYTES: Family<2> = Family {
    name: "class_transmit_bytes",
    help: "Bytes that left in the class, with Ethernet headers.",
    labels: ["bond", "class"],
};
const CLASS_TX_FRAMES: Family<2> = Family {
    name: "class_transmit_frames",
    help: "Frames that left in the class.",
    labels: ["bond", "class"],
};
const LATENCY: Family<4> = Family {
    name: "latency_seconds",
    help: "Time of frames on their way out by class ('rest': the default class) and stage ('application': from the send call \
           to the bond, 'driver': from the bond to the driver, 'total': both together), since the measurement began; the statistic is min, mean, \
           p50, p90, p99, p999 or max. Only while 'latency' is on.",
    labels: ["bond", "class", "stage", "statistic"],
};
const LATENCY_COUNT: Family<3> = Family {
    name: "latency_measured_buffers",
    help: "Buffers whose latency was measured.",
    labels: ["bond", "class", "stage"],
};

/// Whether traffic leaves by a member.
fn carries(member: &MemberRecord) -> bool {
    member.live && member.reason.is_empty()
}

pub(crate) fn write(to: &mut Writer<'_>, view: &View<'_>) -> fmt::Result {
    of_bonds(to, view)?;
    of_members(to, view)?;
    of_classes(to, view)
}

fn of_bonds(to: &mut Writer<'_>, view: &View<'_>) -> fmt::Result {
    let bonds = &view.bonds;
    to.infos(
        &INFO,
        bonds.iter().map(|bond| {
            let (policy, auth) = (bond.settings.policy.text(), bond.settings.auth.text());
            [bond.name.as_str().into(), policy.into(), auth.into(), bond.hook.as_str().into()]
        }),
    )?;
    let mut gauges = |family: &Family<1>, value: &dyn Fn(&BondRecord) -> f64| {
        to.gauges(family, bonds.iter().map(|bond| ([bond.name.as_str().into()], value(bond))))
    };
    let left = |bond: &BondRecord| bond.members.iter().filter(|m| carries(m)).count().saturating_sub(1);
    gauges(&UP, &|bond| yes(bond.health != Health::Down))?;
    gauges(&HEALTHY, &|bond| yes(bond.health == Health::Ok))?;
    gauges(&CONFLICTS, &|bond| bond.conflicts.len() as f64)?;
    gauges(&ABSENT, &|bond| bond.absent.len() as f64)?;
    gauges(&REDUNDANCY, &|bond| left(bond) as f64)?;
    gauges(&GUESTS, &|bond| bond.guests.len() as f64)?;
    gauges(&MTU, &|bond| f64::from(bond.mtu))?;
    gauges(&STRIPE, &|bond| f64::from(bond.stripe_bytes))?;
    let in_table = |bond: &BondRecord, is: &dyn Fn(&&&&linkbraid_api::PeerRecord) -> bool| {
        view.table.iter().filter(|peer| peer.bond == bond.name).filter(|peer| is(&peer)).count() as f64
    };
    gauges(&PROVEN, &|bond| in_table(bond, &|peer| peer.proven))?;
    gauges(&LEFT_OUT, &|bond| view.left_out.get(bond.name.as_str()).copied().unwrap_or(0) as f64)?;
    let severities = [(Severity::Warning, "warning"), (Severity::Error, "error")];
    let findings = bonds.iter().flat_map(|bond| {
        severities.map(|(severity, word)| {
            let found = bond.findings.iter().filter(|finding| finding.severity == severity).count();
            ([bond.name.as_str().into(), word.into()], found as f64)
        })
    });
    to.gauges(&FINDINGS, findings)?;
    let states = [(PeerState::Alive, "alive"), (PeerState::Silent, "silent")];
    let table = bonds.iter().flat_map(|bond| {
        states.map(|(state, word)| {
            ([bond.name.as_str().into(), word.into()], in_table(bond, &|peer| peer.state == state))
        })
    });
    to.gauges(&TABLE, table)
}

fn of_members(to: &mut Writer<'_>, view: &View<'_>) -> fmt::Result {
    let all = || view.bonds.iter().flat_map(|bond| bond.members.iter().map(move |member| (bond, member)));
    to.infos(
        &MEMBER,
        all().map(|(bond, member)| {
            let class = member.class.as_deref().unwrap_or_default();
            let segment = member.segment.to_string();
            [bond.name.as_str().into(), member.interface.as_str().into(), class.into(), segment.into()]
        }),
    )?;
    let series = |value: fn(&MemberRecord) -> Option<f64>| {
        all().filter_map(move |(bond, member)| {
            Some(([bond.name.as_str().into(), member.interface.as_str().into()], value(member)?))
        })
    };
    to.gauges(&MEMBER_UP, series(|member| Some(yes(member.live))))?;
    to.gauges(&MEMBER_CARRIES, series(|member| Some(yes(carries(member)))))?;
    to.gauges(&MEMBER_SPEED, series(|member| member.speed_mbit.map(mbit)))?;
    to.gauges(&MEMBER_TOLD, series(|member| Some(mbit(member.weight_mbit))))?;
    to.gauges(&MEMBER_MEASURED, series(|member| member.measured_kbit.map(kbit)))?;
    to.counters(&MEMBER_TX_BYTES, series(|member| Some(number(member.tx_bytes))))?;
    to.counters(&MEMBER_TX_FRAMES, series(|member| Some(number(member.tx_frames))))?;
    to.counters(&MEMBER_RX_BYTES, series(|member| Some(number(member.rx_bytes))))?;
    to.counters(&MEMBER_RX_FRAMES, series(|member| Some(number(member.rx_frames))))
}

fn of_classes(to: &mut Writer<'_>, view: &View<'_>) -> fmt::Result {
    let sent = |value: fn(&linkbraid_api::ClassRecord) -> u64| {
        view.classes.iter().map(move |class| {
            ([class.bond.as_str().into(), class.name.as_str().into()], number(value(class)))
        })
    };
    to.counters(&CLASS_TX_BYTES, sent(|class| class.tx_bytes))?;
    to.counters(&CLASS_TX_FRAMES, sent(|class| class.tx_frames))?;
    let statistics = view.latency.iter().filter(|row| row.count > 0).flat_map(|row| {
        let values = [
            ("min", row.min_ns),
            ("mean", row.mean_ns),
            ("p50", row.p50_ns),
            ("p90", row.p90_ns),
            ("p99", row.p99_ns),
            ("p999", row.p999_ns),
            ("max", row.max_ns),
        ];
        values.map(|(word, ns)| {
            let labels = [row.bond.as_str(), row.class.as_str(), row.stage.as_str(), word];
            (labels.map(Into::into), number(ns) / 1e9)
        })
    });
    to.gauges(&LATENCY, statistics)?;
    let counts = view.latency.iter().map(|row| {
        ([row.bond.as_str(), row.class.as_str(), row.stage.as_str()].map(Into::into), number(row.count))
    });
    to.counters(&LATENCY_COUNT, counts)
}
