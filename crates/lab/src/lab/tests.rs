use super::*;

#[test]
fn only_labs_of_a_process_have_an_owner() {
    assert_eq!(owner("lb-12-0-a"), Some(("12-0", "12")));
    assert_eq!(owner("lb-12-3-SW0"), Some(("12-3", "12")));
    assert_eq!(owner("lb-demo-a"), None);
    assert_eq!(owner("lb-x-1-a"), None);
    assert_eq!(owner("other"), None);
}

#[test]
fn a_name_that_leads_elsewhere_is_no_lab() {
    for name in ["../x", "a/b", "", "..", "lab\n", "Lab"] {
        let opened = Lab::open(name).map(drop).unwrap_err();
        assert_eq!(opened.what, "bad name of a lab", "{name:?}: {opened}");
        assert_eq!(down(name).unwrap_err().what, "bad name of a lab", "{name:?}");
    }
}
