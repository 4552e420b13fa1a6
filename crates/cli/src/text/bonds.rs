//! `show`

use super::human;
use super::table::{Align, Table};
use super::{Style, Tone};
use linkbraid_api::{BondRecord, Health, Policy, Stripe};

/// Bonds, an empty line between two; the first line of each says whether it is well.
pub fn bonds(records: &[BondRecord], style: &Style) -> String {
    if records.is_empty() {
        return "no bonds\n".to_owned();
    }
    records.iter().map(|record| bond(record, style)).collect::<Vec<_>>().join("\n")
}

fn bond(record: &BondRecord, style: &Style) -> String {
    let mut out = headline(record, style);
    for conflict in &record.conflicts {
        out.push_str(&format!("  {}  {conflict}\n", style.paint(Tone::Bad, "conflict")));
    }
    let damping = if record.damping { "on" } else { "off" };
    let facts = [
        ("address", record.addresses.join(", ")),
        ("mac", format!("{}, mtu {}", record.mac, record.mtu)),
        ("policy", format!("{}, stripe {}, damping {damping}", policy(record.policy), stripe(record))),
        ("arp+", format!("{}, host id {}", record.arp_plus_state, record.host_id)),
        ("hook", record.hook.clone()),
    ];
    for (name, value) in facts.iter().filter(|(_, value)| !value.is_empty()) {
        out.push_str(&format!("  {name:<8}  {value}\n"));
    }
    for member in &record.members {
        let of_member = record.moved.iter().filter(|moved| moved.member == member.interface);
        let addresses = of_member.map(|moved| moved.address.as_str()).collect::<Vec<_>>();
        if !addresses.is_empty() {
            out.push_str(&format!("  moved     {} from {}\n", addresses.join(", "), member.interface));
        }
    }
    out + "\n" + &members(record)
}

/// `bond0: ok, 4 of 4 members carry traffic, 2 peers`
fn headline(record: &BondRecord, style: &Style) -> String {
    let (word, tone) = match record.health {
        Health::Ok => ("ok", Tone::Good),
        Health::Degraded => ("degraded", Tone::Uneasy),
        Health::Down => ("down", Tone::Bad),
    };
    let live = record.members.iter().filter(|member| member.live).count();
    let reason = if record.reason.is_empty() { String::new() } else { format!(": {}", record.reason) };
    format!(
        "{}: {}, {live} of {} carr{} traffic, {}{reason}\n",
        record.name,
        style.paint(tone, word),
        human::count(record.members.len(), "member"),
        if record.members.len() == 1 { "ies" } else { "y" },
        human::count(record.peers as usize, "peer"),
    )
}

fn members(record: &BondRecord) -> String {
    let mut table = Table::new(
        "  ",
        &[
            ("member", Align::Left),
            ("live", Align::Left),
            ("speed", Align::Right),
            ("weight", Align::Right),
            ("segment", Align::Left),
            ("sent", Align::Right),
            ("received", Align::Right),
            ("reason", Align::Left),
        ],
    );
    for member in &record.members {
        table.row([
            member.interface.clone(),
            if member.live { "yes" } else { "no" }.to_owned(),
            member.speed_mbit.map_or_else(|| "unknown".to_owned(), human::rate),
            human::rate(member.weight_mbit),
            format!("{}{}", member.segment, if member.elected { " elected" } else { "" }),
            human::bytes(member.tx_bytes),
            human::bytes(member.rx_bytes),
            member.reason.clone(),
        ]);
    }
    table.render()
}

/// The policy's word on the command line.
fn policy(policy: Policy) -> &'static str {
    match policy {
        Policy::Spread => "spread",
        Policy::Flow => "flow",
        Policy::ActiveBackup => "active-backup",
    }
}

/// The stripe as asked for, then what it comes to.
fn stripe(record: &BondRecord) -> String {
    let force = human::buffer(record.stripe_bytes);
    match record.stripe {
        Stripe::Auto => format!("auto ({force})"),
        Stripe::Us(us) => format!("{us} us ({force})"),
        Stripe::Bytes(bytes) if bytes == record.stripe_bytes => force,
        Stripe::Bytes(bytes) => format!("{} ({force} in force)", human::buffer(bytes)),
    }
}
