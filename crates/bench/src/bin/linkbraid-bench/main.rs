//! `linkbraid bench`: the experiments.

mod bar;

use bar::Bar;
use clap::Subcommand;
use linkbraid_api::{Error, ExitCode};
use linkbraid_bench::{Collected, EXPERIMENTS, Experiment, Guard, Options, Report};
use linkbraid_terminal::args::Words;
use linkbraid_terminal::args::bench::{ALL, BenchReportArgs, BenchRunArgs, BenchVerb};
use linkbraid_terminal::json as to_json;
use linkbraid_terminal::report::{self, Failed};
use std::io::{self, Write};
use std::process;

/// The command line: of all words the one that this program carries out.
type Cli = Words<Word>;

#[derive(Debug, Subcommand)]
enum Word {
    #[command(subcommand)]
    Bench(BenchVerb),
}

fn main() -> process::ExitCode {
    linkbraid_terminal::program(|Cli { anywhere, word: Word::Bench(verb) }| {
        run(verb, anywhere.json).map(|()| ExitCode::Done)
    })
}

fn run(verb: BenchVerb, json: bool) -> Result<(), Failed> {
    match verb {
        BenchVerb::List => list(json),
        BenchVerb::Run(args) => run_all(&args, json),
        BenchVerb::Report(args) => make_report(&args, json),
    }
}

fn list(json: bool) -> Result<(), Failed> {
    if json {
        let record =
            |e: &Experiment| serde_json::json!({ "name": e.name, "about": e.about, "paper": e.paper });
        let records: Vec<_> = EXPERIMENTS.iter().map(record).collect();
        return report::print(&to_json(&records));
    }
    let mut out = String::new();
    for Experiment { name, about, paper, .. } in &EXPERIMENTS {
        let paper = if paper.is_empty() { String::new() } else { format!(" ({paper})") };
        out.push_str(&format!("{name:<10} {about}{paper}\n"));
    }
    report::print(&out)
}

fn run_all(args: &BenchRunArgs, json: bool) -> Result<(), Failed> {
    let experiments = chosen(&args.names)?;
    let options = Options { quick: args.quick, repeat: args.repeat, only: args.only.clone() };
    let guard = Guard::new().map_err(Failed::refused)?;
    let mut reports = Vec::new();
    let mut not_run = Vec::new();
    let count = experiments.len();
    for (place, experiment) in (1..).zip(experiments) {
        let name = experiment.name;
        // Progress is not a result: it goes where errors go.
        let mut progress = io::stderr();
        let ran = match Bar::new(name, (place, count)) {
            Some(mut bar) => {
                let ran = linkbraid_bench::run(experiment, &options, &mut bar, &guard);
                bar.end();
                ran
            }
            None => {
                let _ = writeln!(progress, "{name}: {}", experiment.about);
                linkbraid_bench::run(experiment, &options, &mut progress, &guard)
            }
        };
        if matches!(&ran, Ok(report) if report.is_empty()) {
            continue;
        }
        let saved = ran.and_then(|report| {
            let saved = linkbraid_bench::save(&report, &args.out)?;
            Ok((report, saved))
        });
        match saved {
            Ok((report, saved)) => {
                if !json {
                    report::print(&linkbraid_bench::text(&report))?;
                    let files = [saved.json, saved.svg].map(|path| path.display().to_string());
                    report::print(&format!("results: {}\n\n", files.join(", ")))?;
                }
                if !report.ran() {
                    not_run.push(name);
                }
                reports.push(report);
            }
            Err(error) if guard.is_stopped() => return Err(Failed::refused(error)),
            Err(error) => {
                report::error(&error);
                not_run.push(name);
            }
        }
    }
    if let (Some(case), true) = (&args.only, reports.is_empty() && not_run.is_empty()) {
        let quick = if args.quick { ", and --quick leaves some out" } else { "" };
        let cause = format!("no case has a name that begins with it{quick}");
        let error = Error::new("bench run", format!("argument '--only {case}'"), cause);
        let names = args.names.join(" ");
        return Err(Failed::usage(error.hint(format!("linkbraid bench run {names}"))));
    }
    if json {
        report::print(&to_json(&reports))?;
    }
    verdict(args.strict, &reports, &not_run)
}

/// The experiments of these names, each once.
fn chosen(names: &[String]) -> Result<Vec<&'static Experiment>, Failed> {
    if let Some(name) = names.iter().find(|name| *name != ALL && linkbraid_bench::find(name).is_none()) {
        let known: Vec<&str> = EXPERIMENTS.iter().map(|experiment| experiment.name).collect();
        let cause = format!("no such experiment; there are {} and {ALL}", known.join(", "));
        let error =
            Error::new("bench run", format!("argument '{name}'"), cause).hint("linkbraid bench run --help");
        return Err(Failed::usage(error));
    }
    let is_chosen = |e: &&Experiment| names.iter().any(|name| name == e.name || name == ALL);
    Ok(EXPERIMENTS.iter().filter(is_chosen).collect())
}

fn make_report(args: &BenchReportArgs, json: bool) -> Result<(), Failed> {
    let made = Collected::from_folder(&args.folder).and_then(|collected| {
        let page = args.out.clone().unwrap_or_else(|| args.folder.join("report.html"));
        let saved = linkbraid_bench::save_page(&collected, &page)?;
        Ok((collected, saved))
    });
    let (collected, saved) = made.map_err(Failed::refused)?;
    if json {
        return report::print(&to_json(&collected));
    }
    for reason in collected.missing.iter().chain(&collected.unread) {
        report::print(&format!("not measured: {}: {}\n", reason.id, reason.reason))?;
    }
    report::print(&format!("report: {}, {}\n", saved.page.display(), saved.json.display()))
}

fn verdict(strict: bool, reports: &[Report], not_run: &[&str]) -> Result<(), Failed> {
    let refused = |what: &str, names: &[&str]| {
        let hint = format!("linkbraid bench run {}", names.join(" "));
        Err(Failed::refused(Error::new("bench run", what, names.join(", ")).hint(hint)))
    };
    if !not_run.is_empty() {
        return refused("not everything could be measured", not_run);
    }
    let missed: Vec<&str> =
        reports.iter().filter(|report| !report.all_met()).map(|report| report.experiment.as_str()).collect();
    if strict && !missed.is_empty() {
        return refused("goals were not met", &missed);
    }
    Ok(())
}

#[cfg(test)]
mod tests;
