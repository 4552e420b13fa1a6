//! The command as a shell sees it: standard output, standard error and the exit status, against a daemon that
//! answers what the test tells it to.

use std::io::{BufRead, BufReader, Read, Write};
use std::os::unix::fs::PermissionsExt;
use std::os::unix::net::UnixListener;
use std::path::PathBuf;
use std::process::{Command, Output, Stdio};
use std::thread::{self, JoinHandle};

const BOND: &str = include_str!("bond.json");

fn linkbraid(socket: &str, words: &[&str]) -> Command {
    let mut command = Command::new(env!("CARGO_BIN_EXE_linkbraid"));
    command.args(words).env("LINKBRAID_SOCKET", socket).env_remove("NO_COLOR").stdin(Stdio::null());
    command
}

fn run(socket: &str, words: &[&str]) -> (i32, String, String) {
    let Output { status, stdout, stderr } = linkbraid(socket, words).output().unwrap();
    (
        status.code().expect("no signal ended it"),
        String::from_utf8(stdout).unwrap(),
        String::from_utf8(stderr).unwrap(),
    )
}

/// Answers one request with `reply` and gives back what was asked.
fn daemon(test: &str, reply: String) -> (String, JoinHandle<String>) {
    let path: PathBuf = std::env::temp_dir().join(format!("linkbraid-{test}-{}.sock", std::process::id()));
    let listener = UnixListener::bind(&path).unwrap();
    let socket = path.to_str().unwrap().to_owned();
    let handle = thread::spawn(move || {
        let (mut stream, _) = listener.accept().unwrap();
        let mut call = Vec::new();
        BufReader::new(&stream).read_until(0, &mut call).unwrap();
        stream.write_all(reply.as_bytes()).unwrap();
        std::fs::remove_file(path).unwrap();
        String::from_utf8(call).unwrap()
    });
    (socket, handle)
}

fn bonds_reply() -> String {
    let bonds: serde_json::Value = serde_json::from_str(BOND).unwrap();
    serde_json::json!({ "parameters": { "bonds": bonds } }).to_string() + "\0"
}

#[test]
fn no_daemon_is_status_3_with_one_line_and_one_hint() {
    let (code, out, err) = run("/tmp/linkbraid-nobody.sock", &["show"]);
    assert_eq!((code, out.as_str()), (3, ""));
    assert_eq!(
        err,
        "linkbraid: error: /tmp/linkbraid-nobody.sock: cannot reach the daemon: none is running on this socket\n  \
         hint: linkbraid daemon --socket /tmp/linkbraid-nobody.sock\n"
    );
}

#[test]
fn wrong_usage_is_status_2_with_one_line_and_one_hint() {
    let (code, out, err) = run("/tmp/linkbraid-nobody.sock", &["bond", "set", "bond0", "--stripe", "200"]);
    assert_eq!((code, out.as_str()), (2, ""));
    assert_eq!(
        err,
        "linkbraid: error: bond set: option '--stripe': '200' has no unit; allowed are auto, 10us to 10ms and \
         1024B to 64KiB\n  hint: linkbraid bond set --help\n"
    );
}

#[test]
fn every_usage_hint_works() {
    for words in [&["bond", "add"][..], &["member", "set", "b"], &["shwo"], &["show", "a", "b"]] {
        let (code, _, err) = run("/tmp/linkbraid-nobody.sock", words);
        assert_eq!(code, 2, "{words:?}");
        let hint =
            err.lines().nth(1).and_then(|line| line.strip_prefix("  hint: linkbraid ")).expect("a hint");
        let (code, out, err) = run("/tmp/linkbraid-nobody.sock", &hint.split(' ').collect::<Vec<_>>());
        assert_eq!((code, err.as_str()), (0, ""), "{hint}");
        assert!(out.contains("Usage: linkbraid"), "{out}");
    }
}

#[test]
fn a_refusal_is_status_1_with_the_daemons_words() {
    let reply = serde_json::json!({ "error": "org.linkbraid.Daemon.Refused", "parameters": {
        "object": "bond0", "what": "cannot add member 'eth9'", "cause": "no such interface", "hint": "ip link"
    }});
    let (socket, handle) = daemon("refusal", reply.to_string() + "\0");
    let (code, out, err) = run(&socket, &["member", "add", "bond0", "eth9"]);
    assert_eq!((code, out.as_str()), (1, ""));
    assert_eq!(
        err,
        "linkbraid: error: bond0: cannot add member 'eth9': no such interface\n  hint: ip link\n"
    );
    assert_eq!(
        handle.join().unwrap(),
        "{\"method\":\"org.linkbraid.Daemon.MemberAdd\",\"parameters\":{\"bond\":\"bond0\",\"force\":false,\"interface\":\"eth9\",\"move_address\":false}}\0"
    );
}

