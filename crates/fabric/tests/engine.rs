//! The engine, step by step, over a transport in this process.

mod toy;

use std::{
    sync::Arc,
    time::{Duration, Instant},
};

use linkbraid_fabric::FrameKeys;
use linkbraid_fabric::engine::{
    CONTROL_MESSAGE_MAX, Config, Control, ControlMessage, Counter, End, Engine, HOLD_MAX, Mac, PortRefusal,
    Step, derive_mac, engines,
};
use linkbraid_wire::fabric::{HEADER_LEN, Header, Kind, VIRTIO_LEN};
use proptest::prelude::*;
use toy::{FakePort, Kernel, Net, Toy};

const DEADLINE: Duration = Duration::from_secs(10);
const ALL: Mac = [0xff; 6];
const STRANGER: Mac = [2, 0, 0, 0, 0, 99];

/// One node: its engine, the kernel's side of it and the session's.
struct Node {
    engine: Engine<Toy, FakePort>,
    kernel: Arc<Kernel>,
    control: Control,
}

impl Node {
    fn step(&mut self) -> Step {
        self.engine.step()
    }

    fn count(&self, peer: u16, counter: Counter) -> u64 {
        self.control.shared().total(peer, counter)
    }

    /// Every message that came from `peer` and what became of it.
    fn received(&self, peer: u16) -> u64 {
        let first = Counter::RxFrames.number();
        let counted = Counter::ALL.iter().filter(|counter| {
            (first..=Counter::ControlIn.number()).contains(&counter.number()) && **counter != Counter::RxBytes
        });
        counted.map(|counter| self.count(peer, *counter)).sum::<u64>()
            + self.count(peer, Counter::ControlDropFull)
            + self.count(peer, Counter::ControlDropStorm)
    }
}

fn epoch(node: u16) -> u64 {
    1_000 + u64::from(node)
}

/// Nodes that are all connected.
fn nodes(count: u16, slots: usize, config: Config) -> (Arc<Net>, Vec<Node>) {
    let net = Net::new(count, slots);
    let node = |number| {
        let kernel = Kernel::new(512);
        let queue = (net.node(number), kernel.port());
        let (control, mut made) = engines(config, epoch(number), vec![queue]).unwrap();
        (0..count).filter(|peer| *peer != number).for_each(|peer| control.set_link(peer, Some(epoch(peer))));
        Node { engine: made.pop().unwrap(), kernel, control }
    };
    let nodes = (0..count).map(node).collect();
    (net, nodes)
}

fn frame(to: Mac, from: Mac, mark: usize) -> Vec<u8> {
    let mut frame = [to, from].concat();
    frame.extend([0x88, 0xb5]);
    frame.extend(mark.to_be_bytes());
    frame
}

fn mac(node: u16) -> Mac {
    derive_mac(0, node)
}

fn data(from: u16, to: u16, sequence: u32, frame: &[u8]) -> (Header, Vec<u8>) {
    let header = Header {
        kind: Kind::Data,
        sender: from,
        receiver: to,
        stream: 0,
        sender_epoch: epoch(from),
        receiver_epoch: epoch(to),
        sequence,
        length: (VIRTIO_LEN + frame.len()) as u32,
    };
    (header, [&[0; VIRTIO_LEN], frame].concat())
}

fn bytes((header, body): &(Header, Vec<u8>)) -> Vec<u8> {
    [&header.emit()[..], body].concat()
}

