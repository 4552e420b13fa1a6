//! What can be seen of a world.

use super::world::{World, key};
use linkbraid_proto::{Time, inspector::*};
use std::{collections::BTreeSet, time::Duration};

impl World {
    pub fn describe(&self) -> String {
        let lanes = self.hosts.iter().map(|host| {
            let lanes = host.inspector.snapshot(self.now()).lanes.into_iter();
            let lane = |lane: LaneSnapshot| {
                format!("{}-{} {:?} ({:?})", lane.lane.slot, lane.lane.index, lane.state, lane.reason)
            };
            format!("planned {:?}: {:?}", host.planned, lanes.map(lane).collect::<Vec<_>>())
        });
        lanes.collect::<Vec<_>>().join("\n")
    }

    /// The lanes of a host towards another that carry traffic, as (slot, index).
    pub fn lanes(&self, at: usize, towards: usize) -> Vec<(u8, u8)> {
        let there = self.hosts[at].planned.iter().filter(|lane| lane.0 == towards);
        there.map(|(_, slot, index)| (*slot, *index)).collect()
    }

    /// All lanes that are proven, used or not.
    pub fn proven(&self, at: usize, towards: usize) -> BTreeSet<(u8, u8)> {
        let lanes = self.hosts[at].inspector.snapshot(self.now()).lanes.into_iter();
        let proven = lanes.filter(|lane| lane.lane.peer == key(towards) && lane.state == LaneState::Up);
        proven.map(|lane| (lane.lane.slot, lane.lane.index)).collect()
    }

    pub fn count(&self, host: usize, counter: Counter) -> u64 {
        self.hosts[host].inspector.counters().get(counter)
    }

    /// Events of lanes that were lost or became suspects, since a time.
    pub fn losses(&self, host: usize, since: Time) -> Vec<(LaneId, LaneState, LaneReason, Duration)> {
        let events = self.hosts[host].events.iter().filter(|(at, _)| *at >= since);
        let loss = |(_, event): &(Time, Event)| match event {
            Event::Lane { lane, new, reason, took, .. } if *new != LaneState::Up => {
                Some((*lane, *new, *reason, *took))
            }
            _ => None,
        };
        events.filter_map(loss).collect()
    }

    pub fn total_sent(&self, host: usize) -> u64 {
        self.sent.iter().filter(|((from, _), _)| *from == host).map(|(_, count)| count).sum()
    }
}
