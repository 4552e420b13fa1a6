//! Every policy of a bond beside the others: what one flow gets, what many get, and what it costs.

use crate::experiments::prelude::*;
use crate::planned::{Against, Planned};
use crate::run::CCS;
use linkbraid_api::Policy;

const RATE: u32 = 100;
const LINKS: usize = 4;
/// Enough for a hash to use every link nearly for sure.
const FLOWS: u32 = 32;
/// Of the links that a policy gives one flow.
const GOAL: f64 = 0.95;

/// One flow, and as many as a server has, in turn with what each is called.
const LOADS: [(&str, u32); 2] = [("one flow", 1), ("32 flows", FLOWS)];

fn policies() -> impl Iterator<Item = Policy> {
    Policy::all().iter().copied().filter(Policy::is_of_bonds)
}

fn case_id(word: &str, flows: u32, policy: &str) -> String {
    format!("{word}/{flows}/{policy}")
}

pub(super) fn run(run: &mut Run<'_>) -> Result<(), Error> {
    let ccs = run.ccs();
    run.plan(ccs.len() * LOADS.len() * (policies().count() + 1));
    let single = run.bare("single", Topology::symmetric(2, 1, Some(RATE)))?;
    let bond = run.bonded("bond", Topology::symmetric(2, LINKS, Some(RATE)))?;
    for &(word, cc) in ccs {
        for (_, flows) in LOADS {
            let base = case_id(word, flows, "single");
            let traffic = || run.tcp(cc).flows(flows);
            let choices: Vec<_> = policies().map(|policy| (policy, Bed::following(policy))).collect();
            let mut cases = vec![Planned::new(&base, &single, traffic())];
            cases.extend(choices.iter().map(|(policy, around)| Planned {
                around: Some(around),
                condition: policy.word(),
                ..Planned::new(case_id(word, flows, &policy.word()), &bond, traffic()).against(Against::mbit(
                    "single",
                    [base.clone()],
                    LINKS as f64,
                ))
            }));
            run.interleave(&cases)?;
        }
        // All that keep a flow on one link give it that link, and the default all of them.
        for policy in policies().filter(|policy| *policy != Policy::RoundRobin) {
            let id = case_id(word, 1, &policy.word());
            let links = if policy == Policy::Spread { LINKS as f64 } else { 1.0 };
            let of_each = run.report.mid_ratio(&id, "single").map(|ratio| ratio / links);
            run.judge(&id, "of the links that it gives one flow", Bound::AtLeast, GOAL, of_each);
        }
    }
    Ok(())
}

pub(super) fn figure(report: &Report) -> Figure {
    let groups = || Panel::groups(policies().map(|policy| (policy.word(), policy.word())));
    let panel = |metric: &'static str, title: &str, unit: &str| {
        let mut panel = groups();
        for (word, _) in CCS {
            for (name, flows) in LOADS {
                let bar = move |policy: String| report.spread(&case_id(word, flows, &policy), metric);
                panel = panel.bar(format!("{word}, {name}"), bar);
            }
        }
        panel.panel(format!("{title}, {LINKS} links of {RATE} Mbit/s"), "policy", unit)
    };
    Figure {
        title: "policies: how traffic is distributed".into(),
        panels: vec![
            panel("mbit", "TCP", "Mbit/s"),
            panel("again_per_10k", "Segments sent again", "of 10,000"),
            panel("tx_imbalance", "Difference of the links' shares", "of all bytes"),
            panel("cpu_s_per_gb", "CPU of both hosts and the switch", "seconds per GB"),
        ],
    }
}
