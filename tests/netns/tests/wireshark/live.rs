//! What a bond and a fabric on it really send: no frame breaks a rule, and all is read as our parsers read it.

use super::{
    arp_plus, fabric, faults, mirror,
    shark::{Fields, Record, Shark},
};
use linkbraid_lab::{Topology, wait_until};
use linkbraid_netns_tests::{
    BOND, Net, SOON,
    packet::{ALL, Tap},
};
use std::{collections::BTreeSet, fs, path::Path};

/// What arrives on the links of two hosts.
struct Ears {
    taps: Vec<Tap>,
    heard: Vec<Vec<u8>>,
}

impl Ears {
    fn open(net: &Net) -> Self {
        let links = ["a", "b"].into_iter().flat_map(|name| ["eth0", "eth1"].map(|link| (name, link)));
        let taps = links.map(|(name, link)| Tap::open(net.host(name), link, ALL));
        Self { taps: taps.collect(), heard: Vec::new() }
    }

    fn take(&mut self) -> &[Vec<u8>] {
        let new: Vec<Vec<u8>> = self.taps.iter().flat_map(Tap::take).collect();
        self.heard.extend(new);
        &self.heard
    }

    /// Waits until a frame like that has arrived.
    #[track_caller]
    fn wait(&mut self, what: &str, is: impl Fn(&[u8]) -> bool) {
        let mut from = 0;
        let looks = || {
            let heard = self.take();
            let found = heard[from..].iter().any(|frame| is(frame));
            from = heard.len();
            found
        };
        wait_until(SOON, what, looks, |found| *found).unwrap_or_else(|e| panic!("{e}"));
    }
}

fn is_arp_plus(frame: &[u8], kind: u8) -> bool {
    frame[12..14] == [0x88, 0xb5] && frame[17] == kind
}

fn is_mirrored(frame: &[u8]) -> bool {
    frame[12..14] == mirror::ETHERTYPE
}

/// The key file of a host; both have one key.
#[track_caller]
fn key_file(net: &Net, name: &str) -> String {
    let file = net.lab().folder().join(format!("{name}.key")).display().to_string();
    if !Path::new(&file).exists() {
        match name {
            "a" => drop(net.ok("a", &format!("key new {file}"))),
            _ => drop(fs::copy(key_file(net, "a"), &file).expect("copies, with the mode")),
        }
    }
    file
}

/// A fabric over the bonds.
#[track_caller]
fn add_fabric(net: &Net) {
    let file = net.lab().folder().join("nodes");
    let ends = ["a", "b"].map(|name| net.host(name).ipv4().to_owned());
    fs::write(&file, format!("0 {}:7000\n1 {}:7000\n", ends[0], ends[1])).expect("writes");
    for (node, name) in ["a", "b"].into_iter().enumerate() {
        let keys = format!("--key {} --auth require", key_file(net, name));
        let place = format!("--transport udp:{} --address 198.19.0.{}/24", file.display(), node + 1);
        net.ok(name, &format!("fabric add fab0 --node {node} --nodes 2 {place} {keys}"));
    }
}

#[test]
fn what_a_bond_and_a_fabric_send_breaks_no_rule() {
    let net = Net::up(Topology::symmetric(2, 2, None));
    let mut ears = Ears::open(&net);
    net.bond_all();
    for name in ["a", "b"] {
        net.ok(name, &format!("class add {BOND} urgent --match udp-port=7000 --policy mirror"));
        net.ok(name, &format!("bond set {BOND} --key {} --auth require", key_file(&net, name)));
    }
    net.wait_tables(&["a", "b"]);
    for kind in [1, 3, 5, 6] {
        ears.wait("a message of each type", |frame| is_arp_plus(frame, kind));
    }
    add_fabric(&net);
    let pings = |long: bool| {
        let size = if long { 4000 } else { 50 };
        net.host("a").wait_ping("198.19.0.2", SOON).expect("reaches");
        net.host("a").sh(&format!("ping -q -c 3 -i 0.01 -s {size} 198.19.0.2")).expect("reaches");
    };
    pings(false);
    pings(true);
    ears.wait("a mirrored frame", is_mirrored);
    ["a", "b"].iter().for_each(|name| drop(net.ok(name, "fabric set fab0 --encrypt on")));
    pings(true);
    ears.take();
    net.ok("a", "fabric del fab0");
    net.ok("a", &format!("bond del {BOND}"));
    ears.wait("a CLEAR", |frame| is_arp_plus(frame, 4));
    let frames = std::mem::take(&mut ears.heard);
    check(&frames);
}

