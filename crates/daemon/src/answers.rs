//! Where plain hosts are told to send: the protocol's word goes into the data path, its corrections onto the wire.

use crate::{
    bond::{self, Bond},
    clock::Clock,
    error::About as _,
};
use linkbraid_api::Error;
use linkbraid_dataplane::{ANSWERS_MAX, Answer};
use linkbraid_link::ArpPlusSender;
use linkbraid_proto::{
    answers::{self, Input, Member, Own, PlainHost},
    arp_plus::Segment,
    limits::{ANSWER_HOSTS_MAX, PLAIN_PROBED_MAX},
};
use std::{
    collections::{BTreeMap, BTreeSet},
    fs,
};

/// The counter of questions that the kernel asked everyone (`TX_ASKED_ALL`): each names the bond's MAC.
const ASKED_ALL: &str = "tx_asked_all";

// Those that are probed may be others than those that are told a member.
const _: () = assert!(ANSWERS_MAX >= ANSWER_HOSTS_MAX + PLAIN_PROBED_MAX);

/// What the data path was told, and has told.
#[derive(Debug, Default)]
pub(crate) struct Written {
    rows: BTreeMap<[u8; 6], Answer>,
    asked_all: u64,
}

impl Written {
    /// What an earlier daemon left.
    pub(crate) fn adopt(rows: Vec<([u8; 6], Answer)>) -> Self {
        Self { rows: rows.into_iter().collect(), asked_all: 0 }
    }

    /// Writes the rows that differ from `wanted`: an answer, or none. One that is refused keeps no other out, and is tried
    /// again the next time; the first error.
    fn follow<E>(
        &mut self,
        wanted: &BTreeMap<[u8; 6], Answer>,
        write: impl Fn([u8; 6], Option<Answer>) -> Result<(), E>,
    ) -> Result<(), E> {
        let mut first = Ok(());
        let mut keep = |result: Result<(), E>| {
            let done = result.is_ok();
            if first.is_ok() {
                first = result;
            }
            done
        };
        // These first: they make room.
        self.rows.retain(|mac, _| wanted.contains_key(mac) || !keep(write(*mac, None)));
        for (mac, row) in wanted {
            if self.rows.get(mac) != Some(row) && keep(write(*mac, Some(*row))) {
                self.rows.insert(*mac, *row);
            }
        }
        first
    }
}

/// The members as plain hosts are told of them. Hosts cannot tell apart what they send: on each segment it goes where the
/// rest goes, or, where that has no member, anywhere.
fn told(members: &[bond::Member], segments: &[Segment]) -> Vec<Member> {
    let segment = |slot: u8| segments.iter().find(|segment| segment.slots.contains(&slot));
    let number = |member: &bond::Member| segment(member.slot).map_or(0, |segment| segment.number);
    let fit = |member: &&bond::Member| member.live() && member.sound;
    let fit_rest = members.iter().filter(fit).filter(|member| member.class == 0);
    let with_rest: BTreeSet<u32> = fit_rest.map(number).collect();
    let told = |member: &bond::Member| Member {
        slot: member.slot,
        mac: member.mac,
        usable: fit(&member) && (member.class == 0 || !with_rest.contains(&number(member))),
        weight_mbit: member.weight_mbit(),
        segment: number(member),
    };
    members.iter().map(told).collect()
}

/// The slot by which a host's segment is known that was heard on this one: of a member that hosts may be told of, if the
/// segment has one. All members there hear a host, those of classes too.
fn in_place_of(slot: u8, members: &[Member]) -> u8 {
    let heard = members.iter().find(|member| member.slot == slot);
    let near = |member: &&Member| heard.is_some_and(|heard| heard.segment == member.segment);
    match heard {
        Some(heard) if !heard.usable => {
            members.iter().filter(near).find(|member| member.usable).map_or(slot, |member| member.slot)
        }
        _ => slot,
    }
}

/// Whether this host forwards IPv6 that comes in on that interface.
pub(crate) fn forwards_ipv6(name: &str) -> bool {
    let forwarding = format!("/proc/sys/net/ipv6/conf/{name}/forwarding");
    fs::read_to_string(forwarding).is_ok_and(|text| text.trim() == "1")
}

impl Bond {
    /// Tells which members hosts may be sent to, and what the bond is to them.
    pub(crate) fn tell_answers(&mut self, clock: Clock) {
        let members = told(&self.members, self.arp_plus.segments());
        let own = Own { mac: self.mac, addresses: self.addresses.clone(), router: self.is_router() };
        self.answers.handle(clock.now(), Input::Members(members));
        self.answers.handle(clock.now(), Input::Own(own));
    }

    /// Whether the kernel forwards IPv6 for others, as its own advertisements tell: without that flag hosts would drop us as
    /// their router.
    pub(crate) fn is_router(&self) -> bool {
        forwards_ipv6(&self.saved.name)
    }

