//! Options of the transport, and who may be met by VXLAN.

use crate::{Address, Join, directory::Directory, udp::FastPath};
use std::net::IpAddr;

const JOIN: Join = Join { node: 0, nodes: 2, queues: 2 };

fn plan(lines: &str, port: u16) -> Result<FastPath, (String, String)> {
    let directory = Directory::parse(lines, &JOIN).expect("a directory");
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
    assert_eq!((plan.port(), plan.own()), (4789, IpAddr::from([127, 0, 0, 1])));
    // The loopback interface takes more than was allowed.
    assert_eq!(plan.room(1), 1400 - 36);
    assert_eq!((plan.address(1), plan.address(2)), (Some(IpAddr::from([127, 0, 0, 2])), None));
    assert_eq!(plan.room(9), 0);
}

#[test]
fn addresses_of_one_link_alone_cannot_be_had() {
    let plan = plan("0 [fe80::1%1]:7000\n1 [2001:db8::2]:7000\n", 4789).expect("a plan");
    assert_eq!((plan.address(0), plan.address(1).is_some()), (None, true));
}

#[test]
fn options_are_read_in_any_order() {
    for good in ["udp:/f", "udp:/f,vxlan=4789", "udp:/f,vxlan=1,mtu=1400", "udp:/f,mtu=1400,vxlan=65535"] {
        assert!(good.parse::<Address>().is_ok(), "{good}");
    }
    for (bad, cause) in [
        ("udp:/f,vxlan=0", "vxlan '0' is outside the allowed range 1 to 65535"),
        ("udp:/f,vxlan=65536", "vxlan '65536' is outside the allowed range 1 to 65535"),
        ("udp:/f,vxlan", "no such option 'vxlan'; allowed are mtu=BYTES and vxlan=PORT"),
        ("udp:/f,geneve=1", "no such option 'geneve=1'; allowed are mtu=BYTES and vxlan=PORT"),
    ] {
        assert_eq!(bad.parse::<Address>().expect_err("refused").cause, cause);
    }
}
