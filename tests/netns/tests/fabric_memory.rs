//! What somebody does to the shared memory of a fabric from outside ends that fabric at most, is said, and is over when the
//! memory is.

use crate::nodes::Nodes;
use linkbraid_api::{EventKind, NodeState};
use linkbraid_lab::{iperf, wait_for, wait_until};
use linkbraid_netns_tests::{BOND, SOON, check_hint, flow::Flow};
use nix::{
    sys::signal::{Signal, kill},
    unistd::{Pid, Uid, chown},
};
use std::{
    fs::{self, File, Permissions},
    os::unix::fs::{FileExt, MetadataExt, PermissionsExt},
    path::{Path, PathBuf},
};

fn memory(nodes: &Nodes) -> PathBuf {
    nodes.net.lab().folder().join("shm")
}

fn daemon(nodes: &Nodes, node: usize) -> Pid {
    nodes.net.pid(&nodes.names[node])
}

/// What a daemon counts of the ends of its fabric.
fn ends(nodes: &Nodes, node: usize, name: &str) -> u64 {
    let counters = nodes.stats(node).counters;
    let found = counters.iter().find(|counter| counter.name == name);
    found.unwrap_or_else(|| panic!("no counter '{name}' in {counters:?}")).frames
}

/// Waits until a node says of its fabric that this happened to it.
#[track_caller]
fn wait_event(nodes: &Nodes, node: usize, reason: &str) {
    let said = || nodes.show(node).events;
    let has = |events: &Vec<linkbraid_api::EventRecord>| {
        events.iter().any(|event| event.kind == EventKind::Fabric && event.reason == reason)
    };
    wait_until(SOON, reason, said, has).unwrap_or_else(|error| panic!("node {node}: {error}"));
}

#[track_caller]
fn cut(path: &Path, len: u64) {
    File::options().write(true).open(path).expect("opens").set_len(len).expect("shrinks");
}

#[test]
fn memory_cut_short_under_load_ends_its_fabric_and_nothing_else() {
    let nodes = Nodes::up(2, "shm", "");
    let net = &nodes.net;
    let (file, other) = (memory(&nodes), net.lab().folder().join("other"));
    for (node, name) in nodes.names.iter().enumerate() {
        net.ok(name, &format!("bond add {BOND} --member eth0"));
        let add = format!("fabric add fab1 --node {node} --nodes 2 --transport shm:{}", other.display());
        net.ok(name, &add);
        net.host(name).sh(&format!("ip addr add 198.19.1.{}/24 dev fab1", node + 1)).expect("adds");
    }
    net.wait_tables(&[&nodes.names[0], &nodes.names[1]]);
    let [a, b] = [net.host(&nodes.names[0]), net.host(&nodes.names[1])];
    a.wait_ping("198.19.1.2", SOON).expect("the other fabric");
    let daemons = [daemon(&nodes, 0), daemon(&nodes, 1)];
    let before = [nodes.show(0).epoch, nodes.show(1).epoch];
    let load = iperf::Traffic::tcp(iperf::Cc::Cubic, 2).to(&Nodes::ip(1));
    let load = iperf::start(a, b, &load).expect("starts");
    let sent = nodes.show(0).peers[0].tx_bytes;
    wait_until(SOON, "load", || nodes.show(0).peers[0].tx_bytes, |now| *now > sent + 10_000_000)
        .unwrap_or_else(|error| panic!("{error}"));
    let others = [
        Flow::start(net, &nodes.names[0], &nodes.names[1]),
        Flow::between([(a, "198.19.1.1"), (b, "198.19.1.2")]),
    ];
    others.iter().for_each(|flow| flow.wait_received(20));
    cut(&file, 0);
    for node in 0..2 {
        wait_event(&nodes, node, "memory_cut");
        assert!(ends(&nodes, node, "end_memory_cut") >= 1);
    }
    // The last one that left it removed it, and they met in another one.
    nodes.wait_up();
    nodes.ping_all();
    assert_eq!(daemons, [daemon(&nodes, 0), daemon(&nodes, 1)], "nobody died");
    assert!((0..2).all(|node| nodes.show(node).epoch != before[node]));
    assert!(net.log(&nodes.names[0]).contains("its shared memory was truncated"));
    load.finish().expect("a connection lives as long");
    for flow in others {
        flow.loses_nothing_more();
        assert_eq!(flow.end(), (0, 0), "lost and repeated elsewhere");
    }
    // What an administrator may do instead.
    for (node, name) in nodes.names.iter().enumerate() {
        net.ok(name, "fabric del fab0");
        assert_eq!(file.exists(), node == 0);
    }
    nodes.add("shm", "");
    nodes.wait_up();
    nodes.ping_all();
}

