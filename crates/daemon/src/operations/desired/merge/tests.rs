use super::merge;
use crate::operations::desired::{Current, Moving, diff};
use linkbraid_api::{ConfigFile, Error, LinkName, Request, config::Document};

/// A machine as this file says, with every MTU filled in.
fn machine(text: &str) -> Current {
    let mut config = Document::read(&[ConfigFile { file: "f".into(), text: text.into() }]).unwrap().config;
    config.bonds.values_mut().for_each(|bond| bond.mtu = bond.mtu.or(Some(1500)));
    Current { config, ..Current::default() }
}

fn request(json: &str) -> Request {
    Request::read(serde_json::from_str(json).unwrap()).unwrap()
}

/// The steps that a request takes, in the words of the command.
fn commands(has: &Current, json: &str) -> Vec<String> {
    let wanted = merge(has, &request(json)).unwrap();
    diff(&has.config, &wanted).iter().map(|step| step.request().command()).collect()
}

fn refused(has: &Current, json: &str) -> Error {
    merge(has, &request(json)).unwrap_err()
}

const FABRIC: &str = "[fabric.fab0]\nnode = 1\nnodes = 4\ntransport = 'shm:/dev/shm/x'\n";
const BOND: &str = "[bond.b]\nmember = ['a', 'c', 'd']\n[bond.b.class.v]\nmatch = 'dscp=ef'\nmember = 'd'\n";

