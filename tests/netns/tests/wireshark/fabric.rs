//! Datagrams of a fabric: what `linkbraid-fabric` and `linkbraid-wire` read in them, as fields of the dissector.

use super::{
    arp_plus::{OTHER, SOURCE},
    mirror,
    shark::{Fields, hex, put, reasons},
};
use linkbraid_fabric::{Assembly, Outcome, PIECE_HEAD, Piece, piece_head};
use linkbraid_wire::fabric::{
    CONTROL_LEN, Control, ControlBytes, ControlKind, DATA_MAX, DATA_MIN, ENCRYPTION_FEATURE,
    FABRIC_AUTH_FEATURE, FABRIC_AUTH_LEN, FAST_PATH_FEATURE, FAST_PATH_LEN, FabricRefusal, FastPath,
    HEADER_LEN, Header, IN_USE_FEATURE, Kind, Offer, RefuseReason, Tag, VIRTIO_LEN, emit_control,
    parse_control, parse_message, seal_control, sealed_control,
};
use std::collections::{BTreeMap, BTreeSet};

/// The UDP port of the nodes' first queue.
pub const PORT: u16 = 7000;
/// What stands in the head of a datagram that is encrypted (9.5), and where.
const ENCRYPTED: u8 = 2;
const VERSION_AT: usize = 8;
/// Bytes of the key id and the number, and of the tag.
const NAME: usize = 12;
const TAG: usize = 16;
const IPV4: [u8; 2] = [8, 0];
/// Bytes of the headers of Ethernet, IPv4 and UDP.
const HEADERS: usize = 14 + 20 + 8;

/// A frame with a UDP datagram.
pub fn udp(payload: &[u8], from: u16, to: u16) -> Vec<u8> {
    let length = (20 + 8 + payload.len()) as u16;
    let mut frame = [&OTHER.0[..], &SOURCE.0, &IPV4].concat();
    frame.extend([0x45, 0]);
    frame.extend(length.to_be_bytes());
    frame.extend([0, 0, 0x40, 0, 64, 17, 0, 0, 198, 18, 0, 1, 198, 18, 0, 2]);
    frame.extend([from.to_be_bytes(), to.to_be_bytes(), (length - 20).to_be_bytes(), [0, 0]].concat());
    frame.extend(payload);
    frame
}

/// The UDP payload of a frame between nodes, mirrored or not.
fn payload(frame: &[u8]) -> Option<&[u8]> {
    let inner = if frame.get(12..14)? == mirror::ETHERTYPE {
        frame.get(..frame.len().checked_sub(mirror::TRAILER)?)?
    } else {
        frame
    };
    let is_ours = |at: usize| inner.get(at..at + 2).is_some_and(|port| port == PORT.to_be_bytes());
    let is_udp = frame[12..14] == IPV4 || frame[frame.len() - 8..][..2] == IPV4;
    if !is_udp || inner.get(23) != Some(&17) || !(is_ours(34) && is_ours(36)) {
        return None;
    }
    let length = usize::from(u16::from_be_bytes([inner[38], inner[39]]));
    inner.get(HEADERS..34 + length)
}

/// A datagram as it is where nothing is encrypted. None if it is too short.
fn plain(datagram: &[u8]) -> Option<Vec<u8>> {
    if datagram.get(VERSION_AT) != Some(&ENCRYPTED) {
        return Some(datagram.to_vec());
    }
    let bytes = datagram.get(PIECE_HEAD + NAME..datagram.len().checked_sub(TAG)?)?;
    let mut plain = [&datagram[..PIECE_HEAD], bytes].concat();
    plain[VERSION_AT] = 1;
    Some(plain)
}

/// Datagrams that the kernel had joined, one by one: all but the last are as long as the first.
fn datagrams(payload: &[u8]) -> Vec<&[u8]> {
    let Some(head) = payload.get(..PIECE_HEAD) else { return vec![payload] };
    let half = |at: usize| usize::from(u16::from_be_bytes([head[at], head[at + 1]]));
    let total = half(10) | usize::from(head[9]) << 16;
    let left = total.saturating_sub(half(14) * half(12)).min(half(12));
    let more = if head[VERSION_AT] == ENCRYPTED { NAME + TAG } else { 0 };
    let joined: Vec<&[u8]> = payload.chunks(PIECE_HEAD + left + more).collect();
    let are_sound = joined.iter().all(|one| plain(one).is_some_and(|plain| Piece::parse(&plain).is_some()));
    if are_sound { joined } else { vec![payload] }
}