#[test]
fn memory_cut_short_that_somebody_keeps_is_said_and_the_fabric_can_be_deleted() {
    let nodes = Nodes::up(2, "shm", "");
    let net = &nodes.net;
    let (a, file) = (&nodes.names[0], memory(&nodes));
    // Whoever does not run cannot leave.
    let other = daemon(&nodes, 1);
    kill(other, Signal::SIGSTOP).expect("it runs");
    cut(&file, 0);
    wait_event(&nodes, 0, "memory_cut");
    let said = || net.ok(a, "fabric show fab0");
    let why =
        format!("shm:{}: cannot join: the file has 0 bytes and is not that of a fabric", file.display());
    let line = format!("fab0: down, node 0, 0 of 1 other node up: {why}\n");
    wait_until(SOON, &why, said, |text| text.starts_with(&line)).unwrap_or_else(|error| panic!("{error}"));
    assert!(net.host(a).sh("ip -o link show fab0").expect("it is kept").contains("NO-CARRIER"));
    assert_eq!(ends(&nodes, 0, "end_memory_cut"), 1);
    net.ok(a, "fabric del fab0");
    let add = format!("fabric add fab0 --node 0 --nodes 2 --transport shm:{}", file.display());
    net.say(a, &add).refused(1, &why);
    assert!(!net.host(a).sh("ip -o link").expect("lists").contains("fab0"), "nothing is left");
    kill(other, Signal::SIGCONT).expect("it is there");
    wait_event(&nodes, 1, "memory_cut");
    wait_for(SOON, "the end of the file", || match fs::metadata(&file) {
        Ok(found) if found.len() == 0 => Err("it is there"),
        _ => Ok(()),
    })
    .unwrap_or_else(|error| panic!("{error}"));
    net.ok(a, &add);
    nodes.wait_up();
}

#[test]
fn nodes_whose_memory_was_removed_meet_again() {
    let nodes = Nodes::up(3, "shm", "");
    let net = &nodes.net;
    let file = memory(&nodes);
    let inode = || fs::metadata(&file).map(|found| found.ino());
    let (first, daemons) = (inode().expect("there"), [0, 1].map(|node| daemon(&nodes, node)));
    // One that comes back makes another one: the others must not stay where they are.
    net.kill(&nodes.names[2]);
    let wakes = format!("{}.", file.display());
    for entry in fs::read_dir(net.lab().folder()).expect("reads").flatten() {
        let path = entry.path();
        if path == file || path.to_str().is_some_and(|path| path.starts_with(&wakes)) {
            fs::remove_file(path).expect("removes");
        }
    }
    net.start(&nodes.names[2], &[]);
    for node in 0..2 {
        wait_event(&nodes, node, "memory_removed");
    }
    nodes.wait_up();
    nodes.ping_all();
    assert_eq!(daemons, [0, 1].map(|node| daemon(&nodes, node)), "no daemon was started again");
    assert_ne!(inode().expect("made again"), first);
    for node in 0..2 {
        assert_eq!(ends(&nodes, node, "end_memory_removed"), 1, "node {node}");
        let moved = nodes.show(node).events.into_iter().filter(|event| event.reason == "anew").count();
        assert_eq!(moved, 1, "node {node}");
    }
    // The same where somebody puts another file in its place, here an empty one: nobody can use that, and it stays.
    let empty = net.lab().folder().join("empty");
    File::create_new(&empty).expect("makes");
    fs::set_permissions(&empty, Permissions::from_mode(0o600)).expect("sets");
    fs::rename(&empty, &file).expect("replaces");
    for node in 0..3 {
        let down = || nodes.show(node).reason;
        wait_until(SOON, "a refusal", down, |why| {
            why.contains("the file has 0 bytes and is not that of a fabric")
        })
        .unwrap_or_else(|error| panic!("node {node}: {error}"));
        let link = net.host(&nodes.names[node]).sh("ip -o link show fab0").expect("the kernel keeps it");
        assert!(link.contains("NO-CARRIER"), "{link}");
    }
    fs::remove_file(&file).expect("removes");
    nodes.wait_up();
    nodes.ping_all();
    for name in &nodes.names {
        net.ok(name, "fabric del fab0");
    }
    assert!(!file.exists(), "the last one leaves nothing");
}

