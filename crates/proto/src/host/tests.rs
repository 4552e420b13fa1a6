//! One host and a peer played by hand. Many hosts together are in `tests/sim_host.rs`.

use super::{
    tables::tests::{member, says, settings},
    *,
};
use crate::limits;
use linkbraid_wire::{Extension, HostId, Kind, Message, emit_frame};
use std::time::Duration;

mod two;

const GATEWAY: MacAddr = MacAddr([6, 0, 0, 0, 0, 1]);
const STRANGER: MacAddr = MacAddr([6, 0, 0, 0, 0, 66]);

/// A host of one member, and when it started.
fn started() -> (Host, Time) {
    let config = Config { host_id: HostId([1; 16]), epoch: 1, secret: 7.into() };
    let mut host = Host::new(config, settings(), TableImage::default());
    let now = Time::from_millis(1);
    host.handle(now, Input::Members(vec![member(0)]));
    host.handle(now, Input::Start);
    (host, now)
}

#[test]
fn lanes_are_probed_as_the_settings_say() {
    let config = Config { host_id: HostId([1; 16]), epoch: 1, secret: 7.into() };
    let mut host = Host::new(config, settings(), TableImage::default());
    let now = Time::from_millis(1);
    let mut is_probed = |input: Input<'_>| {
        host.handle(now, input);
        while host.poll_action().is_some() {}
        !host.inspector().snapshot(now).lanes.is_empty()
    };
    is_probed(Input::Members(vec![member(0)]));
    is_probed(Input::Start);
    assert!(is_probed(Input::Frame { slot: 0, bytes: &says(Kind::Change, 2, 1), heard_again: false }));
    let probes = |probes| Input::Settings(Settings { probes, ..settings() });
    assert!(!is_probed(probes(false)));
    assert!(is_probed(probes(true)));
}

#[test]
fn the_data_path_hears_of_another_mac_of_the_bond() {
    let (mut host, now) = started();
    let mut is_remade = |mac| {
        host.write(|_| Ok::<(), ()>(())).expect("nothing fails");
        while host.poll_action().is_some() {}
        host.handle(now, Input::Own(answers::Own { mac, addresses: Vec::new(), router: false }));
        let remade = std::iter::from_fn(|| host.poll_action()).any(|action| action == Action::Tables);
        assert_eq!(host.image().bond.mac, mac);
        remade
    };
    assert!(is_remade(GATEWAY));
    assert!(!is_remade(GATEWAY), "nothing is new");
    assert!(is_remade(STRANGER));
}

#[test]
fn a_guest_is_in_the_tables_before_peers_hear_of_it() {
    let (mut host, now) = started();
    host.write(|_| Ok::<(), ()>(())).expect("nothing fails");
    while host.poll_action().is_some() {}
    let guest = MacAddr([0x52, 0x54, 0, 0, 0, 1]);
    let address = IpAddr::from([198, 18, 1, 1]);
    let named = arp_plus::SeenAddress { vlan: 0, address, mac: guest, named: now };
    let seen = arp_plus::SeenGuests { last_sent: vec![(guest, now)], addresses: vec![named] };
    host.handle(now, Input::Guests(&seen));
    let first = std::iter::from_fn(|| host.poll_action())
        .find(|action| matches!(action, Action::Send { .. } | Action::Tables));
    assert_eq!(first, Some(Action::Tables));
    assert!(host.image().guest_pairs.values().any(|pair| pair.mac == guest));
}

