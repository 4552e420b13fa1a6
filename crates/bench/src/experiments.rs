//! The experiments, one a file.

mod copies;
pub(crate) mod cpu_limit;
mod fabric;
mod failover;
mod guest;
pub(crate) mod hostile;
mod kinds;
mod loss;
mod mpi;
pub(crate) mod multicast;
mod overhead;
pub(crate) mod peers;
mod plain;
mod policies;
mod rates;
mod scaling;
mod soak;
mod tipc;
mod tokens;
mod unequal;
mod urgent;

use prelude::{Error, Figure, LinkSpec, Report, Run, Topology};

/// What most experiments need.
mod prelude {
    pub(super) use crate::bed::Bed;
    pub(super) use crate::plot::{Figure, Panel};
    pub(super) use crate::report::{Bound, Goal, Report};
    pub(super) use crate::run::Run;
    pub(super) use crate::stats::Spread;
    pub(super) use linkbraid_api::Error;
    pub(super) use linkbraid_lab::iperf::{Cc, Traffic};
    pub(super) use linkbraid_lab::{Host, LinkSpec, Topology};
    pub(super) use std::time::{Duration, Instant};
}

/// What `bench run` runs by its name.
pub struct Experiment {
    /// The word that runs it.
    pub name: &'static str,
    /// What it shows, in one sentence.
    pub about: &'static str,
    /// The figure or table of the papers that it repeats, or an empty string.
    pub paper: &'static str,
    /// Measures; an error is one of the whole experiment, a failed case is noted in the report.
    pub(crate) run: fn(&mut Run<'_>) -> Result<(), Error>,
    pub(crate) figure: fn(&Report) -> Figure,
}

/// All experiments, in the order they run.
pub static EXPERIMENTS: [Experiment; 20] = [
    Experiment {
        name: "scaling",
        about: "goodput over the number of members, beside one bare link: TCP and UDP, one flow and eight, both ways at once",
        paper: "BondingPlus, Figs. 4 and 5",
        run: scaling::run,
        figure: scaling::figure,
    },
    Experiment {
        name: "overhead",
        about: "one member without a rate limit against the bare link, in turns: throughput, and CPU for each byte",
        paper: "BondingPlus, Table 2",
        run: overhead::run,
        figure: overhead::figure,
    },
    Experiment {
        name: "cpu-limit",
        about: "one TCP flow over one bare link and over two bonded, from a host whose processes may use 0.5 to 100 % of a core: where the CPU is the limit, and where the links are; the same in a guest with a slow processor",
        paper: "BondingPlus, Table 1",
        run: cpu_limit::run,
        figure: cpu_limit::figure,
    },
    Experiment {
        name: "unequal",
        about: "one TCP flow over two links of different rates, against the sum of both and against the faster one alone",
        paper: "",
        run: unequal::run,
        figure: unequal::figure,
    },
    Experiment {
        name: "rates",
        about: "one TCP flow over links that do not tell their rate, or a wrong one, against the sum of the links alone",
        paper: "",
        run: rates::run,
        figure: rates::figure,
    },
    Experiment {
        name: "policies",
        about: "one TCP flow and 32 over four links by every policy of a bond: goodput, segments sent again, evenness, CPU",
        paper: "",
        run: policies::run,
        figure: policies::figure,
    },
    Experiment {
        name: "kinds",
        about: "TCP, TCP in VXLAN, QUIC and media over four links, each flow spread and on one link: goodput, what is lost or taken for lost, order",
        paper: "",
        run: kinds::run,
        figure: kinds::figure,
    },
    Experiment {
        name: "plain",
        about: "a bonded server with two links and a host without linkbraid with one ten times as fast, one server link off too",
        paper: "ELT, Table 1",
        run: plain::run,
        figure: plain::figure,
    },
    Experiment {
        name: "tokens",
        about: "a token of 4 bytes to 64 KiB bounced by 1 to 6 pairs of programs: between six plain hosts and a server with 1 to 4 links, and between two hosts with one link and with two bonded",
        paper: "ELT, Fig. 5",
        run: tokens::run,
        figure: tokens::figure,
    },
    Experiment {
        name: "copies",
        about: "eight files of 1 to 8 MB copied at once, 0 to 8 of them by a plain host from a server with one link, and with two bonded",
        paper: "ELT, Fig. 6 and Table 2",
        run: copies::run,
        figure: copies::figure,
    },
    Experiment {
        name: "multicast",
        about: "broadcast and multicast exactly once with four members on one switch, and what the switch floods in steady state",
        paper: "ELT, section on broadcast and multicast",
        run: multicast::run,
        figure: multicast::figure,
    },
    Experiment {
        name: "loss",
        about: "one TCP flow over four lossy, marked or shared links, with and without damping, beside one such link",
        paper: "",
        run: loss::run,
        figure: loss::figure,
    },
    Experiment {
        name: "failover",
        about: "links that fail, silently or not, and come back; members and daemons that go, under TCP and 50,000 datagrams a second",
        paper: "ELT, Link Inspector and NIC Scheduler",
        run: failover::run,
        figure: failover::figure::draw,
    },
    Experiment {
        name: "urgent",
        about: "round trips of small messages beside traffic that fills every other link, and while one of their links is cut",
        paper: "BondingPlus, Figs. 6 to 9",
        run: urgent::run,
        figure: urgent::figure::draw,
    },
    Experiment {
        name: "soak",
        about: "1,000 random failures, recoveries, member and weight changes and daemon kills: the hosts reach each other whenever a lane is left",
        paper: "",
        run: soak::run,
        figure: soak::figure,
    },
    Experiment {
        name: "hostile",
        about: "attacks by a stranger on the switch, without a key and with one, while datagrams flow and a third host joins",
        paper: "",
        run: hostile::run,
        figure: hostile::figure,
    },
    Experiment {
        name: "fabric",
        about: "a fabric over memory, UDP and libfabric beside veth and VXLAN: throughput, latency, cost, restarts, many nodes, kills",
        paper: "ETHOM and ETHOS, Figs. 5 to 8",
        run: fabric::run,
        figure: fabric::figure::draw,
    },
    Experiment {
        name: "tipc",
        about: "messages by TCP and by TIPC between two guests with a stock kernel, over a cable, a fabric on that cable, and a fabric on shared memory that both see as a PCI device; \
         the processors are emulated, so figures say how ways compare here and nothing of what a real machine does",
        paper: "ETHOM, Figs. 9 and 10",
        run: tipc::run,
        figure: tipc::figure,
    },
    Experiment {
        name: "mpi",
        about: "two processes of Open MPI over one link, a bond of four, a fabric over such a bond, and a bond of which two links fail: NetPIPE, and the HPC Challenge",
        paper: "ETHOM, last section",
        run: mpi::run,
        figure: mpi::figure,
    },
    Experiment {
        name: "peers",
        about: "bonding, team and MPTCP of a stock kernel beside linkbraid in the same run: one TCP flow, eight, UDP, and a link that fails",
        paper: "",
        run: peers::run,
        figure: peers::figure::draw,
    },
];

/// A host with some links and a plain one with a single link, on one switch; rates are in Mbit/s.
fn beside_plain(links: usize, rate: u32, plain: u32) -> Topology {
    let own = vec![LinkSpec::switch(0, Some(rate)); links];
    Topology::empty("lab", 1).host(own).plain_host([LinkSpec::switch(0, Some(plain))])
}

/// Numbers that are the same each time for the same seed: splitmix64 (Steele, Lea and Flood, 2014).
#[derive(Debug, Clone)]
struct Random(u64);

impl Random {
    /// A number below a limit; limits are far too small for the remainder to be unfair.
    fn below(&mut self, limit: usize) -> usize {
        self.0 = self.0.wrapping_add(0x9e37_79b9_7f4a_7c15);
        let mut z = self.0;
        z = (z ^ (z >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
        z = (z ^ (z >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
        z ^= z >> 31;
        usize::try_from(z % limit.max(1) as u64).unwrap_or(0)
    }
}

/// An experiment by name.
pub fn find(name: &str) -> Option<&'static Experiment> {
    EXPERIMENTS.iter().find(|experiment| experiment.name == name)
}
