//! `explain`

use super::{Style, Tone};
use linkbraid_api::{ExplainRecord, StepLaneRecord, StepRecord};
use linkbraid_terminal::{Table, human, report::one_line};

/// Narrower than this, text is left to the terminal.
const TEXT_WIDTH_MIN: usize = 20;
/// The longest name of a step.
const NAME_WIDTH: usize = 9;
/// Where text begins.
const INDENT: &str = "             ";

/// What becomes of the frame in the first line; then each decision with its reason.
pub fn explain(record: &ExplainRecord, style: &Style) -> String {
    let verdict = match (&record.member, &record.second_member) {
        (Some(member), Some(second)) if record.sent => format!("leaves by {member}, and a copy by {second}"),
        (Some(member), None) if record.sent => format!("leaves by {member}"),
        _ => "is dropped".to_owned(),
    };
    let tone = if record.sent { Tone::Good } else { Tone::Bad };
    let verdict = style.paint(tone, &one_line(&verdict));
    let mut out = format!("{}: {} {verdict}\n\n", record.bond, record.flow);
    record.steps.iter().for_each(|step| out.push_str(&one(step, style)));
    out
}

fn one(step: &StepRecord, style: &Style) -> String {
    let text = one_line(&step.text);
    let text = match style.width {
        Some(width) => human::wrap(&text, width.saturating_sub(INDENT.len()).max(TEXT_WIDTH_MIN)),
        None => vec![text],
    };
    let text = text.join(&format!("\n{INDENT}"));
    let mut out = format!("  {:<NAME_WIDTH$}  {text}\n", one_line(&step.name));
    if !step.lanes.is_empty() {
        out.push_str(&lanes(&step.lanes));
    }
    out
}

fn lanes(lanes: &[StepLaneRecord]) -> String {
    let mut table = Table::new(INDENT, &["member", "peer's member", ">rate", ">share", ">ahead by", ""]);
    for lane in lanes {
        let note = match lane {
            StepLaneRecord { taken: true, .. } => "taken",
            StepLaneRecord { avoided: true, borrowed_from: Some(_), .. } => {
                "not now: the class that lends it is busy"
            }
            StepLaneRecord { avoided: true, .. } => "not now: its member has failed, or this flow stays away",
            _ => "",
        };
        let note = match &lane.borrowed_from {
            Some(class) => format!("{note} (borrowed from {class})").trim_start().to_owned(),
            None => note.to_owned(),
        };
        table.row([
            lane.member.clone(),
            lane.peer_mac.clone().unwrap_or_else(|| "any".to_owned()),
            human::measured_rate(lane.kbit),
            if lane.share_ppm == 0 { "-".to_owned() } else { human::percent(lane.share_ppm) },
            lane.ahead_bytes.map_or_else(|| "-".to_owned(), human::bytes),
            note,
        ]);
    }
    table.render()
}
