//! Programs that compute together with messages of MPI: ETHOM's paper says that such applications profit, and measures none.

use super::fabric;
use crate::activity::Activity;
use crate::bed::BOND;
use crate::experiments::prelude::*;
use crate::run::cpu_limited;
use linkbraid_lab::{Fault, Running, tool};
use std::fs::{self, File, OpenOptions};
use std::io;
use std::os::unix::fs::OpenOptionsExt;
use std::path::Path;
use std::process::Stdio;

/// The rate of each link, Mbit/s, and the links of a bond.
const RATE: u32 = 100;
const LINKS: usize = 4;
/// What joins two hosts: one bare link, a bond, a fabric over such a bond, and a bond whose links fail meanwhile.
const NETWORKS: [&str; 4] = [ONE, FOUR, FABRIC, FAILING];
const ONE: &str = "one";
const FOUR: &str = "four";
const FABRIC: &str = "fabric";
const FAILING: &str = "failing";
/// What fails while a program runs: a link of the first host that is silent, and another one of the second without a carrier.
const FAILURES: [(&str, usize, Fault); 2] = [("a", 0, Fault::Silent), ("b", 1, Fault::Carrier)];
const FABRIC_NIC: &str = "fab0";
const FABRIC_PORT: u16 = 7000;
const REACH_LIMIT: Duration = Duration::from_secs(20);
/// How often it is looked whether a program has ended: a hundredth of what the shortest that is timed takes.
const LOOK: Duration = Duration::from_millis(20);

const PACKAGES: [(&str, &str); 3] =
    [("mpirun.openmpi", "openmpi-bin"), ("NPopenmpi", "netpipe-openmpi"), ("hpcc", "hpcc")];
/// The file that hpcc reads: HPL of 2000 x 2000, which sets the sizes of all else.
const HPCC_SETTINGS: &str = include_str!("mpi/hpccinf.txt");
/// What is taken of hpcc's figures: its word, ours, the unit, and how many of that are one of its own.
const HPCC: [(&str, &str, &str, f64); 5] = [
    ("MaxPingPongBandwidth_GBytes", MBIT, "Mbit/s", 8000.0),
    ("AvgPingPongLatency_usec", LATENCY, "us", 1.0),
    ("NaturallyOrderedRingBandwidth_GBytes", "ring_mbyte", "MB/s", 1000.0),
    ("HPL_time", "hpl_s", "s", 1.0),
    ("MPIFFT_Gflops", "fft_gflops", "Gflop/s", 1.0),
];
const MBIT: &str = "mbit";
const LATENCY: &str = "half_us";
const SECONDS: &str = "seconds";

type Value = (&'static str, &'static str, f64);

/// A program with a process on each of two hosts.
struct Program {
    word: &'static str,
    line: &'static str,
    /// Where it writes its figures.
    file: &'static str,
    quick: bool,
    /// Seconds from its start until links fail, where it takes long enough for that.
    failures: &'static [f64],
    /// Of a program that does not come to its end.
    limit: Duration,
    parse: fn(&str) -> Option<Vec<Value>>,
}

/// NetPIPE tells the best of seven tries, of so many messages each.
const LITTLE: Program = Program {
    word: "netpipe-1",
    line: "NPopenmpi -l 1 -u 1 -p 0 -n 1000 -o netpipe",
    file: "netpipe",
    quick: true,
    failures: &[],
    limit: Duration::from_secs(60),
    parse: netpipe,
};
const LARGE: Program = Program {
    word: "netpipe-1048576",
    line: "NPopenmpi -l 1048576 -u 1048576 -p 0 -n 10 -o netpipe",
    failures: &[1.5, 2.5],
    limit: Duration::from_secs(120),
    ..LITTLE
};
/// It takes most of its time to measure how fast it can exchange messages of 2 MB.
const WHOLE: Program = Program {
    word: "hpcc",
    line: "hpcc",
    file: "hpccoutf.txt",
    quick: false,
    failures: &[15.0, 25.0],
    limit: Duration::from_secs(400),
    parse: hpcc,
};
const PROGRAMS: [Program; 3] = [LITTLE, LARGE, WHOLE];

