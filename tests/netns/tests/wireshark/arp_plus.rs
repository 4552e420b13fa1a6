//! ARP+ frames: what `linkbraid-wire` reads in them, as fields of the dissector.

use super::shark::{Fields, hex, put, reasons};
use linkbraid_wire::{
    Auth, Class, ETHERTYPE_ARP_PLUS, Extension, FEATURE_GUESTS, FEATURE_INTERVALS, FEATURE_LONG_PROBES,
    FEATURE_MIRROR, Frame, Guest, HostId, Kind, MacAddr, Member, Message, Probe, ProbeFrame, ProbeKind,
    Refusal, View, emit_frame, emit_probe, is_probe, pad_to, parse_frame, parse_probe, with_interval,
};
use std::{collections::BTreeSet, fs, net::IpAddr, path::Path};

/// A VERSION, a HOST and a SEQUENCE, and a MEMBER down to its class.
const VERSION: (u8, &[u8]) = (1, &[1]);
const HOST: (u8, &[u8]) = (2, &[7; 24]);
const SEQUENCE: (u8, &[u8]) = (3, &[0, 0, 0, 9]);
const MEMBER: (u8, &[u8]) = (4, &[3, 1, 0, 0, 0, 100, 0]);
const PROBE: (u8, &[u8]) =
    (8, &[1, 2, 3, 4, 5, 6, 7, 8, 0, 0, 0, 0, 0, 0, 0, 9, 0, 0, 0, 5, 3, 0, 0, 0xc3, 0x50, 3]);
/// Bytes of a PROBE that a receiver reads (10.4).
const PROBE_HEAD: usize = 248;

pub const SOURCE: MacAddr = MacAddr([2, 0, 0, 0, 0, 1]);
pub const OTHER: MacAddr = MacAddr([2, 0, 0, 0, 0, 2]);

fn ip(text: &str) -> IpAddr {
    text.parse().expect("an address")
}

/// A message in which everything is said that can be.
fn full(kind: Kind) -> Message {
    let member = |index, up, class| Member { index, up, weight_mbit: 2500, class };
    let class = |number, may_borrow, name: &str| Class { number, may_borrow, name: name.to_owned() };
    let guest = |vlan, last, addresses: &[&str]| Guest {
        vlan,
        mac: MacAddr([2, 0, 0, 0, 9, last]),
        addresses: addresses.iter().map(|address| ip(address)).collect(),
    };
    let extension = Extension {
        host: HostId(std::array::from_fn(|at| at as u8)),
        epoch: 0x1112_1314_1516_1718,
        sequence: 0xf000_0001,
        members: vec![member(0, true, 0), member(7, false, 2), member(3, true, 6)],
        classes: vec![class(2, true, "urgent"), class(7, false, "a-b_9")],
        features: with_interval(
            0x8000_0000 | FEATURE_MIRROR | FEATURE_GUESTS | FEATURE_LONG_PROBES | FEATURE_INTERVALS,
            5,
        ),
        guests: vec![
            guest(0, 1, &["198.18.1.1", "2001:db8:1::1"]),
            guest(4094, 1, &["198.18.1.1", "198.18.1.2"]),
            guest(5, 2, &["2001:db8:1::2", "2001:db8:1::3"]),
        ],
        addresses: vec![ip("198.18.0.8"), ip("2001:db8::8"), ip("2001:db8::9"), ip("198.18.0.9")],
        digest: Some(0),
        auth: Some(Auth { key_id: 0xa1a2_a3a4, tag: (1..=32).collect() }),
        ..Extension::default()
    };
    Message {
        kind,
        address: Some(ip("198.18.0.7")),
        hardware: vec![SOURCE, OTHER, MacAddr([2, 0, 0, 0, 0, 3])],
        extension: Some(extension),
    }
}

