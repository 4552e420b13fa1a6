use super::{Manager, Managers, Roots, is_here};
use std::{
    fs, io,
    os::unix::fs::symlink,
    path::{Path, PathBuf},
    process,
    sync::atomic::{AtomicU32, Ordering},
};

const HERE: &str = "net:[1]";
const ELSEWHERE: &str = "net:[2]";

/// A `/run` and a `/proc` of our own.
struct Fake(Roots, PathBuf);

impl Fake {
    fn new() -> Self {
        static NUMBER: AtomicU32 = AtomicU32::new(0);
        let number = NUMBER.fetch_add(1, Ordering::Relaxed);
        let root = std::env::temp_dir().join(format!("linkbraid-managers-{}-{number}", process::id()));
        let fake = Self(Roots { run: root.join("run"), proc: root.join("proc"), ..Roots::default() }, root);
        fs::create_dir_all(fake.0.proc.join("thread-self/ns")).unwrap();
        symlink(HERE, fake.0.proc.join("thread-self/ns/net")).unwrap();
        fs::write(fake.0.proc.join("stat"), "not a process").unwrap();
        fake
    }

    fn process(&self, pid: u32, namespace: &str, name: &str, line: &str) -> &Self {
        let directory = self.0.proc.join(pid.to_string());
        fs::create_dir_all(directory.join("ns")).unwrap();
        symlink(namespace, directory.join("ns/net")).unwrap();
        fs::write(directory.join("comm"), format!("{name}\n")).unwrap();
        fs::write(directory.join("cmdline"), line).unwrap();
        self
    }

    fn file(&self, path: &str, text: &str) -> &Self {
        let path = self.0.run.join(path);
        fs::create_dir_all(path.parent().unwrap()).unwrap();
        fs::write(path, text).unwrap();
        self
    }

    /// Who manages eth1, which has index 3.
    fn managers(&self, leased: bool) -> Vec<Manager> {
        Managers::look(&self.0, vec!["eth0".into(), "eth1".into()]).of(3, "eth1", leased)
    }
}

impl Drop for Fake {
    fn drop(&mut self) {
        let _ = fs::remove_dir_all(&self.1);
    }
}

#[test]
fn network_manager_counts_while_it_runs_here_and_manages_it() {
    let fake = Fake::new();
    fake.file("NetworkManager/devices/3", "[device]\nmanaged=true\nconnection-uuid=1234\n");
    assert_eq!(fake.managers(false), [], "it does not run");
    fake.process(10, ELSEWHERE, "NetworkManager", "");
    assert_eq!(fake.managers(false), [], "it runs in another namespace");
    fake.process(11, HERE, "NetworkManager", "/usr/sbin/NetworkManager\0--no-daemon\0");
    assert_eq!(fake.managers(false), [Manager::Nm]);
    // Its own DHCP client is no second manager.
    fake.process(12, HERE, "dhclient", "/sbin/dhclient\0-d\0eth1\0");
    assert_eq!(fake.managers(true), [Manager::Nm]);
    fake.file("NetworkManager/devices/3", "[device]\nmanaged=false\n");
    assert_eq!(fake.managers(false), [Manager::Dhcp { client: "dhclient".into(), pid: 12 }]);
}

#[test]
fn networkd_counts_while_it_runs_and_has_not_been_told_to_leave_it_alone() {
    let fake = Fake::new();
    let state =
        |state: &str| format!("# This is private data. Do not parse.\nADMIN_STATE={state}\nOPER_STATE=up\n");
    fake.file("systemd/netif/links/3", &state("configured"));
    assert_eq!(fake.managers(false), []);
    fake.process(10, HERE, "systemd-network", "/usr/lib/systemd/systemd-networkd\0");
    assert_eq!(fake.managers(false), [Manager::Networkd { lease: false }]);
    fake.file("systemd/netif/leases/3", "ADDRESS=198.18.0.9\n");
    assert_eq!(fake.managers(true), [Manager::Networkd { lease: true }]);
    fake.file("systemd/netif/links/3", &state("unmanaged"));
    assert_eq!(fake.managers(true), []);
    fake.file("systemd/netif/links/3", "");
    assert_eq!(fake.managers(true), []);
}

#[test]
fn a_dhcp_client_counts_for_the_interfaces_it_names() {
    let fake = Fake::new();
    fake.process(20, HERE, "dhclient", "dhclient\0-v\0eth0\0");
    assert_eq!(fake.managers(true), [], "it names another one");
    fake.process(30, HERE, "dhcpcd", "dhcpcd: eth1 [ip4] [ip6]");
    fake.process(31, HERE, "dhcpcd", "dhcpcd: [privileged proxy] eth1 [ip4]");
    fake.process(32, ELSEWHERE, "udhcpc", "udhcpc\0-i\0eth1\0");
    assert_eq!(fake.managers(false), [Manager::Dhcp { client: "dhcpcd".into(), pid: 30 }]);
}

#[test]
fn a_dhcp_client_that_names_none_counts_where_there_is_a_lease() {
    let fake = Fake::new();
    fake.process(30, HERE, "dhcpcd", "dhcpcd: [manager] [ip4] [ip6]");
    assert_eq!(fake.managers(false), []);
    assert_eq!(fake.managers(true), [Manager::Dhcp { client: "dhcpcd".into(), pid: 30 }]);
}

#[test]
fn odd_files_are_survived() {
    let fake = Fake::new();
    fake.process(10, HERE, "NetworkManager", "").process(11, HERE, "systemd-network", "");
    assert_eq!(fake.managers(true), [], "no files at all");
    fs::create_dir_all(fake.0.run.join("NetworkManager/devices")).unwrap();
    fs::write(fake.0.run.join("NetworkManager/devices/3"), [0xff, 0xfe, b'\n', 0]).unwrap();
    fake.file("systemd/netif/links/3", &"x".repeat(100_000));
    assert_eq!(fake.managers(true), []);
    let nowhere = Roots { run: "/nowhere".into(), proc: "/nowhere".into(), ..Roots::default() };
    assert_eq!(Managers::look(&nowhere, Vec::new()).of(3, "eth1", true), []);
}

#[test]
fn a_service_of_the_machine_is_here_where_the_kernel_does_not_say() {
    let here = Some(Path::new(HERE));
    let hidden = || Err(io::ErrorKind::PermissionDenied.into());
    let service = "0::/system.slice/NetworkManager.service\n";
    assert!(is_here(&hidden(), here, service));
    assert!(is_here(&hidden(), here, "0::/system.slice/system-ifup.slice/ifup@eth1.service\n"));
    for elsewhere in [
        "0::/system.slice/docker-0123.scope\n",
        "0::/machine.slice/libpod-0123.scope/system.slice/systemd-networkd.service\n",
        "0::/lxc.payload.x/system.slice/NetworkManager.service\n",
        "",
    ] {
        assert!(!is_here(&hidden(), here, elsewhere), "{elsewhere}");
    }
    assert!(!is_here(&Ok(ELSEWHERE.into()), here, service), "the kernel knows better");
    assert!(!is_here(&Err(io::ErrorKind::NotFound.into()), here, service), "it is gone");
}
