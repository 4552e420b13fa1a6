//! Which own members hear each other: each member's frames come back on the others of the same switch.

use super::{OwnMember, Timing};
use crate::Time;
use serde::{Deserialize, Serialize};
use std::{collections::BTreeMap, time::Duration};

/// Own members on one switch, or one member alone.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Segment {
    /// Counts from 0 in the order of the lowest slots.
    pub number: u32,
    /// Its members, ascending.
    pub slots: Vec<u8>,
    /// The member that takes in its broadcasts: the lowest live and sound one that is in no class, else the lowest live and
    /// sound one, else of the live ones in the same way; none where no live one is more than joining.
    pub elected: Option<u8>,
}

#[derive(Debug, Default)]
pub(super) struct Segments {
    heard: BTreeMap<(u8, u8), Time>,
    list: Vec<Segment>,
}

impl Segments {
    /// A frame of member `from` came back on member `at`.
    pub fn hear(&mut self, now: Time, from: u8, at: u8) {
        if from != at {
            self.heard.insert((from, at), now);
        }
    }

    /// This host was late by that, which does not count as time in which nothing came.
    pub fn did_not_listen(&mut self, now: Time, late: Duration) {
        self.heard.values_mut().for_each(|when| *when = (*when + late).min(now));
    }

    /// Members of one group hear each other, as an earlier machine found.
    pub fn inherit(&mut self, now: Time, groups: &[Vec<u8>]) {
        for group in groups {
            for from in group {
                group.iter().for_each(|at| self.hear(now, *from, *at));
            }
        }
    }

    /// Drops what was heard from and on members that have gone.
    pub fn retain_slots(&mut self, keep: impl Fn(u8) -> bool) {
        self.heard.retain(|(from, at), _| keep(*from) && keep(*at));
    }

    pub fn list(&self) -> &[Segment] {
        &self.list
    }

    /// Looks again; says whether the list is another one.
    pub fn update(&mut self, now: Time, members: &[OwnMember], timing: &Timing) -> bool {
        self.heard.retain(|_, when| now.since(*when) < timing.heard);
        let list =
            connected(members, |a, b| self.heard.contains_key(&(a, b)) || self.heard.contains_key(&(b, a)));
        let differ = list != self.list;
        self.list = list;
        differ
    }
}

/// Connected components; a failed member is alone.
fn connected(members: &[OwnMember], hear: impl Fn(u8, u8) -> bool) -> Vec<Segment> {
    //= docs/arp-plus.md#9.1
    let mut rest: Vec<&OwnMember> = members.iter().collect();
    rest.sort_unstable_by_key(|member| member.slot);
    rest.reverse();
    let mut list = Vec::new();
    while let Some(first) = rest.pop() {
        let mut found = vec![first];
        let mut at = 0;
        while at < found.len() {
            let here = found[at];
            let (near, far) = rest
                .into_iter()
                .partition(|other: &&OwnMember| here.up && other.up && hear(here.slot, other.slot));
            found.extend::<Vec<_>>(near);
            rest = far;
            at += 1;
        }
        found.sort_unstable_by_key(|member| member.slot);
        //= docs/arp-plus.md#9.2
        let fit = || found.iter().filter(|member| member.up && !member.joining);
        // Soundness goes before class: who hears nothing takes in nothing. Of equals the lowest slot is first.
        let elected = fit().min_by_key(|member| (!member.sound, member.class != 0)).map(|member| member.slot);
        let slots = found.iter().map(|member| member.slot).collect();
        list.push(Segment { number: list.len() as u32, slots, elected });
    }
    list
}
