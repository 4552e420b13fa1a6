//! Two machines and whoever is on the wire between them. Whole hosts with keys are in `tests/sim_host.rs`.

use super::*;
use crate::random;
use linkbraid_wire::{
    AUTH_CODE_LEN, AUTH_TLV_LEN, Extension, Kind, Member, Message, emit_frame, parse_frame,
};
use std::time::Duration;
use zeroize::Zeroizing;

fn key(id: u32) -> Key {
    Key::new(id, Zeroizing::new([id as u8; SECRET_LEN]))
}

fn settings(mode: Mode, ids: &[u32]) -> Settings {
    let ring = Ring::new(ids.iter().map(|id| key(*id)).collect(), ids[0]).expect("a ring");
    Settings { mode, ring: Arc::new(ring) }
}

/// One host with one member.
struct Node {
    auth: Auth,
    mac: MacAddr,
    number: u8,
    /// Who has proven something to it.
    met: Vec<(u8, MacAddr, HostId)>,
}

impl Node {
    fn new(number: u8, seed: u64, settings: Settings) -> Node {
        let mut auth = Auth::new(HostId([number; 16]), 1, seed);
        auth.set(settings);
        Node { auth, mac: MacAddr([2, 0, 0, 0, 0, number]), number, met: Vec::new() }
    }

    /// What it announces, without a code.
    fn bare(&self) -> Vec<u8> {
        let member = Member { index: 0, up: true, weight_mbit: 1000, class: 0 };
        let extension = Extension {
            host: HostId([self.number; 16]),
            epoch: 1,
            sequence: 1,
            members: vec![member],
            digest: Some(0),
            ..Extension::default()
        };
        let message = Message {
            kind: Kind::Change,
            address: Some([198, 18, 0, self.number].into()),
            hardware: vec![self.mac],
            extension: Some(extension),
        };
        emit_frame(MacAddr::BROADCAST, self.mac, &message).expect("a good message")
    }

    fn says(&mut self, now: Time) -> Vec<u8> {
        let bare = self.bare();
        self.auth.sign(now, bare).expect("signed")
    }

    fn hears(&mut self, now: Time, frame: &[u8]) -> bool {
        self.auth.admit(now, Port { slot: 0, mac: self.mac, own: &[self.mac] }, frame)
    }

    fn count(&self, counter: Counter) -> u64 {
        self.auth.counters().get(counter)
    }

    /// The frames that it sends of itself.
    fn sends(&mut self) -> Vec<Vec<u8>> {
        let mut frames = Vec::new();
        while let Some(action) = self.auth.poll_action() {
            match action {
                Action::Send { frame, .. } => frames.push(frame),
                Action::Met { slot, mac, host } => self.met.push((slot, mac, host)),
                Action::Unkeyed(_) => {}
            }
        }
        frames
    }
}

fn at(ms: u64) -> Time {
    Time::from_millis(ms)
}

/// Questions and answers pass between them until neither has any; what passed.
fn settle(now: Time, one: &mut Node, other: &mut Node) -> Vec<Vec<u8>> {
    let mut passed = Vec::new();
    loop {
        let (from_one, from_other) = (one.sends(), other.sends());
        if from_one.is_empty() && from_other.is_empty() {
            return passed;
        }
        assert!(passed.len() < 100, "it comes to an end");
        for frame in &from_one {
            assert!(!other.hears(now, frame), "it is for no other machine");
        }
        for frame in &from_other {
            assert!(!one.hears(now, frame), "it is for no other machine");
        }
        passed.extend(from_one.into_iter().chain(from_other));
    }
}

/// Two hosts with key 1 that know each other.
fn acquainted(mode: Mode) -> (Node, Node) {
    let (mut one, mut other) =
        (Node::new(1, 11, settings(mode, &[1])), Node::new(2, 22, settings(mode, &[1])));
    let frame = one.says(at(0));
    assert_eq!(other.hears(at(0), &frame), mode == Mode::Permit);
    assert_eq!(settle(at(0), &mut one, &mut other).len(), 4, "a question and an answer each way");
    assert_eq!((one.count(Counter::Proven), other.count(Counter::Proven)), (1, 1));
    let is = |node: &Node| [(0, node.mac, HostId([node.number; 16]))];
    assert_eq!((&one.met[..], &other.met[..]), (&is(&other)[..], &is(&one)[..]), "once each");
    (one, other)
}

