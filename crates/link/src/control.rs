//! What a driver says of its link (`ethtool`): speed and duplex, offloads, energy saving, and its own name.

use nix::errno::Errno;
use serde::{Deserialize, Serialize};

use crate::{ioctl::Ioctl, rtnl::text};

/// Words of `struct ethtool_link_settings` before its bit maps (linux/ethtool.h).
const SETTINGS_WORDS: usize = 12;
/// Bit maps behind it, and the most words one may have (its length field is a signed byte).
const SETTINGS_MAPS: usize = 3;
const MAP_WORDS_MAX: usize = 127;
/// Words of the older `struct ethtool_cmd`.
const LEGACY_WORDS: usize = 11;
const ETHTOOL_GSET: u32 = 0x01;
const ETHTOOL_SSET: u32 = 0x02;
const ETHTOOL_GDRVINFO: u32 = 0x03;
const ETHTOOL_GEEE: u32 = 0x44;
const ETHTOOL_GPAUSEPARAM: u32 = 0x12;
const ETHTOOL_GSTRINGS: u32 = 0x1b;
const ETHTOOL_GSSET_INFO: u32 = 0x37;
const ETHTOOL_SFEATURES: u32 = 0x3b;
const ETHTOOL_GFLAGS: u32 = 0x25;
/// `ETH_FLAG_LRO` (linux/ethtool.h).
const FLAG_LRO: u32 = 1 << 15;
/// The set of names that features have, words of a name, and the most names that are looked at.
const FEATURE_NAMES: u32 = 4;
const NAME_WORDS: usize = 8;
const FEATURES_MAX: usize = 1024;
/// Segmentation of UDP (`UDP_SEGMENT`, udp(7)) by the device.
const UDP_SEGMENTATION: &str = "tx-udp-segmentation";
/// Merging of received segments by the device, into buffers that cannot be forwarded.
const LRO: &str = "rx-lro";
const ETHTOOL_GLINKSETTINGS: u32 = 0x4c;
const ETHTOOL_GTSO: u32 = 0x1e;
const ETHTOOL_GGSO: u32 = 0x23;
const ETHTOOL_GGRO: u32 = 0x2b;
const DUPLEX_HALF: u8 = 0;
const DUPLEX_FULL: u8 = 1;
/// Words of `struct ethtool_eee`, and the place of `eee_active` in it.
const EEE_WORDS: usize = 10;
const EEE_ACTIVE: usize = 4;
/// Words of `struct ethtool_pauseparam`, and the place of `rx_pause` in it.
const PAUSE_WORDS: usize = 4;
const PAUSE_RECEIVE: usize = 2;
/// Words of `struct ethtool_drvinfo`, of a text in it, and where two of these are: the driver's name, and the place on its bus.
const DRIVER_WORDS: usize = 49;
const DRIVER_TEXT_WORDS: usize = 8;
const DRIVER_NAME: usize = 1;
const DRIVER_BUS: usize = 25;

/// Speed of a link, as its driver reports it.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
pub struct Speed {
    /// Megabits per second, never 0.
    pub mbit: u32,
    /// Both directions at once; none where the driver does not say.
    pub full_duplex: Option<bool>,
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
    let ioctl = Ioctl::open().ok()?;
    let mut words = [0u32; SETTINGS_WORDS + SETTINGS_MAPS * MAP_WORDS_MAX];
    // Asked with a map length of 0, the kernel answers with the negated length that it wants to be asked with.
    words[0] = ETHTOOL_GLINKSETTINGS;
    let modern = ioctl.ethtool(name, &mut words).and_then(|()| {
        let wanted = words[3].to_ne_bytes()[3].cast_signed();
        if wanted >= 0 {
            return Err(Errno::EOPNOTSUPP);
        }
        words = [0; SETTINGS_WORDS + SETTINGS_MAPS * MAP_WORDS_MAX];
        words[0] = ETHTOOL_GLINKSETTINGS;
        words[3] = u32::from_ne_bytes([0, 0, 0, wanted.unsigned_abs()]);
        ioctl.ethtool(name, &mut words)
    });
    if modern.is_ok() {
        return known(words[1], words[2].to_ne_bytes()[0]);
    }
    let mut words = [0u32; LEGACY_WORDS];
    words[0] = ETHTOOL_GSET;
    ioctl.ethtool(name, &mut words).ok()?;
    // speed and speed_hi are the two halves of the number, 16 bits each, in words 3 and 7.
    let half = |word: u32| {
        let [a, b, ..] = word.to_ne_bytes();
        u32::from(u16::from_ne_bytes([a, b]))
    };
    known(half(words[3]) | half(words[7]) << 16, words[3].to_ne_bytes()[2])
}

