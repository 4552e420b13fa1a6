use super::{Explain, Flow, FlowProtocol};
use crate::{Request, value, varlink::Method};

#[track_caller]
fn flow(text: &str) -> Flow {
    text.parse().unwrap_or_else(|cause| panic!("{cause}"))
}

#[track_caller]
fn refusal(text: &str) -> String {
    text.parse::<Flow>().expect_err(text)
}

#[test]
fn flows_are_read_and_written_in_one_way() {
    for (text, whole) in [
        ("tcp 198.18.0.1 > 198.18.0.2:445", "tcp 198.18.0.1:49152 > 198.18.0.2:445"),
        ("tcp 198.18.0.1:1000>198.18.0.2", "tcp 198.18.0.1:1000 > 198.18.0.2:9"),
        (" udp  198.18.0.1:1  >  198.18.0.2:65535 ", "udp 198.18.0.1:1 > 198.18.0.2:65535"),
        ("icmp 198.18.0.1 > 198.18.0.2", "icmp 198.18.0.1 > 198.18.0.2"),
        ("tcp 2001:db8::1 > [2001:db8::2]:445", "tcp [2001:db8::1]:49152 > [2001:db8::2]:445"),
        ("udp [2001:db8::1] > 2001:db8::2", "udp [2001:db8::1]:49152 > [2001:db8::2]:9"),
        ("icmp 2001:db8::1 > [2001:db8::2]", "icmp 2001:db8::1 > 2001:db8::2"),
    ] {
        assert_eq!(flow(text).to_string(), whole, "{text}");
        assert_eq!(flow(whole), flow(text), "{text}");
    }
    let read = flow("tcp 198.18.0.1 > 198.18.0.2:445");
    assert_eq!((read.protocol, read.source_port, read.destination_port), (FlowProtocol::Tcp, 49_152, 445));
    assert_eq!(flow("icmp 198.18.0.1 > 198.18.0.2").destination_port, 0);
}

#[test]
fn what_is_no_flow_is_refused_with_what_to_write() {
    for text in ["", "tcp", "tcp 198.18.0.1", "tcp 198.18.0.1 198.18.0.2", "198.18.0.1 > 198.18.0.2"] {
        assert!(
            refusal(text).contains("'tcp 198.18.0.1 > 198.18.0.2:445'") || text.starts_with("198"),
            "{text}"
        );
    }
    assert_eq!(
        refusal("sctp 198.18.0.1 > 198.18.0.2"),
        "'sctp' is not a protocol of flows; allowed are tcp, udp and icmp"
    );
    for text in
        ["tcp a > 198.18.0.2", "tcp 198.18.0.1 > [2001:db8::2", "tcp 198.18.0.1 > x", "tcp > 198.18.0.2"]
    {
        assert!(refusal(text).contains("is not an address"), "{text}: {}", refusal(text));
    }
    for port in ["0", "65536", "http", "-1", ""] {
        let cause = refusal(&format!("udp 198.18.0.1 > 198.18.0.2:{port}"));
        assert!(cause.contains("1 to 65535"), "{cause}");
    }
    assert_eq!(refusal("icmp 198.18.0.1 > 198.18.0.2:1"), "'198.18.0.2:1' has a port, and icmp has none");
    assert_eq!(
        refusal("udp 198.18.0.1 > 2001:db8::2"),
        "198.18.0.1 and 2001:db8::2 are of different families; give two of IPv4 or two of IPv6"
    );
}

#[test]
fn values_beside_the_frame() {
    assert_eq!((value::dscp("ef"), value::dscp("0"), value::dscp("63")), (Ok(46), Ok(0), Ok(63)));
    for text in ["64", "", "expedited", "-1"] {
        let cause = value::dscp(text).expect_err(text);
        assert_eq!(
            cause,
            format!("'{text}' is not a DSCP; allowed are 0 to 63, cs0 to cs7, af11 to af43, ef, le")
        );
    }
    assert_eq!(
        (value::mark("0x10"), value::mark("16"), value::mark("0xffffffff")),
        (Ok(16), Ok(16), Ok(u32::MAX))
    );
    assert!(value::mark("0x1ffffffff").is_err() && value::mark("x").is_err());
    assert_eq!(value::priority("6"), Ok(6));
}

#[test]
fn a_request_is_one_line_and_back() {
    let explain = Explain {
        bond: "bond0".parse().unwrap(),
        flow: flow("tcp 198.18.0.1 > 198.18.0.2:445"),
        dscp: Some(46),
        priority: None,
        fwmark: Some(7),
    };
    let request = Request::Explain(explain.clone());
    let call = Method::try_from(&request).unwrap();
    assert_eq!(Request::read(call).unwrap(), request);
    assert_eq!(
        request.command(),
        "linkbraid explain bond0 'tcp 198.18.0.1:49152 > 198.18.0.2:445' --dscp 46 --fwmark 7"
    );
    let request = Request::Explain(Explain { dscp: Some(64), ..explain });
    let call = Method::try_from(&request).unwrap();
    assert!(Request::read(call).is_err(), "no frame has this DSCP");
}
