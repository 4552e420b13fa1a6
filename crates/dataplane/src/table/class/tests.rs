use super::{Cgroup, RuleRow};
use crate::{
    error::Result,
    intf::{LB_RULE_CGROUP, LB_RULE_HOST, lb_rule},
};
use linkbraid_api::Rule;

fn bytes(words: [u32; 4]) -> [u8; 16] {
    bytemuck::cast(words)
}

/// The row of a rule; all control groups are this one.
fn row(class: u8, rule: &Rule, cgroup: Option<Cgroup>) -> Result<lb_rule> {
    RuleRow::new(class, rule, |_| cgroup).map(|row| row.expect("its control group is there").0)
}

#[test]
fn a_host_is_a_prefix_of_its_family() {
    let raw = |host: &str, length| {
        row(1, &Rule { host: Some((host.parse().unwrap(), length)), ..Rule::default() }, None)
    };
    let v4 = raw("198.18.7.9", 20).unwrap();
    assert_eq!((v4.conditions, v4.is_ipv6, v4.class), (LB_RULE_HOST, 0, 1));
    assert_eq!(bytes(v4.host)[..5], [198, 18, 0, 0, 0]);
    assert_eq!(bytes(v4.host_mask)[..5], [255, 255, 240, 0, 0]);
    assert_eq!(raw("198.18.7.9", 0).unwrap().host_mask, [0; 4]);
    assert_eq!(bytes(raw("198.18.7.9", 32).unwrap().host_mask)[..5], [255, 255, 255, 255, 0]);
    let v6 = raw("2001:db8::1:2", 127).unwrap();
    let (host, mask) = (bytes(v6.host), bytes(v6.host_mask));
    assert_eq!((v6.is_ipv6, host[15], mask[15], mask[0]), (1, 2, 254, 255));
    assert_eq!(bytes(raw("2001:db8::1:3", 127).unwrap().host)[15], 2, "host bits count for nothing");
    assert!(raw("198.18.7.9", 33).is_err() && raw("2001:db8::", 129).is_err());
}

#[test]
fn values_out_of_range_are_refused() {
    assert!(row(8, &Rule::default(), None).is_err());
    assert!(row(1, &Rule { dscp: Some(64), ..Rule::default() }, None).is_err());
    let in_group = Rule { cgroup: Some("/x".to_owned()), ..Rule::default() };
    let level = |level| row(1, &in_group, Some(Cgroup { id: 7, level }));
    assert_eq!(
        level(3).map(|raw| (raw.conditions, raw.cgroup, raw.cgroup_level)).unwrap(),
        (LB_RULE_CGROUP, 7, 3)
    );
    assert!(level(1 << 31).is_err());
    assert!(RuleRow::new(1, &in_group, |_| None).unwrap().is_none(), "its control group is not there");
}