//= docs/arp-plus.md#15.6 type=test
//= docs/arp-plus.md#15.7 type=test
#[test]
fn a_host_is_heard_once_it_has_proven_that_it_speaks_now() {
    let (mut one, mut other) = acquainted(Mode::Require);
    for ms in 1..200 {
        let frame = one.says(at(ms));
        assert!(other.hears(at(ms), &frame));
        let frame = other.says(at(ms));
        assert!(one.hears(at(ms), &frame));
    }
    assert!(one.sends().is_empty() && other.sends().is_empty());
}

//= docs/arp-plus.md#15.4 type=test
#[test]
fn what_is_forged_is_refused_and_each_reason_is_counted() {
    let (mut one, mut other) = acquainted(Mode::Require);
    let good = one.says(at(1));
    for at_byte in 0..good.len() {
        for bit in 0..8 {
            let mut forged = good.clone();
            forged[at_byte] ^= 1 << bit;
            assert!(!other.hears(at(1), &forged), "bit {bit} of byte {at_byte}");
        }
    }
    assert!(other.sends().is_empty(), "it asks nobody because of a forged frame");
    let before =
        [Counter::Missing, Counter::Malformed, Counter::OtherKey, Counter::BadCode].map(|c| other.count(c));
    assert!(!other.hears(at(1), &one.bare()));
    let short = [&one.bare()[..], &[7, 4, 0, 0, 0, 1]].concat();
    assert!(!other.hears(at(1), &short));
    let mut foreign = Node::new(1, 11, settings(Mode::Require, &[9]));
    assert!(!other.hears(at(1), &foreign.says(at(1))));
    let mut same_id = Node::new(1, 11, settings(Mode::Require, &[1]));
    let wrong = Key::new(1, Zeroizing::new([7; SECRET_LEN]));
    same_id
        .auth
        .set(Settings { mode: Mode::Require, ring: Arc::new(Ring::new(vec![wrong], 1).expect("a ring")) });
    assert!(!other.hears(at(1), &same_id.says(at(1))));
    let after =
        [Counter::Missing, Counter::Malformed, Counter::OtherKey, Counter::BadCode].map(|c| other.count(c));
    assert_eq!(after, before.map(|count| count + 1));
    assert!(other.hears(at(1), &good), "and the true one is taken after all that");
    assert!(!other.hears(at(1), &[]), "nothing is no frame");
}

//= docs/arp-plus.md#15.1 type=test
#[test]
fn the_code_is_what_the_specification_says() {
    let mut one = Node::new(1, 11, settings(Mode::Require, &[1]));
    let bare = one.bare();
    let frame = one.says(at(0));
    assert_eq!(frame.len(), bare.len() + AUTH_TLV_LEN);
    assert_eq!(frame[..bare.len()], bare);
    let covered = [b"linkbraid ARP+ AUTH 1", &frame[..frame.len() - AUTH_CODE_LEN]].concat();
    // By hand (RFC 2104): the key is shorter than a block of 64 bytes.
    use sha2::{Digest, Sha256};
    let pad = |with: u8| {
        let mut block = [with; 64];
        block[..SECRET_LEN].iter_mut().for_each(|byte| *byte ^= 1);
        block
    };
    let inner = Sha256::digest([&pad(0x36)[..], &covered].concat());
    let outer = Sha256::digest([&pad(0x5c)[..], &inner].concat());
    assert_eq!(frame[frame.len() - AUTH_CODE_LEN..], outer[..AUTH_CODE_LEN]);
    assert!(parse_frame(&frame).is_ok(), "hosts without keys read it");
}