#[test]
fn a_change_says_nothing_but_its_warnings() {
    let reply =
        "{\"parameters\":{\"warnings\":[\"bond0: weight of 'eth1' is unknown\\n, using 1000 Mbit/s\"]}}\0";
    let (socket, handle) = daemon("change", reply.to_owned());
    let (code, out, err) = run(&socket, &["bond", "del", "bond0"]);
    handle.join().unwrap();
    assert_eq!((code, out.as_str()), (0, ""));
    assert_eq!(err, "linkbraid: warning: bond0: weight of 'eth1' is unknown , using 1000 Mbit/s\n");
}

#[test]
fn a_change_with_json_prints_an_object() {
    let (socket, handle) = daemon("change-json", "{\"parameters\":{\"warnings\":[]}}\0".to_owned());
    let (code, out, err) = run(&socket, &["bond", "--json", "del", "bond0"]);
    handle.join().unwrap();
    assert_eq!((code, err.as_str()), (0, ""));
    assert_eq!(out, "{\n  \"warnings\": []\n}\n");
}

#[test]
fn show_prints_text_without_colour_into_a_pipe() {
    let (socket, handle) = daemon("show", bonds_reply());
    let (code, out, err) = run(&socket, &["show"]);
    assert_eq!(
        handle.join().unwrap(),
        "{\"method\":\"org.linkbraid.Daemon.Show\",\"parameters\":{\"name\":null}}\0"
    );
    assert_eq!((code, err.as_str()), (0, ""));
    assert!(out.starts_with("bond0: ok, 1 of 1 member carries traffic, 0 peers\n"), "{out}");
    assert!(!out.contains('\x1b'));
}

#[test]
fn show_with_json_prints_the_records_as_they_are() {
    let (socket, handle) = daemon("show-json", bonds_reply());
    let (code, out, err) = run(&socket, &["show", "bond0", "--json"]);
    assert_eq!(
        handle.join().unwrap(),
        "{\"method\":\"org.linkbraid.Daemon.Show\",\"parameters\":{\"name\":\"bond0\"}}\0"
    );
    assert_eq!((code, err.as_str()), (0, ""));
    assert_eq!(out, BOND);
}

#[test]
fn a_reader_that_goes_away_is_no_error() {
    let (socket, handle) = daemon("pipe", bonds_reply());
    let mut child =
        linkbraid(&socket, &["show"]).stdout(Stdio::piped()).stderr(Stdio::piped()).spawn().unwrap();
    // Closed before the daemon has answered, or just after: either way nobody reads.
    drop(child.stdout.take());
    handle.join().unwrap();
    let mut err = String::new();
    child.stderr.take().unwrap().read_to_string(&mut err).unwrap();
    assert_eq!((child.wait().unwrap().code(), err.as_str()), (Some(0), ""));
}

#[test]
fn a_full_disk_is_an_error() {
    let (socket, handle) = daemon("full", bonds_reply());
    let full = std::fs::OpenOptions::new().write(true).open("/dev/full").unwrap();
    let output = linkbraid(&socket, &["show"]).stdout(full).output().unwrap();
    handle.join().unwrap();
    assert_eq!(output.status.code(), Some(1));
    assert_eq!(
        String::from_utf8(output.stderr).unwrap(),
        "linkbraid: error: standard output: cannot write: no space left on device\n"
    );
}

#[test]
fn help_and_version_go_to_standard_output() {
    let (code, out, err) = run("/tmp/linkbraid-nobody.sock", &["--version"]);
    assert_eq!((code, err.as_str()), (0, ""));
    assert_eq!(out, format!("linkbraid {}\n", env!("CARGO_PKG_VERSION")));
    let (code, out, err) = run("/tmp/linkbraid-nobody.sock", &["bond", "add", "-h"]);
    assert_eq!((code, err.as_str()), (0, ""));
    assert!(out.contains("--member <IF[,IF...]>") && !out.contains('\x1b'), "{out}");
}

#[test]
fn a_wrong_log_filter_is_wrong_usage() {
    let (code, _, err) = run("/tmp/linkbraid-nobody.sock", &["daemon", "--log", "linkbraid=loud"]);
    assert_eq!(code, 2);
    assert!(
        err.starts_with("linkbraid: error: daemon: option '--log': 'linkbraid=loud' is not a filter"),
        "{err}"
    );
    assert_eq!(err.lines().count(), 2, "{err}");
}

