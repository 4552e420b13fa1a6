//! `lanes`

use linkbraid_api::{LaneRecord, ShareFrom};
use linkbraid_terminal::{Table, human};

/// Lanes, one a line, as the daemon orders them; a peer's name, which may be long, stands above those to it.
pub fn lanes(records: &[LaneRecord]) -> String {
    if records.is_empty() {
        return "no lanes\n".to_owned();
    }
    let mut table = Table::new("  ", &["member", "peer's member", "state", ">share", ">frames", ">sent"]);
    let mut last = None;
    for lane in records {
        let to = (&lane.bond, &lane.peer, &lane.class);
        if last.replace(to) != Some(to) {
            let class = lane.class.as_ref().map_or_else(String::new, |class| format!(", class {class}"));
            table.title(&format!("{} to {}{class}", lane.bond, lane.peer));
        }
        table.row([
            lane.member.clone(),
            lane.peer_mac.clone().unwrap_or_else(|| "any".to_owned()),
            lane.state.clone(),
            // It is known, but not in the plan.
            if lane.share_ppm == 0 { "-".to_owned() } else { human::percent(lane.share_ppm) },
            human::frames(lane.tx_frames),
            human::bytes(lane.tx_bytes),
        ]);
        if let (Some(ShareFrom::Measured), Some(told)) = (lane.share_from, lane.told_kbit) {
            let from = match lane.measured_kbit {
                Some(measured) => format!("{} measured", human::measured_rate(measured)),
                None => "what all lanes carry and lose".to_owned(),
            };
            table.note(&format!("share from {from}, not {} told", human::measured_rate(told)));
        }
        if let Some(class) = &lane.borrowed_from {
            table.note(&format!("borrowed from {class}, while that is idle"));
        }
    }
    table.render()
}
