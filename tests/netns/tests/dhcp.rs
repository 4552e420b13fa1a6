//! Addresses that come from the network: a DHCP client on the bond and one of a guest, with a real server, and a router's advertisements.

use linkbraid_lab::{Fault, Host, LinkSpec, Running, Topology, wait_until};
use linkbraid_netns_tests::packet::{self, Tap};
use linkbraid_netns_tests::{BOND, GUEST_NIC, Net, SOON, sh, until};
use std::fs::{self, File};
use std::net::Ipv6Addr;
use std::os::unix::fs::PermissionsExt;
use std::path::PathBuf;
use std::process::{Command, Stdio};
use std::time::Duration;

/// A lease, in seconds: the client renews it after half of that, and never sooner than after 15 s.
const LEASE: u32 = 30;
/// How long a renewal may take to come.
const RENEWAL: Duration = Duration::from_secs(60);
/// The beginning of all addresses that the server gives.
const POOL: &str = "198.18.0.15";

/// Two bonded hosts and two plain ones.
fn net() -> Net {
    let switch = || LinkSpec::switch(0, None);
    Net::bonded(Topology::symmetric(2, 2, None).plain_host([switch()]).plain_host([switch()]))
}

/// A program of busybox on a host, with its output in a file.
fn busybox(net: &Net, host: Host<'_>, words: &[&str]) -> Running {
    let log =
        File::create(net.lab().folder().join(format!("{}.{}", host.name(), words[0]))).expect("creates");
    let mut command: Command = host.command("busybox");
    command.args(words).stdin(Stdio::null()).stdout(log.try_clone().expect("an open file")).stderr(log);
    Running::start(command).unwrap_or_else(|e| panic!("{e}; hint: scripts/deps.sh test"))
}

/// A DHCP server on the plain host.
fn server(net: &Net) -> Running {
    let host = net.host("c");
    let folder = net.lab().folder();
    let (config, leases) = (folder.join("udhcpd.conf"), folder.join("udhcpd.leases"));
    fs::write(&leases, "").expect("writes");
    let text = format!(
        "start {POOL}0\nend {POOL}9\ninterface eth0\nmax_leases 10\nmin_lease 5\nlease_file {}\npidfile {}\n\
         option subnet 255.255.255.0\noption lease {LEASE}\n",
        leases.display(),
        folder.join("udhcpd.pid").display()
    );
    fs::write(&config, text).expect("writes");
    busybox(net, host, &["udhcpd", "-f", &config.display().to_string()])
}

/// A DHCP client, and what it has been given so far.
struct Client {
    _process: Running,
    said: PathBuf,
}

impl Client {
    fn start(net: &Net, host: Host<'_>, interface: &str) -> Self {
        let folder = net.lab().folder();
        let (script, said) =
            (folder.join(format!("{interface}.sh")), folder.join(format!("{interface}.said")));
        let text = format!(
            "#!/bin/sh\n[ \"$1\" = bound ] || [ \"$1\" = renew ] || {{ echo \"$1\" >>{0}; exit 0; }}\n\
             ip address replace \"$ip/24\" dev \"$interface\" valid_lft \"$lease\" preferred_lft \"$lease\"\n\
             echo \"$1 $ip\" >>{0}\n",
            said.display()
        );
        fs::write(&script, text).expect("writes");
        fs::set_permissions(&script, fs::Permissions::from_mode(0o755)).expect("sets");
        let script = script.display().to_string();
        let process =
            busybox(net, host, &["udhcpc", "-f", "-i", interface, "-s", &script, "-t", "20", "-T", "1"]);
        Self { _process: process, said }
    }

    /// Its lines so far.
    fn said(&self) -> Vec<String> {
        fs::read_to_string(&self.said).unwrap_or_default().lines().map(str::to_owned).collect()
    }

    fn renewals(&self) -> usize {
        self.said().iter().filter(|line| line.starts_with("renew")).count()
    }

    #[track_caller]
    fn bound(&self) -> String {
        let bound = || self.said().iter().find_map(|line| line.strip_prefix("bound ").map(str::to_owned));
        until("an address", bound, Option::is_some).unwrap_or_default()
    }

    /// Waits until it has been renewed once more.
    #[track_caller]
    fn renewed(&self) {
        let before = self.renewals();
        wait_until(RENEWAL, "another renewal", || self.renewals(), |now| *now > before)
            .unwrap_or_else(|e| panic!("{e}"));
    }
}

impl Drop for Client {
    fn drop(&mut self) {
        if !std::thread::panicking() {
            return;
        }
        for name in ["a.udhcpc", "d.udhcpc", "c.udhcpd"] {
            let text = self.said.parent().and_then(|folder| fs::read_to_string(folder.join(name)).ok());
            eprintln!("--- {name}\n{}", text.unwrap_or_default());
        }
    }
}

