//! Asks the way out what would become of a frame, and why: the loaded program is run on it (`bpf/explain.h`).

use crate::{
    Beside, DataPath, Reason, Tables, Way,
    error::{Error, Result},
    intf::{
        LB_EXPLAIN, LB_EXPLAIN_AVOIDED_SHIFT, LB_EXPLAIN_CLASS_SHIFT, LB_EXPLAIN_PLAN_SHIFT,
        LB_EXPLAIN_SECOND_SHIFT, LB_EXPLAIN_SLOT_SHIFT, LB_EXPLAIN_WHY_SHIFT, LB_WHY_ACK, LB_WHY_FIRST,
        LB_WHY_FLOW, LB_WHY_GROWS, LB_WHY_HASH, LB_WHY_LATEST, LB_WHY_ONLY, LB_WHY_PAIR, lb_plan,
        lb_progress,
    },
    reason::REASONS,
};

/// A byte of a word that has several values.
const BYTE: u32 = 0xff;
/// And two of them.
const HALF: u32 = 0xffff;

/// Why a frame takes its lane; see `enum lb_why` in `bpf/explain.h`.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Why {
    /// The plan has no other one.
    Only,
    /// The first one carries all (active-backup).
    First,
    /// By the hash of its flow (policy flow).
    Flow,
    /// By the hash of its flow, because it is an ACK without data.
    Ack,
    /// It is furthest behind in virtual time.
    Latest,
    /// The last stripe of its flow is on this lane, and too short yet.
    Grows,
    /// The first one that lives, and the one that shares least with it (mirror).
    Pair,
    /// By a hash of what its policy names (policies hash=...).
    Hash,
}

impl Why {
    fn of(why: u32) -> Option<Self> {
        Some(match why {
            LB_WHY_ONLY => Self::Only,
            LB_WHY_FIRST => Self::First,
            LB_WHY_FLOW => Self::Flow,
            LB_WHY_ACK => Self::Ack,
            LB_WHY_LATEST => Self::Latest,
            LB_WHY_GROWS => Self::Grows,
            LB_WHY_PAIR => Self::Pair,
            LB_WHY_HASH => Self::Hash,
            _ => return None,
        })
    }
}

/// What would become of a frame.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Explained {
    /// The reason that it would be counted by.
    pub reason: &'static Reason,
    /// Its class; 0: the default class.
    pub class: u8,
    /// The place of the rule that chose the class, among those in force.
    pub rule: Option<usize>,
    /// The number of the plan of its next hop; absent where no plan decides.
    pub base: Option<u32>,
    /// That of the plan which is used: the same, or the one that its class has in its place.
    pub plan: Option<u32>,
    /// The lane that it takes, by its place in that plan, and why.
    pub lane: Option<(usize, Why)>,
    /// The lane of the copy of a mirrored frame.
    pub second: Option<usize>,
    /// The slot of the member that it leaves by.
    pub slot: Option<u8>,
    /// Slots that it may not leave by now, a bit each: of members that have failed, that a busy class lends, or that this flow alone
    /// stays away from.
    pub avoided: u32,
    /// The frame as it would leave.
    pub frame: Vec<u8>,
}

/// How far the lanes of a plan are.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct LanesNow {
    /// How many bytes each lane is ahead of the one that is furthest behind: so much the others may carry until it is its turn. None
    /// where nothing has left by the plan yet.
    pub ahead: Vec<u64>,
    /// What a byte costs more on it because its data arrives late, in 1/256 of its cost.
    pub penalty: Vec<u32>,
}

impl DataPath {
    /// What would become of `frame` (with its Ethernet header) if it left by the interface `ifindex` of the caller's network namespace.
    /// Nothing is sent, counted or remembered.
    ///
    /// Rules that name a control group see the caller's.
    ///
    /// # Errors
    /// The kernel refuses: no such interface, or a frame shorter than 14 bytes; or it does not give back what the program says.
    pub fn explain(&self, frame: &[u8], ifindex: u32, beside: Beside) -> Result<Explained> {
        let (trial, said) =
            self.run_with(Way::Out, frame, ifindex, beside, [LB_EXPLAIN, 0, 0, 0, LB_EXPLAIN])?;
        let [what, plans, lane, rule, _] = said;
        let reason = REASONS.get((what & BYTE) as usize).filter(|reason| reason.number != 0);
        let base = (plans & HALF).checked_sub(1);
        let place = |one_more: u32| one_more.checked_sub(1).map(|place| place as usize);
        let why = Why::of(lane >> LB_EXPLAIN_WHY_SHIFT & BYTE);
        Ok(Explained {
            reason: reason.ok_or(Error::Missing("the reason"))?,
            class: (what >> LB_EXPLAIN_CLASS_SHIFT & BYTE) as u8,
            rule: place(rule),
            base,
            plan: base.map(|_| plans >> LB_EXPLAIN_PLAN_SHIFT),
            lane: why.map(|why| ((lane & BYTE) as usize, why)),
            second: place(what >> LB_EXPLAIN_SECOND_SHIFT),
            slot: (what >> LB_EXPLAIN_SLOT_SHIFT & BYTE).checked_sub(1).map(|slot| slot as u8),
            avoided: lane >> LB_EXPLAIN_AVOIDED_SHIFT,
            frame: trial.frame,
        })
    }
}

impl Tables {
    /// How far the lanes of a plan are.
    ///
    /// # Errors
    /// The kernel refuses.
    pub fn lanes_now(&self, number: u32) -> Result<LanesNow> {
        let plan: lb_plan = self.read("lb_plans", &number)?;
        let progress: lb_progress = self.read("lb_progresses", &number)?;
        let n = plan.n_lanes as usize;
        if progress.generation != plan.generation {
            return Ok(LanesNow::default());
        }
        let latest = progress.time.iter().take(n).min().copied().unwrap_or_default();
        let lanes = plan.lanes.iter().zip(progress.time).take(n);
        // Times grow for good; in bytes of this lane.
        let ahead = lanes.map(|(lane, time)| (time - latest) / u64::from(lane.byte_cost.max(1)));
        Ok(LanesNow { ahead: ahead.collect(), penalty: progress.penalty[..n].to_vec() })
    }
}
