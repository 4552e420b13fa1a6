//! A TAP device: an Ethernet interface whose frames this process reads and writes, with several queues.
//!
//! Every frame has a virtio header in front ([`VNET_HDR_LEN`] bytes, little-endian): a buffer of 64 KiB that TCP
//! wants segmented, with a checksum still to be filled in, comes out of the kernel whole and can go into another
//! kernel whole. Bytes 10 and 11 of that header (`num_buffers`) are zero in what is read and ignored in what is written.
//!
//! The interface lives until the [`Tap`] and all its [`TapQueue`]s are dropped; the kernel then removes it, also when
//! the process is killed. One that is kept ([`Tap::keep`]) stays without a carrier, with its addresses, routes and place in a
//! bridge, until somebody adopts it ([`Tap::adopt`]).

mod error;
mod queue;
mod sys;

use std::{
    fs::{File, OpenOptions},
    os::{fd::OwnedFd, unix::fs::OpenOptionsExt},
};

use linkbraid_wire::MacAddr;
use nix::{errno::Errno, libc};

pub use error::{TapCause, TapError};
pub use queue::{TapQueue, TapRefusal};

use crate::control::claim_speed;
use sys::{Control, IfReq};

/// Length of the virtio header before each frame: `struct virtio_net_hdr_mrg_rxbuf` (linux/virtio_net.h).
pub const VNET_HDR_LEN: usize = 12;
/// Longest frame that the interface hands out, in bytes: an IP packet of 64 KiB less one, an Ethernet header, two VLAN tags.
pub const TAP_FRAME_MAX: usize = 65_535 + 14 + 2 * 4;
/// Largest MTU that the kernel gives a TAP device (drivers/net/tun.c: 65535 less the Ethernet header).
pub const TAP_MTU_MAX: u32 = 65_521;
/// Smallest MTU that the kernel gives a TAP device (`ETH_MIN_MTU`).
pub const TAP_MTU_MIN: u32 = 68;
/// Most queues of one device (`MAX_TAP_QUEUES`, drivers/net/tun.c).
pub const TAP_QUEUES_MAX: usize = 256;
/// Frames that the kernel holds for one queue by default. Behind a full queue it drops, so this is
/// twice what the kernel takes by itself.
pub const TAP_QUEUE_LEN: u32 = 1_000;
/// What a device claims as its speed, in Mbit/s. Newer kernels say so by themselves, older ones 10 Mbit/s, which a bond
/// would weigh it by.
pub const TAP_SPEED_MBIT: u32 = 10_000;

const DEVICE: &str = "/dev/net/tun";

/// What the kernel may leave undone in frames that it hands out, because whoever gets them can do it.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct TapOffloads {
    /// Checksums of TCP and UDP.
    pub checksum: bool,
    /// Segmentation of TCP, with ECN too.
    pub tso: bool,
    /// Segmentation of UDP (`UDP_SEGMENT`): kernels from 6.2.
    pub uso: bool,
}

impl TapOffloads {
    /// Everything that this program carries.
    pub const ALL: Self = Self { checksum: true, tso: true, uso: true };
    /// Whole frames only, each with its checksum.
    pub const NONE: Self = Self { checksum: false, tso: false, uso: false };

    /// What both can do; segmentation needs checksums.
    #[must_use]
    pub fn and(self, other: Self) -> Self {
        let checksum = self.checksum && other.checksum;
        Self { checksum, tso: checksum && self.tso && other.tso, uso: checksum && self.uso && other.uso }
    }

    /// As bits that nodes announce to each other: 1 checksum, 2 TCP, 4 UDP.
    #[must_use]
    pub fn features(self) -> u16 {
        u16::from(self.checksum) | u16::from(self.tso) << 1 | u16::from(self.uso) << 2
    }

    /// From such bits; others say nothing.
    #[must_use]
    pub fn of_features(bits: u16) -> Self {
        Self { checksum: bits & 1 != 0, tso: bits & 2 != 0, uso: bits & 4 != 0 }.and(Self::ALL)
    }

    fn bits(self) -> libc::c_uint {
        let bit = |on: bool, bits: libc::c_uint| if on { bits } else { 0 };
        bit(self.checksum, libc::TUN_F_CSUM)
            | bit(self.tso, libc::TUN_F_TSO4 | libc::TUN_F_TSO6 | libc::TUN_F_TSO_ECN)
            | bit(self.uso, libc::TUN_F_USO4 | libc::TUN_F_USO6)
    }
}

