use super::*;

#[test]
fn only_labs_of_a_process_have_an_owner() {
    assert_eq!(owner("lb-12-0-a"), Some(("12-0", "12")));
    assert_eq!(owner("lb-12-3-SW0"), Some(("12-3", "12")));
    assert_eq!(owner("lb-demo-a"), None);
    assert_eq!(owner("lb-x-1-a"), None);
    assert_eq!(owner("other"), None);
}
