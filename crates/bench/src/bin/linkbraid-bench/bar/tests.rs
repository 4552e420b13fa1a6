use super::*;
use indicatif::InMemoryTerm;

fn step(case: &str, number: u32, of: Option<u32>) -> Step<'_> {
    Step { experiment: "scaling", case, number, of }
}

#[test]
fn one_line_says_which_case_it_is_of_how_many() {
    let terminal = InMemoryTerm::new(10, 100);
    let target = ProgressDrawTarget::term_like(Box::new(terminal.clone()));
    let mut bar = Bar::on(target, "scaling", (2, 13));
    assert!(terminal.contents().is_empty() || terminal.contents().starts_with("scaling (2 of 13)"));
    bar.begin(step("100mbit/cubic-1/n2", 4, Some(12)));
    bar.0.force_draw();
    let seen = terminal.contents();
    assert!(seen.starts_with("scaling (2 of 13) [======>"), "{seen}");
    assert!(seen.contains("3 of 12, 0:00 left  100mbit/cubic-1/n2"), "{seen}");
    assert_eq!(seen.lines().count(), 1, "{seen}");
    bar.warn("  100mbit/udp/n2: failed: no server");
    bar.line("  never seen");
    bar.0.force_draw();
    let seen = terminal.contents();
    assert_eq!(seen.lines().count(), 2, "{seen}");
    assert!(
        seen.starts_with("  100mbit/udp/n2: failed: no server") && !seen.contains("never seen"),
        "{seen}"
    );
    bar.end();
    assert_eq!(terminal.contents().trim(), "100mbit/udp/n2: failed: no server");
}

#[test]
fn a_part_of_an_experiment_has_no_number_of_steps() {
    let terminal = InMemoryTerm::new(10, 100);
    let mut bar = Bar::on(ProgressDrawTarget::term_like(Box::new(terminal.clone())), "soak", (1, 1));
    bar.begin(step("kill a's daemon", 4, None));
    bar.0.force_draw();
    let seen = terminal.contents();
    assert!(seen.starts_with("soak ") && seen.contains("0:00  kill a's daemon"), "{seen}");
    assert!(!seen.contains("left"), "{seen}");
}

#[test]
fn the_time_left_follows_what_is_done() {
    let minute = Duration::from_secs(60);
    assert_eq!(left(minute, 0, 9), "-:--");
    assert_eq!(left(minute, 3, 9), "2:00");
    assert_eq!(left(minute, 9, 9), "0:00");
    assert_eq!(left(minute * 61, 1, 2), "1:01:00");
}

#[test]
fn the_templates_can_be_read() {
    for template in [KNOWN, UNKNOWN] {
        assert!(ProgressStyle::with_template(template).is_ok(), "{template}");
    }
}