fn id(network: &str, program: &Program) -> String {
    format!("mpi/{network}/{}", program.word)
}

pub(super) fn run(run: &mut Run<'_>) -> Result<(), Error> {
    let [programs, packages] = [PACKAGES.map(|(program, _)| program), PACKAGES.map(|(_, package)| package)];
    if let Err(error) = tool::require(&programs) {
        let error = error.hint(format!("apt-get install {}", packages.join(" ")));
        run.skip_for(run.report.experiment.clone(), &error);
        return Ok(());
    }
    let mut cases = Vec::new();
    for network in NETWORKS {
        let programs: Vec<&Program> = PROGRAMS.iter().filter(|p| wanted(run, network, p)).collect();
        if !programs.is_empty() {
            let bed = set_up(run, network)?;
            cases.push((network, bed, programs));
        }
    }
    run.plan(cases.iter().map(|(_, _, programs)| programs.len()).sum());
    for turn in 0..run.settings.repeat {
        for (network, bed, programs) in &cases {
            for program in programs {
                measure(run, bed, (network, program), turn)?;
            }
        }
    }
    for program in &PROGRAMS {
        for network in &NETWORKS[1..] {
            run.report.put_beside(&id(network, program), &id(ONE, program), &[MBIT, LATENCY, SECONDS]);
        }
        run.report.put_beside(&id(FAILING, program), &id(FOUR, program), &[SECONDS]);
    }
    goals(run);
    Ok(())
}

/// Whether a case is to be measured, or one that is compared with it.
fn wanted(run: &Run<'_>, network: &str, program: &Program) -> bool {
    let there = |network: &str| network != FAILING || !program.failures.is_empty();
    let of = |other: &str| {
        let base = network == ONE || (network == FOUR && other == FAILING);
        (other == network || base) && there(other) && run.wants(&id(other, program))
    };
    (program.quick || !run.settings.quick) && there(network) && NETWORKS.iter().any(|other| of(other))
}

/// Two hosts, with what Open MPI and programs need to be run on both.
fn set_up(run: &mut Run<'_>, network: &str) -> Result<Bed, Error> {
    let bed = match network {
        ONE => run.bare(network, Topology::symmetric(2, 1, Some(RATE)))?,
        _ => run.bonded(network, Topology::symmetric(2, LINKS, Some(RATE)))?,
    };
    let (folder, far) = (bed.lab().folder(), bed.host("b")?);
    let hosts = [bed.host("a")?, far];
    // What Open MPI calls in place of ssh: with the host's address, and a line for its shell. Hosts of one name would be one to it.
    let shell = format!(
        "#!/bin/sh\nshift\nexport TMPDIR={}\nexec ip netns exec {} unshare --uts sh -c \"hostname {}; $*\"\n",
        folder.display(),
        far.netns().name(),
        far.name()
    );
    let nodes: String = hosts.iter().map(|h| format!("{} {}:{FABRIC_PORT}\n", h.index(), h.ipv4())).collect();
    let write = |file: &str, text: &str, mode| {
        let file = folder.join(file);
        let made = OpenOptions::new().write(true).create_new(true).mode(mode).open(&file);
        let written = made.and_then(|mut made| io::Write::write_all(&mut made, text.as_bytes()));
        written.map_err(|e| Error::new(file.display().to_string(), "cannot write", e.to_string()))
    };
    write("shell", &shell, 0o755)?;
    write("hpccinf.txt", HPCC_SETTINGS, 0o644)?;
    write("nodes", &nodes, 0o644)?;
    if network == FABRIC {
        for host in hosts {
            let (node, nodes) = (host.index(), folder.join("nodes"));
            let place = format!("--node {node} --nodes 2 --transport udp:{}", nodes.display());
            let line = format!("fabric add {FABRIC_NIC} {place}");
            host.linkbraid(&line)?;
            host.sh(&format!("ip addr add {}/24 dev {FABRIC_NIC}", address(network, host)))?;
            let typed = format!("{}# linkbraid {line}", host.name());
            run.report.labs.last_mut().into_iter().for_each(|lab| lab.commands.push(typed.clone()));
        }
        hosts[0].wait_ping(&address(network, far), REACH_LIMIT)?;
    }
    Ok(bed)
}