//= docs/arp-plus.md#14.7 type=test
#[test]
fn switches_are_reminded_of_guests_each_minute() {
    let config = Config { host_id: HostId([1; 16]), epoch: 1, secret: 7.into() };
    let mut host = Host::new(config, settings(), TableImage::default());
    let guest = MacAddr([0x52, 0x54, 0, 0, 0, 1]);
    let mut now = Time::from_millis(1);
    host.handle(now, Input::Members(vec![member(0)]));
    host.handle(now, Input::Start);
    assert!(host.wants_guests(now), "at the start it is not known who is there");
    let see = |host: &mut Host, now: Time, spoke: Time| {
        let address = IpAddr::from([198, 18, 1, 1]);
        let named = arp_plus::SeenAddress { vlan: 0, address, mac: guest, named: spoke };
        let seen = arp_plus::SeenGuests { last_sent: vec![(guest, spoke)], addresses: vec![named] };
        host.handle(now, Input::Guests(&seen));
    };
    see(&mut host, now, now);
    assert!(!host.wants_guests(now));
    let spoke = now;
    let mut reminded = Vec::new();
    while now < Time::from_millis(400_000) {
        while let Some(action) = host.poll_action() {
            if let Action::AnnounceGuests(macs) = action {
                assert_eq!(macs, [guest]);
                reminded.push(now);
            }
        }
        now = host.poll_timeout().expect("it runs").max(now);
        host.handle(now, Input::Timeout);
        if host.wants_guests(now) {
            see(&mut host, now, spoke);
        }
    }
    let gaps: Vec<u128> = reminded.windows(2).map(|two| two[1].since(two[0]).as_millis()).collect();
    assert_eq!(gaps, [60_000; 4], "until it is silent for 300 s: {reminded:?}");
}

//= docs/arp-plus.md#14.7 type=test
#[test]
fn switches_are_reminded_at_once_when_the_minute_is_over() {
    let (mut host, _) = started();
    let (guest, seen_at) = (MacAddr([0x52, 0x54, 0, 0, 0, 1]), Time::from_millis(17));
    let named =
        arp_plus::SeenAddress { vlan: 0, address: [198, 18, 1, 1].into(), mac: guest, named: seen_at };
    host.handle(
        seen_at,
        Input::Guests(&arp_plus::SeenGuests { last_sent: vec![(guest, seen_at)], addresses: vec![named] }),
    );
    let mut now = seen_at;
    loop {
        while let Some(action) = host.poll_action() {
            if matches!(action, Action::AnnounceGuests(_)) {
                return assert_eq!(now.since(seen_at), limits::GUEST_REMIND);
            }
        }
        now = host.poll_timeout().expect("it runs").max(now);
        assert!(now.since(seen_at) < limits::GUEST_REMIND * 2, "never");
        host.handle(now, Input::Timeout);
    }
}

/// A stranger says that it has the gateway's MAC, as its primary one; it has an id, and lists the gateway's address, too.
fn claim() -> Vec<u8> {
    let member = |index| linkbraid_wire::Member { index, up: true, weight_mbit: 1000, class: 0 };
    let extension = Extension {
        host: HostId([66; 16]),
        epoch: 1,
        sequence: 1,
        members: vec![member(0), member(1)],
        ..Extension::default()
    };
    let message = Message {
        kind: Kind::Broadcast,
        address: Some(IpAddr::from([198, 18, 0, 254])),
        hardware: vec![GATEWAY, STRANGER],
        extension: Some(extension),
    };
    emit_frame(MacAddr::BROADCAST, STRANGER, &message).expect("a good message")
}

/// What the gateway says to an ARP probe, if that is one.
fn answer(probe: &[u8]) -> Option<Vec<u8>> {
    let asked = probe.get(12..14) == Some(&[8, 6]) && probe.get(..6) == Some(&GATEWAY.0);
    let (asker, ip) = (probe.get(6..12)?, probe.get(38..42)?);
    let arp: [&[u8]; 5] = [&[8, 6, 0, 1, 8, 0, 6, 4, 0, 2], &GATEWAY.0, ip, asker, &[0; 4]];
    asked.then(|| [asker, &GATEWAY.0, &arp.concat()].concat())
}

