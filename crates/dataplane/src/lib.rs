//! The BPF programs of a bond, their loader and typed maps; and those of a fabric's fast path ([`FastPath`]).
//!
//! [`DataPath`] loads the programs of `bpf/bond.bpf.c`, with the maps of those that an earlier daemon left, and puts them on
//! interfaces, which may wait for the kernel; [`Tables`] writes what they follow, and never waits. They know no protocol.

mod attached;
mod by_id;
mod error;
mod explain;
mod fast_path;
mod hook;
mod intf;
mod latency;
mod left;
mod load;
mod map;
mod pins;
mod reason;
mod ring;
mod table;
mod trial;

pub use attached::{MAPS_MAX, row_before, take_off, take_off_strays};
pub use by_id::{Object, can_find, open, open_by};
pub use error::{Error, Refusal, Result};
pub use explain::{Explained, LanesNow, Why};
pub use fast_path::{Early, EarlyAt, FastPath, PathCounts, PathEnds, PathIn, PathOut};
pub use hook::{Hook, HookChoice, clsact::PREFERENCE, on_message};
use hook::{Place, Side};
pub use intf::{
    ALIAS_BIT, ANSWERS_MAX, CLASSES_MAX, GUEST_PAIRS_MAX, GUESTS_SEEN_MAX, LANES_MAX, MEMBERS_MAX, NO_SLOT,
    PLAIN_PLAN_FIRST, PLANS_MAX, RULES_MAX, plain_plan,
};
pub use latency::{CallHook, Latency, LatencyMeter, Stage};
use left::Left;
pub use linkbraid_api::Policy;
use map::Map;
pub use pins::sweep_pins;
pub use reason::{PATH_REASONS, REASONS, Reason};
pub use ring::{ArpPlusFrame, ArpPlusRing};
use std::{
    collections::{BTreeMap, BTreeSet, HashMap},
    ops::Deref,
    os::fd::{AsFd as _, AsRawFd as _, BorrowedFd, OwnedFd},
    sync::Arc,
};
pub use table::{
    Answer, Bond, Cgroup, Count, Damping, Delivered, GuestAddress, GuestPair, GuestSeen, Lane, Member,
    MemberCounts, PeerMac, PeerMacKind, Plan, RuleRow, Speakers, Tables,
};
pub use trial::{Beside, Trial, Verdict, Way};

/// The compiled BPF programs.
static OBJECT: &[u8] = include_bytes!(concat!(env!("OUT_DIR"), "/bond.bpf.o"));

const EGRESS: &str = "lb_egress";
const INGRESS: &str = "lb_ingress";
const MARK: &str = "lb_mark";
const COPIES: &str = "lb_copies";
const PROGRAMS: [&str; 4] = [EGRESS, INGRESS, MARK, COPIES];
const HOLDER: &str = "lb_holder";
/// The map whose row says which bond the programs are of.
const BOND: &str = "lb_bond";

/// The BPF programs and maps of one bond.
pub struct DataPath {
    programs: HashMap<&'static str, OwnedFd>,
    tables: Arc<Tables>,
    choice: HookChoice,
    bond: Option<Attachment>,
    port: Option<Attachment>,
    members: BTreeMap<u32, [Attachment; 2]>,
    /// Where its programs are to be once those of another build, which are there, go: [`DataPath::take_over`].
    waiting: Option<Waiting>,
    /// The numbers of the maps [`BOND`] that programs of an earlier daemon have.
    left: BTreeSet<u32>,
    /// Is in the map [`HOLDER`] for as long as this process lives.
    _holder: Option<OwnedFd>,
}

/// The interfaces that programs are to be put on.
#[derive(Debug, Clone, Default)]
struct Waiting {
    bond: Option<u32>,
    port: Option<u32>,
    members: BTreeSet<u32>,
}

/// A program of ours on an interface.
#[derive(Debug, Clone, Copy)]
struct Attachment {
    name: &'static str,
    ifindex: u32,
    side: Side,
    place: Place,
}

/// The maps of `maps.bpf.h` and `stats.bpf.h` that this side uses.
const MAPS: &[&str] = &[
    BOND,
    HOLDER,
    "lb_guests",
    "lb_guest_pairs",
    "lb_guests_until",
    "lb_guests_seen",
    "lb_seen_changes",
    "lb_members",
    "lb_slots",
    "lb_near_slots",
    "lb_own_macs",
    "lb_peer_macs",
    "lb_near_peers",
    "lb_plain_hosts",
    "lb_answers",
    "lb_plans",
    "lb_rules",
    "lb_rule_counters",
    "lb_classes",
    "lb_precedence",
    "lb_class_plans",
    "lb_class_counters",
    "lb_class_over",
    "lb_mirror_sent",
    "lb_mirrors",
    "lb_lane_counters",
    "lb_look",
    "lb_used",
    "lb_progresses",
    "lb_reasons",
    "lb_member_counters",
    "lb_arp_plus",
    "lb_known",
    "lb_flows",
];

