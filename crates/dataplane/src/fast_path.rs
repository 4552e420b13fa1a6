//! The fast path of a fabric: frames between its interface and a VXLAN device, moved by `bpf/fast_path.bpf.c`.
//!
//! An object of its own for each start of a node. What the programs follow goes with the process. The
//! filter on the VXLAN device stays, and drops all from then on. On a tcx hook the program on the interface goes, too; a
//! clsact filter stays there, and lets everything pass to the queues.

use crate::{
    HookChoice,
    error::{Error, Result},
    hook::{Bare, Hook, Side, clsact, tcx::BareLink},
    intf::{lb_path_config, lb_path_counts, lb_path_in, lb_path_out},
    load as loading,
    map::Map,
    reason::PATH_REASONS,
};
use bytemuck::Pod;
use libbpf_rs::{Object, ObjectBuilder};
use std::{
    net::IpAddr,
    os::fd::{AsFd as _, AsRawFd as _, OwnedFd},
};

static OBJECT: &[u8] = include_bytes!(concat!(env!("OUT_DIR"), "/fast_path.bpf.o"));

/// The section that holds `path`.
const CONFIG: &str = ".rodata.path";
const HOLDER: &str = "lb_path_holder";
const EARLY: &str = "lb_path_early";
const OUT: &str = "lb_paths_out";
const IN: &str = "lb_paths_in";
const COUNTS: &str = "lb_path_counts";
const REASONS: &str = "lb_path_reasons";

/// What a node's fast path stands between.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct PathEnds {
    /// The index of the fabric's interface.
    pub tap: u32,
    /// The index of the VXLAN device.
    pub vxlan: u32,
    /// The address that is derived for this node.
    pub mac: [u8; 6],
    /// This node's own address; those of all peers are of its family.
    pub local: IpAddr,
    /// The UDP port of VXLAN.
    pub port: u16,
}

/// How frames to a peer are sent.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct PathOut {
    /// The peer's IP address.
    pub remote: IpAddr,
    /// The VXLAN network and the group that its frames must carry; none while the path is closed and may open.
    pub tag: Option<(u32, u16)>,
    /// The longest frame that the path takes, with its Ethernet header, in bytes.
    pub room: u32,
    /// The longest that the interface sends.
    pub frame: u32,
}

/// Which frames of a peer are accepted.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct PathIn {
    /// The peer's IP address.
    pub remote: IpAddr,
    /// The VXLAN network and the group that its frames must carry.
    pub tag: (u32, u16),
}

/// What went over the fast path to one peer and from it: frames as the interface has them, bytes with Ethernet headers.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct PathCounts {
    /// Frames sent.
    pub tx_frames: u64,
    /// Bytes of the frames sent.
    pub tx_bytes: u64,
    /// Frames received.
    pub rx_frames: u64,
    /// Bytes of the frames received.
    pub rx_bytes: u64,
    /// Frames received that only ask whether they arrive.
    pub probes: u64,
}

impl PathCounts {
    /// The sums of both.
    #[must_use]
    pub fn and(self, other: Self) -> Self {
        Self {
            tx_frames: self.tx_frames + other.tx_frames,
            tx_bytes: self.tx_bytes + other.tx_bytes,
            rx_frames: self.rx_frames + other.rx_frames,
            rx_bytes: self.rx_bytes + other.rx_bytes,
            probes: self.probes + other.probes,
        }
    }
}

/// The programs in their places. They leave them when it is dropped.
pub struct FastPath {
    // Links go before their programs.
    attached: Vec<Bare>,
    outward: Map,
    inward: Map,
    counts: Map,
    reasons: Map,
    hook: Hook,
    object: Object,
    early: bool,
    /// Is in the map [`HOLDER`] for as long as this process lives.
    _holder: OwnedFd,
}

impl FastPath {
    /// Loads the programs and attaches them. No frame goes by them before [`FastPath::set_out`] and [`FastPath::set_in`].
    ///
    /// # Errors
    /// The kernel refuses.
    pub fn new(ends: &PathEnds, choice: HookChoice) -> Result<Self> {
        // Nothing else shows a filter that this process has ended.
        let holder = loading::holder().ok_or(Error::NoHolder)?;
        // Where the program that takes frames early cannot be used, or cannot be had, the others work without it.
        let early = choice != HookChoice::Only(Hook::Clsact);
        let with = |early| loading::patiently(|| load(ends, early));
        let (object, early) = match with(early) {
            Err(_) if early => (with(false)?, false),
            loaded => (loaded?, early),
        };
        Map::of(&object, HOLDER)?.write(&0u32, &holder.as_raw_fd())?;
        let (outward, inward) = (Map::of(&object, OUT)?, Map::of(&object, IN)?);
        let (counts, reasons) = (Map::of(&object, COUNTS)?, Map::of(&object, REASONS)?);
        let attach =
            |name, ifindex, side, hook| Bare::attach(&loading::program(&object, name)?, ifindex, side, hook);
        // What receives stays when this process is killed, as a filter does and a link does not: it drops all then, and nothing
        // comes to the device's own stack.
        let stays = HookChoice::Only(Hook::Clsact);
        let receives = attach("lb_path_in", ends.vxlan, Side::Ingress, stays)?;
        let sends = attach("lb_path_out", ends.tap, Side::Egress, choice)?;
        let hook = sends.hook();
        let attached = vec![sends, receives];
        let early = early && hook == Hook::Tcx;
        Ok(Self { attached, outward, inward, counts, reasons, hook, object, early, _holder: holder })
    }

