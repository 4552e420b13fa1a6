//! One host and a peer played by hand. Many hosts together are in `tests/sim_host.rs`.

use super::{
    tables::tests::{member, says, settings},
    *,
};
use linkbraid_wire::{HostId, Kind};

#[test]
fn lanes_are_probed_as_the_settings_say() {
    let config = Config { host_id: HostId([1; 16]), epoch: 1, seed: 7 };
    let mut host = Host::new(config, settings(), TableImage::default());
    let now = Time::from_millis(1);
    let mut is_probed = |input: Input<'_>| {
        host.handle(now, input);
        while host.poll_action().is_some() {}
        !host.inspector().snapshot(now).lanes.is_empty()
    };
    is_probed(Input::Members(vec![member(0)]));
    is_probed(Input::Start);
    assert!(is_probed(Input::Frame { slot: 0, bytes: &says(Kind::Change, 2, 1) }));
    let probes = |probes| Input::Settings(Settings { probes, ..settings() });
    assert!(!is_probed(probes(false)));
    assert!(is_probed(probes(true)));
}

//= docs/arp-plus.md#14.7 type=test
#[test]
fn switches_are_reminded_of_guests_each_minute() {
    let config = Config { host_id: HostId([1; 16]), epoch: 1, seed: 7 };
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
    let gaps: Vec<u64> = reminded.windows(2).map(|two| two[1].since(two[0]).as_secs()).collect();
    assert_eq!(gaps, [60; 4], "until it is silent for 300 s: {reminded:?}");
}
