use super::{Failure, ask, plain, quoted};
use linkbraid_api::{BondDel, LINE_BYTES_MAX, Records, Reply, Request};
use std::io::{self, BufRead, BufReader, Write};
use std::os::unix::net::{UnixListener, UnixStream};
use std::path::PathBuf;
use std::sync::atomic::{AtomicU32, Ordering};
use std::thread::{self, JoinHandle};
use std::time::Duration;

/// Far above what any step here takes; only a broken client reaches it.
pub(super) const LONG: Duration = Duration::from_secs(20);

pub(super) fn socket_path() -> PathBuf {
    static NEXT: AtomicU32 = AtomicU32::new(0);
    let number = NEXT.fetch_add(1, Ordering::Relaxed);
    std::env::temp_dir().join(format!("linkbraid-client-{}-{number}.sock", std::process::id()))
}

/// A daemon for one connection: reads a line, then does what `answer` says; gives back the line.
pub(super) fn daemon(answer: impl FnOnce(UnixStream) + Send + 'static) -> (PathBuf, JoinHandle<String>) {
    let path = socket_path();
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

pub(super) fn answering(text: &'static str) -> (PathBuf, JoinHandle<String>) {
    daemon(move |mut stream| stream.write_all(text.as_bytes()).unwrap())
}

fn del() -> Request {
    Request::BondDel(BondDel { name: "bond0".parse().unwrap() })
}

fn broken(failure: Result<Reply, Failure>) -> linkbraid_api::Error {
    match failure {
        Err(Failure::Broken(error)) => error,
        other => panic!("{other:?}"),
    }
}

#[test]
fn one_line_goes_out_and_one_reply_comes_back() {
    let (path, handle) = answering("{\"parameters\":{\"warnings\":[\"bond0: slow\"]}}\0");
    assert_eq!(ask(&path, &del(), LONG), Ok(Reply::Done { warnings: vec!["bond0: slow".into()] }));
    assert_eq!(
        handle.join().unwrap(),
        "{\"method\":\"org.linkbraid.Daemon.BondDel\",\"parameters\":{\"name\":\"bond0\"}}\0"
    );
}

#[test]
fn records_come_back() {
    let (path, handle) = answering("{\"parameters\":{\"lanes\":[]}}\0");
    let reply = ask(&path, &Request::Lanes { bond: None, peer: None }, LONG);
    assert_eq!(reply, Ok(Reply::Records(Records::Lanes(vec![]))));
    handle.join().unwrap();
}

#[test]
fn no_socket_means_no_daemon_and_names_the_command_that_starts_one() {
    let path = socket_path();
    let Err(Failure::NoDaemon(error)) = ask(&path, &del(), LONG) else { panic!("reached nobody") };
    assert_eq!(error.object, path.display().to_string());
    assert_eq!(error.hint, Some(format!("linkbraid daemon --socket {}", path.display())));
}

#[test]
fn a_socket_nobody_listens_on_means_no_daemon() {
    let path = socket_path();
    drop(UnixListener::bind(&path).unwrap());
    let outcome = ask(&path, &del(), LONG);
    std::fs::remove_file(&path).unwrap();
    assert!(matches!(outcome, Err(Failure::NoDaemon(_))), "{outcome:?}");
}

#[test]
fn a_daemon_that_hangs_up_is_said_so() {
    let (path, handle) = daemon(drop);
    assert_eq!(broken(ask(&path, &del(), LONG)).cause, "the daemon closed the connection");
    handle.join().unwrap();
}

#[test]
fn a_reply_that_is_no_reply_is_said_so() {
    for text in [
        "nonsense\0",
        "{\"parameters\":{}}\0",
        "{\"done\":{\"warnings\":[]}}\0",
        "{\"parameters\":{\"warnings\":[]}\0",
    ] {
        let (path, handle) = answering(text);
        let error = broken(ask(&path, &del(), LONG));
        assert_eq!(error.what, "cannot understand the reply", "{text}: {error}");
        handle.join().unwrap();
    }
}

#[test]
fn a_reply_about_a_large_network_is_read_whole() {
    let warnings = vec!["x".repeat(2 * LINE_BYTES_MAX)];
    let reply = zlink::Reply::new(Some(Reply::Done { warnings: warnings.clone() }));
    let text = serde_json::to_string(&reply).unwrap() + "\0";
    let (path, handle) = daemon(move |mut stream| stream.write_all(text.as_bytes()).unwrap());
    assert_eq!(ask(&path, &del(), LONG), Ok(Reply::Done { warnings }));
    handle.join().unwrap();
}

#[test]
fn a_silent_daemon_is_not_waited_for_beyond_the_deadline() {
    let (path, handle) = daemon(|mut stream| {
        // Ends when the client's side closes, at the latest with the test process.
        let _ = stream.set_read_timeout(Some(Duration::from_millis(200)));
        let _ = io::Read::read(&mut stream, &mut [0]);
    });
    let error = broken(ask(&path, &del(), Duration::from_millis(50)));
    assert_eq!(
        (error.what.as_str(), error.cause.as_str()),
        ("no reply", "the daemon did not answer within 0.05 s")
    );
    handle.join().unwrap();
}

#[test]
fn a_path_too_long_for_a_socket_is_said_so() {
    let path = PathBuf::from(format!("/tmp/{}", "x".repeat(200)));
    assert!(broken(ask(&path, &del(), LONG)).cause.contains("107 bytes"));
}

#[test]
fn words_are_quoted_where_a_shell_needs_it() {
    assert_eq!(quoted("bond0"), "bond0");
    assert_eq!(quoted("/run/a b"), "'/run/a b'");
    assert_eq!(quoted("it's"), r"'it'\''s'");
    assert_eq!(quoted(""), "''");
}

#[test]
fn no_error_number_reaches_the_user() {
    assert_eq!(plain(&io::Error::from_raw_os_error(13)), "permission denied");
}
