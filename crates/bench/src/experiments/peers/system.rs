//! The systems that are measured: what each is, what it needs, and how it is set up.

use super::here::Missing;
use super::{RATE, setup};
use crate::experiments::prelude::*;
use linkbraid_lab::Options;

/// What a switch needs to store a frame and to find its port. Without any delay order is kept by chance: it flatters
/// whatever sends frames of one flow over several links.
const DELAY: Duration = Duration::from_micros(100);

/// What the two hosts are joined by.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Wiring {
    /// One switch, which relearns a MAC at each frame, as a Linux bridge does.
    Switch,
    /// One switch, on which a MAC stays at its first port.
    Sticky,
    /// A switch for each pair of links; none knows of another.
    Separate,
    /// A cable for each pair of links.
    Cables,
}

/// What makes one interface of several links.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Kind {
    Linkbraid,
    /// The kernel's bonding driver: the words after `type bond`.
    Bond(&'static str),
    /// The same, which asks the other host by ARP whether a link works.
    BondArp(&'static str),
    /// The kernel's team driver, with teamd: its runner and what it looks at.
    Team(&'static str, TeamWatch),
    /// One connection over many, in the kernel's TCP.
    Mptcp,
}

/// How teamd knows that a link works.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum TeamWatch {
    Carrier,
    Arp,
}

#[derive(Debug, Clone, Copy)]
pub(crate) struct System {
    pub word: &'static str,
    /// What fits under an axis.
    pub short: &'static str,
    /// What it needs that an unmanaged switch and an unchanged program do not give.
    pub needs: &'static str,
    pub(super) wiring: Wiring,
    pub(super) kind: Kind,
    /// Whether its rates are measured; otherwise only how it fails over.
    pub(super) rates: bool,
    pub(super) fails: bool,
    /// Whether a quick run measures its rates, its failures.
    pub(super) quick: (bool, bool),
}

pub(crate) const OURS: &str = "linkbraid";
/// The one to beat for a single flow.
pub(crate) const MPTCP: &str = "mptcp";

const fn system(word: &'static str, short: &'static str, kind: Kind, needs: &'static str) -> System {
    let (wiring, quick) = (Wiring::Switch, (true, false));
    System { word, short, needs, wiring, kind, rates: true, fails: true, quick }
}

const RR: Kind = Kind::Bond("mode balance-rr miimon 100");

pub(crate) const SYSTEMS: [System; 14] = [
    system(
        OURS,
        "ours",
        Kind::Linkbraid,
        "linkbraid on both hosts (a plain host is reached over one of its own links)",
    )
    .quick(true, true),
    system(
        "linkbraid-separate",
        "ours sep",
        Kind::Linkbraid,
        "the same; here on N switches that do not know each other",
    )
    .on(Wiring::Separate)
    .without_failures(),
    system(
        MPTCP,
        "mptcp",
        Kind::Mptcp,
        "N addresses and N subnets on each host, ARP settings that keep them apart, and a program that opens MPTCP sockets \
         (mptcpize); TCP only",
    )
    .quick(true, true),
    system("balance-rr", "rr", RR, "a switch that relearns a MAC at every frame, or a static trunk set up in it")
        .quick(true, true),
    system("balance-rr-sticky", "rr stk", RR, "the same bond, on a switch that keeps a MAC at its first port")
        .on(Wiring::Sticky)
        .without_failures(),
    system("balance-rr-separate", "rr sep", RR, "N separate switches, to which every host is connected by every link")
        .on(Wiring::Separate),
    system("team-roundrobin", "team", Kind::Team("roundrobin", TeamWatch::Carrier), "as balance-rr; teamd"),
    system(
        "balance-alb",
        "alb",
        Kind::Bond("mode balance-alb miimon 100"),
        "nothing of the switch; a peer is always reached over one link",
    ),
    system(
        "balance-xor",
        "xor",
        Kind::Bond("mode balance-xor xmit_hash_policy layer3+4 miimon 100"),
        "a static trunk set up in the switch (here it relearns at every frame); layer3+4",
    ),
    system(
        "active-backup",
        "a-b",
        Kind::Bond("mode active-backup miimon 100"),
        "nothing; one link works, the others wait",
    )
    .quick(true, true),
    system(
        "802.3ad",
        "lacp",
        Kind::Bond("mode 802.3ad lacp_rate fast xmit_hash_policy layer3+4 miimon 100"),
        "a switch with LACP; here cables between the two hosts, since a Linux bridge does not speak it; layer3+4",
    )
    .on(Wiring::Cables),
    system(
        "balance-rr-arp",
        "rr arp",
        Kind::BondArp("mode balance-rr arp_interval 100"),
        "as balance-rr; addresses to ask for by ARP, set by hand",
    )
    .without_rates()
    .quick(false, true),
    system(
        "active-backup-arp",
        "a-b arp",
        Kind::BondArp("mode active-backup arp_interval 100"),
        "as active-backup; addresses to ask for by ARP, set by hand",
    )
    .without_rates(),
    system(
        "team-activebackup",
        "team a-b",
        Kind::Team("activebackup", TeamWatch::Arp),
        "teamd; addresses to ask for by ARP, set by hand",
    )
    .without_rates(),
];

impl System {
    const fn on(self, wiring: Wiring) -> Self {
        Self { wiring, ..self }
    }

    const fn without_rates(self) -> Self {
        Self { rates: false, ..self }
    }

    /// A quick run has none of one that has its rates measured alone.
    const fn without_failures(self) -> Self {
        Self { fails: false, quick: (false, false), ..self }
    }

    const fn quick(self, rates: bool, failures: bool) -> Self {
        Self { quick: (rates, failures), ..self }
    }

    pub fn has_rates(&self, quick: bool) -> bool {
        self.rates && (!quick || self.quick.0)
    }

    pub fn has_failures(&self, quick: bool) -> bool {
        self.fails && (!quick || self.quick.1)
    }

    pub fn carries_udp(&self) -> bool {
        self.kind != Kind::Mptcp
    }

    pub fn is_mptcp(&self) -> bool {
        self.kind == Kind::Mptcp
    }

    /// What is sent, as this system wants it to be.
    pub fn traffic(&self, traffic: Traffic) -> Traffic {
        Traffic { mptcp: self.is_mptcp(), ..traffic }
    }

    /// A lab of two hosts with so many links each, set up; returns once the hosts reach each other over all of them.
    pub(super) fn up(
        &self,
        run: &mut Run<'_>,
        missing: &Missing,
        name: &str,
        links: usize,
    ) -> Result<Bed, Error> {
        let bed = lab(self.wiring, missing, name, links).and_then(|mut bed| match self.kind {
            Kind::Linkbraid => bed.join().map(|()| bed),
            kind => setup::join(bed, kind),
        });
        run.keep(bed)
    }
}

/// Two hosts and what joins them.
fn lab(wiring: Wiring, missing: &Missing, name: &str, links: usize) -> Result<Bed, Error> {
    let mut bed = Bed::bare(name, topology(wiring, links))?;
    if missing.delay.is_none() {
        bed.delay_ports(DELAY)?;
    }
    Ok(bed)
}

/// The same with one link each, and nothing set up: the base.
pub(super) fn single(run: &mut Run<'_>, missing: &Missing) -> Result<Bed, Error> {
    run.keep(lab(Wiring::Switch, missing, "single", 1))
}

/// Two hosts, `a` and `b`. A real NIC cuts buffers into frames itself, and merges what arrives.
fn topology(wiring: Wiring, links: usize) -> Topology {
    let options = Options { segment: true, gro: true, ..Options::default() };
    bare_topology(wiring, links).with(options)
}

fn bare_topology(wiring: Wiring, links: usize) -> Topology {
    let rate = Some(RATE);
    match wiring {
        Wiring::Switch => Topology::symmetric(2, links, rate),
        Wiring::Sticky => {
            let mut topology = Topology::symmetric(2, links, rate);
            topology.switches.iter_mut().for_each(|switch| switch.sticky = true);
            topology
        }
        Wiring::Separate => Topology::separate_switches(links, rate),
        Wiring::Cables => Topology::cables(links, rate),
    }
}
