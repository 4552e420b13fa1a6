//! What a daemon may do after its start, however it was started.

use linkbraid_lab::Topology;
use linkbraid_netns_tests::{BOND, Net, machine, until};
use std::{fs, path::Path};

/// Bits of `CAP_NET_ADMIN`, `CAP_NET_RAW`, `CAP_IPC_LOCK`, `CAP_PERFMON` and `CAP_BPF` (linux/capability.h).
const DAEMON: u64 = 1 << 12 | 1 << 13 | 1 << 14 | 1 << 38 | 1 << 39;
/// `CAP_SYS_ADMIN`, which the process beside it has.
const SYS_ADMIN: u64 = 1 << 21;

/// A line of `/proc/PID/status`.
fn value(process: &Path, name: &str) -> String {
    let status = fs::read_to_string(process.join("status")).expect("it runs");
    let line = status.lines().find_map(|line| line.strip_prefix(name)?.strip_prefix(':'));
    line.expect("it is there").trim().to_owned()
}

fn capabilities(process: &Path, name: &str) -> u64 {
    u64::from_str_radix(&value(process, name), 16).expect("a number")
}

#[test]
fn a_daemon_gives_up_all_rights_but_those_that_it_needs() {
    let net = Net::up(Topology::symmetric(2, 2, None));
    let before = machine::settled(&net, "a");
    net.start("a", &[]);
    let check = net.ok("a", "check");
    assert!(check.contains("bridge, eBPF"), "the trial needs more: {check}");
    net.ok("a", &format!("bond add {BOND} --member eth0,eth1"));
    let daemon = Path::new("/proc").join(net.pid("a").to_string());
    let threads: Vec<_> = fs::read_dir(daemon.join("task")).expect("it runs").flatten().collect();
    assert!(threads.len() > 2, "{threads:?}");
    let mut children = String::new();
    for thread in threads.iter().map(fs::DirEntry::path) {
        for name in ["CapEff", "CapPrm"] {
            let has = capabilities(&thread, name);
            assert_eq!(has & !DAEMON, 0, "{}: {name} {has:x}", value(&thread, "Name"));
        }
        assert_eq!((capabilities(&thread, "CapInh"), value(&thread, "NoNewPrivs").as_str()), (0, "1"));
        children += &fs::read_to_string(thread.join("children")).expect("it runs");
    }
    // One child, which has what it takes to find programs, hears nobody else and ends with the daemon.
    let helper = Path::new("/proc").join(children.trim());
    assert_eq!(value(&helper, "Name"), "lb-helper");
    assert_ne!(capabilities(&helper, "CapEff") & SYS_ADMIN, 0);
    assert_eq!(capabilities(&helper, "CapEff") & 1 << 13, 0, "no packets");
    net.kill("a");
    until("the daemon's helper to end", || helper.exists(), |runs| !runs);
    net.start("a", &[]);
    assert_eq!(net.show("a").members.len(), 2);
    net.ok("a", &format!("bond del {BOND}"));
    machine::as_it_was(&net, "a", &before);
}
