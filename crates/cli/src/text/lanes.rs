//! `lanes`

use super::Style;
use super::human;
use super::table::{Align, Table};
use linkbraid_api::LaneRecord;

/// Lanes, one a line, as the daemon orders them.
pub fn lanes(records: &[LaneRecord], _style: &Style) -> String {
    if records.is_empty() {
        return "no lanes\n".to_owned();
    }
    let mut table = Table::new(
        "",
        &[
            ("bond", Align::Left),
            ("peer", Align::Left),
            ("member", Align::Left),
            ("peer's member", Align::Left),
            ("share", Align::Right),
            ("frames", Align::Right),
            ("sent", Align::Right),
        ],
    );
    for lane in records {
        table.row([
            lane.bond.clone(),
            lane.peer.clone(),
            lane.member.clone(),
            lane.peer_mac.clone().unwrap_or_else(|| "any".to_owned()),
            human::percent(lane.share_ppm),
            human::frames(lane.tx_frames),
            human::bytes(lane.tx_bytes),
        ]);
    }
    table.render()
}
