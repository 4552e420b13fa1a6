//! The configuration file: applied by a user and by the daemon at its start.

use linkbraid_api::{ApplyRecord, FabricRecord};
use linkbraid_lab::{wait_for, wait_until};
use linkbraid_netns_tests::{BOND, Net, machine};
use std::time::{Duration, Instant};

/// How long a daemon may take until its file is applied: a bond may wait for members first.
const APPLIED: Duration = Duration::from_secs(60);

/// The file as it is must have nothing left to do.
#[track_caller]
fn is_done(net: &Net) {
    let file = net.lab().folder().join("config.toml").display().to_string();
    assert_eq!(net.ok("a", &format!("apply {file}")), "nothing to do\n");
}

fn fabric(net: &Net) -> FabricRecord {
    let text = net.ok("a", "fabric show fab0 --json");
    serde_json::from_str::<Vec<FabricRecord>>(&text).expect("records").pop().expect("one")
}

/// The number of the bond's interface: another one if it was made again.
fn index(net: &Net) -> String {
    let shown = net.host("a").sh("ip -o link show bond0").expect("shows");
    shown.split(':').next().unwrap_or_default().to_owned()
}

/// Waits until the bond has these members.
#[track_caller]
fn wait_members(net: &Net, wanted: &[&str]) {
    let now = || match net.say("a", &format!("show {BOND}")).code {
        0 => net.members("a", BOND),
        _ => Vec::new(),
    };
    wait_until(APPLIED, "the members", now, |now| now == wanted)
        .unwrap_or_else(|error| panic!("{error}\n{}", net.log("a")));
}

const WHOLE: &str = r#"
[fabric.fab0]
node = 0
nodes = 2
transport = "shm:SHM"
poll = "sleep"

[bond.bond0]
member = ["eth0", { name = "eth1", weight = 100 }, "eth2", "fab0"]
address = ["198.19.7.1/24"]
probe-interval = "20ms"

[bond.bond0.class.voice]
member = ["eth2"]
match = ["dscp=ef"]
"#;

#[test]
fn a_file_is_applied_once_and_its_changes_are_the_least() {
    let net = Net::alone();
    let bare = machine::settled(&net, "a");
    net.start("a", &[]);
    // Told first, and nothing done.
    let before = machine::settled(&net, "a");
    let file = net.file(WHOLE);
    let told = net.ok("a", &format!("apply {file} --dry-run"));
    machine::as_it_was(&net, "a", &before);
    let done = net.apply(WHOLE);
    assert_eq!(told.lines().collect::<Vec<_>>(), done, "what is done is what was told");
    assert_eq!(done.len(), 4, "{done:?}");
    assert!(done[0].starts_with("linkbraid fabric add fab0 --node 0 --nodes 2 --transport shm:"), "{done:?}");
    assert_eq!(
        done[1..],
        [
            "linkbraid bond add bond0 --member eth0,eth1,eth2,fab0 --address 198.19.7.1/24 --probe-interval 20ms",
            "linkbraid class add bond0 voice --member eth2 --match dscp=ef",
            "linkbraid member set bond0 eth1 --weight 100",
        ]
    );
    is_done(&net);
    let bond = net.show("a");
    assert!(bond.addresses.contains(&"198.19.7.1/24".to_owned()), "{bond:?}");
    assert_eq!((bond.settings.inspector.probe_interval.0, bond.members[1].weight_mbit), (20, 100));
    assert_eq!(bond.members[2].class.as_deref(), Some("voice"));
    // A change, and what a user has added since.
    net.ok("a", "member add bond0 eth3 --force");
    net.host("a").sh("ip addr add 198.19.8.1/24 dev bond0").expect("adds");
    let number = index(&net);
    let changed = WHOLE.replace("eth1\", weight = 100 }, \"eth2\"", "eth2\" }").replace("20ms", "50ms");
    let file = net.file(&changed.replace("198.19.7.1", "198.19.7.2").replace("sleep", "adaptive"));
    let json = net.ok("a", &format!("apply {file} --json"));
    let record: ApplyRecord = serde_json::from_str(&json).expect("a record");
    let commands: Vec<(&str, Option<u32>)> =
        record.actions.iter().map(|action| (action.command.as_str(), action.line)).collect();
    assert_eq!(
        commands,
        [
            ("linkbraid fabric set fab0 --poll adaptive", Some(2)),
            ("linkbraid member del bond0 eth1", Some(8)),
            ("linkbraid bond set bond0 --probe-interval 50ms --address 198.19.7.2/24", Some(8)),
        ]
    );
    is_done(&net);
    assert_eq!(net.members("a", BOND), ["eth0", "eth2", "fab0", "eth3"]);
    let bond = net.show("a");
    let has = |address: &str| bond.addresses.iter().any(|one| one == address);
    assert!(has("198.19.7.2/24") && has("198.19.8.1/24") && !has("198.19.7.1/24"), "{bond:?}");
    assert_eq!(index(&net), number, "made again");
    // Another daemon knows what was made by a file and what was not.
    net.kill("a");
    net.start("a", &[]);
    net.ok("a", "class add bond0 own --match dscp=le");
    let file = net.file("[bond.bond0]\nmember = ['eth0']\n");
    assert_eq!(
        net.ok("a", &format!("apply {file}")).lines().collect::<Vec<_>>(),
        [
            "linkbraid class del bond0 voice",
            "linkbraid member del bond0 eth2",
            "linkbraid member del bond0 fab0",
            "linkbraid bond set bond0 --no-addresses",
            "linkbraid fabric del fab0",
        ]
    );
    assert_eq!(net.members("a", BOND), ["eth0", "eth3"]);
    assert!(net.ok("a", "class show bond0").contains("own"));
    assert_eq!(net.apply(""), ["linkbraid bond del bond0"]);
    is_done(&net);
    net.stop("a");
    machine::as_it_was(&net, "a", &bare);
}

