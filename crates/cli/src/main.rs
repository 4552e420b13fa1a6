//! The `linkbraid` command: words in, one request to the daemon, text or JSON out.

mod args;
mod bench;
mod client;
mod daemon;
mod generate;
mod lab;
mod report;
mod text;
mod units;
mod usage;

use args::{Cli, Word};
use clap::Parser;
use client::Failure;
use linkbraid_api::{ExitCode, Records, Reply, Request};
use report::Failed;
use std::process;

fn main() -> process::ExitCode {
    let outcome = match Cli::try_parse() {
        Ok(cli) => run(cli),
        Err(error) => usage::report(error),
    };
    match outcome {
        Ok(()) => process::ExitCode::from(ExitCode::Done as u8),
        Err(failed) => {
            report::error(&failed.error);
            process::ExitCode::from(failed.code as u8)
        }
    }
}

fn run(cli: Cli) -> Result<(), Failed> {
    let mut all_counters = false;
    let request = match cli.word {
        Word::Daemon(args) => return daemon::run(cli.socket, args),
        Word::Lab(verb) => return lab::run(verb, cli.json),
        Word::Bench(verb) => return bench::run(verb, cli.json),
        Word::Man { dir } => return generate::man(&dir),
        Word::Completions { target } => return generate::completions(&target),
        Word::Bond(verb) => verb.into(),
        Word::Member(verb) => verb.into(),
        Word::Show { name } => Request::Show { name },
        Word::Peers { bond } => Request::Peers { bond },
        Word::Lanes { bond } => Request::Lanes { bond },
        Word::Stats(args) => {
            all_counters = args.all;
            Request::Stats { name: args.name }
        }
    };
    match client::ask(&cli.socket, &request, client::REPLY_TIMEOUT) {
        Ok(Reply::Done { warnings }) => done(&warnings, cli.json),
        Ok(Reply::Records(records)) => show(&records, cli.json, all_counters),
        Ok(Reply::Error(error)) | Err(Failure::Broken(error)) => Err(Failed::refused(error)),
        Err(Failure::NoDaemon(error)) => Err(Failed { error, code: ExitCode::NoDaemon }),
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
        return report::print(&match records {
            Records::Bonds(bonds) => text::json(bonds),
            Records::Peers(peers) => text::json(peers),
            Records::Lanes(lanes) => text::json(lanes),
            Records::Stats(stats) => text::json(stats),
        });
    }
    let style = text::Style::new(report::colour());
    report::print(&match records {
        Records::Bonds(bonds) => text::bonds(bonds, &style),
        Records::Peers(peers) => text::peers(peers, &style),
        Records::Lanes(lanes) => text::lanes(lanes, &style),
        Records::Stats(stats) => text::stats(stats, all_counters, &style),
    })
}