#[test]
fn a_client_on_the_bond_gets_an_address_and_keeps_it() {
    let net = net();
    let (a, c) = (net.host("a"), net.host("c"));
    let _server = server(&net);
    let client = Client::start(&net, a, BOND);
    let address = client.bound();
    assert!(address.starts_with(POOL), "{address}");
    c.wait_ping(&address, SOON).expect("reaches");
    // Neither a link that is pulled, the one whose MAC the client names, nor a daemon that is killed and replaced keeps it from that.
    a.link(0).expect("a link").fail(Fault::Carrier).expect("fails");
    client.renewed();
    net.kill("a");
    client.renewed();
    net.start("a", &[]);
    c.wait_ping(&address, SOON).expect("reaches");
    let all = client.said();
    let other: Vec<_> = all.iter().filter(|line| !line.ends_with(&address) && *line != "deconfig").collect();
    assert!(other.is_empty(), "{all:?}");
    assert!(sh(a, &format!("ip -4 -o address show dev {BOND}")).contains(&address));
    for nic in ["eth0", "eth1"] {
        assert_eq!(sh(a, &format!("ip -o address show dev {nic}")), "", "members have no address");
    }
}

#[test]
fn a_guest_gets_its_address_by_dhcp() {
    let net = net();
    let d = net.plug_in("a", "d");
    sh(d, &format!("ip link set {GUEST_NIC} up"));
    let _server = server(&net);
    let client = Client::start(&net, d, GUEST_NIC);
    let address = client.bound();
    for name in ["a", "b", "c"] {
        net.host(name).wait_ping(&address, SOON).unwrap_or_else(|e| panic!("{name}: {e}"));
    }
    client.renewed();
    net.host("c").wait_ping(&address, SOON).expect("reaches");
}

/// A router advertisement (RFC 4861) of the prefix 2001:db8:7::/64.
fn advertisement(source: Ipv6Addr, mac: [u8; 6]) -> Vec<u8> {
    let to: Ipv6Addr = "ff02::1".parse().expect("an address");
    let prefix: Ipv6Addr = "2001:db8:7::".parse().expect("an address");
    let mut body = vec![134, 0, 0, 0, 64, 0, 7, 8, 0, 0, 0, 0, 0, 0, 0, 0];
    // The prefix, on the link and for addresses of one's own; an hour each.
    body.extend([3, 4, 64, 0xc0, 0, 0, 14, 16, 0, 0, 14, 16, 0, 0, 0, 0]);
    body.extend(prefix.octets());
    body.extend([1, 1]);
    body.extend(mac);
    let bytes = u16::try_from(body.len()).expect("fits");
    let pseudo =
        [&source.octets()[..], &to.octets(), &u32::from(bytes).to_be_bytes(), &58_u32.to_be_bytes(), &body];
    let pseudo = pseudo.concat();
    let words = pseudo.chunks(2).map(|two| u32::from(u16::from_be_bytes([two[0], two[1]])));
    let sum: u32 = words.sum();
    let sum = (sum & 0xffff) + (sum >> 16);
    let sum = !u16::try_from((sum & 0xffff) + (sum >> 16)).expect("folded");
    body[2..4].copy_from_slice(&sum.to_be_bytes());
    let mut frame = vec![0x33, 0x33, 0, 0, 0, 1];
    frame.extend(mac);
    frame.extend([0x86, 0xdd, 0x60, 0, 0, 0]);
    frame.extend(bytes.to_be_bytes());
    frame.extend([58, 255]);
    frame.extend(source.octets());
    frame.extend(to.octets());
    frame.extend(body);
    frame
}

#[test]
fn a_router_advertises_to_the_bond_and_to_its_guests() {
    let net = net();
    let (a, c, d) = (net.host("a"), net.host("c"), net.plug_in("a", "d"));
    for (host, nic) in [(a, BOND), (d, GUEST_NIC)] {
        for (setting, value) in [("accept_ra", 1), ("autoconf", 1)] {
            sh(host, &format!("sysctl -q -w net.ipv6.conf.{nic}.{setting}={value}"));
        }
    }
    sh(d, &format!("ip link set {GUEST_NIC} up"));
    let shown = sh(c, "ip -6 -o address show dev eth0 scope link");
    let own = shown.split_whitespace().find_map(|word| word.strip_suffix("/64")).expect("has one");
    let frame = advertisement(own.parse().expect("an address"), packet::mac(&c.mac(0)));
    let tap = Tap::open(c, "eth0", packet::IPV6);
    for (host, nic) in [(a, BOND), (d, GUEST_NIC)] {
        let address = || {
            tap.send(&frame).expect("sends");
            let all = sh(host, &format!("ip -6 -o address show dev {nic} -tentative"));
            all.split_whitespace().find(|word| word.starts_with("2001:db8:7:")).map(str::to_owned)
        };
        let address = until(&format!("an address of {nic}"), address, Option::is_some).unwrap_or_default();
        let routes = sh(host, &format!("ip -6 route show default dev {nic}"));
        assert!(routes.contains(&format!("via {own} ")), "{routes}");
        // The router has a way back.
        sh(c, "ip address replace 2001:db8:7::1/64 dev eth0");
        let address = address.split('/').next().unwrap_or_default().to_owned();
        c.wait_ping(&address, SOON).unwrap_or_else(|e| panic!("{nic}: {e}"));
    }
    for nic in ["eth0", "eth1"] {
        assert_eq!(sh(a, &format!("ip -o address show dev {nic}")), "", "members have no address");
    }
}