/// What is wrong with a file, and the refusal without the name of the file.
const BAD: [(&str, &str); 6] = [
    ("[bond.bond0]\nmember = ['eth0'\n", ":2: not TOML: "),
    (
        "[bond.bond0]\nmember = ['eth0']\nmut = 1500\n",
        ":3: bond 'bond0': key 'mut': no such key; allowed are ",
    ),
    (
        "[bond.bond0]\nmember = ['eth0']\n[bond.bond1]\nmember = [\n'eth1',\n'eth0']\n",
        ":6: bond 'bond1': member 'eth0': line 2 gives it to bond 'bond0'",
    ),
    (
        "[bond.bond0]\nmember = ['eth0']\n[bond.bond1]\nmember = ['eth1',\n'eth9']\n",
        ":5: bond1: cannot add member 'eth9': no such interface",
    ),
    (
        "[fabric.fab0]\nnode = 0\nnodes = 2\ntransport = 'smoke:x'\n[bond.bond0]\nmember = ['eth0']\n",
        ":1: smoke:x: cannot use this transport: no such transport 'smoke'",
    ),
    // This one is found when two bonds and a class are there already.
    (
        "[bond.bond0]\nmember = ['eth0']\n[bond.bond1]\nmember = ['eth1', 'eth2']\n[bond.bond1.class.v]\nmatch = 'dscp=ef'\n\
         [bond.bond1.class.w]\nmatch = 'dscp=ef'\n",
        ":7: bond1: cannot add class 'w': rule 'dscp=ef' can't match: 'dscp=ef' of class 'v' comes first",
    ),
];

#[test]
fn a_file_that_cannot_be_applied_leaves_nothing() {
    let net = Net::alone();
    net.start("a", &[]);
    let before = machine::settled(&net, "a");
    for (text, error) in BAD {
        let file = net.file(text);
        let said = net.say("a", &format!("apply {file}"));
        assert_eq!((said.code, said.out.as_str()), (1, ""), "{text}: {said:?}");
        let line = said.err.lines().next().unwrap_or_default();
        assert!(line.starts_with(&format!("linkbraid: error: {file}{error}")), "{text}: {said:?}");
        assert_eq!(said.err.lines().count(), 2, "a line and a hint: {said:?}");
        machine::as_it_was(&net, "a", &before);
        assert_eq!(net.ok("a", "show --json").trim(), "[]");
    }
    let said = net.say("a", "apply /nowhere.toml");
    assert_eq!(
        said.refused(1, "/nowhere.toml: cannot read: no such file or directory"),
        "linkbraid apply --help"
    );
    // What is there goes on as it is, too: the change that comes first is taken back.
    net.apply("[bond.bond0]\nmember = ['eth0', 'eth1']\naddress = '198.19.7.1/24'\n");
    let before = machine::settled(&net, "a");
    let bond = net.show("a");
    let file = net.file("[bond.bond0]\nmember = ['eth0', { name = 'eth2', force = true }]\npolicy = 'flow'\n[bond.bond1]\nmember = ['eth3']\n\
         [bond.bond1.class.v]\nmatch = 'dscp=ef'\n[bond.bond1.class.w]\nmatch = 'dscp=ef'\n",
    );
    let said = net.say("a", &format!("apply {file}"));
    assert_eq!(said.code, 1, "{said:?}");
    let now = net.show("a");
    assert_eq!(
        (now.settings.policy, now.addresses.len()),
        (bond.settings.policy, bond.addresses.len()),
        "{}",
        net.log("a")
    );
    assert_eq!(net.members("a", BOND), ["eth0", "eth1"]);
    machine::as_it_was(&net, "a", &before);
}

