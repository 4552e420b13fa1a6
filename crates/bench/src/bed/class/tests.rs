use super::*;

const URGENT: Class = Class { name: "urgent", members: &["eth1"], rule: "priority=6", policy: "spread" };

fn lane(member: &str, share_ppm: u32, class: Option<&str>) -> LaneRecord {
    LaneRecord {
        bond: BOND.into(),
        peer: "198.18.0.2".into(),
        member: member.into(),
        peer_mac: None,
        state: "up".into(),
        plan: Some(1),
        share_ppm,
        tx_frames: 0,
        tx_bytes: 0,
        told_kbit: None,
        measured_kbit: None,
        share_from: None,
        class: class.map(Into::into),
        borrowed_from: None,
    }
}

#[test]
fn the_class_has_its_member_to_itself() {
    let members = ["eth0".to_owned(), "eth1".to_owned()];
    let good = [lane("eth0", 1_000_000, None), lane("eth1", 1_000_000, Some("urgent"))];
    assert!(settled(&good, &members, Some(&URGENT), 1));
    assert!(!settled(&good, &members, Some(&URGENT), 2), "a second peer has no lanes");
    assert!(!settled(&good, &members, None, 1));
    let shared = [lane("eth0", 500_000, None), lane("eth1", 500_000, None)];
    assert!(!settled(&shared, &members, Some(&URGENT), 1));
    assert!(settled(&shared, &members, None, 1));
    let down = [lane("eth0", 1_000_000, None), lane("eth1", 0, Some("urgent"))];
    assert!(!settled(&down, &members, Some(&URGENT), 1));
}

#[test]
fn the_command_is_what_a_user_types() {
    let class = Class { members: &["eth1", "eth2"], policy: "mirror", ..URGENT };
    assert_eq!(
        class.command(),
        "class add bond0 urgent --member eth1,eth2 --match priority=6 --policy mirror"
    );
}
