//! The BPF programs of a bond, their loader and typed maps; and those of a fabric's fast path ([`FastPath`]).
//!
//! [`DataPath`] loads the programs of `bpf/bond.bpf.c`, with the maps of those that an earlier daemon left, and puts them on
//! interfaces, which may wait for the kernel; [`Tables`] writes what they follow, and never waits. They know no protocol.

mod attached;
mod error;
mod fast_path;
mod hook;
mod intf;
mod latency;
mod map;
mod pins;
mod reason;
mod ring;
mod table;
mod trial;

pub use attached::{can_find, take_off, take_off_strays};
use error::Error as E;
pub use error::{Error, Refusal, Result};
pub use fast_path::{Early, EarlyAt, FastPath, PathCounts, PathEnds, PathIn, PathOut};
pub use hook::{Hook, HookChoice, on_message};
use hook::{Place, Side};
pub use intf::{
    ALIAS_BIT, ANSWERS_MAX, CLASSES_MAX, GUEST_PAIRS_MAX, GUESTS_SEEN_MAX, LANES_MAX, MEMBERS_MAX, NO_SLOT,
    PLAIN_PLAN_FIRST, PLANS_MAX, RULES_MAX, plain_plan,
};
pub use latency::{CallHook, Latency, LatencyMeter, Stage};
use libbpf_rs::{
    MapCore as _, MapHandle, MapType, Object, ObjectBuilder, OpenMapMut, ProgramMut, libbpf_sys,
};
use map::Map;
pub use pins::sweep_pins;
pub use reason::{PATH_REASONS, REASONS, Reason};
pub use ring::ArpPlusRing;
use std::{
    collections::{BTreeMap, BTreeSet, HashMap},
    ffi::OsStr,
    ops::Deref,
    os::fd::{AsFd as _, AsRawFd as _, FromRawFd as _, OwnedFd},
    sync::Arc,
    time::Duration,
};
pub use table::{
    Answer, Bond, Cgroup, Count, DAMPING, Delivered, GuestAddress, GuestPair, GuestSeen, Lane, Member,
    MemberCounts, PeerMac, PeerMacKind, Plan, Policy, RuleRow, Tables,
};
pub use trial::{Beside, Trial, Verdict, Way};

/// The compiled BPF programs.
static OBJECT: &[u8] = include_bytes!(concat!(env!("OUT_DIR"), "/bond.bpf.o"));

/// How often loading is tried while it is interrupted, and the pause between.
const LOAD_TRIES: u32 = 5;
const LOAD_PAUSE: Duration = Duration::from_millis(20);

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
    object: Object,
    tables: Arc<Tables>,
    choice: HookChoice,
    bond: Option<Attachment>,
    port: Option<Attachment>,
    members: BTreeMap<u32, [Attachment; 2]>,
    /// Is in the map [`HOLDER`] for as long as this process lives.
    _holder: Option<OwnedFd>,
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
    "lb_class_plans",
    "lb_class_counters",
    "lb_mirror_sent",
    "lb_mirrors",
    "lb_lane_counters",
    "lb_progresses",
    "lb_reasons",
    "lb_member_counters",
    "lb_arp_plus",
    "lb_flows",
];

/// Those of them with rows that a daemon finds there and does not write again. Only all of them together can be taken over.
const KEPT: &[&str] = &[
    "lb_members",
    "lb_slots",
    "lb_near_slots",
    "lb_own_macs",
    "lb_peer_macs",
    "lb_near_peers",
    "lb_answers",
    "lb_class_plans",
];

impl DataPath {
    /// Loads the programs with maps of their own.
    ///
    /// # Errors
    /// The kernel refuses the programs.
    pub fn load(choice: HookChoice) -> Result<Self> {
        Self::load_with(&HashMap::new(), choice)
    }

    /// Loads the programs with the maps of those that are on any of these interfaces for the bond of that index, if there are
    /// any. They may be of an earlier daemon, in any mount namespace. The bond's own interface comes first.
    ///
    /// # Errors
    /// The same; the maps have another layout, or this process may not look for them.
    pub fn adopt(bond: u32, interfaces: &[u32], choice: HookChoice) -> Result<Self> {
        let mut maps = attached::maps_of(bond, interfaces)?;
        if KEPT.iter().any(|name| !maps.contains_key(attached::short(name))) {
            maps.clear();
        }
        Self::load_with(&maps, choice)
    }

    fn load_with(old: &HashMap<String, MapHandle>, choice: HookChoice) -> Result<Self> {
        let holder = holder();
        let object = load_patiently(old, holder.is_some())?;
        let mut maps = HashMap::new();
        for name in MAPS {
            maps.insert(*name, Map::of(&object, name)?);
        }
        // Any program of the bond that is left on an interface keeps all that a daemon is to find again.
        for name in PROGRAMS {
            let program = program(&object, name)?;
            maps.values().try_for_each(|map| bind(&program, map.handle()))?;
        }
        if let Some(holder) = &holder {
            maps[HOLDER].write(&0u32, &holder.as_raw_fd())?;
        }
        let (bond, port, members) = (None, None, BTreeMap::new());
        let tables = Arc::new(Tables::new(maps));
        let path = Self { object, tables, choice, bond, port, members, _holder: holder };
        // A daemon that was killed while it measured could not switch the stamps off.
        path.set_latency(false)?;
        Ok(path)
    }

