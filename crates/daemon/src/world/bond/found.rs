//! What others have done to a bond's interfaces, as the control thread has found it.

use linkbraid_api::Error;
use linkbraid_link::{BridgeSwitches, ForwardChain, Queue};
use linkbraid_proto::Time;
use linkbraid_wire::MacAddr;
use std::{
    collections::{BTreeMap, BTreeSet},
    time::Duration,
};

/// What is put back so often in a row is put back at once; after that it waits, in case another program insists.
const AT_ONCE: u32 = 5;
/// How long it waits then, and after a refusal: at first, and at most.
const WAIT_MIN: Duration = Duration::from_secs(1);
const WAIT_MAX: Duration = Duration::from_secs(60);
/// What was left alone for so long is put back at once again.
const QUIET: Duration = Duration::from_secs(10);

/// All of it.
#[derive(Debug, Default)]
pub(crate) struct Found {
    /// The bond's own interface, as it was read last; none before that.
    pub interface: Option<Interface>,
    /// Addresses that members have of their own, `ADDRESS/PREFIX`, by the members' indexes.
    pub addresses: BTreeMap<u32, Vec<String>>,
    /// Members that have a default route of their own, and whether it is one of IPv6.
    pub default_routes: BTreeSet<(u32, bool)>,
    /// The queues of members, by the members' indexes.
    pub queues: BTreeMap<u32, Queue>,
    /// Chains of the host's filters that drop what its guests send and get.
    pub forward: Vec<ForwardChain>,
    /// Why members do not join again whose interfaces are there, by the names of these.
    pub not_joined: BTreeMap<String, Error>,
    tries: BTreeMap<Kept, Tries>,
}

/// What can be changed by hand on the bond's own interface.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Interface {
    /// Set up by the administrator.
    pub up: bool,
    /// Its MTU in bytes.
    pub mtu: u32,
    /// Its MAC.
    pub mac: MacAddr,
    /// What its bridge does beyond forwarding.
    pub switches: BridgeSwitches,
}

/// What the daemon keeps as it is.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) enum Kept {
    /// The MAC of the bond's interface.
    Mac,
    /// Its MTU, where members do not follow it.
    Mtu,
    /// The internal port, by which its frames leave.
    Port,
    /// What its bridge does beyond forwarding.
    Switches,
    /// The MTU of the member with this index.
    Member(u32),
    /// How the bridge treats the member with this index.
    Flags(u32),
    /// That the member with this index is in the bond.
    Place(u32),
    /// The queue of the member with this index: whether it heeds priorities.
    Queue(u32),
}

/// How often it was put back, and when it may be tried again.
#[derive(Debug, Default)]
struct Tries {
    count: u32,
    last: Time,
    not_before: Time,
    /// It is still to be put back.
    waits: bool,
    /// Why it could not be.
    refusal: Option<String>,
}

impl Found {
    /// Something is not as it is to be: whether to put it back now. If not, it waits until [`Found::wake`].
    pub(crate) fn is_due(&mut self, what: Kept, now: Time) -> bool {
        let tries = self.tries.entry(what).or_default();
        if tries.refusal.is_none() && now.since(tries.not_before) > QUIET {
            *tries = Tries::default();
        }
        tries.waits = now < tries.not_before;
        if tries.waits {
            return false;
        }
        tries.count += 1;
        tries.last = now;
        tries.not_before = now + wait(tries.count);
        true
    }

    /// It could not be put back; whether that is news.
    pub(crate) fn refused(&mut self, what: Kept, cause: &str) -> bool {
        let tries = self.tries.entry(what).or_default();
        tries.count = tries.count.max(AT_ONCE);
        tries.not_before = tries.last + wait(tries.count);
        tries.waits = true;
        tries.refusal.replace(cause.to_owned()).as_deref() != Some(cause)
    }

    /// It is as it is to be, or nobody's business any more.
    pub(crate) fn is_right(&mut self, what: Kept) {
        if let Some(tries) = self.tries.get_mut(&what) {
            (tries.waits, tries.refusal) = (false, None);
        }
    }

