use super::*;

#[test]
fn this_machine_says_what_it_is() {
    let machine = Machine::here();
    assert!(machine.cores >= 1 && machine.memory_mib > 0, "{machine:?}");
    assert!(machine.kernel.starts_with(|c: char| c.is_ascii_digit()), "{machine:?}");
    assert!(machine.line().contains(&machine.kernel));
}
