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
