//! Two hosts with two links between them, in network namespaces.

use crate::lent::Lent;
use crate::rig::{index, ip, new_namespace, own, peer, plan};
use linkbraid_dataplane::{Bond, Member, PeerMac, PeerMacKind, Plan, Policy};
use nix::sched::{CloneFlags, setns};
use std::{
    fs::File,
    io::ErrorKind,
    net::UdpSocket,
    os::fd::AsRawFd as _,
    process::Command,
    time::{Duration, Instant},
};

pub const DEADLINE: Duration = Duration::from_secs(20);

/// One of them, 198.18.9.1 or 198.18.9.2, and .10. in a VLAN.
pub struct Host {
    pub number: u8,
    pub namespace: File,
    pub has_vlans: bool,
    pub path: Lent,
}

/// The MAC of a host's member.
fn mac(host: u8, slot: u8) -> [u8; 6] {
    if host == 1 { own(slot) } else { peer(slot) }
}

pub fn text(mac: [u8; 6]) -> String {
    mac.map(|byte| format!("{byte:02x}")).join(":")
}

/// A namespace of its own for this thread.
fn namespace() -> File {
    new_namespace();
    ip("link set lo up");
    File::open("/proc/thread-self/ns/net").unwrap()
}

impl Host {
    /// Makes the bond, where the members are already; all traffic to the other host goes by both lanes.
    fn new(number: u8, namespace: File) -> Self {
        setns(&namespace, CloneFlags::CLONE_NEWNET).unwrap();
        ip("link add bond type bridge");
        ip(&format!("link set bond address {}", text(mac(number, 0))));
        for slot in 0..2 {
            ip(&format!("link set member{slot} address {} master bond up", text(mac(number, slot))));
            ip(&format!("link set member{slot} type bridge_slave isolated on learning off flood off"));
        }
        ip("link set bond up");
        // Small kernels have no VLANs.
        let tagged =
            Command::new("ip").args("link add link bond name tagged type vlan id 5".split(' ')).output();
        let has_vlans = tagged.expect("iproute2 is installed").status.success();
        if has_vlans {
            ip("link set tagged up");
        }
        let other = 3 - number;
        for (net, device) in [(9, "bond"), (10, "tagged")].into_iter().take(1 + usize::from(has_vlans)) {
            ip(&format!("address add 198.18.{net}.{number}/24 dev {device}"));
            let to = text(mac(other, 0));
            ip(&format!("neighbour add 198.18.{net}.{other} lladdr {to} dev {device} nud permanent"));
        }
        let mut path = Lent::take();
        set_up(&mut path, number, u32::from(number));
        Self { number, namespace, path, has_vlans }
    }

    pub fn enter(&self) {
        setns(&self.namespace, CloneFlags::CLONE_NEWNET).unwrap();
    }

    pub fn to_other(&self, policy: Policy) {
        let to = if self.number == 1 { |slot| Some(peer(slot)) } else { |slot| Some(own(slot)) };
        self.path.set_plan(1, &Plan { policy, ..plan(&[(0, 1), (1, 1)], to) }).unwrap();
    }

    /// Its daemon has died, and so has what it left: nothing is known of what was sent.
    pub fn start_anew(&mut self, epoch: u32) {
        self.enter();
        self.path.renew();
        set_up(&mut self.path, self.number, epoch);
    }

    pub fn count(&self, reason: &'static str) -> u64 {
        self.path.reason(reason).unwrap().frames
    }

    /// A socket of this host, in network `net`.
    pub fn udp(&self, net: u8) -> UdpSocket {
        self.enter();
        let begun = Instant::now();
        let socket = loop {
            match UdpSocket::bind(format!("198.18.{net}.{}:5000", self.number)) {
                // A child that another test is just starting has the one before until it runs its program.
                Err(error) if error.kind() == ErrorKind::AddrInUse && begun.elapsed() < DEADLINE => {}
                bound => break bound.unwrap(),
            }
        };
        socket.set_read_timeout(Some(DEADLINE)).unwrap();
        socket
    }

    /// Takes its link `slot` down.
    pub fn cut(&self, slot: u8) {
        self.enter();
        ip(&format!("link set member{slot} down"));
    }

    /// Puts it up again.
    pub fn mend(&self, slot: u8) {
        self.enter();
        ip(&format!("link set member{slot} up"));
        self.wait_for_link(slot);
    }

    /// Waits until what arrives there comes to the bond.
    fn wait_for_link(&self, slot: u8) {
        self.enter();
        wait_for(|| {
            let shown =
                Command::new("bridge").args(["link", "show", "dev", &format!("member{slot}")]).output();
            String::from_utf8_lossy(&shown.expect("iproute2 is installed").stdout)
                .contains("state forwarding")
        });
    }
}

/// What the daemon does once the programs are loaded.
fn set_up(path: &mut Lent, number: u8, epoch: u32) {
    let bond = Bond {
        ifindex: index("bond"),
        mac: mac(number, 0),
        damping: None,
        elected: vec![0],
        failed_slots: 0,
        epoch,
    };
    path.set_bond(&bond).unwrap();
    let other = 3 - number;
    for slot in 0..2 {
        let ifindex = index(&format!("member{slot}"));
        path.set_member(slot, Some(&Member { ifindex, mac: mac(number, slot), live: true, elected: 0 }))
            .unwrap();
        let row =
            PeerMac { plan: 1, primary: mac(other, 0), broadcast_slot: 0, kind: PeerMacKind::default() };
        path.set_peer_mac(mac(other, slot), &row).unwrap();
        path.attach_member(ifindex).unwrap();
    }
    path.set_plan(0, &plan(&[(0, 1), (1, 1)], |_| None)).unwrap();
    path.attach_port(bond.ifindex).unwrap();
}

/// Two hosts whose members are joined by cables, all traffic mirrored both ways.
pub fn two_hosts() -> [Host; 2] {
    let (first, second) = (namespace(), namespace());
    let to = format!("/proc/{}/fd/{}", std::process::id(), first.as_raw_fd());
    for slot in 0..2 {
        ip(&format!("link add member{slot} type veth peer name member{slot} netns {to}"));
    }
    let second = Host::new(2, second);
    let hosts = [Host::new(1, first), second];
    for host in &hosts {
        host.to_other(Policy::Mirror);
        (0..2).for_each(|slot| host.wait_for_link(slot));
    }
    hosts
}

#[track_caller]
pub fn wait_for(mut is: impl FnMut() -> bool) {
    let begun = Instant::now();
    while !is() {
        assert!(begun.elapsed() < DEADLINE, "it never came");
        std::thread::yield_now();
    }
}