#[test]
fn replayed_frames_are_refused_whoever_starts_again() {
    let (mut one, mut other) = acquainted(Mode::Require);
    let recorded = one.says(at(1));
    assert!(other.hears(at(1), &recorded));
    assert!(!other.hears(at(2), &recorded));
    assert_eq!(other.count(Counter::Replayed), 1);
    // From another member's MAC the code is wrong.
    let mut moved = recorded.clone();
    moved[11] = 9;
    assert!(!other.hears(at(2), &moved));
    assert_eq!(other.count(Counter::BadCode), 1);
    // The receiver starts again, and knows nobody.
    let mut other = Node::new(2, 33, settings(Mode::Require, &[1]));
    assert!(!other.hears(at(3), &recorded));
    let question = other.sends();
    assert_eq!(question.len(), 1, "it asks the host whose MAC that is");
    assert!(!other.hears(at(3), &recorded), "nobody answered");
    assert!(!one.hears(at(3), &question[0]));
    settle(at(3), &mut one, &mut other);
    assert!(!other.hears(at(4), &recorded), "and after the answer it is an old one");
    assert!(other.hears(at(4), &one.says(at(4))));
    // The sender starts again, with another index.
    let mut one = Node::new(1, 44, settings(Mode::Require, &[1]));
    let first = one.says(at(5));
    assert!(!other.hears(at(5), &first));
    settle(at(5), &mut one, &mut other);
    assert!(!other.hears(at(6), &recorded), "the former index is nobody's");
    assert!(other.hears(at(6), &one.says(at(6))));
}

//= docs/arp-plus.md#15.6 type=test
#[test]
fn recorded_answers_prove_nothing() {
    let mut one = Node::new(1, 11, settings(Mode::Require, &[1]));
    let mut other = Node::new(2, 22, settings(Mode::Require, &[1]));
    let frame = one.says(at(0));
    other.hears(at(0), &frame);
    let question = other.sends().remove(0);
    one.hears(at(0), &question);
    let sent = one.sends();
    let answer = sent.iter().find(|frame| parse_probe(frame).is_ok_and(|f| f.probe.kind == ProbeKind::Reply));
    let answer = answer.expect("it answers").clone();
    // Too late, and to a host that did not ask.
    other.hears(at(1000), &answer);
    assert_eq!(other.count(Counter::Proven), 0);
    let mut other = Node::new(2, 55, settings(Mode::Require, &[1]));
    other.hears(at(2000), &answer);
    assert_eq!(other.count(Counter::Proven), 0);
    assert_eq!(other.sends().len(), 1, "it asks");
    other.hears(at(2001), &answer);
    assert_eq!(other.count(Counter::Proven), 0, "another nonce");
}

//= docs/arp-plus.md#15.7 type=test
#[test]
fn questions_and_answers_are_limited() {
    let (mut one, _) = acquainted(Mode::Require);
    let limit = u64::from(limits::AUTH_AT_ONCE);
    for number in 0..limit + 100 {
        let mut stranger = Node::new(3, number, settings(Mode::Require, &[1]));
        stranger.mac.0[1..3].copy_from_slice(&(number as u16).to_be_bytes());
        let probe = Probe { nonce: 1, host: HostId([3; 16]), ..Probe::default() };
        let question = emit_probe(one.mac, stranger.mac, &probe).expect("a probe");
        let question = stranger.auth.sign(at(0), question).expect("signed");
        one.hears(at(0), &question);
    }
    assert_eq!(one.count(Counter::Answered), limit, "one of them before");
    assert_eq!(one.count(Counter::Challenged), limit);
    assert_eq!(one.count(Counter::LimitAnswers), 101);
    assert_eq!(one.count(Counter::LimitChallenges), 101);
    one.sends();
    // The same member again and again is asked every 300 ms.
    let mut stranger = Node::new(4, 9, settings(Mode::Require, &[1]));
    for ms in 2000..3000 {
        let frame = stranger.says(at(ms));
        assert!(!one.hears(at(ms), &frame));
    }
    assert_eq!(one.sends().len(), 4);
    let mut asked_at = |ms| {
        let frame = stranger.says(at(ms));
        assert!(!one.hears(at(ms), &frame));
        one.sends().len()
    };
    assert_eq!([5000, 5299, 5300].map(&mut asked_at), [1, 0, 1]);
}

