use super::source::Sample;
use super::state::State;
use super::view::Screen;
use crate::text::Clock;
use crate::text::tests::samples;
use jiff::tz::TimeZone;
use linkbraid_api::{Error, Health};
use ratatui::Terminal;
use ratatui::backend::TestBackend;
use ratatui::crossterm::event::{KeyCode, KeyEvent, KeyModifiers};
use ratatui::style::Color;
use std::path::Path;
use std::time::{Duration, Instant};

/// The moment in all pictures.
const NOW_MS: u64 = samples::NOON_MS + 3_700_000;

fn sample(at: Instant) -> Sample {
    let mut bond = samples::bond();
    bond.events = samples::events();
    Sample {
        at,
        bonds: vec![bond],
        fabrics: vec![samples::fabric()],
        lanes: samples::lanes(),
        latency: samples::latency(),
    }
}

/// A bond of which a cable was pulled, over which something is sent: two samples with two seconds between them.
fn state() -> State {
    let start = Instant::now();
    let mut later = sample(start + Duration::from_secs(2));
    let bond = &mut later.bonds[0];
    (bond.health, bond.reason) = (Health::Degraded, "'eth1' has no carrier".into());
    (bond.members[0].live, bond.members[0].reason) = (false, "no carrier".into());
    for (member, mbit) in bond.members.iter_mut().zip([0, 941, 400, 37]) {
        member.tx_bytes += mbit * 250_000;
        member.rx_bytes += mbit * 2_500;
    }
    later.fabrics[0].peers[0].tx_bytes += 600_000_000;
    later.lanes.iter_mut().for_each(|lane| lane.tx_bytes += 100_000_000);
    let mut state = State::default();
    state.sample(Ok(sample(start)));
    state.sample(Ok(later));
    state
}

fn press(state: &mut State, keys: &[KeyCode]) -> bool {
    keys.iter().all(|code| state.key(KeyEvent::new(*code, KeyModifiers::NONE)))
}

fn typed(state: &mut State, text: &str) {
    let keys: Vec<KeyCode> = text.chars().map(KeyCode::Char).collect();
    assert!(press(state, &keys));
}

fn terminal(state: &State, colour: bool, (width, height): (u16, u16)) -> Terminal<TestBackend> {
    let clock = Clock::fixed(NOW_MS, TimeZone::UTC);
    let mut terminal = Terminal::new(TestBackend::new(width, height)).unwrap();
    let screen = Screen { state, clock: &clock, colour };
    terminal.draw(|frame| frame.render_widget(screen, frame.area())).unwrap();
    terminal
}

/// The screen as text.
fn picture(state: &State, size: (u16, u16)) -> String {
    let terminal = terminal(state, false, size);
    let buffer = terminal.backend().buffer();
    let line =
        |y| (0..size.0).map(|x| buffer[(x, y)].symbol()).collect::<String>().trim_end().to_owned() + "\n";
    (0..size.1).map(line).collect()
}

/// Holds a screen of 80 x 24 against the one on file; `UPDATE=1 cargo test -p linkbraid-cli top` writes that again.
#[track_caller]
fn is(state: &State, name: &str) {
    let path = Path::new(env!("CARGO_MANIFEST_DIR")).join("src/top/tests").join(name);
    let picture = picture(state, (80, 24));
    if std::env::var_os("UPDATE").is_some() {
        std::fs::write(&path, &picture).unwrap();
    }
    assert_eq!(picture, std::fs::read_to_string(&path).expect("the picture is on file"));
}

#[test]
fn every_page_at_80_by_24() {
    let mut state = state();
    for name in ["members.txt", "lanes.txt", "latency.txt", "events.txt"] {
        is(&state, name);
        assert!(press(&mut state, &[KeyCode::Tab]));
    }
    // Around once.
    is(&state, "members.txt");
    assert!(press(&mut state, &[KeyCode::Left]));
    is(&state, "events.txt");
}