/// Where frames for the gateway go after a while; the worst of all that time.
fn claimed(gateway_answers: bool) -> (bool, bool) {
    let config = Config { host_id: HostId([1; 16]), epoch: 1, secret: 7.into() };
    let mut host = Host::new(config, settings(), TableImage::default());
    let mut now = Time::from_millis(1);
    let gateway =
        Neighbour { ip: IpAddr::from([198, 18, 0, 254]), mac: GATEWAY, active: true, gateway: false };
    let mut inputs = vec![
        Input::Members(vec![member(0), member(1)]),
        Input::Start,
        Input::Neighbours(Some(vec![gateway]), Vec::new()),
    ];
    let (frame, end) = (claim(), now + Duration::from_secs(3));
    let (mut answers, mut ever) = (Vec::<(u8, Vec<u8>)>::new(), false);
    let mut said = false;
    while now < end {
        if !std::mem::replace(&mut said, true) {
            inputs.push(Input::Frame { slot: 0, bytes: &frame, heard_again: false });
        }
        for input in inputs.drain(..) {
            host.handle(now, input);
        }
        for (slot, bytes) in std::mem::take(&mut answers) {
            host.handle(now, Input::Frame { slot, bytes: &bytes, heard_again: false });
        }
        while let Some(action) = host.poll_action() {
            match action {
                Action::AskNeighbours => inputs.push(Input::Neighbours(Some(vec![gateway]), Vec::new())),
                Action::Send { slot, frame } if gateway_answers => {
                    answers.extend(answer(&frame).map(|frame| (slot, frame)));
                }
                _ => {}
            }
        }
        ever |= host.image().peer_macs.contains_key(&GATEWAY);
        now = now + Duration::from_millis(1);
        host.handle(now, Input::Timeout);
    }
    assert!(host.image().peer_macs.contains_key(&STRANGER), "it is a peer by the MAC that it speaks from");
    (host.image().peer_macs.contains_key(&GATEWAY), ever)
}

//= docs/arp-plus.md#7.8 type=test
#[test]
fn nobody_gets_the_frames_of_a_gateway_that_answers_by_saying_that_he_is_it() {
    assert_eq!(claimed(true), (false, false));
    assert_eq!(claimed(false), (true, true), "nobody is there");
}

/// When the neighbour table is asked for next after a host without id was heard like that, from the first time on.
fn asked_after(frames: [&[u8]; 2]) -> Vec<Duration> {
    let (mut host, mut now) = started();
    let asks = |host: &mut Host, now: &mut Time| loop {
        while let Some(action) = host.poll_action() {
            if action == Action::AskNeighbours {
                host.handle(*now, Input::Neighbours(Some(Vec::new()), Vec::new()));
                return;
            }
        }
        *now = host.poll_timeout().expect("it asks again").max(*now);
        host.handle(*now, Input::Timeout);
    };
    let mut after = Vec::new();
    for bytes in frames {
        // Whatever the start or the last one led to.
        (0..2).for_each(|_| asks(&mut host, &mut now));
        host.handle(now, Input::Frame { slot: 0, bytes, heard_again: true });
        let from = now;
        asks(&mut host, &mut now);
        after.push(now.since(from));
    }
    after
}

#[test]
fn who_is_a_plain_host_is_looked_at_again_when_a_peer_comes_and_not_when_it_changes() {
    let (first, later) = (says(Kind::Change, 2, 1), says(Kind::Change, 2, 2));
    let [comes, changes] = asked_after([&first, &later])[..] else { panic!("two") };
    assert!(comes <= Duration::from_millis(100) && changes > Duration::from_secs(1), "{comes:?} {changes:?}");
}

#[test]
fn the_neighbour_table_is_asked_for_again_where_it_could_not_be_read() {
    let (mut host, mut now) = started();
    let mut asked = 0;
    while now < Time::from_millis(30_000) {
        while let Some(action) = host.poll_action() {
            if action == Action::AskNeighbours {
                asked += 1;
                host.handle(now, Input::Neighbours(None, Vec::new()));
            }
        }
        now = host.poll_timeout().expect("it runs").max(now);
        host.handle(now, Input::Timeout);
    }
    assert!((5..=8).contains(&asked), "every five seconds: {asked}");
}