fn fields_of_head(fields: &mut Fields, head: &[u8]) {
    let number = |range: std::ops::Range<usize>| {
        head[range].iter().fold(0u64, |sum, byte| sum << 8 | u64::from(*byte))
    };
    for (name, range) in [
        ("instance", 0..4),
        ("number", 4..8),
        ("version", 8..9),
        ("total", 9..12),
        ("size", 12..14),
        ("index", 14..16),
    ] {
        put(fields, &format!("lbfabric.datagram.{name}"), number(range));
    }
}

fn fields_of_header(fields: &mut Fields, header: &Header) {
    let sequence = if header.kind == Kind::Data { "sequence" } else { "cookie_number" };
    for (name, value) in [
        ("version", 1),
        ("kind", header.kind as u64),
        ("sender", header.sender.into()),
        ("receiver", header.receiver.into()),
        ("stream", header.stream.into()),
        ("sender_epoch", header.sender_epoch),
        ("receiver_epoch", header.receiver_epoch),
        (sequence, header.sequence.into()),
        ("length", header.length.into()),
    ] {
        put(fields, &format!("lbfabric.{name}"), value);
    }
}

fn fields_of_control(fields: &mut Fields, control: &Control, message: &[u8]) {
    let mut say = |name: &str, value: u64| put(fields, &format!("lbfabric.{name}"), value);
    let sealed = sealed_control(message).expect("was asked before");
    let flag = |is: bool, bit: u16| if is { bit } else { 0 };
    let features = control.offer.features
        | flag(control.fast_path.is_some(), FAST_PATH_FEATURE)
        | flag(sealed.is_some(), FABRIC_AUTH_FEATURE);
    say("type", control.kind as u64);
    say("reason", control.reason.map_or(0, |reason| reason as u64));
    say("nodes", control.offer.nodes.into());
    say("mtu", control.offer.mtu.into());
    say("interval", control.offer.interval_us.into());
    say("multiplier", control.offer.multiplier.into());
    say("queues", control.offer.queues.into());
    say("features", features.into());
    for (name, bit) in [
        ("checksum", 1),
        ("tcp", 2),
        ("udp", 4),
        ("in_use", IN_USE_FEATURE),
        ("encryption", ENCRYPTION_FEATURE),
        ("auth", FABRIC_AUTH_FEATURE),
        ("fast_path", FAST_PATH_FEATURE),
    ] {
        say(&format!("features.{name}"), (features & bit != 0).into());
    }
    say("cookie", control.cookie);
    say("echo", control.echo);
    let mut rest = HEADER_LEN + CONTROL_LEN;
    if let Some(path) = control.fast_path {
        say("fast_path.port", path.port.into());
        say("fast_path.flags", message[rest + 2].into());
        say("fast_path.heard", path.heard.into());
        say("fast_path.group", path.tag.group().into());
        say("fast_path.network", path.tag.network().into());
        rest += FAST_PATH_LEN;
    }
    let end = message.len() - sealed.map_or(0, |_| FABRIC_AUTH_LEN);
    if rest < end {
        put(fields, "lbfabric.later", hex(&message[rest..end]));
    }
    if let Some(sealed) = sealed {
        put(fields, "lbfabric.auth.key_id", sealed.key_id);
        put(fields, "lbfabric.auth.code", hex(&sealed.code));
    }
}

/// The virtio header: little-endian (2.1).
fn fields_of_virtio(fields: &mut Fields, bytes: &[u8]) {
    let half = |at: usize| u16::from_le_bytes([bytes[at], bytes[at + 1]]);
    for (name, value) in [
        ("flags", bytes[0].into()),
        ("gso_type", bytes[1].into()),
        ("hdr_len", half(2)),
        ("gso_size", half(4)),
        ("csum_start", half(6)),
        ("csum_offset", half(8)),
        ("num_buffers", half(10)),
    ] {
        put(fields, &format!("lbfabric.virtio.{name}"), value);
    }
}