    /// Puts the egress program on a bond's internal port, where it stays, and takes it off the one before.
    ///
    /// # Errors
    /// The kernel refuses.
    pub fn attach_port(&mut self, ifindex: u32) -> Result<Hook> {
        let attachment = self.attach(EGRESS, ifindex, Side::Egress)?;
        match self.port.replace(attachment) {
            Some(before) if before.ifindex != ifindex => self.remove(before)?,
            _ => {}
        }
        Ok(attachment.place.hook())
    }

    /// Puts the program on the bond itself that marks what the host sends, in place of the one that earlier builds had there. It stays.
    ///
    /// # Errors
    /// The kernel refuses.
    pub fn attach_bond(&mut self, ifindex: u32) -> Result<()> {
        self.bond = Some(self.attach(MARK, ifindex, Side::Egress)?);
        Ok(())
    }

    /// Puts the programs on a member, where they stay.
    ///
    /// # Errors
    /// The kernel refuses.
    pub fn attach_member(&mut self, ifindex: u32) -> Result<()> {
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
        let place = hook::attach(&program(&self.object, name)?, ifindex, side, self.choice)?;
        Ok(Attachment { name, ifindex, side, place })
    }

    fn remove(&self, Attachment { name, ifindex, side, place }: Attachment) -> Result<()> {
        place.remove(program(&self.object, name)?.as_fd(), ifindex, side)
    }

    /// Takes the programs off a member, also those that an earlier daemon left with the same maps; does nothing where there are none.
    /// Goes on after an error and returns the first.
    ///
    /// # Errors
    /// The kernel refuses.
    pub fn detach_member(&mut self, ifindex: u32) -> Result<()> {
        if let Some(both) = self.members.remove(&ifindex) {
            return both.into_iter().map(|attached| self.remove(attached)).fold(Ok(()), Result::and);
        }
        let own = self.map(BOND)?.id()?;
        attached::remove_where(&[ifindex], |attached| Ok(attached.maps.contains(&own)))
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
            all.extend(attached::name_and_maps(&program(&self.object, name)?)?.1);
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

/// An unused socket, which the kernel closes when this process ends; none where the kernel has no AF_XDP.
fn holder() -> Option<OwnedFd> {
    // SAFETY: it takes numbers, and gives a descriptor that nobody else has or -1.
    unsafe {
        let fd = nix::libc::socket(nix::libc::AF_XDP, nix::libc::SOCK_RAW | nix::libc::SOCK_CLOEXEC, 0);
        (fd >= 0).then(|| OwnedFd::from_raw_fd(fd))
    }
}

/// Loads the object, again where the verifier was interrupted: it gives up with EAGAIN on any pending signal, such as that of
/// a machine that is being frozen, and libbpf tries only five times in a row without a pause.
fn load_patiently(old: &HashMap<String, MapHandle>, holds: bool) -> Result<Object> {
    load_patiently_with(|| load_object(old, holds))
}

fn load_patiently_with(load: impl Fn() -> Result<Object>) -> Result<Object> {
    let mut tries = 0;
    loop {
        tries += 1;
        match load() {
            Err(E::Load(cause)) if tries < LOAD_TRIES && cause.kind() == libbpf_rs::ErrorKind::WouldBlock => {
                std::thread::sleep(LOAD_PAUSE);
            }
            loaded => return loaded,
        }
    }
}

fn load_object(old: &HashMap<String, MapHandle>, holds: bool) -> Result<Object> {
    let mut open =
        ObjectBuilder::default().name("linkbraid").and_then(|b| b.open_memory(OBJECT)).map_err(E::Load)?;
    for mut map in open.maps_mut() {
        if map.name() == HOLDER && !holds {
            map.set_type(MapType::Array).map_err(E::Load)?;
        }
        let name = MAPS.iter().find(|name| map.name() == OsStr::new(name));
        if let Some((name, old)) = name.and_then(|name| Some((name, old.get(attached::short(name))?))) {
            if !is_alike(&map, old).map_err(E::NotFound)? {
                return Err(E::Layout(name));
            }
            map.reuse_fd(old.as_fd()).map_err(E::Load)?;
        }
    }
    open.load().map_err(E::Load)
}

/// Whether a map that is there can be used in the place of a new one.
fn is_alike(new: &OpenMapMut<'_>, old: &MapHandle) -> libbpf_rs::Result<bool> {
    let old = old.info()?;
    let mut flags = old.info.map_flags;
    if old.map_type() == MapType::Devmap {
        // The kernel sets this itself.
        flags &= !libbpf_sys::BPF_F_RDONLY_PROG;
    }
    let old = (old.map_type(), old.info.key_size, old.info.value_size, old.info.max_entries, flags);
    Ok(old == (new.map_type(), new.key_size(), new.value_size(), new.max_entries(), new.map_flags()))
}

/// Has the kernel keep a map for as long as a program, whether or not the program uses it.
fn bind(program: &ProgramMut<'_>, map: &MapHandle) -> Result<()> {
    let (program, map) = (program.as_fd().as_raw_fd(), map.as_fd().as_raw_fd());
    // SAFETY: both are numbers of open files, and no options are given.
    match unsafe { libbpf_sys::bpf_prog_bind_map(program, map, std::ptr::null()) } {
        0 => Ok(()),
        error => Err(E::Load(libbpf_rs::Error::from_raw_os_error(-error))),
    }
}

fn program<'o>(object: &'o Object, name: &'static str) -> Result<ProgramMut<'o>> {
    object.progs_mut().find(|program| program.name() == OsStr::new(name)).ok_or(E::Missing(name))
}