fn probe(kind: ProbeKind) -> Probe {
    Probe {
        kind,
        address: Some(ip("2001:db8::7")),
        host: HostId([7; 16]),
        epoch: 9,
        nonce: 0x0102_0304_0506_0708,
        echo: 0x1112_1314_1516_1718,
        number: 77,
        view: View::Up,
        interval_us: 50_000,
        multiplier: 3,
        auth: Some(Auth { key_id: 5, tag: vec![0x5a; 32] }),
        ..Probe::default()
    }
}

/// A message that says little.
fn little(address: Option<IpAddr>) -> Message {
    let extension = Extension {
        version: 9,
        host: HostId([7; 16]),
        members: (0..3).map(|index| Member { index, up: true, weight_mbit: 1, class: 0 }).collect(),
        ..Extension::default()
    };
    Message { address, extension: Some(extension), ..full(Kind::Broadcast) }
}

fn published(address: IpAddr) -> Message {
    Message { address: Some(address), extension: None, ..full(Kind::Change) }
}

fn emitted(message: &Message) -> Vec<u8> {
    let to = if message.kind == Kind::Reply { OTHER } else { MacAddr::BROADCAST };
    emit_frame(to, SOURCE, message).expect("keeps the rules")
}

fn emitted_probe(probe: &Probe) -> Vec<u8> {
    emit_probe(OTHER, SOURCE, probe).expect("keeps the rules")
}

/// A frame of each layout.
fn layouts() -> Vec<Vec<u8>> {
    let (v4, v6) = (ip("198.18.0.7"), ip("2001:db8::7"));
    vec![
        emitted(&full(Kind::Change)),
        emitted(&little(Some(v6))),
        emitted(&published(v4)),
        emitted_probe(&probe(ProbeKind::Probe)),
        emitted_probe(&Probe { address: None, auth: None, ..probe(ProbeKind::Reply) }),
    ]
}

/// Frames that keep all rules.
pub fn good() -> Vec<Vec<u8>> {
    let mut frames = layouts();
    frames.extend(Kind::ALL.map(|kind| emitted(&full(kind))));
    frames.extend([None, Some(ip("198.18.0.7"))].map(|address| emitted(&little(address))));
    frames.push(emitted(&published(ip("2001:db8::7"))));
    for view in [View::Unjudged, View::Lost, View::Init] {
        let address = Some(ip("198.18.0.7"));
        frames.push(emitted_probe(&Probe { view, echo: 0, address, ..probe(ProbeKind::Probe) }));
    }
    // What answers the PROBE among the layouts.
    let answer = Probe { echo: probe(ProbeKind::Probe).nonce, ..probe(ProbeKind::Reply) };
    frames.push(emit_probe(SOURCE, OTHER, &answer).expect("keeps the rules"));
    // A challenge, and PROBEs of full length.
    frames.push(emitted_probe(&Probe { number: 0, ..probe(ProbeKind::Probe) }));
    for bytes in [PROBE_HEAD, PROBE_HEAD + 1, 1514, 9014] {
        let mut long = emitted_probe(&probe(ProbeKind::Probe));
        pad_to(&mut long, bytes);
        frames.push(long);
    }
    frames
}

/// An ARP+ frame from its parts.
fn raw(kind: u8, tlvs: &[(u8, &[u8])]) -> Vec<u8> {
    raw_of(kind, &[198, 18, 0, 7], &[SOURCE], tlvs)
}

fn raw_of(kind: u8, address: &[u8], hardware: &[MacAddr], tlvs: &[(u8, &[u8])]) -> Vec<u8> {
    let to = if matches!(kind, 1 | 3 | 4) { MacAddr::BROADCAST } else { OTHER };
    let mut frame = [&to.0[..], &SOURCE.0, &ETHERTYPE_ARP_PLUS.to_be_bytes()].concat();
    frame.extend([6, address.len() as u8, hardware.len() as u8, kind]);
    frame.extend(address);
    hardware.iter().for_each(|mac| frame.extend(mac.0));
    for (kind, value) in tlvs {
        frame.extend([*kind, value.len() as u8]);
        frame.extend(*value);
    }
    pad_to(&mut frame, 60);
    frame
}

