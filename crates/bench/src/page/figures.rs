//! Every figure and table of the papers: where it is on the page, or why it is not.

use crate::report::Report;
use maud::{Markup, html};

struct Figure {
    paper: &'static str,
    what: &'static str,
    place: Place,
}

/// Where it is measured.
enum Place {
    /// By an experiment.
    Here(&'static str),
    /// Elsewhere, with the reason and the command.
    Elsewhere(&'static str, &'static str),
}

use Place::{Elsewhere, Here};

const FIGURES: [Figure; 16] = [
    figure("BondingPlus, Fig. 4", "bandwidth with 1 to 4 NICs, TCP and UDP", Here("scaling")),
    figure("BondingPlus, Fig. 5", "share of each NIC", Here("scaling")),
    figure("BondingPlus, Table 1", "two NICs and a slow CPU", Here("cpu-limit")),
    figure("BondingPlus, Table 2", "what one NIC costs", Here("overhead")),
    figure("BondingPlus, Figs. 6 to 9", "urgent messages beside bulk traffic, round trips", Here("urgent")),
    figure(
        "BondingPlus, Figs. 6 to 9",
        "the same in parts, application to driver and driver to NIC",
        Elsewhere(
            "the daemon measures it on a bond in use",
            "linkbraid bond set bond0 --latency on; linkbraid stats --latency bond0",
        ),
    ),
    figure("ELT, Table 1", "one NIC, two with one off, two", Here("plain")),
    figure("ELT, Fig. 5", "tokens between pairs of programs", Here("tokens")),
    figure("ELT, Fig. 6", "eight copies, 0 to 8 of them remote", Here("copies")),
    figure("ELT, Table 2", "what the second link gains", Here("copies")),
    figure("ELT, text", "a wire is pulled", Here("failover")),
    figure("ETHOM, Fig. 5", "latency over message size", Here("fabric")),
    figure("ETHOM, Fig. 6", "throughput over message size", Here("fabric")),
    figure("ETHOM, Figs. 7 and 8", "interrupts and system time", Here("fabric")),
    figure("ETHOM, Fig. 9", "TIPC, latency", Here("tipc")),
    figure("ETHOM, Fig. 10", "TIPC, throughput", Here("tipc")),
];

const fn figure(paper: &'static str, what: &'static str, place: Place) -> Figure {
    Figure { paper, what, place }
}

/// The table of all of them.
pub(super) fn all(reports: &[Report]) -> Markup {
    html! {
        h2 { "The papers, figure by figure" }
        div.scroll {
            table {
                thead { tr { th { "figure" } th { "what" } th { "here" } } }
                tbody {
                    @for figure in &FIGURES {
                        tr { td { (figure.paper) } td { (figure.what) } td { (place(&figure.place, reports)) } }
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
