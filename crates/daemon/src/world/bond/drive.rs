//! A bond and the machine of its host: what the kernel and the user say goes in, what is to be done comes out.

use crate::{
    io::{
        clock::Clock,
        error::About as _,
        state::{SavedBond, SavedClass},
    },
    world::{
        bond::{Bond, Member},
        tables,
    },
};
use linkbraid_api::{Borrow, Error, Fallback, Policy};
use linkbraid_link::{ArpPlusSender, Neighbour, NeighbourReader, NeighbourState, forwards_ipv6};
use linkbraid_proto::{
    Time, answers,
    host::{self, Action, Input, Settings},
    plan::ClassTerms,
};
use linkbraid_wire::MacAddr;

/// The counter of questions that the kernel asked everyone (`TX_ASKED_ALL`): each names the bond's MAC.
const ASKED_ALL: &str = "tx_asked_all";

impl Bond {
    /// Hands in what the members are now.
    pub(crate) fn tell_members(&mut self, clock: Clock) {
        self.tell_own(clock);
        self.host.handle(clock.now(), Input::Settings(settings(&self.saved)));
        let members = self.members.iter().map(to_host).collect();
        self.host.handle(clock.now(), Input::Members(members));
        for member in &self.members {
            self.names.insert(member.slot, member.name.clone());
        }
    }

    /// Hands in the bond's MAC and addresses.
    pub(crate) fn tell_own(&mut self, clock: Clock) {
        let addresses = self.addresses.clone();
        let own = answers::Own { mac: self.mac, addresses, router: self.is_router() };
        self.host.handle(clock.now(), Input::Own(own));
    }

    /// Whether the kernel forwards IPv6 for others, as its own advertisements tell: without that flag hosts would drop us as
    /// their router.
    pub(crate) fn is_router(&self) -> bool {
        forwards_ipv6(&self.saved.name)
    }

    /// Hands in a frame from the data path.
    pub(crate) fn frame(&mut self, now: Time, slot: u8, frame: &[u8]) {
        self.host.handle(now, Input::Frame { slot, bytes: frame });
    }

    /// A deadline may have come.
    pub(crate) fn timeout(&mut self, now: Time) {
        self.host.handle(now, Input::Timeout);
    }

    /// When the machine wants to be woken next.
    pub(crate) fn poll_timeout(&self) -> Option<Time> {
        self.host.poll_timeout()
    }

    /// Carries out what the machine wants.
    pub(crate) fn act(&mut self, sender: &mut ArpPlusSender) {
        while let Some(action) = self.host.poll_action() {
            match action {
                Action::Send { slot, frame } => self.send(sender, slot, &frame),
                Action::DeadSlots(slots) => {
                    if let Err(error) = self.path.set_dead_slots(slots) {
                        tracing::error!(bond = %self.saved.name, %error, "the data path is behind");
                    }
                }
                Action::Tables => {
                    if let Err(error) = self.write_difference() {
                        tracing::error!(%error, "the data path is behind");
                    }
                }
                Action::AskNeighbours => self.wants_neighbours = true,
                Action::LiveMembers => self.stripe_stale = true,
                Action::PlansShort => tracing::warn!(
                    bond = %self.saved.name,
                    "there are more plans of peers and classes than numbers; some classes go where the rest goes"
                ),
                Action::Inspector(event) => self.told_by_inspector(&event),
                Action::ArpPlus(event) => self.told_by_arp_plus(&event),
            }
        }
    }

    /// Brings the data path's tables up to date with members, settings and addresses.
    pub(crate) fn write_tables(&mut self, clock: Clock) -> Result<(), Error> {
        self.tell_members(clock);
        self.host.settle();
        self.write_difference()
    }

    fn write_difference(&mut self) -> Result<(), Error> {
        let bond = tables::Bond { ifindex: self.ifindex, epoch: self.epoch };
        let path = &self.path;
        let written = self.host.write(|write| tables::write(path, bond, &write));
        written.about(&self.saved.name, "cannot write the data path's tables")
    }

