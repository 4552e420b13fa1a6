//! `class show`

use super::{Style, Tone, each, facts};
use linkbraid_api::{ClassRecord, ClassSettings, Fallback, value::Value as _};
use linkbraid_terminal::{Table, human};

/// Classes, an empty line between two; the first line of each says what carries it.
pub fn classes(records: &[ClassRecord], style: &Style) -> String {
    each(records, "no classes", |record| class(record, style))
}

fn class(record: &ClassRecord, style: &Style) -> String {
    let mut out = headline(record, style);
    let ClassSettings { policy, fallback, borrow, precedence } = record.settings;
    let (policy, fallback, borrow) = (policy.text(), fallback.text(), borrow.text());
    let precedence = precedence.text();
    let uses = if record.uses == record.members { String::new() } else { record.uses.join(", ") };
    let sent = format!("{}, {}", frames(record.tx_frames), human::bytes(record.tx_bytes));
    let over = match record.tx_over {
        0 => String::new(),
        count => format!("{} waited like others: more than nine tenths of a link", frames(count)),
    };
    out += &facts(&[
        ("members", record.members.join(", ")),
        ("uses", uses),
        ("policy", format!("{policy}, fallback {fallback}, borrow {borrow}, precedence {precedence}")),
        ("ahead", ahead(record)),
        ("sent", sent),
        ("over", over),
    ]);
    // A path in the last column may be long; the numbers stay in line.
    let mut table = Table::new("  ", &[">rule", ">frames", ">bytes", "match"]);
    for rule in &record.rules {
        table.row([
            rule.number.to_string(),
            human::frames(rule.frames),
            human::bytes(rule.bytes),
            rule.matches.clone(),
        ]);
    }
    out + "\n" + &table.render()
}

/// Where its frames leave before others, and where somebody else decides that.
fn ahead(record: &ClassRecord) -> String {
    let ours: Vec<&str> =
        record.queues.iter().filter(|queue| queue.ours).map(|queue| queue.member.as_str()).collect();
    let of_others = record.queues.iter().filter(|queue| !queue.ours).map(|queue| match queue.kind.as_str() {
        "noqueue" => format!("{} has no queue", queue.member),
        kind => format!("on {} as its {kind} decides", queue.member),
    });
    let ours = (!ours.is_empty()).then(|| format!("of others in the queues of {}", ours.join(", ")));
    ours.into_iter().chain(of_others).collect::<Vec<_>>().join("; ")
}

/// `bond0 class voice: ok, 2 of 2 members carry it`
fn headline(record: &ClassRecord, style: &Style) -> String {
    let own = record.members.iter().filter(|member| record.uses.contains(member)).count();
    let of = human::count(record.members.len(), "member");
    let carry = if record.members.len() == 1 { "carries" } else { "carry" };
    let (tone, word, text) = match (record.members.len(), own, record.uses.len()) {
        (0, _, 0) => (Tone::Bad, "down", "no member can carry it".to_owned()),
        (0, ..) => (Tone::Good, "ok", "it uses the members of the default class".to_owned()),
        (_, 0, 0) if record.settings.fallback == Fallback::Block => {
            (Tone::Bad, "down", format!("0 of {of} {carry} it: its frames are dropped"))
        }
        (_, 0, 0) => (Tone::Bad, "down", format!("0 of {of} {carry} it, and no other member can")),
        (_, 0, _) => {
            (Tone::Uneasy, "degraded", format!("0 of {of} {carry} it: it uses those of the default class"))
        }
        (all, own, _) if own < all => (Tone::Uneasy, "degraded", format!("{own} of {of} {carry} it")),
        (_, own, _) => (Tone::Good, "ok", format!("{own} of {of} {carry} it")),
    };
    format!("{} class {}: {}, {text}\n", record.bond, record.name, style.paint(tone, word))
}

fn frames(count: u64) -> String {
    format!("{} frame{}", human::frames(count), if count == 1 { "" } else { "s" })
}