//= docs/arp-plus.md#15.6 type=test
#[test]
fn a_question_that_is_repeated_within_a_second_is_the_same_one() {
    let mut one = Node::new(1, 11, settings(Mode::Require, &[1]));
    let mut other = Node::new(2, 22, settings(Mode::Require, &[1]));
    let mut nonce = |ms| {
        one.hears(at(ms), &other.says(at(ms)));
        parse_probe(&one.sends()[0]).expect("a question").probe.nonce
    };
    let nonces = [0, 999, 1299].map(&mut nonce);
    assert_eq!(nonces[0], nonces[1]);
    assert_ne!(nonces[1], nonces[2], "its second is over");
    assert_eq!(one.auth.challenges.len(), 1);
}

//= docs/arp-plus.md#15.2 type=test
#[test]
fn a_counter_that_would_begin_again_begins_with_another_index() {
    let (mut one, mut other) = acquainted(Mode::Require);
    let index = one.auth.index;
    one.auth.sent.insert(one.mac, u64::MAX - 1);
    assert!(other.hears(at(1), &one.says(at(1))), "the last one");
    assert_eq!(one.auth.index, index);
    let frame = one.says(at(2));
    assert_ne!(one.auth.index, index);
    assert!(!other.hears(at(2), &frame));
    settle(at(2), &mut one, &mut other);
    assert!(other.hears(at(3), &one.says(at(3))));
    assert_eq!(Auth::new(HostId([1; 16]), 1, 5).index, Auth::new(HostId([2; 16]), 1, 5).index);
    assert_ne!(Auth::new(HostId([1; 16]), 1, 5).index, Auth::new(HostId([1; 16]), 1, 6).index, "of the seed");
}

//= docs/arp-plus.md#15.2 type=test
//= docs/arp-plus.md#15.6 type=test
#[test]
fn an_index_and_a_nonce_tell_nothing_of_the_next_ones() {
    let mut node = Node::new(1, 5, settings(Mode::Require, &[1]));
    let mut foretold = random::foretold(node.auth.index);
    for number in 2..20 {
        let mut other = Node::new(number, 6, settings(Mode::Require, &[1]));
        let question = other.says(at(0));
        node.hears(at(0), &question);
        for frame in node.sends() {
            let nonce = parse_probe(&frame).expect("a question").probe.nonce;
            assert!(!foretold.contains(&nonce), "{nonce}");
            foretold.extend(random::foretold(nonce));
        }
    }
    assert!(foretold.len() > 1000, "few questions");
}

//= docs/arp-plus.md#3.2 type=test
#[test]
fn what_a_later_version_adds_is_covered_and_goes_on() {
    let (mut one, mut other) = acquainted(Mode::Require);
    let mut frame = one.bare();
    frame.extend([0x80, 3, 1, 2, 3]);
    let frame = one.auth.sign(at(1), frame).expect("signed");
    assert!(other.hears(at(1), &frame));
    let parsed = parse_frame(&frame).expect("a good message").parsed;
    assert_eq!((parsed.unknown_tlvs, parsed.message.kind), (1, Kind::Change));
    let place = frame.windows(5).position(|bytes| bytes == [0x80, 3, 1, 2, 3]).expect("is in it");
    let mut changed = frame;
    changed[place + 2] ^= 1;
    assert!(!other.hears(at(2), &changed), "the code covers it");
    assert_eq!(other.count(Counter::BadCode), 1);
}