    /// Why it is not as it is to be, if that was refused.
    pub(crate) fn refusal(&self, what: Kept) -> Option<&str> {
        self.tries.get(&what)?.refusal.as_deref()
    }

    /// Whether it is still to be put back.
    pub(crate) fn waits(&self, what: Kept) -> bool {
        self.tries.get(&what).is_some_and(|tries| tries.waits)
    }

    /// Something else has changed on this machine: what waits longer is tried a second after it was tried last.
    pub(crate) fn hurry(&mut self) {
        for tries in self.tries.values_mut().filter(|tries| tries.waits) {
            tries.not_before = tries.not_before.min(tries.last + WAIT_MIN);
        }
    }

    /// When something is to be tried again.
    pub(crate) fn wake(&self) -> Option<Time> {
        self.tries.values().filter(|tries| tries.waits).map(|tries| tries.not_before).min()
    }

    /// Whether that is now; asked once for each time.
    pub(crate) fn take_due(&mut self, now: Time) -> bool {
        let due = self.tries.values_mut().filter(|tries| tries.waits && tries.not_before <= now);
        due.map(|tries| tries.waits = false).count() > 0
    }

    /// Forgets those that are no members any more.
    pub(crate) fn keep_members(&mut self, is_member: impl Fn(u32) -> bool) {
        self.addresses.retain(|index, _| is_member(*index));
        self.default_routes.retain(|(index, _)| is_member(*index));
        self.queues.retain(|index, _| is_member(*index));
        self.tries.retain(|what, _| match what {
            Kept::Member(index) | Kept::Flags(index) | Kept::Place(index) | Kept::Queue(index) => {
                is_member(*index)
            }
            _ => true,
        });
    }
}

/// How long until the next try, after so many.
fn wait(count: u32) -> Duration {
    match count.checked_sub(AT_ONCE) {
        None => Duration::ZERO,
        Some(more) => WAIT_MIN.saturating_mul(1 << more.min(6)).min(WAIT_MAX),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const MS: Duration = Duration::from_millis(1);
    const WHAT: Kept = Kept::Member(7);

    #[test]
    fn what_somebody_insists_on_is_put_back_less_and_less_often() {
        let mut found = Found::default();
        let mut now = Time::ZERO + Duration::from_secs(100);
        let mut tried = Vec::new();
        let start = now;
        while now.since(start) < Duration::from_secs(200) {
            if found.is_due(WHAT, now) {
                tried.push(now.since(start).as_secs());
                found.is_right(WHAT);
            }
            now = now + MS * 100;
        }
        assert_eq!(tried, [0, 0, 0, 0, 0, 1, 3, 7, 15, 31, 63, 123, 183]);
        now = now + WAIT_MAX + QUIET;
        assert!(found.is_due(WHAT, now) && found.is_due(WHAT, now), "it was left alone for long");
    }

    #[test]
    fn what_is_refused_is_tried_again_later_or_when_something_changes() {
        let mut found = Found::default();
        let now = Time::ZERO + Duration::from_secs(100);
        assert!(found.is_due(WHAT, now));
        assert!(found.refused(WHAT, "no"), "that is news");
        assert!(!found.is_due(WHAT, now + MS));
        assert_eq!(found.wake(), Some(now + WAIT_MIN));
        let later = now + WAIT_MIN;
        assert!(found.take_due(later) && found.is_due(WHAT, later));
        assert!(!found.refused(WHAT, "no"), "that was said");
        assert_eq!(found.wake(), Some(later + WAIT_MIN * 2));
        found.hurry();
        assert_eq!(found.wake(), Some(later + WAIT_MIN));
        found.is_right(WHAT);
        assert_eq!((found.wake(), found.refusal(WHAT)), (None, None));
        found.keep_members(|_| false);
        assert!(found.tries.is_empty());
    }
}
