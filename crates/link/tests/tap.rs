//! TAP devices: what comes out of one kernel goes into another.

mod namespace;
mod tap_pair;

use std::{
    collections::{BTreeMap, BTreeSet},
    io::{Read, Write},
    net::{TcpListener, TcpStream},
};

use linkbraid_link::{
    TAP_FRAME_MAX, TAP_MTU_MAX, Tap, TapCause, TapConfig, TapOffloads, TapRefusal, VNET_HDR_LEN,
};
use namespace::Namespace;
use tap_pair::{Cable, config};

#[test]
fn it_is_as_asked_and_goes_when_dropped() {
    let space = Namespace::new();
    let (mut tap, queues) = space.enter(|| {
        let mut tap = Tap::create(&TapConfig { mtu: TAP_MTU_MAX, queues: 3, ..config(1) }).unwrap();
        let queues = tap.take_queues();
        assert_eq!(queues.len(), 3);
        (tap, queues)
    });
    let shown = space.run("ip -d link show dev fab0");
    for part in ["mtu 65521", "02:00:00:00:00:01", "qlen 1000", "multi_queue", "vnet_hdr", "numqueues 3"] {
        assert!(shown.contains(part), "{part}: {shown}");
    }
    assert!(space.run("ethtool fab0").contains("Speed: 10000Mb/s"));
    // From here on in another namespace than the device.
    tap.set_up(true).unwrap();
    space.until("ip link show dev fab0", |shown| shown.contains("NO-CARRIER") && shown.contains(",UP>"));
    tap.set_carrier(true).unwrap();
    space.until("ip link show dev fab0", |shown| shown.contains("LOWER_UP"));
    tap.set_carrier(false).unwrap();
    space.until("ip link show dev fab0", |shown| shown.contains("NO-CARRIER"));
    assert_eq!(tap.set_offloads(TapOffloads::NONE), Ok(TapOffloads::NONE));
    assert!(space.run("ethtool -k fab0").contains("tx-tcp-segmentation: off"));
    assert!(tap.set_offloads(TapOffloads::ALL).unwrap().tso);
    let features = space.run("ethtool -k fab0");
    assert!(features.contains("tx-tcp-segmentation: on") && features.contains("tx-checksum-ip-generic: on"));
    drop(tap);
    assert!(space.run("ip -o link").contains("fab0"), "a queue keeps it");
    drop(queues);
    assert!(!space.run("ip -o link").contains("fab0"));
}

#[test]
fn one_that_is_kept_stays_as_it_is_and_is_taken_over() {
    let space = Namespace::new();
    let shape = TapConfig { queues: 2, ..config(1) };
    let tap = space.enter(|| Tap::create(&shape).unwrap());
    tap.keep(true).unwrap();
    let index = tap.index();
    drop(tap);
    space.run("ip addr add 198.18.0.1/24 dev fab0");
    space.run("ip link set fab0 mtu 1400 name fab1 up");
    space.until("ip link show dev fab1", |shown| shown.contains("NO-CARRIER"));
    let tap = space.enter(|| Tap::adopt(&TapConfig { name: "fab1".into(), ..shape.clone() }).unwrap());
    assert_eq!(tap.index(), index);
    let shown = space.run("ip -d addr show dev fab1");
    for part in ["mtu 1400", "198.18.0.1/24", "NO-CARRIER", "numqueues 2", "02:00:00:00:00:01"] {
        assert!(shown.contains(part), "{part}: {shown}");
    }
    tap.set_carrier(true).unwrap();
    space.until("ip link show dev fab1", |shown| shown.contains("LOWER_UP"));
    tap.keep(false).unwrap();
    drop(tap);
    assert!(!space.run("ip -o link").contains("fab1"));
}