#[test]
fn a_frame_goes_to_whom_its_address_names_and_else_to_everyone() {
    let (_, mut nodes) = nodes(4, 64, Config::default());
    let arrivals = |nodes: &mut Vec<Node>| -> Vec<usize> {
        while nodes.iter_mut().map(Node::step).filter(|step| *step == Step::Worked).count() > 0 {}
        nodes.iter().map(|node| node.kernel.discard()).collect()
    };
    nodes[0].kernel.sends(&frame(mac(2), mac(0), 0));
    assert_eq!(arrivals(&mut nodes), [0, 0, 1, 0], "derived");
    nodes[0].kernel.sends(&frame(ALL, mac(0), 0));
    nodes[0].kernel.sends(&frame([0x33, 0x33, 0, 0, 0, 1], mac(0), 0));
    assert_eq!(arrivals(&mut nodes), [0, 2, 2, 2], "broadcast and multicast");
    nodes[0].kernel.sends(&frame(STRANGER, mac(0), 0));
    assert_eq!(arrivals(&mut nodes), [0, 1, 1, 1], "unknown");
    nodes[3].kernel.sends(&frame(mac(0), STRANGER, 0));
    assert_eq!(arrivals(&mut nodes), [1, 0, 0, 0]);
    nodes[0].kernel.sends(&frame(STRANGER, mac(0), 0));
    assert_eq!(arrivals(&mut nodes), [0, 0, 0, 1], "learned");
    assert_eq!(nodes[0].count(3, Counter::MacLearned), 1);
    nodes[1].kernel.sends(&frame(mac(0), STRANGER, 0));
    arrivals(&mut nodes);
    assert_eq!(nodes[0].count(1, Counter::MacMoved), 1);
    nodes[0].kernel.sends(&frame(mac(2), STRANGER, 0));
    assert_eq!(arrivals(&mut nodes), [0, 0, 1, 0]);
    nodes[0].kernel.sends(&frame(STRANGER, mac(0), 0));
    assert_eq!(arrivals(&mut nodes), [0, 1, 1, 1], "it has moved here, so nobody is known to have it");
    assert_eq!(nodes[0].count(1, Counter::TxCopies), 4);
    nodes[0].kernel.sends(&[0; 13]);
    assert_eq!(arrivals(&mut nodes), [0; 4]);
    assert_eq!(nodes[0].count(0, Counter::TxDropShort), 1);
}

#[test]
fn a_full_queue_holds_the_sender_back_and_nothing_is_lost_or_reordered() {
    let (net, mut nodes) = nodes(2, 4, Config::default());
    for mark in 0..200 {
        assert!(nodes[0].kernel.sends(&frame(mac(1), mac(0), mark)));
    }
    nodes[0].step();
    assert_eq!(
        (net.waiting(0, 1), nodes[0].kernel.waiting()),
        (4, 195),
        "four in the queue, one in the hand"
    );
    assert_eq!(nodes[0].step(), Step::Idle);
    assert_eq!(nodes[0].kernel.waiting(), 195);
    let mut marks = Vec::new();
    while nodes[1].step() == Step::Worked {
        while let Some(frame) = nodes[1].kernel.got() {
            marks.push(usize::from_be_bytes(frame[14..].try_into().unwrap()));
        }
        nodes[0].step();
    }
    assert_eq!(marks, (0..200).collect::<Vec<_>>());
    assert!(nodes[0].count(1, Counter::TxHeld) > 0);
    assert_eq!(nodes[0].count(1, Counter::TxFrames), 200);
}

#[test]
fn a_peer_that_takes_nothing_does_not_stop_the_others_for_long() {
    let (net, mut nodes) = nodes(3, 4, Config::default());
    for mark in 0..10 {
        nodes[0].kernel.sends(&frame(ALL, mac(0), mark));
    }
    let start = Instant::now();
    let mut got = 0;
    while got < 10 {
        nodes[0].step();
        nodes[1].step();
        got += nodes[1].kernel.discard();
        assert!(start.elapsed() < DEADLINE, "{got}");
    }
    assert!(start.elapsed() >= HOLD_MAX);
    assert_eq!(net.waiting(0, 2), 4);
    nodes[0].step();
    assert_eq!(nodes[0].count(2, Counter::TxDropFull), 6);
    assert_eq!(nodes[0].count(1, Counter::TxFrames), 10);
    // Then nobody waits for it any more.
    let before = nodes[0].count(2, Counter::TxHeld);
    for mark in 0..10 {
        nodes[0].kernel.sends(&frame(mac(2), mac(0), mark));
    }
    nodes[0].step();
    assert_eq!((nodes[0].kernel.waiting(), nodes[0].count(2, Counter::TxHeld)), (0, before));
}

