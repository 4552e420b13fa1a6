//! The fabric beside what the kernel has for the same: throughput, latency, what it costs, how it comes back, how it
//! grows, and what its nodes' deaths do to the others.

mod figure;
mod idle;
mod kills;
mod latency;
mod limited;
mod nodes;
mod programs;
mod restart;
mod stage;
mod subject;
mod testbed;
mod throughput;

use super::Experiment;
use crate::run::Run;
use linkbraid_api::Error;
use testbed::Testbed;

pub(super) use figure::sized;

pub(super) const EXPERIMENT: Experiment = Experiment {
    name: "fabric",
    about: "a fabric over memory, UDP and libfabric beside veth and VXLAN: throughput, latency, cost, restarts, many nodes, kills",
    paper: "ETHOM and ETHOS, Figs. 5 to 8",
    run,
    figure: figure::draw,
};

fn run(run: &mut Run<'_>) -> Result<(), Error> {
    let steps = [
        throughput::steps,
        limited::steps,
        latency::steps,
        idle::steps,
        restart::steps,
        nodes::steps,
        kills::steps,
    ];
    let steps: usize = steps.iter().map(|steps| steps(run)).sum();
    run.plan_steps(u32::try_from(steps).unwrap_or(u32::MAX));
    if ["throughput", "limited", "latency", "idle", "restart"].iter().any(|stage| run.wants(stage)) {
        let mut testbed = Testbed::up(run, "pair", 2)?;
        throughput::run(run, &mut testbed)?;
        limited::run(run, &mut testbed)?;
        latency::run(run, &mut testbed)?;
        idle::run(run, &mut testbed)?;
        restart::run(run, &mut testbed)?;
    }
    nodes::run(run)?;
    kills::run(run)
}