/// What a new TAP device is to be.
#[derive(Debug, Clone)]
pub struct TapConfig {
    /// The name of the device, 1 to 15 bytes.
    pub name: String,
    /// How many queues, 1 to [`TAP_QUEUES_MAX`]. A flow stays on its queue.
    pub queues: usize,
    /// The MAC of the device.
    pub mac: MacAddr,
    /// Largest payload of a frame, in bytes, [`TAP_MTU_MIN`] to [`TAP_MTU_MAX`].
    pub mtu: u32,
    /// What may be left undone; what the kernel does not know is left out ([`Tap::offloads`] shows it).
    pub offloads: TapOffloads,
    /// Frames that the kernel holds for each queue before it drops.
    pub queue_len: u32,
}

/// A TAP device with one or more queues.
#[derive(Debug)]
pub struct Tap {
    name: String,
    index: u32,
    offloads: TapOffloads,
    /// Shares the file of queue 0: the device is asked through it, in whatever namespace the caller is.
    device: OwnedFd,
    /// A socket in the namespace of the device.
    control: Control,
    queues: Vec<TapQueue>,
}

impl Tap {
    /// Makes the device in the network namespace of this thread. It is down and has no carrier.
    ///
    /// # Errors
    /// [`TapCause`] says what is missing or wrong; nothing is left behind then.
    pub fn create(config: &TapConfig) -> Result<Self, TapError> {
        Self::open(config, true)
    }

    /// Takes over a device that was kept, under the name in `config`, which must have its number of queues; the caller has
    /// made sure that it is a TAP device. Its address, MTU and queue length stay as they are, and so does whether it is up. It
    /// has no carrier.
    ///
    /// # Errors
    /// As of [`Tap::create`].
    pub fn adopt(config: &TapConfig) -> Result<Self, TapError> {
        Self::open(config, false)
    }

    fn open(config: &TapConfig, new: bool) -> Result<Self, TapError> {
        let refused = |what: &str, cause| TapError::new(&config.name, what, cause);
        let doing = if new { "cannot create the TAP device" } else { "cannot take over the TAP device" };
        let made = |cause| refused(doing, cause);
        check(config)?;
        let files: Vec<File> = (0..config.queues).map(|_| open().map_err(made)).collect::<Result<_, _>>()?;
        let control = Control::open().map_err(|errno| made(TapCause::of(errno)))?;
        let mut offloads = TapOffloads::NONE;
        for (number, file) in files.iter().enumerate() {
            let first = number == 0;
            sys::attach(file, &config.name, first && new)
                .map_err(|errno| made(TapCause::of_attach(errno, first)))?;
            sys::set_header(file, VNET_HDR_LEN).map_err(|errno| made(TapCause::of_header(errno)))?;
            if first {
                offloads = best_offloads(file, config.offloads)
                    .map_err(|errno| refused("cannot set its offloads", TapCause::of(errno)))?;
            }
        }
        let mut request = IfReq::about(&config.name).ok_or_else(|| made(TapCause::BadName))?;
        let set =
            |what: String, done: Result<(), Errno>| done.map_err(|errno| refused(&what, TapCause::of(errno)));
        if new {
            let (mac, mtu, length) = (config.mac, config.mtu, config.queue_len);
            set(format!("cannot set its address to {mac}"), control.set_mac(&mut request, mac.0))?;
            set(format!("cannot set its MTU to {mtu}"), control.set_mtu(&mut request, mtu))?;
            let what = format!("cannot set its queue length to {length}");
            set(what, control.set_queue_len(&mut request, length))?;
            // A claim, and nothing that frames depend on.
            let _ = claim_speed(&config.name, TAP_SPEED_MBIT);
        }
        let index = control.index(&mut request).map_err(|errno| made(TapCause::of(errno)))?;
        let device = files[0].try_clone().map_err(|error| made(TapCause::of_io(&error)))?.into();
        let queues = files.into_iter().map(TapQueue::new).collect();
        let tap = Self { name: config.name.clone(), index, offloads, device, control, queues };
        // The kernel gives the carrier with each queue that is attached.
        tap.set_carrier(false)?;
        Ok(tap)
    }

    /// The name it was made with.
    #[must_use]
    pub fn name(&self) -> &str {
        &self.name
    }

    /// Its index in the network namespace it was made in.
    #[must_use]
    pub fn index(&self) -> u32 {
        self.index
    }

    /// What the kernel leaves undone in frames that it hands out.
    #[must_use]
    pub fn offloads(&self) -> TapOffloads {
        self.offloads
    }

