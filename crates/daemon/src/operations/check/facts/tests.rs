use super::{Bond, Member, chosen, interfaces, split};
use crate::{io::manager::Roots, operations::check::interface::Interface};
use linkbraid_link::{MacAddr, Netlink};
use nix::{sched::CloneFlags, unistd::geteuid};
use std::{collections::BTreeMap, process::Command};

/// Runs `test` in a network namespace of its own, in which these `ip` commands were run.
fn in_namespace<F: Future<Output = ()>>(
    lines: &'static str,
    test: impl FnOnce(Netlink) -> F + Send + 'static,
) {
    assert!(geteuid().is_root(), "this test makes a network namespace: run it as root");
    let thread = std::thread::spawn(move || {
        nix::sched::unshare(CloneFlags::CLONE_NEWNET).unwrap();
        for line in lines.lines().map(str::trim).filter(|line| !line.is_empty()) {
            let done = Command::new("ip").args(line.split_whitespace()).status().unwrap();
            assert!(done.success(), "ip {line}");
        }
        let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build().unwrap();
        runtime.block_on(async { test(Netlink::new().unwrap()).await });
    });
    if let Err(panic) = thread.join() {
        std::panic::resume_unwind(panic);
    }
}

async fn look(netlink: &Netlink, bonds: &[Bond], named: &[&str]) -> Vec<Interface> {
    let nowhere = || "/nowhere".into();
    let roots = Roots { run: nowhere(), proc: nowhere(), dev: nowhere(), sys: nowhere() };
    let named = named.iter().map(|name| (*name).to_owned()).collect();
    interfaces(netlink, bonds, named, &roots).await.unwrap()
}

fn names(interfaces: &[Interface]) -> Vec<&str> {
    interfaces.iter().map(|interface| interface.name.as_str()).collect()
}

fn bond(index: u32, members: &[(&str, u32)]) -> Bond {
    let member = |(name, index): &(&str, u32)| Member {
        name: (*name).to_owned(),
        index: *index,
        segment: Some(0),
        weighted: false,
    };
    Bond {
        name: "bond0".into(),
        index,
        mtu: 1500,
        hook: None,
        members: members.iter().map(member).collect(),
        split: Vec::new(),
        claimed: Vec::new(),
        filtered: Vec::new(),
    }
}

#[test]
fn without_names_everything_that_could_be_a_member_is_looked_at() {
    let lines = "
        link add eth0 type veth peer name far0
        link add br0 type bridge
        link set far0 master br0
        link add link eth0 name above0 type macvlan mode passthru
    ";
    in_namespace(lines, async |netlink| {
        let all = look(&netlink, &[], &[]).await;
        assert_eq!(names(&all), ["eth0"], "no loopback, no bridge, no port of one, nothing above one");
        let named = look(&netlink, &[], &["far0", "absent0", "far0"]).await;
        assert_eq!(names(&named), ["far0", "absent0"]);
        assert_eq!(named[0].nic.as_ref().unwrap().held_by.as_deref(), Some("br0"));
        assert!(named[1].nic.is_none());
        let nic = all[0].nic.as_ref().unwrap();
        assert_eq!((nic.driver.as_deref(), nic.eee), (Some("veth"), None));
        assert_eq!(nic.same_mac, [""; 0], "what stands on it has its MAC");
    });
}

#[test]
fn bonds_stand_for_their_members() {
    let bonds = [bond(9, &[("eth1", 1), ("eth2", 2)])];
    let chosen = |named: &[&str]| chosen(&[], &bonds, named.iter().map(|name| (*name).to_owned()).collect());
    assert_eq!(chosen(&[]), ["eth1", "eth2"]);
    assert_eq!(chosen(&["eth5", "bond0", "eth2"]), ["eth5", "eth1", "eth2"]);
}

