use super::{JOIN_TIMEOUT, JOIN_TIMEOUT_MAX, Moves, Pending, join_timeout};
use linkbraid_api::LinkName;
use linkbraid_proto::{Time, inspector::Timing};
use std::time::Duration;

const fn seconds(seconds: u64) -> Duration {
    Duration::from_secs(seconds)
}

fn joining() -> Pending {
    let moves = Moves::Join { force: false, warnings: Vec::new(), alone: false, carrier_since: None };
    Pending {
        bond: LinkName::of_link("bond0"),
        ifindex: 7,
        slot: 0,
        name: "eth1".into(),
        started: Time::ZERO,
        until: Time::ZERO,
        moves,
    }
}

#[test]
fn the_time_to_be_proven_begins_with_the_carrier_and_again_with_the_next_one() {
    let mut pending = joining();
    let mut until = |now: Duration, carrier| {
        pending.follow_carrier(Time::ZERO + now, carrier, JOIN_TIMEOUT);
        pending.until.since(Time::ZERO)
    };
    assert_eq!(until(seconds(1), false), JOIN_TIMEOUT);
    assert_eq!(until(seconds(4), true), seconds(4) + JOIN_TIMEOUT);
    assert_eq!(until(seconds(5), true), seconds(4) + JOIN_TIMEOUT, "the same carrier");
    assert_eq!(until(seconds(6), false), JOIN_TIMEOUT, "over");
    assert_eq!(until(seconds(7), true), seconds(7) + JOIN_TIMEOUT);
}

#[test]
fn it_follows_the_settings_and_is_shorter_than_the_patience_of_the_client() {
    let timing = |interval, up_delay| Timing { interval, up_delay, ..Timing::default() };
    assert_eq!(join_timeout(&Timing::default()), JOIN_TIMEOUT);
    assert_eq!(join_timeout(&timing(seconds(3), seconds(2))), seconds(2 + 3 * 5));
    let mut pending = joining();
    pending.follow_carrier(Time::ZERO + seconds(1), true, join_timeout(&timing(seconds(10), Duration::ZERO)));
    assert_eq!(pending.until.since(Time::ZERO), JOIN_TIMEOUT_MAX);
    assert!(JOIN_TIMEOUT_MAX < seconds(30));
}