/// What our parser reads in a message, or why it refuses it.
fn fields_of_message(fields: &mut Fields, message: &[u8]) -> Result<(), FabricRefusal> {
    let (header, rest) = parse_message(message)?;
    let control = match header.kind {
        Kind::Control => {
            let (_, control) = parse_control(message)?;
            sealed_control(message)?;
            Some(control)
        }
        Kind::Data => None,
    };
    fields_of_header(fields, &header);
    match control {
        Some(control) => fields_of_control(fields, &control, message),
        None => fields_of_virtio(fields, &rest[..VIRTIO_LEN]),
    }
    Ok(())
}

/// Reads datagrams as a node does, from each sender by itself.
#[derive(Default)]
pub struct Reader {
    senders: BTreeMap<[u8; 4], Assembly>,
    /// What has come: types of control messages, and how frames travelled.
    pub kinds: BTreeSet<String>,
}

impl Reader {
    /// Holds what tshark read in a frame against what our parsers do. The reasons for a refusal.
    #[track_caller]
    pub fn compare(&mut self, frame: &[u8], seen: &Fields) -> BTreeSet<String> {
        let refused = reasons(seen, "lbfabric.refused.");
        let Some(payload) = payload(frame) else { return refused };
        let what = || format!("{} is {seen:#?}", hex(payload));
        let source: [u8; 4] = std::array::from_fn(|at| frame[26 + at]);
        let mut wanted = Fields::new();
        for datagram in datagrams(payload) {
            let read = self.one(&mut wanted, source, datagram);
            if let Err(reason) = read {
                let by_name = |name: &String| {
                    if reason == "datagram" { name.starts_with("datagram_") } else { *name == reason }
                };
                assert!(refused.iter().any(by_name), "our parser says {reason}; {}", what());
                return refused;
            }
        }
        let parts = ["refused.", "forbidden.", "note.", "answers", "time"];
        let is_beside = |name: &str| {
            name.strip_prefix("lbfabric.").is_none_or(|name| parts.iter().any(|part| name.starts_with(part)))
        };
        let told = seen.iter().filter(|(name, _)| !is_beside(name));
        let told: Fields = told.map(|(name, value)| (name.clone(), value.clone())).collect();
        assert_eq!(told, wanted, "{}", what());
        assert_eq!(refused, BTreeSet::new(), "{}", what());
        refused
    }

    fn one(&mut self, fields: &mut Fields, source: [u8; 4], datagram: &[u8]) -> Result<(), String> {
        let bad = || "datagram".to_owned();
        if datagram.get(VERSION_AT) == Some(&ENCRYPTED) {
            Piece::parse(&plain(datagram).ok_or_else(bad)?).ok_or_else(bad)?;
            fields_of_head(fields, &datagram[..PIECE_HEAD]);
            let (name, rest) = datagram[PIECE_HEAD..].split_at(NAME);
            let (secret, tag) = rest.split_at(rest.len() - TAG);
            put(fields, "lbfabric.encrypted.key_id", u32::from_be_bytes(std::array::from_fn(|at| name[at])));
            put(
                fields,
                "lbfabric.encrypted.number",
                u64::from_be_bytes(std::array::from_fn(|at| name[4 + at])),
            );
            put(fields, "lbfabric.encrypted.bytes", hex(secret));
            put(fields, "lbfabric.encrypted.tag", hex(tag));
            self.kinds.insert("encrypted".to_owned());
            return Ok(());
        }
        let piece = Piece::parse(datagram).ok_or_else(bad)?;
        fields_of_head(fields, &datagram[..PIECE_HEAD]);
        put(fields, "lbfabric.datagram.bytes", hex(piece.bytes));
        let assembly = self.senders.entry(source).or_default();
        let message = match assembly.take(&piece) {
            Outcome::Whole => piece.bytes.to_vec(),
            Outcome::Complete(slot) => assembly.frame(slot).to_vec(),
            Outcome::Bad => return Err("datagram_differs".to_owned()),
            Outcome::Waits | Outcome::Old => return Ok(()),
        };
        assembly.finish(&piece);
        fields_of_message(fields, &message).map_err(|refusal| refusal.name().to_owned())?;
        self.kinds.insert(match parse_control(&message) {
            Ok((_, control)) => format!("{:?}", control.kind),
            Err(_) if piece.is_whole() => "Data".to_owned(),
            Err(_) => "Data in parts".to_owned(),
        });
        Ok(())
    }
}

