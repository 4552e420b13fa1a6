//! Encrypted frames between two sockets, and who is between them.

use super::*;
use crate::{limits::OUTBOX_BYTES, udp::cipher::tests::keys};

fn with_keys(net: &Net, options: &str) -> (Box<dyn Transport>, Box<dyn Transport>) {
    let (mut a, mut b) = net.pair(options);
    a.set_keys(1, Some(&keys(11, &[7], &[8])));
    b.set_keys(0, Some(&keys(10, &[8], &[7])));
    (a, b)
}

fn send(from: &mut Box<dyn Transport>, sent: &[u8]) {
    let part = sent.len().min(40);
    let to = 1 - from.shape().node;
    assert_eq!(from.send_encrypted(to, &sent[..part], &sent[part..]), Ok(()), "{} bytes", sent.len());
}

fn cross_encrypted(from: &mut Box<dyn Transport>, to: &mut Box<dyn Transport>, len: usize) {
    let sent = frame(len as u32, len);
    send(from, &sent);
    from.flush();
    let came = take_many(to, 1);
    assert!(came == [&sent[..]], "{len} bytes: {:?} came", came.iter().map(Vec::len).collect::<Vec<_>>());
}

#[test]
fn encrypted_frames_of_every_length_cross_every_path() {
    for (mtu, addresses) in [(1500, V4), (1500, V6), (9000, V4), (65_535, V4), (576, V4)] {
        let net = Net::new(mtu, addresses, 1);
        let (mut a, mut b) = with_keys(&net, "");
        let edge = mtu - if addresses == V4 { 28 } else { 48 } - HEAD - 28;
        let lens =
            [1, 41, 60, edge - 1, edge, edge + 1, edge + 28, 2 * edge, 2 * edge + 1, 65_000, FRAME_MAX];
        for len in lens.into_iter().filter(|len| *len <= FRAME_MAX) {
            cross_encrypted(&mut a, &mut b, len);
            cross_encrypted(&mut b, &mut a, len);
        }
        assert_eq!((a.stats(1).lost, b.stats(0).incomplete), (0, 0));
        let refused = [b.stats(0).bad_record, b.stats(0).bad_tag, b.stats(0).repeated, b.stats(0).other_key];
        assert_eq!(refused, [0; 4]);
        // Control messages go as they are.
        cross(&mut a, &mut b, 90);
    }
}

#[test]
fn frames_wait_together_and_what_is_not_taken_comes_again() {
    let net = Net::new(1500, V4, 1);
    let (mut a, mut b) = with_keys(&net, "");
    let lens = [60, 60, 60, 1400, 60, 3000, 1400, 64_000, 60];
    let sent: Vec<_> = (0..90u32).map(|number| frame(number, lens[number as usize % lens.len()])).collect();
    let mut came = Vec::new();
    for some in sent.chunks(9) {
        some.iter().for_each(|frame| send(&mut a, frame));
        a.flush();
        let begun = Instant::now();
        let wanted = came.len() + some.len();
        while came.len() < wanted && begun.elapsed() < DEADLINE {
            // Each is lent twice before it is taken: decrypted once.
            for answer in [Taken::Later, Taken::Later, Taken::Yes] {
                b.receive(1, &mut |_, bytes| {
                    assert!(bytes.is_encrypted());
                    if answer == Taken::Yes {
                        came.push(bytes.to_vec());
                    }
                    answer
                });
            }
        }
    }
    assert!(came == sent, "{} of {}", came.len(), sent.len());
    assert_eq!((b.stats(0).bad_tag, b.stats(0).repeated), (0, 0));
}

#[test]
fn a_socket_that_fills_loses_no_part_of_an_encrypted_frame() {
    let net = Net::new(1500, V4, 1);
    let (mut a, mut b) = with_keys(&net, "");
    within(&net.spaces[0], || run("tc qdisc add dev cable0 root tbf rate 1mbit burst 100k limit 100m"));
    let long = frame(2, 60_000);
    let begun = Instant::now();
    while a.send_encrypted(1, &[], &long) == Ok(()) {
        assert!(begun.elapsed() < DEADLINE, "never full");
    }
    let sent = a.stats(1).sent;
    within(&net.spaces[0], || run("tc qdisc change dev cable0 root tbf rate 1gbit burst 1m limit 100m"));
    let mut came = Vec::new();
    while (came.len() as u64) < sent && begun.elapsed() < DEADLINE {
        a.arm(&[1]);
        a.disarm();
        came.extend(take_many(&mut b, 1));
    }
    assert!(came.iter().all(|frame| *frame == long));
    assert_eq!(came.len() as u64, sent);
    assert!(sent * 60_000 > OUTBOX_BYTES as u64);
    assert_eq!((b.stats(0).bad_tag, b.stats(0).incomplete, a.stats(1).lost), (0, 0, 0));
}