#[test]
fn a_name_that_is_taken_is_refused_and_nothing_is_left_behind() {
    let space = Namespace::new();
    space.run("ip link add dumb0 type ifb");
    space.run("ip tuntap add dev tap0 mode tap multi_queue vnet_hdr");
    for taken in ["dumb0", "tap0", "lo"] {
        let refused =
            space.enter(|| Tap::create(&TapConfig { name: taken.into(), ..config(1) })).unwrap_err();
        assert_eq!(refused.cause, TapCause::NameTaken, "{taken}");
        assert_eq!(refused.hint(), Some(format!("ip -d link show dev {taken}")));
    }
    let before = space.run("ip -o link");
    let bad = TapConfig { queue_len: u32::MAX, ..config(1) };
    assert!(space.enter(|| Tap::create(&bad)).is_err());
    assert_eq!(space.run("ip -o link"), before);
}

#[test]
fn without_the_right_it_says_so() {
    let space = Namespace::new();
    let refused = space.enter(|| {
        // This thread alone gives its rights up; it ends with this closure.
        let user = nix::unistd::Uid::from_raw(65_534);
        // SAFETY: the call takes three numbers; made directly, it changes this thread and not the process.
        let answer = unsafe {
            nix::libc::syscall(nix::libc::SYS_setresuid, user.as_raw(), user.as_raw(), user.as_raw())
        };
        assert_eq!(answer, 0);
        Tap::create(&config(1))
    });
    assert_eq!(refused.unwrap_err().cause, TapCause::NotPermitted);
}

#[test]
fn a_queue_says_why_it_refuses() {
    let space = Namespace::new();
    let mut tap = space.enter(|| Tap::create(&config(1))).unwrap();
    let queue = &tap.take_queues()[0];
    let (header, frame) = ([0; VNET_HDR_LEN], [0xff; 60]);
    let mut buffer = vec![0; VNET_HDR_LEN + TAP_FRAME_MAX];
    assert_eq!(queue.read(&mut buffer), Ok(None));
    assert_eq!(queue.write(&header, &frame), Err(TapRefusal::Down));
    tap.set_up(true).unwrap();
    assert_eq!(queue.write(&header, &frame), Ok(()));
    let mut wrong = header;
    wrong[1] = 0x7f;
    assert_eq!(queue.write(&wrong, &frame), Err(TapRefusal::BadFrame));
    assert_eq!(queue.write(&header, &frame[..13]), Err(TapRefusal::BadFrame));
    space.run("ip link del fab0");
    assert_eq!(queue.write(&header, &frame), Err(TapRefusal::Gone));
    assert_eq!(queue.read(&mut buffer), Err(TapRefusal::Gone));
    assert_eq!(tap.set_carrier(true).unwrap_err().cause, TapCause::Gone);
    assert_eq!(tap.set_up(true).unwrap_err().cause, TapCause::Gone);
}

#[test]
fn pings_of_every_size_cross_at_every_mtu() {
    let cable = Cable::new(1, TapOffloads::ALL);
    let sizes = [0, 1, 17, 18, 40, 41, 1472, 1473, 8972, 8973, 32_000, 65_479, 65_480, 65_493, 65_507];
    for mtu in [68, 1500, 9000, TAP_MTU_MAX] {
        for end in &cable.ends {
            end.run(&format!("ip link set fab0 mtu {mtu}"));
        }
        // More fragments than this do not fit into the buffer that ping gives its socket.
        for size in sizes.into_iter().filter(|size| size / mtu < 50 && (mtu > 68 || *size < 100)) {
            cable.ends[0].run(&format!("ping -c 1 -W 5 -s {size} 198.18.0.2"));
        }
    }
    // An MTU below 1280 took IPv6 away; setting a larger one brings it back.
    for end in 0..2 {
        cable.give_ipv6(end);
    }
    for size in [0, 1, 1452, 1453, 32_000, 65_459, 65_527] {
        cable.ends[1].run(&format!("ping -6 -c 1 -W 5 -s {size} 2001:db8::1"));
    }
}

