//! The two questions that only an ioctl answers: link speed, and whether an interface is wireless.
//!
//! sysfs would show them too, but of the namespace that mounted it, which need not be the one this process is in.

use std::os::fd::{AsRawFd, OwnedFd};

use nix::{
    errno::Errno,
    libc,
    sys::socket::{AddressFamily, SockFlag, SockType, socket},
};
use serde::{Deserialize, Serialize};

/// Words of `struct ethtool_link_settings` before its bit maps (linux/ethtool.h).
const SETTINGS_WORDS: usize = 12;
/// Bit maps behind it, and the most words one may have (its length field is a signed byte).
const SETTINGS_MAPS: usize = 3;
const MAP_WORDS_MAX: usize = 127;
/// Words of the older `struct ethtool_cmd`.
const LEGACY_WORDS: usize = 11;
const ETHTOOL_GSET: u32 = 0x01;
const ETHTOOL_GLINKSETTINGS: u32 = 0x4c;
const ETHTOOL_GTSO: u32 = 0x1e;
const ETHTOOL_GGSO: u32 = 0x23;
const ETHTOOL_GGRO: u32 = 0x2b;
const DUPLEX_FULL: u8 = 1;

/// Speed of a link, as its driver reports it.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
pub struct Speed {
    /// Megabits per second, never 0.
    pub mbit: u32,
    /// Both directions at once.
    pub full_duplex: bool,
}

/// Which of the offloads that stripes rely on are on.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
pub struct Offloads {
    /// Segmentation of TCP by the device.
    pub tso: bool,
    /// Segmentation by the kernel, just before the driver.
    pub gso: bool,
    /// Merging of received segments.
    pub gro: bool,
}

/// Speed of the interface `name`; none where the driver does not know one, or when there is no such interface.
#[must_use]
pub fn speed(name: &str) -> Option<Speed> {
    let mut words = [0u32; SETTINGS_WORDS + SETTINGS_MAPS * MAP_WORDS_MAX];
    // Asked with a map length of 0, the kernel answers with the negated length that it wants to be asked with.
    words[0] = ETHTOOL_GLINKSETTINGS;
    let modern = ethtool(name, &mut words).and_then(|()| {
        let wanted = words[3].to_ne_bytes()[3].cast_signed();
        if wanted >= 0 {
            return Err(Errno::EOPNOTSUPP);
        }
        words = [0; SETTINGS_WORDS + SETTINGS_MAPS * MAP_WORDS_MAX];
        words[0] = ETHTOOL_GLINKSETTINGS;
        words[3] = u32::from_ne_bytes([0, 0, 0, wanted.unsigned_abs()]);
        ethtool(name, &mut words)
    });
    if modern.is_ok() {
        return known(words[1], words[2].to_ne_bytes()[0]);
    }
    let mut words = [0u32; LEGACY_WORDS];
    words[0] = ETHTOOL_GSET;
    ethtool(name, &mut words).ok()?;
    // speed and speed_hi are the two halves of the number, 16 bits each, in words 3 and 7.
    let half = |word: u32| {
        let [a, b, ..] = word.to_ne_bytes();
        u32::from(u16::from_ne_bytes([a, b]))
    };
    known(half(words[3]) | half(words[7]) << 16, words[3].to_ne_bytes()[2])
}

/// Zero and all ones (`SPEED_UNKNOWN`, in 16 bits on old drivers) stand for an unknown speed.
fn known(mbit: u32, duplex: u8) -> Option<Speed> {
    (mbit != 0 && mbit != u32::MAX && mbit != u32::from(u16::MAX))
        .then_some(Speed { mbit, full_duplex: duplex == DUPLEX_FULL })
}

/// The offloads of the interface `name`; none when there is no such interface.
#[must_use]
pub fn offloads(name: &str) -> Option<Offloads> {
    let get = |command| {
        let mut words = [command, 0];
        ethtool(name, &mut words).map(|()| words[1] != 0)
    };
    Some(Offloads {
        tso: get(ETHTOOL_GTSO).ok()?,
        gso: get(ETHTOOL_GGSO).ok()?,
        gro: get(ETHTOOL_GGRO).ok()?,
    })
}

/// Whether the wireless extensions (which cfg80211 provides too) answer for the interface `name`.
pub(crate) fn is_wireless(name: &str) -> bool {
    let Some((socket, mut request)) = prepare(name) else { return false };
    // SAFETY: SIOCGIWNAME writes at most sizeof(struct iwreq), 32 bytes, into `request`, a larger and live ifreq.
    let answer = unsafe { libc::ioctl(socket.as_raw_fd(), libc::SIOCGIWNAME as _, &raw mut request) };
    answer == 0
}

/// One `SIOCETHTOOL` call; `words` starts with the command and is at least as long as that command's structure.
fn ethtool(name: &str, words: &mut [u32]) -> Result<(), Errno> {
    let (socket, mut request) = prepare(name).ok_or(Errno::ENODEV)?;
    request.ifr_ifru.ifru_data = words.as_mut_ptr().cast();
    // SAFETY: the kernel reads and writes the structure of the command in words[0]; every caller here hands over a
    // buffer as long as that structure can get, and it lives until the call is over.
    let answer = unsafe { libc::ioctl(socket.as_raw_fd(), libc::SIOCETHTOOL as _, &raw mut request) };
    Errno::result(answer).map(drop)
}

/// A socket of this network namespace and a request about the interface `name`.
fn prepare(name: &str) -> Option<(OwnedFd, libc::ifreq)> {
    let socket = socket(AddressFamily::Inet, SockType::Datagram, SockFlag::SOCK_CLOEXEC, None)
        .or_else(|_| socket(AddressFamily::Unix, SockType::Datagram, SockFlag::SOCK_CLOEXEC, None))
        .ok()?;
    // SAFETY: ifreq is a C structure of bytes, integers and pointers, for which zeros are valid.
    let mut request: libc::ifreq = unsafe { std::mem::zeroed() };
    if name.len() >= request.ifr_name.len() {
        return None;
    }
    for (to, from) in request.ifr_name.iter_mut().zip(name.bytes()) {
        *to = from as libc::c_char;
    }
    Some((socket, request))
}