fn maps_of(object: &libbpf_rs::Object) -> Result<Vec<Map>> {
    MAPS.iter().map(|name| Map::of(object, name)).collect()
}

impl DataPath {
    /// Loads the programs with maps of their own.
    ///
    /// # Errors
    /// The kernel refuses the programs.
    pub fn load(choice: HookChoice) -> Result<Self> {
        Self::load_with(&HashMap::new(), choice)
    }

    /// Takes over the programs that are on any of these interfaces for the bond of that index, if there are any, or at least their maps.
    /// They may be of an earlier daemon, in any mount namespace. The bond's own interface comes first.
    ///
    /// Where their maps have another layout, they go on, and this one [waits](DataPath::waits).
    ///
    /// # Errors
    /// The kernel refuses the programs, or this process may not look for earlier ones.
    pub fn adopt(bond: u32, interfaces: &[u32], choice: HookChoice) -> Result<Self> {
        let found = attached::of_bond(bond, interfaces)?;
        let path = match left::of(&found)? {
            Left::Nothing => return Self::load(choice),
            Left::Alike(old, Some(programs)) => {
                let holder = load::holder();
                let maps = maps_of(&load::maps(&old, holder.is_some())?)?;
                Self::with(programs, maps, holder, choice)?
            }
            Left::Alike(maps, None) => Self::load_with(&maps, choice)?,
            Left::Other => Self { waiting: Some(Waiting::default()), ..Self::load(choice)? },
        };
        Ok(Self { left: left::bond_maps(&found)?, ..path })
    }

    fn load_with(old: &HashMap<String, OwnedFd>, choice: HookChoice) -> Result<Self> {
        let holder = load::holder();
        let object = load::load(old, holder.is_some())?;
        let maps = maps_of(&object)?;
        let mut programs = HashMap::new();
        let build = left::build_map()?;
        for name in PROGRAMS {
            let program = load::program_file(&object, name)?;
            // Any program of the bond that is left on an interface keeps all that a daemon is to find again.
            maps.iter().map(Map::handle).chain([&build]).try_for_each(|map| load::bind(&program, map))?;
            programs.insert(name, program);
        }
        Self::with(programs, maps, holder, choice)
    }

    fn with(
        programs: HashMap<&'static str, OwnedFd>,
        maps: Vec<Map>,
        holder: Option<OwnedFd>,
        choice: HookChoice,
    ) -> Result<Self> {
        let maps: HashMap<&'static str, Map> = maps.into_iter().map(|map| (map.name(), map)).collect();
        if let Some(holder) = &holder {
            maps[HOLDER].write(&0u32, &holder.as_raw_fd())?;
        }
        let path = Self {
            programs,
            tables: Arc::new(Tables::new(maps)),
            choice,
            bond: None,
            port: None,
            members: BTreeMap::new(),
            waiting: None,
            left: BTreeSet::new(),
            _holder: holder,
        };
        // A daemon that was killed while it measured could not switch the stamps off.
        path.set_latency(false)?;
        Ok(path)
    }

    /// Whether programs of another build, whose maps have another layout, are still in the places of these.
    pub fn waits(&self) -> bool {
        self.waiting.is_some()
    }

    /// Puts these programs into the places of those of another build. Each place changes hands at once: no frame passes in between,
    /// and none is handled twice. If one is refused, all others are as before.
    ///
    /// # Errors
    /// The kernel refuses.
    pub fn take_over(&mut self) -> Result<()> {
        let Some(waiting) = self.waiting.take() else { return Ok(()) };
        let members = waiting.members.iter().copied();
        let interfaces: Vec<u32> = members.chain(waiting.port).chain(waiting.bond).collect();
        let before = attached::on_all(&interfaces)?;
        // What is to arrive by a new plan is taken in by then.
        let mut all =
            waiting.members.iter().map(|member| self.attach_member(*member)).fold(Ok(()), Result::and);
        if let Some(port) = waiting.port {
            all = all.and_then(|()| self.attach_port(port));
        }
        if let Some(bond) = waiting.bond {
            all = all.and_then(|()| self.attach_bond(bond));
        }
        if all.is_err() {
            let _ = self.give_back(&before);
            self.waiting = Some(waiting);
        }
        all
    }

    /// Puts the programs back that were there before, and takes those of this one off that took nobody's place.
    fn give_back(&mut self, before: &[attached::Attached]) -> Result<()> {
        let back = before.iter().map(attached::Attached::put_back).fold(Ok(()), Result::and);
        let members = std::mem::take(&mut self.members).into_values().flatten();
        let own: Vec<Attachment> = members.chain(self.port.take()).chain(self.bond.take()).collect();
        let is_new = |own: &&Attachment| before.iter().all(|old| !old.is_at(own.ifindex, own.side));
        own.iter().filter(is_new).map(|own| self.remove(*own)).fold(back, Result::and)
    }

