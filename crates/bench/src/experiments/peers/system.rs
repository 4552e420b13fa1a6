//! The systems that are measured: what each is, what it needs, and how it is set up.

use super::here::Missing;
use super::{RATE, setup};
use crate::bed::Bed;
use crate::run::Run;
use linkbraid_api::Error;
use linkbraid_lab::iperf::Traffic;
use linkbraid_lab::{Options, Topology};
use std::time::Duration;

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
    /// Nothing: the first link alone.
    Bare,
    /// This project.
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
    /// By its carrier.
    Carrier,
    /// By asking the other host.
    Arp,
}

#[derive(Debug, Clone, Copy)]
pub(crate) struct System {
    /// What cases and tables call it.
    pub word: &'static str,
    /// What fits under an axis.
    pub short: &'static str,
    /// What it needs that an unmanaged switch and an unchanged program do not give.
    pub needs: &'static str,
    pub(super) wiring: Wiring,
    pub(super) kind: Kind,
    /// Whether its rates are measured; otherwise only how it fails over.
    pub(super) rates: bool,
    /// Whether its failures are measured.
    pub(super) fails: bool,
    /// Whether a quick run measures its rates, its failures.
    pub(super) quick: (bool, bool),
}

pub(crate) const OURS: &str = "linkbraid";
/// The one to beat for a single flow.
pub(crate) const MPTCP: &str = "mptcp";

const BASE: System = System {
    word: "",
    short: "",
    needs: "",
    wiring: Wiring::Switch,
    kind: Kind::Bare,
    rates: true,
    fails: true,
    quick: (true, false),
};

/// All of them, ours first.
pub(crate) const SYSTEMS: [System; 14] = [
    System {
        word: OURS,
        short: "ours",
        needs: "linkbraid on both hosts (a plain host is reached over one of its own links)",
        kind: Kind::Linkbraid,
        quick: (true, true),
        ..BASE
    },
    System {
        word: "linkbraid-separate",
        short: "ours sep",
        needs: "the same; here on N switches that do not know each other",
        wiring: Wiring::Separate,
        kind: Kind::Linkbraid,
        fails: false,
        quick: (false, false),
        ..BASE
    },
    System {
        word: MPTCP,
        short: "mptcp",
        needs: "N addresses and N subnets on each host, ARP settings that keep them apart, and a program that opens MPTCP sockets \
                (mptcpize); TCP only",
        kind: Kind::Mptcp,
        quick: (true, true),
        ..BASE
    },
    System {
        word: "balance-rr",
        short: "rr",
        needs: "a switch that relearns a MAC at every frame, or a static trunk set up in it",
        kind: Kind::Bond("mode balance-rr miimon 100"),
        quick: (true, true),
        ..BASE
    },
    System {
        word: "balance-rr-sticky",
        short: "rr stk",
        needs: "the same bond, on a switch that keeps a MAC at its first port",
        wiring: Wiring::Sticky,
        kind: Kind::Bond("mode balance-rr miimon 100"),
        fails: false,
        quick: (false, false),
        ..BASE
    },
    System {
        word: "balance-rr-separate",
        short: "rr sep",
        needs: "N separate switches, to which every host is connected by every link",
        wiring: Wiring::Separate,
        kind: Kind::Bond("mode balance-rr miimon 100"),
        ..BASE
    },
    System {
        word: "team-roundrobin",
        short: "team",
        needs: "as balance-rr; teamd",
        kind: Kind::Team("roundrobin", TeamWatch::Carrier),
        ..BASE
    },
    System {
        word: "balance-alb",
        short: "alb",
        needs: "nothing of the switch; a peer is always reached over one link",
        kind: Kind::Bond("mode balance-alb miimon 100"),
        ..BASE
    },
    System {
        word: "balance-xor",
        short: "xor",
        needs: "a static trunk set up in the switch (here it relearns at every frame); layer3+4",
        kind: Kind::Bond("mode balance-xor xmit_hash_policy layer3+4 miimon 100"),
        ..BASE
    },
    System {
        word: "active-backup",
        short: "a-b",
        needs: "nothing; one link works, the others wait",
        kind: Kind::Bond("mode active-backup miimon 100"),
        quick: (true, true),
        ..BASE
    },
    System {
        word: "802.3ad",
        short: "lacp",
        needs: "a switch with LACP; here cables between the two hosts, since a Linux bridge does not speak it; layer3+4",
        wiring: Wiring::Cables,
        kind: Kind::Bond("mode 802.3ad lacp_rate fast xmit_hash_policy layer3+4 miimon 100"),
        ..BASE
    },
    System {
        word: "balance-rr-arp",
        short: "rr arp",
        needs: "as balance-rr; addresses to ask for by ARP, set by hand",
        kind: Kind::BondArp("mode balance-rr arp_interval 100"),
        rates: false,
        quick: (false, true),
        ..BASE
    },
    System {
        word: "active-backup-arp",
        short: "a-b arp",
        needs: "as active-backup; addresses to ask for by ARP, set by hand",
        kind: Kind::BondArp("mode active-backup arp_interval 100"),
        rates: false,
        ..BASE
    },
    System {
        word: "team-activebackup",
        short: "team a-b",
        needs: "teamd; addresses to ask for by ARP, set by hand",
        kind: Kind::Team("activebackup", TeamWatch::Arp),
        rates: false,
        ..BASE
    },
];

impl System {
    /// Whether its rates are measured in this run.
    pub fn has_rates(&self, quick: bool) -> bool {
        self.rates && (!quick || self.quick.0)
    }

    pub fn has_failures(&self, quick: bool) -> bool {
        self.fails && (!quick || self.quick.1)
    }

    /// Whether it carries datagrams over its links.
    pub fn carries_udp(&self) -> bool {
        self.kind != Kind::Mptcp
    }

    /// Whether its TCP is MPTCP.
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