#[test]
fn who_is_not_connected_gets_nothing_and_is_not_heard() {
    let (net, mut nodes) = nodes(3, 4, Config::default());
    for mark in 0..6 {
        nodes[0].kernel.sends(&frame(mac(1), mac(0), mark));
    }
    nodes[0].step();
    assert_eq!(net.waiting(0, 1), 4);
    nodes[0].control.set_link(1, None);
    nodes[0].step();
    assert_eq!((net.waiting(0, 1), nodes[0].kernel.waiting()), (0, 0), "what waits for it is forgotten");
    assert_eq!(nodes[0].count(1, Counter::TxDropDown), 2);
    assert_eq!(nodes[0].count(1, Counter::Resets), 1);
    let hello = data(1, 0, 0, &frame(mac(0), mac(1), 0));
    assert!(net.inject(1, 0, &bytes(&hello)));
    nodes[0].step();
    assert_eq!(nodes[0].count(1, Counter::RxDropEpoch), 1);
    // It starts again: what it said before does not come through, what it says now does.
    nodes[0].control.set_link(1, Some(7));
    net.inject(1, 0, &bytes(&hello));
    let mut again = hello.clone();
    again.0.sender_epoch = 7;
    net.inject(1, 0, &bytes(&again));
    let mut ours_old = again.clone();
    ours_old.0.receiver_epoch = 999;
    ours_old.0.sequence = 1;
    net.inject(1, 0, &bytes(&ours_old));
    nodes[0].step();
    assert_eq!((nodes[0].count(1, Counter::RxDropEpoch), nodes[0].kernel.discard()), (3, 1));
    nodes[0].control.set_link(1, None);
    nodes[0].control.set_link(2, None);
    nodes[0].kernel.sends(&frame(ALL, mac(0), 0));
    nodes[0].step();
    assert_eq!(nodes[0].count(0, Counter::TxDropAlone), 1);
}

#[test]
fn a_start_that_comes_back_is_the_one_that_was_there() {
    let (net, mut nodes) = nodes(2, 8, Config::default());
    let sent = |sequence| bytes(&data(1, 0, sequence, &frame(mac(0), mac(1), sequence as usize)));
    let take = |node: &mut Node, sequence| {
        assert!(net.inject(1, 0, &sent(sequence)));
        node.step();
        node.kernel.discard()
    };
    assert_eq!((take(&mut nodes[0], 5), take(&mut nodes[0], 7)), (1, 1));
    nodes[0].kernel.sends(&frame(mac(1), mac(0), 0));
    nodes[0].step();
    for seen in [true, false] {
        // Down and up again; the queue's thread may see both at once.
        nodes[0].control.set_link(1, None);
        if seen {
            nodes[0].step();
        }
        nodes[0].control.set_link(1, Some(epoch(1)));
        nodes[0].step();
        assert_eq!((take(&mut nodes[0], 5), take(&mut nodes[0], 7)), (0, 0), "they came before");
    }
    assert_eq!(nodes[0].count(1, Counter::RxDropTwice), 4);
    assert_eq!((take(&mut nodes[0], 6), take(&mut nodes[0], 8)), (1, 1), "these did not");
    // And the sequence goes on, or the peer would take what is new for what it had.
    nodes[0].kernel.sends(&frame(mac(1), mac(0), 1));
    nodes[0].step();
    let message = net.steal(0, 1).unwrap();
    let header = Header::parse(message.first_chunk().unwrap()).unwrap();
    assert_eq!(header.sequence, 1);
    // Another start begins again.
    nodes[0].control.set_link(1, Some(9));
    nodes[0].step();
    let mut other = data(1, 0, 5, &frame(mac(0), mac(1), 0));
    other.0.sender_epoch = 9;
    assert!(net.inject(1, 0, &bytes(&other)));
    nodes[0].step();
    assert_eq!((nodes[0].kernel.discard(), nodes[0].count(1, Counter::RxDropTwice)), (1, 4));
}