#[test]
fn a_filter_leaves_what_contains_it_with_its_title() {
    let mut state = state();
    typed(&mut state, "/ETH2");
    is(&state, "typing.txt");
    assert!(press(&mut state, &[KeyCode::Enter]));
    let text = picture(&state, (80, 24));
    assert!(text.contains("bond0  degraded") && text.contains("  eth2 "), "{text}");
    assert!(
        !text.contains("  eth3 ") && text.contains("filter 'eth2'") || text.contains("filter 'ETH2'"),
        "{text}"
    );
    typed(&mut state, "/");
    assert!(press(&mut state, &[KeyCode::Backspace, KeyCode::Esc]));
    is(&state, "members.txt");
    // Within a filter, no key has another meaning.
    typed(&mut state, "/q");
    assert!(state.typing && state.filter == "q");
}

#[test]
fn paused_it_stands_still_and_then_shows_what_came_meanwhile() {
    let mut state = state();
    typed(&mut state, "p");
    let before = picture(&state, (80, 24));
    assert!(before.contains(" paused "), "{before}");
    let mut next = sample(Instant::now() + Duration::from_secs(60));
    next.bonds[0].name = "bond1".into();
    state.sample(Ok(next));
    state.event(samples::event(3_690_000, linkbraid_api::EventKind::Member, "eth7", None, Some("up")));
    assert_eq!(picture(&state, (80, 24)), before);
    typed(&mut state, "p");
    let after = picture(&state, (80, 24));
    assert!(after.contains("bond1") && after.contains("eth7") && !after.contains(" paused "), "{after}");
}

#[test]
fn without_a_daemon_the_last_that_was_known_stays() {
    let mut state = state();
    state.sample(Err(Error::new("/run/x.sock", "cannot reach the daemon", "none is running on this socket")));
    let text = picture(&state, (80, 24));
    let first = text.lines().next().unwrap();
    let whole = "linkbraid top  cannot reach the daemon: none is running on this socket 13:01:40";
    assert!(first.ends_with(whole), "{text}");
    assert!(text.contains("eth4"), "{text}");
    state.sample(Ok(sample(Instant::now())));
    assert!(!picture(&state, (80, 24)).contains("cannot reach"));
}

#[test]
fn long_pages_scroll_below_the_names_of_their_columns() {
    let mut state = state();
    typed(&mut state, "2");
    let size = (80, 9);
    let top = picture(&state, size);
    let head = top.lines().nth(2).unwrap().to_owned();
    assert!(head.contains("peer's member"), "{top}");
    assert!(press(&mut state, &[KeyCode::Down]));
    let down = picture(&state, size);
    assert_eq!(down.lines().nth(2), Some(head.as_str()));
    assert_eq!(down.lines().nth(3), top.lines().nth(4));
    assert!(press(&mut state, &[KeyCode::End, KeyCode::Home]));
    assert_eq!(picture(&state, size), top);
}

#[test]
fn states_have_colours_where_they_are_wanted() {
    let state = state();
    let colours = |wanted| {
        let terminal = terminal(&state, wanted, (80, 24));
        let cells = terminal.backend().buffer().content().to_vec();
        cells
            .iter()
            .filter(|cell| cell.fg == Color::Red)
            .map(|cell| cell.symbol().to_owned())
            .collect::<String>()
    };
    assert!(colours(true).contains("down"));
    assert_eq!(colours(false), "");
}

#[test]
fn nothing_and_too_little_room_are_told() {
    let mut state = State::default();
    let empty = Sample { at: Instant::now(), bonds: vec![], fabrics: vec![], lanes: vec![], latency: vec![] };
    state.sample(Ok(empty));
    assert!(picture(&state, (80, 24)).contains("no bonds and no fabrics; add one: linkbraid bond add"));
    typed(&mut state, "3");
    assert!(picture(&state, (80, 24)).contains("linkbraid bond set bond0 --latency on"));
    assert!(picture(&state, (30, 5)).contains("40 x 8"));
}

#[test]
fn keys_end_it_and_no_other_does() {
    let mut state = state();
    assert!(press(&mut state, &[KeyCode::Char('x'), KeyCode::F(1), KeyCode::PageUp, KeyCode::PageDown]));
    assert!(!press(&mut state, &[KeyCode::Char('q')]));
    typed(&mut state, "/");
    assert!(!state.key(KeyEvent::new(KeyCode::Char('c'), KeyModifiers::CONTROL)));
}
