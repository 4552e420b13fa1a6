//! The tables that the programs follow, as typed values, and the counters they keep.

use crate::{
    error::{Error, Result},
    intf::{
        CLASSES_MAX, LANES_MAX, LB_CONFIG_DAMPING, LB_CONFIG_HELD_SHIFT, LB_PLAN_BORROWS, LB_PLAN_SHARES,
        MEMBERS_MAX, PLANS_MAX, lb_config, lb_count, lb_lane, lb_lane_counts, lb_mac_key, lb_plan,
        lb_progress,
    },
    map::Map,
    reason::{REASONS, Reason},
};
use bytemuck::Zeroable as _;
use linkbraid_api::Policy;
use std::{
    collections::HashMap,
    sync::{Mutex, PoisonError},
    time::Duration,
};

/// The settings of the bond as a whole.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Bond {
    /// The index of the bond's interface.
    pub ifindex: u32,
    /// The bond's MAC.
    pub mac: [u8; 6],
    /// Whether and how duplicate ACKs are damped.
    pub damping: Option<Damping>,
    /// The elected member of each segment that has a live member.
    pub elected: Vec<u8>,
    /// Members presumed failed since the plans were written, one bit for each slot; see [`Tables::set_failed_slots`].
    pub failed_slots: u32,
    /// Distinguishes mirrored frames from those of an earlier run: another number each time the data path is loaded, at
    /// random.
    pub epoch: u32,
}

/// How long the programs wait before they report a hole to TCP as a loss.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Damping {
    /// The least age from which on a hole that nothing has overtaken counts as a loss.
    pub least: Duration,
    /// The greatest one.
    pub greatest: Duration,
    /// How long a hole may be filled after later data of its own lane has arrived.
    pub overtaking: Duration,
}

impl Default for Damping {
    /// Patience costs little, since later data of its lane shows most losses soon (docs/design/striping.md).
    fn default() -> Self {
        Self {
            least: Duration::from_millis(10),
            greatest: Duration::from_millis(100),
            overtaking: Duration::from_micros(500),
        }
    }
}

/// The greatest age of a hole that the programs can represent.
const DAMPING_MAX: Duration = Duration::from_secs(60);

/// A bit for each slot.
const SLOTS: u64 = (1 << MEMBERS_MAX) - 1;

/// A member of the bond, as the programs know it.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Member {
    /// The index of its interface.
    pub ifindex: u32,
    /// Its own MAC.
    pub mac: [u8; 6],
    /// Whether it carries traffic.
    pub live: bool,
    /// The slot that takes in the broadcasts of its segment.
    pub elected: u8,
}

/// A lane of a plan: how a frame leaves.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Lane {
    /// The slot of our member.
    pub slot: u8,
    /// The peer's member; `None` keeps the destination as it is.
    pub peer_mac: Option<[u8; 6]>,
    /// Its share relative to the other lanes, in any unit.
    pub weight: u32,
    /// Its measured rate in any unit, where the plan's lanes have one: frames are spread by it and not by the weight.
    pub rate: Option<u32>,
    /// The class that it is borrowed from, and that must not have sent anything for 100 ms when it is used; 0: a lane of
    /// the plan's own. By a hash (policy `flow`, ACKs without data, guests) no frame comes to a borrowed lane.
    pub class: u8,
}

/// The lanes to use towards a destination.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Plan {
    /// At most [`LANES_MAX`]; none: frames are dropped and counted.
    pub lanes: Vec<Lane>,
    /// How frames spread over them.
    pub policy: Policy,
    /// Of the plan of a class: while all members of its lanes have failed (or it has no lanes) the class takes the plan that
    /// it stands in place of; else its frames are lost.
    pub shares: bool,
}

/// What came of what a lane was sent, as far as ACKs of striped flows say; see `bpf/delivery.bpf.h`. All wrap.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct Delivered {
    /// Bytes that were delivered while something waited on the lane.
    pub busy_bytes: u32,
    /// For how long something did, us.
    pub busy_us: u32,
    /// Bytes of striped flows that were sent over the lane, those that had been sent before, too.
    pub sent_bytes: u32,
    /// Of these, bytes that were sent again, by whatever lane.
    pub lost_bytes: u32,
}

/// Frames on the wire and their bytes.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct Count {
    /// Frames, a buffer of several segments counted as so many.
    pub frames: u64,
    /// Bytes with Ethernet headers, as the buffers had them.
    pub bytes: u64,
}

