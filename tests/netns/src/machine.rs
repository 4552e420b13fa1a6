//! The state of a host as text, to claim "the machine is as it was".

use crate::Net;
use linkbraid_lab::{Host, wait_until};
use linkbraid_link::Netlink;
use std::fs;

/// The sides of an interface.
const POINTS: [(&str, libbpf_sys::bpf_attach_type); 2] =
    [("ingress", libbpf_sys::BPF_TCX_INGRESS), ("egress", libbpf_sys::BPF_TCX_EGRESS)];
/// The most programs on one tcx hook.
const TCX_MAX: usize = 64;

/// Everything about a host that a bond touches, one thing a line: interfaces (with promiscuity and port flags),
/// addresses, routes, rules, qdiscs, filters, BPF programs on interfaces, per-interface sysctls, the daemon's state
/// files. Left out is what changes by itself: counters, neighbours, remaining lifetimes.
///
/// # Panics
/// When something can't be read.
#[track_caller]
pub fn state(net: &Net, name: &str) -> String {
    let host = net.host(name);
    let sh = |line: &str| host.sh(line).unwrap_or_else(|e| panic!("{e}"));
    let mut text = host.run(fingerprint).expect("enters the namespace");
    text.push_str(&format!("# ip -d -o link\n{}", without_timers(&sh("ip -d -o link"))));
    for line in ["ip -o address", "ip -o rule", "tc qdisc show"] {
        text.push_str(&format!("# {line}\n{}", sh(line)));
    }
    for family in ["-4", "-6"] {
        // The order of equal entries tells nothing.
        let mut routes: Vec<String> =
            sh(&format!("ip {family} route show table all")).lines().map(str::to_owned).collect();
        routes.sort();
        text.push_str(&format!("# ip {family} route\n{}\n", routes.join("\n")));
    }
    for nic in nics(host) {
        for (side, point) in POINTS {
            let filters = sh(&format!("tc filter show dev {nic} {side}"));
            let programs = host.run(|| tcx_programs(&nic, point)).expect("enters the namespace").len();
            text.push_str(&format!("# {nic} {side}: {programs} tcx programs, filters:\n{filters}"));
        }
    }
    text.push_str(&host.run(sysctls).expect("enters the namespace"));
    let files =
        fs::read_dir(host.state_dir()).map(|dir| dir.flatten().map(|e| e.file_name()).collect::<Vec<_>>());
    text.push_str(&format!("# state files {:?}\n", files.unwrap_or_default()));
    text
}

/// Waits until a host is again as `before` ([`state`]); shows the lines that differ when it does not get there.
///
/// # Panics
/// When it does not get there.
#[track_caller]
pub fn as_it_was(net: &Net, name: &str, before: &str) {
    let differences = || {
        let now = state(net, name);
        let only = |a: &str, b: &str, mark: &str| -> Vec<String> {
            a.lines()
                .filter(|line| !b.lines().any(|l| l == *line))
                .map(|line| format!("{mark} {line}"))
                .collect()
        };
        let mut lines = only(before, &now, "-");
        lines.extend(only(&now, before, "+"));
        if lines.is_empty() && now != before {
            lines.push(format!("the order differs:\n{before}\n{now}"));
        }
        lines
    };
    wait_until(crate::SOON, "the machine to be as it was", differences, Vec::is_empty)
        .unwrap_or_else(|error| panic!("host {name}: {}", error.cause.replace("\", \"", "\n")));
}

/// Waits until every running interface of a host has its link-local address, proven, and returns the [`state`] then. Those
/// without ARP (what cuts buffers of UDP) have none.
///
/// # Panics
/// When they are not proven in time.
#[track_caller]
pub fn settled(net: &Net, name: &str) -> String {
    let host = net.host(name);
    let unproven = || {
        let proven = host.sh("ip -6 -o address show scope link -tentative").expect("runs");
        let has_one = |line: &str| {
            let nic = line.split([' ', '@']).next().unwrap_or_default();
            proven.lines().any(|address| address.split_whitespace().nth(1) == Some(nic))
        };
        let links = host.sh("ip -br link show nomaster up").expect("runs");
        let others = ["LOOPBACK", "NOARP"];
        let running = links.lines().filter(|line| line.contains("LOWER_UP"));
        let running = running.filter(|line| !others.iter().any(|flag| line.contains(flag)));
        running.filter(|line| !has_one(line)).map(str::to_owned).collect::<Vec<_>>()
    };
    wait_until(crate::SOON, "link-local addresses", unproven, Vec::is_empty)
        .unwrap_or_else(|e| panic!("{e}"));
    state(net, name)
}

