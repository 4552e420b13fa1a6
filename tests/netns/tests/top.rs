//! `linkbraid top` in a terminal, as its user sees it.

mod picture;

use linkbraid_lab::iperf::{self, Cc, Traffic};
use linkbraid_lab::{Host, Running, Topology, daemon, wait_until};
use linkbraid_netns_tests::{BOND, Net, SOON, until};
use nix::sys::signal::{Signal, kill};
use nix::unistd::Pid;
use std::fs;
use std::io::{PipeWriter, Read as _, Write as _};
use std::process::Stdio;
use std::sync::{Arc, Mutex};

/// What a shell does in the terminal: the size of an SSH session, the command, and whether the terminal is as it was.
const SCRIPT: &str = "stty rows 24 cols 80; before=$(stty -g); \"$BINARY\" top; status=$?; \
                      [ \"$before\" = \"$(stty -g)\" ] && echo \"status $status, terminal as before\"";

/// A terminal in which `top` runs.
struct Terminal {
    running: Running,
    keys: PipeWriter,
    screen: Arc<Mutex<vt100::Parser>>,
}

impl Terminal {
    /// script(1) makes the terminal, and hands on what is typed and shown.
    #[track_caller]
    fn start(host: Host<'_>) -> Self {
        let (input, keys) = std::io::pipe().expect("a pipe");
        let (mut output, shown) = std::io::pipe().expect("a pipe");
        let mut command = host.linkbraid_command("script");
        command.args(["--quiet", "--flush", "--command", SCRIPT, "/dev/null"]);
        command.env("BINARY", daemon::binary().expect("linkbraid is built")).env("TERM", "xterm-256color");
        command.env("SHELL", "/bin/sh").stdin(input).stdout(shown).stderr(Stdio::null());
        let running = Running::start(command).expect("script(1) is there");
        let screen = Arc::new(Mutex::new(vt100::Parser::new(24, 80, 0)));
        let drawn = screen.clone();
        std::thread::spawn(move || {
            let mut bytes = [0; 4096];
            while let Ok(read @ 1..) = output.read(&mut bytes) {
                drawn.lock().expect("no panic").process(&bytes[..read]);
            }
        });
        Self { running, keys, screen }
    }

    fn text(&self) -> String {
        self.screen.lock().expect("no panic").screen().contents()
    }

    fn press(&mut self, keys: &str) {
        self.keys.write_all(keys.as_bytes()).expect("script reads");
    }

    /// Waits for a screen on which some line has all of these words.
    #[track_caller]
    fn shows(&self, words: &[&str]) -> String {
        let has = |text: &String| text.lines().any(|line| words.iter().all(|word| line.contains(word)));
        until(&format!("a line with {words:?}"), || self.text(), has)
    }

    /// The process number of `top` itself, a child of the shell that script(1) runs.
    #[track_caller]
    fn top(&self) -> Pid {
        let child = |parent: u32| {
            let path = format!("/proc/{parent}/task/{parent}/children");
            let text = fs::read_to_string(path).unwrap_or_default();
            text.split_whitespace().filter_map(|word| word.parse::<u32>().ok()).collect::<Vec<_>>()
        };
        let mut all = vec![self.running.id()];
        let mut at = 0;
        while at < all.len() {
            all.extend(child(all[at]));
            at += 1;
        }
        let is_top = |pid: &u32| {
            fs::read_to_string(format!("/proc/{pid}/comm")).is_ok_and(|comm| comm.trim() == "linkbraid")
        };
        let pid = all.into_iter().find(is_top).expect("it runs");
        Pid::from_raw(i32::try_from(pid).expect("a process number"))
    }

    /// Waits for the end, after which the terminal is as it was.
    #[track_caller]
    fn ended(mut self, status: i32) {
        let text = self.shows(&[&format!("status {status}, terminal as before")]);
        assert!(!text.contains("q quit"), "the page is gone: {text}");
        wait_until(SOON, "script to end", || self.running.ended(), Option::is_some)
            .unwrap_or_else(|e| panic!("{e}"));
    }
}

#[test]
fn a_pulled_cable_is_seen_and_every_end_restores_the_terminal() {
    let net = &Net::bonded(Topology::symmetric(2, 4, Some(20)));
    let mut terminal = Terminal::start(net.host("a"));
    terminal.shows(&["eth1", "up"]);
    terminal.shows(&["q quit"]);
    std::thread::scope(|scope| {
        let flow = Traffic::tcp(Cc::Cubic, 4);
        let flow = scope.spawn(move || iperf::run(net.host("a"), net.host("b"), &flow).expect("runs"));
        terminal.shows(&["eth1", "Mbit/s", "%"]);
        flow.join().expect("no panic");
        if std::env::var_os("UPDATE").is_some() {
            let path = concat!(env!("CARGO_MANIFEST_DIR"), "/../../docs/pictures/top.svg");
            fs::write(path, picture::of(terminal.screen.lock().expect("no panic").screen())).expect("writes");
        }
    });
    net.host("a").link(1).expect("a link").carrier(false).expect("pulls");
    terminal.shows(&["eth1", "down", "no carrier"]);
    // Below, and on its own page, the event that told it; newest first.
    terminal.shows(&["member eth1", "up -> down"]);
    terminal.press("\t");
    terminal.shows(&["eth1", "cut"]);
    terminal.press("/eth0\r");
    let lanes = terminal.shows(&["filter 'eth0'"]);
    assert!(!lanes.contains("eth1 "), "{lanes}");
    terminal.press("4");
    terminal.press("\x1b");
    terminal.shows(&["member eth1", "up -> down"]);
    terminal.press("q");
    terminal.ended(0);

    let terminal = Terminal::start(net.host("a"));
    terminal.shows(&["eth1", "down"]);
    kill(terminal.top(), Signal::SIGTERM).expect("it runs");
    terminal.ended(0);

    // A daemon that comes back is watched again.
    let mut terminal = Terminal::start(net.host("a"));
    terminal.shows(&["eth1", "down"]);
    net.kill("a");
    terminal.shows(&["linkbraid top", "cannot reach the daemon"]);
    net.start("a", &[]);
    let plugged = || {
        net.host("a").link(1).expect("a link").carrier(true).expect("plugs");
        terminal.text()
    };
    let is_up = |text: &String| text.lines().any(|line| line.contains("eth1") && line.contains("  up  "));
    until("eth1 to be up", plugged, is_up);
    terminal.press("\x03");
    terminal.ended(0);
}

#[test]
fn what_cannot_be_shown_is_refused_with_a_hint() {
    let net = Net::alone();
    let hint = net.say("a", "top").refused(1, "top: cannot draw: standard output is no terminal");
    assert_eq!(hint, "linkbraid show");
    let hint = net
        .say("a", &format!("top {BOND} --json"))
        .refused(2, "top: option '--json': 'top' is for people; programs read 'show', 'lanes' and 'monitor'");
    assert_eq!(hint, "linkbraid show --json");
}
