//! Precedence of classes: which have it, how much of each member, and the queues of members that heed it.

use super::Bond;
use crate::io::{error::About as _, state::SavedClass};
use linkbraid_api::{Error, Precedence};
use linkbraid_dataplane as dataplane;
use linkbraid_link::{Netlink, Queue};
use std::collections::BTreeMap;

/// What the data path was told last: the classes, a bit each, and what each member carries, in kbit/s by slot.
pub(super) type Written = (u32, [u32; dataplane::MEMBERS_MAX]);

/// Whether frames of a class leave before others.
pub(crate) fn has_precedence(class: &SavedClass) -> bool {
    match class.settings.precedence {
        Precedence::Auto => !class.has_members,
        Precedence::On => true,
        Precedence::Off => false,
    }
}

impl Bond {
    /// Brings the data path and the queues of members up to date with classes and rates.
    pub(crate) async fn write_precedence(&mut self, netlink: &Netlink) -> Result<(), Error> {
        let classes = self.saved.classes.iter().filter(|class| has_precedence(class));
        let classes = classes.fold(0, |mask, class| mask | 1 << class.number);
        // Once it is none there is nothing to follow.
        if classes == 0 && self.precedence.is_some_and(|(before, _)| before == 0) {
            return Ok(());
        }
        let wanted = (classes, self.kbit());
        if self.precedence != Some(wanted) {
            let written = self.path.set_precedence(wanted.0, wanted.1);
            written.about(&self.saved.name, "cannot write the data path's tables")?;
            self.precedence = Some(wanted);
        }
        self.write_queues(netlink, classes != 0).await;
        Ok(())
    }

    /// What each member carries: what its weight says, or less where less was measured.
    fn kbit(&self) -> [u32; dataplane::MEMBERS_MAX] {
        let mut kbit = [0; dataplane::MEMBERS_MAX];
        let driven = self.driven();
        for member in &driven.members {
            let Some(kbit) = kbit.get_mut(usize::from(member.slot)) else { continue };
            let weight = member.weight_mbit().saturating_mul(1000);
            let measured =
                driven.host.member_kbit(member.slot).filter(|_| !driven.host.is_weight_fixed(member.slot));
            *kbit = measured.map_or(weight, |measured| measured.min(weight));
        }
        kbit
    }

    /// Has members send by priority, or as the kernel would. Where that is refused it is told of (`class show`), and all else works.
    async fn write_queues(&mut self, netlink: &Netlink, by_priority: bool) {
        self.read_queues(netlink).await;
        let mut is_changed = false;
        for member in self.members() {
            let changed = match self.found.queues.get(&member.ifindex) {
                Some(queue) if by_priority && queue.is_default() => {
                    netlink.queue_by_priority(member.ifindex).await
                }
                Some(queue) if !by_priority && queue.is_ours() => {
                    netlink.queue_by_default(member.ifindex).await
                }
                _ => continue,
            };
            is_changed = true;
            if let Err(error) = changed {
                tracing::warn!(%error, "frames with precedence wait like others there");
            }
        }
        if is_changed {
            self.read_queues(netlink).await;
        }
    }

    /// Reads the queues of members, which others may have set.
    pub(crate) async fn read_queues(&mut self, netlink: &Netlink) {
        let mut queues = netlink.queues().await.unwrap_or_else(|error| {
            tracing::warn!(%error, "nobody knows what has precedence");
            BTreeMap::new()
        });
        let members = self.members();
        queues.retain(|index, _| members.iter().any(|member| member.ifindex == *index));
        self.found.queues = queues;
    }

    /// The queue of a member, as it was read last; none where it has none yet.
    pub(crate) fn queue(&self, ifindex: u32) -> Option<&Queue> {
        self.found.queues.get(&ifindex)
    }
}
