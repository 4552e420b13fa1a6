//! What goes into the bundle, part by part.

use super::program;
use crate::{check, text};
use linkbraid_api::{CONFIG_PATHS, Records, Reply, Request};
use linkbraid_daemon::config_files;
use linkbraid_terminal::client::{self, Failure};
use std::collections::BTreeSet;
use std::fs::{self, File};
use std::io::{ErrorKind, Read as _};
use std::path::Path;
use std::time::{Duration, Instant};

/// How long one answer of the daemon is waited for.
const ANSWER_MAX: Duration = Duration::from_secs(10);
/// How long one program may take, and how long all together.
const PROGRAM_MAX: Duration = Duration::from_secs(5);
const PROGRAMS_MAX: Duration = Duration::from_secs(60);
/// How much of one part is kept, in bytes.
const PART_BYTES_MAX: usize = 2 << 20;
/// How much of a file or of a program's output is read, in bytes. The last byte tells that a part is too long.
const READ_BYTES_MAX: usize = PART_BYTES_MAX + 1;
/// Interfaces that ethtool is asked about, members of bonds first.
const INTERFACES_MAX: usize = 32;
/// Files of the configuration.
const FILES_MAX: usize = 64;
/// The last lines of the journal.
const JOURNAL_LINES: u32 = 5000;

/// One file of the bundle.
#[derive(Debug)]
pub struct Part {
    /// Its name in the bundle.
    pub name: String,
    /// The command or file that it comes from.
    pub source: String,
    /// What is to be known about it, or an empty string.
    pub note: String,
    /// What is in it.
    pub text: String,
}

impl Part {
    /// One that needs no source.
    pub fn new(name: impl Into<String>, text: impl Into<String>) -> Self {
        Self { name: name.into(), source: String::new(), note: String::new(), text: text.into() }
    }

    fn of(self, source: impl Into<String>) -> Self {
        Self { source: source.into(), ..self }
    }

    fn failed(name: impl Into<String>, source: impl Into<String>, note: impl Into<String>) -> Self {
        Self { note: note.into(), ..Self::new(name, "").of(source) }
    }

    /// All that it tells.
    pub fn texts(&mut self) -> [&mut String; 4] {
        [&mut self.name, &mut self.source, &mut self.note, &mut self.text]
    }

    /// Keeps the first `bytes`, as whole lines: half an address or half a secret would not be recognised.
    fn cut(&mut self, bytes: usize) {
        if self.text.len() > bytes {
            let line_end = self.text.as_bytes()[..bytes].iter().rposition(|byte| *byte == b'\n');
            self.text.truncate(line_end.map_or(0, |at| at + 1));
            self.note = format!("only the first {} bytes", self.text.len());
        }
    }
}

/// All parts.
pub fn all(socket: &Path) -> Vec<Part> {
    let version = format!("linkbraid {}\n", env!("CARGO_PKG_VERSION"));
    let mut parts = vec![Part::new("version.txt", version).of("linkbraid --version")];
    let members = records(socket, &mut parts);
    configuration(&mut parts);
    parts.extend(files());
    programs(&members, &mut parts);
    parts.iter_mut().for_each(|part| part.cut(PART_BYTES_MAX));
    parts
}

