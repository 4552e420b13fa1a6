use super::{Op, UndoLog};
use linkbraid_api::Error;
use linkbraid_link::Netlink;
use nix::{sched::CloneFlags, unistd::geteuid};
use std::{net::IpAddr, process::Command};

/// Runs one command in the namespaces of this thread; its output.
fn sh(line: &str) -> String {
    let mut words = line.split_whitespace();
    let output = Command::new(words.next().unwrap()).args(words).output().unwrap();
    assert!(output.status.success(), "{line}: {}", String::from_utf8_lossy(&output.stderr));
    String::from_utf8(output.stdout).unwrap()
}

/// The IPv4 addresses of all interfaces, in the kernel's order.
fn addresses() -> Vec<String> {
    let text = sh("ip -4 -o address show");
    text.lines().filter_map(|line| line.split_whitespace().nth(3)).map(str::to_owned).collect()
}

#[test]
fn addresses_are_taken_back_where_no_other_one_takes_the_place_of_the_first() {
    assert!(geteuid().is_root(), "this test makes a network namespace: run it as root");
    let thread = std::thread::spawn(|| {
        nix::sched::unshare(CloneFlags::CLONE_NEWNET | CloneFlags::CLONE_NEWNS).unwrap();
        for line in [
            "mount --make-rprivate /",
            "ip link add eth0 type bridge",
            "ip link set eth0 up",
            "ip address add 198.18.0.1/24 dev eth0",
            "ip address add 198.18.0.3/24 dev eth0",
            "sysctl -q net.ipv4.conf.eth0.promote_secondaries=0 net.ipv4.conf.all.promote_secondaries=0",
            // As in a container.
            "mount -o bind,ro /proc/sys /proc/sys",
        ] {
            sh(line);
        }
        let before = addresses();
        let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build().unwrap();
        runtime.block_on(async {
            let netlink = Netlink::new().unwrap();
            let ifindex = netlink.link("eth0").await.unwrap().index;
            let [old, new] = ["198.18.0.1", "198.18.0.2"].map(|ip| ip.parse::<IpAddr>().unwrap());
            let mut log = UndoLog::new(&netlink);
            for op in [Op::AddAddress(new, 24), Op::RemoveAddress(old, 24)] {
                log.carry_out(("eth0", ifindex), op).await.unwrap();
            }
            assert_eq!(addresses(), ["198.18.0.3/24", "198.18.0.2/24"]);
            let error = log.take_back(Error::new("eth0", "cannot do more", "it is a test")).await;
            assert_eq!(error.cause, "it is a test");
        });
        let mut now = addresses();
        now.sort();
        assert_eq!(now, before);
    });
    if let Err(panic) = thread.join() {
        std::panic::resume_unwind(panic);
    }
}