#[test]
fn a_file_that_is_no_memory_of_this_user_and_version_is_refused_and_left_alone() {
    let nodes = Nodes::hosts(1);
    let (net, name, file) = (&nodes.net, &nodes.names[0], memory(&nodes));
    let transport = nodes.transport("shm");
    let add = format!("fabric add fab0 --node 0 --nodes 2 --transport {transport}");
    net.ok(name, &add);
    let good = fs::read(&file).expect("reads");
    net.ok(name, "fabric del fab0");
    let header = u64::from_ne_bytes(good[40..48].try_into().expect("eight bytes"));
    assert_eq!(header, good.len() as u64, "the layout of the header is what this test knows");
    let mut version = good.clone();
    version[8..16].copy_from_slice(&9_u64.to_ne_bytes());
    let half = good[..good.len() / 2].to_vec();
    let long = [&good[..], &[0; 4096]].concat();
    let sizes = |bytes: usize| format!("the file has {bytes} bytes, its header says {}", good.len());
    let strange = Uid::from_raw(65_534);
    let cases = [
        (version, 0o600, Uid::from_raw(0), "the file is of version 9, this is version 1".to_owned()),
        (half.clone(), 0o600, Uid::from_raw(0), sizes(half.len())),
        (long.clone(), 0o600, Uid::from_raw(0), sizes(long.len())),
        (
            vec![0; 100],
            0o600,
            Uid::from_raw(0),
            "the file has 100 bytes and is not that of a fabric".to_owned(),
        ),
        // Else the daemon, which has no right to open what is another user's, gets no further.
        (good.clone(), 0o666, strange, "the file belongs to user 65534, this is user 0".to_owned()),
        (good.clone(), 0o660, Uid::from_raw(0), "others may write to the file (mode 660)".to_owned()),
    ];
    for (bytes, mode, owner, cause) in cases {
        let made = File::create_new(&file).expect("makes");
        made.write_all_at(&bytes, 0).expect("writes");
        made.set_permissions(Permissions::from_mode(mode)).expect("sets");
        chown(&file, Some(owner), None).expect("root may");
        let hint = net.say(name, &add).refused(1, &format!("{transport}: cannot join: {cause}"));
        let links = net.host(name).sh("ip -o link").expect("lists");
        assert!(!links.contains("fab0"), "{cause}: {links}");
        assert_eq!(net.ok(name, "fabric show"), "no fabrics\n", "{cause}");
        assert!(fs::read(&file).expect("it is there") == bytes, "{cause}: it is left alone");
        let beside = fs::read_dir(net.lab().folder()).expect("reads").flatten();
        let wakes = beside.filter(|entry| entry.file_name().to_string_lossy().starts_with("shm.")).count();
        assert_eq!(wakes, 0, "{cause}");
        let saved = fs::read_dir(net.host(name).state_dir()).expect("reads").flatten();
        let saved = saved.filter(|entry| entry.file_name().to_string_lossy().ends_with(".fabric")).count();
        assert_eq!(saved, 0, "{cause}");
        check_hint(net.host(name), &hint);
        assert_eq!(nodes.show(0).peers[0].state, NodeState::Down);
        net.ok(name, "fabric del fab0");
        fs::remove_file(&file).expect("removes");
    }
}