#[test]
fn addresses_routes_and_strangers_are_seen() {
    let lines = "
        link add eth0 address 02:00:00:00:00:01 type veth peer name far0
        link add eth1 address 02:00:00:00:00:01 type veth peer name far1
        link set far0 up
        link set eth0 up
        address add 198.18.0.1/24 dev eth0
        address add 198.18.3.1/24 dev eth0 valid_lft 5000 preferred_lft 4000
        route add default via 198.18.0.254
        neigh add 198.18.0.9 lladdr 02:00:00:00:00:01 dev eth0
    ";
    in_namespace(lines, async |netlink| {
        let found = look(&netlink, &[], &["eth0", "eth1"]).await;
        let [eth0, eth1] = [0, 1].map(|i| found[i].nic.as_ref().unwrap());
        assert_eq!(eth0.addresses, ["198.18.0.1/24", "198.18.3.1/24"]);
        assert!(eth0.leased && eth0.default_route && eth0.link.running());
        assert_eq!(
            (eth0.same_mac.clone(), eth1.same_mac.clone()),
            (vec!["eth1".into()], vec!["eth0".into()])
        );
        assert_eq!((eth0.elsewhere.clone(), eth1.elsewhere.len()), (vec!["198.18.0.9".into()], 0));
        assert!(eth1.addresses.is_empty() && !eth1.leased && !eth1.default_route);
    });
}

#[test]
fn a_bond_may_have_the_mac_of_its_member() {
    let lines = "
        link add eth0 address 02:00:00:00:00:01 type veth peer name far0
        link add bond0 address 02:00:00:00:00:01 type bridge
        link set eth0 master bond0
        link set bond0 up
        link add link bond0 name above0 type macvlan mode passthru
        neigh add 198.18.0.9 lladdr 02:00:00:00:00:01 dev bond0
    ";
    in_namespace(lines, async |netlink| {
        let index = async |name: &str| netlink.link(name).await.unwrap().index;
        let mut bond = bond(index("bond0").await, &[("eth0", index("eth0").await)]);
        bond.claimed = vec![
            (MacAddr([2, 0, 0, 0, 0, 1]), MacAddr([2, 0, 0, 0, 0, 7])),
            (MacAddr([2, 0, 0, 0, 0, 5]), MacAddr([2, 0, 0, 0, 0, 8])),
        ];
        bond.members[0].weighted = true;
        let found = look(&netlink, &[bond], &[]).await;
        assert_eq!((names(&found), found[0].bond.as_deref()), (vec!["eth0"], Some("bond0")));
        let nic = found[0].nic.as_ref().unwrap();
        assert_eq!((nic.held_by.as_deref(), nic.same_mac.len(), nic.weighted), (None, 0, true));
        assert_eq!(nic.elsewhere, ["198.18.0.9", "a host that sends from 02:00:00:00:00:07"]);
    });
}

#[test]
fn members_apart_that_hear_one_port_of_a_peer_are_split() {
    let member = |name: &str, segment| Member { name: name.into(), index: 1, segment, weighted: false };
    let members: BTreeMap<u8, Member> = [
        (0, member("a", Some(0))),
        (1, member("b", Some(1))),
        (2, member("c", Some(1))),
        (3, member("failed", None)),
    ]
    .into_iter()
    .collect();
    let found = |heard: &[(&str, &[u8])]| {
        split(heard.iter().map(|(peer, slots)| ((*peer).to_owned(), slots.to_vec())), &members)
    };
    assert_eq!(found(&[("p", &[0]), ("p", &[1, 2]), ("q", &[])]), [], "cables, or separate switches");
    let pair = |one: &str, other: &str| (one.to_owned(), other.to_owned(), "p".to_owned());
    assert_eq!(found(&[("p", &[2, 0]), ("q", &[0, 2, 9])]), [pair("a", "c")], "each pair once");
    assert_eq!(found(&[("p", &[0, 3])]), [], "what a failed member heard is of the past");
    assert_eq!(found(&[("p", &[0, 1, 2])]), [pair("a", "b"), pair("a", "c")]);
}