#[test]
fn nodes_are_added_and_never_taken_away() {
    let has = machine(FABRIC);
    let to = |nodes| format!(r#"{{"method":"FabricSet","parameters":{{"name":"fab0","nodes":{nodes}}}}}"#);
    assert_eq!(commands(&has, &to(5)), ["linkbraid fabric set fab0 --nodes 5"]);
    assert_eq!(
        refused(&has, &to(3)).to_string(),
        "fab0: option '--nodes': 3 is less than the 4 there are; nodes can only be added"
    );
}

#[test]
fn a_request_is_one_step_and_one_for_what_is_so_already_is_none() {
    let has = machine(BOND);
    for (json, expected) in [
        (
            r#"{"method":"BondSet","parameters":{"name":"b","policy":"flow","mtu":9000}}"#,
            &["linkbraid bond set b --policy flow --mtu 9000"][..],
        ),
        (r#"{"method":"BondSet","parameters":{"name":"b","policy":"spread"}}"#, &[]),
        (
            r#"{"method":"BondSet","parameters":{"name":"b","addresses":["2001:DB8::1/64"]}}"#,
            &["linkbraid bond set b --address 2001:db8::1/64"],
        ),
        (
            r#"{"method":"MemberSet","parameters":{"bond":"b","interface":"a","weight":{"mbit":5}}}"#,
            &["linkbraid member set b a --weight 5"],
        ),
        (
            r#"{"method":"MemberAdd","parameters":{"bond":"b","interface":"e","class":"v"}}"#,
            &["linkbraid member add b e --class v"],
        ),
        (
            r#"{"method":"MemberDel","parameters":{"bond":"b","interface":"a"}}"#,
            &["linkbraid member del b a"],
        ),
        (
            r#"{"method":"ClassSet","parameters":{"bond":"b","name":"v","members":[]}}"#,
            &["linkbraid class set b v --no-members"],
        ),
        (r#"{"method":"ClassDel","parameters":{"bond":"b","name":"v"}}"#, &["linkbraid class del b v"]),
        (r#"{"method":"BondDel","parameters":{"name":"b"}}"#, &["linkbraid bond del b"]),
    ] {
        assert_eq!(commands(&has, json), expected, "{json}");
    }
}

#[test]
fn a_class_that_lost_its_members_can_be_told_that_it_has_none() {
    let mut has = machine("[bond.b]\nmember = ['a']\n[bond.b.class.v]\nmatch = 'dscp=ef'\n");
    let none = r#"{"method":"ClassSet","parameters":{"bond":"b","name":"v","members":[]}}"#;
    assert!(commands(&has, none).is_empty());
    has.config.bonds.get_mut("b").unwrap().classes[0].has_members = true;
    assert_eq!(commands(&has, none), ["linkbraid class set b v --no-members"]);
}

#[test]
fn a_member_that_is_there_belongs_to_its_bond_and_others_may_ask_for_one_that_is_gone() {
    let mut has = machine(&format!("{BOND}[bond.x]\nmember = ['e']\n"));
    let add = r#"{"method":"MemberAdd","parameters":{"bond":"x","interface":"a"}}"#;
    let error = refused(&has, add);
    assert_eq!(error.to_string(), "x: cannot add member 'a': it is already in 'b'");
    assert_eq!(error.hint.as_deref(), Some("linkbraid member del b a"));
    has.config.bonds.get_mut("b").unwrap().members[0].absent = true;
    // Until it has joined, both wait for it.
    assert_eq!(commands(&has, add), ["linkbraid member add x a"]);
    let again = r#"{"method":"MemberAdd","parameters":{"bond":"b","interface":"a"}}"#;
    assert_eq!(commands(&has, again), ["linkbraid member add b a"], "it has come back");
}

#[test]
fn members_that_leave_a_bond_leave_it_something() {
    let mut has = machine(BOND);
    let del = |name| format!(r#"{{"method":"MemberDel","parameters":{{"bond":"b","interface":"{name}"}}}}"#);
    has.moving.insert(
        LinkName::of_link("b"),
        Moving {
            joining: vec![LinkName::of_link("c"), LinkName::of_link("d")],
            leaving: vec![LinkName::of_link("e")],
        },
    );
    let cannot = |name, cause| format!("b: cannot remove member '{name}': {cause}");
    assert_eq!(refused(&has, &del("e")).to_string(), cannot("e", "it is leaving already"));
    assert_eq!(refused(&has, &del("a")).to_string(), cannot("a", "the others are still joining"));
    assert_eq!(refused(&has, &del("z")).to_string(), "b: no member 'z': its members are a, c, d");
    has.moving.clear();
    has.config.bonds.get_mut("b").unwrap().members[0].absent = true;
    assert_eq!(commands(&has, &del("a")), ["linkbraid member del b a"]);
    assert_eq!(refused(&has, &del("c")).to_string(), cannot("c", "it is the last one that is in no class"));
    has.config.bonds.get_mut("b").unwrap().members[2].absent = true;
    assert_eq!(refused(&has, &del("c")).to_string(), cannot("c", "it is the last one"));
}

#[test]
fn a_fabric_in_a_bond_is_the_bonds_to_change() {
    let has = machine(&format!("{FABRIC}[bond.b]\nmember = ['a', 'fab0']\n"));
    for json in [
        r#"{"method":"FabricDel","parameters":{"name":"fab0"}}"#,
        r#"{"method":"FabricSet","parameters":{"name":"fab0","mtu":9000}}"#,
        r#"{"method":"FabricSet","parameters":{"name":"fab0","addresses":[]}}"#,
    ] {
        assert_eq!(
            refused(&has, json).to_string(),
            "fab0: cannot change the fabric: it is a member of bond 'b'"
        );
    }
    let poll = r#"{"method":"FabricSet","parameters":{"name":"fab0","poll":"busy"}}"#;
    assert_eq!(commands(&has, poll), ["linkbraid fabric set fab0 --poll busy"]);
}

#[test]
fn a_new_bond_with_a_class_takes_two_steps() {
    let json = r#"{"method":"BondAdd","parameters":{"name":"b","members":["a","c"],"addresses":[],"classes":[{"name":"urgent","members":["c"]}]}}"#;
    assert_eq!(
        commands(&Current::default(), json),
        [
            "linkbraid bond add b --member a,c",
            "linkbraid class add b urgent --member c --match priority=6 --match dscp=ef",
        ]
    );
}
