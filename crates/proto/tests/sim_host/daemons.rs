//! Daemons start and die, members leave and join, and what a daemon asks for is done.

use super::{Due, Frame, World, addresses, mac};
use crate::{hosts::id, network::millis};
use linkbraid_proto::{answers, arp_plus, auth, host::*, inspector::Timing, plan::ClassTerms};
use std::collections::{BTreeMap, BTreeSet};

/// The number of the class that some hosts have.
pub const URGENT: u8 = 1;

/// What a host sets of that class.
#[derive(Debug, Clone)]
pub struct OwnClass {
    /// The members that it has for itself.
    pub slots: BTreeSet<u8>,
    /// Whether other traffic may borrow them.
    pub lends: bool,
}

pub(super) fn member(host: usize, slot: u8, class: Option<&OwnClass>) -> Member {
    let is_urgent = class.is_some_and(|class| class.slots.contains(&slot));
    Member {
        slot,
        ifindex: 10 + u32::from(slot),
        mac: mac(host, slot),
        admin_up: true,
        carrier: true,
        speed_mbit: Some(1000),
        full_duplex: Some(true),
        joining: false,
        leaving: false,
        weight_mbit: 1000,
        weight_fixed: false,
        class: if is_urgent { URGENT } else { 0 },
        alive: false,
        sound: true,
    }
}

fn settings(class: Option<&OwnClass>, auth: auth::Settings) -> Settings {
    let urgent = |class: &OwnClass| Class {
        name: "urgent".to_owned(),
        terms: ClassTerms {
            number: URGENT,
            has_members: !class.slots.is_empty(),
            block: false,
            lends: class.lends,
        },
        policy: Policy::Flow,
    };
    Settings {
        probes: true,
        timing: Timing::default(),
        mtu: 9000,
        damping: true,
        policy: Policy::Spread,
        published_only: false,
        auth,
        classes: class.into_iter().map(urgent).collect(),
    }
}

impl World {
    /// A daemon starts and takes over what the one before left.
    pub fn start(&mut self, host: usize) {
        let seed = self.random(u64::MAX);
        let now = self.clock(host);
        let auth = self.auth();
        let machine = &mut self.machines[host];
        machine.epoch += 1;
        let left = TableImage { plans: BTreeMap::new(), ..machine.path.rows.clone() };
        let config = Config { host_id: machine.host_id, epoch: machine.epoch, secret: seed.into() };
        let mut daemon = Host::new(config, settings(machine.class.as_ref(), auth), left);
        let addresses = addresses(host).zip([24, 64]).collect();
        let own = answers::Own { mac: machine.mac, addresses, router: false };
        daemon.handle(now, Input::Own(own));
        machine.daemon = Some(daemon);
        self.input(host, Input::Members(self.machines[host].members.clone()));
        self.input(host, Input::Start);
    }

    /// A daemon dies without a word; the tables stay.
    pub fn kill(&mut self, host: usize) {
        let machine = &mut self.machines[host];
        (machine.daemon, machine.wake, machine.rows_left) = (None, None, None);
    }

    /// The same, while it writes its tables: after so many rows.
    pub fn kill_after(&mut self, host: usize, rows: u64) {
        self.machines[host].rows_left = Some(rows);
    }

    pub fn drop_inherited(&mut self, host: usize) {
        self.input(host, Input::DropInherited);
    }

    /// Members are other ones, or leave or join.
    pub fn set_members(&mut self, host: usize, members: Vec<Member>) {
        self.machines[host].members = members;
        // The bond's MAC is that of one of its members.
        let own = self.machines[host].mac;
        let staying = || self.machines[host].members.iter().filter(|member| !member.leaving);
        if !staying().any(|member| member.mac == own)
            && let Some(mac) = staying().next().map(|member| member.mac)
        {
            self.machines[host].mac = mac;
            let addresses = addresses(host).zip([24, 64]).collect();
            self.input(host, Input::Own(answers::Own { mac, addresses, router: false }));
        }
        self.input(host, Input::Members(self.machines[host].members.clone()));
    }