#[test]
fn what_is_wrong_is_counted_by_its_reason() {
    let (net, mut nodes) = nodes(3, 64, Config::default());
    let good = data(1, 0, 5, &frame(mac(0), mac(1), 0));
    let with = |change: &dyn Fn(&mut Header)| {
        let mut other = good.clone();
        change(&mut other.0);
        bytes(&other)
    };
    let from = |source: Mac| bytes(&data(1, 0, 77, &frame(mac(0), source, 0)));
    let mut virtio = good.clone();
    virtio.0.sequence = 6;
    virtio.1[1] = 1;
    for (message, reason) in [
        (bytes(&good), Counter::RxFrames),
        (bytes(&good), Counter::RxDropTwice),
        (vec![1], Counter::RxDropHeader),
        (bytes(&good)[..HEADER_LEN].to_vec(), Counter::RxDropHeader),
        (with(&|header| header.length += 1), Counter::RxDropHeader),
        (with(&|header| header.sender = 2), Counter::RxDropNode),
        (with(&|header| header.receiver = 2), Counter::RxDropNode),
        (with(&|header| header.stream = 1), Counter::RxDropNode),
        (with(&|header| header.sender_epoch += 1), Counter::RxDropEpoch),
        (with(&|header| header.receiver_epoch += 1), Counter::RxDropEpoch),
        (bytes(&virtio), Counter::RxDropVirtio),
        (from(ALL), Counter::RxDropSource),
    ] {
        let before = nodes[0].count(1, reason);
        assert!(net.inject(1, 0, &message));
        nodes[0].step();
        assert_eq!(nodes[0].count(1, reason), before + 1, "{reason:?}");
    }
    for (sequence, source) in [(80, [0; 6]), (81, mac(0)), (82, mac(2)), (83, derive_mac(0, 500))] {
        net.inject(1, 0, &bytes(&data(1, 0, sequence, &frame(mac(0), source, 0))));
    }
    nodes[0].step();
    assert_eq!(nodes[0].count(1, Counter::RxDropSource), 5);
    assert_eq!(nodes[0].kernel.discard(), 1);
    assert_eq!(nodes[0].received(1), 16);
}

#[test]
fn nobody_else_sends_from_the_address_that_the_interface_was_given() {
    let (net, mut nodes) = nodes(2, 64, Config::default());
    let own = [2, 0, 0, 0, 0, 7];
    let send = |sequence| bytes(&data(1, 0, sequence, &frame(ALL, own, 0)));
    net.inject(1, 0, &send(0));
    nodes[0].step();
    assert_eq!((nodes[0].kernel.discard(), nodes[0].count(1, Counter::MacLearned)), (1, 1));
    nodes[0].control.set_mac(own);
    assert_eq!(nodes[0].control.shared().macs().node_of(own, 0), None, "what was learned is forgotten");
    net.inject(1, 0, &send(1));
    nodes[0].step();
    assert_eq!((nodes[0].kernel.discard(), nodes[0].count(1, Counter::RxDropSource)), (0, 1));
    nodes[0].control.set_mac(mac(0));
    net.inject(1, 0, &send(2));
    nodes[0].step();
    assert_eq!(nodes[0].kernel.discard(), 1);
}

#[test]
fn a_storm_is_cut_off_on_both_sides() {
    let config = Config { storm_rate: 1, storm_burst: 10, ..Config::default() };
    let (net, mut nodes) = nodes(2, 256, config);
    for mark in 0..100 {
        nodes[0].kernel.sends(&frame(ALL, mac(0), mark));
        nodes[0].kernel.sends(&frame(mac(1), mac(0), mark));
    }
    for _ in 0..8 {
        nodes[0].step();
    }
    assert!((88..=90).contains(&nodes[0].count(0, Counter::TxDropStorm)));
    let sent = net.waiting(0, 1) as u64;
    assert!((110..=112).contains(&sent), "what has one destination passes: {sent}");
    for sequence in 1_000..1_100 {
        net.inject(0, 1, &bytes(&data(0, 1, sequence, &frame(ALL, mac(0), 0))));
    }
    for _ in 0..8 {
        nodes[1].step();
    }
    assert!(nodes[1].count(0, Counter::RxDropStorm) >= 98);
    assert!(nodes[1].kernel.discard() >= 110);
}

