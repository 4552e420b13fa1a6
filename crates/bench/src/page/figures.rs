//! Every figure and table of the papers: where it is on the page, or why it is not.

use crate::report::Report;
use maud::{Markup, html};

enum Place {
    Here(&'static str),
    /// Elsewhere, with the reason and the command.
    Elsewhere(&'static str, &'static str),
}

use Place::{Elsewhere, Here};

/// The figure, what it shows, and where it is measured.
const FIGURES: [(&str, &str, Place); 17] = [
    ("BondingPlus, Fig. 4", "bandwidth with 1 to 4 NICs, TCP and UDP", Here("scaling")),
    ("BondingPlus, Fig. 5", "share of each NIC", Here("scaling")),
    ("BondingPlus, Table 1", "two NICs and a slow CPU", Here("cpu-limit")),
    ("BondingPlus, Table 2", "what one NIC costs", Here("overhead")),
    ("BondingPlus, Figs. 6 to 9", "urgent messages beside bulk traffic, round trips", Here("urgent")),
    (
        "BondingPlus, Figs. 6 to 9",
        "the same in parts, application to driver, driver to NIC, and both",
        Elsewhere(
            "the daemon measures it on a bond in use",
            "linkbraid bond set bond0 --latency on; linkbraid stats --latency bond0",
        ),
    ),
    ("ELT, Table 1", "one NIC, two with one off, two", Here("plain")),
    ("ELT, Fig. 5", "tokens between pairs of programs", Here("tokens")),
    ("ELT, Fig. 6", "eight copies, 0 to 8 of them remote", Here("copies")),
    ("ELT, Table 2", "what the second link gains", Here("copies")),
    ("ELT, text", "a wire is pulled", Here("failover")),
    ("ETHOM, Fig. 5", "latency over message size", Here("fabric")),
    ("ETHOM, Fig. 6", "throughput over message size", Here("fabric")),
    ("ETHOM, Figs. 7 and 8", "interrupts and system time", Here("fabric")),
    ("ETHOM, Fig. 9", "TIPC, latency", Here("tipc")),
    ("ETHOM, Fig. 10", "TIPC, throughput", Here("tipc")),
    ("ETHOM, last section", "applications on it, such as those with MPI", Here("mpi")),
];

pub(super) fn all(reports: &[Report]) -> Markup {
    html! {
        h2 { "The papers, figure by figure" }
        div.scroll {
            table {
                thead { tr { th { "figure" } th { "what" } th { "here" } } }
                tbody {
                    @for (figure, what, at) in &FIGURES {
                        tr { td { (figure) } td { (what) } td { (place(at, reports)) } }
                    }
                }
            }
        }
    }
}

fn place(place: &Place, reports: &[Report]) -> Markup {
    html! {
        @match place {
            Here(name) => {
                @if reports.iter().any(|report| report.experiment == *name) { a href={ "#" (name) } { (name) } }
                @else { "not measured: " code { "linkbraid bench run " (name) } }
            }
            Elsewhere(reason, command) => { "not measured here: " (reason) ": " code { (command) } }
        }
    }
}
