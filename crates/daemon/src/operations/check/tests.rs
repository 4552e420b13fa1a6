use super::{
    all,
    device::{Bus, Device},
    facts::{Bond, Facts, Member},
    interface::{Interface, Nic},
    machine::{Machine, Missing},
};
use crate::{io::manager::Manager, world::record::findings::forward};
use linkbraid_api::{FindingRecord, Severity};
use linkbraid_link::{ForwardChain, LinkInfo, MacAddr, Offloads, OperState, Speed};

const GIGABIT: Speed = Speed { mbit: 1000, full_duplex: Some(true) };

fn link(index: u32) -> LinkInfo {
    LinkInfo {
        index,
        name: format!("eth{index}"),
        mac: MacAddr([0x02, 0, 0, 0, 0xee, index as u8]),
        mtu: 1500,
        up: true,
        carrier: true,
        oper_state: OperState::Up,
        promiscuity: 0,
        promisc_flag: false,
        allmulti_flag: false,
        kind: None,
        port_kind: None,
        loopback: false,
        ethernet: true,
        wireless: false,
        controller: None,
        lower: None,
        alias: None,
        gso_max_size: 65_536,
        max_mtu: Some(9216),
        gso_ipv4_max_size: None,
        gso_max_segs: 65_535,
        tso_max_size: None,
        tx_queues: 1,
        qdisc: "fq_codel".into(),
        addr_gen_mode: None,
        port: None,
        port_blocked: false,
        bridge: None,
    }
}

/// An interface that is as it should be.
fn interface(index: u32) -> Interface {
    let nic = Nic {
        link: link(index),
        speed: Some(GIGABIT),
        eee: Some(false),
        driver: Some("r8169".into()),
        offloads: Some(Offloads { tso: true, gso: true, gro: true }),
        device: Some(Device::default()),
        weighted: false,
        held_by: None,
        addresses: Vec::new(),
        leased: false,
        default_route: false,
        managers: Vec::new(),
        before: Vec::new(),
        same_mac: Vec::new(),
        elsewhere: Vec::new(),
    };
    Interface { name: format!("eth{index}"), bond: None, nic: Some(nic) }
}

fn machine() -> Machine {
    Machine {
        release: "6.12.1".into(),
        capabilities: u64::MAX,
        restart: Ok(()),
        works: Ok("bridge, eBPF and the tcx hook".into()),
        tun: Ok(()),
        filters: Vec::new(),
        processors: 4,
        start: None,
    }
}

fn bond(segments: &[Option<u32>]) -> Bond {
    let member = |(i, segment): (usize, &Option<u32>)| {
        let index = i as u32 + 1;
        Member { name: format!("eth{index}"), index, segment: *segment, weighted: false }
    };
    Bond {
        name: "bond0".into(),
        index: 9,
        mtu: 1500,
        hook: None,
        members: segments.iter().enumerate().map(member).collect(),
        split: Vec::new(),
        claimed: Vec::new(),
        filtered: Vec::new(),
    }
}

/// Two interfaces that nothing is wrong with.
fn facts() -> Facts {
    Facts { machine: machine(), interfaces: vec![interface(1), interface(2)], bonds: Vec::new() }
}

/// The same, in a bond.
fn bonded() -> Facts {
    let mut facts = Facts { bonds: vec![bond(&[Some(0), Some(0)])], ..facts() };
    for interface in &mut facts.interfaces {
        interface.bond = Some("bond0".into());
    }
    facts
}

fn nic(facts: &mut Facts) -> &mut Nic {
    facts.interfaces[0].nic.as_mut().unwrap()
}

/// What is not `ok`.
fn bad(facts: &Facts) -> Vec<FindingRecord> {
    all(facts).into_iter().filter(|finding| finding.severity != Severity::Ok).collect()
}

/// The only finding that is not `ok`, about eth1 unless it says otherwise.
fn only(facts: &Facts) -> FindingRecord {
    let mut found = bad(facts);
    assert_eq!(found.len(), 1, "{found:#?}");
    found.remove(0)
}

/// One change to good facts, and what comes of it.
#[track_caller]
fn finds(
    mut facts: Facts,
    change: impl FnOnce(&mut Nic),
    (severity, name): (Severity, &str),
    text: &str,
    hint: &str,
) {
    change(nic(&mut facts));
    let found = only(&facts);
    assert_eq!((found.severity, found.object.as_str(), found.name.as_str()), (severity, "eth1", name));
    assert!(found.text.contains(text), "{}", found.text);
    assert_eq!(found.hint.as_deref(), Some(hint));
}