    /// Reads which lanes carry data, and whether the kernel has asked everyone something.
    pub(crate) fn look_at_counters(&mut self, clock: Clock) -> Result<(), Error> {
        let what = "cannot read counters";
        let mut plans = Vec::new();
        for number in self.host.plans_to_read() {
            let counts = self.path.lane_counts(number).about(&self.saved.name, what)?;
            plans.push((number, counts.iter().map(|count| count.bytes).collect()));
        }
        self.host.handle(clock.now(), Input::LaneBytes(plans));
        let count = self.path.reason(ASKED_ALL).about(&self.saved.name, what)?;
        if count.frames != self.asked_all {
            self.asked_all = count.frames;
            self.host.handle(clock.now(), Input::Broadcast);
        }
        Ok(())
    }

    /// Asks for the neighbour table if the machine wants it.
    pub(crate) fn ask_neighbours(&mut self, reader: &NeighbourReader) {
        if self.wants_neighbours && reader.ask(self.ifindex) {
            self.wants_neighbours = false;
        }
    }

    /// Hands in the neighbour table that was asked for.
    pub(crate) fn take_neighbours(
        &mut self,
        neighbours: linkbraid_link::Result<Vec<Neighbour>>,
        clock: Clock,
    ) -> Result<(), Error> {
        let name = self.saved.name.clone();
        let read = match neighbours.about(&name, "cannot read its neighbours") {
            Ok(neighbours) => match self.host.arp_plus().segments().len() {
                0 | 1 => Ok((neighbours, Vec::new())),
                _ => {
                    let heard = self.path.plain_hosts().about(&name, "cannot read the plain hosts");
                    heard.map(|heard| (neighbours, heard))
                }
            },
            Err(error) => Err(error),
        };
        let (neighbours, heard) = match read {
            Ok(read) => read,
            Err(error) => {
                self.host.handle(clock.now(), Input::Neighbours(None, Vec::new()));
                return Err(error);
            }
        };
        // The bond's addresses may be others, too.
        self.tell_own(clock);
        let neighbours = neighbours.iter().map(|neighbour| host::Neighbour {
            ip: neighbour.ip,
            mac: neighbour.mac,
            active: matches!(
                neighbour.state,
                NeighbourState::Reachable | NeighbourState::Delay | NeighbourState::Probe
            ),
        });
        let heard = heard.into_iter().map(|(mac, slot)| (MacAddr(mac), slot)).collect();
        self.host.handle(clock.now(), Input::Neighbours(Some(neighbours.collect()), heard));
        Ok(())
    }

    /// Peers of an earlier daemon that have not spoken are plain hosts from now on.
    pub(crate) fn drop_inherited(&mut self, clock: Clock) {
        self.host.handle(clock.now(), Input::DropInherited);
    }
}

fn to_host(member: &Member) -> host::Member {
    host::Member {
        slot: member.slot,
        ifindex: member.ifindex,
        mac: member.mac,
        admin_up: member.admin_up && member.ours,
        carrier: member.has_carrier(),
        speed_mbit: member.speed_mbit,
        full_duplex: member.full_duplex,
        joining: member.joining,
        leaving: member.leaving,
        weight_mbit: member.weight_mbit(),
        class: member.class,
        alive: false,
        sound: true,
    }
}

/// The settings as the machine has them.
pub(crate) fn settings(saved: &SavedBond) -> Settings {
    let class = |class: &SavedClass| host::Class {
        name: class.name.clone(),
        terms: ClassTerms {
            number: class.number,
            has_members: class.has_members,
            block: class.settings.fallback == Fallback::Block,
            lends: class.settings.borrow == Borrow::Idle,
        },
        policy: policy(class.settings.policy),
    };
    Settings {
        probes: saved.settings.inspector.probes,
        timing: saved.timing(),
        damping: saved.settings.damping,
        policy: policy(saved.settings.policy),
        classes: saved.classes.iter().map(class).collect(),
    }
}

const fn policy(policy: Policy) -> host::Policy {
    match policy {
        Policy::Spread => host::Policy::Spread,
        Policy::Flow => host::Policy::Flow,
        Policy::Mirror => host::Policy::Mirror,
        Policy::ActiveBackup => host::Policy::ActiveBackup,
    }
}