#[test]
fn the_daemon_brings_back_what_a_boot_has_ended() {
    let net = Net::alone();
    let file = net.file(WHOLE);
    net.start("a", &["--config", &file]);
    wait_members(&net, &["eth0", "eth1", "eth2", "fab0"]);
    wait_until(APPLIED, "all of it", || net.log("a"), |log| log.contains("all is as the file says"))
        .unwrap_or_else(|error| panic!("{error}"));
    is_done(&net);
    let epoch = fabric(&net).epoch;
    assert!(epoch.is_some());
    // A restart takes over what is there.
    let number = index(&net);
    net.kill("a");
    net.start("a", &["--config", &file]);
    is_done(&net);
    assert_eq!(index(&net), number);
    // As after a boot: no interface, no state.
    net.ok("a", "bond del bond0");
    net.ok("a", "fabric del fab0");
    net.stop("a");
    net.start("a", &["--config", &file]);
    wait_members(&net, &["eth0", "eth1", "eth2", "fab0"]);
    // A bad file takes nothing away, and neither does an empty one; the daemon runs.
    for text in ["[bond.bond0]\nmember = []\n", "", "[bond.bond9]\nmember = ['eth9']\n"] {
        net.kill("a");
        let file = net.file(text);
        net.start("a", &["--config", &file]);
        wait_members(&net, &["eth0", "eth1", "eth2", "fab0"]);
    }
    net.kill("a");
    net.start("a", &["--config", "/nowhere.toml"]);
    wait_members(&net, &["eth0", "eth1", "eth2", "fab0"]);
}

#[test]
fn a_bond_deleted_by_hand_is_made_again_if_a_file_names_it() {
    let net = Net::alone();
    let file = net.file("[bond.bond0]\nmember = ['eth0', 'eth1']\naddress = ['198.18.5.1/24']\n");
    net.start("a", &["--config", &file]);
    wait_members(&net, &["eth0", "eth1"]);
    let host = net.host("a");
    let interface = || host.sh("ip -o address show dev bond0").unwrap_or_default();
    for by in ["the daemon's", "a user's"] {
        if by == "a user's" {
            net.ok("a", &format!("apply {file}"));
            // A change that is undone takes nothing from what the file says.
            net.ok("a", "bond set bond0 --policy flow --confirm 60s");
            net.ok("a", "confirm --undo");
        }
        // Each line begins with the interface's index.
        let old = interface().split(':').next().map(|index| format!("{index}:")).expect("has an address");
        host.sh("ip link del bond0").expect("deletes");
        let is_new = |text: &String| text.contains("198.18.5.1/24") && !text.starts_with(&old);
        wait_until(APPLIED, "another bond", interface, is_new).unwrap_or_else(|e| panic!("{by} file: {e}"));
        wait_members(&net, &["eth0", "eth1"]);
    }
    assert!(net.log("a").contains("the file names it, so it is made again in 2 s"), "{}", net.log("a"));
    // One that a user removed is not.
    net.ok("a", "bond del bond0");
    net.ok("a", "bond add bond0 --member eth0");
    host.sh("ip link del bond0").expect("deletes");
    wait_until(APPLIED, "no bond", || net.ok("a", "show --json"), |json| json.trim() == "[]")
        .unwrap_or_else(|error| panic!("{error}"));
    assert_eq!(net.log("a").matches("so it is made again").count(), 2, "{}", net.log("a"));
}

