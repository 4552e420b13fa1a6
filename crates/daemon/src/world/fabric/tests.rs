//! What needs neither a kernel nor threads.

use super::{
    fast_path::FastPath,
    node::{fits, watched},
    number_of,
    refusal::of_transport,
    saved::{SavedFabric, namespace},
};
use crate::{
    io::state::{SavedBond, StateDir, boot_id},
    world::report::{Event, Report},
};
use linkbraid_api::{Encrypt, EventKind, FabricSettings, LinkName, Poll};
use linkbraid_dataplane::HookChoice;
use linkbraid_fabric::{Address, Join, Live};
use linkbraid_proto::session::{Down, Mismatch, Side, Verdict};
use std::{collections::BTreeSet, env, fs, process};

pub(crate) fn saved(name: &str) -> SavedFabric {
    SavedFabric {
        name: LinkName::of_link(name),
        ifindex: 7,
        node: 1,
        nodes: 4,
        transport: "shm:/dev/shm/x".into(),
        queues: 2,
        mac: [2, 0, 0, 0, 0, 1],
        number: number_of(name),
        settings: FabricSettings { poll: Poll::Busy, ..FabricSettings::default() },
        boot_id: boot_id(),
        namespace: namespace(),
        applied: false,
        addresses: vec!["198.18.0.1/24".into()],
        applied_addresses: Vec::new(),
    }
}

#[test]
fn names_that_count_have_numbers_of_their_own() {
    let numbers: BTreeSet<u8> = (0..10).map(|n| number_of(&format!("fab{n}"))).collect();
    assert_eq!(numbers.len(), 10);
    assert_eq!(number_of("fab0"), number_of("fab0"));
}

#[test]
fn what_is_written_is_read_back_and_what_an_earlier_boot_left_is_not() {
    let folder = env::temp_dir().join(format!("linkbraid-fabrics-{}", process::id()));
    let state = StateDir::open(folder.clone()).unwrap();
    state.write(&saved("b.1")).unwrap();
    state.write(&saved("a")).unwrap();
    state.write(&SavedFabric { boot_id: "another".into(), ..saved("c") }).unwrap();
    fs::write(folder.join("d.fabric"), b"{ half").unwrap();
    assert_eq!(state.read_all::<SavedFabric>(), [saved("a"), saved("b.1")]);
    assert!(!folder.join("c.fabric").exists());
    // A bond's file is another one.
    assert!(state.read_all::<SavedBond>().is_empty());
    state.remove::<SavedFabric>("a").unwrap();
    state.remove::<SavedFabric>("a").unwrap();
    assert_eq!(state.read_all::<SavedFabric>(), [saved("b.1")]);
    fs::remove_dir_all(folder).unwrap();
}

#[test]
fn a_transport_that_is_refused_comes_with_a_command() {
    let refused = "foo:x".parse::<Address>().unwrap_err();
    let error = of_transport(refused, "fab0", 1, 4);
    assert!(error.to_string().starts_with("foo:x: cannot use this transport: no such transport 'foo'"));
    let hint = error.hint.unwrap();
    assert!(hint.starts_with("linkbraid fabric add fab0 --node 1 --nodes 4 --transport shm:"), "{hint}");
}

#[test]
fn what_happens_is_told_with_both_sides() {
    let up = Verdict::Up { epoch: 0x2a };
    let mtu = Mismatch::Mtu { ours: 9000, theirs: 1500 };
    for (old, new, words, reason, text) in [
        (up, Verdict::Down(Down::Silent), ("up", "down"), "silent", "silent for the detection time"),
        (Verdict::Down(Down::Unheard), up, ("down", "up"), "connected", "connected, epoch 000000000000002a"),
        (
            up,
            Verdict::Refused { by: Side::Peer, why: mtu },
            ("up", "refused"),
            "mtu_differs",
            "refused by it: its MTU is 1500, this node's 9000",
        ),
    ] {
        let change = Report::Link { node: 3, old, new }.change("fab0");
        assert_eq!((change.kind, change.object.as_str()), (EventKind::Node, "3"));
        assert_eq!((change.old, change.new), (Some(words.0), Some(words.1)));
        assert_eq!((change.reason, change.text.as_str()), (reason, text));
    }
    let change = Report::Limited { node: Some(3), count: 17, state: "up" }.change("fab0");
    assert_eq!((change.kind, change.object.as_str(), change.new), (EventKind::Node, "3", Some("up")));
    assert_eq!(change.text, "17 events were not reported: there were too many");
    let change = Report::Limited { node: None, count: 17, state: "down" }.change("fab0");
    assert_eq!((change.kind, change.object.as_str(), change.reason), (EventKind::Fabric, "fab0", "limited"));
    let change = Report::Carrier(false).change("fab0");
    assert_eq!((change.kind, change.object.as_str()), (EventKind::Fabric, "fab0"));
}

#[test]
fn a_thread_that_fails_is_told_to_the_loop_and_one_that_ends_is_not() {
    let (sender, mut reports) = tokio::sync::mpsc::channel(1);
    watched(7, &sender, || None);
    assert!(reports.try_recv().is_err());
    watched(7, &sender, || panic!("as a thread might"));
    assert!(matches!(reports.try_recv(), Ok(Event { start: 7, report: Report::Failed(None) })));
    let change = Report::Failed(None).change("fab0");
    assert_eq!((change.kind, change.reason), (EventKind::Fabric, "failed"));
}

#[test]
fn an_mtu_has_room_or_is_refused_with_one_that_has() {
    assert_eq!(fits(1522, 1500), Ok(()));
    let (cause, mtu) = fits(1521, 1500).unwrap_err();
    assert_eq!(cause, "MTU 1500 needs frames of 1522 bytes, and its queues have room for 1521");
    assert_eq!(fits(1521, mtu as u32), Ok(()));
    assert_eq!(fits(0, 1280).unwrap_err().1, 0);
}

//= docs/fabric.md#9.8 type=test
#[test]
fn frames_that_are_encrypted_take_no_fast_path() {
    let file = env::temp_dir().join(format!("linkbraid-encrypted-{}", process::id()));
    let lines: String = (0..4).map(|node| format!("{node} 198.18.9.{}:7000\n", node + 1)).collect();
    fs::write(&file, lines).unwrap();
    for (options, is_there) in [("", true), (",vxlan=off", false)] {
        let transport = format!("udp:{}{options}", file.display());
        let address: Address = transport.parse().unwrap();
        let settings = FabricSettings { encrypt: Encrypt::On, ..FabricSettings::default() };
        let saved = SavedFabric { transport, settings, ..saved("fab0") };
        let join = Join { node: saved.node, nodes: saved.nodes, queues: saved.queues };
        let directory = Live::open(&file, &join).unwrap();
        let made = FastPath::make(&saved, (&address, &directory), saved.ifindex, HookChoice::Auto);
        assert_eq!(made.is_some(), is_there);
        if let Some(made) = made {
            assert_eq!(
                (made.port(), made.off()),
                (None, Some("frames are encrypted, which VXLAN cannot do"))
            );
        }
    }
    fs::remove_file(file).unwrap();
}
