//! A daemon that is asked to end while it is busy.

use super::until;
use linkbraid_lab::Topology;
use linkbraid_netns_tests::packet::{self, Tap};
use linkbraid_netns_tests::{BOND, Net, Over};
use std::sync::atomic::{AtomicBool, Ordering::SeqCst};
use std::time::Duration;

/// ARP+ (docs/arp-plus.md, section 2).
const ARP_PLUS: u16 = 0x88b5;
/// Daemons that are ended.
const ENDS: usize = 2;

#[test]
fn a_daemon_that_is_flooded_ends_when_it_is_asked_to() {
    let net = Net::up(Topology::symmetric(2, 6, None));
    let (a, b) = (net.host("a"), net.host("b"));
    net.start("a", &[]);
    net.ok("a", &format!("bond add {BOND} --member eth0,eth1"));
    let mut frame = vec![0xff; 6];
    frame.extend(packet::mac(&b.mac(0)));
    frame.extend(ARP_PLUS.to_be_bytes());
    frame.resize(60, 0);
    let done = AtomicBool::new(false);
    std::thread::scope(|scope| {
        let _over = Over(&done);
        let tap = Tap::open(b, "eth0", ARP_PLUS);
        let (done, frame) = (&done, &frame);
        scope.spawn(move || {
            while !done.load(SeqCst) {
                let _ = tap.send(frame);
            }
        });
        let plug = a.link(1).expect("a link");
        scope.spawn(move || {
            for up in [false, true].into_iter().cycle().take_while(|_| !done.load(SeqCst)) {
                plug.carrier(up).expect("sets");
                // The pace; nothing is waited for.
                std::thread::park_timeout(Duration::from_millis(15));
            }
        });
        for _ in 0..ENDS {
            // While it adds another bond, frames and news of carriers pile up for it.
            let add = scope.spawn(|| net.say("a", "bond add bond1 --member eth2,eth3,eth4,eth5"));
            until("the other bond", || a.sh("ip link show bond1").is_ok(), |there| *there);
            net.stop("a");
            let _ = add.join();
            net.start("a", &[]);
            net.ok("a", "bond del bond1");
        }
    });
    net.ok("a", &format!("bond del {BOND}"));
}
