//! Changes as they happen, and frames that leave.

mod common;

use std::{os::fd::AsRawFd, time::Duration};

use common::{cable, in_namespace, run};
use linkbraid_link::{ArpPlusSender, Kind, LinkEvent, Sent, Watch};
use nix::sys::socket::{AddressFamily, MsgFlags, SockFlag, SockProtocol, SockType, recv, socket};

/// Reads events until one is accepted.
async fn expect(watch: &mut Watch, what: &str, wanted: impl Fn(&LinkEvent) -> bool) -> LinkEvent {
    let found = async {
        loop {
            let event = watch.next().await.unwrap();
            if wanted(&event) {
                return event;
            }
        }
    };
    tokio::time::timeout(Duration::from_secs(10), found).await.unwrap_or_else(|_| panic!("no event: {what}"))
}

#[test]
fn interfaces_and_addresses_are_announced() {
    in_namespace(|net| async move {
        let mut watch = Watch::new().unwrap();
        let index = cable(&net, "eth0", "sw0").await;
        expect(
            &mut watch,
            "carrier of eth0",
            |event| matches!(event, LinkEvent::LinkChanged(link) if link.name == "eth0" && link.running()),
        )
        .await;
        net.add_address(index, "198.18.0.1".parse().unwrap(), 24).await.unwrap();
        expect(&mut watch, "IPv4 address", |event| *event == LinkEvent::AddressesChanged { index }).await;
        run("ip link set sw0 down");
        expect(
            &mut watch,
            "lost carrier",
            |event| matches!(event, LinkEvent::LinkChanged(link) if link.index == index && !link.carrier),
        )
        .await;
        run("ip link set eth0 down");
        run("ip link set eth0 name lan0");
        expect(&mut watch, "rename", |event| {
            matches!(event, LinkEvent::LinkChanged(link) if link.index == index && link.name == "lan0")
        })
        .await;
        net.delete_link(index).await.unwrap();
        let name = "lan0".to_owned();
        expect(&mut watch, "removal", |event| *event == LinkEvent::LinkGone { index, name: name.clone() })
            .await;
    });
}

#[test]
fn a_port_that_leaves_its_bridge_is_no_interface_that_goes() {
    in_namespace(|net| async move {
        let member = cable(&net, "eth0", "sw0").await;
        let bond = common::bond_of(&net, member).await;
        let mut watch = Watch::new().unwrap();
        net.set_master(member, bond).await.unwrap();
        net.clear_master(member).await.unwrap();
        net.delete_link(bond).await.unwrap();
        let gone =
            expect(&mut watch, "removal of the bridge", |event| matches!(event, LinkEvent::LinkGone { .. }));
        assert_eq!(gone.await, LinkEvent::LinkGone { index: bond, name: "bond0".into() });
    });
}

#[test]
fn a_storm_of_changes_ends_in_a_resync() {
    in_namespace(|net| async move {
        let mut watch = Watch::new().unwrap();
        let index = cable(&net, "eth0", "sw0").await;
        // Nothing of this test yields to the watch's task while the storm blows.
        let storm = std::thread::scope(|scope| {
            scope
                .spawn(|| {
                    let flip = |n: u32| format!("link set eth0 alias {n}\n");
                    let batch: String = (0..4000).map(flip).collect();
                    let mut child = std::process::Command::new("ip")
                        .args(["-batch", "-"])
                        .stdin(std::process::Stdio::piped())
                        .spawn()
                        .unwrap();
                    std::io::Write::write_all(child.stdin.as_mut().unwrap(), batch.as_bytes()).unwrap();
                    drop(child.stdin.take());
                    child.wait().unwrap()
                })
                .join()
                .unwrap()
        });
        assert!(storm.success());
        expect(&mut watch, "resync", |event| *event == LinkEvent::Resync).await;
        // The stream goes on.
        net.set_alias(index, "after").await.unwrap();
        expect(
            &mut watch,
            "change after the storm",
            |event| matches!(event, LinkEvent::LinkChanged(link) if link.alias.as_deref() == Some("after")),
        )
        .await;
    });
}

#[test]
fn frames_leave_and_a_lost_interface_is_an_error_of_its_own() {
    in_namespace(|net| async move {
        let index = cable(&net, "eth0", "sw0").await;
        let peer = net.link("sw0").await.unwrap();
        let listener = socket(
            AddressFamily::Packet,
            SockType::Raw,
            SockFlag::SOCK_CLOEXEC | SockFlag::SOCK_NONBLOCK,
            SockProtocol::EthAll,
        )
        .unwrap();
        let mut frame = vec![0xff; 6];
        frame.extend([0x02, 0, 0, 0, 0, 1, 0x88, 0xb5]);
        frame.resize(60, 0x5a);

        let mut sender = ArpPlusSender::new().unwrap();
        assert_eq!(sender.send(index, &frame), Ok(Sent::Queued));
        let mut buffer = [0; 2048];
        let arrived = || {
            let length = recv(listener.as_raw_fd(), &mut buffer, MsgFlags::empty()).unwrap_or(0);
            let arrived = buffer[..length].to_vec();
            async { arrived }
        };
        common::until(arrived, |bytes| *bytes == frame).await;
        assert!(peer.running());

        // A queue without room: dropped and counted, never waited for.
        run("tc qdisc add dev eth0 root handle 1: tbf rate 8kbit burst 1600 limit 1600");
        let mut big = frame.clone();
        big.resize(1500, 0);
        let outcomes: Vec<_> = (0..8).map(|_| sender.send(index, &big).unwrap()).collect();
        assert!(outcomes.contains(&Sent::Dropped), "{outcomes:?}");

        assert_eq!(sender.send(index, &frame[..4]).unwrap_err().kind, Kind::BadValue);
        big.resize(2000, 0);
        assert_eq!(sender.send(index, &big).unwrap_err().kind, Kind::BadValue);
        net.set_down(index).await.unwrap();
        assert_eq!(sender.send(index, &frame).unwrap_err().kind, Kind::Down);
        net.delete_link(index).await.unwrap();
        assert_eq!(sender.send(index, &frame).unwrap_err().kind, Kind::NoDevice);
        let (sent, dropped, failed) = sender.counters();
        assert_eq!((sent + dropped, failed), (9, 4));

        // The same sender serves the next interface.
        let index = cable(&net, "eth1", "sw1").await;
        assert_eq!(sender.send(index, &frame), Ok(Sent::Queued));
    });
}