/// What the daemon says, and what `check` finds; the members of all bonds.
fn records(socket: &Path, parts: &mut Vec<Part>) -> Vec<String> {
    let requests = [
        ("show", Request::Show { name: None }),
        ("fabric show", Request::FabricShow { name: None }),
        ("peers", Request::Peers { bond: None, peer: None }),
        ("lanes", Request::Lanes { bond: None, peer: None }),
        ("class show", Request::ClassShow { bond: None }),
        ("stats", Request::Stats { name: None }),
        ("fabric stats", Request::FabricStats { name: None }),
        ("stats --latency", Request::Latency { name: None }),
    ];
    let mut members = Vec::new();
    // A daemon that does not answer once is not asked again.
    let mut silent = None;
    for (word, request) in requests {
        let name = format!("daemon/{}.json", word.replace(" --", "-").replace(' ', "-"));
        let source = format!("linkbraid {word} --json");
        if let Some(why) = &silent {
            parts.push(Part::failed(name, source, why));
            continue;
        }
        match client::ask(socket, &request, ANSWER_MAX) {
            Ok(Reply::Records(records)) => {
                if let Records::Bonds(bonds) = &records {
                    let of = |bond: &linkbraid_api::BondRecord| {
                        bond.members.iter().map(|member| member.interface.clone()).collect::<Vec<_>>()
                    };
                    members = bonds.iter().flat_map(of).collect();
                }
                parts.push(Part::new(name, text::records_json(&records)).of(source));
            }
            Ok(Reply::Error(error)) => parts.push(Part::failed(name, source, error.to_string())),
            Ok(_) => parts.push(Part::failed(name, source, "an unexpected reply")),
            Err(Failure::NoDaemon(_)) => {
                parts.push(Part::failed(name, source, "no daemon runs"));
                silent = Some("no daemon runs".to_owned());
            }
            Err(Failure::Broken(error)) => {
                parts.push(Part::failed(name, source, error.to_string()));
                silent = Some("the daemon did not answer before".to_owned());
            }
        }
    }
    let (name, source) = ("check.txt", "linkbraid check");
    parts.push(match &silent {
        Some(why) if why != "no daemon runs" => Part::failed(name, source, why),
        _ => match check::findings(socket, Vec::new()) {
            Ok(findings) => Part::new(name, text::findings(&findings, &text::Style::new(false))).of(source),
            Err(failed) => Part::failed(name, source, failed.error.to_string()),
        },
    });
    members
}

/// The configuration files. Keys have files of their own, which are not read.
fn configuration(parts: &mut Vec<Part>) {
    for path in CONFIG_PATHS {
        match config_files(Path::new(path)) {
            Ok(files) => parts.extend(
                files
                    .into_iter()
                    .take(FILES_MAX)
                    .map(|file| Part::new(config_name(&file.file), file.text).of(&file.file)),
            ),
            Err(error) if error.kind() == ErrorKind::NotFound => {}
            Err(error) => parts.push(Part::failed(config_name(path), path, error.to_string())),
        }
    }
}

/// The name in the bundle of what is below /etc.
fn config_name(path: &str) -> String {
    format!("config/{}", path.trim_start_matches("/etc/"))
}

/// What the kernel and the system say in files.
fn files() -> impl Iterator<Item = Part> {
    let files = [
        ("machine/os-release.txt", "/etc/os-release"),
        ("machine/meminfo.txt", "/proc/meminfo"),
        ("machine/interrupts.txt", "/proc/interrupts"),
        ("machine/softnet.txt", "/proc/thread-self/net/softnet_stat"),
        ("net/dev.txt", "/proc/thread-self/net/dev"),
        ("net/netstat.txt", "/proc/thread-self/net/netstat"),
        ("net/snmp.txt", "/proc/thread-self/net/snmp"),
        ("net/congestion-control.txt", "/proc/sys/net/ipv4/tcp_congestion_control"),
        ("net/tcp-rmem.txt", "/proc/sys/net/ipv4/tcp_rmem"),
        ("net/tcp-wmem.txt", "/proc/sys/net/ipv4/tcp_wmem"),
    ];
    files.into_iter().map(|(name, path)| {
        let mut bytes = Vec::new();
        let read = File::open(path).and_then(|file| file.take(READ_BYTES_MAX as u64).read_to_end(&mut bytes));
        match read {
            Ok(_) => Part::new(name, String::from_utf8_lossy(&bytes)).of(path),
            Err(error) => Part::failed(name, path, error.to_string()),
        }
    })
}