/// A CHANGE with these TLVs behind those that it must have.
fn change(more: &[(u8, &[u8])]) -> Vec<u8> {
    raw(3, &[&[VERSION, HOST, SEQUENCE, MEMBER], more].concat())
}

/// A frame with another byte somewhere.
fn with(mut frame: Vec<u8>, at: usize, byte: u8) -> Vec<u8> {
    frame[at] = byte;
    frame
}

/// A GUEST in no VLAN with these IPv4 addresses.
fn guest(last: u8, addresses: &[[u8; 4]]) -> Vec<u8> {
    [&[0, 0, 2, 0, 0, 0, 9, last, addresses.len() as u8][..], addresses.as_flattened()].concat()
}

/// Frames that break rules, at least one for each reason that no other frame here is refused for.
fn made() -> Vec<Vec<u8>> {
    let macs = |count: u8| (1..=count).map(|last| MacAddr([2, 0, 0, 0, 0, last])).collect::<Vec<_>>();
    let published = |address: &[u8], hardware: &[MacAddr]| raw_of(3, address, hardware, &[]);
    let ip = [198, 18, 0, 7];
    let guests: Vec<Vec<u8>> = (0..65).map(|last| guest(last, &[[198, 18, 1, last]])).collect();
    let guests: Vec<(u8, &[u8])> = guests.iter().map(|guest| (11, &guest[..])).collect();
    let addresses = [&[4][..], [198, 18, 2, 1].repeat(33).as_slice()].concat();
    let classes: Vec<Vec<u8>> = (1..=8u8).map(|number| vec![number % 8, 0, b'a' + number]).collect();
    let classes: Vec<(u8, &[u8])> = classes.iter().map(|class| (9, &class[..])).collect();
    let many = macs(17);
    let mut too_long = published(&ip, &macs(1));
    too_long.resize(14 + 1501, 0);
    let mut auth_not_last = change(&[(7, &[1; 36]), (99, &[])]);
    auth_not_last.truncate(auth_not_last.len().max(60));
    let of_features = [0, 0, 0, 1];
    let two_hosts = raw(3, &[VERSION, HOST, HOST, SEQUENCE, MEMBER]);
    vec![
        with(change(&[]), 6, 3),
        change(&[])[..16].to_vec(),
        published(&ip, &macs(1))[..24].to_vec(),
        too_long,
        with(change(&[]), 14, 5),
        with(change(&[]), 15, 5),
        published(&[0, 0, 0, 0], &macs(1)),
        published(&[224, 0, 0, 1], &macs(1)),
        published(&[255, 255, 255, 255], &macs(1)),
        published(&[240, 0, 0, 1], &macs(1)),
        published(&[0; 16], &macs(1)),
        published(&[0xff; 16], &macs(1)),
        published(&ip, &[]),
        published(&ip, &many),
        published(&ip, &[SOURCE, MacAddr([1, 0, 0, 0, 0, 1])]),
        published(&ip, &[SOURCE, MacAddr::ZERO]),
        published(&ip, &[SOURCE, OTHER, SOURCE]),
        published(&ip, &[OTHER]),
        published(&[], &macs(1)),
        with(published(&ip, &macs(1)), 17, 7),
        with(change(&[]), 25, 40),
        raw(3, &[VERSION, (2, &[7; 23]), SEQUENCE, MEMBER]),
        raw(3, &[VERSION, HOST, (3, &[1; 5]), MEMBER]),
        raw(3, &[(1, &[]), HOST, SEQUENCE, MEMBER]),
        raw(3, &[VERSION, HOST, SEQUENCE, (4, &[3, 2, 0, 0, 0, 100, 0])]),
        two_hosts,
        change(&[VERSION]),
        change(&[SEQUENCE]),
        raw(3, &[VERSION, SEQUENCE, MEMBER]),
        raw(3, &[VERSION, HOST, MEMBER]),
        raw(3, &[(1, &[0]), HOST, SEQUENCE, MEMBER]),
        raw(3, &[VERSION, HOST, SEQUENCE]),
        change(&[(4, &[4, 1, 0, 0, 0, 100, 0])]),
        raw_of(3, &ip, &macs(2), &[VERSION, HOST, SEQUENCE, MEMBER, MEMBER]),
        change(&[(5, &addresses)]),
        change(&[(5, &[])]),
        change(&[(5, &[4])]),
        change(&[(5, &[16])]),
        change(&[(5, &[5, 1, 2, 3, 4, 5])]),
        change(&[(5, &[4, 1, 2, 3])]),
        change(&[(5, &[4, 0, 0, 0, 0])]),
        change(&[(6, &[0; 8])]),
        change(&[(6, &[0; 7])]),
        auth_not_last,
        change(&[(7, &[1; 3])]),
        change(&[(7, &[1; 37])]),
        change(&[(7, &[1; 36]), (7, &[1; 36])]),
        change(&[(9, b"\x00\x00a")]),
        change(&[(9, b"\x08\x00a")]),
        change(&[(9, b"\x01\x00A")]),
        change(&[(9, b"\x01\x00rest")]),
        change(&[(9, b"\x01\x00\xff\xfe")]),
        change(&[(9, b"\x01\x00")]),
        change(&[(9, b"\x01")]),
        change(&[(9, b"\x01\x00abcdefghijklmnop")]),
        change(&[(9, b"\x01\x00a"), (9, b"\x01\x00b")]),
        change(&[(9, b"\x01\x00a"), (9, b"\x02\x00a")]),
        change(&classes),
        change(&[(10, &of_features[..3])]),
        change(&[(10, &of_features), (10, &of_features)]),
        change(&[(11, &guest(1, &[]))]),
        change(&[(11, &guest(1, &[[198, 18, 1, 1]]).repeat(2)[..21])]),
        change(&[(11, &with(guest(1, &[[198, 18, 1, 1]]), 8, 2))]),
        change(&[(11, &with(guest(1, &[[198, 18, 1, 1]]), 0, 0x10))]),
        change(&[(11, &with(guest(1, &[[198, 18, 1, 1]]), 2, 3))]),
        change(&[(11, &guest(1, &[[224, 18, 1, 1]]))]),
        change(&[(11, &guest(1, &std::array::from_fn::<_, 9, _>(|last| [198, 18, 1, last as u8])))]),
        change(&[(11, &guest(1, &[[198, 18, 1, 1]])), (11, &guest(1, &[[198, 18, 1, 2]]))]),
        change(&[(11, &guest(1, &[[198, 18, 1, 1]])), (11, &guest(2, &[[198, 18, 1, 1]]))]),
        change(&[(11, &guest(1, &[[198, 18, 1, 1], [198, 18, 1, 1]]))]),
        change(&[(11, &[0; 8])]),
        change(&guests),
        change(&[PROBE]),
        raw(5, &[VERSION, HOST, PROBE, MEMBER, (9, b"\x00")]),
        raw(5, &[VERSION, HOST]),
        raw(5, &[VERSION, PROBE]),
        raw(5, &[HOST, PROBE]),
        raw(5, &[(1, &[0]), HOST, PROBE]),
        raw(6, &[VERSION, HOST, PROBE, PROBE]),
        raw_of(5, &ip, &[OTHER], &[VERSION, HOST, PROBE]),
        raw_of(5, &ip, &macs(2), &[VERSION, HOST, PROBE]),
        raw_of(5, &ip, &[], &[VERSION, HOST, PROBE]),
        with(raw(5, &[VERSION, HOST, PROBE]), 0, 3),
        with(raw(6, &[VERSION, HOST, PROBE]), 0, 3),
        raw(5, &[VERSION, HOST, (8, &with(PROBE.1.to_vec(), 19, 0))]),
        raw(5, &[VERSION, HOST, (8, &with(PROBE.1.to_vec(), 20, 4))]),
        raw(5, &[VERSION, HOST, (8, &with(PROBE.1.to_vec(), 25, 0))]),
        raw(6, &[VERSION, HOST, (8, &with(PROBE.1.to_vec(), 15, 0))]),
    ]
}