    /// `member add` of one that left: it joins, and is admitted when a lane of it is proven or time is over.
    pub fn rejoin(&mut self, host: usize) {
        let slots: Vec<u8> = self.cables.keys().filter(|port| port.0 == host).map(|port| port.1).collect();
        let mut members = self.machines[host].members.clone();
        let Some(slot) = slots.into_iter().find(|slot| members.iter().all(|m| m.slot != *slot)) else {
            return;
        };
        let carrier = !self.unplugged.contains(&(host, slot));
        members.push(Member {
            joining: true,
            carrier,
            ..member(host, slot, self.machines[host].class.as_ref())
        });
        self.set_members(host, members);
        for _ in 0..50 {
            self.run(millis(100));
            let daemon = self.machines[host].daemon.as_ref();
            if daemon.is_none_or(|daemon| daemon.is_proven(slot)) {
                break;
            }
        }
        let mut members = self.machines[host].members.clone();
        members.iter_mut().for_each(|member| member.joining = false);
        self.set_members(host, members);
    }

    pub(super) fn input(&mut self, host: usize, input: Input<'_>) {
        let now = self.clock(host);
        let neighbours = self.neighbours();
        let may_be_forged = self.may_be_forged();
        let has_copies = (0..self.machines.len()).any(|other| self.machines[other].host_id != id(other));
        let is_settled = self.settled && self.is_one_network();
        let machine = &mut self.machines[host];
        let Some(daemon) = machine.daemon.as_mut().filter(|_| !machine.asleep) else { return };
        daemon.handle(now, input);
        let mut frames = Vec::new();
        while let Some(action) = daemon.poll_action() {
            match action {
                Action::Send { slot, frame } => frames.push((slot, frame)),
                Action::FailedSlots(slots) => machine.path.failed_slots = slots,
                Action::Tables => {
                    let (path, left) = (&mut machine.path, &mut machine.rows_left);
                    let written = daemon.write(|write| {
                        if let Some(left) = left {
                            *left = left.checked_sub(1).ok_or(())?;
                        }
                        path.write(&write);
                        Ok::<_, ()>(())
                    });
                    if written.is_err() {
                        return self.kill(host);
                    }
                }
                Action::AskNeighbours => {
                    let heard = machine.path.heard();
                    daemon.handle(now, Input::Neighbours(Some(neighbours.clone()), heard));
                }
                // Hosts that do not hear each other do not know where a guest went.
                Action::ArpPlus(arp_plus::Event::Conflict(
                    arp_plus::Conflict::OwnGuest { .. } | arp_plus::Conflict::PeerGuest { .. },
                )) if !is_settled => {}
                Action::ArpPlus(arp_plus::Event::Conflict(
                    arp_plus::Conflict::OwnHostId { .. } | arp_plus::Conflict::PeerHostId { .. },
                )) if has_copies => {}
                // What a stranger says without a key is not told from what hosts say.
                Action::ArpPlus(arp_plus::Event::Conflict(_)) if may_be_forged => {}
                Action::ArpPlus(arp_plus::Event::Conflict(conflict)) => {
                    panic!("{host} at {now:?}: {conflict}")
                }
                Action::AnnounceGuests(_)
                | Action::Stripe
                | Action::PlansShort
                | Action::Inspector(_)
                | Action::ArpPlus(_)
                | Action::Unkeyed(_) => {}
            }
        }
        let wake = daemon.poll_timeout();
        if wake != machine.wake {
            machine.wake = wake;
            if let Some(at) = wake {
                let slept = machine.slept;
                self.network.at(at.max(now) + slept, Due::Wake(host));
            }
        }
        for (slot, frame) in frames {
            self.carry((host, slot), Frame::Daemon(frame.into()));
        }
    }
}