#[test]
fn tcp_buffers_cross_whole_and_unsegmented() {
    for to in ["198.18.0.2:5000", "[2001:db8::2]:5000"] {
        let cable = Cable::new(1, TapOffloads::ALL);
        cable.give_ipv6(0);
        cable.give_ipv6(1);
        let bytes = 32 << 20;
        transfer(&cable, to, bytes);
        let seen = cable.stop();
        let large = seen.iter().filter(|frame| frame.gso_type != 0 && frame.length > 32_000).count();
        let payload: usize =
            seen.iter().filter(|frame| frame.gso_type != 0).map(|frame| frame.length - 66).sum();
        println!(
            "{to}: {} frames, {large} of them above 32,000 bytes, {payload} bytes in segmented ones",
            seen.len()
        );
        assert!(payload > bytes * 9 / 10, "almost all crosses in buffers to be segmented");
        assert!(large * 48_000 > bytes / 2, "most of it in large ones: {large}");
    }
}

#[test]
fn without_offloads_every_frame_is_a_frame() {
    let cable = Cable::new(1, TapOffloads::NONE);
    transfer(&cable, "198.18.0.2:5000", 4 << 20);
    let seen = cable.stop();
    assert!(seen.iter().all(|frame| frame.gso_type == 0 && !frame.needs_checksum && frame.length <= 1514));
}

#[test]
fn it_is_a_port_of_a_bridge() {
    let cable = Cable::new(1, TapOffloads::ALL);
    let end = &cable.ends[0];
    end.run("ip addr flush dev fab0");
    end.run("ip link add br0 type bridge forward_delay 0");
    end.run("ip link set fab0 master br0");
    end.run("ip addr add 198.18.0.1/24 dev br0");
    end.run("ip link set br0 up");
    end.run("ping -c 2 -i 0.1 -W 5 -s 3000 198.18.0.2");
    transfer(&cable, "198.18.0.2:5000", 8 << 20);
    assert!(end.run("bridge link").contains("state forwarding"));
}

#[test]
fn a_flow_stays_on_its_queue() {
    let queues = 4;
    let cable = Cable::new(queues, TapOffloads::ALL);
    // Their queues are random: one in a thousand million runs leaves one of four unused.
    for port in 5000..5080 {
        transfer(&cable, &format!("198.18.0.2:{port}"), 1 << 18);
    }
    let mut flows: BTreeMap<_, BTreeSet<usize>> = BTreeMap::new();
    let mut used = BTreeSet::new();
    for frame in cable.stop() {
        if let Some(ports) = frame.tcp_ports {
            flows.entry((frame.from, ports)).or_default().insert(frame.queue);
            used.insert(frame.queue);
        }
    }
    assert!(flows.len() >= 160, "{}", flows.len());
    let wandering: Vec<_> = flows.iter().filter(|(_, queues)| queues.len() > 1).collect();
    assert!(wandering.is_empty(), "{wandering:?}");
    assert_eq!(used.len(), queues, "80 flows use every queue");
}

#[test]
fn two_devices_of_one_name_live_in_two_namespaces() {
    let spaces = [Namespace::new(), Namespace::new()];
    let taps = spaces.each_ref().map(|space| space.enter(|| Tap::create(&config(1)).unwrap()));
    assert!(taps.iter().all(|tap| tap.name() == "fab0" && tap.index() > 0));
}

/// Sends `bytes` over TCP from end 0 to `address` at end 1, and checks every one.
fn transfer(cable: &Cable, address: &str, bytes: usize) {
    let [from, to] = &cable.ends;
    let listener = to.enter(|| TcpListener::bind(address).unwrap());
    std::thread::scope(|scope| {
        let reader = scope.spawn(move || {
            let (mut stream, _) = listener.accept().unwrap();
            let (mut buffer, mut total, mut wrong) = (vec![0; 1 << 17], 0, 0);
            loop {
                let got = stream.read(&mut buffer).unwrap();
                if got == 0 {
                    return (total, wrong);
                }
                wrong +=
                    buffer[..got].iter().zip(total..).filter(|(byte, at)| **byte != (at % 251) as u8).count();
                total += got;
            }
        });
        let mut stream = from.enter(|| TcpStream::connect(address).unwrap());
        let pattern: Vec<u8> = (0..bytes).map(|at| (at % 251) as u8).collect();
        stream.write_all(&pattern).unwrap();
        drop(stream);
        assert_eq!(reader.join().unwrap(), (bytes, 0));
    });
}