/// The frames and bytes that a member carried.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct MemberCounts {
    /// Frames and bytes sent.
    pub tx: Count,
    /// Frames and bytes received and not dropped before the counter.
    pub rx: Count,
}

/// The tables that the programs of one bond follow, and their counters. They may be written and read by any thread: no call
/// waits for the kernel's network lock.
pub struct Tables {
    pub(crate) maps: HashMap<&'static str, Map>,
    /// Held while the bond's row is changed.
    bond_row: Mutex<()>,
}

impl Tables {
    pub(crate) fn new(maps: HashMap<&'static str, Map>) -> Self {
        Self { maps, bond_row: Mutex::default() }
    }

    /// Writes the bond's own row; its rules stay, its stripe length, and whether it measures latency.
    ///
    /// # Errors
    /// The kernel refuses, or there are more segments than members.
    pub fn set_bond(&self, bond: &Bond) -> Result<()> {
        within("segments", bond.elected.len() as u64, MEMBERS_MAX as u64)?;
        within("failed slots", bond.failed_slots.into(), SLOTS)?;
        let none = Damping { least: Duration::ZERO, greatest: Duration::ZERO, overtaking: Duration::ZERO };
        let damping = bond.damping.unwrap_or(none);
        let longest = damping.greatest.max(damping.overtaking);
        if longest > DAMPING_MAX {
            return Err(Error::Range {
                what: "damping, seconds",
                value: longest.as_secs(),
                max: DAMPING_MAX.as_secs(),
            });
        }
        let mut elected = [0; MEMBERS_MAX];
        elected[..bond.elected.len()].copy_from_slice(&bond.elected);
        self.change_bond(|old| {
            *old = lb_config {
                bond_ifindex: bond.ifindex,
                flags: old.flags & !LB_CONFIG_DAMPING
                    | if bond.damping.is_some() { LB_CONFIG_DAMPING } else { 0 },
                damp_ns_min: nanoseconds(damping.least),
                damp_ns_max: nanoseconds(damping.greatest),
                mac: bond.mac,
                n_rules: old.n_rules,
                n_segments: bond.elected.len() as u8,
                elected,
                failed_slots: bond.failed_slots,
                epoch: bond.epoch,
                stripe_bytes: old.stripe_bytes,
                overtaking_us: damping.overtaking.as_micros() as u32,
            };
            Ok(())
        })
    }

    /// Takes members out of every plan at once, a bit a slot, by one write: no frame leaves by a lane of theirs if its
    /// plan has another one. The plans written later can do without them, and then the bits are to be cleared.
    ///
    /// # Errors
    /// The kernel refuses, or the mask names slots that do not exist.
    pub fn set_failed_slots(&self, mask: u32) -> Result<()> {
        within("failed slots", mask.into(), SLOTS)?;
        self.change_bond(|bond| {
            bond.failed_slots = mask;
            Ok(())
        })
    }

    /// Says which members carry nothing once this process has ended, one bit for each slot: they then count as failed, at once and without
    /// anybody having to say so. Where the kernel has no AF_XDP they count as live.
    ///
    /// # Errors
    /// The kernel refuses, or the mask names slots that do not exist.
    pub fn set_held_slots(&self, mask: u32) -> Result<()> {
        within("held slots", mask.into(), SLOTS)?;
        self.change_bond(|bond| {
            bond.flags = bond.flags & ((1 << LB_CONFIG_HELD_SHIFT) - 1) | mask << LB_CONFIG_HELD_SHIFT;
            Ok(())
        })
    }

    /// Says up to how many bytes of data TCP's buffers that follow each other share a lane where they are shorter.
    ///
    /// # Errors
    /// The kernel refuses.
    pub fn set_stripe(&self, bytes: u32) -> Result<()> {
        self.change_bond(|bond| {
            bond.stripe_bytes = bytes;
            Ok(())
        })
    }

    /// Replaces a plan as a whole; progress and lane counters start at zero if the lanes differ in more than their rates.
    ///
    /// # Errors
    /// The kernel refuses, or the plan is out of range.
    pub fn set_plan(&self, number: u32, plan: &Plan) -> Result<()> {
        within("plan", number.into(), u64::from(PLANS_MAX) - 1)?;
        within("lanes", plan.lanes.len() as u64, LANES_MAX as u64)?;
        for lane in &plan.lanes {
            within("slot", lane.slot.into(), MEMBERS_MAX as u64 - 1)?;
            within("class", lane.class.into(), CLASSES_MAX as u64 - 1)?;
        }
        let old: lb_plan = self.read("lb_plans", &number)?;
        let mut raw = raw_plan(plan);
        raw.generation = old.generation;
        if raw == old {
            return Ok(());
        }
        if without_costs(&raw) != without_costs(&old) {
            raw.generation = generation(number, old.generation);
        }
        self.write("lb_plans", &number, &raw)
    }

