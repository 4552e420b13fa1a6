//! `linkbraid monitor` and `linkbraid check` as a shell sees them, against a daemon that says what the test tells it to.

use nix::sys::signal::{Signal, kill};
use nix::unistd::Pid;
use std::io::{BufRead, BufReader, Read, Write};
use std::os::unix::net::{UnixListener, UnixStream};
use std::path::PathBuf;
use std::process::{Child, Command, Output, Stdio};
use std::thread::{self, JoinHandle};
use std::time::Duration;

/// Far above what any step here takes; only a broken command reaches it.
const LONG: Duration = Duration::from_secs(20);

const DONE: &str = "{\"parameters\":{\"warnings\":[]}}\0";

const EVENT: &str = "{\"parameters\":{\"event\":{\"time_ms\":1795176001234,\"bond\":\"bond0\",\"kind\":\"member\",\"object\":\"eth1\",\
    \"old\":\"up\",\"new\":\"down\",\"reason\":\"no_carrier\",\"text\":\"no carrier\",\"took_us\":3200}},\"continues\":true}\0";

const LINE: &str = "12:00:01.234  bond0  member eth1   up -> down       no carrier (found in 3.2 ms)\n";

/// A daemon for one connection: reads a line and does what `answer` says, which then has the connection; gives back
/// the line.
fn daemon(test: &str, answer: impl FnOnce(UnixStream) + Send + 'static) -> (PathBuf, JoinHandle<String>) {
    let path = std::env::temp_dir().join(format!("linkbraid-{test}-{}.sock", std::process::id()));
    let listener = UnixListener::bind(&path).unwrap();
    let remove = path.clone();
    let handle = thread::spawn(move || {
        let (stream, _) = listener.accept().unwrap();
        let mut call = Vec::new();
        BufReader::new(&stream).read_until(0, &mut call).unwrap();
        answer(stream);
        std::fs::remove_file(remove).unwrap();
        String::from_utf8(call).unwrap()
    });
    (path, handle)
}

fn linkbraid(socket: &PathBuf, words: &[&str]) -> Command {
    let mut command = Command::new(env!("CARGO_BIN_EXE_linkbraid"));
    command.args(words).env("LINKBRAID_SOCKET", socket).env("TZ", "UTC").env_remove("NO_COLOR");
    command.stdin(Stdio::null()).stdout(Stdio::piped()).stderr(Stdio::piped());
    command
}

/// Sends `text` and keeps the connection until the command has closed it.
fn sending(text: &str) -> impl FnOnce(UnixStream) + Send + 'static {
    let text = text.to_owned();
    move |mut stream: UnixStream| {
        stream.write_all(text.as_bytes()).unwrap();
        stream.set_read_timeout(Some(LONG)).unwrap();
        let _ = stream.read(&mut [0]);
    }
}

fn first_line(child: &mut Child) -> (String, impl Read + use<>) {
    let mut out = BufReader::new(child.stdout.take().unwrap());
    let mut line = String::new();
    out.read_line(&mut line).unwrap();
    (line, out)
}

fn end(mut child: Child) -> (Option<i32>, String) {
    let mut err = String::new();
    child.stderr.take().unwrap().read_to_string(&mut err).unwrap();
    (child.wait().unwrap().code(), err)
}

fn text(output: Output) -> (Option<i32>, String, String) {
    let Output { status, stdout, stderr } = output;
    (status.code(), String::from_utf8(stdout).unwrap(), String::from_utf8(stderr).unwrap())
}

#[test]
fn an_event_is_seen_while_the_stream_goes_on_and_signals_end_it_well() {
    for (name, signal) in [("int", Signal::SIGINT), ("term", Signal::SIGTERM)] {
        let (socket, handle) = daemon(name, sending(&(DONE.to_owned() + EVENT)));
        let mut child = linkbraid(&socket, &["monitor", "bond0"]).spawn().unwrap();
        let (line, mut rest) = first_line(&mut child);
        assert_eq!(line, LINE);
        kill(Pid::from_raw(child.id() as i32), signal).unwrap();
        let mut more = String::new();
        rest.read_to_string(&mut more).unwrap();
        assert_eq!((end(child), more.as_str()), ((Some(0), String::new()), ""), "{signal}");
        assert_eq!(
            handle.join().unwrap(),
            "{\"method\":\"org.linkbraid.Daemon.Monitor\",\"parameters\":{\"bond\":\"bond0\"},\"more\":true}\0"
        );
    }
}

#[test]
fn a_signal_ends_it_before_the_daemon_has_answered() {
    let (asked, was_asked) = std::sync::mpsc::channel();
    let (socket, handle) = daemon("early", move |mut stream| {
        asked.send(()).unwrap();
        stream.set_read_timeout(Some(LONG)).unwrap();
        let _ = stream.read(&mut [0]);
    });
    let child = linkbraid(&socket, &["monitor"]).spawn().unwrap();
    was_asked.recv().unwrap();
    kill(Pid::from_raw(child.id() as i32), Signal::SIGTERM).unwrap();
    assert_eq!(end(child), (Some(0), String::new()));
    handle.join().unwrap();
}