//= docs/arp-plus.md#15.3 type=test
#[test]
fn a_ring_has_two_keys_of_different_ids_at_most() {
    assert!(Ring::new(vec![key(1), key(2)], 2).is_some());
    assert!(Ring::new(vec![key(1), key(2)], 3).is_none(), "none signs");
    assert!(Ring::new(vec![key(1), key(1)], 1).is_none(), "twice the same id");
    assert!(Ring::new(vec![key(1), key(2), key(3)], 1).is_none());
    assert!(Ring::new(Vec::new(), 0).is_none());
    assert_eq!(format!("{:?}", key(0x1_2345)), "Key(00012345)", "the secret is never printed");
}

//= docs/arp-plus.md#15.3 type=test
#[test]
fn keys_are_exchanged_in_three_steps_and_nothing_is_refused() {
    let (mut one, mut other) = acquainted(Mode::Require);
    let mut now = 1;
    let mut talk = |one: &mut Node, other: &mut Node| {
        for _ in 0..5 {
            now += 1;
            assert!(other.hears(at(now), &one.says(at(now))));
            assert!(one.hears(at(now), &other.says(at(now))));
        }
    };
    for ids in [&[1, 2][..], &[2, 1], &[2]] {
        one.auth.set(settings(Mode::Require, ids));
        talk(&mut one, &mut other);
        other.auth.set(settings(Mode::Require, ids));
        talk(&mut one, &mut other);
    }
    assert!(one.sends().is_empty() && other.sends().is_empty(), "nobody has to prove anything again");
    let mut old = Node::new(3, 3, settings(Mode::Require, &[1]));
    assert!(!one.hears(at(100), &old.says(at(100))));
    assert_eq!(one.count(Counter::OtherKey), 1);
}

//= docs/arp-plus.md#15.8 type=test
#[test]
fn permit_takes_all_and_is_ready_for_require() {
    let (mut one, mut other) = acquainted(Mode::Permit);
    assert!(other.hears(at(1), &one.bare()), "a host without keys");
    let mut foreign = Node::new(3, 3, settings(Mode::Permit, &[9]));
    assert!(other.hears(at(1), &foreign.says(at(1))));
    for node in [&mut one, &mut other] {
        node.auth.set(settings(Mode::Require, &[1]));
    }
    assert!(other.hears(at(2), &one.says(at(2))));
    assert!(!other.hears(at(2), &one.bare()));
    let off = Node::new(4, 4, Settings::default()).hears(at(1), &one.bare());
    assert!(off);
}

//= docs/arp-plus.md#15.9 type=test
#[test]
fn without_a_key_nothing_is_said_or_believed_where_one_is_required() {
    let no_key = |mode| Settings { mode, ring: Arc::default() };
    let mut one = Node::new(1, 1, no_key(Mode::Require));
    let bare = one.bare();
    assert_eq!(one.auth.sign(at(0), bare.clone()), None);
    assert_eq!(one.count(Counter::TxUnsigned), 1);
    let mut other = Node::new(2, 2, settings(Mode::Require, &[1]));
    assert!(!one.hears(at(0), &other.says(at(0))));
    let mut one = Node::new(1, 1, no_key(Mode::Permit));
    assert_eq!(one.auth.sign(at(0), bare.clone()), Some(bare.clone()));
    let mut off = Node::new(1, 1, Settings::default());
    assert_eq!(off.auth.sign(at(0), bare.clone()), Some(bare), "off leaves all as it is");
    let arp = [&[0xff; 6][..], &[2, 0, 0, 0, 0, 2], &[8, 6], &[0; 46]].concat();
    assert_eq!(other.auth.sign(at(0), arp.clone()), Some(arp), "and so is what is not ARP+");
}