#[test]
fn control_messages_cross_both_ways_connected_or_not() {
    let (net, mut nodes) = nodes(2, 4, Config::default());
    nodes[1].control.set_link(0, None);
    nodes[1].step();
    let message = |mark: u8| {
        let body = vec![mark; 32];
        let header = Header { kind: Kind::Control, sequence: 0, length: 32, ..data(0, 1, 0, &[]).0 };
        [&header.emit()[..], &body].concat()
    };
    for mark in 0..4 {
        assert!(nodes[0].control.send(ControlMessage::new(1, &message(mark)).unwrap()));
    }
    nodes[0].step();
    // Full: of those that wait the last is kept.
    for mark in 4..7 {
        nodes[0].control.send(ControlMessage::new(1, &message(mark)).unwrap());
    }
    nodes[0].step();
    assert_eq!((net.waiting(0, 1), nodes[0].count(1, Counter::ControlReplaced)), (4, 2));
    let mut marks = Vec::new();
    for _ in 0..2 {
        nodes[1].step();
        nodes[0].step();
        nodes[1].control.quiet();
        while let Some(message) = nodes[1].control.receive() {
            assert_eq!(message.peer(), 0);
            marks.push(message.bytes()[HEADER_LEN]);
        }
    }
    assert_eq!(marks, [0, 1, 2, 3, 6]);
    assert!(
        ControlMessage::new(0, &[0; CONTROL_MESSAGE_MAX + 1]).is_none()
            && ControlMessage::new(0, &[]).is_none()
    );
    // A peer that sends too many is cut off; a session that does not listen loses messages, not the engine's time.
    for _ in 0..2_000 {
        net.inject(0, 1, &message(9));
        nodes[1].step();
    }
    assert!(nodes[1].count(0, Counter::ControlDropStorm) > 0);
    let start = Instant::now();
    let mut sent = 2_005;
    while nodes[1].count(0, Counter::ControlDropFull) == 0 {
        assert!(start.elapsed() < DEADLINE);
        sent += u64::from(net.inject(0, 1, &message(9)));
        nodes[1].step();
    }
    assert_eq!(nodes[1].received(0), sent);
}

#[test]
fn control_messages_of_other_epochs_keep_out_no_others() {
    let (net, mut nodes) = nodes(2, 4, Config::default());
    nodes[1].step();
    let good = data(0, 1, 0, &[]).0;
    let mut take = |sender_epoch, receiver_epoch, sequence, mark: u8| {
        let header =
            Header { sender_epoch, receiver_epoch, kind: Kind::Control, sequence, length: 32, ..good };
        net.inject(0, 1, &[&header.emit()[..], &[mark; 32]].concat());
        nodes[1].step();
        let all = std::iter::from_fn(|| nodes[1].control.receive());
        let marks: Vec<u8> = all.map(|said| said.bytes()[HEADER_LEN]).collect();
        (marks, [Counter::ControlDropStorm, Counter::RxDropEpoch].map(|counter| nodes[1].count(0, counter)))
    };
    // For an earlier start of the receiver: who asks without knowing the epoch is heard all the same.
    for _ in 0..2_000 {
        assert_eq!(take(epoch(0), epoch(1) + 1, 0, 9).0, Vec::<u8>::new());
    }
    assert_eq!(take(99, 0, 0, 7), (vec![7], [0, 2_000]));
    // Of another start of the peer: the one that is connected is heard all the same.
    let dropped = (0..2_000).map(|_| take(99, epoch(1), 0, 9).1[0]).max().unwrap_or_default();
    assert!(dropped > 0, "too few to be too many");
    assert_eq!(take(epoch(0), epoch(1), 0, 8), (vec![8], [dropped, 2_000]));
    // Who repeats what he has heard: the peer has another number by now, and is heard all the same.
    let repeated = (0..2_000).map(|_| take(epoch(0), epoch(1), 7, 9).1[0]).max().unwrap_or_default();
    assert!(repeated > dropped, "too few to be too many");
    assert_eq!(take(epoch(0), epoch(1), 8, 6).0, [6]);
}

#[test]
fn an_interface_that_is_down_or_gone_is_told_apart() {
    let (net, mut nodes) = nodes(2, 64, Config::default());
    nodes[0].kernel.refuse(Some(PortRefusal::Down));
    net.inject(1, 0, &bytes(&data(1, 0, 0, &frame(mac(0), mac(1), 0))));
    nodes[0].step();
    assert_eq!(nodes[0].count(1, Counter::RxDropDown), 1);
    nodes[0].kernel.refuse(Some(PortRefusal::Frame));
    net.inject(1, 0, &bytes(&data(1, 0, 1, &frame(mac(0), mac(1), 0))));
    nodes[0].step();
    assert_eq!(nodes[0].count(1, Counter::RxDropKernel), 1);
    nodes[0].kernel.refuse(Some(PortRefusal::Gone));
    assert_eq!(nodes[0].step(), Step::Ended(End::PortGone));
    nodes[1].control.stop();
    assert_eq!(nodes[1].step(), Step::Ended(End::Stopped));
}

