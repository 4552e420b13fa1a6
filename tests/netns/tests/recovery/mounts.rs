//! What the next daemon finds of the one before: in a mount namespace of its own, where whatever a daemon mounts is gone with it, and
//! without the right to look for it.

use super::{sh, until, wait_proven};
use linkbraid_api::FindingRecord;
use linkbraid_lab::{Topology, flow::Datagrams};
use linkbraid_netns_tests::{BOND, Net, SOON, machine};

/// Datagrams a second, each way.
const RATE: u32 = 10_000;
pub const HOSTS: [&str; 2] = ["a", "b"];

/// Starts a daemon as `ip netns exec` does, which mounts `/sys` anew for the command alone.
fn start_apart(net: &Net, name: &str, options: &[&str]) {
    let namespace = net.host(name).netns().name().to_owned();
    net.start_behind(name, &["ip", "netns", "exec", &namespace], options);
}

/// Numbered datagrams from a to b and from b to a.
pub struct Both([Datagrams; 2]);

impl Both {
    pub fn start(net: &Net) -> Self {
        let [a, b] = HOSTS.map(|name| net.host(name));
        Self([(a, b), (b, a)].map(|(from, to)| Datagrams::flow(from, to, RATE).expect("flows")))
    }

    /// Waits until many more have left.
    pub fn more(&self) {
        for flow in &self.0 {
            let enough = flow.mark()[0] + u64::from(RATE) / 2;
            until("datagrams to leave", || flow.mark()[0], |sent| *sent >= enough);
        }
    }

    /// Each came once.
    pub fn end(self) {
        for flow in self.0 {
            let record = flow.stop().expect("ends");
            let count = record.way(0, 1).count(|_| true);
            assert_eq!((count.lost - count.refused, count.duplicated), (0, 0), "{count:?}");
        }
    }
}

#[track_caller]
pub fn wait_bonds(net: &Net) {
    net.wait_tables(&HOSTS);
    HOSTS.iter().for_each(|name| wait_proven(net, name, 4));
}

fn nothing_is_lost(options: &[&str]) {
    let net = Net::up(Topology::symmetric(2, 2, None));
    let before = machine::settled(&net, "a");
    for name in HOSTS {
        start_apart(&net, name, options);
        net.ok(name, &format!("bond add {BOND} --member eth0,eth1"));
    }
    wait_bonds(&net);
    let flows = Both::start(&net);
    flows.more();
    for _ in 0..2 {
        HOSTS.iter().for_each(|name| net.kill(name));
        flows.more();
        HOSTS.iter().for_each(|name| start_apart(&net, name, options));
        wait_bonds(&net);
        flows.more();
    }
    flows.end();
    let programs = machine::programs(&net, "a");
    assert_eq!(programs.len(), 6, "two for each member, and those of the bond and its internal port");
    net.ok("a", &format!("bond del {BOND}"));
    net.stop("a");
    machine::as_it_was(&net, "a", &before);
    let left = || programs.iter().filter(|id| machine::has_program(**id)).count();
    until("the programs to be freed", left, |left| *left == 0);
}

#[test]
fn daemons_that_are_killed_lose_nothing() {
    nothing_is_lost(&[]);
}

#[test]
fn daemons_that_are_killed_lose_nothing_on_clsact() {
    nothing_is_lost(&["--hook", "clsact"]);
}

#[test]
fn a_daemon_that_may_not_look_for_programs_says_so_and_breaks_nothing() {
    const LESS: &[&str] = &["setpriv", "--bounding-set", "-sys_admin"];
    const CAUSE: &str = "needs CAP_SYS_ADMIN, by which BPF programs and maps are found";
    let net = Net::up(Topology::symmetric(2, 2, None));
    let before = machine::settled(&net, "a");
    net.start_behind("a", LESS, &[]);
    let said = until("the daemon to be ready", || net.log("a"), |log| log.contains("ready"));
    assert!(said.contains(&format!("daemon: a later daemon cannot take the bonds over: {CAUSE}")), "{said}");
    assert!(said.contains("sudo linkbraid daemon"), "{said}");
    // All that needs no looking works: nothing is left of a bond that came and went.
    net.ok("a", &format!("bond add {BOND} --member eth0,eth1"));
    net.ok("a", &format!("bond del {BOND}"));
    machine::as_it_was(&net, "a", &before);
    net.start("b", &[]);
    for name in HOSTS {
        net.ok(name, &format!("bond add {BOND} --member eth0,eth1"));
    }
    wait_bonds(&net);
    let check: Vec<FindingRecord> = serde_json::from_str(&net.say("a", "check --json").out).expect("records");
    let found = check.iter().find(|finding| finding.name == "restart").expect("is told");
    assert_eq!(found.text, format!("a later daemon cannot take the bonds over: {CAUSE}"));
    assert_eq!(found.hint.as_deref(), Some("sudo linkbraid daemon"));

    let flows = Both::start(&net);
    flows.more();
    net.kill("a");
    net.start_behind("a", LESS, &[]);
    let said = || net.log("a");
    until("the bond to be left alone", said, |log| log.contains("it continues as it is"));
    assert!(
        net.log("a").contains(&format!("{BOND}: cannot load the data path: {CAUSE}")),
        "{}",
        net.log("a")
    );
    assert_eq!(net.ok("a", "show --json").trim(), "[]");
    flows.more();
    net.kill("a");
    net.start("a", &[]);
    wait_bonds(&net);
    flows.more();
    flows.end();
    let check = net.ok("a", "check");
    assert!(check.contains("restarts without loss"), "{check}");
    sh(net.host("a"), &format!("ping -c 1 -W {} {}", SOON.as_secs(), net.host("b").ipv4()));
}
