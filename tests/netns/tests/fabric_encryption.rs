//! Encrypted frames of a fabric: who gets none, that nobody reads or changes them, and that keys are exchanged under traffic.

use crate::nodes::Nodes;
use crate::nodes::keys::{counter, exchange_keys, headline, key_file, new_key, set, two_nodes, two_of};
use linkbraid_netns_tests::flow::Flow;
use linkbraid_netns_tests::packet::{IPV4, Tap, mac};
use linkbraid_netns_tests::until;
use std::process::Stdio;

/// Where the sum of a UDP header stands in a frame.
const UDP_SUM: usize = 14 + 20 + 6;

#[test]
fn encryption_is_for_those_who_ask_for_it_and_where_it_can_be() {
    let nodes = Nodes::hosts(2);
    new_key(&nodes, 2);
    let udp = nodes.transport("udp");
    let keys = |node: usize| format!("--key {} --auth require", key_file(&nodes, node));
    let add = |node: usize, transport: &str, options: &str| {
        format!("fabric add fab0 --node {node} --nodes 2 --transport {transport} {options}")
    };
    let shm = nodes.transport("shm");
    for (transport, keys, cause) in [
        (shm.as_str(), keys(0), "shm: cannot encrypt frames; its nodes share the memory of one machine"),
        ("ofi:tcp,/etc/none", keys(0), "ofi: cannot encrypt frames; udp: can"),
        (
            &format!("{udp},vxlan=4789"),
            keys(0),
            "vxlan=4789 asks for VXLAN, which carries frames as they are",
        ),
        (&udp, String::new(), "auth is off, and only nodes that have the key can decrypt them"),
    ] {
        let refused = nodes.net.say("a", &add(0, transport, &format!("{keys} --encrypt on")));
        assert_ne!(refused.code, 0);
        assert!(refused.err.contains(&format!("fab0: cannot encrypt frames: {cause}")), "{}", refused.err);
        assert!(refused.err.contains("hint: linkbraid fabric add fab0 "), "{}", refused.err);
    }
    nodes.net.ok("a", &add(0, &udp, &format!("{} --encrypt on", keys(0))));
    nodes.net.ok("b", &add(1, &udp, &keys(1)));
    let ends = [
        ": node 1: it does not encrypt frames, this node does",
        ": node 0: it encrypts frames, this node does not",
    ];
    for (node, end) in ends.into_iter().enumerate() {
        until(
            "its headline",
            || headline(&nodes, node),
            |line| line.ends_with(end) || line.contains("refused by it"),
        );
    }
    set(&nodes, 1, "--encrypt on");
    nodes.wait_up();
    let shown = nodes.net.ok("b", "fabric show fab0");
    for line in [
        "frames    encrypted (ChaCha20-Poly1305)",
        "vxlan     not used: frames are encrypted, which VXLAN cannot do",
    ] {
        assert!(shown.contains(line), "{shown}");
    }
    let refused = nodes.net.say("b", "fabric set fab0 --auth permit");
    assert!(
        refused.code != 0 && refused.err.contains("cannot encrypt frames: auth is permit"),
        "{}",
        refused.err
    );
    nodes.wait_up();
    (0..2).for_each(|node| set(&nodes, node, "--encrypt off --auth permit"));
    nodes.wait_up();
    assert!(!nodes.net.ok("a", "fabric show fab0").contains("ChaCha20"));
}

#[test]
fn keys_of_encrypted_frames_change_under_traffic_and_nothing_is_lost() {
    let nodes = Nodes::hosts(2);
    new_key(&nodes, 2);
    two_nodes(&nodes, &nodes.transport("udp"), "--encrypt on");
    nodes.ping(0, 1);
    let ends = [(nodes.net.host("a"), Nodes::ip(0)), (nodes.net.host("b"), Nodes::ip(1))];
    let flow = Flow::between([(ends[0].0, &ends[0].1), (ends[1].0, &ends[1].1)]);
    flow.wait_received(200);
    // What came while only one end held the link as up.
    let refused = || {
        let of = ["other_key", "bad_tag", "repeated", "plain"].map(|of| format!("transport_{of}"));
        [0, 1].map(|node| of.each_ref().map(|of| counter(&nodes, node, of)))
    };
    let before = refused();
    exchange_keys(&nodes, &flow);
    assert_eq!(flow.end(), (0, 0), "lost, and twice");
    for node in 0..2 {
        let downs =
            nodes.show(node).events.iter().filter(|event| event.new.as_deref() == Some("down")).count();
        assert_eq!(downs, 0, "{:?}", nodes.show(node).events);
    }
    assert_eq!(refused(), before);
    // A daemon that comes back has another epoch, and so other keys.
    nodes.net.kill("a");
    nodes.net.start("a", &[]);
    nodes.wait_up();
    nodes.ping(0, 1);
}