const OFFER: Offer =
    Offer { nodes: 4, mtu: 9000, interval_us: 100_000, multiplier: 5, queues: 6, features: 0x8003 };
const FAST_PATH: Option<Tag> = Tag::new(0xa1a2, 0xb1_b2b3);

fn control(kind: ControlKind) -> Control {
    Control {
        kind,
        reason: (kind == ControlKind::Refuse).then_some(RefuseReason::Mtu),
        offer: OFFER,
        cookie: 0x4142_4344_4546_4748,
        number: 0x6162_6364,
        echo: 0x5152_5354_5556_5758,
        fast_path: None,
    }
}

/// A DATA message of so many bytes behind its header.
fn data(length: usize) -> Vec<u8> {
    let header = Header {
        kind: Kind::Data,
        sender: 1,
        receiver: 2,
        stream: 63,
        sender_epoch: 0x1112_1314_1516_1718,
        receiver_epoch: 0x2122_2324_2526_2728,
        sequence: 0xf132_3334,
        length: length as u32,
    };
    let virtio = [1, 0x84, 66, 0, 0xa8, 5, 34, 0, 16, 0, 0, 0];
    let mut message = [&header.emit()[..], &virtio, &OTHER.0, &SOURCE.0, &[0x88, 0xf7]].concat();
    message.resize(HEADER_LEN + length, 0x5a);
    message
}

/// A control message of a type, with nothing behind it.
fn bare(control: &Control) -> ControlBytes {
    let receiver = if control.kind == ControlKind::Hello { 0 } else { 9 };
    emit_control((1, 7), (2, receiver), control).expect("keeps the rules")
}

/// The control messages of every kind, with what may follow them and without.
fn controls() -> Vec<Vec<u8>> {
    let mut messages = Vec::new();
    for kind in ControlKind::ALL {
        let bare = bare(&control(kind));
        let mut sealed = bare;
        seal_control(&mut sealed, 0xa1a2_a3a4, |covered| std::array::from_fn(|at| covered[at] ^ 0x55));
        messages.extend([bare.to_vec(), sealed.to_vec()]);
    }
    for kind in [ControlKind::Accept, ControlKind::Alive] {
        let fast_path = FAST_PATH.map(|tag| FastPath { port: 64_001, tag, heard: true });
        let mut message = bare(&Control { fast_path, ..control(kind) });
        messages.push(message.to_vec());
        seal_control(&mut message, 5, |_| [0xcc; 16]);
        messages.push(message.to_vec());
    }
    for reason in RefuseReason::ALL {
        messages.push(bare(&Control { reason: Some(reason), ..control(ControlKind::Refuse) }).to_vec());
    }
    messages
}

/// Messages that receivers take and nobody may send, and which rule each breaks.
fn rare() -> Vec<(&'static str, Vec<u8>)> {
    let emit = |sender, receiver, control: &Control| {
        emit_control((sender, 0x77), (receiver, 9), control).expect("keeps the rules").to_vec()
    };
    let encrypting = Offer { features: ENCRYPTION_FEATURE, ..OFFER };
    let fast_path = FAST_PATH.map(|tag| FastPath { port: 64_001, tag, heard: false });
    let alive = control(ControlKind::Alive);
    let of_stream = |mut message: Vec<u8>| {
        message[7] = 1;
        message
    };
    let mut to_nobody = emit(1, 2, &Control { fast_path, ..control(ControlKind::Hello) });
    to_nobody[16..24].fill(0);
    let mut plain = data(100);
    plain[8..16].copy_from_slice(&0x77_u64.to_be_bytes());
    vec![
        ("sender", emit(OFFER.nodes, 1, &alive)),
        ("stream", of_stream(emit(1, 2, &alive))),
        ("own_number", emit(1, 1, &alive)),
        ("fast_path", emit(1, 2, &Control { fast_path, ..control(ControlKind::Bye) })),
        ("fast_path", to_nobody),
        ("fast_path_encrypted", emit(1, 2, &Control { fast_path, offer: encrypting, ..alive })),
        // The one before has said that it encrypts.
        ("not_encrypted", plain),
    ]
}