/// Frames in which there is as much of something as may be.
fn at_limits() -> Vec<Vec<u8>> {
    let macs: Vec<MacAddr> = (1..=16).map(|last| MacAddr([2, 0, 0, 0, 0, last])).collect();
    let guests: Vec<Vec<u8>> = (0..64).map(|last| guest(last, &[[198, 18, 1, last]])).collect();
    let guests: Vec<(u8, &[u8])> = guests.iter().map(|guest| (11, &guest[..])).collect();
    let addresses = [&[4][..], &[198, 18, 2, 1].repeat(32)].concat();
    let classes: Vec<Vec<u8>> = (1..=7u8).map(|number| vec![number, 0, b'a' + number]).collect();
    let classes: Vec<(u8, &[u8])> = classes.iter().map(|class| (9, &class[..])).collect();
    let mut longest = raw(3, &[]);
    longest.resize(14 + 1500, 0);
    vec![
        raw_of(3, &[198, 18, 0, 7], &macs, &[]),
        change(&[(5, &addresses)]),
        change(&[(5, &[16])]),
        change(&classes),
        change(&[(9, b"\x01\x00abcdefghijklmno")]),
        change(&[(11, &guest(1, &std::array::from_fn::<_, 8, _>(|last| [198, 18, 1, last as u8])))]),
        change(&guests),
        longest,
    ]
}