/// The names of all interfaces of a host.
fn nics(host: Host<'_>) -> Vec<String> {
    let text = host.sh("ip -br link").expect("runs");
    let name = |line: &str| line.split([' ', '@']).next().unwrap_or_default().to_owned();
    text.lines().map(name).collect()
}

/// The numbers of all BPF programs on interfaces of a host, by which the kernel lists them.
///
/// # Panics
/// When something can't be read.
#[track_caller]
pub fn programs(net: &Net, name: &str) -> Vec<u32> {
    let host = net.host(name);
    let mut all = Vec::new();
    for nic in nics(host) {
        for (side, point) in POINTS {
            all.extend(host.run(|| tcx_programs(&nic, point)).expect("enters the namespace"));
            // A filter is one line: ... direct-action not_in_hw id 27 name lb_egress tag ...
            let filters =
                host.sh(&format!("tc filter show dev {nic} {side}")).unwrap_or_else(|e| panic!("{e}"));
            let words: Vec<&str> = filters.split_whitespace().collect();
            all.extend(
                words.windows(2).filter(|two| two[0] == "id").filter_map(|two| two[1].parse::<u32>().ok()),
            );
        }
    }
    all
}

/// Whether the kernel has a program of this number.
pub fn has_program(id: u32) -> bool {
    let mut next = 0;
    // SAFETY: `next` outlives the call.
    let failed = unsafe { libbpf_sys::bpf_prog_get_next_id(id - 1, &mut next) };
    failed == 0 && next == id
}

/// The BPF programs on a tcx hook of an interface, by number; none where the kernel has no such hook. `bpftool` of Debian 12 does
/// not tell.
fn tcx_programs(interface: &str, point: libbpf_sys::bpf_attach_type) -> Vec<u32> {
    let mut ids = vec![0; TCX_MAX];
    let mut query = libbpf_sys::bpf_prog_query_opts {
        sz: size_of::<libbpf_sys::bpf_prog_query_opts>() as libbpf_sys::size_t,
        prog_ids: ids.as_mut_ptr(),
        ..Default::default()
    };
    query.__bindgen_anon_1.count = TCX_MAX as u32;
    let Ok(index) = nix::net::if_::if_nametoindex(interface) else { return Vec::new() };
    // SAFETY: `query` is complete, with its own size; `ids` has room for the number that it names, and outlives the call.
    let failed = unsafe { libbpf_sys::bpf_prog_query_opts(index.cast_signed(), point, &mut query) };
    // SAFETY: the union's other name for the field is of the same type.
    ids.truncate(if failed == 0 { unsafe { query.__bindgen_anon_1.count as usize } } else { 0 });
    ids
}

/// Bridges show timers that run.
fn without_timers(text: &str) -> String {
    let line = |line: &str| {
        let mut words = line.split_whitespace();
        let mut kept = Vec::new();
        while let Some(word) = words.next() {
            match word.ends_with("_timer") {
                true => drop(words.next()),
                false => kept.push(word),
            }
        }
        kept.join(" ") + "\n"
    };
    text.lines().map(line).collect()
}

fn fingerprint() -> String {
    let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build().expect("a runtime");
    runtime.block_on(async { Netlink::new().expect("netlink").fingerprint().await.expect("a fingerprint") })
}

/// Every per-interface setting of both families.
fn sysctls() -> String {
    let mut lines = Vec::new();
    for family in ["ipv4", "ipv6"] {
        let Ok(folders) = fs::read_dir(format!("/proc/sys/net/{family}/conf")) else { continue };
        for file in folders.flatten().flat_map(|folder| fs::read_dir(folder.path())).flatten().flatten() {
            // A few cannot be read before they are set.
            let value = fs::read_to_string(file.path()).unwrap_or_default();
            lines.push(format!("{} = {}\n", file.path().display(), value.trim()));
        }
    }
    lines.sort();
    lines.concat()
}
