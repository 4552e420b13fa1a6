//! TCP: data counts from the send call of its first byte, however long it waited.

use crate::rig::ip;
use crate::wire::{SOON, Wire, comes, count, hooks, in_one_turn, of, tc, wait_for};
use linkbraid_dataplane::{LatencyMeter, Policy, Stage};
use nix::poll::{PollFd, PollFlags, poll};
use std::{
    io::{ErrorKind, Read as _, Write as _},
    net::{TcpListener, TcpStream},
    os::fd::AsFd as _,
    sync::mpsc::{Receiver, channel},
    time::{Duration, Instant},
};

/// The far host accepts one connection and does `then` with it; the near end of it.
fn connect<T: Send + 'static>(
    wire: &Wire,
    address: &'static str,
    then: impl FnOnce(TcpStream) -> T + Send + 'static,
) -> (TcpStream, Receiver<T>) {
    let listener = wire.at_far(move || TcpListener::bind(address).unwrap());
    let to = listener.local_addr().unwrap();
    let result = wire.begin_at_far(move || then(listener.accept().unwrap().0));
    let stream = TcpStream::connect_timeout(&to, SOON).unwrap();
    stream.set_read_timeout(Some(SOON)).unwrap();
    stream.set_nodelay(true).unwrap();
    (stream, result)
}

fn echo(mut stream: TcpStream) {
    let mut message = [0; 100];
    while stream.read_exact(&mut message).is_ok() {
        stream.write_all(&message).unwrap();
    }
}

/// Whether the driver stage counts so many buffers before long; else it is said what was counted.
fn driver_counts(wire: &Wire, meter: &LatencyMeter, expected: impl Fn() -> u64) -> bool {
    let all = comes(|| count(meter, Stage::Driver) >= expected());
    if !all {
        eprintln!("{} expected, {} frames left, {:?}", expected(), wire.sent(), meter.read());
    }
    all
}

#[test]
fn every_message_counts_once_and_acknowledgements_do_not() {
    for &hook in hooks() {
        for address in ["198.18.9.2:0", "[2001:db8::2]:0"] {
            let wire = Wire::new(1);
            let started = wire.sent();
            let meter = LatencyMeter::start_by(&wire.rig.path, hook).unwrap();
            let before = wire.sent();
            let (mut stream, ended) = connect(&wire, address, echo);
            let began = Instant::now();
            for _ in 0..100 {
                stream.write_all(&[1; 100]).unwrap();
                stream.read_exact(&mut [0; 100]).unwrap();
            }
            let took = began.elapsed();
            drop(stream);
            ended.recv_timeout(SOON).unwrap();
            let application = of(&meter, Stage::Application).unwrap();
            assert_eq!(application.count, 100, "{hook:?}");
            assert!(application.max <= took, "{hook:?}: {application:?}");
            // The handshake and the end leave too, without a send call.
            // The kernel may have sent something of its own after the meter was started.
            assert!(driver_counts(&wire, &meter, || wire.sent() - before));
            assert!(count(&meter, Stage::Driver) <= wire.sent() - started, "{hook:?}");
            assert!(count(&meter, Stage::Driver) >= 103, "{hook:?}");
        }
    }
}

#[test]
fn a_pause_between_messages_is_nobodys_latency() {
    const PAUSE: Duration = Duration::from_millis(300);
    for &hook in hooks() {
        let wire = Wire::new(1);
        let (mut stream, _ended) = connect(&wire, "198.18.9.2:0", echo);
        let meter = LatencyMeter::start_by(&wire.rig.path, hook).unwrap();
        for _ in 0..3 {
            stream.write_all(&[1; 100]).unwrap();
            stream.read_exact(&mut [0; 100]).unwrap();
            // Nothing more comes: the whole time passes.
            let waits = &mut [PollFd::new(stream.as_fd(), PollFlags::POLLIN)];
            assert_eq!(poll(waits, PAUSE.as_millis() as u16), Ok(0));
        }
        let application = of(&meter, Stage::Application).unwrap();
        assert_eq!(application.count, 3, "{hook:?}");
        assert!(application.max < PAUSE, "{hook:?}: {application:?}");
    }
}

