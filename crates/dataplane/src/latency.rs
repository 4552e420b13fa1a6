//! Where the time of a frame goes: a meter for one bond, in two stages and in all, by class (`bpf/latency.bpf.c`).
//!
//! It is an object of its own, loaded only while it measures. Nothing of it is pinned: when the meter or the process
//! goes, its programs go.

mod histogram;
mod load;

use crate::{
    DataPath, Tables,
    error::Result,
    intf::{
        CLASSES_MAX, LB_CONFIG_LATENCY, LB_STAGE_APPLICATION, LB_STAGE_DRIVER, LB_STAGE_TOTAL, LB_STAGES,
        lb_config, lb_latency, lb_meter,
    },
    map::Map,
};
use histogram::Histogram;
use libbpf_rs::{Link, Object};
use std::time::Duration;

const LATENCIES: &str = "lb_latencies";

/// A part of the way of a frame.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
#[repr(u8)]
pub enum Stage {
    /// From the send call until the bond has chosen a member. What TCP holds back (a closed window, congestion
    /// control) is part of it. Counted for data that leaves for the first time, from the call of its first byte; not for
    /// ACKs without data, what TCP sends again, frames of guests and of the kernel itself.
    Application = LB_STAGE_APPLICATION as u8,
    /// From there until the member's driver is given the frame: the member's queueing discipline. Counted for every frame
    /// that gets there; further copies of one frame are not. On a busy machine a kernel (6.18) was seen to run no program for
    /// about one of a thousand frames that waited: these are missing.
    Driver = LB_STAGE_DRIVER as u8,
    /// Both together. Counted for frames that both are counted for.
    Total = LB_STAGE_TOTAL as u8,
}

impl Stage {
    /// All of them.
    pub const ALL: [Self; LB_STAGES as usize] = [Self::Application, Self::Driver, Self::Total];
}

/// What the meter measured of one stage of one class. A buffer of several segments (GSO) counts once, and is in the driver
/// when its last segment is.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Latency {
    /// The class; 0 is the default class.
    pub class: u8,
    /// The stage that was measured.
    pub stage: Stage,
    /// Buffers measured, at least 1.
    pub count: u64,
    /// The shortest, to 16 ns, as all that follow.
    pub min: Duration,
    /// The arithmetic mean of all.
    pub mean: Duration,
    /// The standard deviation of all.
    pub stddev: Duration,
    /// The median; a percentile is right to a sixteenth of its value.
    pub p50: Duration,
    /// The 90th percentile.
    pub p90: Duration,
    /// The 99th percentile.
    pub p99: Duration,
    /// The 99.9th percentile.
    pub p999: Duration,
    /// The longest; those above 68.7 s count as that long.
    pub max: Duration,
}

/// How send calls are noticed.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum CallHook {
    /// At `inet_sendmsg` and its like (fentry): costs nothing elsewhere and sees every sender.
    Functions,
    /// At the entry of every system call of the machine, where the kernel has no function entry hooks for BPF. Misses what
    /// io_uring and the kernel itself send.
    Syscalls,
}

/// Measures latency until it is dropped.
pub struct LatencyMeter {
    // Links go before their programs.
    links: Vec<Link>,
    latencies: Map,
    hook: CallHook,
    _object: Object,
}

impl LatencyMeter {
    /// Begins to measure the bond of this data path, from zero. The bond's row must have been written, and the caller must
    /// be in the bond's network namespace.
    ///
    /// # Errors
    /// The kernel does not have what is needed ([`Error::NoMeter`](crate::Error::NoMeter)) or refuses.
    pub fn start(path: &DataPath) -> Result<Self> {
        // A kernel without function entry hooks refuses, which is no news to anybody.
        let print = libbpf_rs::set_print(None);
        let tried = Self::start_by(path, CallHook::Functions);
        libbpf_rs::set_print(print);
        tried.or_else(|_| Self::start_by(path, CallHook::Syscalls))
    }

    /// The same with one way to notice send calls.
    ///
    /// # Errors
    /// As [`LatencyMeter::start`].
    pub fn start_by(path: &DataPath, hook: CallHook) -> Result<Self> {
        let bond: lb_config = path.read("lb_bond", &0u32)?;
        let raw = lb_meter { net_cookie: load::net_cookie()?, bond_ifindex: bond.bond_ifindex, pad: 0 };
        let (object, links) = load::load(&raw, hook)?;
        let latencies = Map::of(&object, LATENCIES)?;
        path.set_latency(true)?;
        Ok(Self { links, latencies, hook, _object: object })
    }

    /// How send calls are noticed on this kernel.
    pub fn hook(&self) -> CallHook {
        self.hook
    }

    /// What was measured since the start, by class and stage; stages that nothing passed are left out.
    ///
    /// # Errors
    /// The kernel refuses.
    pub fn read(&self) -> Result<Vec<Latency>> {
        let mut all = Vec::new();
        for class in 0..CLASSES_MAX as u8 {
            for stage in Stage::ALL {
                let row = u32::from(class) * LB_STAGES + stage as u32;
                all.extend(self.histogram(row)?.latency(class, stage));
            }
        }
        Ok(all)
    }

    /// Forgets what was measured of a class, for the next one of its number.
    ///
    /// # Errors
    /// The kernel refuses.
    pub fn clear(&self, class: u8) -> Result<()> {
        for stage in Stage::ALL {
            let row = u32::from(class) * LB_STAGES + stage as u32;
            self.latencies.clear_percpu::<lb_latency>(row)?;
        }
        Ok(())
    }

    fn histogram(&self, row: u32) -> Result<Histogram> {
        let mut sum = Histogram::default();
        for cpu in self.latencies.read_percpu(row)? {
            sum.add(&cpu);
        }
        Ok(sum)
    }

    /// Stops measuring. Dropping the meter does too, but then frames go on being stamped until
    /// [`Tables::set_latency`] switches that off.
    ///
    /// # Errors
    /// The kernel refuses to change the bond's row; the programs are gone all the same.
    pub fn stop(mut self, path: &DataPath) -> Result<()> {
        self.links.clear();
        path.set_latency(false)
    }
}

impl Tables {
    /// Whether frames leave with a stamp for the meter, which costs one look at the clock each; [`LatencyMeter`] does
    /// this itself.
    ///
    /// # Errors
    /// The kernel refuses.
    pub fn set_latency(&self, on: bool) -> Result<()> {
        self.change_bond(|bond| {
            bond.flags = if on { bond.flags | LB_CONFIG_LATENCY } else { bond.flags & !LB_CONFIG_LATENCY };
            Ok(())
        })
    }
}
