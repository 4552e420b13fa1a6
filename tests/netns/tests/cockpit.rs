//! The page for Cockpit, in a real Cockpit and a real browser: a bond is made with it, and what it shows of the bond is so.

use linkbraid_lab::iperf::{self, Cc, Traffic};
use linkbraid_lab::{Running, Topology};
use linkbraid_netns_tests::browser::{Browser, listens};
use linkbraid_netns_tests::{BOND, Net, SOON, until};
use std::os::unix::fs::symlink;
use std::path::{Path, PathBuf};
use std::{fs, process::Command};

const PORT: u16 = 9090;
const URL: &str = "http://127.0.0.1:9090/cockpit/@localhost/linkbraid/index.html";

/// Cockpit, without its login. The lab's folder, which has the host's socket and our page, is below that of a machine's socket.
const SERVE: &str = "mount -t tmpfs tmpfs /mnt && mkdir /mnt/lab && mount --bind \"$FOLDER\" /mnt/lab && \
                     ln -s \"lab/${SOCKET##*/}\" /mnt/linkbraid.sock && mkdir -p /run/linkbraid && \
                     mount --move /mnt /run/linkbraid && export XDG_DATA_DIRS=/run/linkbraid/lab:/usr/share && \
                     exec /usr/lib/cockpit/cockpit-ws --no-tls --address 127.0.0.1 --port 9090 \
                     --local-session=cockpit-bridge";

fn source(path: &str) -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("../..").join(path)
}

fn serve(net: &Net) -> Running {
    let (host, folder) = (net.host("a"), net.lab().folder());
    fs::create_dir_all(folder.join("cockpit")).expect("makes");
    symlink(source("dist/cockpit").canonicalize().expect("it is there"), folder.join("cockpit/linkbraid"))
        .expect("links");
    let mut command = host.command("unshare");
    command.args(["--mount", "sh", "-c", SERVE]).env("SOCKET", host.socket()).env("FOLDER", folder);
    Running::serve(command, SOON, || listens(host, PORT))
        .unwrap_or_else(|e| panic!("{e}; it is in the package cockpit-ws: scripts/deps.sh test"))
}

/// Chooses all four links, and makes the bond.
fn make(browser: &Browser<'_>) {
    browser.click("#make");
    browser.wait_count("#dialog input[type=checkbox]", 4);
    for link in 0..4 {
        browser.click(&format!("#link-eth{link}"));
    }
    browser.click("#dialog button.primary");
    browser.wait_text("#dialog", "would move to the bond");
    browser.click("#dialog button.primary");
    browser.wait_text("#changes", "unless you keep it");
}

/// The numbers of cables that are drawn as working, and as not.
fn cables(browser: &Browser<'_>) -> (u64, u64) {
    (browser.count(".cable.up"), browser.count(".cable.down"))
}

#[test]
fn a_bond_is_made_watched_and_a_pulled_cable_is_seen() {
    let net = &Net::up(Topology::symmetric(2, 4, Some(20)));
    net.start("b", &[]);
    net.bond("b");
    let _cockpit = serve(net);
    let browser = Browser::start(net.host("a"), (1280, 1150));
    browser.open(URL);
    // Without a daemon it says what to do, and goes on when there is one.
    browser.wait_text("#trouble", "systemctl enable --now linkbraid");
    net.start("a", &[]);
    browser.wait_text("#bonds", "There is no bond on this machine yet");
    browser.wait_count("#trouble[hidden]", 1);

    make(&browser);
    // Not kept.
    browser.click(".change button:not(.primary)");
    browser.wait_text("#bonds", "There is no bond on this machine yet");
    assert_eq!(net.ok("a", "show --json").trim(), "[]");
    make(&browser);
    browser.click("#keep");
    browser.wait_text("#notes", "/etc/linkbraid/bond0.toml");
    // What it says to write is what the daemon reads.
    let text = browser.text("#notes pre");
    assert_eq!(net.apply(&text), ["nothing to do"], "{text}");
    browser.click("#notes button");
    assert_eq!(net.members("a", BOND), ["eth0", "eth1", "eth2", "eth3"]);

    net.wait_tables(&["a", "b"]);
    browser.wait_text(".health", "ok");
    until("all cables", || cables(&browser), |seen| *seen == (8, 0));
    browser.click(&format!("#lanes-{BOND} summary"));
    browser.wait_count(&format!("#lanes-{BOND} tr.up"), 16);
    browser.click(&format!("#lanes-{BOND} summary"));
    std::thread::scope(|scope| {
        let flow = Traffic::tcp(Cc::Cubic, 8);
        let flow = scope.spawn(move || iperf::run(net.host("a"), net.host("b"), &flow).expect("runs"));
        // More than one link carries.
        let is_fast = |text: &String| {
            let (rate, unit) = text.split_once(' ').unwrap_or_default();
            unit == "Mbit/s" && rate.parse::<f64>().is_ok_and(|rate| rate > 30.0)
        };
        until("the rate of the flow", || browser.text("figure b"), is_fast);
        flow.join().expect("no panic");
    });
    if std::env::var_os("UPDATE").is_some() {
        picture(&browser);
    }
    // Both ends of it lose the link.
    net.host("b").link(2).expect("a link").carrier(false).expect("pulls");
    until("the cable to be down", || cables(&browser), |seen| *seen == (7, 1));
    browser.wait_text("#events", "up → cut");
    net.host("a").link(1).expect("a link").carrier(false).expect("pulls");
    browser.wait_text(".topology", "no carrier");
    browser.wait_text(".health", "degraded");
    assert_eq!(browser.errors(), Vec::<String>::new());
}

/// The picture in the documents.
fn picture(browser: &Browser<'_>) {
    let folder = source("docs/pictures");
    fs::create_dir_all(&folder).expect("makes");
    let encoded = folder.join("cockpit.base64");
    fs::write(&encoded, browser.picture()).expect("writes");
    let decoded = Command::new("base64").arg("--decode").arg(&encoded).output().expect("decodes").stdout;
    fs::write(folder.join("cockpit.png"), decoded).expect("writes");
    fs::remove_file(encoded).expect("removes");
}
