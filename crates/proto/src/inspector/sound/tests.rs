//! Every mix of votes, and that counting a few peers again is the same as counting all.

use super::*;
use crate::{Time, inspector::*};
use linkbraid_wire::{HostId, MacAddr};
use proptest::prelude::*;

//= docs/arp-plus.md#11.11 type=test
#[test]
fn one_proven_lane_outweighs_all_others() {
    for (votes, verdict) in [
        ([1, 9, 9], Verdict::Alive),
        ([0, 1, 9], Verdict::Failed),
        ([0, 0, 1], Verdict::Suspect),
        ([0, 0, 0], Verdict::Unknown),
    ] {
        assert_eq!(Tally { votes }.verdict(), verdict);
    }
    let mut lane = Lane::new(Time::ZERO, MacAddr([2, 0, 0, 0, 0, 1]), true, &Timing::default());
    let mut say = |state, fresh| {
        (lane.state, lane.fresh) = (state, fresh);
        [vote(&lane, false), vote(&lane, true)]
    };
    for fresh in [false, true] {
        assert_eq!(say(LaneState::Up, fresh), [Some(Vote::For); 2]);
        assert_eq!(say(LaneState::Suspect, fresh), [Some(Vote::Doubt); 2]);
        assert_eq!(say(LaneState::Cut, fresh), [None; 2], "the member, or the peer's, is down anyway");
    }
    for state in [LaneState::Down, LaneState::Init] {
        assert_eq!(say(state, true), [None; 2], "not tested yet");
        assert_eq!(say(state, false), [None; 2], "never proven: it may lead to another switch");
    }
    lane.known = true;
    let mut say = |state, fresh| {
        (lane.state, lane.fresh) = (state, fresh);
        [vote(&lane, false), vote(&lane, true)]
    };
    for state in [LaneState::Down, LaneState::Init] {
        assert_eq!(say(state, true), [None; 2], "not tested yet");
        assert_eq!(say(state, false), [None, Some(Vote::Against)]);
    }
}

fn key(host: u8) -> PeerKey {
    PeerKey::Host(HostId([host; 16]))
}

proptest! {
    //= docs/arp-plus.md#11.11 type=test
    #[test]
    fn replaced_votes_leave_nothing_behind(
        course in prop::collection::vec((0u8..6, prop::collection::vec((0u8..4, 0usize..3), 0..4)), 0..60),
    ) {
        let mut sound = Sound::default();
        let mut all: BTreeMap<u8, BTreeMap<u8, Vote>> = BTreeMap::new();
        let verdicts = |sound: &Sound| [0, 1, 2, 3].map(|slot| sound.verdict(slot));
        for (host, said) in course {
            let said: BTreeMap<u8, Vote> =
                said.into_iter().map(|(slot, vote)| (slot, [Vote::For, Vote::Against, Vote::Doubt][vote])).collect();
            let before = verdicts(&sound);
            let changed = sound.replace(key(host), said.clone());
            all.insert(host, said);
            for slot in 0..4 {
                let mut tally = Tally::default();
                let votes = all.values().filter_map(|votes| votes.get(&slot));
                votes.for_each(|vote| tally.votes[*vote as usize] += 1);
                prop_assert_eq!(sound.verdict(slot), tally.verdict());
            }
            prop_assert_eq!(changed, before != verdicts(&sound));
        }
        (0..6).for_each(|host| _ = sound.replace(key(host), BTreeMap::new()));
        prop_assert!(sound.votes.is_empty() && sound.tallies.is_empty());
    }
}
