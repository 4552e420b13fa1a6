use super::*;

#[test]
fn fields_are_found_by_their_whole_name() {
    let text = "model : 3\nmodel name\t: Some CPU @ 3 GHz\nmodel name : another\n";
    assert_eq!(field(text, "model name", ':'), Some("Some CPU @ 3 GHz"));
    assert_eq!(field(text, "name", ':'), None);
}

#[test]
fn this_machine_says_what_it_is() {
    let machine = Machine::here();
    assert!(machine.cores >= 1 && machine.memory_mib > 0, "{machine:?}");
    assert!(machine.kernel.starts_with(|c: char| c.is_ascii_digit()), "{machine:?}");
    assert!(machine.line().contains(&machine.kernel));
}
