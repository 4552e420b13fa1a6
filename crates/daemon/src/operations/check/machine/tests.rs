use super::{Machine, version};
use crate::io::manager::Roots;
use std::{env, fs, process};

#[test]
fn releases_are_read_as_far_as_two_numbers() {
    assert_eq!(version("6.1.0-56-amd64"), Some((6, 1)));
    assert_eq!(version("6.18.44-fc"), Some((6, 18)));
    assert_eq!(version("7.0"), Some((7, 0)));
    assert_eq!(version("odd"), None);
    assert_eq!(version(""), None);
    assert!(version("5.15.0").unwrap() < super::KERNEL_MIN);
}

#[test]
fn capabilities_of_old_and_new_kernels_count() {
    let machine = |capabilities| Machine {
        release: String::new(),
        capabilities,
        restart: Ok(()),
        works: Ok(String::new()),
        tun: Ok(()),
        filters: Vec::new(),
        processors: 2,
        start: None,
    };
    assert_eq!(machine(u64::MAX).missing(), [""; 0]);
    assert_eq!(
        machine(1 << super::NET_ADMIN | 1 << super::NET_RAW | 1 << super::SYS_ADMIN).missing(),
        [""; 0]
    );
    let without = machine(1 << super::NET_ADMIN | 1 << super::BPF);
    assert_eq!(without.missing(), ["CAP_NET_RAW", "CAP_PERFMON"]);
}

#[test]
fn switches_and_rights_are_read_from_proc() {
    let root = env::temp_dir().join(format!("linkbraid-machine-{}", process::id()));
    let bridge = root.join("sys/net/bridge");
    fs::create_dir_all(&bridge).unwrap();
    fs::create_dir_all(root.join("thread-self")).unwrap();
    fs::write(bridge.join("bridge-nf-call-iptables"), "0\n").unwrap();
    fs::write(bridge.join("bridge-nf-call-ip6tables"), "1\n").unwrap();
    fs::write(root.join("thread-self/status"), "Name:\tx\nCapEff:\t00000000a0003000\n").unwrap();
    let roots = Roots { proc: root.clone(), ..Roots::default() };
    let machine = Machine::look(&roots, Ok(String::new()), None);
    fs::remove_dir_all(&root).unwrap();
    assert_eq!(machine.filters, ["bridge-nf-call-ip6tables"]);
    assert_eq!(machine.capabilities, 0xa000_3000);
    let nothing = Machine::look(&Roots { proc: "/nowhere".into(), ..roots }, Ok(String::new()), None);
    assert_eq!((nothing.filters.len(), nothing.capabilities), (0, 0));
    assert!(nothing.release.contains('.'), "{}", nothing.release);
}

#[test]
fn a_machine_without_tap_devices_is_told_so() {
    let dev = env::temp_dir().join(format!("linkbraid-dev-{}", process::id()));
    let roots = Roots { dev: dev.clone(), ..Roots::default() };
    let missing = super::tun(&roots).unwrap_err();
    let path = dev.join("net/tun");
    assert_eq!(missing.text, format!("cannot open {}: it does not exist; fabrics need it", path.display()));
    assert_eq!(missing.hint.as_deref(), Some("modprobe tun"));
    fs::create_dir_all(dev.join("net")).unwrap();
    fs::write(&path, "").unwrap();
    assert_eq!(super::tun(&roots), Ok(()));
    fs::remove_dir_all(&dev).unwrap();
}