#[test]
fn hosts_without_the_key_are_reported_by_name_unless_they_forge_the_name_of_one_that_has_it() {
    let (mut one, mut other) = acquainted(Mode::Require);
    assert!(other.hears(at(1), &one.says(at(1))));
    assert!(!other.hears(at(2), &one.bare()), "in the name of a host that is heard");
    assert_eq!(other.auth.unkeyed(at(2)).count(), 0);
    let mut foreign = Node::new(3, 3, settings(Mode::Require, &[9]));
    let bare = Node::new(4, 4, Settings::default()).bare();
    other.hears(at(3), &foreign.says(at(3)));
    other.hears(at(3), &bare);
    other.hears(at(4), &bare);
    let told = std::iter::from_fn(|| other.auth.poll_action()).collect::<Vec<_>>();
    let listed: Vec<Unkeyed> = other.auth.unkeyed(at(4)).cloned().collect();
    let host = |number, why| Unkeyed {
        mac: MacAddr([2, 0, 0, 0, 0, number]),
        address: Some([198, 18, 0, number].into()),
        why,
    };
    assert_eq!(listed, [host(3, Why::AnotherKey), host(4, Why::NoKey)]);
    assert_eq!(told, listed.into_iter().map(Action::Unkeyed).collect::<Vec<_>>(), "each once");
    let gone = at(4) + limits::AUTH_REFUSED_LIVES;
    assert_eq!(other.auth.unkeyed(gone.minus(Duration::from_millis(1))).count(), 1);
    assert_eq!(other.auth.unkeyed(gone).count(), 0);
    for number in 0..=u8::MAX {
        other.hears(at(5), &Node::new(number, 4, Settings::default()).bare());
    }
    assert_eq!(other.auth.unkeyed(at(5)).count(), limits::AUTH_REFUSED_MAX);
}

#[test]
fn a_host_that_gets_the_key_is_not_reported_any_more() {
    let (mut one, mut other) =
        (Node::new(1, 11, Settings::default()), Node::new(2, 22, settings(Mode::Require, &[1])));
    other.hears(at(0), &one.bare());
    assert_eq!(other.auth.unkeyed(at(0)).count(), 1);
    one.auth.set(settings(Mode::Require, &[1]));
    other.hears(at(1), &one.says(at(1)));
    assert_eq!(other.auth.unkeyed(at(1)).count(), 1, "nothing is proven yet");
    settle(at(1), &mut one, &mut other);
    assert!(other.hears(at(2), &one.says(at(2))));
    assert_eq!(other.auth.unkeyed(at(2)).count(), 0);
}

#[test]
fn hosts_that_were_cloned_from_one_image_are_told_apart_by_their_macs() {
    let (mut one, mut other) = acquainted(Mode::Require);
    let mut clone = Node::new(1, 66, settings(Mode::Require, &[1]));
    clone.mac = MacAddr([2, 0, 0, 0, 0, 99]);
    other.hears(at(1), &clone.says(at(1)));
    settle(at(1), &mut clone, &mut other);
    assert!(other.hears(at(2), &clone.says(at(2))), "ARP+ reports that two hosts have one id");
    assert!(other.hears(at(2), &one.says(at(2))));
    one.hears(at(3), &clone.says(at(3)));
    settle(at(3), &mut one, &mut clone);
    assert!(one.hears(at(4), &clone.says(at(4))));
}

#[test]
fn own_frames_get_a_code_where_there_is_a_key_and_it_is_asked_for() {
    let no_key = |mode| Settings { mode, ring: Arc::default() };
    let signs = |settings| Node::new(1, 1, settings).auth.signs();
    assert_eq!(
        [Mode::Off, Mode::Permit, Mode::Require].map(|mode| signs(settings(mode, &[1]))),
        [false, true, true]
    );
    assert_eq!([Mode::Off, Mode::Permit, Mode::Require].map(|mode| signs(no_key(mode))), [false; 3]);
}

