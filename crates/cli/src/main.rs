//! The `linkbraid` command: words in, one request to the daemon, text or JSON out.

mod apply;
mod args;
mod check;
mod daemon;
mod doctor;
mod generate;
mod key;
mod monitor;
mod programs;
mod run;
mod session;
mod signals;
mod support;
mod text;
mod top;

use args::{Cli, Word};
use linkbraid_api::{
    BondRecord, ChangeRecord, Error, ExitCode, FabricRecord, FabricStatsRecord, Records, Reply, Request,
    Severity, StatsRecord,
};
use linkbraid_terminal::{
    args::Anywhere,
    client,
    report::{self, Failed},
};
use serde::Serialize;
use std::path::Path;
use std::process;
use text::Clock;

fn main() -> process::ExitCode {
    linkbraid_terminal::program(run)
}

fn run(cli: Cli) -> Result<ExitCode, Failed> {
    let Anywhere { socket, json } = cli.anywhere;
    let mut all_counters = false;
    let done_here = |outcome: Result<(), Failed>| outcome.map(|()| ExitCode::Done);
    let request = match cli.word {
        Word::Daemon(args) => return done_here(daemon::run(socket, args)),
        Word::Lab(_) => return Err(programs::become_program("lab")),
        Word::Bench(_) => return Err(programs::become_program("bench")),
        Word::Man { dir } => return done_here(generate::man(&dir)),
        Word::Completions { target } => return done_here(generate::completions(&target)),
        Word::Monitor { bond } => return done_here(monitor::run(&socket, bond, json)),
        Word::Top { bond } => return done_here(top::run(&socket, bond, json)),
        Word::Run(args) => return done_here(run::run(&socket, args)),
        Word::Key(verb) => return done_here(key::run(verb, json)),
        Word::Apply(args) => return done_here(apply::run(&socket, args, json)),
        Word::Doctor(args) => return done_here(doctor::run(&socket, args, json)),
        Word::Support(args) => return done_here(support::run(&socket, args, json)),
        Word::Bond(verb) => verb.into(),
        Word::Class(verb) => verb.into(),
        Word::Fabric(verb) => verb.into(),
        Word::Member(verb) => verb.into(),
        Word::Confirm(confirm) => Request::Confirm(confirm),
        Word::Leave { bond, undo } => Request::Leave { bond, undo },
        Word::Show { name } => Request::Show { name },
        Word::Peers { bond, peer } => Request::Peers { bond, peer },
        Word::Lanes { bond, peer } => Request::Lanes { bond, peer },
        Word::Stats(args) if args.latency => Request::Latency { name: args.name },
        Word::Stats(args) => {
            all_counters = args.all;
            Request::Stats { name: args.name }
        }
        Word::Explain(explain) => Request::Explain(explain),
        Word::Check { interfaces } => {
            let findings = Records::Findings(check::findings(&socket, interfaces)?);
            show(&findings, json, false)?;
            return Ok(verdict(&findings));
        }
    };
    session::warn([&request]);
    match client::ask(&socket, &request, client::REPLY_TIMEOUT)? {
        Reply::Done { warnings } => done_here(done(&warnings, json)),
        Reply::Records(records) => {
            let fabrics = also_fabrics(&socket, &request);
            if matches!(request, Request::Show { .. }) {
                unconfirmed(&socket);
            }
            match (&records, fabrics) {
                (Records::Bonds(_) | Records::Stats(_), Some(fabrics)) => {
                    show_both(&records, &fabrics, json, all_counters)?;
                }
                _ => show(&records, json, all_counters)?,
            }
            Ok(verdict(&records))
        }
        Reply::Error(error) => Err(Failed::refused(error)),
        Reply::Event { .. } => {
            let object = socket.display().to_string();
            let cause = "it is an event, not the answer to a request";
            Err(Failed::refused(Error::new(object, "cannot understand the reply", cause)))
        }
    }
}

