use super::*;

#[test]
fn the_length_of_buffers_is_read_from_what_ip_says() {
    let said =
        "3: bond0: <UP> mtu 1500 qdisc noqueue\\    gso_max_size 3217 gso_max_segs 65535 tso_max_size 65536";
    assert_eq!(gso_bytes(said), Some(3217));
    assert_eq!(gso_bytes("3: bond0: <UP> mtu 1500"), None);
}

#[test]
fn every_way_of_every_kind_has_a_case_of_its_own() {
    let kinds = MEDIA.iter().map(|media| media.name).chain(["tcp-cubic", "vxlan-cubic", "quic-cubic"]);
    let mut ids: Vec<_> = kinds.flat_map(|kind| WAYS.map(|(way, _)| case_id(kind, way))).collect();
    let all = ids.len();
    ids.sort_unstable();
    ids.dedup();
    assert_eq!(ids.len(), all);
}
