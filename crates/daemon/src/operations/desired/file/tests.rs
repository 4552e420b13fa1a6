use super::{Current, Document, Made, merge};
use crate::operations::desired::diff;
use linkbraid_api::{ConfigFile, config::Config, value::Number};
use std::collections::BTreeMap;

fn document(text: &str) -> Document {
    Document::read(&[ConfigFile { file: "f".into(), text: text.into() }]).unwrap()
}

/// A machine that became so by a file, all of whose parts it made; and by requests of users.
fn machine(file: &str, by_hand: &str) -> Current {
    let mut made = BTreeMap::new();
    let made_by_file = merge(&Current::default(), &document(file), true).unwrap();
    for (name, bond) in &made_by_file.bonds {
        let of = Made {
            whole: true,
            members: bond.members.iter().map(|member| member.interface.clone()).collect(),
            classes: bond.classes.iter().map(|class| class.name.clone()).collect(),
            addresses: bond.addresses.iter().cloned().collect(),
        };
        made.insert(name.clone(), of);
    }
    for (name, fabric) in &made_by_file.fabrics {
        let addresses = fabric.addresses.iter().cloned().collect();
        let of = Made { whole: true, addresses, ..Made::default() };
        made.insert(name.clone(), of);
    }
    let mut config = Config::default();
    diff(&Config::default(), &made_by_file).iter().for_each(|step| step.apply(&mut config));
    // What users add is in the shape of a file, too.
    let by_hand =
        merge(&Current { config: config.clone(), ..Current::default() }, &document(by_hand), false).unwrap();
    diff(&config.clone(), &by_hand).iter().for_each(|step| step.apply(&mut config));
    for bond in config.bonds.values_mut() {
        bond.mtu.get_or_insert(1500);
    }
    Current { config, made, ..Current::default() }
}

fn commands(has: &Current, file: &str, removes: bool) -> Vec<String> {
    let wanted = merge(has, &document(file), removes).unwrap();
    diff(&has.config, &wanted).iter().map(|step| step.request().command()).collect()
}

const FABRIC: &str = "[fabric.f]\nnode = 0\nnodes = 3\ntransport = 'udp:/etc/f'\n";
const BOND: &str =
    "[bond.b]\nmember = ['a', 'c']\naddress = '198.18.0.1/24'\n[bond.b.class.v]\nmatch = 'dscp=ef'\n";

#[test]
fn what_a_file_made_goes_with_it() {
    let has = machine(&format!("{FABRIC}{BOND}"), "");
    assert!(commands(&has, &format!("{FABRIC}{BOND}"), true).is_empty());
    assert_eq!(commands(&has, "", true), ["linkbraid bond del b", "linkbraid fabric del f"]);
    assert_eq!(
        commands(&has, &format!("{FABRIC}[bond.b]\nmember = 'a'\n"), true),
        ["linkbraid class del b v", "linkbraid member del b c", "linkbraid bond set b --no-addresses"]
    );
    assert!(commands(&has, "", false).is_empty(), "at the start nothing is removed");
    assert!(commands(&has, "[bond.b]\nmember = 'a'\n", false).is_empty());
}

#[test]
fn what_was_added_by_hand_stays() {
    let more = "[bond.b]\nmember = ['a', 'c', 'h']\naddress = ['198.18.0.1/24', '198.18.0.9/24']
[bond.b.class.v]\nmatch = 'dscp=ef'\n[bond.b.class.w]\nmatch = 'dscp=le'\nmember = 'h'\n[bond.x]\nmember = 'y'\n";
    let has = machine(BOND, more);
    assert!(commands(&has, BOND, true).is_empty());
    assert_eq!(
        commands(&has, "[bond.b]\nmember = 'a'\n", true),
        [
            "linkbraid class del b v",
            "linkbraid member del b c",
            "linkbraid bond set b --address 198.18.0.9/24"
        ]
    );
    let added = format!("{BOND}[bond.b.class.u]\nmatch = 'dscp=2'\n");
    assert_eq!(
        commands(&has, &added, true),
        ["linkbraid class add b u --match dscp=2"],
        "behind those that are there, which are not made again"
    );
    assert_eq!(commands(&has, "", true), ["linkbraid bond del b"]);
    // Settings are the file's wherever it names the bond.
    assert_eq!(
        commands(
            &machine("", BOND),
            &format!("{BOND}\n").replace("address", "policy = 'flow'\naddress"),
            true
        ),
        ["linkbraid bond set b --policy flow"]
    );
    assert!(commands(&machine("", BOND), "", true).is_empty());
}

#[test]
fn what_the_file_leaves_open_stays_as_it_is() {
    let mut has = machine(&format!("{FABRIC}{BOND}"), "");
    for bond in has.config.bonds.values_mut() {
        bond.mtu = Some(9000);
    }
    for fabric in has.config.fabrics.values_mut() {
        fabric.mac = Some("02:00:00:00:00:07".into());
        fabric.options.mtu = Some(Number(9000));
    }
    assert!(commands(&has, &format!("{FABRIC}{BOND}"), true).is_empty());
}

#[test]
fn a_fabric_never_becomes_another_one() {
    let has = machine(FABRIC, "");
    for (from, to, what) in [
        (
            "node = 0",
            "node = 1",
            "f:1: fabric 'f': key 'node': it is 0 and cannot become 1 while the fabric is there",
        ),
        (
            "nodes = 3",
            "nodes = 2",
            "f:1: fabric 'f': key 'nodes': it is 3 and cannot become 2 while the fabric is there",
        ),
        (
            "udp:/etc/f",
            "udp:/etc/g",
            "f:1: fabric 'f': key 'transport': it is 'udp:/etc/f' and cannot become 'udp:/etc/g' while the fabric is there",
        ),
        (
            "node = 0",
            "node = 0\nqueues = 2",
            "f:1: fabric 'f': key 'queues': it is 1 and cannot become 2 while the fabric is there",
        ),
    ] {
        let error = merge(&has, &document(&FABRIC.replace(from, to)), true).unwrap_err();
        assert_eq!(error.to_string(), what);
        assert_eq!(error.hint.as_deref(), Some("linkbraid fabric del f"));
    }
    assert_eq!(
        commands(&has, &FABRIC.replace("nodes = 3", "nodes = 4"), true),
        ["linkbraid fabric set f --nodes 4"]
    );
}
