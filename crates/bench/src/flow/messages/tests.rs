use super::*;
use linkbraid_lab::{Fault, Lab, Topology};

const SOON: Duration = Duration::from_secs(10);
const MESSAGES: Messages =
    Messages { over: Over::Udp, bytes: 64, period: Duration::from_micros(500), priority: 6 };

fn lab() -> Lab {
    let lab = Lab::up(Topology::symmetric(2, 1, Some(100))).unwrap_or_else(|e| panic!("{e}"));
    let (a, b) = (lab.host("a").expect("there"), lab.host("b").expect("there"));
    a.wait_ping(b.ipv4(), SOON).expect("reaches");
    lab
}

/// Lets messages go for a while, and does something halfway.
fn go(lab: &Lab, messages: Messages, halfway: impl FnOnce()) -> (Trips, Duration) {
    let (a, b) = (lab.host("a").expect("there"), lab.host("b").expect("there"));
    let flow = MessageFlow::start(a, b, messages).unwrap_or_else(|e| panic!("{e}"));
    let after = |time: Duration| {
        let reached = || flow.zero.elapsed();
        linkbraid_lab::wait_until(SOON, "the time", reached, |now| *now >= time).expect("passes")
    };
    let time = Duration::from_millis(300);
    after(time);
    halfway();
    let middle = flow.zero.elapsed();
    after(time * 2);
    (flow.stop().unwrap_or_else(|e| panic!("{e}")), middle)
}

#[test]
fn every_message_is_back_once_over_both() {
    let lab = lab();
    for over in [Over::Tcp, Over::Udp] {
        for bytes in [BYTES_MIN, 64, BYTES_MAX] {
            let (trips, _) = go(&lab, Messages { over, bytes, ..MESSAGES }, || ());
            let all = trips.count(Duration::ZERO, SOON, SOON);
            assert_eq!((all.lost, trips.outstanding(), trips.twice, trips.refused), (0, 0, 0, 0), "{over:?}");
            // 1,200 are due; a machine that stands still for a while leaves some out.
            assert!((100..=1400).contains(&all.sent), "{over:?}, {bytes} bytes: {}", all.sent);
            assert!(all.max_us > 0.0, "{over:?}: {all:?}");
        }
    }
}

#[test]
fn what_a_cut_link_swallows_is_lost_and_nothing_else_is() {
    let lab = lab();
    let link = lab.host("b").expect("there").link(0).expect("there");
    let (trips, cut) = go(&lab, MESSAGES, || {
        link.fail(Fault::Silent).expect("cuts");
    });
    // What was on its way as the link was cut is lost, too.
    let (before, after) = (
        trips.count(Duration::ZERO, cut.saturating_sub(Duration::from_millis(100)), SOON),
        trips.count(cut, SOON, SOON),
    );
    assert!(before.sent > 0 && before.lost == 0, "{before:?}");
    assert!(after.sent > 0 && after.lost == after.sent, "{after:?}");
}

/// How often two ways are compared until noise is no excuse.
const ROUNDS: u32 = 5;

#[test]
fn a_message_of_high_priority_overtakes_what_waits_only_where_the_queue_looks_at_it() {
    use linkbraid_lab::Order;
    let lab = lab();
    let (a, b) = (lab.host("a").expect("there"), lab.host("b").expect("there"));
    let median = |order: Order, priority: i32| {
        let link = a.link(0).expect("there");
        link.set_order(order).unwrap_or_else(|e| panic!("{e}"));
        let bulk = linkbraid_lab::iperf::Traffic { omit: 0, ..linkbraid_lab::iperf::Traffic::udp(120, 2) };
        let bulk = linkbraid_lab::iperf::start(a, b, &bulk).unwrap_or_else(|e| panic!("{e}"));
        let full = || link.count().expect("readable").nic.tx_bytes;
        let begin = full();
        linkbraid_lab::wait_until(SOON, "bulk traffic", full, |now| *now > begin + 2_000_000).expect("flows");
        let (trips, _) = go(&lab, Messages { priority, ..MESSAGES }, || ());
        drop(bulk);
        let mut took: Vec<Duration> =
            trips.between(Duration::ZERO, SOON).iter().filter_map(|trip| trip.took).collect();
        took.sort_unstable();
        assert!(took.len() > 50, "{order:?}, {priority}: {}", took.len());
        took[took.len() / 2]
    };
    // What else the machine does only makes messages later: of each the best round counts.
    let urgent = (Order::Priority, 6);
    for late in [(Order::Fifo, 6), (Order::Priority, 0)] {
        let [mut behind, mut before] = [Duration::MAX; 2];
        for _ in 0..ROUNDS {
            behind = behind.min(median(late.0, late.1));
            before = before.min(median(urgent.0, urgent.1));
            if behind > before * 3 {
                break;
            }
        }
        assert!(behind > before * 3, "{behind:?} with {late:?}, {before:?} with {urgent:?}");
    }
}
