//! `peers`

use super::WIDTH;
use linkbraid_api::{PeerRecord, PeerState};
use linkbraid_terminal::{Table, human};

/// Where notes begin: behind the column of MACs.
const NOTE_AT: usize = 22;

/// The peer's members, one a line; the peer itself, whose address may be long, stands above its members.
pub fn peers(records: &[PeerRecord]) -> String {
    if records.is_empty() {
        return "no peers\n".to_owned();
    }
    let mut table = Table::new("  ", &["member", "live", ">weight", "class"]);
    for peer in records {
        let state = match peer.state {
            PeerState::Alive => "alive",
            PeerState::Silent => "silent",
        };
        let name = peer.address.as_ref().unwrap_or(&peer.mac);
        let heard = human::span(peer.heard_ms);
        table.title(&format!("{} to {name}: {state}, heard {heard} ago", peer.bond));
        if peer.members.is_empty() {
            table.row(["none".to_owned(), String::new(), String::new(), String::new()]);
        }
        for member in &peer.members {
            table.row([
                member.mac.clone(),
                if member.live { "yes" } else { "no" }.to_owned(),
                member.weight_mbit.map_or_else(|| "unknown".to_owned(), human::rate),
                member.class.clone().unwrap_or_default(),
            ]);
        }
        for line in super::guests::lines(&peer.guests, 6, WIDTH - NOTE_AT) {
            table.note(&line);
        }
    }
    table.render()
}