/// The same as frames.
pub fn forbidden() -> Vec<(&'static str, Vec<u8>)> {
    rare().into_iter().map(|(rule, message)| (rule, udp(&whole(&message), PORT, PORT))).collect()
}

/// Messages in which a number of several bytes is 0.
fn zeroed() -> Vec<Vec<u8>> {
    let fast_path = FAST_PATH.map(|tag| FastPath { port: 64_001, tag, heard: false });
    let alive = Control { fast_path, ..control(ControlKind::Alive) };
    let message = emit_control((1, 7), (2, 9), &alive).expect("keeps the rules").to_vec();
    let path = HEADER_LEN + CONTROL_LEN;
    // The cookie, the echo, and of the fast path the port, the group and the network.
    let places = [48..56, 56..64, path..path + 2, path + 3..path + 5, path + 5..path + 8];
    let zero = |place: std::ops::Range<usize>| {
        let mut message = message.clone();
        message[place].fill(0);
        message
    };
    places.map(zero).into()
}

/// Messages in which a number is the least or the most that it may be, and one beyond.
fn at_limits() -> Vec<Vec<u8>> {
    let alive = emit_control((1, 7), (2, 9), &control(ControlKind::Alive)).expect("keeps the rules").to_vec();
    let set = |message: &[u8], at: usize, value: &[u8]| {
        let mut message = message.to_vec();
        message[at..at + value.len()].copy_from_slice(value);
        message
    };
    let mut messages = Vec::new();
    for sender in [511u16, 512] {
        messages.push(set(&alive, 2, &sender.to_be_bytes()));
    }
    for nodes in [1u16, 2, 512, 513] {
        messages.push(set(&alive, HEADER_LEN + 2, &nodes.to_be_bytes()));
    }
    for mtu in [67u32, 68, 65_521, 65_522] {
        messages.push(set(&alive, HEADER_LEN + 4, &mtu.to_be_bytes()));
    }
    for queues in [0u8, 1, 64, 65] {
        messages.push(set(&alive, HEADER_LEN + 13, &[queues]));
    }
    for stream in [63u16, 64] {
        messages.push(set(&data(100), 6, &stream.to_be_bytes()));
    }
    for length in [31u32, 32, 256, 257] {
        let mut message = set(&alive, 28, &length.to_be_bytes());
        message.resize(HEADER_LEN + length as usize, 9);
        messages.push(message);
    }
    messages
}

/// A message in one datagram.
fn whole(message: &[u8]) -> Vec<u8> {
    [&piece_head(0xd1d2_d3d4, 9, message.len(), message.len().max(1), 0)[..], message].concat()
}

/// A message in parts of so many bytes.
fn parts(number: u32, message: &[u8], size: usize) -> Vec<Vec<u8>> {
    let part =
        |(at, bytes): (usize, &[u8])| [&piece_head(7, number, message.len(), size, at)[..], bytes].concat();
    message.chunks(size).enumerate().map(part).collect()
}

fn encrypted(bytes: &[u8]) -> Vec<u8> {
    let mut datagram = piece_head(7, 8, 3 * bytes.len(), bytes.len(), 1).to_vec();
    datagram[VERSION_AT] = ENCRYPTED;
    [&datagram[..], &[0xa1, 0xa2, 0xa3, 0xa4, 0, 0, 0, 1, 0, 0, 0, 2], bytes, &[0x77; TAG]].concat()
}

/// The same bytes with one of them changed.
fn changed(bytes: &[u8], places: std::ops::Range<usize>) -> Vec<Vec<u8>> {
    let ways = |byte: u8| [byte ^ 1, !byte, 0];
    let at = |at: usize| ways(bytes[at]).map(|byte| [&bytes[..at], &[byte], &bytes[at + 1..]].concat());
    places.flat_map(at).collect()
}