/// What `show` and `stats` without a name show besides bonds; none where there is no fabric.
fn also_fabrics(socket: &Path, request: &Request) -> Option<Records> {
    let request = match request {
        Request::Show { name: None } => Request::FabricShow { name: None },
        Request::Stats { name: None } => Request::FabricStats { name: None },
        _ => return None,
    };
    // A daemon that is older than this command knows no fabrics; one that has just ended has none any more.
    match client::ask(socket, &request, client::REPLY_TIMEOUT) {
        Ok(Reply::Records(Records::Fabrics(fabrics))) if fabrics.is_empty() => None,
        Ok(Reply::Records(Records::FabricStats(fabrics))) if fabrics.is_empty() => None,
        Ok(Reply::Records(records)) => Some(records),
        _ => None,
    }
}

/// Says, beside what is shown, which change waits to be confirmed.
fn unconfirmed(socket: &Path) {
    // A daemon that is older than this command knows of none.
    let Ok(Reply::Records(Records::Changes(changes))) =
        client::ask(socket, &Request::Changes {}, client::REPLY_TIMEOUT)
    else {
        return;
    };
    for ChangeRecord { command, left_ms } in changes {
        report::warn(&match left_ms {
            Some(ms) => {
                format!("{command}: undone in {} s; to keep it: linkbraid confirm", ms.div_ceil(1000))
            }
            None => format!("{command}: not confirmed, and under way"),
        });
    }
}

/// One record of a list in which bonds and fabrics stand.
#[derive(Serialize)]
#[serde(untagged)]
enum Either<'a> {
    Bond(&'a BondRecord),
    Stats(&'a StatsRecord),
    Fabric(&'a FabricRecord),
    FabricStats(&'a FabricStatsRecord),
}

/// Records that may stand in one list with others.
fn list(records: &Records) -> Vec<Either<'_>> {
    match records {
        Records::Bonds(list) => list.iter().map(Either::Bond).collect(),
        Records::Stats(list) => list.iter().map(Either::Stats).collect(),
        Records::Fabrics(list) => list.iter().map(Either::Fabric).collect(),
        Records::FabricStats(list) => list.iter().map(Either::FabricStats).collect(),
        _ => Vec::new(),
    }
}

/// Bonds and fabrics: one after the other, in JSON in one list.
fn show_both(bonds: &Records, fabrics: &Records, json: bool, all_counters: bool) -> Result<(), Failed> {
    if json {
        let mut both = list(bonds);
        both.extend(list(fabrics));
        return report::print(&text::json(&both));
    }
    if !list(bonds).is_empty() {
        show(bonds, false, all_counters)?;
        report::print("\n")?;
    }
    show(fabrics, false, all_counters)
}

/// `check` fails if anything will not work: its lines have said what. All other records are just what they are.
fn verdict(records: &Records) -> ExitCode {
    match records {
        Records::Findings(findings) if findings.iter().any(|one| one.severity == Severity::Error) => {
            ExitCode::Failed
        }
        _ => ExitCode::Done,
    }
}

/// A change that was made: warnings to standard error, and to scripts an object they can read.
fn done(warnings: &[String], json: bool) -> Result<(), Failed> {
    for warning in warnings {
        report::warn(warning);
    }
    if json { report::print(&text::json(&serde_json::json!({ "warnings": warnings }))) } else { Ok(()) }
}

fn show(records: &Records, json: bool, all_counters: bool) -> Result<(), Failed> {
    if json {
        return report::print(&text::records_json(records));
    }
    let style = text::Style::new(report::colour());
    report::print(&match records {
        Records::Bonds(bonds) => text::bonds(bonds, &style, &Clock::local()),
        Records::Peers(peers) => text::peers(peers),
        Records::Lanes(lanes) => text::lanes(lanes),
        Records::Stats(stats) => text::stats(stats, all_counters),
        Records::Latency(latency) => text::latency(latency),
        Records::Classes(classes) => text::classes(classes, &style),
        Records::Fabrics(fabrics) => text::fabrics(fabrics, &style, &Clock::local()),
        Records::FabricStats(stats) => text::fabric_stats(stats, all_counters),
        Records::Findings(findings) => text::findings(findings, &style.width(report::width())),
        Records::Explained(record) => text::explain(record, &style.width(report::width())),
        Records::Applied(record) => return apply::show(record, false),
        // They stand beside what is shown.
        Records::Changes(_) => String::new(),
    })
}
