//! `peers`

use super::Style;
use super::human;
use super::table::{Align, Table};
use linkbraid_api::{PeerRecord, PeerState};

/// Peers, one a line, and below it the peer's members.
pub fn peers(records: &[PeerRecord], _style: &Style) -> String {
    if records.is_empty() {
        return "no peers\n".to_owned();
    }
    let mut table = Table::new(
        "",
        &[
            ("bond", Align::Left),
            ("peer", Align::Left),
            ("state", Align::Left),
            ("heard", Align::Right),
            ("member", Align::Left),
            ("live", Align::Left),
            ("weight", Align::Right),
        ],
    );
    for peer in records {
        let state = match peer.state {
            PeerState::Alive => "alive",
            PeerState::Silent => "silent",
        };
        let mut head = [
            peer.bond.clone(),
            peer.address.clone().unwrap_or_else(|| peer.mac.clone()),
            state.to_owned(),
            format!("{} ago", human::span(peer.heard_ms)),
        ];
        if peer.members.is_empty() {
            let [bond, name, state, heard] = head;
            table.row([bond, name, state, heard, "none".to_owned(), String::new(), String::new()]);
            continue;
        }
        for member in &peer.members {
            // The peer's own cells stand beside its first member only.
            let [bond, name, state, heard] = std::mem::take(&mut head);
            table.row([
                bond,
                name,
                state,
                heard,
                member.mac.clone(),
                if member.live { "yes" } else { "no" }.to_owned(),
                member.weight_mbit.map_or_else(|| "unknown".to_owned(), human::rate),
            ]);
        }
    }
    table.render()
}
