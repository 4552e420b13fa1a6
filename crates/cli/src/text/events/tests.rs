use super::super::{Clock, Style, bonds, json_line, tests::samples};
use super::event;
use linkbraid_api::{EventKind, EventRecord};

const PLAIN: Style = Style { colour: false, width: None };

fn clock() -> Clock {
    Clock::fixed(samples::NOON_MS, jiff::tz::TimeZone::UTC)
}

fn line(record: &EventRecord) -> String {
    event(record, &PLAIN, &clock())
}

#[test]
fn monitor_tells_each_event_in_one_line() {
    let text: String = samples::events().iter().map(line).collect();
    assert_eq!(text, include_str!("../tests/golden/monitor.txt"));
}

#[test]
fn show_tells_the_last_eight_in_lines_that_a_terminal_can_hold() {
    let mut bond = samples::bond();
    bond.members.truncate(2);
    bond.members[1].live = false;
    bond.members[1].reason = "no carrier".into();
    bond.events = samples::events();
    let text = bonds(&[bond.clone()], &PLAIN, &clock());
    assert_eq!(text, include_str!("../tests/golden/lately.txt"));

    bond.events.clear();
    assert!(!bonds(&[bond], &PLAIN, &clock()).contains("lately"), "nothing happened");
}

#[test]
fn what_happened_on_another_day_is_dated() {
    let mut bond = samples::bond();
    bond.events = samples::events();
    bond.events.truncate(5);
    let later = Clock::fixed(samples::NOON_MS + 86_400_000, jiff::tz::TimeZone::UTC);
    let text = bonds(&[bond], &PLAIN, &later);
    assert!(text.contains("\n  2026-11-20 12:00:01.234  member eth1 "), "{text}");
    for line in text.lines() {
        assert!(line.chars().count() <= 80, "{line}");
    }
}

#[test]
fn a_terminal_gets_lines_that_it_can_hold_with_all_the_words() {
    let mut records = samples::events();
    records[4].object = "eth2 > 2001:db8:1234:5678:9abc:def0:1234:5678 (02:00:00:00:01:02)".into();
    let words = |text: &str| text.split_whitespace().map(str::to_owned).collect::<Vec<_>>();
    for record in &records {
        let whole = line(record);
        for width in [70, 80, 100] {
            let text = event(record, &PLAIN.width(Some(width)), &clock());
            assert!(text.lines().all(|line| line.chars().count() <= width), "{width}: {text}");
            assert_eq!(words(&text), words(&whole));
        }
        assert_eq!(event(record, &PLAIN.width(Some(200)), &clock()), whole);
        assert_eq!(words(&event(record, &PLAIN.width(Some(1)), &clock())), words(&whole));
    }
    assert_eq!(
        event(&records[4], &PLAIN.width(Some(80)), &clock()),
        "13:01:01.007  bond0  lane eth2 > 2001:db8:1234:5678:9abc:def0:1234:5678\n\
        \x20                    (02:00:00:00:01:02)\n\
        \x20                    up -> suspect\n\
        \x20                    no probe was answered within the detection time\n\
        \x20                    (found in 128 ms)\n"
    );
}

#[test]
fn states_have_colours_and_unknown_words_none() {
    let colour = |kind, old, new| {
        let record = samples::event(0, kind, "eth1", old, new);
        event(&record, &Style::new(true), &clock())
    };
    assert!(colour(EventKind::Member, Some("down"), Some("up")).contains(" down -> \x1b[32mup\x1b[0m\n"));
    assert!(colour(EventKind::Lane, Some("up"), Some("suspect")).contains("up -> \x1b[33msuspect\x1b[0m"));
    assert!(colour(EventKind::Peer, Some("alive"), None).contains("alive -> \x1b[31mgone\x1b[0m"));
    assert!(colour(EventKind::Conflict, None, None).contains("\x1b[31mconflict\x1b[0m eth1"));
    assert!(!colour(EventKind::Member, Some("1 Gbit/s"), Some("100 Mbit/s")).contains('\x1b'));
}

#[test]
fn colour_moves_no_column() {
    let bare = |text: String| {
        let codes = ["\x1b[31m", "\x1b[32m", "\x1b[33m", "\x1b[0m"];
        codes.iter().fold(text, |text, code| text.replace(code, ""))
    };
    let mut bond = samples::bond();
    bond.events = samples::events();
    let plain = bonds(&[bond.clone()], &PLAIN, &clock());
    assert_eq!(bare(bonds(&[bond], &Style::new(true), &clock())), plain);
    for record in samples::events() {
        assert_eq!(bare(event(&record, &Style::new(true), &clock())), line(&record));
    }
}

#[test]
fn a_change_to_the_same_is_told_once() {
    let record = samples::event(0, EventKind::Member, "eth1", Some("up"), Some("up"));
    assert_eq!(line(&record), "12:00:00.000  bond0  member eth1   up\n");
}

#[test]
fn whatever_a_name_holds_it_is_one_line_without_escapes() {
    let mut record = samples::event(0, EventKind::Member, "e\x1b[31m\n", Some("u\np"), Some("\x07"));
    record.text = "no\r\ncarrier".into();
    let text = line(&record);
    assert_eq!(text.matches(char::is_control).count(), 1, "{text:?}");
    let mut bond = samples::bond();
    bond.events = vec![record.clone()];
    bond.members[0].interface = "e\x1b[31m".into();
    assert!(!bonds(&[bond], &PLAIN, &clock()).contains(['\x1b', '\r', '\x07']));
    assert_eq!(json_line(&record).matches(char::is_control).count(), 1);
}
