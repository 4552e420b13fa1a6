//! How fast frames cross: `cargo run --release -p linkbraid-fabric --example transport [ADDRESS [NETNS NETNS]]`.
//!
//! Two threads, each a node of one fabric, each in its network namespace if one is named. *One way*: as fast as the queue takes them, and how long each takes. *There
//! and back*: one frame at a time, half the round trip; once with both sides spinning, once with both sleeping.

use linkbraid_fabric::{Address, Armed, Join, Refused, Taken, Transport};
use nix::{
    poll::{PollFd, PollFlags},
    sched::{CloneFlags, setns},
    sys::{signal::SigSet, time::TimeSpec},
};
use std::{
    error::Error,
    fs::File,
    io::Write,
    sync::atomic::{AtomicU64, Ordering},
    time::{Duration, Instant},
};

/// Bytes of frames, and how many cross one way.
const SIZES: [(usize, u64); 4] = [(64, 2_000_000), (1400, 1_000_000), (9000, 200_000), (65_536, 50_000)];

/// How long there and back is measured.
const TRIPS_LAST: Duration = Duration::from_secs(1);

/// Looks at an empty queue before the processor goes to whoever else wants it.
const SPINS: u32 = 200;

/// First byte of the frame that ends a course there and back.
const LAST: u8 = 99;

/// Frames between two flushes, and received at once.
const BATCH: usize = 32;

/// Bytes that may be on the way.
const WINDOW: u64 = 512 << 10;

/// For a transport that loses: how long nothing comes before the rest counts as lost.
const SILENCE: Duration = Duration::from_millis(200);

/// How long what was sent may take to go.
const SENT_LAST: Duration = Duration::from_secs(60);

type Port = Box<dyn Transport>;

fn sleep(port: &mut Port, full: &[u16]) {
    if let Armed::Sleep(at_most) = port.arm(full) {
        let timeout = TimeSpec::from(at_most);
        let _ = match port.wake_fd() {
            Some(fd) => nix::poll::ppoll(&mut [PollFd::new(fd, PollFlags::POLLIN)], Some(timeout), None),
            None => nix::poll::ppoll(&mut [], Some(timeout), None::<SigSet>),
        };
    }
    port.disarm();
}

/// Looks after what was sent until it is gone: it may need that.
fn finish(port: &mut Port) {
    let begun = Instant::now();
    while port.stats(1).queued > 0 && begun.elapsed() < SENT_LAST {
        sleep(port, &[]);
    }
}

/// How many frames crossed, and how long that took.
fn one_way(ports: &mut [Port; 2], size: usize, count: u64) -> (u64, Duration) {
    let body = vec![1; size];
    let [from, to] = ports;
    let received = AtomicU64::new(0);
    std::thread::scope(|scope| {
        let begun = Instant::now();
        let sender = scope.spawn(|| {
            let window = (WINDOW / size as u64).max(2);
            for number in 0..count {
                // What TCP would do: not more on the way than fits. What is missing for long counts as lost.
                let waits = Instant::now();
                while number > received.load(Ordering::Relaxed) + window && waits.elapsed() < SILENCE / 2 {
                    from.flush();
                    std::thread::park_timeout(SILENCE / 20);
                }
                while from.send(1, &[], &body) == Err(Refused::Full) {
                    from.flush();
                    sleep(from, &[1]);
                }
                if number % BATCH as u64 == 0 {
                    from.flush();
                }
            }
            from.flush();
            finish(from);
        });
        let (mut got, mut last, mut sum) = (0, Instant::now(), 0u64);
        let mut copy = vec![0; size];
        let mut spins = 0;
        while got < count && (got == 0 || last.elapsed() < SILENCE) {
            // What a frame costs includes a copy to private memory.
            let taken = to.receive(BATCH, &mut |_, bytes| {
                bytes.copy_to(&mut copy);
                sum += u64::from(copy[size - 1]);
                Taken::Yes
            });
            got += taken as u64;
            received.store(got, Ordering::Relaxed);
            if taken > 0 {
                last = Instant::now();
                spins = 0;
                sender.thread().unpark();
            } else if spins < SPINS {
                spins += 1;
                std::hint::spin_loop();
            } else {
                sleep(to, &[]);
            }
        }
        assert_eq!(sum, got, "the bytes are those sent");
        (got, last - begun)
    })
}

/// Waits a moment for the other side; the processor may be shared with it.
fn spin(spins: &mut u32) {
    *spins += 1;
    if spins.is_multiple_of(SPINS) {
        std::thread::yield_now();
    } else {
        std::hint::spin_loop();
    }
}

/// Takes one frame and sends it back, unless it says that it is the last one. False if it was.
fn answer(port: &mut Port, sleeps: bool, peer: u16, copy: &mut [u8], last: bool) -> bool {
    let mut spins = 0;
    while port.receive(1, &mut |_, bytes| {
        bytes.copy_to(copy);
        Taken::Yes
    }) == 0
    {
        if sleeps {
            sleep(port, &[]);
        } else {
            spin(&mut spins);
        }
    }
    if copy[0] == LAST {
        return false;
    }
    copy[0] = if last { LAST } else { 1 };
    port.send(peer, &[], copy).expect("there is room for one");
    port.flush();
    true
}

/// Half the round trip: the median.
fn there_and_back(ports: &mut [Port; 2], size: usize, sleeps: bool) -> Duration {
    let [here, there] = ports;
    std::thread::scope(|scope| {
        scope.spawn(move || {
            let mut copy = vec![0; size];
            while answer(there, sleeps, 0, &mut copy, false) {}
        });
        let mut copy = vec![1; size];
        here.send(1, &[], &copy).expect("there is room for one");
        here.flush();
        let mut times = Vec::with_capacity(1 << 20);
        let begun = Instant::now();
        while begun.elapsed() < TRIPS_LAST {
            let begun = Instant::now();
            answer(here, sleeps, 1, &mut copy, false);
            times.push(begun.elapsed());
        }
        answer(here, sleeps, 1, &mut copy, true);
        finish(here);
        times.sort();
        times[times.len() / 2] / 2
    })
}

fn main() -> Result<(), Box<dyn Error>> {
    let own = format!("shm:/dev/shm/linkbraid-bench-{}", std::process::id());
    let address: Address = std::env::args().nth(1).unwrap_or(own).parse()?;
    let spaces: Vec<_> = std::env::args().skip(2).collect();
    let open = |node: u16| -> Result<Port, String> {
        if let Some(space) = spaces.get(usize::from(node)) {
            let space = File::open(format!("/run/netns/{space}")).map_err(|error| error.to_string())?;
            setns(space, CloneFlags::CLONE_NEWNET).map_err(|error| error.to_string())?;
        }
        let ports = address.open(&Join { node, nodes: 2, queues: 1 });
        Ok(ports.map_err(|error| error.to_string())?.remove(0))
    };
    let mut ports = [open(0)?, open(1)?];
    for (size, count) in SIZES {
        let (got, took) = one_way(&mut ports, size, count);
        let each = took.as_nanos() as f64 / got as f64;
        let rate = size as f64 / each;
        let lost = count - got;
        print!("{size:>6} bytes: {each:>8.1} ns a frame, {rate:>6.2} GB/s, {lost} of {count} lost;");
        std::io::stdout().flush()?;
        for sleeps in [false, true] {
            let half = there_and_back(&mut ports, size, sleeps);
            print!(
                " {} {:.2} us",
                if sleeps { "sleeping" } else { "spinning" },
                half.as_nanos() as f64 / 1e3
            );
        }
        println!();
    }
    Ok(())
}
