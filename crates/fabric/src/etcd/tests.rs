use super::Registrar;
use crate::{Address, Join};
use std::{
    fs,
    os::unix::fs::PermissionsExt as _,
    path::PathBuf,
    time::{Duration, Instant},
};

const JOIN: Join = Join { node: 3, nodes: 8, queues: 1 };

#[test]
fn addresses_with_etcd_are_read() {
    let address: Address = "udp:etcd://198.18.0.9:2379/lab".parse().unwrap();
    let etcd = address.etcd().expect("it is one");
    assert_eq!((etcd.endpoint.as_str(), etcd.own, &etcd.login), ("198.18.0.9:2379", None, &None));
    assert_eq!(etcd.prefix(), "/linkbraid/lab/nodes/");
    assert_eq!(etcd.file(&JOIN), PathBuf::from("/var/cache/linkbraid/lab-3"));
    let all = "udp:etcd://[2001:db8::9]:2379/a.b_c-d,own=[2001:db8::1]:7001,login=/etc/e,cache=/x/y,mtu=1400,vxlan=off";
    let address: Address = all.parse().unwrap();
    let etcd = address.etcd().expect("it is one");
    assert_eq!((etcd.own, etcd.login.clone()), ("[2001:db8::1]:7001".parse().ok(), Some("/etc/e".into())));
    assert_eq!(etcd.file(&JOIN), PathBuf::from("/x/y"));
    assert!("udp:/etc/fab0".parse::<Address>().unwrap().etcd().is_none());
}

#[test]
fn what_makes_no_path_and_no_key_is_refused() {
    for (text, cause) in [
        ("198.18.0.9:2379", "is not etcd://HOST:PORT/NAME"),
        ("198.18.0.9/lab", "is not etcd://HOST:PORT/NAME"),
        ("198.18.0.9:0/lab", "is not etcd://HOST:PORT/NAME"),
        ("a b:1/lab", "is not etcd://HOST:PORT/NAME"),
        ("user@host:1/lab", "is not etcd://HOST:PORT/NAME"),
        ("host:1/", "name '' has something else"),
        ("host:1/../x", "name '../x' has something else"),
        ("host:1/..", "name '..' has something else"),
        ("host:1/lab,own=198.18.0.1", "own '198.18.0.1' is not the ADDRESS:PORT of one node"),
        ("host:1/lab,own=0.0.0.0:7000", "own '0.0.0.0:7000' is not"),
        ("host:1/lab,login=etcd.toml", "'etcd.toml' is not an absolute path"),
        ("host:1/lab,fast", "allowed are own=ADDRESS:PORT, login=FILE, cache=FILE,"),
    ] {
        let error = format!("udp:etcd://{text}").parse::<Address>().expect_err(text);
        assert!(error.cause.contains(cause) && error.hint.is_some(), "{text}: {error}");
    }
    // Only where nodes are looked for in etcd.
    assert!("udp:/etc/fab0,own=198.18.0.1:7000".parse::<Address>().is_err());
}

/// A shell script, in place of the program.
fn program(name: &str, script: &str) -> PathBuf {
    let path = std::env::temp_dir().join(format!("linkbraid-registrar-{}-{name}", std::process::id()));
    let beside = path.with_extension("new");
    fs::write(&beside, format!("#!/bin/sh\nread order\n{script}\n")).unwrap();
    fs::set_permissions(&beside, fs::Permissions::from_mode(0o755)).unwrap();
    fs::rename(&beside, &path).unwrap();
    path
}

fn start(program: &std::path::Path) -> crate::Result<Registrar> {
    let address: Address = "udp:etcd://198.18.0.9:2379/lab".parse().unwrap();
    let begun = Instant::now();
    loop {
        match Registrar::start(program, &address, &JOIN) {
            // A child that another test has just forked holds the file open until it runs.
            Err(error) if error.cause.contains("text file busy") && begun.elapsed() < SOON => {}
            started => return started,
        }
    }
}

const SOON: Duration = Duration::from_secs(20);

#[test]
fn what_the_program_reports_is_known_and_one_that_ends_is_started_again() {
    let path = program("ends", r#"printf '"Ready"\n'; exit 3"#);
    let started = start(&path).unwrap();
    let begun = Instant::now();
    while started.trouble().is_none_or(|trouble| trouble != "its program ended (exit status: 3)") {
        assert!(begun.elapsed() < SOON, "{:?}", started.trouble());
    }
    program("ends", r#"printf '"Registered"\n'; cat >/dev/null"#);
    while started.trouble().is_some() {
        assert!(begun.elapsed() < SOON, "{:?}", started.trouble());
    }
    // It sees the end of its input.
    let begun = Instant::now();
    drop(started);
    assert!(begun.elapsed() < SOON);
    fs::remove_file(path).unwrap();
}

#[test]
fn a_program_that_refuses_is_not_waited_for_and_says_nothing_to_a_terminal() {
    let path = program("refuses", r#"printf '{"Refused":"no \\u001b[2Jway"}\n'"#);
    assert_eq!(start(&path).unwrap_err().cause, "no  [2Jway");
    fs::remove_file(path).unwrap();
}