#[test]
fn the_files_of_a_folder_are_applied_as_one() {
    let net = Net::alone();
    let folder = net.lab().folder().join("conf.d");
    std::fs::create_dir(&folder).expect("makes a folder");
    let write = |name: &str, text: &str| std::fs::write(folder.join(name), text).expect("writes");
    write("20-b.toml", "[bond.bond1]\nmember = ['eth2']\n");
    write("10-a.toml", "[bond.bond0]\nmember = ['eth0', 'eth1']\n");
    write("notes", "[bond.bond2]\nmember = ['eth3']\n");
    let (path, missing) = (folder.display().to_string(), folder.join("none.toml").display().to_string());
    net.start("a", &["--config", &missing, "--config", &path]);
    wait_members(&net, &["eth0", "eth1"]);
    wait_until(APPLIED, "all of it", || net.log("a"), |log| log.contains("all is as the file says"))
        .unwrap_or_else(|error| panic!("{error}"));
    assert_eq!(net.members("a", "bond1"), ["eth2"]);
    assert_eq!(net.ok("a", &format!("apply {path}")), "nothing to do\n");
    // Errors name the file and its line.
    write("30-c.toml", "\n[bond.bond1]\nmember = ['eth3']\n");
    let error = format!("{path}/30-c.toml:2: bond 'bond1': {path}/20-b.toml:1 has a bond of this name");
    assert_eq!(net.say("a", &format!("apply {path}")).refused(1, &error), "linkbraid apply --help");
    net.kill("a");
    net.start("a", &["--config", &path]);
    wait_until(APPLIED, "the error", || net.log("a"), |log| log.contains(&error))
        .unwrap_or_else(|e| panic!("{e}"));
    assert_eq!(net.members("a", "bond1"), ["eth2"], "a bad file changes nothing");
    write("30-c.toml", "");
    std::fs::remove_file(folder.join("20-b.toml")).expect("removes");
    assert_eq!(net.ok("a", &format!("apply {path}")), "linkbraid bond del bond1\n");
    net.ok("a", "bond del bond0");
    net.stop("a");
}

/// A fabric that is no member of a bond.
const FABRIC: &str = "[fabric.fab0]\nnode = 0\nnodes = 2\ntransport = 'shm:SHM'\naddress = '198.19.7.1/24'\n";

#[test]
fn a_fabric_of_a_file_has_its_addresses_and_those_of_users() {
    let net = Net::alone();
    let file = net.file(FABRIC);
    net.start("a", &["--config", &file]);
    wait_until(APPLIED, "all of it", || net.log("a"), |log| log.contains("all is as the file says"))
        .unwrap_or_else(|error| panic!("{error}"));
    is_done(&net);
    let has = |wanted: [&str; 2]| wanted.map(|wanted| fabric(&net).addresses.iter().any(|one| one == wanted));
    assert_eq!(has(["198.19.7.1/24", "198.19.7.2/24"]), [true, false]);
    // One of a user's, one of a file's; another daemon knows which is which.
    net.ok("a", "fabric set fab0 --address 198.19.7.1/24 --address 198.19.8.1/24");
    assert_eq!(
        net.apply(&FABRIC.replace("7.1", "7.2")),
        ["linkbraid fabric set fab0 --address 198.19.7.2/24 --address 198.19.8.1/24"]
    );
    is_done(&net);
    net.kill("a");
    net.start("a", &[]);
    is_done(&net);
    assert_eq!(has(["198.19.7.1/24", "198.19.7.2/24"]), [false, true]);
    let bare = FABRIC.replace("address = '198.19.7.1/24'\n", "");
    assert_eq!(net.apply(&bare), ["linkbraid fabric set fab0 --address 198.19.8.1/24"]);
    is_done(&net);
    assert_eq!(has(["198.19.7.2/24", "198.19.8.1/24"]), [false, true]);
    // What a bond has taken over comes back with its end.
    let with_bond = format!("{FABRIC}[bond.bond0]\nmember = ['eth0', 'fab0']\n");
    net.apply(&with_bond);
    is_done(&net);
    assert_eq!(has(["198.19.7.1/24", "198.19.8.1/24"]), [false, false], "{:?}", fabric(&net));
    assert_eq!(net.apply(FABRIC), ["linkbraid bond del bond0"]);
    is_done(&net);
    assert_eq!(has(["198.19.7.1/24", "198.19.8.1/24"]), [true, true], "{:?}", fabric(&net));
    // So it does when the bond stays, and nobody else has it then.
    net.apply(&with_bond);
    assert_eq!(
        net.apply(&with_bond.replace("['eth0', 'fab0']", "'eth0'")),
        ["linkbraid member del bond0 fab0"]
    );
    is_done(&net);
    assert_eq!(has(["198.19.7.1/24", "198.19.8.1/24"]), [true, true], "{:?}", fabric(&net));
    assert_eq!(net.apply(FABRIC), ["linkbraid bond del bond0"]);
    for address in ["198.19.7.1/24", "198.19.8.1/24"] {
        let holders = net.host("a").sh("ip -o -4 address").expect("lists");
        assert_eq!(holders.matches(address).count(), 1, "{holders}");
    }
    // A file's that a user takes away and gives again is the user's.
    net.ok("a", "fabric set fab0 --address 198.19.8.1/24");
    net.ok("a", "fabric set fab0 --address 198.19.8.1/24 --address 198.19.7.1/24");
    assert_eq!(net.apply(&bare), ["nothing to do"]);
    assert_eq!(net.apply(FABRIC), ["nothing to do"]);
    // One that the file names, too, is a user's all the same when the file comes to nothing, and when it no longer names it.
    net.host("a").sh("ip addr add 198.19.8.9/24 dev fab0").expect("adds");
    let both = FABRIC.replace("'198.19.7.1/24'", "['198.19.7.1/24', '198.19.8.9/24']");
    let refused = "[bond.bond1]\nmember = ['eth1', 'eth2']\n[bond.bond1.class.v]\nmatch = 'dscp=ef'\n\
         [bond.bond1.class.w]\nmatch = 'dscp=ef'\n";
    let file = net.file(&format!("{both}{refused}"));
    let said = net.say("a", &format!("apply {file}"));
    assert_eq!(said.code, 1, "{said:?}");
    assert_eq!(has(["198.19.7.1/24", "198.19.8.9/24"]), [true, true], "{:?}", fabric(&net));
    net.apply(&both);
    assert_eq!(net.apply(FABRIC), ["nothing to do"]);
    assert_eq!(has(["198.19.7.1/24", "198.19.8.9/24"]), [true, true], "{:?}", fabric(&net));
    assert_eq!(net.apply(""), ["linkbraid fabric del fab0"]);
}