/// Frames that receivers take and nobody may send, and which rule each breaks.
pub fn forbidden() -> Vec<(&'static str, Vec<u8>)> {
    let long = |tlvs: &[(u8, &[u8])]| {
        let mut frame = raw(5, &[&[VERSION, HOST, PROBE], tlvs].concat());
        frame.resize(300, 0);
        frame
    };
    let number_zero = [&PROBE.1[..16], &[0; 4], &PROBE.1[20..]].concat();
    let published = raw(3, &[]);
    vec![
        ("padding", with(published.clone(), 59, 1)),
        ("padding", published[..59].to_vec()),
        ("padding", with(long(&[]), 299, 1)),
        ("no_end", long(&[(99, &[1; 161])])),
        ("class_flags", change(&[(9, b"\x01\x03a")])),
        ("not_to_all", with(change(&[]), 0, 2)),
        ("not_to_all", with(raw(4, &[VERSION, HOST, SEQUENCE, MEMBER]), 0, 2)),
        ("reply_to_many", with(raw(2, &[VERSION, HOST, SEQUENCE, MEMBER]), 0, 0xff)),
        ("auth_tag", change(&[(7, &[1; 4])])),
        ("auth_tag", raw(6, &[VERSION, HOST, PROBE, (7, &[1; 35])])),
        ("number_zero", raw(5, &[VERSION, HOST, (8, &number_zero)])),
    ]
}

/// Frames whose Ethernet header is whole.
pub fn all() -> Vec<Vec<u8>> {
    let mut frames = made();
    frames.extend(at_limits());
    // The committed corpus of the fuzzer.
    let corpus = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../crates/wire/tests/corpus");
    let files = fs::read_dir(corpus).expect("the corpus").flatten().map(|entry| entry.path());
    let mut files: Vec<_> = files.collect();
    files.sort();
    assert!(files.len() > 100);
    frames
        .extend(files.iter().map(|file| fs::read(file).expect("an input")).filter(|frame| frame.len() >= 14));
    // Cut at each byte, and with each byte changed.
    for frame in &layouts() {
        frames.extend((14..frame.len()).map(|length| frame[..length].to_vec()));
        let changed = |at: usize| [frame[at] ^ 1, !frame[at], 0].map(|byte| with(frame.clone(), at, byte));
        frames.extend((0..frame.len()).flat_map(changed));
    }
    frames.extend(forbidden().into_iter().map(|(_, frame)| frame));
    frames.extend(good());
    frames
}

/// What our own parser reads.
pub enum Read {
    Message(Box<Frame>),
    Probe(Box<ProbeFrame>),
    Refused(Refusal),
}

