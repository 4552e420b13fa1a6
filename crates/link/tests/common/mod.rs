//! A private network namespace for each test; it goes with the thread that made it.

#![allow(dead_code, reason = "each test file uses its part")]

use std::{
    process::Command,
    time::{Duration, Instant},
};

use linkbraid_link::{Kind, Netlink, PortFlags};
use nix::{sched::CloneFlags, unistd::geteuid};

/// Longest wait for a condition: IPv6 takes a second to prove an address.
const DEADLINE: Duration = Duration::from_secs(10);
/// The interface that a test may take the link-local address from.
pub const FLUSHED: &str = "bare0";
/// Time between two looks at a condition.
const POLL: Duration = Duration::from_millis(5);

/// Runs `test` in a network namespace of its own, with a connection to it.
///
/// # Panics
/// Without root: a test that cannot run has failed.
pub fn in_namespace<F: Future<Output = ()>>(test: impl FnOnce(Netlink) -> F + Send + 'static) {
    assert!(geteuid().is_root(), "this test makes a network namespace: run it as root");
    let thread = std::thread::spawn(move || {
        nix::sched::unshare(CloneFlags::CLONE_NEWNET)
            .expect("needs CAP_SYS_ADMIN to make a network namespace");
        let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build().unwrap();
        runtime.block_on(async { test(Netlink::new().unwrap()).await });
    });
    if let Err(panic) = thread.join() {
        std::panic::resume_unwind(panic);
    }
}

/// Runs one command of iproute2 in this thread's namespace; its output.
pub fn run(command: &str) -> String {
    let mut words = command.split_whitespace();
    let output = Command::new(words.next().unwrap()).args(words).output().expect("iproute2 is installed");
    assert!(output.status.success(), "{command}: {}", String::from_utf8_lossy(&output.stderr));
    String::from_utf8(output.stdout).unwrap()
}

/// Runs several commands, one a line.
pub fn script(lines: &str) {
    for line in lines.lines().map(str::trim).filter(|line| !line.is_empty()) {
        run(line);
    }
}

/// Waits until `look` gives what `wanted` accepts, and shows the last value when it does not in time.
pub async fn until<T: std::fmt::Debug, F: Future<Output = T>>(
    mut look: impl FnMut() -> F,
    wanted: impl Fn(&T) -> bool,
) -> T {
    let start = Instant::now();
    loop {
        let value = look().await;
        if wanted(&value) {
            return value;
        }
        assert!(start.elapsed() < DEADLINE, "waited in vain; last seen: {value:#?}");
        tokio::time::sleep(POLL).await;
    }
}

/// Waits until every running interface with IPv6 has its link-local address and all addresses are proven; the
/// fingerprint then.
pub async fn settled(net: &Netlink) -> String {
    let unfinished = || async {
        let mut unfinished = run("ip -6 -o address show tentative");
        for link in net.links().await.unwrap() {
            let makes_one = link.running() && !link.loopback && link.addr_gen_mode == Some(0);
            if makes_one && net.ipv6(link.index).await.unwrap() == Some(true) {
                let has = net.addresses(link.index).await.unwrap().iter().any(|address| address.automatic);
                let flushed = link.name == FLUSHED;
                if !has && !flushed {
                    unfinished.push_str(&link.name);
                }
            }
        }
        unfinished
    };
    until(unfinished, String::is_empty).await;
    net.fingerprint().await.unwrap()
}

/// Waits until the namespace is again as `before`; shows the lines that differ when it does not get there.
pub async fn as_it_was(net: &Netlink, before: &str) {
    let differences = || async {
        let now = net.fingerprint().await.unwrap();
        let lost =
            before.lines().filter(|line| !now.lines().any(|l| l == *line)).map(|line| format!("- {line}"));
        let new =
            now.lines().filter(|line| !before.lines().any(|l| l == *line)).map(|line| format!("+ {line}"));
        let mut all: Vec<String> = lost.chain(new).collect();
        if all.is_empty() && now != before {
            all.push(format!("the order differs:\n{before}\n{now}"));
        }
        all
    };
    until(differences, Vec::is_empty).await;
}

/// A pair of veths, both up and both running; the index of the first.
pub async fn cable(net: &Netlink, a: &str, b: &str) -> u32 {
    run(&format!("ip link add {a} type veth peer name {b}"));
    run(&format!("ip link set {b} up"));
    run(&format!("ip link set {a} up"));
    until(|| net.link(a), |link| link.as_ref().is_ok_and(linkbraid_link::LinkInfo::running))
        .await
        .unwrap()
        .index
}

/// A bond named `bond0` with the MAC of `member`, up; its index.
pub async fn bond_of(net: &Netlink, member: u32) -> u32 {
    let mac = net.link_by_index(member).await.unwrap().mac;
    let bond = net.create_bridge("bond0", mac, 1500).await.unwrap();
    net.set_up(bond).await.unwrap();
    bond
}

/// Makes `member` a member of `bond`, as the daemon does.
pub async fn join(net: &Netlink, member: u32, bond: u32) {
    net.set_ipv6(member, false).await.unwrap();
    net.set_master(member, bond).await.unwrap();
    net.set_port_flags(member, PortFlags::MEMBER).await.unwrap();
}

/// The kind of the error in `result`.
pub fn kind<T: std::fmt::Debug>(result: linkbraid_link::Result<T>) -> Kind {
    result.unwrap_err().kind
}