    /// What takes frames early, as `bpf/early.bpf.h` says, once it is attached somewhere; none where that cannot be: on the
    /// clsact hook it would outlive a killed daemon on an interface that is not ours.
    ///
    /// # Errors
    /// The kernel refuses.
    pub fn early(&self) -> Result<Option<Early>> {
        if !self.early {
            return Ok(None);
        }
        let program = loading::program(&self.object, EARLY)?;
        let program = program.as_fd().try_clone_to_owned().map_err(|cause| Error::Load(cause.into()))?;
        Ok(Some(Early { program }))
    }

    /// The hook that the programs sit on.
    pub fn hook(&self) -> Hook {
        self.hook
    }

    /// Opens or closes the path to a peer. One that may open has TCP send segments that it will take.
    ///
    /// # Errors
    /// The kernel refuses.
    pub fn set_out(&self, node: u16, path: Option<&PathOut>) -> Result<()> {
        let raw = path.map(|path| {
            let (network, group) = path.tag.unwrap_or_default();
            let (room, frame) = (path.room, path.frame);
            lb_path_out { remote: words(path.remote), network, group: group.into(), room, frame }
        });
        set(&self.outward, node, raw)
    }

    /// Opens or closes the path from a peer.
    ///
    /// # Errors
    /// The kernel refuses.
    pub fn set_in(&self, node: u16, path: Option<&PathIn>) -> Result<()> {
        let raw = path.map(|path| lb_path_in {
            remote: words(path.remote),
            network: path.tag.0,
            group: path.tag.1.into(),
        });
        set(&self.inward, node, raw)
    }

    /// What went to a peer and came from it.
    ///
    /// # Errors
    /// The kernel refuses.
    pub fn counts(&self, node: u16) -> Result<PathCounts> {
        let cpus: Vec<lb_path_counts> = self.counts.read_percpu(node.into())?;
        Ok(cpus.iter().fold(PathCounts::default(), |sum, cpu| {
            let lb_path_counts { tx_frames, tx_bytes, rx_frames, rx_bytes, probes } = *cpu;
            sum.and(PathCounts { tx_frames, tx_bytes, rx_frames, rx_bytes, probes })
        }))
    }

    /// How often each of [`PATH_REASONS`] was met.
    ///
    /// # Errors
    /// The kernel refuses.
    pub fn reasons(&self) -> Result<[u64; PATH_REASONS.len()]> {
        let mut all = [0; PATH_REASONS.len()];
        for (number, count) in (0..).zip(&mut all) {
            *count = self.reasons.read_percpu::<u64>(number)?.iter().sum();
        }
        Ok(all)
    }

    /// Takes off the filter that a daemon which was killed left on an interface, if it did.
    ///
    /// # Errors
    /// The kernel refuses.
    pub fn clean(tap: u32) -> Result<()> {
        clsact::remove_bare(tap, Side::Egress)
    }
}

/// The program that takes frames from their packets where those arrive. May be handed to another thread: the kernel takes its time
/// to attach it.
pub struct Early {
    program: OwnedFd,
}

/// Takes frames early at one interface until it is dropped, or the interface or the process is gone.
pub struct EarlyAt {
    _link: BareLink,
}

impl Early {
    /// Attaches it to an interface whose frames have Ethernet headers, behind all programs that are there.
    ///
    /// # Errors
    /// The kernel refuses.
    pub fn attach(&self, ifindex: u32) -> Result<EarlyAt> {
        Ok(EarlyAt { _link: BareLink::ingress(&self.program, ifindex)? })
    }
}

impl Drop for FastPath {
    fn drop(&mut self) {
        for attached in self.attached.drain(..) {
            // An interface that is gone took its program along, and what stays there lets everything pass.
            let _ = attached.detach();
        }
    }
}

fn set<V: Pod>(map: &Map, node: u16, row: Option<V>) -> Result<()> {
    let key = u32::from(node);
    match row {
        Some(row) => map.write(&key, &row),
        None => map.delete(&key),
    }
}

fn load(ends: &PathEnds, early: bool) -> Result<Object> {
    let mut open = ObjectBuilder::default()
        .name("lb_fast_path")
        .and_then(|builder| builder.open_memory(OBJECT))
        .map_err(Error::Load)?;
    let raw = lb_path_config {
        mac: ends.mac,
        v6: ends.local.is_ipv6().into(),
        pad: 0,
        port: ends.port,
        pad2: 0,
        tap: ends.tap,
        vxlan: ends.vxlan,
        local: words(ends.local),
    };
    for mut map in open.maps_mut() {
        if map.name() == CONFIG {
            let raw = bytemuck::bytes_of(&raw);
            let value = map.initial_value_mut().and_then(|value| value.get_mut(..raw.len()));
            value.ok_or(Error::Missing(CONFIG))?.copy_from_slice(raw);
        }
    }
    for mut program in open.progs_mut().filter(|program| program.name() == EARLY) {
        program.set_autoload(early);
    }
    open.load().map_err(Error::Load)
}

/// As `struct bpf_tunnel_key` has it: IPv4 in host order, IPv6 as it stands in packets.
fn words(address: IpAddr) -> [u32; 4] {
    match address {
        IpAddr::V4(v4) => [v4.to_bits(), 0, 0, 0],
        IpAddr::V6(v6) => {
            let octets = v6.octets();
            std::array::from_fn(|at| u32::from_ne_bytes(std::array::from_fn(|byte| octets[4 * at + byte])))
        }
    }
}