/// What other programs say of the network and of the service.
fn programs(members: &[String], parts: &mut Vec<Part>) {
    let journal = format!("journalctl -u linkbraid -n {JOURNAL_LINES} --no-hostname --no-pager -o short-iso");
    let lines = [
        ("machine/uname.txt", "uname -srvm"),
        ("machine/lscpu.txt", "lscpu"),
        ("machine/service.txt", "systemctl show linkbraid --property=ActiveState,SubState,NRestarts,Result"),
        ("net/links.txt", "ip -d -s link"),
        ("net/addresses.txt", "ip address"),
        ("net/routes-ipv4.txt", "ip -4 route show table all"),
        ("net/routes-ipv6.txt", "ip -6 route show table all"),
        ("net/rules-ipv4.txt", "ip -4 rule"),
        ("net/rules-ipv6.txt", "ip -6 rule"),
        ("net/neighbours.txt", "ip neighbour"),
        ("net/bridge-links.txt", "bridge -d link"),
        ("net/bridge-fdb.txt", "bridge fdb"),
        ("net/bridge-vlan.txt", "bridge vlan"),
        ("net/qdiscs.txt", "tc -s qdisc"),
        ("net/bpf-hooks.txt", "bpftool net"),
        ("net/bpf-programs.txt", "bpftool prog"),
        ("journal.txt", &journal),
    ];
    let end = Instant::now() + PROGRAMS_MAX;
    let run = |line: &str| match end.saturating_duration_since(Instant::now()) {
        Duration::ZERO => program::Output::nothing("not run, because others took too long"),
        left => program::run(line, READ_BYTES_MAX, PROGRAM_MAX.min(left)),
    };
    for (name, line) in lines {
        let program::Output { text, note } = run(line);
        parts.push(Part { note, ..Part::new(name, text).of(line) });
    }
    for nic in interfaces(members) {
        // Few drivers have an answer to each of these.
        let sections = ["", "-i ", "-k ", "-c ", "-g ", "-a ", "-S ", "--show-eee "].map(|option| {
            let line = format!("ethtool {option}{nic}");
            let program::Output { text, note } = run(&line);
            format!("# {line}\n{text}{}\n", if note.is_empty() { note } else { format!("({note})\n") })
        });
        let part = Part::new(format!("ethtool/{nic}.txt"), sections.concat());
        parts.push(part.of(format!("ethtool {nic}, and with -i -k -c -g -a -S --show-eee")));
    }
}

/// The interfaces of this network namespace, without the loopback one.
fn interfaces(members: &[String]) -> Vec<String> {
    let text = fs::read_to_string("/proc/thread-self/net/dev").unwrap_or_default();
    let names = text.lines().skip(2).filter_map(|line| line.split_once(':'));
    let names: Vec<String> = names.map(|(name, _)| name.trim().to_owned()).collect();
    let mut seen = BTreeSet::from(["lo".to_owned()]);
    let in_order = members.iter().chain(&names).filter(|name| names.contains(name));
    in_order.filter(|name| seen.insert((*name).clone())).take(INTERFACES_MAX).cloned().collect()
}

#[cfg(test)]
mod tests {
    use super::{Part, config_name};

    #[test]
    fn a_part_that_is_too_long_is_cut_after_a_whole_line_and_says_so() {
        for (text, kept, note) in [
            ("one\ntwo\n", "one\ntwo\n", ""),
            ("one\ntwo\n3", "one\ntwo\n", "only the first 8 bytes"),
            ("one\ntwo, three\n", "one\n", "only the first 4 bytes"),
            ("one\n\u{20ac}\u{20ac}", "one\n", "only the first 4 bytes"),
            ("one, two, three", "", "only the first 0 bytes"),
        ] {
            let mut part = Part::new("part.txt", text);
            part.cut(8);
            assert_eq!((part.text.as_str(), part.note.as_str()), (kept, note), "{text:?}");
        }
    }

    #[test]
    fn configuration_files_of_one_name_in_two_places_have_two_names() {
        assert_eq!(config_name("/etc/linkbraid.toml"), "config/linkbraid.toml");
        assert_eq!(config_name("/etc/linkbraid/linkbraid.toml"), "config/linkbraid/linkbraid.toml");
    }
}