/// Frames with datagrams of a fabric.
pub fn all() -> Vec<Vec<u8>> {
    let mut datagrams: Vec<Vec<u8>> = Vec::new();
    let longest = controls().into_iter().max_by_key(Vec::len).expect("some");
    let each = ControlKind::ALL.iter().map(|kind| bare(&control(*kind)).to_vec());
    for datagram in each.chain([longest.clone()]).map(|message| whole(&message)) {
        datagrams.extend(changed(&datagram, 0..datagram.len()));
    }
    for message in controls() {
        let datagram = whole(&message);
        // What a later version appends.
        let mut later = message;
        let length = (later.len() - HEADER_LEN + 4) as u32;
        later.splice(HEADER_LEN + CONTROL_LEN..HEADER_LEN + CONTROL_LEN, [1, 2, 3, 4]);
        later[28..HEADER_LEN].copy_from_slice(&length.to_be_bytes());
        datagrams.push(whole(&later));
        datagrams.push(datagram);
    }
    // The longest one, cut: the datagram, and the message in one that says so.
    datagrams.extend((0..longest.len()).map(|length| whole(&longest[..length])));
    let longest = whole(&longest);
    // Of an empty one no dissector is told.
    datagrams.extend((1..longest.len()).map(|length| longest[..length].to_vec()));
    datagrams.extend(zeroed().iter().chain(&at_limits()).map(|message| whole(message)));
    for length in [DATA_MIN, 100, 1000] {
        datagrams.push(whole(&data(length)));
    }
    for length in [0, 1, DATA_MIN - 1] {
        datagrams.push(whole(&data(length)));
    }
    datagrams.extend(changed(&whole(&data(100)), 0..PIECE_HEAD + HEADER_LEN + VIRTIO_LEN));
    // The longest message, in as many parts as may be, in another order, and with a part of another message of that number.
    let mut long = parts(1, &data(DATA_MAX), 257);
    long.swap(0, 100);
    datagrams.extend(long);
    datagrams.extend(parts(2, &data(DATA_MAX + 1), 1400));
    let two = parts(3, &data(1500), 1400);
    datagrams.extend([
        two[0].clone(),
        parts(3, &data(1501), 1400)[1].clone(),
        two[0].clone(),
        two[1].clone(),
    ]);
    // As many parts and bytes as may be; too many parts, none, and one that is not there.
    datagrams.push([&piece_head(7, 6, 256 * 200, 200, 0)[..], &[0; 200]].concat());
    datagrams.push([&piece_head(7, 7, 65_792, 1400, 0)[..], &[0; 1400]].concat());
    datagrams.push([&piece_head(7, 4, 257 * 200, 200, 0)[..], &[0; 200]].concat());
    datagrams.push([&piece_head(7, 4, 65_000, 200, 0)[..], &[0; 200]].concat());
    datagrams.push([&piece_head(7, 4, 65_793, 1400, 0)[..], &[0; 1400]].concat());
    datagrams.push([&piece_head(7, 4, 100, 0, 0)[..], &[0; 100]].concat());
    datagrams.push([&piece_head(7, 4, 100, 50, 2)[..], &[0; 50]].concat());
    let secret = encrypted(&[0xee; 100]);
    datagrams.extend((1..secret.len()).map(|length| secret[..length].to_vec()));
    datagrams.extend(changed(&secret, 0..secret.len()));
    // Datagrams that the kernel joined.
    datagrams.push(parts(5, &data(3000), 1000).concat());
    datagrams.push([secret.clone(), secret].concat());
    datagrams.iter().map(|datagram| udp(datagram, PORT, PORT)).collect()
}

/// Frames with a datagram that keeps all rules.
pub fn good() -> Vec<Vec<u8>> {
    let answer = Control { echo: control(ControlKind::Hello).cookie, ..control(ControlKind::Accept) };
    let answer = emit_control((2, 9), (1, 7), &answer).expect("keeps the rules").to_vec();
    let messages = controls().into_iter().chain([answer, data(100)]);
    messages.map(|message| udp(&whole(&message), PORT, PORT)).collect()
}

/// The names of all reasons that a message can be refused for.
pub fn reasons_of_parser() -> BTreeSet<String> {
    let names = FabricRefusal::ALL.iter().filter(|refusal| **refusal != FabricRefusal::OtherKind);
    let of_datagrams = ["short", "version", "total", "size", "index", "bytes", "differs"];
    let of_datagrams = of_datagrams.map(|name| format!("datagram_{name}"));
    names.map(|refusal| refusal.name().to_owned()).chain(of_datagrams).collect()
}
