use super::{ClassName, LinkName};
use crate::REST;

#[test]
fn names_of_links_follow_the_kernel() {
    for good in ["eth0", "bond0", "br-lan", "enp3s0f1np1.100", "a", "veth_1@x", "été"] {
        assert_eq!(good.parse::<LinkName>().as_deref(), Ok(good));
    }
    for bad in
        ["", ".", "..", "a/b", "eth0:1", "a b", "a\tb", "eth%d", "a\u{7f}", "sixteen-bytes-ab", "ééééééééé"]
    {
        let refused = bad.parse::<LinkName>().unwrap_err();
        assert!(refused.starts_with(&format!("'{bad}' cannot be an interface name; ")), "{refused}");
    }
}

#[test]
fn names_of_classes_have_a_shape() {
    let class = str::parse::<ClassName>;
    for name in ["a", "voice", "real-time_2", "0", "exactly15bytes_"] {
        assert_eq!(class(name).as_deref(), Ok(name));
    }
    for name in ["", "sixteen-letters-", "Voice", "a b", "a/b", ".", "..", "cgroup.procs", "é"] {
        let cause = "is not a name for a class; 1 to 15 of a-z, 0-9, '-' and '_'";
        assert_eq!(class(name), Err(format!("'{name}' {cause}")));
    }
    let cause = "'rest' is not a name for a class; it is that of the default class";
    assert_eq!(class(REST), Err(cause.to_owned()));
}

#[test]
fn names_are_checked_wherever_they_are_read() {
    assert_eq!(serde_json::from_str::<LinkName>(r#""eth0""#).unwrap(), LinkName::of_link("eth0"));
    let refused = serde_json::from_str::<LinkName>(r#""../x""#).unwrap_err();
    assert!(refused.to_string().starts_with("'../x' cannot be an interface name; "), "{refused}");
    assert!(serde_json::from_str::<ClassName>(r#""../x""#).is_err());
    assert_eq!(serde_json::to_string(&LinkName::of_link("eth0")).unwrap(), r#""eth0""#);
}