#[test]
fn what_a_closed_window_holds_back_waits_at_the_application() {
    const CLOSED: Duration = Duration::from_millis(200);
    for &hook in hooks() {
        let wire = Wire::new(1);
        let meter = LatencyMeter::start_by(&wire.rig.path, hook).unwrap();
        let (go, may_read) = channel::<()>();
        let (mut stream, read) = connect(&wire, "198.18.9.2:0", move |mut stream| {
            may_read.recv_timeout(SOON).unwrap();
            let mut all = Vec::new();
            stream.read_to_end(&mut all).unwrap();
            all.len()
        });
        stream.set_nonblocking(true).unwrap();
        let mut written = 0;
        let block = vec![5; 16 * 1024];
        // Fills the far socket, then the near one, until nothing moves any more.
        loop {
            match stream.write(&block) {
                Ok(bytes) => written += bytes,
                Err(error) if error.kind() == ErrorKind::WouldBlock => {
                    let waits = &mut [PollFd::new(stream.as_fd(), PollFlags::POLLOUT)];
                    if poll(waits, CLOSED.as_millis() as u16) == Ok(0) {
                        break;
                    }
                }
                Err(error) => panic!("{error}"),
            }
        }
        let early = of(&meter, Stage::Application).unwrap();
        go.send(()).unwrap();
        stream.shutdown(std::net::Shutdown::Write).unwrap();
        assert_eq!(read.recv_timeout(SOON).unwrap(), written);
        let late = of(&meter, Stage::Application).unwrap();
        assert!(late.count > early.count, "{hook:?}: {early:?} {late:?}");
        assert!(late.max >= CLOSED, "{hook:?}: {late:?}");
        let driver = of(&meter, Stage::Driver).unwrap();
        assert!(driver.p99 < CLOSED, "{hook:?}: {driver:?}");
    }
}

#[test]
fn what_is_sent_again_counts_in_the_driver_stage_only() {
    for &hook in hooks() {
        let wire = Wire::new(1);
        let (gone, is_gone) = channel::<()>();
        let (back, is_back) = channel::<()>();
        let started = wire.sent();
        let meter = LatencyMeter::start_by(&wire.rig.path, hook).unwrap();
        let before = wire.sent();
        let (mut stream, _ended) = connect(&wire, "198.18.9.2:0", move |stream| {
            ip("address del 198.18.9.2/24 dev far0");
            gone.send(()).unwrap();
            is_back.recv_timeout(SOON).unwrap();
            ip("address add 198.18.9.2/24 dev far0");
            echo(stream);
        });
        is_gone.recv_timeout(SOON).unwrap();
        let connected = wire.sent();
        stream.write_all(&[1; 100]).unwrap();
        wait_for("the message to be sent again", || wire.sent() >= connected + 2);
        back.send(()).unwrap();
        stream.read_exact(&mut [0; 100]).unwrap();
        assert_eq!(count(&meter, Stage::Application), 1, "{hook:?}");
        // The kernel may have sent something of its own after the meter was started.
        assert!(driver_counts(&wire, &meter, || wire.sent() - before));
        assert!(count(&meter, Stage::Driver) <= wire.sent() - started, "{hook:?}");
    }
}

#[test]
fn mirrored_messages_count_once() {
    for &hook in hooks() {
        let mut wire = Wire::new(2);
        wire.rig.weights(&[1]);
        let (mut stream, _ended) = connect(&wire, "198.18.9.2:0", |stream| stream);
        let meter = LatencyMeter::start_by(&wire.rig.path, hook).unwrap();
        // From here on nothing arrives: the far host does not know mirrored frames.
        wire.rig.set_policy(Policy::Mirror);
        let mirrored = || wire.rig.path.reason("tx_mirror").unwrap().frames;
        for message in 1..=5 {
            stream.write_all(&[1; 100]).unwrap();
            wait_for("the message to leave", || mirrored() >= message);
        }
        assert_eq!(count(&meter, Stage::Application), 5, "{hook:?}");
        wait_for("the message to be sent again", || mirrored() > 5);
        assert_eq!(count(&meter, Stage::Application), 5, "{hook:?}");
        assert!(driver_counts(&wire, &meter, mirrored));
        assert!(count(&meter, Stage::Driver) < wire.sent(), "{hook:?}: copies are not counted");
    }
}

#[test]
fn a_buffer_of_many_segments_counts_once_wherever_it_is_cut() {
    const BYTES: usize = 2_000_000;
    for &hook in hooks() {
        // By the far end of the members, which needs no cutting, and by the member's queue.
        for shaped in [false, true] {
            in_one_turn(|| {
                let wire = Wire::new(1);
                if shaped {
                    tc("qdisc add dev member0 root tbf rate 200mbit burst 3100 limit 10000000");
                }
                let meter = LatencyMeter::start_by(&wire.rig.path, hook).unwrap();
                let before = wire.sent();
                let (mut stream, ended) =
                    connect(&wire, "198.18.9.2:0", |mut stream| stream.read_to_end(&mut Vec::new()).unwrap());
                stream.write_all(&vec![1; BYTES]).unwrap();
                drop(stream);
                assert_eq!(ended.recv_timeout(SOON).unwrap(), BYTES);
                let application = count(&meter, Stage::Application);
                assert!(application > 0, "{hook:?}");
                // Besides the data, the handshake and the end.
                if !driver_counts(&wire, &meter, || application + 2) {
                    return false;
                }
                let (driver, frames) = (count(&meter, Stage::Driver), wire.sent() - before);
                assert!(driver < frames / 2, "{hook:?}: {driver} of {frames} frames, shaped: {shaped}");
                true
            });
        }
    }
}
