//! What the kernel reports of a bond's links and neighbours.

use super::Driven;
use linkbraid_link::{LinkEvent, LinkInfo, Neighbour, NeighbourState, Speed};
use linkbraid_proto::{
    Time,
    host::{self, Input},
};
use linkbraid_wire::MacAddr;
use std::collections::{BTreeMap, BTreeSet};

/// MACs of plain hosts, and the slot each was heard on.
type HeardOn = Vec<([u8; 6], u8)>;

/// What the kernel announced of interfaces: the latest on each.
#[derive(Debug, Default)]
pub(crate) struct Announced {
    links: BTreeMap<u32, Option<Box<LinkInfo>>>,
    neighbours: BTreeSet<u32>,
    /// Some announcements were lost.
    pub lost: bool,
}

impl Announced {
    pub(crate) fn add(&mut self, event: LinkEvent) {
        match event {
            LinkEvent::LinkChanged(link) => _ = self.links.insert(link.index, Some(link)),
            LinkEvent::LinkGone { index, .. } => _ = self.links.insert(index, None),
            LinkEvent::NeighbourChanged { index, .. } => _ = self.neighbours.insert(index),
            LinkEvent::AddressesChanged { .. } | LinkEvent::PortChanged { .. } => {}
            LinkEvent::Resync => self.lost = true,
        }
    }
}

impl Driven {
    /// Follows what was announced.
    pub(crate) fn follow(&mut self, now: Time, announced: &Announced) {
        let mut changed = false;
        for (index, link) in &announced.links {
            changed |= match link {
                Some(link) => self.link_changed(link),
                None => self.link_gone(*index),
            };
        }
        if changed {
            self.report_members(now);
        }
        if announced.neighbours.contains(&self.ifindex) {
            self.host.handle(now, Input::NeighboursChanged);
        }
    }

    /// How often the kernel announced something about a member.
    pub(crate) fn announced(&self, index: u32) -> Option<u32> {
        self.members.iter().find(|member| member.ifindex == index).map(|member| member.announced)
    }

    /// Takes over what was read of a member's link. Unless `since` is how often it was announced now, what the kernel announced
    /// meanwhile is newer; it never announces a speed.
    pub(crate) fn link_read(&mut self, now: Time, since: u32, link: &LinkInfo, speed: Option<Speed>) {
        let mut changed = self.announced(link.index) == Some(since) && self.link_changed(link);
        if let Some(member) = self.members.iter_mut().find(|member| member.ifindex == link.index) {
            let before = (member.speed_mbit, member.full_duplex);
            member.read_speed(speed);
            changed |= before != (member.speed_mbit, member.full_duplex);
        }
        if changed {
            self.report_members(now);
        }
    }

    /// Takes over what a link is like now; whether anything about the member changed.
    fn link_changed(&mut self, link: &LinkInfo) -> bool {
        if link.index == self.ifindex && link.name != self.interface {
            self.interface.clone_from(&link.name);
            let text = format!(
                "its interface is called '{}' now; the bond takes that name when the daemon restarts",
                link.name
            );
            self.history.bond(None, "renamed", text);
        }
        let Some(member) = self.members.iter_mut().find(|member| member.ifindex == link.index) else {
            return false;
        };
        let before = member.clone();
        member.announced = member.announced.wrapping_add(1);
        member.read_link(link, self.ifindex);
        if before.name != member.name {
            let text = format!("renamed: it was '{}'", before.name);
            let name = member.name.clone();
            self.history.member(&name, "renamed", text);
            return true;
        }
        (before.admin_up, before.carrier, before.ours, before.mac, before.fits())
            != (member.admin_up, member.carrier, member.ours, member.mac, member.fits())
    }

    /// Members whose MTU is less than so many bytes carry nothing from the next report on, and lanes are to carry so much.
    pub(crate) fn want_mtu(&mut self, mtu: u32) {
        self.members.iter_mut().for_each(|member| member.mtu_wanted = mtu);
        self.settings.mtu = mtu;
    }

    /// This daemon is about to reset a member's link. One that is withdrawn carries nothing until [`Driven::returned`].
    pub(crate) fn reset_link(&mut self, now: Time, index: u32, withdrawn: bool) {
        if let Some(member) = self.members.iter_mut().find(|member| member.ifindex == index) {
            (member.was_reset, member.withdrawn) = (true, withdrawn);
            self.report_members(now);
        }
    }

    /// The reset is done, and the member carries traffic again as soon as its link does.
    pub(crate) fn returned(&mut self, now: Time, index: u32) {
        if let Some(member) = self.members.iter_mut().find(|member| member.ifindex == index) {
            member.withdrawn = false;
            self.report_members(now);
        }
    }

    /// An interface is gone; whether it was a member, which then carries nothing until it is taken out of the bond.
    fn link_gone(&mut self, index: u32) -> bool {
        let Some(member) = self.members.iter_mut().find(|member| member.ifindex == index) else {
            return false;
        };
        member.announced = member.announced.wrapping_add(1);
        member.admin_up = false;
        true
    }

    /// The poll has seen a member's carrier come or go.
    pub(crate) fn carrier(&mut self, now: Time, index: u32, carrier: bool) {
        let member = self.members.iter_mut().find(|member| member.ifindex == index);
        if let Some(member) = member.filter(|member| member.polled != Some(carrier)) {
            member.polled = Some(carrier);
            self.report_members(now);
        }
    }

    /// Hands in the neighbour table that was asked for, the members that plain hosts were heard on where there are several
    /// segments, and whether the host is a router.
    pub(crate) fn take_neighbours(
        &mut self,
        now: Time,
        read: Option<(Vec<Neighbour>, HeardOn)>,
        router: bool,
    ) {
        let Some((neighbours, heard)) = read else {
            return self.host.handle(now, Input::Neighbours(None, Vec::new()));
        };
        self.own.router = router;
        self.host.handle(now, Input::Own(self.own.clone()));
        // What lives behind the bond answers no probe on its members.
        let guests = self.guests();
        let others = neighbours.iter().filter(|neighbour| !guests.contains(&neighbour.mac));
        let neighbours = others.map(|neighbour| host::Neighbour {
            ip: neighbour.ip,
            mac: neighbour.mac,
            active: matches!(
                neighbour.state,
                NeighbourState::Reachable | NeighbourState::Delay | NeighbourState::Probe
            ),
            gateway: neighbour.gateway,
        });
        let heard = heard.into_iter().map(|(mac, slot)| (MacAddr(mac), slot)).collect();
        self.host.handle(now, Input::Neighbours(Some(neighbours.collect()), heard));
    }
}
