//! `show`

use super::events::Words;
use super::{Clock, Style, Tone, WIDTH, each, facts, health, severity};
use linkbraid_api::{
    Auth, BondRecord, EventRecord, FindingRecord, KeyRecord, MemberRecord, ShareFrom, Stripe,
    value::Value as _,
};
use linkbraid_terminal::{Table, human};

/// How many of the last events are shown.
const LATELY: usize = 8;

/// Bonds, an empty line between two; the first line of each says whether it is well.
pub fn bonds(records: &[BondRecord], style: &Style, clock: &Clock) -> String {
    each(records, "no bonds", |record| bond(record, style, clock))
}

fn bond(record: &BondRecord, style: &Style, clock: &Clock) -> String {
    let mut out = headline(record, style);
    for conflict in &record.conflicts {
        out.push_str(&format!("  {}  {conflict}\n", style.paint(Tone::Bad, "conflict")));
    }
    for finding in &record.findings {
        out.push_str(&found(finding, &record.name, style));
    }
    let settings = &record.settings;
    let (policy, damping) = (settings.policy.text(), settings.damping.text());
    out += &facts(&[
        ("address", record.addresses.join(", ")),
        ("mac", format!("{}, mtu {}", record.mac, record.mtu)),
        ("policy", format!("{policy}, stripe {}, damping {damping}", stripe(record))),
        ("probes", inspector(record)),
        ("arp+", format!("{}, host id {}", record.arp_plus_state, record.host_id)),
        ("keys", keys(record.settings.auth, &record.keys)),
        ("hook", record.hook.clone()),
        ("latency", if settings.latency { "measured".to_owned() } else { String::new() }),
    ]);
    for member in &record.members {
        let of_member = record.moved.iter().filter(|moved| moved.member == member.interface);
        let addresses = of_member.map(|moved| moved.address.as_str()).collect::<Vec<_>>();
        if !addresses.is_empty() {
            out.push_str(&format!("  moved     {} from {}\n", addresses.join(", "), member.interface));
        }
    }
    for member in &record.absent {
        out.push_str(&format!("  absent    {member}, joins again as soon as it can\n"));
    }
    for line in super::guests::lines(&record.guests, 10, WIDTH - 2) {
        out.push_str(&format!("  {line}\n"));
    }
    out + "\n" + &members(record) + &lately(&record.events, style, clock)
}

/// `bond0: ok, 4 of 4 members carry traffic, 2 peers`
fn headline(record: &BondRecord, style: &Style) -> String {
    // One that is ready and has no proven lane carries none either, and has its reason.
    let carries = |member: &&MemberRecord| member.live && member.reason.is_empty();
    let live = record.members.iter().filter(carries).count();
    let all = record.members.len() + record.absent.len();
    let reason = if record.reason.is_empty() { String::new() } else { format!(": {}", record.reason) };
    format!(
        "{}: {}, {live} of {} carr{} traffic, {}{reason}\n",
        record.name,
        health(record.health, style),
        human::count(all, "member"),
        if all == 1 { "ies" } else { "y" },
        human::count(record.peers as usize, "peer"),
    )
}

/// What is not as it is to be, and the command that helps below it.
fn found(finding: &FindingRecord, bond: &str, style: &Style) -> String {
    let (word, tone) = severity(finding.severity);
    let object = if finding.object == bond { String::new() } else { format!("{}: ", finding.object) };
    let padding = " ".repeat(8usize.saturating_sub(word.len()));
    let mut out = format!("  {}{padding}  {object}{}\n", style.paint(tone, word), finding.text);
    if let Some(hint) = &finding.hint {
        out.push_str(&format!("            hint: {hint}\n"));
    }
    out
}

fn members(record: &BondRecord) -> String {
    let mut table =
        Table::new("  ", &["member", "live", ">speed", ">weight", "segment", ">sent", ">received", "class"]);
    for member in &record.members {
        table.row([
            member.interface.clone(),
            if member.live { "yes" } else { "no" }.to_owned(),
            member.speed_mbit.map_or_else(|| "unknown".to_owned(), human::rate),
            human::rate(member.weight_mbit),
            format!("{}{}", member.segment, if member.elected { " elected" } else { "" }),
            human::bytes(member.tx_bytes),
            human::bytes(member.rx_bytes),
            member.class.clone().unwrap_or_default(),
        ]);
        // A sentence, which as a column would make the table wider than a terminal.
        for line in human::wrap(&member.reason, WIDTH / 2) {
            table.note(&line);
        }
        if let Some(measured) = member.measured_kbit {
            let measured = human::measured_rate(measured);
            table.note(&match member.share_from {
                Some(ShareFrom::Measured) => format!("{measured} measured, which its share follows"),
                Some(ShareFrom::Fixed) => format!("{measured} measured, but its share is fixed"),
                Some(ShareFrom::Told) | None => format!("{measured} measured, which fits its share"),
            });
        } else if member.share_from == Some(ShareFrom::Measured) {
            table.note("not measured; its share follows what all lanes carry and lose");
        }
    }
    table.render()
}

/// The last events, oldest first, in lines that a terminal can hold.
pub fn lately(events: &[EventRecord], style: &Style, clock: &Clock) -> String {
    let events = &events[events.len().saturating_sub(LATELY)..];
    if events.is_empty() {
        return String::new();
    }
    let moments = events.iter().map(|event| clock.moment(event.time_ms)).collect::<Vec<_>>();
    let indent = moments.iter().map(|moment| moment.len()).max().unwrap_or_default();
    let mut out = "\n  lately:\n".to_owned();
    for (event, moment) in events.iter().zip(&moments) {
        let lines = Words::of(event).lines(WIDTH - indent - 4, style);
        for (number, line) in lines.iter().enumerate() {
            let begin = if number == 0 { moment } else { "" };
            out.push_str(&format!("  {begin:>indent$}  {line}\n"));
        }
    }
    out
}

/// When links are probed and trusted, in the words of the options.
fn inspector(record: &BondRecord) -> String {
    let settings = &record.settings.inspector;
    let waits = format!(
        "up-delay {}, hold-max {}",
        human::setting(settings.up_delay.0.into()),
        human::setting(settings.hold_max.0.into())
    );
    if !settings.probes {
        return format!("off, {waits}");
    }
    let (interval, multiplier) = (u64::from(settings.probe_interval.0), settings.probe_multiplier.0);
    let within = human::setting(interval * u64::from(multiplier));
    let every = human::setting(interval);
    format!("every {every}, lost after {multiplier} ({within}), {waits}")
}

/// `7f3a01c2 (signs), 01c27f3a, auth require`; nothing where everybody is believed.
pub(super) fn keys(auth: Auth, keys: &[KeyRecord]) -> String {
    if auth == Auth::Off {
        return String::new();
    }
    let one = |key: &KeyRecord| format!("{}{}", key.id, if key.signs { " (signs)" } else { "" });
    let all: Vec<String> = keys.iter().map(one).collect();
    let all = if all.is_empty() { "none".to_owned() } else { all.join(", ") };
    format!("{all}, auth {}", auth.text())
}

/// The stripe as asked for, then what it comes to.
fn stripe(record: &BondRecord) -> String {
    let force = human::buffer(record.stripe_bytes);
    match record.settings.stripe {
        Stripe::Auto => format!("auto ({force})"),
        Stripe::Us(us) => format!("{us} us ({force})"),
        Stripe::Bytes(bytes) if bytes == record.stripe_bytes => force,
        Stripe::Bytes(bytes) => format!("{} ({force} in force)", human::buffer(bytes)),
    }
}
