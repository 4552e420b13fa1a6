//! Precedence of classes: which have it, how much of each member, and the queues of members that heed it.

use super::{Bond, found::Kept};
use crate::io::error::About as _;
use linkbraid_api::Error;
use linkbraid_dataplane as dataplane;
use linkbraid_link::{Netlink, Queue};
use linkbraid_proto::Time;
use std::collections::BTreeMap;

impl Bond {
    /// Brings the data path and the queues of members up to date with classes and rates.
    pub(crate) async fn write_precedence(&mut self, netlink: &Netlink, now: Time) -> Result<(), Error> {
        let classes = self.saved.classes.iter().filter(|class| class.has_precedence());
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
        self.write_queues(netlink, classes != 0, now).await;
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

    /// Has members send by priority, or as the kernel would. What is refused is tried again later; all else works.
    async fn write_queues(&mut self, netlink: &Netlink, by_priority: bool, now: Time) {
        self.read_queues(netlink).await;
        let mut is_changed = false;
        for member in self.members() {
            let (index, what) = (member.ifindex, Kept::Queue(member.ifindex));
            let change = match self.found.queues.get(&index) {
                Some(queue) if by_priority => queue.is_default(),
                Some(queue) => queue.is_ours(),
                None => false,
            };
            if !change {
                self.found.is_right(what);
                continue;
            }
            // Users may change their mind as often as they like; only what was refused waits.
            if !self.found.is_due(what, now) && self.found.refusal(what).is_some() {
                continue;
            }
            let changed = match by_priority {
                true => netlink.queue_by_priority(index).await,
                false => netlink.queue_by_default(index).await,
            };
            is_changed = true;
            match changed.about(&member.name, "cannot set its queueing discipline") {
                Ok(()) => self.found.is_right(what),
                Err(error) => {
                    if self.found.refused(what, &error.cause) {
                        self.report_member(&member.name, "queue_refused", error.to_string());
                    }
                }
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
