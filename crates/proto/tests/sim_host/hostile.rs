//! Somebody on the switches who has no key, whether the hosts have one or not: he hears all that daemons say, repeats it later, and sends what he changed.
//!
//! He sends to the ports of hosts, and switches learn nothing from it: those that bind MACs to ports prevent that.

use super::{Due, Frame, Port, World};
use crate::network::millis;
use linkbraid_proto::{
    Time, auth,
    auth::{Counter, Mode},
};
use std::{collections::VecDeque, rc::Rc, sync::Arc, time::Duration};

/// What he remembers.
const RECORDED_MAX: usize = 400;

/// How long he waits between two frames, in milliseconds.
const PAUSE_MS: u64 = 20;

/// A frame that is repeated on another switch before that says that the switches are connected, which he could do by a cable.
const RELAYED: Duration = millis(5000);

/// Where a frame was heard, and when.
struct Recorded {
    at: Time,
    switch: u8,
    bytes: Rc<[u8]>,
}

pub struct Hostile {
    /// His own random numbers: those of the world are the same without him.
    seed: u64,
    /// What the hosts ask of each other.
    auth: Mode,
    recorded: VecDeque<Recorded>,
    sent: u64,
    silent: bool,
}

impl Hostile {
    pub const fn new(seed: u64, auth: Mode) -> Hostile {
        Hostile { seed: !seed, auth, recorded: VecDeque::new(), sent: 0, silent: false }
    }

    const fn random(&mut self, limit: u64) -> u64 {
        self.seed = self.seed.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
        (self.seed >> 33) % limit
    }

    /// A frame, and the switch that he sends it on.
    fn choose(&mut self, now: Time, switches: u8) -> Option<(u8, Vec<u8>)> {
        let which = self.random(self.recorded.len().max(1) as u64) as usize;
        let (kind, at, value) = (self.random(8), self.random(1500) as usize, self.random(255) as u8 + 1);
        let elsewhere = self.random(switches.into()) as u8;
        let recorded = self.recorded.get(which)?;
        let mut bytes = recorded.bytes.to_vec();
        let is_late = now.since(recorded.at) > RELAYED;
        match kind {
            // As it was, here or elsewhere.
            0..4 => return Some((if is_late { elsewhere } else { recorded.switch }, bytes)),
            // Without its code: what hosts without keys would say.
            4 if self.auth == Mode::Require => bytes.truncate(bytes.len() - linkbraid_wire::AUTH_TLV_LEN),
            // Another kind, such as CLEAR.
            5 => bytes[17] ^= value % 7 + 1,
            // From another member, or another epoch, or any other change.
            6 => bytes[11] ^= value,
            _ => {
                let at = 14 + at % (bytes.len() - 14);
                bytes[at] ^= value;
            }
        }
        Some((elsewhere, bytes))
    }
}

impl World {
    /// The settings of all hosts.
    pub(super) fn auth(&self) -> auth::Settings {
        if self.hostile.as_ref().is_none_or(|hostile| hostile.auth == Mode::Off) {
            return auth::Settings::default();
        }
        let key = auth::Key::new(1, [42; auth::SECRET_LEN].into());
        let ring = auth::Ring::new(vec![key], 1).expect("a ring");
        auth::Settings { mode: Mode::Require, ring: Arc::new(ring) }
    }

    /// He hears what passes a switch.
    pub(super) fn record(&mut self, switch: u8, frame: &Frame) {
        let at = self.now();
        let (Some(hostile), Frame::Daemon(bytes)) = (&mut self.hostile, frame) else { return };
        if !linkbraid_wire::is_arp_plus(bytes) || hostile.random(4) != 0 {
            return;
        }
        if hostile.recorded.len() >= RECORDED_MAX {
            // Some stay for the whole run.
            let which = hostile.random(RECORDED_MAX as u64) as usize;
            hostile.recorded.swap_remove_back(which);
        }
        hostile.recorded.push_back(Recorded { at, switch, bytes: bytes.clone() });
    }

    /// He sends a frame to all hosts on a switch.
    pub(super) fn attack(&mut self) {
        let (now, switches) = (self.now(), self.cables.values().max().map_or(1, |most| most + 1));
        let Some(hostile) = self.hostile.as_mut().filter(|hostile| !hostile.silent) else { return };
        let pause = millis(hostile.random(PAUSE_MS));
        if let Some((switch, bytes)) = hostile.choose(now, switches) {
            hostile.sent += 1;
            let frame = Frame::Daemon(bytes.into());
            let machines = self.machines.len();
            let ports = self.cables.iter().filter(|((host, _), at)| *host < machines && **at == switch);
            for port in ports.map(|(port, _)| *port).collect::<Vec<Port>>() {
                self.network.at(now, Due::Deliver(port, frame.clone()));
            }
        }
        self.network.after(pause, Due::Attack);
    }

    /// Whether what a host is told may be his.
    pub(super) fn may_be_forged(&self) -> bool {
        self.hostile.as_ref().is_some_and(|hostile| hostile.auth == Mode::Off) && !self.settled
    }

    /// He falls silent for good.
    pub fn silence(&mut self) {
        self.hostile.iter_mut().for_each(|hostile| hostile.silent = true);
    }

    /// How many frames he has sent, and how many frames the daemons that run refused.
    pub fn attacks(&self) -> [u64; 2] {
        let refused =
            [Counter::Missing, Counter::Malformed, Counter::BadCode, Counter::Replayed, Counter::Unproven];
        let daemons = self.machines.iter().filter_map(|machine| machine.daemon.as_ref());
        let refused = daemons.map(|host| refused.map(|c| host.auth().counters().get(c)).iter().sum::<u64>());
        [self.hostile.as_ref().map_or(0, |hostile| hostile.sent), refused.sum()]
    }
}