pub fn ours(frame: &[u8]) -> Read {
    if !is_probe(frame) {
        return match parse_frame(frame) {
            Ok(read) => Read::Message(Box::new(read)),
            Err(refusal) => Read::Refused(refusal),
        };
    }
    // The data path hands over the head of a long PROBE.
    let is_request = frame[17] == ProbeKind::Probe as u8;
    let seen = if is_request { &frame[..frame.len().min(PROBE_HEAD)] } else { frame };
    match parse_probe(seen) {
        Ok(read) => Read::Probe(Box::new(read)),
        Err(refusal) => Read::Refused(refusal),
    }
}

fn put_address(fields: &mut Fields, prefix: &str, address: IpAddr) {
    let family = if address.is_ipv4() { "ipv4" } else { "ipv6" };
    put(fields, &format!("{prefix}.{family}"), address);
}

fn put_published(fields: &mut Fields, address: Option<IpAddr>, hardware: &[MacAddr], kind: u8) {
    let plen = address.map_or(0, |address| if address.is_ipv4() { 4 } else { 16 });
    let numbers = [("hlen", 6), ("plen", plen), ("count", hardware.len()), ("type", usize::from(kind))];
    numbers.iter().for_each(|(name, value)| put(fields, &format!("arpplus.{name}"), value));
    address.into_iter().for_each(|address| put_address(fields, "arpplus", address));
    hardware.iter().for_each(|mac| put(fields, "arpplus.hardware", mac));
}

fn put_auth(fields: &mut Fields, auth: Option<&Auth>) {
    let Some(auth) = auth else { return };
    put(fields, "arpplus.auth.key_id", auth.key_id);
    if !auth.tag.is_empty() {
        put(fields, "arpplus.auth.tag", hex(&auth.tag));
    }
    let Some((index, rest)) = auth.tag.split_first_chunk::<8>() else { return };
    let Some((counter, code)) = rest.split_first_chunk::<8>().filter(|(_, code)| code.len() == 16) else {
        return;
    };
    put(fields, "arpplus.auth.index", u64::from_be_bytes(*index));
    put(fields, "arpplus.auth.counter", u64::from_be_bytes(*counter));
    put(fields, "arpplus.auth.code", hex(code));
}

fn put_extension(fields: &mut Fields, extension: &Extension) {
    let mut say =
        |name: &str, value: &dyn ToString| put(fields, &format!("arpplus.{name}"), value.to_string());
    say("version", &extension.version);
    say("host", &extension.host);
    say("epoch", &extension.epoch);
    say("sequence", &extension.sequence);
    for member in &extension.members {
        say("member.index", &member.index);
        say("member.state", &u8::from(member.up));
        say("member.weight", &member.weight_mbit);
        say("member.class", &member.class);
    }
    for class in &extension.classes {
        say("class.number", &class.number);
        say("class.borrow", &u8::from(class.may_borrow));
        say("class.name", &class.name);
    }
    if extension.features != 0 {
        say("features", &extension.features);
        let bits = [
            ("mirror", FEATURE_MIRROR),
            ("guests", FEATURE_GUESTS),
            ("long_probes", FEATURE_LONG_PROBES),
            ("intervals", FEATURE_INTERVALS),
        ];
        for (name, bit) in bits {
            say(&format!("features.{name}"), &u8::from(extension.features & bit != 0));
        }
        say("features.doublings", &(extension.features >> 4 & 0xf));
    }
    extension.digest.iter().for_each(|digest| say("digest", digest));
    for guest in &extension.guests {
        say("guest.vlan", &guest.vlan);
        say("guest.mac", &guest.mac);
        say("guest.ipv4_count", &guest.addresses.iter().filter(|address| address.is_ipv4()).count());
    }
    let of_guests = extension.guests.iter().flat_map(|guest| &guest.addresses);
    of_guests.for_each(|address| put_address(fields, "arpplus.guest", *address));
    extension.addresses.iter().for_each(|address| put_address(fields, "arpplus.more", *address));
    put_auth(fields, extension.auth.as_ref());
}

