//! Where plain hosts are told to send: the protocol's word goes into the data path, its corrections onto the wire.

use crate::{bond::Bond, clock::Clock, error::About as _};
use linkbraid_api::Error;
use linkbraid_dataplane::Answer;
use linkbraid_link::ArpPlusSender;
use linkbraid_proto::answers::{self, Input, Member, Own, PlainHost};
use std::{collections::BTreeMap, fs};

/// The counter of questions that the kernel asked everyone (`TX_ASKED_ALL`): each names the bond's MAC.
const ASKED_ALL: &str = "tx_asked_all";

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
}

impl Bond {
    /// Tells which members hosts may be sent to, and what the bond is to them.
    pub(crate) fn tell_answers(&mut self, clock: Clock) {
        let segments = self.arp_plus.segments();
        let segment = |slot: u8| segments.iter().find(|segment| segment.slots.contains(&slot));
        let members = self.members.iter().map(|member| Member {
            slot: member.slot,
            mac: member.mac,
            usable: member.live() && member.sound,
            weight_mbit: member.weight_mbit(),
            segment: segment(member.slot).map_or(0, |segment| segment.number),
        });
        let members = members.collect();
        // As the kernel's own advertisements have it: without the flag hosts would drop us as their router.
        let forwarding = format!("/proc/sys/net/ipv6/conf/{}/forwarding", self.saved.name);
        let router = fs::read_to_string(forwarding).is_ok_and(|text| text.trim() == "1");
        let own = Own { mac: self.mac, addresses: self.addresses.clone(), router };
        self.answers.handle(clock.now(), Input::Members(members));
        self.answers.handle(clock.now(), Input::Own(own));
    }

    /// Tells who the plain hosts are.
    pub(crate) fn tell_plain_hosts(&mut self, clock: Clock) {
        let hosts = self.plain.hosts.iter().map(|host| PlainHost {
            mac: host.mac,
            ips: host.ips.clone(),
            heard_slot: host.heard_slot,
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
        let about = "cannot tell plain hosts their members";
        let name = &self.saved.name;
        for gone in self.written.rows.keys().filter(|mac| !rows.contains_key(*mac)) {
            self.path.delete_answer(*gone).about(name, about)?;
        }
        for (mac, row) in rows.iter().filter(|(mac, row)| self.written.rows.get(*mac) != Some(row)) {
            self.path.set_answer(*mac, row.slot, row.probed).about(name, about)?;
        }
        self.written.rows = rows;
        Ok(())
    }
}
