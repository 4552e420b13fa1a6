//! A clock that is set back while no daemon runs: peers refuse whoever comes with an earlier epoch than the one they know.

use super::{state_file, until, wait_proven, with_free_links};
use linkbraid_netns_tests::{Net, SOON};
use std::fs;
use std::time::{Duration, SystemTime, UNIX_EPOCH};

const YEAR: Duration = Duration::from_secs(365 * 24 * 3600);

/// What the daemon of a has on file.
fn state(net: &Net) -> serde_json::Value {
    let text = fs::read_to_string(state_file(net)).expect("is there");
    serde_json::from_str(&text).expect("is JSON")
}

fn epoch(net: &Net) -> u64 {
    state(net)["epoch"].as_u64().expect("is on file")
}

#[test]
fn a_clock_that_is_set_back_a_year_locks_nobody_out() {
    let net = with_free_links(2, "eth0,eth1", &[]);
    let (a, b) = (net.host("a"), net.host("b"));
    net.kill("a");
    // A daemon runs with the clock a year ahead, as far as its peer can tell.
    let ahead = (SystemTime::now() + YEAR).duration_since(UNIX_EPOCH).expect("after 1970").as_millis();
    let ahead = u64::try_from(ahead).expect("fits");
    let mut of_a = state(&net);
    of_a["epoch"] = ahead.into();
    fs::write(state_file(&net), of_a.to_string()).expect("writes");
    let again = |epoch_then: u64| {
        net.start("a", &[]);
        net.wait_tables(&["a", "b"]);
        wait_proven(&net, "a", 4);
        wait_proven(&net, "b", 4);
        assert_eq!(epoch(&net), epoch_then);
        net.kill("a");
    };
    again(ahead + 1);
    // And now it is a year back.
    again(ahead + 2);
    // Nothing can be written: the daemon says so, and goes on.
    let blocked = state_file(&net).with_extension("json.new");
    fs::create_dir(&blocked).expect("makes");
    again(ahead + 2);
    until("the daemon to say it", || net.log("a"), |log| log.contains("the next daemon will not know"));
    fs::remove_dir(&blocked).expect("removes");
    net.start("a", &[]);
    a.wait_ping(b.ipv4(), SOON).expect("reaches");
}