#[test]
fn run_becomes_the_command_once_the_daemon_is_done() {
    let reply = "{\"parameters\":{\"warnings\":[\"bond0: class 'voice' has no member\"]}}\0";
    let (socket, handle) = daemon("run", reply.to_owned());
    let script = "echo \"$0 $1\"; exit 42";
    let (code, out, err) =
        run(&socket, &["run", "--class", "voice", "--", "sh", "-c", script, "one two", "--json"]);
    assert_eq!(
        handle.join().unwrap(),
        "{\"method\":\"org.linkbraid.Daemon.Run\",\"parameters\":{\"bond\":null,\"class\":\"voice\"}}\0"
    );
    assert_eq!((code, out.as_str()), (42, "one two --json\n"));
    assert_eq!(err, "linkbraid: warning: bond0: class 'voice' has no member\n");
}

/// The kernel reports to the daemon who asks; it must be the process that becomes the command.
#[test]
fn the_process_that_asks_is_the_one_that_becomes_the_command() {
    use nix::sys::socket::{getsockopt, sockopt::PeerCredentials};
    let path = std::env::temp_dir().join(format!("linkbraid-run-pid-{}.sock", std::process::id()));
    let listener = UnixListener::bind(&path).unwrap();
    let handle = thread::spawn(move || {
        let (mut stream, _) = listener.accept().unwrap();
        let pid = getsockopt(&stream, PeerCredentials).unwrap().pid();
        BufReader::new(&stream).read_until(0, &mut Vec::new()).unwrap();
        stream.write_all(b"{\"parameters\":{\"warnings\":[]}}\0").unwrap();
        pid
    });
    let words = ["run", "--class", "voice", "--", "sh", "-c", "echo $$"];
    let (code, out, err) = run(path.to_str().unwrap(), &words);
    std::fs::remove_file(&path).unwrap();
    assert_eq!((code, err.as_str()), (0, ""));
    assert_eq!(out, format!("{}\n", handle.join().unwrap()));
}

#[test]
fn run_starts_nothing_where_the_daemon_refuses() {
    let reply = serde_json::json!({ "error": "org.linkbraid.Daemon.Refused", "parameters": {
        "object": "class 'voice'", "what": "cannot run a command in it", "cause": "no bond has such a class",
        "hint": "linkbraid class show"
    }});
    let (socket, handle) = daemon("run-refused", reply.to_string() + "\0");
    let (code, out, err) = run(&socket, &["run", "--class", "voice", "--", "echo", "ran"]);
    handle.join().unwrap();
    assert_eq!((code, out.as_str()), (1, ""));
    assert_eq!(
        err,
        "linkbraid: error: class 'voice': cannot run a command in it: no bond has such a class\n  \
         hint: linkbraid class show\n"
    );
    let words = ["run", "--class", "voice", "--", "echo", "ran"];
    let (code, out, _) = run("/tmp/linkbraid-nobody.sock", &words);
    assert_eq!((code, out.as_str()), (3, ""));
}

#[test]
fn a_command_that_cannot_be_run_is_said_so() {
    let (socket, handle) = daemon("run-missing", "{\"parameters\":{\"warnings\":[]}}\0".to_owned());
    let (code, out, err) = run(&socket, &["run", "--class", "voice", "--", "/nowhere/a b"]);
    handle.join().unwrap();
    assert_eq!((code, out.as_str()), (1, ""));
    assert_eq!(
        err,
        "linkbraid: error: run: cannot run '/nowhere/a b': no such file or directory\n  \
         hint: linkbraid run --help\n"
    );
}

#[test]
fn a_rule_that_can_match_nothing_is_wrong_usage() {
    for verb in ["add", "set"] {
        let words = ["class", verb, "bond0", "voice", "--match", "udp-port=5010-5000"];
        let (code, out, err) = run("/tmp/linkbraid-nobody.sock", &words);
        assert_eq!((code, out.as_str()), (2, ""));
        assert_eq!(
            err,
            "linkbraid: error: rule 'udp-port=5010-5000': empty range: 5010 is above 5000; write 5000-5010\n  \
             hint: linkbraid class add --help\n"
        );
    }
}