fn address(network: &str, host: Host<'_>) -> String {
    if network == FABRIC { format!("198.19.0.{}", host.index() + 1) } else { host.ipv4().to_owned() }
}

/// What is typed on the first host.
fn typed(network: &str, hosts: [Host<'_>; 2], folder: &Path, line: &str) -> String {
    let nic = match network {
        ONE => "eth0",
        FABRIC => FABRIC_NIC,
        _ => BOND,
    };
    let hosts = hosts.map(|host| address(network, host)).join(",");
    // One way out, and messages of TCP only.
    let settings = [
        ("plm", "rsh"),
        ("plm_rsh_agent", &folder.join("shell").display().to_string()),
        ("pml", "ob1"),
        ("btl", "tcp,self"),
        ("btl_tcp_if_include", nic),
        ("oob_tcp_if_include", nic),
    ];
    let settings = settings.map(|(key, value)| format!("--mca {key} {value}")).join(" ");
    format!("mpirun.openmpi --allow-run-as-root -np 2 -H {hosts} --bind-to none {settings} {line}")
}

fn measure(
    run: &mut Run<'_>,
    bed: &Bed,
    (network, program): (&str, &Program),
    turn: u32,
) -> Result<(), Error> {
    let id = id(network, program);
    run.check()?;
    run.step(&id);
    let before = Activity::now()?;
    let done = compute(run, bed, network, program);
    let stolen = Activity::now()?.since(&before).stolen_share;
    if network == FAILING {
        for (host, link, _) in FAILURES {
            bed.host(host)?.link(link)?.mend()?;
        }
        bed.make_again()?;
    }
    if let Some((typed, mut values)) = run.noted(format!("{id} #{}", turn + 1), done)? {
        values.push(("stolen_share", "of all CPU time", stolen));
        run.note(&id, &typed, turn, &values)?;
    }
    Ok(())
}

/// Runs a program to its end; what was typed, and its figures.
fn compute(
    run: &Run<'_>,
    bed: &Bed,
    network: &str,
    program: &Program,
) -> Result<(String, Vec<Value>), Error> {
    let (folder, near) = (bed.lab().folder(), bed.host("a")?);
    let typed = typed(network, [near, bed.host("b")?], &folder, program.line);
    let failed = |what: &str, cause: String| Error::new(program.word, what, cause);
    let [file, log] = [program.file, "log"].map(|name| folder.join(name));
    // hpcc would add to it.
    let _ = fs::remove_file(&file);
    let logs = File::create(&log).and_then(|made| Ok((made.try_clone()?, made)));
    let (out, err) = logs.map_err(|e| failed("cannot make its log", e.to_string()))?;
    let mut command = near.command("unshare");
    command.args(["--uts", "sh", "-c", &format!("hostname {}; exec {typed}", near.name())]);
    command.current_dir(&folder).env("TMPDIR", &folder);
    command.stdin(Stdio::null()).stdout(out).stderr(err);
    let begin = Instant::now();
    let mut running = Running::start(command)?;
    let times = if network == FAILING { program.failures } else { &[] };
    let mut failures = times.iter().zip(FAILURES).peekable();
    let status = loop {
        if let Some(status) = running.ended() {
            break status;
        }
        let passed = begin.elapsed();
        if passed > program.limit {
            return Err(failed("did not end", format!("not within {:?}", program.limit)));
        }
        match failures.next_if(|(at, _)| passed.as_secs_f64() >= **at) {
            Some((_, (host, link, fault))) => bed.host(host)?.link(link)?.fail(fault).map(drop)?,
            None => run.pause(LOOK)?,
        }
    };
    let seconds = begin.elapsed().as_secs_f64();
    if !status.success() {
        let said = fs::read_to_string(&log).unwrap_or_default();
        return Err(failed("ended with an error", format!("{status}; {}", said.trim().replace('\n', "; "))));
    }
    if failures.peek().is_some() {
        return Err(failed("ended before its links failed", format!("after {seconds:.1} s")));
    }
    let text = fs::read_to_string(&file).map_err(|e| failed("has no figures", e.to_string()))?;
    let mut values = vec![(SECONDS, "s", seconds)];
    values.extend((program.parse)(&text).ok_or_else(|| failed("has no figures", text.trim().to_owned()))?);
    Ok((typed, values))
}

/// The only line of NetPIPE's file.
fn netpipe(text: &str) -> Option<Vec<Value>> {
    fabric::netpipe(text, 0).pop().map(|(_, values)| values)
}

/// Figures of the summary that ends hpcc's file, if all of it was right.
fn hpcc(text: &str) -> Option<Vec<Value>> {
    let of = |key: &str| {
        let mut lines = text.lines().filter_map(|line| line.split_once('='));
        lines.find(|(name, _)| *name == key)?.1.trim().parse::<f64>().ok()
    };
    let value = |(key, metric, unit, times): (_, _, _, f64)| Some((metric, unit, of(key)? * times));
    if of("Success")? == 1.0 { HPCC.into_iter().map(value).collect() } else { None }
}

fn goals(run: &mut Run<'_>) {
    let mut goals = Vec::new();
    let mut goal = |network, program, metric: &str, base, what: &str, bound, limit| {
        let (id, base) = (id(network, program), id(base, program));
        let goal = Goal::new(&id, what, bound, limit, run.report.times(&id, metric, &base));
        goals.push(goal.unless(cpu_limited(&run.report, &id)));
    };
    for network in [FOUR, FABRIC] {
        let what = "times the bandwidth of one link, NetPIPE with 1 MiB";
        goal(network, &LARGE, MBIT, ONE, what, Bound::AtLeast, 3.5);
        if !run.settings.quick {
            let what = "of the time over one link, all of hpcc";
            goal(network, &WHOLE, SECONDS, ONE, what, Bound::AtMost, 0.5);
        }
    }
    goal(
        FOUR,
        &LITTLE,
        LATENCY,
        ONE,
        "times the latency of one link, NetPIPE with 1 byte",
        Bound::AtMost,
        2.0,
    );
    if !run.settings.quick {
        let what = "of the time without failures, all of hpcc";
        goal(FAILING, &WHOLE, SECONDS, FOUR, what, Bound::AtMost, 1.5);
    }
    for program in PROGRAMS.iter().filter(|p| !p.failures.is_empty() && (p.quick || !run.settings.quick)) {
        let id = id(FAILING, program);
        let good = run.report.measure(&id, SECONDS).map_or(0, |measure| measure.values.len());
        let share = good as f64 / f64::from(run.settings.repeat);
        let what = "of the programs under which two links failed ended without an error";
        goals.push(Goal::new(&id, what, Bound::AtLeast, 1.0, Some(share)));
    }
    run.goals(goals);
}

pub(super) fn figure(report: &Report) -> Figure {
    let bars = |title: &str, metric: &str, unit: &str, programs: &[&Program]| {
        let all = Panel::groups(NETWORKS.map(|network| (network.to_owned(), network)));
        let bars = programs.iter().fold(all, |panel, program| {
            panel.bar(program.word, |network| report.spread(&id(network, program), metric))
        });
        bars.measured().panel(title, "", unit)
    };
    Figure::of(
        "mpi: two processes of Open MPI",
        [
            bars("Largest bandwidth of two processes", MBIT, "Mbit/s", &[&LARGE, &WHOLE]),
            bars("Half of a ping-pong", LATENCY, "us", &[&LITTLE, &WHOLE]),
            bars("The whole program", SECONDS, "s", &[&WHOLE]),
            bars("HPL, as a part of hpcc", "hpl_s", "s", &[&WHOLE]),
            bars("The ring in natural order", "ring_mbyte", "MB/s", &[&WHOLE]),
            bars("MPIFFT", "fft_gflops", "Gflop/s", &[&WHOLE]),
        ],
    )
}

#[cfg(test)]
mod tests;
