//! What the kernel tells of interfaces and addresses.

use super::Control;
use crate::{bond::Bond, fabric, member, setup};
use linkbraid_link::{LinkEvent, PortFlags};

impl Control {
    /// Something changed.
    pub(super) async fn link_event(&mut self, event: LinkEvent) {
        match event {
            LinkEvent::LinkChanged(link) => self.link_changed(&link).await,
            LinkEvent::LinkGone { index, .. } => self.link_gone(index).await,
            LinkEvent::AddressesChanged { index } => self.addresses_changed(index).await,
            LinkEvent::NeighbourChanged { index, .. } => {
                for bond in self.bonds.values_mut().filter(|bond| bond.ifindex == index) {
                    bond.plain.touch();
                }
            }
            LinkEvent::Resync => self.resync().await,
        }
    }

    async fn link_changed(&mut self, link: &linkbraid_link::LinkInfo) {
        self.applies.link_came(&link.name, self.clock.now());
        fabric::link_changed(self, link.index).await;
        let clock = self.clock;
        // What an event says may be over: it waited while the loop did something else.
        let fresh = match self.bond_of(link.index) {
            Some(_) => self.netlink.link_by_index(link.index).await.ok(),
            None => None,
        };
        let link = fresh.as_ref().unwrap_or(link);
        for bond in self.bonds.values_mut() {
            if let Err(error) = bond.write_stripe_above(&self.netlink, link).await {
                tracing::warn!(%error, "TCP over it may be slow");
            }
            // Somebody took it out and put it back: the bridge has given it the flags of an ordinary port.
            let is_ours = link.controller == Some(bond.ifindex)
                && bond.members.iter().any(|member| member.ifindex == link.index);
            if is_ours
                && link.port.is_some_and(|flags| flags != PortFlags::MEMBER)
                && let Err(error) = self.netlink.set_port_flags(link.index, PortFlags::MEMBER).await
            {
                tracing::error!(member = %link.name, %error, "port flags not set");
            }
            if bond.refresh_member(link) {
                let mac = bond.mac;
                if let Err(error) = member::keep_mac(&self.netlink, bond).await {
                    tracing::error!(%error, "the bond has the MAC of no member");
                }
                bond.tell_members(clock);
                bond.act(&mut self.sender, clock);
                if let Err(error) = bond.write_tables(clock) {
                    tracing::error!(%error, "the data path is behind");
                }
                if let Err(error) = bond.write_stripe(&self.netlink).await {
                    tracing::error!(%error, "stripe length not set");
                }
                if bond.mac != mac {
                    bond.announce(&mut self.sender, clock);
                }
            }
        }
    }

    /// A bond or a member was deleted, or a member moved to another namespace, under us.
    async fn link_gone(&mut self, index: u32) {
        fabric::link_gone(self, index).await;
        if let Some(name) =
            self.bonds.values().find(|bond| bond.ifindex == index).map(|b| b.saved.name.clone())
        {
            tracing::warn!(bond = %name, "somebody deleted the bond's interface, putting its members back");
            if let Err(error) = setup::delete(self, &name).await {
                tracing::error!(%error, "not everything could be put back");
            }
            return;
        }
        let Some(name) = self.bond_of(index) else { return };
        let Some(mut bond) = self.bonds.remove(&name) else { return };
        let gone = bond.members.iter().find(|member| member.ifindex == index).map(|m| m.name.clone());
        let text = "deleted, or moved to another network namespace, by somebody else";
        bond.history.member(&gone.unwrap_or_default(), "gone", text);
        bond.members.retain(|member| member.ifindex != index);
        member::disinherit(&mut bond.saved, index);
        if let Err(error) = bond.path.detach_member(index) {
            tracing::debug!(%error, "nothing to detach");
        }
        let kept = member::keep_mac(&self.netlink, &mut bond).await;
        let settled = member::settle(self, &mut bond).await;
        let saved = self.state.write(&bond.saved);
        bond.announce(&mut self.sender, self.clock);
        if let Err(error) = kept.and(settled).and(saved) {
            tracing::error!(%error, "the bond is behind");
        }
        self.bonds.insert(name, bond);
    }

    /// The bond that has a member of that index.
    fn bond_of(&self, index: u32) -> Option<String> {
        let has = |bond: &&Bond| bond.members.iter().any(|member| member.ifindex == index);
        self.bonds.values().find(has).map(|bond| bond.saved.name.clone())
    }

    async fn addresses_changed(&mut self, index: u32) {
        fabric::addresses_changed(self, index).await;
        for bond in self.bonds.values_mut().filter(|bond| bond.ifindex == index) {
            if let Err(error) = bond.read_addresses(&self.netlink, self.clock).await {
                tracing::warn!(%error, "addresses not read");
            }
        }
    }

    /// Events were lost: read everything anew.
    async fn resync(&mut self) {
        let links = match self.netlink.links().await {
            Ok(links) => links,
            Err(error) => return tracing::error!(%error, "cannot read the interfaces"),
        };
        let members = self.bonds.values().flat_map(|bond| bond.members.iter().map(|member| member.ifindex));
        let members = members.chain(self.fabrics.values().map(|fabric| fabric.saved.ifindex));
        let gone: Vec<u32> = members.filter(|index| links.iter().all(|link| link.index != *index)).collect();
        for index in gone {
            self.link_gone(index).await;
        }
        for link in &links {
            self.link_changed(link).await;
            self.addresses_changed(link.index).await;
        }
    }
}