    /// What each reason counted.
    ///
    /// # Errors
    /// The kernel refuses.
    pub fn reasons(&self) -> Result<Vec<(&'static Reason, Count)>> {
        REASONS.iter().skip(1).map(|reason| Ok((reason, self.sum("lb_reasons", reason.number)?))).collect()
    }

    /// What one reason counted, by its name.
    ///
    /// # Errors
    /// The kernel refuses, or there is no such reason.
    pub fn reason(&self, name: &'static str) -> Result<Count> {
        let reason = REASONS.iter().find(|reason| reason.name == name).ok_or(Error::Missing(name))?;
        self.sum("lb_reasons", reason.number)
    }

    /// Looks which plans frames have left by since the last look, ascending. One that was used shortly before that one may be among
    /// them again.
    ///
    /// # Errors
    /// The kernel refuses.
    pub fn look_at_used(&self) -> Result<Vec<u32>> {
        let look: u8 = self.read("lb_look", &0u32)?;
        // 0 is in the row of a plan that was never used.
        self.write("lb_look", &0u32, &look.checked_add(1).unwrap_or(1))?;
        let used: [u8; PLANS_MAX as usize] = self.read("lb_used", &0u32)?;
        let before = if look > 1 { look - 1 } else { u8::MAX };
        // A frame that leaves right now may have read the number before this look, and write it after that.
        let is_used = |number: &u32| [look, before].contains(&used[*number as usize]) && look != 0;
        Ok((0..PLANS_MAX).filter(is_used).collect())
    }

    /// What each lane of a plan carried since the plan changed last.
    ///
    /// # Errors
    /// The kernel refuses.
    pub fn lane_counts(&self, number: u32) -> Result<Vec<Count>> {
        let plan: lb_plan = self.read("lb_plans", &number)?;
        let cpus: Vec<lb_lane_counts> = self.map("lb_lane_counters")?.read_percpu(number)?;
        let now = cpus.iter().filter(|cpu| cpu.generation == plan.generation);
        Ok((0..plan.n_lanes as usize).map(|i| total(now.clone().map(|cpu| cpu.lanes[i]))).collect())
    }

    /// How fast the lanes of a plan deliver, since the plan changed last.
    ///
    /// # Errors
    /// The kernel refuses.
    pub fn lane_deliveries(&self, number: u32) -> Result<Vec<Delivered>> {
        let plan: lb_plan = self.read("lb_plans", &number)?;
        let progress: lb_progress = self.read("lb_progresses", &number)?;
        if progress.generation != plan.generation {
            return Ok(vec![Delivered::default(); plan.n_lanes as usize]);
        }
        let lanes = progress.deliveries.iter().take(plan.n_lanes as usize);
        let delivered = lanes.map(|lane| Delivered {
            busy_bytes: lane.busy_bytes,
            busy_us: lane.busy_us,
            sent_bytes: lane.sent_bytes,
            lost_bytes: lane.lost_bytes,
        });
        Ok(delivered.collect())
    }

    /// All rows of a map keyed by MAC, by MAC.
    fn mac_rows<V: bytemuck::Pod>(&self, name: &'static str) -> Result<Vec<([u8; 6], V)>> {
        let mut rows = self.map(name)?.rows::<lb_mac_key, V>()?;
        rows.sort_unstable_by_key(|row| row.0.mac);
        rows.dedup_by_key(|row| row.0.mac);
        Ok(rows.into_iter().map(|(key, row)| (key.mac, row)).collect())
    }

    /// Changes the bond's own row. One thread at a time: others change other fields of it.
    pub(crate) fn change_bond(&self, change: impl FnOnce(&mut lb_config) -> Result<()>) -> Result<()> {
        // Nothing is left half done by a panic: the row is written whole.
        let _one = self.bond_row.lock().unwrap_or_else(PoisonError::into_inner);
        let mut row: lb_config = self.read("lb_bond", &0u32)?;
        change(&mut row)?;
        self.write("lb_bond", &0u32, &row)
    }

