//! A bond whose frames really leave, by members that end in another namespace.

use crate::rig::{Rig, ip, new_namespace, own, peer};
use linkbraid_dataplane::{CallHook, Error, Latency, LatencyMeter, Stage};
use std::{
    process::Command,
    sync::{
        OnceLock,
        mpsc::{Receiver, Sender, channel},
    },
    thread::JoinHandle,
    time::{Duration, Instant},
};

/// Everything that is waited for happens sooner.
pub const SOON: Duration = Duration::from_secs(20);

/// The bond has address 198.18.9.1 and 2001:db8::1, the far host 198.18.9.2 and 2001:db8::2 on the end of member 0.
pub struct Wire {
    pub rig: Rig,
    far: Option<JoinHandle<()>>,
    jobs: Option<Sender<Job>>,
}

type Job = Box<dyn FnOnce() + Send>;

impl Wire {
    /// A bond of `n` members, attached and up.
    pub fn new(n: u8) -> Self {
        let mut rig = Rig::new(n);
        let (jobs, work) = channel::<Job>();
        let (ready, is_ready) = channel();
        let far = std::thread::spawn(move || {
            new_namespace();
            ready.send(nix::unistd::gettid()).expect("somebody waits");
            work.into_iter().for_each(|job| job());
        });
        let thread = is_ready.recv_timeout(SOON).expect("a namespace is made");
        ip("link set bond address 02:00:00:00:01:00");
        for slot in 0..n {
            ip(&format!("link set member{slot} address {}", text(own(slot))));
            ip(&format!("link set member{slot} master bond"));
            ip(&format!("link set far{slot} netns {thread}"));
            rig.path.attach_member(rig.members[usize::from(slot)]).unwrap();
        }
        rig.path.attach_port(rig.bond.ifindex).unwrap();
        ip("link set bond up");
        ip("address add 198.18.9.1/24 dev bond");
        ip("address add 2001:db8::1/64 dev bond nodad");
        let mac = text(peer(0));
        ip(&format!("neighbour add 198.18.9.2 lladdr {mac} dev bond nud permanent"));
        ip(&format!("neighbour add 2001:db8::2 lladdr {mac} dev bond nud permanent"));
        let wire = Self { rig, far: Some(far), jobs: Some(jobs) };
        wire.at_far(move || {
            ip(&format!("link set far0 address {mac}"));
            for slot in 0..n {
                ip(&format!("link set far{slot} up"));
            }
            ip("address add 198.18.9.2/24 dev far0");
            ip("address add 2001:db8::2/64 dev far0 nodad");
            ip("neighbour add 198.18.9.1 lladdr 02:00:00:00:01:00 dev far0 nud permanent");
            ip("neighbour add 2001:db8::1 lladdr 02:00:00:00:01:00 dev far0 nud permanent");
        });
        wait_for("the members to have a carrier", || (0..n).all(has_carrier));
        wire
    }

    /// Runs on the far host; what comes of it.
    pub fn at_far<T: Send + 'static>(&self, job: impl FnOnce() -> T + Send + 'static) -> T {
        self.begin_at_far(job).recv_timeout(SOON).expect("the far host is quick")
    }

    /// Begins to run there.
    pub fn begin_at_far<T: Send + 'static>(&self, job: impl FnOnce() -> T + Send + 'static) -> Receiver<T> {
        let (done, result) = channel();
        let job = Box::new(move || {
            let _ = done.send(job());
        });
        self.jobs.as_ref().expect("until the end").send(job).expect("the far host lives");
        result
    }

    /// Frames that left by the members, a buffer of several segments counted as so many.
    pub fn sent(&self) -> u64 {
        (0..self.rig.members.len())
            .map(|slot| self.rig.path.member_counts(slot as u8).unwrap().tx.frames)
            .sum()
    }
}

impl Drop for Wire {
    fn drop(&mut self) {
        drop(self.jobs.take());
        if let Some(far) = self.far.take() {
            let ended = far.join();
            assert!(ended.is_ok() || std::thread::panicking(), "the far host failed");
        }
    }
}

fn text(mac: [u8; 6]) -> String {
    mac.map(|byte| format!("{byte:02x}")).join(":")
}

fn has_carrier(slot: u8) -> bool {
    let done = Command::new("ip")
        .args(["-o", "link", "show", "up", "dev", &format!("member{slot}")])
        .output()
        .expect("iproute2 is installed");
    String::from_utf8_lossy(&done.stdout).contains("LOWER_UP")
}

/// Runs tc.
pub fn tc(line: &str) {
    let done = Command::new("tc").args(line.split_whitespace()).output().expect("iproute2 is installed");
    assert!(done.status.success(), "tc {line}: {}", String::from_utf8_lossy(&done.stderr));
}

/// Whether it is so before long.
pub fn comes(mut is_so: impl FnMut() -> bool) -> bool {
    let until = Instant::now() + SOON;
    while !is_so() {
        if Instant::now() >= until {
            return false;
        }
        std::thread::yield_now();
    }
    true
}

/// Until it is so.
pub fn wait_for(what: &str, is_so: impl FnMut() -> bool) {
    assert!(comes(is_so), "waited too long for {what}");
}

/// Of a thousand frames that wait in a queue, on a busy machine, the kernel (6.18) gives about one to the driver without running
/// the programs at any of the tracepoints there; nobody knows why. So all have to be counted in one of these turns.
const TURNS: usize = 3;

/// Runs a test of what a queue delays, which says whether all frames were counted; again if they were not.
pub fn in_one_turn(test: impl Fn() -> bool) {
    assert!((0..TURNS).any(|_| test()), "frames were missing in each turn");
}

/// The ways to notice send calls that this kernel allows.
pub fn hooks() -> &'static [CallHook] {
    static ALLOWED: OnceLock<Vec<CallHook>> = OnceLock::new();
    ALLOWED.get_or_init(|| {
        let rig = Rig::new(1);
        let print = libbpf_rs::set_print(None);
        let mut all = vec![CallHook::Functions, CallHook::Syscalls];
        all.retain(|hook| match LatencyMeter::start_by(&rig.path, *hook) {
            Ok(meter) => meter.hook() == *hook,
            Err(error @ Error::NoMeter { .. }) => {
                eprintln!("{error}");
                false
            }
            Err(error) => panic!("{error}"),
        });
        libbpf_rs::set_print(print);
        assert!(!all.is_empty(), "this kernel can notice send calls");
        all
    })
}

/// What was measured of class 0.
pub fn of(meter: &LatencyMeter, stage: Stage) -> Option<Latency> {
    let all = meter.read().unwrap();
    assert!(all.iter().all(|row| row.class == 0), "{all:?}");
    all.into_iter().find(|row| row.stage == stage)
}

/// Of how many buffers.
pub fn count(meter: &LatencyMeter, stage: Stage) -> u64 {
    of(meter, stage).map_or(0, |row| row.count)
}
