use super::*;

#[test]
fn what_came_and_what_went_is_told() {
    let look = |lines: &[&str]| Leftovers(lines.iter().map(|line| (*line).to_owned()).collect());
    let (before, after) = (look(&["a: eth0", "a: eth1"]), look(&["a: eth1", "a: bond0"]));
    assert_eq!(before.differences(&after), ["new: a: bond0", "gone: a: eth0"]);
    assert_eq!(before.differences(&before), Vec::<String>::new());
    assert_eq!(stable("qdisc tbf 8001: root refcnt 9 rate 100Mbit"), "qdisc tbf root refcnt 9 rate 100Mbit");
}