#[test]
fn a_member_that_comes_later_is_added_then() {
    let net = Net::alone();
    let file = net.file("[bond.bond0]\nmember = ['late0', 'eth0']\naddress = '198.19.7.1/24'\n[bond.bond1]\nmember = ['late1', 'late2']\n",
    );
    net.start("a", &["--config", &file]);
    // The host is reached by what is there.
    wait_members(&net, &["eth0"]);
    assert!(
        net.log("a").contains("bond0: 'late0' is not there; it is added when it comes"),
        "{}",
        net.log("a")
    );
    assert_ne!(net.say("a", "show bond1").code, 0);
    assert_eq!(net.show("a").absent, ["late0"], "it is a member, and may be removed");
    let host = net.host("a");
    host.sh("ip link add late0 type veth peer name peer0").expect("adds");
    wait_members(&net, &["eth0", "late0"]);
    // The file names it first.
    let macs = || (net.show("a").mac, net.show("a").members.pop().expect("late0").mac);
    wait_until(APPLIED, "the MAC of the first member", macs, |(bond, first)| bond == first)
        .unwrap_or_else(|error| panic!("{error}"));
    host.sh("ip link add late1 type veth peer name peer1").expect("adds");
    wait_for(APPLIED, "bond1", || match net.say("a", "show bond1") {
        said if said.code == 0 => Ok(()),
        said => Err(said.err),
    })
    .unwrap_or_else(|error| panic!("{error}\n{}", net.log("a")));
    host.sh("ip link add late2 type veth peer name peer2").expect("adds");
    wait_until(APPLIED, "all of it", || net.log("a"), |log| log.contains("all is as the file says"))
        .unwrap_or_else(|error| panic!("{error}"));
    is_done(&net);
}

#[test]
fn what_fails_at_the_start_is_tried_again_after_ever_longer_times() {
    let net = Net::alone();
    net.start("a", &[]);
    let host = net.host("a");
    for line in ["ip link add link eth3 name v5 type macvlan", "ip link set v5 up"] {
        host.sh(line).expect("sets");
    }
    net.ok("a", "bond add bond0 --member eth2,v5");
    net.kill("a");
    // v5 takes no larger MTU than eth3 has, which is under it; ::1 is the host's already.
    let file = net.file(
        "[bond.bond0]\nmember = ['eth2', 'v5']\nmtu = 2000\n\
         [bond.bond1]\nmember = ['eth0', 'eth1']\naddress = ['198.19.7.1/24', '::1/128']\n",
    );
    let begun = Instant::now();
    net.start("a", &["--config", &file]);
    let attempts = |step| net.log("a").matches(&format!("not done: linkbraid {step}")).count();
    let both = || ["bond set bond0", "bond add bond1"].map(attempts);
    wait_until(Duration::from_secs(120), "four attempts", both, |all| all.iter().all(|n| *n >= 4))
        .expect("goes on");
    let log = net.log("a");
    // After one second, after two more, and after four more: however slow the machine is, not sooner.
    assert!(begun.elapsed() >= Duration::from_secs(7), "{:?}\n{log}", begun.elapsed());
    assert!(!log.contains("is there now"), "all were there all the time: {log}");
}