    /// Tells who the plain hosts are.
    pub(crate) fn tell_plain_hosts(&mut self, clock: Clock) {
        let members = told(&self.members, self.arp_plus.segments());
        let hosts = self.plain.hosts.iter().map(|host| PlainHost {
            mac: host.mac,
            ips: host.ips.clone(),
            heard_slot: host.heard_slot.map(|slot| in_place_of(slot, &members)),
        });
        let hosts = hosts.collect();
        self.answers.handle(clock.now(), Input::Hosts(hosts));
    }

    /// Looks whether the kernel has asked everyone something.
    pub(crate) fn look_at_questions(&mut self, clock: Clock) -> Result<(), Error> {
        let count = self.path.reason(ASKED_ALL).about(&self.saved.name, "cannot read counters")?;
        if count.frames != self.written.asked_all {
            self.written.asked_all = count.frames;
            self.answers.handle(clock.now(), Input::Broadcast);
        }
        Ok(())
    }

    /// Carries out what the protocol wants; whether there was anything.
    pub(crate) fn act_answers(&mut self, sender: &mut ArpPlusSender) -> bool {
        let mut did_something = false;
        while let Some(action) = self.answers.poll_action() {
            did_something = true;
            match action {
                answers::Action::Assign(_) => {
                    if let Err(error) = self.write_answers() {
                        tracing::error!(%error, "plain hosts are not told their members");
                    }
                }
                answers::Action::Send { slot, frame } => self.send(sender, slot, &frame),
            }
        }
        did_something
    }

    /// Writes who is told what, and whose replies to probes are wanted.
    pub(crate) fn write_answers(&mut self) -> Result<(), Error> {
        let mut rows: BTreeMap<[u8; 6], Answer> =
            self.answers.table().map(|(mac, slot)| (mac.0, Answer { slot, probed: false })).collect();
        let bond = self.members.iter().find(|member| member.mac == self.mac).map(|member| member.slot);
        for report in self.plain.probed() {
            if let Some(row) = rows.get_mut(&report.mac.0) {
                row.probed = true;
            } else if let Some(slot) = bond {
                rows.insert(report.mac.0, Answer { slot, probed: true });
            }
        }
        let path = &self.path;
        let written = self.written.follow(&rows, |mac, row| match row {
            Some(row) => path.set_answer(mac, row.slot, row.probed),
            None => path.delete_answer(mac),
        });
        written.about(&self.saved.name, "cannot tell plain hosts their members")
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn rows(hosts: impl Iterator<Item = u8>, slot: u8) -> BTreeMap<[u8; 6], Answer> {
        hosts.map(|host| ([2, 0, 0, 0, 0, host], Answer { slot, probed: false })).collect()
    }

    #[test]
    fn hosts_are_told_members_of_the_rest_unless_their_switch_has_none() {
        let member = |slot: u8, class| bond::Member { class, ..crate::tables::tests::member(slot) };
        let segment = |number, slots: &[u8]| Segment { number, slots: slots.to_vec(), elected: None };
        let segments = [segment(0, &[0, 1]), segment(1, &[2, 3]), segment(2, &[4])];
        let mut members = [member(0, 0), member(1, 1), member(2, 1), member(3, 0), member(4, 1)];
        let usable = |members: &[bond::Member]| {
            told(members, &segments).into_iter().map(|member| member.usable).collect::<Vec<_>>()
        };
        assert_eq!(usable(&members), [true, false, false, true, true]);
        // A host may have been heard on any member of its switch.
        let at = |members: &[bond::Member]| {
            let told = told(members, &segments);
            (0..6).map(|slot| in_place_of(slot, &told)).collect::<Vec<_>>()
        };
        assert_eq!(at(&members), [0, 0, 3, 3, 4, 5]);
        members[3].sound = false;
        assert_eq!(usable(&members), [true, false, true, false, true]);
        assert_eq!(at(&members), [0, 0, 2, 2, 4, 5]);
    }

    #[test]
    fn a_row_that_is_refused_keeps_no_other_out_and_is_tried_again() {
        let mut written = Written::default();
        let all = rows(1..=9, 0);
        let refused = written.follow(&all, |mac, _| if mac[5] == 4 { Err("full") } else { Ok(()) });
        assert_eq!(refused, Err("full"));
        assert_eq!(written.rows.len(), 8, "the others are there, and known to be");
        let tried = std::cell::RefCell::new(Vec::new());
        let again = written.follow(&all, |mac, row| {
            tried.borrow_mut().push((mac[5], row.is_some()));
            Ok::<_, ()>(())
        });
        assert_eq!((again, tried.take()), (Ok(()), vec![(4, true)]));
        // What cannot be deleted is still there.
        let fewer = rows(1..=7, 0);
        let refused = written.follow(&fewer, |mac, _| if mac[5] == 8 { Err("busy") } else { Ok(()) });
        assert_eq!((refused, written.rows.len()), (Err("busy"), 8));
        assert!(written.rows.contains_key(&[2, 0, 0, 0, 0, 8]));
    }
}
