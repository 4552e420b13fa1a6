//! A class on every bond of a lab.

use super::{BOND, Bed, SETTLE_LIMIT};
use linkbraid_api::{Error, LaneRecord, PeerState};
use linkbraid_lab::wait_for;
use std::time::Duration;

/// A class, the same on every bond.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Class {
    pub name: &'static str,
    /// Its members, the same on every host; without any it shares those of all other traffic.
    pub members: &'static [&'static str],
    pub rule: &'static str,
    pub policy: &'static str,
}

impl Class {
    fn command(&self) -> String {
        let Self { name, members, rule, policy } = self;
        let own = if members.is_empty() { String::new() } else { format!("--member {} ", members.join(",")) };
        format!("class add {BOND} {name} {own}--match {rule} --policy {policy}")
    }
}

impl Bed {
    /// Adds a class to all bonds; returns once its lanes, and no others, lie over its members.
    pub fn add_class(&mut self, class: Class) -> Result<(), Error> {
        for name in &self.bonded {
            self.host(name)?.linkbraid(&class.command())?;
            self.commands.push(format!("{name}# linkbraid {}", class.command()));
        }
        self.class = Some(class);
        self.wait_settled(SETTLE_LIMIT)
    }

    /// Adds the class to bonds that were made again, if there is one.
    pub(super) fn make_class_again(&self) -> Result<(), Error> {
        let Some(class) = &self.class else { return Ok(()) };
        self.bonded.iter().try_for_each(|name| self.host(name)?.linkbraid(&class.command()).map(drop))?;
        self.wait_settled(SETTLE_LIMIT)
    }

    pub fn wait_settled(&self, limit: Duration) -> Result<(), Error> {
        wait_for(limit, "all members to be used as their classes have them", || {
            let unsettled = self.unsettled().map_err(|e| e.to_string())?;
            unsettled.map_or(Ok(()), Err)
        })
    }

    /// Whether on every host the lanes of the class lie over all its members, and no others do; without a class,
    /// whether every member carries something to every peer.
    pub fn is_settled(&self) -> Result<bool, Error> {
        self.unsettled().map(|unsettled| unsettled.is_none())
    }

    /// A host where it is not so yet, with its lanes.
    fn unsettled(&self) -> Result<Option<String>, Error> {
        for name in &self.bonded {
            let host = self.host(name)?;
            let lanes: Vec<LaneRecord> = host.ask(&format!("lanes {BOND}"))?;
            let peers = super::peers(host)?;
            let peers = peers.iter().filter(|peer| peer.state == PeerState::Alive).count();
            let all: Vec<String> = (0..host.spec().links.len()).map(|link| format!("eth{link}")).collect();
            if !settled(&lanes, &all, self.class.as_ref(), peers) {
                return Ok(Some(format!("{name}: {lanes:?}")));
            }
        }
        Ok(None)
    }
}

/// Whether each member carries something to so many peers, and only what its class says.
fn settled(lanes: &[LaneRecord], members: &[String], class: Option<&Class>, peers: usize) -> bool {
    let used: Vec<&LaneRecord> = lanes
        .iter()
        .filter(|lane| lane.share_ppm > 0 && matches!(lane.state.as_str(), "up" | "heard"))
        .filter(|lane| lane.peer != PLAIN)
        .filter(|lane| {
            !class.is_some_and(|class| class.members.is_empty() && lane.class.as_deref() == Some(class.name))
        })
        .collect();
    let class_of =
        |member: &str| class.filter(|class| class.members.contains(&member)).map(|class| class.name);
    let right = used.iter().all(|lane| lane.class.as_deref() == class_of(&lane.member));
    let mut ways: Vec<(&str, &str)> =
        used.iter().map(|lane| (lane.member.as_str(), lane.peer.as_str())).collect();
    ways.sort_unstable();
    ways.dedup();
    right && peers > 0 && ways.len() == members.len() * peers
}

/// What stands for the peer of lanes to hosts without linkbraid.
const PLAIN: &str = "plain hosts";

#[cfg(test)]
mod tests;
