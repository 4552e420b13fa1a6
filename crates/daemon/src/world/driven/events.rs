//! What the protocols report, in words.

use super::Driven;
use crate::world::history::Change;
use linkbraid_api::EventKind;
use linkbraid_proto::{
    arp_plus::{self, PeerKey},
    auth::{Unkeyed, Why},
    inspector::{self, LaneId, LaneReason, LaneState, MemberReason, MemberState},
};

impl Driven {
    /// An event of the inspector.
    pub(crate) fn inspector_event(&mut self, event: &inspector::Event) {
        match *event {
            inspector::Event::Member { slot, old, new, reason, took } => {
                let (word, text) = match reason {
                    MemberReason::SetDown => self.set_down(slot),
                    other => member_reason(other),
                };
                let change = Change::new(EventKind::Member, self.name_of(slot), word, text);
                self.history.add(change.states(old.map(member_state), new.map(member_state)).took(took));
            }
            inspector::Event::Lane { lane, old, new, reason, took } => {
                let (word, text) = lane_reason(reason);
                if new == LaneState::Up
                    && let Some(peer) = self.host.arp_plus().peer(&lane.peer)
                {
                    let name =
                        peer.address().map_or_else(|| peer.mac().to_string(), |address| address.to_string());
                    self.history.is_proven(&name);
                }
                let change = Change::new(EventKind::Lane, self.name_of_lane(lane), word, text);
                self.history.add(change.states(Some(lane_state(old)), Some(lane_state(new))).took(took));
            }
            inspector::Event::Length { lane, mtu, carries } => {
                let (word, text, old, new) = match carries {
                    true => {
                        ("full_length", format!("packets of {mtu} bytes arrive there again"), "short", "up")
                    }
                    false => {
                        let text = format!("packets of {mtu} bytes do not arrive there, shorter ones do");
                        ("short", text, "up", "short")
                    }
                };
                let change = Change::new(EventKind::Lane, self.name_of_lane(lane), word, text);
                self.history.add(change.states(Some(old), Some(new)));
            }
            inspector::Event::Speed { slot, old, new } => {
                let words =
                    |mbit: Option<u32>| mbit.map_or_else(|| "unknown".to_owned(), |m| format!("{m} Mbit/s"));
                let text = "its speed has changed, and so has its share";
                let change = Change::new(EventKind::Member, self.name_of(slot), "speed", text);
                self.history.add(change.states(Some(&words(old)), Some(&words(new))));
            }
            inspector::Event::HalfDuplex { slot } => {
                let name = self.name_of(slot);
                let text = "half duplex: collisions cost throughput; the other end may have a fixed speed";
                self.history.member(&name, "half_duplex", text);
            }
        }
    }

    /// An event of ARP+.
    pub(crate) fn arp_plus_event(&mut self, event: &arp_plus::Event) {
        match event {
            arp_plus::Event::State { old, new } => {
                tracing::debug!(bond = %self.name, %old, %new, "ARP+ state");
            }
            arp_plus::Event::Peer { key, address, mac, old, new, reason, proven } => {
                let address = address.map_or_else(|| mac.to_string(), |address| address.to_string());
                let (word, text) = peer_reason(*reason);
                let text = format!("{text} (host {key})");
                let change = Change::new(EventKind::Peer, address, word, text).unproven(!proven);
                self.history.add(change.states(old.map(peer_state), new.map(peer_state)));
            }
            arp_plus::Event::Conflict(conflict) => {
                let (bond, text) = (self.name.clone(), conflict.to_string());
                self.history.add(Change::new(EventKind::Conflict, bond, "conflict", text).unproven(true));
            }
            arp_plus::Event::PublishedOnly { mac } => {
                let text = format!(
                    "the host at {mac} speaks ARP+ without an id and stays a plain host; \
                     'linkbraid bond set {} --published-only on' lets such hosts be peers",
                    self.name
                );
                self.history.bond(None, "published_only", text);
            }
            arp_plus::Event::TableFull { hosts } => {
                let text = format!(
                    "the table of peers is full ({hosts} hosts); further ones are treated as plain hosts"
                );
                self.history.bond(None, "table_full", text);
            }
        }
    }

    /// A host speaks ARP+ without a key of ours.
    pub(crate) fn unkeyed(&mut self, host: &Unkeyed) {
        let name = host.address.map_or_else(|| host.mac.to_string(), |address| address.to_string());
        let (word, text) = match host.why {
            Why::NoKey => {
                ("no_key", "its messages are not signed; where a key is required it is a plain host")
            }
            Why::AnotherKey => {
                ("another_key", "it has another key; where a key is required it is a plain host")
            }
        };
        self.history.add(Change::new(EventKind::Peer, name, word, text).unproven(true));
    }