const WARNING: Severity = Severity::Warning;
const ERROR: Severity = Severity::Error;

#[test]
fn a_machine_without_faults_gets_a_sentence_a_thing() {
    let lines: Vec<String> = all(&bonded())
        .iter()
        .map(|found| format!("{:?} {} {}: {}", found.severity, found.object, found.name, found.text))
        .collect();
    let nic =
        "carrier, 1000 Mbit/s full duplex, a MAC of its own, no manager in the way, driver r8169, MTU 1500";
    assert_eq!(
        lines,
        [
            "Ok this machine machine: Linux 6.12.1, all rights, bridge, eBPF and the tcx hook, restarts without loss, TAP devices",
            &format!("Ok eth1 interface: {nic}"),
            &format!("Ok eth2 interface: {nic}"),
            "Ok bond0 segments: 'eth1' and 'eth2' hear each other",
        ]
    );
    assert!(all(&bonded()).iter().all(|found| found.hint.is_none()));
    assert_eq!(bad(&facts()), []);
}

#[test]
fn what_cannot_be_a_member_is_an_error_and_nothing_else() {
    let gone = Facts { interfaces: vec![Interface { nic: None, ..interface(1) }], ..facts() };
    let found = only(&gone);
    assert_eq!((found.severity, found.name.as_str()), (ERROR, "exists"));
    let list = "ip -br link";
    let show = "ip -d link show eth1";
    finds(facts(), |nic| nic.link.loopback = true, (ERROR, "ethernet"), "loopback", list);
    finds(facts(), |nic| nic.link.ethernet = false, (ERROR, "ethernet"), "not an Ethernet", list);
    finds(facts(), |nic| nic.link.wireless = true, (ERROR, "wireless"), "wireless station", list);
    finds(facts(), |nic| nic.link.kind = Some("team".into()), (ERROR, "kind"), "itself a team", show);
    finds(facts(), |nic| nic.link.mac = MacAddr::ZERO, (ERROR, "mac"), "no MAC", show);
    let held = |nic: &mut Nic| {
        nic.held_by = Some("br0".into());
        // Its other faults are of no interest then.
        nic.link.mtu = 9000;
        nic.eee = Some(true);
    };
    finds(facts(), held, (ERROR, "controller"), "in 'br0' already", "ip link set dev eth1 nomaster");
}

#[test]
fn a_link_that_carries_nothing_is_told() {
    let down = |nic: &mut Nic| nic.link.up = false;
    let cut = |nic: &mut Nic| (nic.link.carrier, nic.speed) = (false, None);
    finds(facts(), cut, (WARNING, "carrier"), "no carrier", "ethtool eth1");
    finds(facts(), down, (WARNING, "carrier"), "not known", "ip link set dev eth1 up");
    finds(bonded(), down, (WARNING, "carrier"), "somebody", "ip link set dev eth1 up");
}

#[test]
fn a_driver_without_jumbo_frames_among_others_is_told() {
    let small = |nic: &mut Nic| nic.link.max_mtu = Some(1500);
    finds(facts(), small, (WARNING, "max_mtu"), "1500 at most", "ip -d link show eth1");
    finds(bonded(), small, (WARNING, "max_mtu"), "'eth2' takes 9000", "ip -d link show eth1");
    let mut all_small = facts();
    all_small.interfaces.iter_mut().filter_map(|of| of.nic.as_mut()).for_each(small);
    assert_eq!(bad(&all_small), [], "then nothing is lost by it");
    let mut unknown = facts();
    nic(&mut unknown).link.max_mtu = None;
    assert_eq!(bad(&unknown), []);
}

#[test]
fn speed_duplex_and_energy_saving_are_told() {
    let unknown = |nic: &mut Nic| nic.speed = None;
    finds(facts(), unknown, (WARNING, "speed"), "no speed", "ethtool eth1");
    finds(bonded(), unknown, (WARNING, "speed"), "1000", "linkbraid member set bond0 eth1 --weight 1000");
    let mut weighted = bonded();
    (nic(&mut weighted).speed, nic(&mut weighted).weighted) = (None, true);
    assert_eq!(bad(&weighted), [], "a weight set by hand needs no speed");
    let half = |nic: &mut Nic| nic.speed = Some(Speed { full_duplex: Some(false), ..GIGABIT });
    finds(facts(), half, (WARNING, "duplex"), "half duplex", "ethtool -s eth1 autoneg on");
    let mut silent = facts();
    nic(&mut silent).speed = Some(Speed { full_duplex: None, ..GIGABIT });
    assert_eq!(bad(&silent), [], "a driver that says nothing is not half duplex");
    finds(
        facts(),
        |nic| nic.eee = Some(true),
        (WARNING, "eee"),
        "20 to 200 us",
        "ethtool --set-eee eth1 eee off",
    );
    let cut = |nic: &mut Nic| (nic.link.carrier, nic.eee) = (false, Some(true));
    finds(facts(), cut, (WARNING, "carrier"), "", "ethtool eth1");
}

