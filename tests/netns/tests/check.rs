//! `linkbraid check` where no daemon runs: what one runs first on a machine.

use linkbraid_api::{FindingRecord, Severity};
use linkbraid_netns_tests::{BOND, Net, check_hint};

/// What it finds on a host.
#[track_caller]
fn findings(net: &Net, name: &str) -> Vec<FindingRecord> {
    let said = net.say(name, "check --json");
    assert_eq!((said.code, said.err.as_str()), (0, ""), "{said:?}");
    serde_json::from_str(&said.out).expect("records")
}

/// Takes out the one that says that no daemon runs.
fn without_notice(findings: &[FindingRecord]) -> (Vec<FindingRecord>, Option<FindingRecord>) {
    let (notice, rest): (Vec<_>, Vec<_>) = findings.iter().cloned().partition(|one| one.name == "daemon");
    (rest, notice.into_iter().next())
}

#[test]
fn without_a_daemon_the_same_is_found_and_a_notice_names_the_command_that_starts_one() {
    let net = Net::alone();
    let (alone, notice) = without_notice(&findings(&net, "a"));
    let notice = notice.expect("says that no daemon runs");
    assert_eq!((notice.severity, notice.object.as_str()), (Severity::Warning, "this machine"));
    for nic in ["eth0", "eth1", "eth2", "eth3"] {
        assert!(
            alone.iter().any(|one| one.object == nic && one.severity == Severity::Ok),
            "{nic}: {alone:#?}"
        );
    }
    let machine = alone.iter().find(|one| one.object == "this machine").expect("looks at the machine");
    assert!(machine.text.contains("bridge, eBPF and the "), "the programs were tried: {machine:?}");
    assert!(!net.host("a").socket().exists() && !net.host("a").state_dir().exists(), "it makes nothing");
    let said = net.say("a", "check eth9");
    assert_eq!(said.code, 1, "{said:?}");
    assert!(said.out.contains("no such interface"), "{said:?}");
    check_hint(net.host("a"), &notice.hint.expect("a hint"));
    net.start("a", &[]);
    let (asked, notice) = without_notice(&findings(&net, "a"));
    assert_eq!((asked, notice), (alone, None));
}

#[test]
fn members_of_a_bond_whose_daemon_has_ended_are_known_to_be_its_members() {
    let net = Net::alone();
    net.start("a", &[]);
    net.bond("a");
    net.stop("a");
    let (found, notice) = without_notice(&findings(&net, "a"));
    assert!(notice.is_some());
    assert!(found.iter().all(|one| one.severity < Severity::Error), "{found:#?}");
    let of = |nic: &str| found.iter().find(|one| one.object == nic && one.severity == Severity::Ok);
    assert!(of("eth0").is_some(), "{found:#?}");
    let said = net.say("a", &format!("check {BOND}"));
    assert_eq!(said.code, 0, "the bond stands for its members: {said:?}");
}