//= docs/arp-plus.md#15.7 type=test
#[test]
fn an_answer_brings_the_nonce_back_and_says_whose_it_is() {
    let (mut one, mut other) =
        (Node::new(1, 11, settings(Mode::Require, &[1])), Node::new(2, 22, settings(Mode::Require, &[1])));
    other.hears(at(0), &one.says(at(0)));
    let question = other.sends().remove(0);
    let asked = parse_probe(&question).expect("a question");
    assert_eq!((asked.src, asked.dst, asked.probe.kind), (other.mac, one.mac, ProbeKind::Probe));
    assert_eq!((asked.probe.host, asked.probe.epoch, asked.probe.echo), (HostId([2; 16]), 1, 0));
    assert_eq!(asked.probe.number, CHALLENGE_NUMBER);
    one.hears(at(0), &question);
    let sent = one.sends().into_iter().filter_map(|frame| parse_probe(&frame).ok());
    let answers: Vec<ProbeFrame> = sent.filter(|frame| frame.probe.kind == ProbeKind::Reply).collect();
    let [answer] = &answers[..] else { panic!("one answer: {answers:?}") };
    assert_eq!((answer.dst, answer.probe.host, answer.probe.epoch), (other.mac, HostId([1; 16]), 1));
    assert_eq!(answer.probe.echo, asked.probe.nonce);
    let usual = Probe::default().nonce;
    assert!(![usual, asked.probe.nonce].contains(&answer.probe.nonce), "a nonce of its own");
}

//= docs/arp-plus.md#15.7 type=test
#[test]
fn only_what_asks_this_very_member_and_is_no_lanes_stays_here() {
    let (mut one, mut other) = acquainted(Mode::Require);
    let mut goes_on = |number, dst| {
        let probe = Probe { host: HostId([1; 16]), nonce: 5, number, ..Probe::default() };
        let frame = emit_probe(dst, one.mac, &probe).expect("a probe");
        let frame = one.auth.sign(at(1), frame).expect("signed");
        (other.hears(at(1), &frame), other.sends().len())
    };
    let (here, elsewhere) = (MacAddr([2, 0, 0, 0, 0, 2]), MacAddr([2, 0, 0, 0, 0, 9]));
    assert_eq!(goes_on(CHALLENGE_NUMBER, here), (false, 1));
    assert_eq!(goes_on(CHALLENGE_NUMBER + 1, here), (true, 0), "a lane's");
    assert_eq!(goes_on(CHALLENGE_NUMBER, elsewhere), (true, 0));
}

#[test]
fn what_was_refused_by_other_settings_is_forgotten() {
    let (mut one, mut other) =
        (Node::new(1, 11, Settings::default()), Node::new(2, 22, settings(Mode::Require, &[1])));
    other.hears(at(0), &one.bare());
    other.auth.set(settings(Mode::Require, &[1]));
    assert_eq!(other.auth.unkeyed(at(0)).count(), 1, "the same settings");
    other.auth.set(settings(Mode::Permit, &[1]));
    assert_eq!((other.auth.unkeyed(at(0)).count(), other.auth.mode()), (0, Mode::Permit));
    one.sends();
}

//= docs/arp-plus.md#15.6 type=test
#[test]
fn nobody_is_asked_because_of_own_frames_or_what_is_for_another_member() {
    let mut other = Node::new(2, 22, settings(Mode::Require, &[1]));
    let mut asks = |src: MacAddr, dst: MacAddr, number| {
        let mut one = Node::new(1, number, settings(Mode::Require, &[1]));
        let probe = Probe { host: HostId([1; 16]), nonce: 5, number: 7, ..Probe::default() };
        let frame = emit_probe(dst, src, &probe).expect("a probe");
        let frame = one.auth.sign(at(0), frame).expect("signed");
        other.hears(at(0), &frame);
        other.sends().len()
    };
    let mac = |number| MacAddr([2, 0, 0, 0, 0, number]);
    assert_eq!(asks(mac(1), mac(2), 1), 1);
    assert_eq!(asks(mac(3), mac(9), 2), 0, "a switch sends it everywhere");
    assert_eq!(asks(mac(2), mac(2), 3), 0, "this host's, before it started again");
}

#[test]
fn what_was_heard_before_the_latest_frame_is_not_taken_again() {
    let (mut one, mut other) = acquainted(Mode::Require);
    let frames: Vec<Vec<u8>> = (1..=3).map(|ms| one.says(at(ms))).collect();
    let mut takes = |number: usize| other.hears(at(4), &frames[number]);
    assert_eq!([0, 2, 1].map(&mut takes), [true; 3], "overtaken on the way");
    assert_eq!([0, 1, 2].map(&mut takes), [false; 3]);
}
