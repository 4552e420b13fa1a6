//! `linkbraid support`: the bundle tells what is needed, and nothing that must stay on the machine.

use linkbraid_lab::Topology;
use linkbraid_netns_tests::{BOND, Net, Said, sh};
use std::fs;
use std::os::unix::fs::PermissionsExt;
use std::path::{Path, PathBuf};
use std::process::Command;

/// All parts of a bundle, each under its name.
#[track_caller]
fn parts(bundle: &Path) -> Vec<(String, String)> {
    let tar = |words: &[&str]| {
        let said = Said::by(Command::new("tar").args(words));
        assert_eq!(said.code, 0, "{said:?}");
        said.out
    };
    let file = bundle.display().to_string();
    let names = tar(&["-tzf", &file]);
    names.lines().map(|name| (name.to_owned(), tar(&["-xzOf", &file, name]))).collect()
}

/// The text of one part.
#[track_caller]
fn part<'p>(parts: &'p [(String, String)], name: &str) -> &'p str {
    let found = parts.iter().find(|(of, _)| *of == format!("linkbraid-support/{name}"));
    &found.unwrap_or_else(|| panic!("no part {name}: {:?}", parts.iter().map(|p| &p.0).collect::<Vec<_>>())).1
}

/// A bond with a key on both hosts; the secret.
fn with_key(net: &Net) -> (PathBuf, String) {
    let file = net.lab().folder().join("bond0.key");
    net.ok("a", &format!("key new {}", file.display()));
    for host in ["a", "b"] {
        net.ok(host, &format!("bond set {BOND} --key {} --auth require", file.display()));
    }
    let text = fs::read_to_string(&file).expect("reads");
    let secret = text.split_whitespace().find(|word| word.len() == 64).expect("a secret").to_owned();
    (file, secret)
}

#[test]
fn no_key_and_no_address_is_in_the_bundle_and_all_parts_are() {
    let net = Net::bonded(Topology::symmetric(2, 2, None));
    let (_, secret) = with_key(&net);
    let bundle = net.lab().folder().join("support.tar.gz");
    let said = net.ok("a", &format!("support --output {}", bundle.display()));
    assert!(said.starts_with(&bundle.display().to_string()) && said.contains("were replaced"), "{said}");
    let mode = fs::metadata(&bundle).expect("is there").permissions().mode();
    assert_eq!(mode & 0o777, 0o600);

    let parts = parts(&bundle);
    assert!(part(&parts, "daemon/show.json").contains(r#""name": "bond0""#));
    assert!(part(&parts, "daemon/lanes.json").contains("eth1"));
    assert!(part(&parts, "daemon/stats.json").contains("counters"));
    assert!(part(&parts, "check.txt").contains("this machine"));
    assert!(part(&parts, "net/links.txt").contains("bond0"));
    assert!(part(&parts, "README.txt").contains("ethtool/eth0.txt"));
    assert!(part(&parts, "ethtool/eth0.txt").contains("tcp-segmentation-offload"));
    let mac = part(&parts, "daemon/peers.json").split('"').find(|word| word.starts_with("mac-"));
    let mac = mac.expect("a peer's MAC has a name");
    assert!(part(&parts, "daemon/lanes.json").contains(mac), "and the same one elsewhere");

    let mut hidden = vec![secret];
    for host in ["a", "b"].map(|name| net.host(name)) {
        hidden.extend([host.ipv4().to_owned(), host.ipv6().to_owned()]);
        for link in 0..2 {
            hidden.extend([host.mac(link), host.mac(link).replace(':', "")]);
        }
        // Those that IPv6 makes by itself, and those of the bridge's own ports.
        let addresses = sh(host, "ip -o address").to_lowercase();
        let words = addresses.split_whitespace().filter_map(|word| word.split_once('/'));
        hidden.extend(words.map(|(address, _)| address.to_owned()).filter(|address| address.len() > 5));
        let links = sh(host, "ip -o link");
        hidden.extend(
            links.split_whitespace().filter(|word| word.len() == 17 && word.contains(':')).map(str::to_owned),
        );
    }
    hidden.retain(|word| !["127.0.0.1", "00:00:00:00:00:00", "ff:ff:ff:ff:ff:ff"].contains(&word.as_str()));
    assert!(hidden.len() > 12, "{hidden:?}");
    for (name, text) in &parts {
        for word in &hidden {
            assert!(!text.to_lowercase().contains(word), "{word} is in {name}:\n{text}");
        }
    }

    let hint = net
        .say("a", &format!("support --output {}", bundle.display()))
        .refused(1, &format!("{}: cannot write the bundle: file exists", bundle.display()));
    assert_eq!(hint, format!("ls -l {}", bundle.display()));
}

#[test]
fn without_a_daemon_and_with_addresses_where_they_are_wanted() {
    let net = Net::alone();
    let bundle = net.lab().folder().join("open.tar.gz");
    let said = net.ok("a", &format!("support {} --no-redact --json", bundle.display()));
    assert!(said.contains(r#""redacted": false"#), "{said}");
    let parts = parts(&bundle);
    assert!(part(&parts, "check.txt").contains("no daemon runs"));
    assert!(part(&parts, "README.txt").contains("no daemon runs"));
    assert!(part(&parts, "net/addresses.txt").contains(net.host("a").ipv4()), "addresses stay");
}