#[test]
fn what_keeps_a_fast_link_slow_is_told() {
    let usb =
        |mbit| move |nic: &mut Nic| nic.device.as_mut().unwrap().bus = Some(Bus::Usb { mbit, number: 1 });
    finds(facts(), usb(480), (WARNING, "bus"), "1000 Mbit/s and its USB port 480", "lsusb -t");
    let pci = |mbit, able| {
        move |nic: &mut Nic| {
            nic.device.as_mut().unwrap().bus = Some(Bus::Pci { address: "0000:03:00.0".into(), mbit, able });
        }
    };
    let hint = "lspci -vv -s 0000:03:00.0";
    finds(facts(), pci(1000, 4000), (WARNING, "bus"), "lanes 1000; another slot may give it 4000", hint);
    finds(facts(), pci(1000, 1000), (WARNING, "bus"), "its PCIe lanes 1000", hint);
    for fine in [usb(5000), usb(1250)] {
        let mut facts = facts();
        fine(nic(&mut facts));
        assert_eq!(bad(&facts), []);
    }
    let off = |gso, gro| move |nic: &mut Nic| nic.offloads = Some(Offloads { tso: false, gso, gro });
    let on = "ethtool -K eth1 gro on";
    finds(facts(), off(true, false), (WARNING, "offloads"), "GRO is off", on);
    finds(
        facts(),
        off(false, false),
        (WARNING, "offloads"),
        "GSO and GRO are off",
        "ethtool -K eth1 gso on gro on",
    );
    let mut virtual_one = facts();
    off(true, false)(nic(&mut virtual_one));
    nic(&mut virtual_one).device = None;
    assert_eq!(bad(&virtual_one), [], "a veth has none by default");
}

#[test]
fn what_members_share_is_told_once() {
    let mut on_usb = bonded();
    for interface in &mut on_usb.interfaces {
        interface.nic.as_mut().unwrap().device.as_mut().unwrap().bus =
            Some(Bus::Usb { mbit: 5000, number: 2 });
    }
    assert_eq!(bad(&on_usb), [], "two links of 1000 fit");
    for interface in &mut on_usb.interfaces {
        interface.nic.as_mut().unwrap().speed = Some(Speed { mbit: 2500, ..GIGABIT });
    }
    let found = only(&on_usb);
    assert_eq!((found.object.as_str(), found.name.as_str()), ("eth2", "shared_bus"));
    assert!(
        found.text.contains("USB of 5000 Mbit/s with 'eth1', and their links have 5000"),
        "{}",
        found.text
    );
    if let Some(device) = &mut nic(&mut on_usb).device {
        device.bus = Some(Bus::Usb { mbit: 5000, number: 4 });
    }
    assert_eq!(bad(&on_usb), [], "two buses");

    let mut one = bonded();
    for interface in &mut one.interfaces {
        interface.nic.as_mut().unwrap().device.as_mut().unwrap().processors = [3].into();
    }
    assert_eq!(bad(&one), [], "one processor receives as much");
    for interface in &mut one.interfaces {
        interface.nic.as_mut().unwrap().speed = Some(Speed { mbit: 10_000, ..GIGABIT });
    }
    let found = only(&one);
    assert_eq!((found.object.as_str(), found.name.as_str()), ("eth1", "interrupts"));
    assert!(
        found.text.starts_with("processor 3 of 4 takes all its interrupts, and those of 'eth2'"),
        "{}",
        found.text
    );
    nic(&mut one).device.as_mut().unwrap().processors = [2].into();
    assert_eq!(bad(&one), []);
}

#[test]
fn members_that_differ_are_told_where_they_differ() {
    let slow = |nic: &mut Nic| nic.speed = Some(Speed { mbit: 100, ..GIGABIT });
    for facts in [facts(), bonded()] {
        finds(
            facts,
            slow,
            (WARNING, "speed_mismatch"),
            "'eth2' has 1000: weights follow speed",
            "ethtool eth1",
        );
    }
    let mut apart = facts();
    slow(nic(&mut apart));
    apart.interfaces[1].bond = Some("bond7".into());
    assert_eq!(bad(&apart), [], "interfaces of two bonds are not held against each other");
    let jumbo = |nic: &mut Nic| nic.link.mtu = 9000;
    finds(facts(), jumbo, (WARNING, "mtu"), "'eth2' has 1500", "ip link set dev eth1 mtu 1500");
    finds(bonded(), jumbo, (WARNING, "mtu"), "that of 'bond0' is 1500", "ip link set dev eth1 mtu 1500");
    let short = |nic: &mut Nic| nic.link.mtu = 1400;
    finds(bonded(), short, (ERROR, "mtu"), "less than the 1500", "linkbraid bond set bond0 --mtu 1400");
}