/// What node 0 sends, as somebody hears it who has taken node 1's place.
fn recorded(net: &Net, a: &mut Box<dyn Transport>, frames: &[Vec<u8>], count: usize) -> Vec<Vec<u8>> {
    let ear = within(&net.spaces[1], || UdpSocket::bind((V4[1], PORT)).expect("nobody has it"));
    ear.set_read_timeout(Some(DEADLINE)).expect("a time");
    frames.iter().for_each(|frame| send(a, frame));
    a.flush();
    let hear = || {
        let mut bytes = vec![0; 1500];
        let len = ear.recv(&mut bytes).expect("a datagram");
        bytes.truncate(len);
        bytes
    };
    (0..count).map(|_| hear()).collect()
}

//= docs/fabric.md#9.4 type=test
//= docs/fabric.md#9.7 type=test
#[test]
fn who_sees_all_and_has_no_key_changes_nothing() {
    let net = Net::new(1500, V4, 1);
    let mut a = net.node(0, 1, "").remove(0);
    a.set_keys(1, Some(&keys(11, &[7], &[8])));
    let frames = [frame(1, 400), frame(2, 4000)];
    let heard = recorded(&net, &mut a, &frames, 4);
    for (frame, from) in frames.iter().zip([0, 1]) {
        let shows = |datagram: &Vec<u8>| {
            datagram.windows(16).any(|bytes| frame.windows(16).any(|part| part == bytes))
        };
        assert!(!heard[from..].iter().any(shows), "a part of a frame can be read");
    }
    let mut b = net.node(1, 1, "").remove(0);
    // Before the link is up nobody keeps him from beginning frames: with the numbers that true ones will have.
    let plain = |index: usize, fill: u8| {
        let (head, room) = heard[1][..16].split_at(8);
        let mut forged = [head, &[1], &room[1..], &[fill; 2000]].concat();
        forged.truncate(16 + usize::from(u16::from_be_bytes([room[4], room[5]])));
        forged[14..16].copy_from_slice(&(index as u16).to_be_bytes());
        forged
    };
    let mut far = plain(0, 9);
    far[4..8].copy_from_slice(&u32::MAX.wrapping_div(3).to_be_bytes());
    for forged in [plain(0, 1), plain(1, 2), far.clone()] {
        forge(&net, &forged);
    }
    forge(&net, &pieces(0xdead_beef, 1, b"whole", 1000)[0]);
    assert_eq!(take_many(&mut b, 1), [b"whole"]);
    b.set_keys(0, Some(&keys(10, &[8], &[7])));
    let mut wanted = b.stats(0);
    for genuine in &heard {
        for at in [0, 4, 7, 8, 9, 11, 12, 14, 16, 20, 27, 28, 60, genuine.len() - 1] {
            let mut flipped = genuine.clone();
            flipped[at] ^= 0x10;
            forge(&net, &flipped);
            match at {
                8 => wanted.bad_record += 1,
                16 => wanted.other_key += 1,
                _ => wanted.bad_tag += 1,
            }
        }
        forge(&net, &genuine[..40]);
        wanted.bad_tag += 1;
        for forged in [plain(0, 3), plain(1, 4), far.clone()] {
            forge(&net, &forged);
            wanted.plain += 1;
        }
    }
    // Late, and twice each.
    for genuine in heard.iter().rev().flat_map(|genuine| [genuine, genuine]) {
        forge(&net, genuine);
        wanted.repeated += 1;
    }
    wanted.repeated -= heard.len() as u64;
    let came = take_many(&mut b, 2);
    assert!(
        came == [frames[1].clone(), frames[0].clone()],
        "{:?}",
        came.iter().map(Vec::len).collect::<Vec<_>>()
    );
    cross_encrypted(&mut a, &mut b, 60);
    wanted.received += 3;
    assert_eq!(b.stats(0), wanted);
    // Keys change, and what came stays known; another start of the peer has other keys.
    b.set_keys(0, Some(&keys(10, &[9], &[9, 7])));
    heard.iter().for_each(|genuine| forge(&net, genuine));
    a.set_keys(1, Some(&keys(11, &[9], &[9])));
    cross_encrypted(&mut a, &mut b, 5000);
    assert_eq!(b.stats(0).repeated, wanted.repeated + 4);
    // Nobody encrypts any more: nothing that is encrypted is taken, and nothing leaves encrypted.
    b.set_keys(0, None);
    forge(&net, &heard[0]);
    forge(&net, &pieces(0xdead_beef, 2, b"whole", 1000)[0]);
    assert_eq!(take_many(&mut b, 1), [b"whole"]);
    assert_eq!(b.stats(0).other_key, wanted.other_key + 1);
    assert_eq!(b.send_encrypted(0, b"secret", &[]), Err(Refused::Unreachable));
}
