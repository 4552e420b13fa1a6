//! What the machine that answers plain hosts is fed: the members as those hosts are to know them.

use super::member::Member;
use crate::{answers, arp_plus::Segment};
use std::collections::BTreeSet;

/// The members that plain hosts may send to. Hosts cannot tell apart what they send: on each segment it goes where
/// traffic of no class goes, or, where that has no member, anywhere.
pub(super) fn members_to_answer_with(members: &[Member], segments: &[Segment]) -> Vec<answers::Member> {
    let segment = |slot: u8| segments.iter().find(|segment| segment.slots.contains(&slot));
    let number = |member: &Member| segment(member.slot).map_or(0, |segment| segment.number);
    let fit = |member: &&Member| member.live() && member.sound;
    let fit_of_no_class = members.iter().filter(fit).filter(|member| member.class == 0);
    let served: BTreeSet<u32> = fit_of_no_class.map(number).collect();
    let answering = |member: &Member| answers::Member {
        slot: member.slot,
        mac: member.mac,
        usable: fit(&member) && (member.class == 0 || !served.contains(&number(member))),
        weight_mbit: member.weight_mbit,
        segment: number(member),
    };
    members.iter().map(answering).collect()
}

/// The slot by which a host's segment is known that was heard on this one: of a member that hosts may send to, if the
/// segment has one. All members there hear a host, those of classes too.
pub(super) fn in_place_of(slot: u8, members: &[answers::Member]) -> u8 {
    let heard = members.iter().find(|member| member.slot == slot);
    let near = |member: &&answers::Member| heard.is_some_and(|heard| heard.segment == member.segment);
    match heard {
        Some(heard) if !heard.usable => {
            members.iter().filter(near).find(|member| member.usable).map_or(slot, |member| member.slot)
        }
        _ => slot,
    }
}

#[cfg(test)]
mod tests {
    use super::{super::tables::tests::member, *};

    #[test]
    fn hosts_are_told_members_of_no_class_unless_their_switch_has_none() {
        let member = |slot: u8, class| Member { class, ..member(slot) };
        let segment = |number, slots: &[u8]| Segment { number, slots: slots.to_vec(), elected: None };
        let segments = [segment(0, &[0, 1]), segment(1, &[2, 3]), segment(2, &[4])];
        let mut members = [member(0, 0), member(1, 1), member(2, 1), member(3, 0), member(4, 1)];
        let usable = |members: &[Member]| {
            members_to_answer_with(members, &segments)
                .into_iter()
                .map(|member| member.usable)
                .collect::<Vec<_>>()
        };
        assert_eq!(usable(&members), [true, false, false, true, true]);
        // A host may have been heard on any member of its switch.
        let at = |members: &[Member]| {
            let known = members_to_answer_with(members, &segments);
            (0..6).map(|slot| in_place_of(slot, &known)).collect::<Vec<_>>()
        };
        assert_eq!(at(&members), [0, 0, 3, 3, 4, 5]);
        members[3].sound = false;
        assert_eq!(usable(&members), [true, false, true, false, true]);
        assert_eq!(at(&members), [0, 0, 2, 2, 4, 5]);
        assert_eq!(at(&[member(0, 0), member(1, 0)])[..2], [0, 1], "both do");
    }
}