    /// Why a member counts as set down.
    fn set_down(&self, slot: u8) -> (&'static str, &'static str) {
        match self.members.iter().find(|member| member.slot == slot) {
            Some(member) if !member.ours => ("taken_out", "taken out of the bond"),
            Some(member) if member.withdrawn => ("mtu", "its MTU is being changed"),
            Some(member) if member.admin_up && !member.fits() => ("mtu", "its MTU is less than the bond's"),
            _ => member_reason(MemberReason::SetDown),
        }
    }

    /// The name of the member of that slot, or the one it had.
    pub(crate) fn name_of(&self, slot: u8) -> String {
        let member = self.members.iter().find(|member| member.slot == slot);
        let name = member.map(|member| &member.name).or_else(|| self.names.get(&slot));
        name.cloned().unwrap_or_else(|| format!("member {slot}"))
    }

    /// `MEMBER > PEER (MAC)`.
    fn name_of_lane(&self, lane: LaneId) -> String {
        let member = self.name_of(lane.slot);
        if let PeerKey::Plain(mac) = lane.peer {
            let ip = self.host.plain_host(mac).and_then(|host| host.ips.first());
            let name = ip.map_or_else(|| mac.to_string(), |ip| format!("{ip} ({mac})"));
            return format!("{member} > {name}");
        }
        let Some(peer) = self.host.arp_plus().peer(&lane.peer) else {
            return format!("{member} > {}", lane.peer);
        };
        let name = peer.address().map_or_else(|| peer.mac().to_string(), |address| address.to_string());
        let mac = peer.members.iter().find(|theirs| theirs.index == lane.index).map(|theirs| theirs.mac);
        match mac {
            Some(mac) => format!("{member} > {name} ({mac})"),
            None => format!("{member} > {name}"),
        }
    }
}

const fn member_state(state: MemberState) -> &'static str {
    match state {
        MemberState::Up => "up",
        MemberState::Down => "down",
        MemberState::Delayed => "delayed",
    }
}

pub(crate) const fn lane_state(state: LaneState) -> &'static str {
    match state {
        LaneState::Cut => "cut",
        LaneState::Down => "down",
        LaneState::Init => "init",
        LaneState::Up => "up",
        LaneState::Suspect => "suspect",
    }
}

const fn peer_state(state: arp_plus::PeerState) -> &'static str {
    match state {
        arp_plus::PeerState::Alive => "alive",
        arp_plus::PeerState::Silent => "silent",
    }
}

pub(crate) const fn member_reason(reason: MemberReason) -> (&'static str, &'static str) {
    match reason {
        MemberReason::Joined => ("joined", "it has joined the bond"),
        MemberReason::Left => ("left", "it has left the bond"),
        MemberReason::NoCarrier => ("no_carrier", "no carrier"),
        MemberReason::SetDown => ("set_down", "set down"),
        MemberReason::CarrierBack => ("carrier_back", "carrier is back, waiting until it lasts"),
        MemberReason::Waited => ("waited", "carrier has lasted long enough"),
        MemberReason::OnlyOne => ("only_one", "carrier is back, and no other member is up"),
    }
}

const fn lane_reason(reason: LaneReason) -> (&'static str, &'static str) {
    match reason {
        LaneReason::Met => ("met", "seen for the first time"),
        LaneReason::Admitted => ("admitted", "enough probes were answered"),
        LaneReason::ProvenAgain => ("proven_again", "probes are answered again"),
        LaneReason::Slow => ("slow", "an earlier probe was answered late: the lane is slow, and not lost"),
        LaneReason::Answered => ("answered", "a probe was answered"),
        LaneReason::NoAnswer => ("no_answer", "probes are not answered, but those of another lane are"),
        LaneReason::PeerLost => ("peer_lost", "the peer reports that our frames no longer reach it"),
        LaneReason::NoneAnswers => ("none_answers", "no lane of the peer answers; kept in use"),
        LaneReason::MemberDown => ("member_down", "our member is down"),
        LaneReason::PeerMemberDown => ("peer_member_down", "the peer reports that its member is down"),
        LaneReason::MembersUp => ("members_up", "both members are up again"),
    }
}

const fn peer_reason(reason: arp_plus::Reason) -> (&'static str, &'static str) {
    use arp_plus::Reason;
    match reason {
        Reason::Joined => ("joined", "heard for the first time"),
        Reason::Changed => ("changed", "its members or addresses have changed"),
        Reason::Restarted { .. } => ("restarted", "it has restarted"),
        Reason::HeardAgain => ("heard_again", "it was silent and is heard again"),
        Reason::Silent => ("silent", "not heard for a while"),
        Reason::Expired => ("expired", "not heard for too long; treated as a plain host from now on"),
        Reason::Left => ("left", "it announced that it leaves"),
        Reason::Replaced => ("replaced", "the same machine has another identity now"),
        Reason::Evicted => ("evicted", "the table is full, and it never answered a probe"),
        Reason::PublishedOnly => {
            ("published_only", "it speaks ARP+ without an id, and such hosts are not to be peers")
        }
        Reason::LostMacs => ("lost_macs", "its MACs went to another host while it was silent"),
    }
}
