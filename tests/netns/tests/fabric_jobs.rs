//! What takes long of a fabric holds nobody up, and is done whole or not at all.

use linkbraid_api::EventKind;
use linkbraid_lab::{Topology, wait_for, wait_until};
use linkbraid_netns_tests::{BOND, Net, SOON, Said, check_hint};
use nix::{
    fcntl::{FcntlArg, fcntl},
    libc,
    sys::signal::{Signal, kill},
};
use std::{
    fs::{self, File},
    path::{Path, PathBuf},
    thread,
    time::{Duration, Instant},
};

/// Slow probes: what is lost here is not lost because this machine is busy.
const PROBES: &str = "--probe-interval 500ms --probe-multiplier 3";
/// Longer than a peer waits for those.
const HELD: Duration = Duration::from_secs(4);

/// A fabric's file that nobody is in, and how a node joins it.
fn abandoned(net: &Net) -> (PathBuf, String) {
    let file = net.lab().folder().join("shm");
    let transport = format!("shm:{}", file.display());
    net.ok("b", &format!("fabric add fab0 --node 1 --nodes 2 --transport {transport}"));
    net.kill("b");
    net.host("b").sh("ip link del fab0").expect("deletes");
    net.start("b", &[]);
    (file, transport)
}

/// Locks the file as a node does that makes it or removes it: whoever joins has to wait.
fn lock(path: &Path) -> File {
    let file = File::options().read(true).write(true).open(path).expect("opens");
    let whole = libc::flock {
        l_type: libc::F_WRLCK as libc::c_short,
        l_whence: libc::SEEK_SET as libc::c_short,
        l_start: 0,
        l_len: 1,
        l_pid: 0,
    };
    fcntl(&file, FcntlArg::F_OFD_SETLK(&whole)).expect("nobody has it");
    file
}

/// Waits until the words of a command have these in them.
#[track_caller]
fn wait_words(net: &Net, name: &str, line: &str, words: &str) -> Said {
    let look = || net.say(name, line);
    let has = |said: &Said| said.out.contains(words) || said.err.contains(words);
    wait_until(SOON, words, look, has).unwrap_or_else(|error| panic!("{name}: {error}"))
}

fn interfaces(net: &Net, name: &str) -> String {
    net.host(name).sh("ip -o link").expect("lists")
}

/// Sends a signal to the daemon of a host.
fn signal(net: &Net, name: &str, signal: Signal) {
    kill(net.pid(name), signal).expect("it runs");
}

#[test]
fn a_fabric_that_takes_long_holds_no_bond_up() {
    let net = Net::up(Topology::symmetric(2, 1, None));
    ["a", "b"].iter().for_each(|name| net.start(name, &[]));
    let (file, transport) = abandoned(&net);
    for name in ["a", "b"] {
        net.ok(name, &format!("bond add {BOND} --member eth0 {PROBES}"));
    }
    net.wait_tables(&["a", "b"]);
    let up = || net.lanes("b").into_iter().filter(|lane| lane.peer_mac.is_some()).collect::<Vec<_>>();
    let all_up = |lanes: &Vec<linkbraid_api::LaneRecord>| {
        !lanes.is_empty() && lanes.iter().all(|lane| lane.state == "up")
    };
    wait_until(SOON, "the lane", up, all_up).unwrap_or_else(|error| panic!("{error}"));
    let told = net.show("b").events.len();
    let held = lock(&file);
    let add = format!("fabric add fab0 --node 0 --nodes 2 --transport {transport}");
    thread::scope(|scope| {
        let adding = scope.spawn(|| net.say("a", &add));
        let said = wait_words(&net, "a", "fabric del fab0", "it is being added");
        check_hint(net.host("a"), &said.refused(1, "fab0: no such fabric: it is being added"));
        let said = net.say("a", &add);
        check_hint(net.host("a"), &said.refused(1, "fab0: cannot add the fabric: it is being added"));
        let said = net.say("a", &add.replace("fab0", "fab1"));
        let cause = format!("'fab0' is node 0 of {transport} already");
        said.refused(1, &format!("fab1: cannot add the fabric: {cause}"));
        let begin = Instant::now();
        while begin.elapsed() < HELD {
            let lanes = up();
            assert!(all_up(&lanes), "{lanes:?}");
            net.ok("a", "show");
        }
        assert!(!adding.is_finished() && !interfaces(&net, "a").contains("fab0"));
        drop(held);
        let said = adding.join().expect("says something");
        assert_eq!(said.code, 0, "{said:?}");
    });
    assert!(net.ok("a", "fabric show").starts_with("fab0: "));
    // As much memory as takes a while to reserve and to free.
    let large = PathBuf::from(format!("/dev/shm/linkbraid-test-{}", std::process::id()));
    net.ok(
        "a",
        &format!("fabric add fab1 --node 0 --nodes 24 --transport shm:{},ring=256k", large.display()),
    );
    assert!(fs::metadata(&large).expect("it is there").len() > 100_000_000);
    net.ok("a", "fabric del fab1");
    assert!(!large.exists() && !interfaces(&net, "a").contains("fab1"), "the answer comes when it is gone");
    net.ok("a", "fabric del fab0");
    let events = net.show("b").events;
    let lost: Vec<_> = events.iter().skip(told).filter(|event| event.kind == EventKind::Lane).collect();
    assert!(lost.is_empty(), "{lost:?}");
}