#[test]
fn a_reader_that_goes_away_ends_it_without_another_event() {
    let (socket, handle) = daemon("gone", sending(&(DONE.to_owned() + EVENT)));
    let mut child = linkbraid(&socket, &["monitor"]).spawn().unwrap();
    let (line, rest) = first_line(&mut child);
    assert_eq!(line, LINE);
    drop(rest);
    // The daemon says nothing more, and waits for the command to close.
    assert_eq!(end(child), (Some(0), String::new()));
    handle.join().unwrap();
}

#[test]
fn json_is_one_object_a_line() {
    let (socket, handle) = daemon("json", sending(&(DONE.to_owned() + EVENT)));
    let mut child = linkbraid(&socket, &["monitor", "--json"]).spawn().unwrap();
    let (line, rest) = first_line(&mut child);
    drop(rest);
    assert_eq!(end(child), (Some(0), String::new()));
    handle.join().unwrap();
    assert_eq!(format!("{{\"parameters\":{{\"event\":{}}},\"continues\":true}}\0", line.trim_end()), EVENT);
}

#[test]
fn the_end_of_the_daemon_is_status_3_after_the_last_event() {
    let (socket, handle) =
        daemon("ended", |mut stream| stream.write_all((DONE.to_owned() + EVENT).as_bytes()).unwrap());
    let (code, out, err) = text(linkbraid(&socket, &["monitor"]).output().unwrap());
    handle.join().unwrap();
    assert_eq!((code, out.as_str()), (Some(3), LINE));
    let socket = socket.display();
    assert_eq!(
        err,
        format!(
            "linkbraid: error: {socket}: no more events: the daemon ended\n  hint: linkbraid daemon --socket {socket}\n"
        )
    );
}

#[test]
fn a_refusal_is_status_1_with_the_daemons_words() {
    let (socket, handle) = daemon("refused", |mut stream| {
        let error = "{\"error\":\"org.linkbraid.Daemon.Refused\",\"parameters\":{\"object\":\"bond9\",\"what\":\"no such bond\",\"cause\":\"there are no bonds\",\
            \"hint\":\"linkbraid show\"}}\0";
        stream.write_all(error.as_bytes()).unwrap();
    });
    let (code, out, err) = text(linkbraid(&socket, &["monitor", "bond9"]).output().unwrap());
    handle.join().unwrap();
    assert_eq!((code, out.as_str()), (Some(1), ""));
    assert_eq!(err, "linkbraid: error: bond9: no such bond: there are no bonds\n  hint: linkbraid show\n");
}

#[test]
fn no_daemon_is_status_3() {
    let socket = PathBuf::from("/tmp/linkbraid-nobody.sock");
    let (code, out, err) = text(linkbraid(&socket, &["monitor"]).output().unwrap());
    assert_eq!((code, out.as_str()), (Some(3), ""));
    assert!(err.contains("none is running on this socket"), "{err}");
}

#[test]
fn check_fails_only_for_errors_and_leaves_the_words_to_its_lines() {
    let reply = |severity: &str| {
        format!(
            "{{\"parameters\":{{\"findings\":[{{\"severity\":\"ok\",\"object\":\"this machine\",\"name\":\"kernel\",\
             \"text\":\"6.12\"}},{{\"severity\":\"{severity}\",\"object\":\"eth1\",\"name\":\"duplex\",\"text\":\
             \"half\",\"hint\":\"ethtool eth1\"}}]}}}}\0"
        )
    };
    for (severity, code) in [("ok", 0), ("warning", 0), ("error", 1)] {
        for words in [&["check", "eth1", "eth2"][..], &["check", "--json", "eth1", "eth2"]] {
            let text_of_reply = reply(severity);
            let (socket, handle) = daemon("check", sending(&text_of_reply));
            let (status, out, err) = text(linkbraid(&socket, words).output().unwrap());
            assert_eq!(
                handle.join().unwrap(),
                "{\"method\":\"org.linkbraid.Daemon.Check\",\"parameters\":{\"interfaces\":[\"eth1\",\"eth2\"]}}\0"
            );
            assert_eq!((status, err.as_str()), (Some(code), ""), "{severity}");
            if words.contains(&"--json") {
                let records: serde_json::Value = serde_json::from_str(&out).unwrap();
                assert_eq!(records[1]["severity"], severity);
            } else {
                assert_eq!(out.lines().count(), 3, "{out}");
                assert!(out.lines().nth(1).unwrap().starts_with(severity), "{out}");
            }
        }
    }
}