#[test]
fn a_thread_that_sleeps_is_woken_from_every_side() {
    let (_, mut all) = nodes(2, 8, Config::default());
    let (second, first) = (all.pop().unwrap(), all.pop().unwrap());
    let threads = [first.engine, second.engine].map(|engine| std::thread::spawn(|| engine.run()));
    let start = Instant::now();
    for mark in 0..40 {
        // The pauses are longer than it spins, so that it sleeps between.
        let asleep = first.control.shared().total(0, Counter::Sleeps);
        while first.control.shared().total(0, Counter::Sleeps) < asleep + 2 {
            assert!(start.elapsed() < 6 * DEADLINE);
            std::thread::yield_now();
        }
        assert!(first.kernel.sends(&frame(mac(1), mac(0), mark)));
        let answer = loop {
            if let Some(frame) = second.kernel.got() {
                break frame;
            }
            assert!(start.elapsed() < 6 * DEADLINE);
            std::thread::yield_now();
        };
        assert_eq!(answer, frame(mac(1), mac(0), mark));
    }
    first.control.stop();
    drop(second.control);
    for thread in threads {
        assert_eq!(thread.join().unwrap(), End::Stopped);
    }
}

#[test]
fn queues_that_do_not_belong_together_are_refused() {
    let net = Net::new(2, 4);
    let queue = |node: u16| (net.node(node), Kernel::new(1).port());
    assert!(engines(Config::default(), 1, Vec::<(Toy, FakePort)>::new()).is_err());
    assert!(engines(Config::default(), 1, vec![queue(0), queue(0)]).is_err(), "both are queue 0");
    assert!(engines(Config::default(), 0, vec![queue(0)]).is_err(), "an epoch of 0");
    assert!(engines(Config::default(), 1, vec![queue(2)]).is_err(), "node 2 of 2");
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(64))]
    #[test]
    fn hostile_messages_are_each_counted_once(
        messages in proptest::collection::vec((any::<bool>(), proptest::collection::vec(any::<u8>(), 0..120)), 1..60),
    ) {
        let (net, mut nodes) = nodes(2, 64, Config::default());
        let count = messages.len() as u64;
        for (sequence, (headed, body)) in (0..).zip(messages) {
            let message = if headed { bytes(&data(1, 0, sequence, &body)) } else { body };
            let message = if message.is_empty() { vec![0] } else { message };
            net.inject(1, 0, &message);
        }
        while nodes[0].step() == Step::Worked {}
        prop_assert_eq!(nodes[0].received(1), count);
    }
}

//= docs/fabric.md#9.4 type=test
#[test]
fn nothing_leaves_plain_on_an_encrypted_link_and_nothing_plain_is_taken() {
    let (_net, mut nodes) = nodes(2, 64, Config::default());
    let keys = FrameKeys { epoch: epoch(1), ..FrameKeys::default() };
    nodes[0].control.set_encrypted_link(1, &keys);
    // This transport cannot encrypt.
    nodes[0].kernel.sends(&frame(mac(1), mac(0), 1));
    nodes[1].kernel.sends(&frame(mac(0), mac(1), 2));
    nodes[1].control.send(ControlMessage::new(0, b"a message of the session, as it is").expect("short"));
    (0..4).for_each(|_| nodes.iter_mut().for_each(|node| _ = node.step()));
    assert_eq!((nodes[0].count(1, Counter::TxDropUnreachable), nodes[0].count(1, Counter::TxFrames)), (1, 0));
    assert_eq!((nodes[0].count(1, Counter::RxDropPlain), nodes[0].count(1, Counter::RxFrames)), (1, 0));
    // Neither any more.
    nodes[0].control.set_link(1, Some(epoch(1)));
    nodes[0].kernel.sends(&frame(mac(1), mac(0), 3));
    (0..4).for_each(|_| nodes.iter_mut().for_each(|node| _ = node.step()));
    assert_eq!((nodes[0].count(1, Counter::TxFrames), nodes[1].count(0, Counter::RxFrames)), (1, 1));
}