/// Makes the interface `name` claim a speed of so many Mbit/s, full duplex. A virtual one, such as a TAP device, says what
/// it is asked to; others may refuse.
pub(crate) fn claim_speed(name: &str, mbit: u32) -> Result<(), Errno> {
    let ioctl = Ioctl::open()?;
    let mut words = [0u32; LEGACY_WORDS];
    words[0] = ETHTOOL_GSET;
    ioctl.ethtool(name, &mut words)?;
    let [low_a, low_b, high_a, high_b] = mbit.to_le_bytes();
    let (low, high) = (u16::from_le_bytes([low_a, low_b]), u16::from_le_bytes([high_a, high_b]));
    let [_, _, _, port] = words[3].to_ne_bytes();
    let [_, _, c, d] = words[7].to_ne_bytes();
    let ([low_a, low_b], [high_a, high_b]) = (low.to_ne_bytes(), high.to_ne_bytes());
    words[0] = ETHTOOL_SSET;
    words[3] = u32::from_ne_bytes([low_a, low_b, DUPLEX_FULL, port]);
    words[7] = u32::from_ne_bytes([high_a, high_b, c, d]);
    ioctl.ethtool(name, &mut words)
}

/// Zero and all ones (`SPEED_UNKNOWN`, in 16 bits on old drivers) stand for an unknown speed.
fn known(mbit: u32, duplex: u8) -> Option<Speed> {
    let full_duplex = match duplex {
        DUPLEX_HALF => Some(false),
        DUPLEX_FULL => Some(true),
        _ => None,
    };
    (mbit != 0 && mbit != u32::MAX && mbit != u32::from(u16::MAX)).then_some(Speed { mbit, full_duplex })
}

/// The offloads of the interface `name`; none when there is no such interface.
#[must_use]
pub fn offloads(name: &str) -> Option<Offloads> {
    let ioctl = Ioctl::open().ok()?;
    let get = |command| {
        let mut words = [command, 0];
        ioctl.ethtool(name, &mut words).map(|()| words[1] != 0)
    };
    Some(Offloads {
        tso: get(ETHTOOL_GTSO).ok()?,
        gso: get(ETHTOOL_GGSO).ok()?,
        gro: get(ETHTOOL_GGRO).ok()?,
    })
}

/// Whether the interface `name` is handed buffers of several UDP datagrams as they are; else the kernel cuts them before.
///
/// # Errors
/// There is no such interface, or the kernel knows no such feature.
pub fn set_udp_segmentation(name: &str, on: bool) -> Result<(), Errno> {
    set_feature(name, UDP_SEGMENTATION, on)
}

/// Whether the device of the interface `name` merges received segments (LRO); none when there is no such interface.
#[must_use]
pub fn lro(name: &str) -> Option<bool> {
    let mut words = [ETHTOOL_GFLAGS, 0];
    Ioctl::open().ok()?.ethtool(name, &mut words).ok()?;
    Some(words[1] & FLAG_LRO != 0)
}

/// Has the device of the interface `name` merge received segments. A bridge that it is a port of keeps that off.
pub(crate) fn set_lro(name: &str) -> Result<(), Errno> {
    set_feature(name, LRO, true)
}