    /// Takes the queues out, each for a thread of its own.
    #[must_use]
    pub fn take_queues(&mut self) -> Vec<TapQueue> {
        std::mem::take(&mut self.queues)
    }

    /// Whether the device stays when nobody has it open any more, such as after the end of this process.
    ///
    /// # Errors
    /// [`TapCause::Gone`] when somebody removed the device.
    pub fn keep(&self, on: bool) -> Result<(), TapError> {
        let what = if on { "cannot keep it" } else { "cannot release it" };
        sys::set_kept(&self.device, on).map_err(|errno| TapError::new(&self.name, what, TapCause::of(errno)))
    }

    /// Gives or takes the carrier. Without it the kernel sends nothing and marks the interface `NO-CARRIER`.
    ///
    /// # Errors
    /// [`TapCause::Gone`] when somebody removed the device.
    pub fn set_carrier(&self, on: bool) -> Result<(), TapError> {
        let what = if on { "cannot give it a carrier" } else { "cannot take its carrier away" };
        sys::set_carrier(&self.device, on)
            .map_err(|errno| TapError::new(&self.name, what, TapCause::of(errno)))
    }

    /// Asks for fewer or more offloads; what the kernel has of them is the answer.
    ///
    /// # Errors
    /// [`TapCause::Gone`] when somebody removed the device.
    pub fn set_offloads(&mut self, wanted: TapOffloads) -> Result<TapOffloads, TapError> {
        self.offloads = best_offloads(&self.device, wanted)
            .map_err(|errno| TapError::new(&self.name, "cannot set its offloads", TapCause::of(errno)))?;
        Ok(self.offloads)
    }

    /// Sets the interface up or down, by the name it has now.
    ///
    /// # Errors
    /// [`TapCause::Gone`] when somebody removed the device.
    pub fn set_up(&self, up: bool) -> Result<(), TapError> {
        let what = if up { "cannot set it up" } else { "cannot set it down" };
        let refused = |errno| TapError::new(&self.name, what, TapCause::of(errno));
        let mut request = self.control.named(self.index).map_err(refused)?;
        self.control.set_up(&mut request, up).map_err(refused)
    }
}

/// What can be refused before the kernel is asked.
fn check(config: &TapConfig) -> Result<(), TapError> {
    let refused = |what: String, cause| Err(TapError::new(&config.name, what, cause));
    // `%` makes the kernel choose a name; the others no interface can have (dev_valid_name, net/core/dev.c).
    let bad = |byte: u8| matches!(byte, b'/' | b':' | b'%') || byte.is_ascii_whitespace();
    if matches!(config.name.as_str(), "." | "..")
        || IfReq::about(&config.name).is_none()
        || config.name.bytes().any(bad)
    {
        return refused("cannot create the TAP device".into(), TapCause::BadName);
    }
    if !(TAP_MTU_MIN..=TAP_MTU_MAX).contains(&config.mtu) {
        return refused(format!("cannot set its MTU to {}", config.mtu), TapCause::BadMtu);
    }
    if !(1..=TAP_QUEUES_MAX).contains(&config.queues) {
        return refused(format!("cannot give it {} queues", config.queues), TapCause::BadQueues);
    }
    if !config.mac.is_host() {
        return refused(format!("cannot set its address to {}", config.mac), TapCause::BadMac);
    }
    Ok(())
}

fn open() -> Result<File, TapCause> {
    let mut options = OpenOptions::new();
    options.read(true).write(true).custom_flags(libc::O_NONBLOCK | libc::O_CLOEXEC);
    options.open(DEVICE).map_err(|error| TapCause::of_open(&error))
}

/// Sets the most of `wanted` that this kernel has.
fn best_offloads(device: &impl std::os::fd::AsRawFd, wanted: TapOffloads) -> Result<TapOffloads, Errno> {
    best(wanted, |bits| sys::set_offloads(device, bits))
}

/// The most of `wanted` that `set` takes; it refuses what it does not know as a whole.
fn best(wanted: TapOffloads, set: impl Fn(libc::c_uint) -> Result<(), Errno>) -> Result<TapOffloads, Errno> {
    let wanted = wanted.and(TapOffloads::ALL);
    let without_uso = TapOffloads { uso: false, ..wanted };
    let less = [wanted, without_uso, TapOffloads { tso: false, ..without_uso }];
    for offloads in less {
        match set(offloads.bits()) {
            Err(Errno::EINVAL) => {}
            done => return done.map(|()| offloads),
        }
    }
    set(0).map(|()| TapOffloads::NONE)
}

#[cfg(test)]
mod tests;
