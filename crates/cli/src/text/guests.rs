//! Guests, one a line.

use linkbraid_api::GuestRecord;

/// How many are shown; JSON has all.
const SHOWN: usize = 16;

/// A line for each guest, and one for those that are not shown.
pub fn lines(guests: &[GuestRecord]) -> Vec<String> {
    let mut lines: Vec<String> = guests.iter().take(SHOWN).map(line).collect();
    if guests.len() > SHOWN {
        lines.push(format!("and {} more, see --json", guests.len() - SHOWN));
    }
    lines
}

/// `52:54:00:00:00:01, 198.18.1.1, vlan 5, not striped: ...`
fn line(guest: &GuestRecord) -> String {
    let mut line = format!("{}, {}", guest.mac, guest.addresses.join(", "));
    if guest.vlan != 0 {
        line.push_str(&format!(", vlan {}", guest.vlan));
    }
    if !guest.striped {
        line.push_str(&format!(", not striped: {}", guest.reason));
    }
    line
}