/// Switches a feature of the interface `name` on or off, by the name that the kernel gives it.
fn set_feature(name: &str, feature: &str, on: bool) -> Result<(), Errno> {
    let ioctl = Ioctl::open()?;
    // The number of features: command, reserved, two words of a mask, an answer for each of its bits.
    let mut count = [ETHTOOL_GSSET_INFO, 0, 0, 0, 0];
    let [a, b, c, d, e, f, g, h] = (1u64 << FEATURE_NAMES).to_ne_bytes();
    (count[2], count[3]) = (u32::from_ne_bytes([a, b, c, d]), u32::from_ne_bytes([e, f, g, h]));
    ioctl.ethtool(name, &mut count)?;
    let features = count[4] as usize;
    if features > FEATURES_MAX {
        return Err(Errno::E2BIG);
    }
    // Their names: command, set, number.
    let mut names = vec![0u32; 3 + features * NAME_WORDS];
    names[0] = ETHTOOL_GSTRINGS;
    names[1] = FEATURE_NAMES;
    ioctl.ethtool(name, &mut names)?;
    let is_it = |words: &[u32]| {
        text(&words.iter().flat_map(|word| word.to_ne_bytes()).collect::<Vec<_>>()) == feature
    };
    let place = names[3..].chunks(NAME_WORDS).position(is_it).ok_or(Errno::EOPNOTSUPP)?;
    // What is asked for: command, number of blocks, for each 32 features which ones are meant and which of these are on.
    let blocks = features.div_ceil(32);
    let mut asked = vec![0u32; 2 + 2 * blocks];
    (asked[0], asked[1]) = (ETHTOOL_SFEATURES, blocks as u32);
    let bit = 1 << (place % 32);
    asked[2 + 2 * (place / 32)] = bit;
    asked[3 + 2 * (place / 32)] = if on { bit } else { 0 };
    ioctl.ethtool(name, &mut asked)
}

/// Whether energy-efficient Ethernet (IEEE 802.3az) is in use on the interface `name`: between frames the link sleeps,
/// and the first frame after a pause waits for it to wake. None where the driver does not say.
#[must_use]
pub fn eee(name: &str) -> Option<bool> {
    is_set::<EEE_WORDS>(name, ETHTOOL_GEEE, EEE_ACTIVE)
}

/// Whether the interface `name` stops sending for a while when the switch asks for it (flow control, IEEE 802.3 Annex 31B). None where
/// the driver does not say.
#[must_use]
pub fn heeds_pause(name: &str) -> Option<bool> {
    is_set::<PAUSE_WORDS>(name, ETHTOOL_GPAUSEPARAM, PAUSE_RECEIVE)
}

/// Whether a word of what the driver answers is not 0; none where it does not answer.
fn is_set<const WORDS: usize>(name: &str, command: u32, place: usize) -> Option<bool> {
    let mut words = [0u32; WORDS];
    words[0] = command;
    Ioctl::open().ok()?.ethtool(name, &mut words).ok()?;
    Some(words[place] != 0)
}

/// The name of the driver of the interface `name`, such as `r8169`; none when there is no such interface.
#[must_use]
pub fn driver(name: &str) -> Option<String> {
    driver_text(name, DRIVER_NAME)
}

/// Where the device of the interface `name` is: its PCI address (`0000:03:00.0`), or its place on a USB (`usb-0000:00:14.0-2.1`). None for
/// a virtual one.
#[must_use]
pub fn bus(name: &str) -> Option<String> {
    driver_text(name, DRIVER_BUS)
}

fn driver_text(name: &str, place: usize) -> Option<String> {
    let mut words = [0u32; DRIVER_WORDS];
    words[0] = ETHTOOL_GDRVINFO;
    Ioctl::open().ok()?.ethtool(name, &mut words).ok()?;
    let words = &words[place..place + DRIVER_TEXT_WORDS];
    let bytes: Vec<u8> = words.iter().flat_map(|word| word.to_ne_bytes()).collect();
    Some(text(&bytes)).filter(|text| !text.is_empty())
}

/// Whether the interface `name` is a wireless station.
pub(crate) fn is_wireless(name: &str) -> bool {
    Ioctl::open().is_ok_and(|ioctl| ioctl.is_wireless(name))
}
