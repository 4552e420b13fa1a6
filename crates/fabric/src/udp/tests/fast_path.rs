//! Options of the transport, and who may be met by VXLAN.

use crate::{Address, Join, Live, directory::Directory, udp::FastPath};
use std::{net::IpAddr, sync::Arc};

const JOIN: Join = Join { node: 0, nodes: 2, queues: 2 };

fn directory(lines: &str) -> Arc<Live> {
    Live::of(Directory::parse(lines, &JOIN).expect("a directory"), &JOIN)
}

fn plan(lines: &str, port: u16) -> Result<FastPath, (String, String)> {
    let directory = directory(lines);
    let name = format!("udp:/etc/f,mtu=1400,vxlan={port}");
    FastPath::new(&name, &directory, &JOIN, port, Some(1400))
        .map_err(|error| (error.cause, error.hint.unwrap_or_default()))
}

#[test]
fn a_port_of_the_queues_is_refused() {
    let lines = "0 127.0.0.1:7000\n1 127.0.0.2:7000\n";
    for port in [7000, 7001] {
        let (cause, hint) = plan(lines, port).expect_err("taken");
        assert_eq!(cause, format!("UDP port {port} is already that of node 0; VXLAN needs another one"));
        assert_eq!(hint, "--transport udp:/etc/f,mtu=1400,vxlan=4789");
    }
    assert!(plan(lines, 6999).is_ok() && plan(lines, 7002).is_ok());
    // Of another node on this machine, too.
    assert!(plan("0 127.0.0.1:7000\n1 127.0.0.1:4788\n", 4789).expect_err("taken").0.contains("node 1"));
    let hint = plan("0 127.0.0.1:4789\n1 127.0.0.2:7000\n", 4789).expect_err("taken").1;
    assert!(hint.ends_with("vxlan=4791"), "not one of the queues' either: {hint}");
}

#[test]
fn frames_have_the_room_that_headers_leave() {
    let plan = plan("0 127.0.0.1:7000\n1 127.0.0.2:7000\n", 4789).expect("a plan");
    assert_eq!((plan.ports(), plan.own()), (&[4789][..], IpAddr::from([127, 0, 0, 1])));
    assert!(plan.is_given());
    // The loopback interface takes more than was allowed.
    assert_eq!(plan.room(1, 4789), 1400 - 36);
    assert_eq!((plan.address(1), plan.address(2)), (Some(IpAddr::from([127, 0, 0, 2])), None));
    assert_eq!(plan.room(9, 4789), 0);
}

#[test]
fn addresses_of_one_link_alone_cannot_be_had() {
    let plan = plan("0 [fe80::1%1]:7000\n1 [2001:db8::2]:7000\n", 4789).expect("a plan");
    assert_eq!((plan.address(0), plan.address(1).is_some()), (None, true));
}

#[test]
fn without_a_port_the_usual_ones_are_taken_that_no_queue_has() {
    let usual = |lines: &str| {
        let directory = directory(lines);
        FastPath::usual("udp:/etc/f", &directory, &JOIN, &[64_009, 64_265], None).map_err(|error| error.cause)
    };
    let plan = usual("0 127.0.0.1:7000\n1 127.0.0.2:7000\n").expect("a plan");
    assert_eq!((plan.ports(), plan.is_given()), (&[64_009, 64_265][..], false));
    // The second queue of this node has the first of them.
    let plan = usual("0 127.0.0.1:64008\n1 127.0.0.2:7000\n").expect("a plan");
    assert_eq!(plan.ports(), [64_265]);
    // One of two nodes at one address would get the frames of both.
    let refused = usual("0 127.0.0.1:7000\n1 127.0.0.1:8000\n").expect_err("refused");
    assert_eq!(refused, "node 1 has this node's address 127.0.0.1, too");
}

#[test]
fn it_can_be_forbidden() {
    let address: Address = "udp:/nowhere,vxlan=off".parse().expect("an address");
    let lines = directory("0 127.0.0.1:7000\n1 127.0.0.2:7000\n");
    assert!(address.fast_path(&lines, &JOIN, &[64_000]).expect("none is wanted").is_none());
}

#[test]
fn options_are_read_in_any_order() {
    for good in [
        "udp:/f",
        "udp:/f,vxlan=off",
        "udp:/f,vxlan=4789",
        "udp:/f,vxlan=1,mtu=1400",
        "udp:/f,mtu=1400,vxlan=65535",
    ] {
        assert!(good.parse::<Address>().is_ok(), "{good}");
    }
    for (bad, cause) in [
        ("udp:/f,vxlan=0", "vxlan '0' is outside the allowed range 1 to 65535, and not 'off'"),
        ("udp:/f,vxlan=65536", "vxlan '65536' is outside the allowed range 1 to 65535, and not 'off'"),
        ("udp:/f,vxlan", "no such option 'vxlan'; allowed are mtu=BYTES, vxlan=PORT and vxlan=off"),
        ("udp:/f,geneve=1", "no such option 'geneve=1'; allowed are mtu=BYTES, vxlan=PORT and vxlan=off"),
    ] {
        assert_eq!(bad.parse::<Address>().expect_err("refused").cause, cause);
    }
}