/// What pings are filled with, as ping and as packets have it.
const FILL: (&str, &[u8]) = ("6c696e6b62726169642d706c61696e21", b"linkbraid-plain!");
/// Where the head of a datagram stands in a frame, and in it the number of the frame, the version, and the size of its parts.
const HEAD: usize = 14 + 20 + 8;
const NUMBER: usize = HEAD + 4;
const VERSION: usize = HEAD + 8;
const SIZE: usize = HEAD + 12;
const ENCRYPTED: u8 = 2;
/// Bytes that an encrypted datagram has more.
const OVERHEAD: usize = 28;

/// What somebody makes of a datagram of b's who sees it, and sends from c.
fn forgeries(heard: &[u8], from: [u8; 6]) -> Vec<Vec<u8>> {
    let mut again = heard.to_vec();
    again[6..12].copy_from_slice(&from);
    again[UDP_SUM..UDP_SUM + 2].fill(0);
    let (mut flipped, mut plain) = (again.clone(), again.clone());
    let middle = HEAD + (flipped.len() - HEAD) / 2;
    flipped[middle] ^= 1;
    // Where it is encrypted this is its number: far ahead, too.
    flipped[HEAD + 20] ^= 1;
    // A part of a frame that is far ahead, so that all others are late.
    let more = if plain[VERSION] == ENCRYPTED { OVERHEAD } else { 0 };
    plain[VERSION] = 1;
    plain[NUMBER] ^= 0x40;
    let size = usize::from(u16::from_be_bytes([plain[SIZE], plain[SIZE + 1]]));
    if plain.len() < HEAD + 16 + size + more {
        return vec![again, flipped];
    }
    plain.truncate(HEAD + 16 + size);
    let (ip, udp) = ((plain.len() - 14) as u16, (plain.len() - 34) as u16);
    plain[16..18].copy_from_slice(&ip.to_be_bytes());
    plain[38..40].copy_from_slice(&udp.to_be_bytes());
    plain[24..26].fill(0);
    let words = plain[14..34].chunks_exact(2).map(|word| u32::from(u16::from_be_bytes([word[0], word[1]])));
    let sum = words.sum::<u32>();
    let sum = !(((sum & 0xffff) + (sum >> 16)) as u16);
    plain[24..26].copy_from_slice(&sum.to_be_bytes());
    vec![again, flipped, plain]
}

#[test]
fn who_sees_all_reads_no_encrypted_frame_and_changes_none() {
    let nodes = Nodes::hosts(3);
    new_key(&nodes, 2);
    // A datagram a packet, as on a wire.
    for host in ["a", "b"] {
        nodes.net.host(host).sh("ethtool -K eth0 tx-udp-segmentation off gso off").expect("sets");
    }
    let from_c = mac(&nodes.net.host("c").mac(0));
    let from_b = mac(&nodes.net.host("b").mac(0));
    for encrypt in ["off", "on"] {
        two_nodes(&nodes, &format!("{},vxlan=off", two_of(&nodes)), &format!("--encrypt {encrypt}"));
        nodes.ping(0, 1);
        let ear = Tap::open(nodes.net.host("a"), "eth0", IPV4);
        let stranger = Tap::open(nodes.net.host("c"), "eth0", IPV4);
        let mut ping = nodes.net.host("a").command("ping");
        // Frames of three datagrams.
        ping.args([
            "-q",
            "-n",
            "-i",
            "0.01",
            "-c",
            "300",
            "-W",
            "2",
            "-s",
            "4000",
            "-M",
            "dont",
            "-p",
            FILL.0,
            &Nodes::ip(1),
        ]);
        let mut ping = ping.stdout(Stdio::piped()).spawn().expect("pings");
        let (mut readable, mut sent) = (0, 0);
        while ping.try_wait().expect("a child").is_none() {
            for heard in ear.take().iter().filter(|frame| frame.len() > 1000 && frame[6..12] == from_b) {
                readable += usize::from(heard.windows(FILL.1.len()).any(|bytes| bytes == FILL.1));
                for forged in forgeries(heard, from_c) {
                    stranger.send(&forged).expect("sends");
                    sent += 1;
                }
            }
        }
        let said = String::from_utf8(ping.wait_with_output().expect("its words").stdout).expect("text");
        assert!(sent > 300, "{sent} forgeries");
        let counts =
            ["repeated", "bad_tag", "plain"].map(|of| counter(&nodes, 0, &format!("transport_{of}")));
        if encrypt == "on" {
            assert!(said.contains(" 0% packet loss"), "{said}");
            assert_eq!(readable, 0);
            assert!(counts.iter().all(|count| *count > 50), "{counts:?}");
        } else {
            // What he does where nothing is encrypted.
            assert!(!said.contains(" 0% packet loss"), "{said}");
            assert!(readable > 0);
            assert_eq!(counts, [0; 3]);
        }
        let downs = nodes.show(0).events.iter().filter(|event| event.new.as_deref() == Some("down")).count();
        assert_eq!(downs, 0, "{:?}", nodes.show(0).events);
        (0..2).for_each(|node| drop(nodes.net.ok(&nodes.names[node], "fabric del fab0")));
    }
}