#[test]
fn classes_and_latency_are_asked_for_and_shown() {
    let class = serde_json::json!({
        "bond": "bond0", "name": "voice", "members": ["eth4"], "uses": ["eth4"], "policy": "mirror",
        "fallback": "share", "borrow": "never", "precedence": "on",
        "queues": [{ "member": "eth4", "kind": "pfifo_fast", "ours": true }],
        "rules": [{ "number": 1, "match": "dscp=ef", "frames": 3, "bytes": 600 }],
        "tx_frames": 3, "tx_bytes": 600, "tx_over": 0
    });
    let reply = serde_json::json!({ "parameters": { "classes": [class] } }).to_string() + "\0";
    let (socket, handle) = daemon("classes", reply.clone());
    let (code, out, err) = run(&socket, &["class", "show", "bond0"]);
    assert_eq!(
        handle.join().unwrap(),
        "{\"method\":\"org.linkbraid.Daemon.ClassShow\",\"parameters\":{\"bond\":\"bond0\"}}\0"
    );
    assert_eq!((code, err.as_str()), (0, ""));
    assert!(out.starts_with("bond0 class voice: ok, 1 of 1 member carries it\n"), "{out}");
    let (socket, handle) = daemon("classes-json", reply);
    let (code, out, _) = run(&socket, &["class", "show", "--json"]);
    handle.join().unwrap();
    assert_eq!(code, 0);
    assert_eq!(serde_json::from_str::<serde_json::Value>(&out).unwrap(), serde_json::json!([class]));

    let reply = "{\"parameters\":{\"latency\":[]}}\0";
    let (socket, handle) = daemon("latency", reply.to_owned());
    let (code, out, err) = run(&socket, &["stats", "--latency", "bond0"]);
    assert_eq!(
        handle.join().unwrap(),
        "{\"method\":\"org.linkbraid.Daemon.Latency\",\"parameters\":{\"name\":\"bond0\"}}\0"
    );
    assert_eq!((code, out.as_str(), err.as_str()), (0, "nothing measured yet\n", ""));
}

/// A folder in which `bin/linkbraid` is the command.
struct Installed(PathBuf);

impl Installed {
    fn new(test: &str) -> Self {
        let folder =
            PathBuf::from(env!("CARGO_TARGET_TMPDIR")).join(format!("{test}-{}", std::process::id()));
        std::fs::create_dir_all(folder.join("bin")).unwrap();
        std::fs::create_dir_all(folder.join("libexec/linkbraid")).unwrap();
        std::fs::hard_link(env!("CARGO_BIN_EXE_linkbraid"), folder.join("bin/linkbraid")).unwrap();
        Self(folder)
    }

    fn script(&self, path: &str, text: &str) {
        let path = self.0.join(path);
        std::fs::write(&path, format!("#!/bin/sh\n{text}\n")).unwrap();
        std::fs::set_permissions(path, std::fs::Permissions::from_mode(0o755)).unwrap();
    }

    fn run(&self, words: &[&str]) -> (i32, String, String) {
        let Output { status, stdout, stderr } =
            Command::new(self.0.join("bin/linkbraid")).args(words).output().unwrap();
        let text = |bytes| String::from_utf8(bytes).unwrap();
        (status.code().expect("no signal ended it"), text(stdout), text(stderr))
    }
}

impl Drop for Installed {
    fn drop(&mut self) {
        let _ = std::fs::remove_dir_all(&self.0);
    }
}

#[test]
fn lab_and_bench_are_done_by_the_programs_that_come_with_the_command() {
    let installed = Installed::new("programs");
    installed.script("libexec/linkbraid/linkbraid-lab", "echo \"lab: $*\"; exit 7");
    installed.script("libexec/linkbraid/linkbraid-bench", "echo \"bench: $*\"");
    let done = installed.run(&["--json", "lab", "exec", "a", "--", "ls", "--json"]);
    assert_eq!(done, (7, "lab: --json lab exec a -- ls --json\n".to_owned(), String::new()));
    assert_eq!(installed.run(&["bench", "list"]).1, "bench: bench list\n");
    installed.script("bin/linkbraid-bench", "echo \"beside: $*\"");
    assert_eq!(installed.run(&["bench", "list"]).1, "beside: bench list\n");

    // What is wrong or only asks for help is said without them.
    let (code, _, err) = installed.run(&["lab", "up", "--hosts", "0"]);
    assert_eq!(code, 2, "{err}");
    let (code, out, _) = installed.run(&["bench", "run", "--help"]);
    assert_eq!(code, 0);
    assert!(out.contains("Usage: linkbraid bench run [OPTIONS] <NAME>..."), "{out}");
}

#[test]
fn a_program_that_is_missing_is_said_so() {
    let installed = Installed::new("no-program");
    let folder = installed.0.join("bin");
    let (code, out, err) = installed.run(&["lab", "demo"]);
    assert_eq!((code, out.as_str()), (1, ""));
    let folder = folder.display();
    assert_eq!(
        err,
        format!(
            "linkbraid: error: lab: cannot run 'linkbraid-lab': it is neither in {folder} nor in \
             {folder}/../libexec/linkbraid\n  hint: make install\n"
        )
    );
}
