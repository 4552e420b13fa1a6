use super::*;

const RATES: [Rate; 2] = [Rate { tx_mbit: 50.0, rx_mbit: 1.0 }, Rate { tx_mbit: 100.0, rx_mbit: 1.0 }];

fn screen(terminal: bool) -> Screen {
    Screen::new(vec!["eth0".into(), "eth1".into()], 100, terminal)
}

#[test]
fn lines_stand_alone() {
    let text = screen(false).draw(Duration::from_secs(3), &RATES);
    assert_eq!(text, "     3 s  eth0  50.0  eth1 100.0  sum  150.0 Mbit/s\n");
}

#[test]
fn bars_are_drawn_over_each_other() {
    let mut screen = screen(true);
    let first = screen.draw(Duration::ZERO, &RATES);
    assert_eq!(first.lines().count(), 3);
    assert!(first.contains(&("█".repeat(20) + &"░".repeat(20))), "{first}");
    assert!(!first.contains("\x1b[3A"));
    assert!(screen.draw(Duration::ZERO, &RATES).starts_with("\x1b[3A"), "goes up three lines");
}
