//! The BPF programs of a bond, their loader and typed maps; and those of a fabric's fast path ([`FastPath`]).
//!
//! [`DataPath`] loads the programs of `bpf/bond.bpf.c`, or adopts the maps that an earlier daemon pinned, and puts the programs
//! on interfaces, which may wait for the kernel; [`Tables`] writes what they follow, and never waits. They know no protocol.

mod error;
mod fast_path;
mod hook;
mod intf;
mod latency;
mod map;
mod reason;
mod ring;
mod table;
mod trial;

use error::Error as E;
pub use error::{Error, Refusal, Result};
pub use fast_path::{Early, EarlyAt, FastPath, PathCounts, PathEnds, PathIn, PathOut};
use hook::{Attachment, Side};
pub use hook::{Hook, HookChoice};
pub use intf::{
    ANSWERS_MAX, CLASSES_MAX, LANES_MAX, MEMBERS_MAX, NO_SLOT, PLAIN_PLAN_FIRST, PLANS_MAX, RULES_MAX,
    plain_plan,
};
pub use latency::{CallHook, Latency, LatencyMeter, Stage};
use libbpf_rs::{MapType, Object, ObjectBuilder, ProgramMut};
use map::Map;
pub use reason::{PATH_REASONS, REASONS, Reason};
pub use ring::ArpPlusRing;
use std::{
    collections::HashMap,
    ffi::OsStr,
    fs,
    ops::Deref,
    os::fd::{AsRawFd as _, FromRawFd as _, OwnedFd},
    path::{Path, PathBuf},
    sync::Arc,
    time::Duration,
};
pub use table::{
    Answer, Bond, Cgroup, Count, DAMPING, Delivered, Lane, Member, MemberCounts, PeerMac, Plan, Policy,
    RuleRow, Tables,
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
const HOLDER: &str = "lb_holder";

/// The BPF programs and maps of one bond.
pub struct DataPath {
    object: Object,
    tables: Arc<Tables>,
    pins: PathBuf,
    choice: HookChoice,
    bond: Option<Attachment>,
    port: Option<Attachment>,
    members: HashMap<u32, [Attachment; 2]>,
    /// Is in the map [`HOLDER`] for as long as this process lives.
    _holder: Option<OwnedFd>,
}

/// The maps of `maps.bpf.h` and `stats.bpf.h` that this side uses.
const MAPS: &[&str] = &[
    "lb_bond",
    HOLDER,
    "lb_guests",
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

impl DataPath {
    /// Loads the programs with their maps pinned under `pins`; maps that are there already are adopted.
    ///
    /// # Errors
    /// The kernel refuses the programs, `pins` is not in a BPF file system, or pinned maps have another layout.
    pub fn load(pins: &Path, choice: HookChoice) -> Result<Self> {
        let is_new = !pins.exists();
        let loaded = Self::load_at(pins, choice);
        if loaded.is_err() && is_new {
            // Maps are pinned before the programs are refused.
            let _ = remove_pins(pins);
        }
        loaded
    }

    fn load_at(pins: &Path, choice: HookChoice) -> Result<Self> {
        let made = fs::create_dir_all(pins).or_else(|error| match error.kind() {
            // Another namespace's daemon has removed a directory above, which was empty.
            std::io::ErrorKind::NotFound => fs::create_dir_all(pins),
            _ => Err(error),
        });
        made.map_err(|cause| E::Pin { path: pins.to_owned(), cause })?;
        let holder = holder();
        let object = load_patiently(pins, holder.is_some())?;
        let mut maps = HashMap::new();
        for name in MAPS {
            maps.insert(*name, Map::of(&object, name)?);
        }
        if let Some(holder) = &holder {
            maps[HOLDER].write(&0u32, &holder.as_raw_fd())?;
        }
        let pins = pins.to_owned();
        let (bond, port, members) = (None, None, HashMap::new());
        let tables = Arc::new(Tables::new(maps));
        let path = Self { object, tables, pins, choice, bond, port, members, _holder: holder };
        // A daemon that was killed while it measured could not switch the stamps off.
        path.set_latency(false)?;
        Ok(path)
    }

    /// Puts the egress program on a bond's internal port, and takes it off the one before.
    ///
    /// # Errors
    /// The kernel refuses.
    pub fn attach_port(&mut self, ifindex: u32) -> Result<Hook> {
        let attachment = self.attach(EGRESS, ifindex, Side::Egress)?;
        let hook = attachment.hook();
        match self.port.replace(attachment) {
            Some(before) if !before.is_on(ifindex) => before.detach()?,
            _ => {}
        }
        Ok(hook)
    }

    /// Puts the program on the bond itself that marks what the host sends, in place of the one that earlier builds had there.
    ///
    /// # Errors
    /// The kernel refuses.
    pub fn attach_bond(&mut self, ifindex: u32) -> Result<()> {
        self.bond = Some(self.attach(MARK, ifindex, Side::Egress)?);
        Ok(())
    }

    /// Puts the programs on a member.
    ///
    /// # Errors
    /// The kernel refuses.
    pub fn attach_member(&mut self, ifindex: u32) -> Result<()> {
        let sends = self.attach(COPIES, ifindex, Side::Egress)?;
        let receives = self.attach(INGRESS, ifindex, Side::Ingress);
        let receives = match receives {
            Ok(receives) => receives,
            Err(error) => {
                let _ = sends.detach();
                return Err(error);
            }
        };
        self.members.insert(ifindex, [sends, receives]);
        Ok(())
    }

    /// Whether the programs sit on this interface.
    #[must_use]
    pub fn has_member(&self, ifindex: u32) -> bool {
        self.members.contains_key(&ifindex)
    }

    fn attach(&self, name: &'static str, ifindex: u32, side: Side) -> Result<Attachment> {
        let pin = hook::pin(&self.pins, ifindex, side);
        Attachment::new(&program(&self.object, name)?, ifindex, side, self.choice, &pin)
    }

    /// Takes the programs off a member; does nothing where there are none. Goes on after an error and returns the first.
    ///
    /// # Errors
    /// The kernel refuses.
    pub fn detach_member(&mut self, ifindex: u32) -> Result<()> {
        // The first one may have made the queueing discipline that both need.
        let attached = self.members.remove(&ifindex).into_iter().flatten().rev();
        attached.map(Attachment::detach).fold(Ok(()), Result::and)
    }

    /// The hook the egress program sits on.
    pub fn hook(&self) -> Option<Hook> {
        self.port.as_ref().map(Attachment::hook)
    }

    /// Takes all programs off; the maps stay as they are, with their pins. Goes on after an error and returns the first.
    ///
    /// # Errors
    /// The kernel refuses to detach a program.
    pub fn detach(&mut self) -> Result<()> {
        let mut first = Ok(());
        let members: Vec<u32> = self.members.keys().copied().collect();
        for ifindex in members {
            let detached = self.detach_member(ifindex);
            first = first.and(detached);
        }
        for attached in [self.bond.take(), self.port.take()].into_iter().flatten() {
            let detached = attached.detach();
            first = first.and(detached);
        }
        first
    }

    /// Takes all programs off and removes all pins. Goes on after an error and returns the first.
    ///
    /// # Errors
    /// The kernel refuses to detach a program or to remove a pin.
    pub fn unload(mut self) -> Result<()> {
        let detached = self.detach();
        let removed = remove_pins(&self.pins);
        detached.and(removed)
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

/// Takes all programs off and removes the pins of a bond whose data path is not loaded (left by a daemon that was killed half
/// way). A tcx program goes with its pin; a clsact filter is marked beside it and goes first, so that what cannot be
/// removed now can be later.
///
/// # Errors
/// A filter or a pin cannot be removed.
pub fn remove_pins(pins: &Path) -> Result<()> {
    hook::remove_all_clsact(pins)?;
    forget_pins(pins)
}

/// Removes pins that no bond uses, whose marks therefore say nothing about the interfaces that are here.
///
/// # Errors
/// A pin cannot be removed.
pub fn forget_pins(pins: &Path) -> Result<()> {
    match fs::remove_dir_all(pins) {
        Err(cause) if cause.kind() != std::io::ErrorKind::NotFound => {
            Err(E::Pin { path: pins.to_owned(), cause })
        }
        _ => Ok(()),
    }
}

/// Removes the directory of a network namespace's pins if nothing is pinned there, and then the one of all namespaces if it
/// was the last.
pub fn remove_empty(namespace: &Path) {
    if fs::remove_dir(namespace).is_ok()
        && let Some(all) = namespace.parent()
    {
        let _ = fs::remove_dir(all);
    }
}

/// Takes a member's programs off and removes their pins, where the data path is not loaded (left by a daemon that was killed half
/// way). Nothing happens where there is none.
///
/// # Errors
/// The program or the pin cannot be removed.
pub fn remove_member_pin(pins: &Path, ifindex: u32) -> Result<()> {
    let receives = remove_pin(pins, ifindex, Side::Ingress);
    remove_pin(pins, ifindex, Side::Egress).and(receives)
}

fn remove_pin(pins: &Path, ifindex: u32, side: Side) -> Result<()> {
    let path = hook::pin(pins, ifindex, side);
    hook::remove_clsact(&path, ifindex, side)?;
    match fs::remove_file(&path) {
        Err(cause) if cause.kind() != std::io::ErrorKind::NotFound => Err(E::Pin { path, cause }),
        _ => Ok(()),
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
fn load_patiently(pins: &Path, holds: bool) -> Result<Object> {
    load_patiently_with(|| load_object(pins, holds))
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

fn load_object(pins: &Path, holds: bool) -> Result<Object> {
    let mut open =
        ObjectBuilder::default().name("linkbraid").and_then(|b| b.open_memory(OBJECT)).map_err(E::Load)?;
    for mut map in open.maps_mut() {
        if map.name() == HOLDER && !holds {
            map.set_type(MapType::Array).map_err(E::Load)?;
        }
        if let Some(name) = MAPS.iter().find(|name| map.name() == OsStr::new(name)) {
            map.set_pin_path(pins.join(name)).map_err(E::Load)?;
        }
    }
    open.load().map_err(E::Load)
}

fn program<'o>(object: &'o Object, name: &'static str) -> Result<ProgramMut<'o>> {
    object.progs_mut().find(|program| program.name() == OsStr::new(name)).ok_or(E::Missing(name))
}