#[test]
fn a_mac_that_is_not_alone_is_an_error() {
    let fresh = "ip link set dev eth1 address 02:00:00:00:00:01";
    let here = |nic: &mut Nic| nic.same_mac = vec!["eth2".into(), "eth5".into()];
    finds(facts(), here, (ERROR, "duplicate_mac"), "'eth2' and 'eth5' too", fresh);
    let there = |nic: &mut Nic| nic.elsewhere = vec!["198.18.0.9".into()];
    finds(bonded(), there, (ERROR, "mac_elsewhere"), "198.18.0.9", fresh);
}

#[test]
fn managers_are_told_with_the_command_that_keeps_them_away() {
    let with = |manager| move |nic: &mut Nic| nic.managers = vec![manager];
    let nm = "nmcli device set eth1 managed no";
    finds(facts(), with(Manager::Nm), (WARNING, "network_manager"), "NetworkManager", nm);
    let networkd = "printf '[Match]\\nName=eth1\\n[Link]\\nUnmanaged=yes\\n' > \
                    /etc/systemd/network/00-eth1.network && networkctl reload";
    finds(facts(), with(Manager::Networkd { lease: false }), (WARNING, "networkd"), "manages it", networkd);
    finds(facts(), with(Manager::Networkd { lease: true }), (WARNING, "networkd"), "DHCP lease", networkd);
    let again = "networkctl reconfigure eth1";
    finds(bonded(), with(Manager::Networkd { lease: false }), (WARNING, "networkd"), "manages it", again);
    let client = |client: &str| Manager::Dhcp { client: client.into(), pid: 77 };
    finds(facts(), with(client("dhclient")), (WARNING, "dhcp_client"), "process 77", "kill 77");
    let deny = "echo 'denyinterfaces eth1' >> /etc/dhcpcd.conf && dhcpcd -x eth1";
    finds(bonded(), with(client("dhcpcd")), (WARNING, "dhcp_client"), "dhcpcd", deny);
}

#[test]
fn programs_of_others_that_see_frames_first_are_told() {
    let first = |nic: &mut Nic| nic.before = vec![("ingress", "tc filter show".into())];
    finds(bonded(), first, (WARNING, "programs_before"), "comes first on ingress", "tc filter show");
}

#[test]
fn addresses_and_routes_that_would_move_or_stay_are_told() {
    let address = |nic: &mut Nic| nic.addresses = vec!["198.18.0.1/24".into(), "2001:db8::1/64".into()];
    finds(
        facts(),
        address,
        (WARNING, "address"),
        "198.18.0.1/24, 2001:db8::1/64 would move",
        "ip address show dev eth1",
    );
    finds(
        bonded(),
        address,
        (WARNING, "address"),
        "bypasses 'bond0'",
        "ip address del 198.18.0.1/24 dev eth1",
    );
    let route = |nic: &mut Nic| nic.default_route = true;
    let add = "linkbraid bond add bond0 --member eth1 --move-address";
    finds(facts(), route, (WARNING, "default_route"), "has to be allowed", add);
    finds(bonded(), route, (WARNING, "default_route"), "bypasses", "ip route del default dev eth1");
    let lease = |nic: &mut Nic| nic.leased = true;
    finds(facts(), lease, (WARNING, "lease"), "DHCP", "ip -4 address show dev eth1");
    let mut managed = facts();
    nic(&mut managed).leased = true;
    nic(&mut managed).managers = vec![Manager::Nm];
    assert_eq!(only(&managed).name, "network_manager", "who renews it is named already");
}