    pub(crate) fn map(&self, name: &'static str) -> Result<&Map> {
        self.maps.get(name).ok_or(Error::Missing(name))
    }

    fn sum(&self, map: &'static str, key: u32) -> Result<Count> {
        Ok(total(self.map(map)?.read_percpu::<lb_count>(key)?.into_iter()))
    }

    pub(crate) fn write<K: bytemuck::Pod, V: bytemuck::Pod>(
        &self,
        map: &'static str,
        key: &K,
        value: &V,
    ) -> Result<()> {
        self.map(map)?.write(key, value)
    }

    pub(crate) fn read<K: bytemuck::Pod, V: bytemuck::Pod>(&self, map: &'static str, key: &K) -> Result<V> {
        self.map(map)?.read(key)
    }

    fn delete<K: bytemuck::Pod>(&self, map: &'static str, key: &K) -> Result<()> {
        self.map(map)?.delete(key)
    }
}

/// The bits of a generation that count the changes of one plan.
const CHANGES_BITS: u32 = 15;

/// The generation of a plan after this one. Never 0 and at most 28 bits, for it is also part of a stripe's lane number;
/// of no other plan, for a flow's stripes may have left by several.
fn generation(number: u32, old: u32) -> u32 {
    const { assert!(PLANS_MAX <= 1 << (28 - CHANGES_BITS)) };
    let changes = (old + 1) & ((1 << CHANGES_BITS) - 1);
    number << CHANGES_BITS | changes.max(1)
}

fn key(mac: [u8; 6]) -> lb_mac_key {
    lb_mac_key { mac, pad: [0; 2] }
}

fn total(counts: impl Iterator<Item = lb_count>) -> Count {
    counts.fold(Count::default(), |sum, count| Count {
        frames: sum.frames + count.frames,
        bytes: sum.bytes + count.bytes,
    })
}

fn within(what: &'static str, value: u64, max: u64) -> Result<()> {
    if value > max { Err(Error::Range { what, value, max }) } else { Ok(()) }
}

fn nanoseconds(duration: Duration) -> u64 {
    u64::try_from(duration.as_nanos()).unwrap_or(u64::MAX)
}

/// The plan without what rates change.
fn without_costs(plan: &lb_plan) -> lb_plan {
    let mut plan = *plan;
    plan.lanes.iter_mut().for_each(|lane| lane.byte_cost = 0);
    plan
}

/// Costs from rates and weights, hash bounds from weights; the generation is left to the caller.
fn raw_plan(plan: &Plan) -> lb_plan {
    // A flow's hash keeps its lane, whatever is measured.
    let rate = |lane: &Lane| lane.rate.unwrap_or(lane.weight).max(1);
    let fastest = plan.lanes.iter().map(rate).max().unwrap_or(1);
    // Borrowed lanes have no part of the hash space.
    let hashed = |lane: &Lane| if lane.class == 0 { u64::from(lane.weight.max(1)) } else { 0 };
    let sum: u64 = plan.lanes.iter().map(hashed).sum();
    let mut raw = lb_plan::zeroed();
    let mut below = 0u64;
    for (lane, raw) in plan.lanes.iter().zip(&mut raw.lanes) {
        below += hashed(lane);
        *raw = lb_lane {
            peer_mac: lane.peer_mac.unwrap_or_default(),
            slot: lane.slot,
            class: lane.class,
            byte_cost: u32::try_from((u64::from(fastest) << 8) / u64::from(rate(lane))).unwrap_or(u32::MAX),
            hash_below: u32::try_from((below << 16) / sum.max(1)).unwrap_or(u32::MAX),
        };
    }
    raw.n_lanes = plan.lanes.len() as u32;
    raw.slots = plan.lanes.iter().fold(0, |slots, lane| slots | 1 << lane.slot);
    raw.policy = plan.policy as u8;
    raw.flags = if plan.shares { LB_PLAN_SHARES as u8 } else { 0 };
    if plan.lanes.iter().any(|lane| lane.class != 0) {
        raw.flags |= LB_PLAN_BORROWS as u8;
    }
    raw
}

mod class;
mod guest;
mod member;
mod peer;
mod plain;
pub use class::{Cgroup, RuleRow};
pub use guest::{GuestAddress, GuestPair, GuestSeen, Speakers};
pub use peer::{PeerMac, PeerMacKind};
pub use plain::Answer;
#[cfg(test)]
mod tests;
