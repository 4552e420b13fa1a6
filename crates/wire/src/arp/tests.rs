//! One static frame each way, then every way to be wrong.

use super::*;

const HOST: MacAddr = MacAddr([2, 0, 0, 0, 0, 9]);
const MEMBER: MacAddr = MacAddr([2, 0, 0, 0, 0, 1]);
const IP: Ipv4Addr = Ipv4Addr::new(198, 18, 0, 9);

#[rustfmt::skip]
const PROBE: [u8; 42] = [
    2, 0, 0, 0, 0, 9, 2, 0, 0, 0, 0, 1, 8, 6,
    0, 1, 8, 0, 6, 4, 0, 1,
    2, 0, 0, 0, 0, 1, 0, 0, 0, 0,
    0, 0, 0, 0, 0, 0, 198, 18, 0, 9,
];

#[rustfmt::skip]
const ANSWER: [u8; 42] = [
    2, 0, 0, 0, 0, 1, 2, 0, 0, 0, 0, 9, 8, 6,
    0, 1, 8, 0, 6, 4, 0, 2,
    2, 0, 0, 0, 0, 9, 198, 18, 0, 9,
    2, 0, 0, 0, 0, 1, 0, 0, 0, 0,
];

//= docs/arp-plus.md#12.2 type=test
#[test]
fn probe_is_that_of_rfc_5227_to_one_host_from_one_member() {
    let frame = emit_arp_probe(HOST, MEMBER, IP).expect("good addresses");
    assert_eq!(frame.len(), FRAME_LEN_MIN);
    assert_eq!(frame[..42], PROBE);
    assert!(frame[42..].iter().all(|byte| *byte == 0));
    let group = MacAddr::BROADCAST;
    assert_eq!(emit_arp_probe(group, MEMBER, IP), Err(Refusal::ProbeNotUnicast));
    assert_eq!(emit_arp_probe(HOST, group, IP), Err(Refusal::SourceNotHost));
    assert_eq!(emit_arp_probe(HOST, MEMBER, Ipv4Addr::BROADCAST), Err(Refusal::AddressNotHost));
}

//= docs/arp-plus.md#12.3 type=test
#[test]
fn only_the_exact_answer_counts() {
    let good = PlainAnswer { to: MEMBER, host: HOST, ip: IpAddr::V4(IP) };
    assert_eq!(parse_arp_reply(&ANSWER), Ok(good));
    assert_eq!(crate::parse_plain_answer(&ANSWER), Ok(good));
    assert_eq!(parse_arp_reply(&[&ANSWER[..], &[7; 18]].concat()), Ok(good), "padding need not be zeros");
    for len in 0..ANSWER.len() {
        assert_eq!(parse_arp_reply(&ANSWER[..len]), Err(Refusal::Truncated), "{len}");
    }
    for (at, value, refusal) in [
        (0, 3, Refusal::ArpTarget),
        (5, 2, Refusal::ArpTarget),
        (6, 1, Refusal::SourceNotHost),
        (11, 8, Refusal::ArpSender),
        (12, 0x81, Refusal::NotArp),
        (15, 6, Refusal::ArpFormat),
        (16, 0x86, Refusal::ArpFormat),
        (18, 8, Refusal::ArpFormat),
        (19, 16, Refusal::ArpFormat),
        (21, 1, Refusal::ArpNotReply),
        (27, 8, Refusal::ArpSender),
        (28, 224, Refusal::AddressNotHost),
        (37, 2, Refusal::ArpTarget),
        (41, 1, Refusal::ArpNotForProbe),
    ] {
        let mut bytes = ANSWER;
        bytes[at] = value;
        assert_eq!(parse_arp_reply(&bytes), Err(refusal), "byte {at}");
    }
    let mut group = ANSWER;
    (group[0], group[32]) = (3, 3);
    assert_eq!(parse_arp_reply(&group), Err(Refusal::ArpTarget), "a group asks nothing");
}

#[test]
fn reply_names_the_member_and_answers_no_probe() {
    let own = Ipv4Addr::new(198, 18, 0, 1);
    let frame = emit_arp_reply(HOST, IP, MEMBER, own).expect("good addresses");
    assert_eq!((frame.len(), &frame[..14], &frame[14..22]), (60, &PROBE[..14], &ANSWER[14..22]));
    assert_eq!((&frame[22..28], &frame[28..32]), (&MEMBER.0[..], &own.octets()[..]));
    assert_eq!((&frame[32..38], &frame[38..42]), (&HOST.0[..], &IP.octets()[..]));
    assert_eq!(parse_arp_reply(&frame), Err(Refusal::ArpNotForProbe));
}