fn of_message(frame: &[u8], read: &Frame) -> Fields {
    let mut fields = Fields::new();
    let message = &read.parsed.message;
    put_published(&mut fields, message.address, &message.hardware, message.kind as u8);
    message.extension.iter().for_each(|extension| put_extension(&mut fields, extension));
    let ignored = &frame[frame.len() - usize::from(read.parsed.trailing)..];
    if !ignored.is_empty() {
        put(&mut fields, "arpplus.padding", hex(ignored));
    }
    fields
}

fn of_probe(read: &ProbeFrame) -> Fields {
    let mut fields = Fields::new();
    let probe = &read.probe;
    put_published(&mut fields, probe.address, &[read.src], probe.kind as u8);
    let mut say =
        |name: &str, value: &dyn ToString| put(&mut fields, &format!("arpplus.{name}"), value.to_string());
    say("version", &probe.version);
    say("host", &probe.host);
    say("epoch", &probe.epoch);
    say("probe.nonce", &probe.nonce);
    say("probe.echo", &probe.echo);
    say("probe.number", &probe.number);
    say("probe.view", &(probe.view as u8));
    say("probe.interval", &probe.interval_us);
    say("probe.multiplier", &probe.multiplier);
    if probe.number == 0 {
        say("probe.challenge", &1);
    }
    put_auth(&mut fields, probe.auth.as_ref());
    fields
}

/// What our parser tells, too: not how TLVs were laid out, bits that it ignores, and what is of several frames.
fn told(seen: &Fields, is_probe: bool) -> Fields {
    let beside = [
        "tlv.",
        "refused.",
        "forbidden.",
        "note.",
        "more.length",
        "class.flags",
        "probe.answers",
        "probe.time",
    ];
    let no_features = seen.get("arpplus.features").is_none_or(|values| values[0] == "0");
    let is_told = |name: &str| {
        let is_beside = beside.iter().any(|part| name.starts_with(part));
        let is_none = no_features && name.starts_with("features");
        !(is_beside || is_none || is_probe && name == "padding")
    };
    let told = seen.iter().filter(|(name, _)| name.strip_prefix("arpplus.").is_some_and(is_told));
    told.map(|(name, values)| (name.clone(), values.clone())).collect()
}

/// What a receiver refuses beyond the parser: by the table (7.1, 7.2).
fn refused_by_table(read: &Frame) -> BTreeSet<String> {
    let message = &read.parsed.message;
    let cases = [
        ("no_identity", message.extension.is_none() && message.address.is_none()),
        ("source_not_listed", !message.hardware.contains(&read.src)),
    ];
    cases.iter().filter(|(_, is)| *is).map(|(name, _)| (*name).to_owned()).collect()
}

/// Holds what tshark read in a frame against what our parser does. The reasons for a refusal.
#[track_caller]
pub fn compare(frame: &[u8], seen: &Fields) -> BTreeSet<String> {
    let refused = reasons(seen, "arpplus.refused.");
    let what = || format!("{} is {seen:#?}", hex(frame));
    if frame[12..14] != ETHERTYPE_ARP_PLUS.to_be_bytes() {
        return refused;
    }
    let (wanted, by_table, is_probe) = match ours(frame) {
        Read::Refused(refusal) => {
            assert!(refused.contains(refusal.name()), "our parser says {refusal:?}; {}", what());
            return refused;
        }
        Read::Message(read) => (of_message(frame, &read), refused_by_table(&read), false),
        Read::Probe(read) => (of_probe(&read), BTreeSet::new(), true),
    };
    assert_eq!(told(seen, is_probe), wanted, "{}", what());
    assert_eq!(refused, by_table, "{}", what());
    refused
}

/// The names of all reasons that an ARP+ frame can be refused for.
pub fn reasons_of_parser() -> BTreeSet<String> {
    let of_others = |name: &str| {
        name.starts_with("arp_") || name.starts_with("advertisement_") || name.starts_with("not_")
    };
    let names = Refusal::ALL.iter().map(|refusal| refusal.name()).filter(|name| !of_others(name));
    names.map(str::to_owned).collect()
}
