//! Guests, behind the word `guest`.

use linkbraid_api::GuestRecord;
use linkbraid_terminal::human;

/// How many are shown; JSON has all.
const SHOWN: usize = 16;

/// Lines of at most that width, each with its label before it: `guest` and spaces up to `indent`.
pub fn lines(guests: &[GuestRecord], indent: usize, width: usize) -> Vec<String> {
    let labelled = |text: String| {
        let label = |number| if number == 0 { "guest" } else { "" };
        let lines = human::wrap(&text, width.saturating_sub(indent)).into_iter().enumerate();
        lines.map(|(number, line)| format!("{:<indent$}{line}", label(number))).collect::<Vec<_>>()
    };
    let mut lines: Vec<String> = guests.iter().take(SHOWN).map(line).flat_map(labelled).collect();
    if guests.len() > SHOWN {
        lines.push(format!("{:<indent$}and {} more, see --json", "", guests.len() - SHOWN));
    }
    lines
}

/// `52:54:00:00:00:01 by eth1, 198.18.1.1, vlan 5, not striped: ...`
fn line(guest: &GuestRecord) -> String {
    let by = if guest.members.is_empty() { "" } else { " by " };
    let mut line =
        format!("{}{by}{}, {}", guest.mac, guest.members.join(" and "), guest.addresses.join(", "));
    if guest.vlan != 0 {
        line.push_str(&format!(", vlan {}", guest.vlan));
    }
    if !guest.striped {
        line.push_str(&format!(", not striped: {}", guest.reason));
    }
    line
}