fn check(frames: &[Vec<u8>]) {
    let mut shark = Shark::new("live");
    let records: Vec<Record> = frames.iter().cloned().map(Record::whole).collect();
    // Another protocol of Wireshark's has the port.
    let read = shark.read(&records, &["-o", "udp.try_heuristic_first:TRUE"]);
    let mut reader = fabric::Reader::default();
    let mut types = BTreeSet::new();
    let (mut mirrored, mut copies, mut sealed) = (0, 0, 0);
    for (frame, seen) in frames.iter().zip(&read) {
        arp_plus::compare(frame, seen);
        mirror::compare(frame, seen);
        reader.compare(frame, seen);
        assert_eq!(faults(seen), Vec::<String>::new(), "{seen:#?}");
        types.extend(seen.get("arpplus.type").into_iter().flatten().cloned());
        mirrored += usize::from(seen.contains_key("lbmirror.sequence") && has_fabric(seen));
        if let Some(first) = seen.get("lbmirror.copy_of") {
            let first = first[0].parse::<usize>().expect("a number") - 1;
            assert_eq!(frame[14..], frames[first][14..], "a copy");
            copies += 1;
        }
        sealed += usize::from(seen.contains_key("arpplus.auth.code"));
    }
    assert_eq!(types, ["1", "2", "3", "4", "5", "6"].map(str::to_owned).into(), "types of ARP+");
    let kinds = ["Accept", "Alive", "Bye", "Data", "Data in parts", "Hello", "encrypted"].map(str::to_owned);
    assert!(reader.kinds.is_superset(&kinds.into()), "of the fabric only {:?}", reader.kinds);
    let probes = answers(&read, "arpplus.probe.", ["nonce", "echo"]);
    let hellos = answers(&read, "lbfabric.", ["cookie", "echo"]);
    let counts = [mirrored, copies, sealed, probes, hellos];
    eprintln!(
        "{} frames: {mirrored} mirrored datagrams, {copies} second copies, {sealed} messages with AUTH, {probes} PROBE-REPLYs and {hellos} ACCEPTs with \
         their requests",
        frames.len()
    );
    assert!(counts.iter().all(|count| *count > 1), "{counts:?}");
}

/// An answer names a frame that asked, as many milliseconds ago as there are frames between. How many do.
#[track_caller]
fn answers(read: &[Fields], prefix: &str, [asked, echoed]: [&str; 2]) -> usize {
    let value = |seen: &Fields, name: &str| seen.get(&format!("{prefix}{name}")).cloned().unwrap_or_default();
    let mut found = 0;
    for (at, seen) in read.iter().enumerate() {
        for number in value(seen, "answers") {
            let request = number.parse::<usize>().expect("a number") - 1;
            let numbers = value(&read[request], asked);
            assert!(value(seen, echoed).iter().any(|echo| numbers.contains(echo)), "{seen:#?}");
            let millis = value(seen, "time")[0].parse::<f64>().expect("seconds") * 1000.0;
            assert_eq!(millis.round() as usize, at - request);
            found += 1;
        }
    }
    found
}

fn has_fabric(seen: &Fields) -> bool {
    seen.contains_key("lbfabric.datagram.version")
}