#[test]
fn what_the_machine_lacks_is_told() {
    let with = |change: fn(&mut Machine)| {
        let mut facts = facts();
        change(&mut facts.machine);
        let found = only(&facts);
        assert_eq!(found.object, "this machine");
        (found.severity, found.name, found.hint.unwrap_or_default())
    };
    let found = |severity, name: &str, hint: &str| (severity, name.to_owned(), hint.to_owned());
    assert_eq!(with(|m| m.release = "5.10.0-30".into()), found(WARNING, "kernel", "uname -r"));
    assert_eq!(with(|m| m.capabilities = 0), found(ERROR, "capabilities", "sudo linkbraid daemon"));
    let no_restart = |machine: &mut Machine| {
        let hint = Some("sudo linkbraid daemon".into());
        machine.restart = Err(Missing { name: "restart", text: "no".into(), hint });
    };
    assert_eq!(with(no_restart), found(WARNING, "restart", "sudo linkbraid daemon"));
    let missing = |name| Err(Missing { name, text: "no".into(), hint: Some("modprobe bridge".into()) });
    for name in ["bridge", "bpf", "hook", "trial"] {
        let mut facts = facts();
        facts.machine.works = missing(name);
        let severity = if name == "trial" { WARNING } else { ERROR };
        assert_eq!((only(&facts).severity, only(&facts).name.as_str()), (severity, name));
    }
    assert_eq!(
        with(|m| m.filters = vec!["bridge-nf-call-iptables"]),
        found(WARNING, "bridge_netfilter", "sysctl -w net.bridge.bridge-nf-call-iptables=0")
    );
}

#[test]
fn without_a_daemon_one_finding_says_so_and_rights_are_those_of_the_command() {
    let mut alone = facts();
    alone.machine.start = Some("systemctl start linkbraid".into());
    let found = only(&alone);
    assert_eq!(
        (found.severity, found.object.as_str(), found.name.as_str()),
        (WARNING, "this machine", "daemon")
    );
    assert_eq!(found.hint.as_deref(), Some("systemctl start linkbraid"));
    alone.machine.capabilities = 0;
    let found = bad(&alone);
    assert!(
        found.iter().any(|one| one.text.starts_with("this command does not have CAP_NET_ADMIN")),
        "{found:#?}"
    );
}

#[test]
fn members_apart_are_fine_unless_a_peer_proves_that_they_are_together() {
    let mut facts = bonded();
    facts.bonds = vec![bond(&[Some(0), Some(1)])];
    assert_eq!(bad(&facts), []);
    let text = |facts: &Facts| all(facts).pop().unwrap().text;
    assert!(text(&facts).starts_with("'eth1' | 'eth2' do not hear"), "{}", text(&facts));
    facts.bonds = vec![bond(&[Some(0), None])];
    assert_eq!(text(&facts), "'eth1' carries its traffic");
    facts.bonds = vec![bond(&[None, None])];
    assert_ne!(all(&facts).pop().unwrap().object, "bond0", "the interfaces say what is wrong");
    facts.bonds[0].split = vec![("eth1".into(), "eth2".into(), "198.18.0.2".into())];
    let found = only(&facts);
    assert_eq!(
        (found.severity, found.name.as_str(), found.object.as_str()),
        (WARNING, "segments_split", "bond0")
    );
    assert!(found.text.contains("'eth1' and 'eth2' both hear 198.18.0.2"), "{}", found.text);
    assert_eq!(found.hint.as_deref(), Some("linkbraid lanes bond0"));
}

#[test]
fn a_bond_without_members_is_told_and_one_nobody_asked_for_is_not() {
    let empty = Facts { interfaces: Vec::new(), bonds: vec![bond(&[])], ..facts() };
    assert_eq!(only(&empty).name, "members");
    let other = Facts { interfaces: vec![interface(7)], ..bonded() };
    assert!(all(&other).iter().all(|found| found.object != "bond0"));
}

#[test]
fn a_filter_that_keeps_frames_of_guests_is_told_with_the_rule_that_admits_them() {
    for (family, table, name, hint) in [
        ("ip", "filter", "FORWARD", "iptables -I FORWARD -i lan0 -o lan0 -j ACCEPT"),
        ("ip6", "filter", "FORWARD", "ip6tables -I FORWARD -i lan0 -o lan0 -j ACCEPT"),
        ("inet", "filter", "FORWARD", "nft insert rule inet filter FORWARD iifname lan0 oifname lan0 accept"),
        ("ip", "other", "forward", "nft insert rule ip other forward iifname lan0 oifname lan0 accept"),
    ] {
        let chain = ForwardChain { family, table: table.into(), name: name.into() };
        let mut facts = bonded();
        facts.bonds[0].filtered = vec![forward("bond0", "lan0", &chain)];
        let found = only(&facts);
        assert_eq!((found.severity, found.object.as_str()), (WARNING, "bond0"));
        assert_eq!(found.name, "guests_filtered");
        assert!(found.text.contains(&format!("'{name}' of '{family} {table}'")), "{}", found.text);
        assert_eq!(found.hint.as_deref(), Some(hint));
    }
}