    /// Puts the egress program on a bond's internal port, where it stays, and takes it off the one before.
    ///
    /// # Errors
    /// The kernel refuses.
    pub fn attach_port(&mut self, ifindex: u32) -> Result<()> {
        if let Some(waiting) = &mut self.waiting {
            waiting.port = Some(ifindex);
            return Ok(());
        }
        let attachment = self.attach(EGRESS, ifindex, Side::Egress)?;
        match self.port.replace(attachment) {
            Some(before) if before.ifindex != ifindex => self.remove(before),
            _ => Ok(()),
        }
    }

    /// Puts the program on the bond itself that marks what the host sends, in place of the one that earlier builds had there. It stays.
    ///
    /// # Errors
    /// The kernel refuses.
    pub fn attach_bond(&mut self, ifindex: u32) -> Result<()> {
        if let Some(waiting) = &mut self.waiting {
            waiting.bond = Some(ifindex);
            return Ok(());
        }
        self.bond = Some(self.attach(MARK, ifindex, Side::Egress)?);
        Ok(())
    }

    /// Puts the programs on a member, where they stay.
    ///
    /// # Errors
    /// The kernel refuses.
    pub fn attach_member(&mut self, ifindex: u32) -> Result<()> {
        if let Some(waiting) = &mut self.waiting {
            waiting.members.insert(ifindex);
            return Ok(());
        }
        let sends = self.attach(COPIES, ifindex, Side::Egress)?;
        let receives = match self.attach(INGRESS, ifindex, Side::Ingress) {
            Ok(receives) => receives,
            Err(error) => {
                let _ = self.remove(sends);
                return Err(error);
            }
        };
        self.members.insert(ifindex, [sends, receives]);
        Ok(())
    }

    fn attach(&self, name: &'static str, ifindex: u32, side: Side) -> Result<Attachment> {
        let place = hook::attach(self.program(name)?, ifindex, side, self.choice)?;
        Ok(Attachment { name, ifindex, side, place })
    }

    fn remove(&self, Attachment { name, ifindex, side, place }: Attachment) -> Result<()> {
        place.remove(self.program(name)?, ifindex, side)
    }

    pub(crate) fn program(&self, name: &'static str) -> Result<BorrowedFd<'_>> {
        self.programs.get(name).map(OwnedFd::as_fd).ok_or(Error::Missing(name))
    }

    /// Takes the programs off a member, also those that an earlier daemon left; does nothing where there are none.
    /// Goes on after an error and returns the first.
    ///
    /// # Errors
    /// The kernel refuses.
    pub fn detach_member(&mut self, ifindex: u32) -> Result<()> {
        if let Some(both) = self.members.remove(&ifindex) {
            return both.into_iter().map(|attached| self.remove(attached)).fold(Ok(()), Result::and);
        }
        if let Some(waiting) = &mut self.waiting {
            waiting.members.remove(&ifindex);
        }
        let own = self.map(BOND)?.id()?;
        let is_of_bond = |map: &u32| *map == own || self.left.contains(map);
        attached::remove_where(&[ifindex], |attached| Ok(attached.maps.iter().any(is_of_bond)))
    }

    /// The hook the egress program sits on.
    pub fn hook(&self) -> Option<Hook> {
        self.port.map(|port| port.place.hook())
    }

    /// Takes all programs off; the maps stay as they are for as long as this lives. Goes on after an error and returns the first.
    ///
    /// # Errors
    /// The kernel refuses to detach a program.
    pub fn detach(&mut self) -> Result<()> {
        let members = std::mem::take(&mut self.members).into_values().flatten();
        let all = members.chain(self.bond.take()).chain(self.port.take());
        all.map(|attached| self.remove(attached)).fold(Ok(()), Result::and)
    }

    /// Takes all programs off; the maps go with them. Goes on after an error and returns the first.
    ///
    /// # Errors
    /// The kernel refuses to detach a program.
    pub fn unload(mut self) -> Result<()> {
        self.detach()
    }

    /// The numbers of all its maps, by which the kernel lists them.
    ///
    /// # Errors
    /// The kernel does not say.
    pub fn map_ids(&self) -> Result<BTreeSet<u32>> {
        let mut all = BTreeSet::new();
        for name in PROGRAMS {
            all.extend(attached::Info::of(&self.program(name)?)?.maps);
        }
        Ok(all)
    }

    /// The tables, for another thread; it may outlive the programs.
    #[must_use]
    pub fn tables(&self) -> Arc<Tables> {
        self.tables.clone()
    }
}

impl Deref for DataPath {
    type Target = Tables;

    fn deref(&self) -> &Tables {
        &self.tables
    }
}