#[test]
fn a_daemon_that_stops_leaves_no_half_of_what_it_adds() {
    let net = Net::up(Topology::symmetric(2, 1, None));
    ["a", "b"].iter().for_each(|name| net.start(name, &[]));
    let (file, transport) = abandoned(&net);
    let held = lock(&file);
    thread::scope(|scope| {
        let add = || net.say("a", &format!("fabric add fab0 --node 0 --nodes 2 --transport {transport}"));
        let adding = scope.spawn(add);
        wait_words(&net, "a", "fabric del fab0", "it is being added");
        net.stop("a");
        let said = adding.join().expect("says something");
        assert!(said.code == 1 && said.err.contains("the daemon is stopping"), "{said:?}");
    });
    drop(held);
    assert!(!interfaces(&net, "a").contains("fab0"));
    net.start("a", &[]);
    assert_eq!(net.ok("a", "fabric show"), "no fabrics\n");
    net.ok("a", &format!("fabric add fab0 --node 0 --nodes 2 --transport {transport}"));
}

#[test]
fn a_fabric_that_takes_long_to_come_back_can_be_deleted_meanwhile() {
    let net = Net::up(Topology::symmetric(1, 1, None));
    net.start("a", &[]);
    let file = net.lab().folder().join("shm");
    net.ok("a", &format!("fabric add fab0 --node 0 --nodes 2 --transport shm:{}", file.display()));
    net.kill("a");
    let held = lock(&file);
    net.start("a", &[]);
    wait_words(&net, "a", "fabric show fab0", "fab0: down, node 0, 0 of 1 other node up: fab0: not ready");
    let said = net.say("a", "fabric set fab0 --nodes 3");
    let error = "fab0: cannot change the fabric: it is taking its place on the transport just now";
    check_hint(net.host("a"), &said.refused(1, error));
    net.ok("a", "fabric set fab0 --mtu 9000");
    thread::scope(|scope| {
        let deleting = scope.spawn(|| net.say("a", "fabric del fab0"));
        wait_words(&net, "a", "fabric show", "no fabrics");
        wait_words(&net, "a", "fabric del fab0", "it is being deleted");
        assert!(!deleting.is_finished());
        drop(held);
        let said = deleting.join().expect("says something");
        assert_eq!(said.code, 0, "{said:?}");
    });
    assert!(!interfaces(&net, "a").contains("fab0") && !file.exists());
    net.ok("a", &format!("fabric add fab0 --node 0 --nodes 2 --transport shm:{}", file.display()));
}

#[test]
fn fabrics_that_swap_their_names_are_both_kept() {
    let net = Net::up(Topology::symmetric(1, 1, None));
    net.start("a", &[]);
    let a = net.host("a");
    for number in 0..3 {
        let file = net.lab().folder().join(format!("shm{number}"));
        let transport = format!("shm:{}", file.display());
        net.ok("a", &format!("fabric add fab{number} --node 0 --nodes 2 --transport {transport}"));
    }
    let turn = || {
        // Each one has the name of the next one, before any news of it is read.
        for (from, to) in [("fab0", "fabx"), ("fab2", "fab0"), ("fab1", "fab2"), ("fabx", "fab1")] {
            for line in [format!("down name {to}"), "up".to_owned()] {
                let name = if line == "up" { to } else { from };
                a.sh(&format!("ip link set {name} {line}")).unwrap_or_else(|error| panic!("{error}"));
            }
        }
    };
    // By name, which file each has.
    let expect = |shown: &[usize; 3]| {
        let line = |(name, file): (usize, &usize)| format!("\"fab{name}\":\"shm{file}\"");
        let wanted: Vec<String> = shown.iter().enumerate().map(line).collect();
        let look = || {
            let text = net.ok("a", "fabric show --json");
            let all: Vec<linkbraid_api::FabricRecord> = serde_json::from_str(&text).expect("records");
            all.iter()
                .map(|one| {
                    let file = one.transport.rsplit('/').next().unwrap_or_default();
                    format!("\"{}\":\"{file}\"", one.name)
                })
                .collect::<Vec<_>>()
        };
        wait_until(SOON, "all three", look, |now| *now == wanted).unwrap_or_else(|error| panic!("{error}"));
        let files = || {
            let all = fs::read_dir(a.state_dir()).expect("reads").flatten();
            all.filter(|entry| entry.path().extension().is_some_and(|word| word == "fabric")).count()
        };
        wait_for(SOON, "their files", || if files() == 3 { Ok(()) } else { Err(files()) })
            .unwrap_or_else(|error| panic!("{error}"));
    };
    signal(&net, "a", Signal::SIGSTOP);
    turn();
    signal(&net, "a", Signal::SIGCONT);
    expect(&[2, 0, 1]);
    turn();
    expect(&[1, 2, 0]);
    // The same while no daemon runs.
    net.kill("a");
    turn();
    net.start("a", &[]);
    expect(&[0, 1, 2]);
    net.kill("a");
    net.start("a", &[]);
    expect(&[0, 1, 2]);
    for name in ["fab0", "fab1", "fab2"] {
        net.ok("a", &format!("fabric del {name}"));
    }
    assert!(!interfaces(&net, "a").contains("fab"));
}
