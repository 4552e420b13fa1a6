//! `linkbraid lab`: hosts in network namespaces.

mod demo;

use clap::Subcommand;
use linkbraid_api::{Error, ExitCode};
use linkbraid_lab::{Lab, LinkSpec, Topology, daemon};
use linkbraid_terminal::args::Words;
use linkbraid_terminal::args::lab::{DEFAULT_LAB, LabExecArgs, LabUpArgs, LabVerb};
use linkbraid_terminal::report::{self, Failed, plain};
use linkbraid_terminal::{human, json as to_json};
use std::ffi::OsString;
use std::os::unix::process::CommandExt;
use std::path::Path;
use std::process;

/// The command line: of all words the one that this program carries out.
type Cli = Words<Word>;

#[derive(Debug, Subcommand)]
enum Word {
    #[command(subcommand)]
    Lab(LabVerb),
}

fn main() -> process::ExitCode {
    linkbraid_terminal::program(|Cli { anywhere, word: Word::Lab(verb) }| {
        run(verb, anywhere.json).map(|()| ExitCode::Done)
    })
}

/// Does what the verb says.
fn run(verb: LabVerb, json: bool) -> Result<(), Failed> {
    match verb {
        LabVerb::Demo(args) => demo::run(&args, json),
        LabVerb::Up(args) => up(&args, json),
        LabVerb::Exec(args) => exec(&args),
        LabVerb::Down { name } => linkbraid_lab::down(&name).map_err(Failed::refused),
    }
}

fn up(args: &LabUpArgs, json: bool) -> Result<(), Failed> {
    let topology = topology(args)?;
    let lab = Lab::up_to_stay(topology).map_err(Failed::refused)?;
    if json {
        return report::print(&to_json(lab.topology()));
    }
    report::print(&summary(args, lab.topology()))
}

/// The hosts that were asked for, the plain ones last, each link into the one switch.
fn topology(args: &LabUpArgs) -> Result<Topology, Failed> {
    if args.plain > args.hosts {
        let cause = format!("'{}' is more than the {} hosts of the lab", args.plain, args.hosts);
        let error = Error::new("lab up", "option '--plain'", cause).hint("linkbraid lab up --help");
        return Err(Failed::usage(error));
    }
    let link = || LinkSpec::switch(0, args.rate.0);
    let mut topology = Topology::empty(&args.name, 1);
    for number in 0..args.hosts {
        topology = if number < args.hosts - args.plain {
            topology.host((0..args.links).map(|_| link()))
        } else {
            topology.plain_host([link()])
        };
    }
    Ok(topology)
}

/// What is there, and what to do with it.
fn summary(args: &LabUpArgs, topology: &Topology) -> String {
    let rate = args.rate.0.map_or_else(|| "unlimited".to_owned(), human::rate);
    let mut out = format!(
        "lab {}: {} on one switch, each link {rate}\n",
        args.name,
        human::count(topology.hosts.len(), "host")
    );
    for host in &topology.hosts {
        let links = human::count(host.links.len(), "link");
        let kind = if host.plain { ", plain" } else { "" };
        out.push_str(&format!("  {}  {links}{kind}, {}\n", host.name, host.addresses.join(", ")));
    }
    let Some(first) = topology.hosts.first() else { return out };
    let of = if args.name == DEFAULT_LAB { String::new() } else { format!(" --lab {}", args.name) };
    let members = (0..first.links.len()).map(|number| format!("eth{number}")).collect::<Vec<_>>().join(",");
    out.push_str(&format!(
        "next:\n  linkbraid lab exec {0}{of} -- linkbraid daemon &\n  \
         linkbraid lab exec {0}{of} -- linkbraid bond add bond0 --member {members}\n",
        first.name
    ));
    out
}

/// Becomes the command; returns only where that fails.
fn exec(args: &LabExecArgs) -> Result<(), Failed> {
    let lab = Lab::open(&args.lab).map_err(Failed::refused)?;
    let host = lab.host(&args.host).map_err(Failed::refused)?;
    let Some((program, words)) = args.command.split_first() else {
        // clap requires one word at least.
        return Ok(());
    };
    let error = host.linkbraid_command(program).args(words).env("PATH", search_path()).exec();
    let object = format!("lab {}", args.lab);
    let what = format!("cannot run '{}' on host '{}'", program.display(), args.host);
    Err(Failed::refused(Error::new(object, what, plain(&error))))
}

/// The caller's `PATH` with the folder of the `linkbraid` beside this program in front, so that a host runs the same one.
fn search_path() -> OsString {
    let own = daemon::beside().and_then(|path| path.parent().map(Path::to_owned));
    let path = std::env::var_os("PATH").unwrap_or_default();
    let folders = own.into_iter().chain(std::env::split_paths(&path));
    // A folder with a colon in its name cannot be part of a PATH.
    std::env::join_paths(folders).unwrap_or_else(|_| path.clone())
}

#[cfg(test)]
mod tests;
