use super::*;

const BOND_TEXT: &str = "\
Ethernet Channel Bonding Driver: v6.1.0-56-amd64

Bonding Mode: load balancing (round-robin)
MII Status: up
MII Polling Interval (ms): 100

Slave Interface: eth0
MII Status: up
Speed: 10000 Mbps

Slave Interface: eth1
MII Status: up
Speed: 10000 Mbps
";

#[test]
fn a_bond_is_ready_once_all_its_members_are_up() {
    assert!(bond_is_ready(BOND_TEXT, 2));
    assert!(!bond_is_ready(BOND_TEXT, 3));
    assert!(!bond_is_ready(&BOND_TEXT.replacen("MII Status: up\nSpeed", "MII Status: down\nSpeed", 1), 2));
}

#[test]
fn lacp_is_ready_once_the_other_host_has_all_links_in_one_aggregate() {
    let lacp = |ports: u32, partner: &str| {
        let info = format!(
            "802.3ad info\nActive Aggregator Info:\n\tAggregator ID: 1\n\tNumber of ports: {ports}\n\tPartner Mac Address: {partner}\n"
        );
        bond_is_ready(&format!("{BOND_TEXT}{info}"), 2)
    };
    assert!(lacp(2, "02:4c:42:00:01:00"));
    assert!(!lacp(1, "02:4c:42:00:01:00"));
    assert!(!lacp(2, "00:00:00:00:00:00"));
}

#[test]
fn only_the_server_tells_of_addresses_and_one_link_needs_none() {
    assert!(mptcp(1, 4).iter().all(|line| !line.contains("endpoint")));
    let endpoints: Vec<String> = mptcp(2, 3).into_iter().filter(|line| line.contains("endpoint")).collect();
    assert_eq!(
        endpoints,
        [
            "ip mptcp endpoint add 198.18.1.2 dev eth1 signal",
            "ip mptcp endpoint add 198.18.2.2 dev eth2 signal"
        ]
    );
    assert!(!mptcp(2, 1).iter().any(|line| line.contains("address")));
}
