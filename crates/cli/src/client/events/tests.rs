use super::super::tests::{LONG, answering, daemon, socket_path};
use super::{Events, Failure, follow};
use linkbraid_api::{Error, EventKind, EventRecord, LINE_BYTES_MAX, Reply, Request};
use std::io::{Read, Write};
use std::path::Path;
use std::time::Duration;

const DONE: &str = "{\"done\":{\"warnings\":[]}}\n";

fn monitor() -> Request {
    Request::Monitor { bond: None }
}

fn event(number: u64) -> EventRecord {
    EventRecord {
        time_ms: number,
        bond: "bond0".into(),
        kind: EventKind::Member,
        object: format!("eth{number}"),
        old: Some("up".into()),
        new: None,
        reason: "left".into(),
        text: "it left".into(),
        took_us: None,
    }
}

fn line(event: &EventRecord) -> String {
    serde_json::to_string(&Reply::Event(event.clone())).unwrap() + "\n"
}

fn events(socket: &Path, timeout: Duration) -> Events {
    match follow(socket, &monitor(), timeout) {
        Ok((Reply::Done { .. }, Some(events))) => events,
        other => panic!("{other:?}"),
    }
}

/// Everything that was received until the end, and the end.
fn all(mut events: Events) -> (Vec<EventRecord>, Failure) {
    let mut received = Vec::new();
    loop {
        match events.next() {
            Ok(Some(event)) => received.push(event),
            Ok(None) => {
                if let Err(failure) = events.read() {
                    return (received, failure);
                }
            }
            Err(failure) => return (received, failure),
        }
    }
}

fn broken(failure: Failure) -> Error {
    match failure {
        Failure::Broken(error) => error,
        Failure::NoDaemon(error) => panic!("no daemon: {error}"),
    }
}

#[test]
fn events_come_whole_however_they_are_cut() {
    let expected: Vec<_> = (0..50).map(event).collect();
    let stream = DONE.to_owned() + &expected.iter().map(line).collect::<String>();
    for size in [1, 7, 100, stream.len()] {
        let bytes = stream.clone().into_bytes();
        let (path, handle) = daemon(move |mut stream| {
            bytes.chunks(size).for_each(|chunk| stream.write_all(chunk).unwrap());
        });
        let (received, end) = all(events(&path, LONG));
        assert_eq!(handle.join().unwrap(), "{\"monitor\":{\"bond\":null}}\n");
        assert_eq!(received, expected, "in pieces of {size}");
        assert!(matches!(end, Failure::NoDaemon(_)), "{end:?}");
    }
}

#[test]
fn the_end_of_the_daemon_is_said_with_the_command_that_starts_one() {
    let (path, handle) = answering(DONE);
    let (received, end) = all(events(&path, LONG));
    handle.join().unwrap();
    let path = path.display();
    let error = Error::new(path.to_string(), "no more events", "the daemon ended");
    assert_eq!(received, []);
    assert_eq!(end, Failure::NoDaemon(error.hint(format!("linkbraid daemon --socket {path}"))));
}

#[test]
fn half_an_event_is_the_end_and_no_event() {
    let (path, handle) = daemon(|mut stream| {
        let text = DONE.to_owned() + &line(&event(1)) + "{\"event\":{\"time_ms\"";
        stream.write_all(text.as_bytes()).unwrap();
    });
    let (received, end) = all(events(&path, LONG));
    handle.join().unwrap();
    assert_eq!(received, [event(1)]);
    assert!(matches!(end, Failure::NoDaemon(_)), "{end:?}");
}

#[test]
fn a_refusal_or_another_reply_begins_no_stream() {
    for text in [
        "{\"error\":{\"object\":\"bond9\",\"what\":\"no such bond\",\"cause\":\"there are no bonds\"}}\n",
        "{\"records\":{\"lanes\":[]}}\n",
    ] {
        let (path, handle) = answering(text);
        let (reply, stream) = follow(&path, &monitor(), LONG).unwrap();
        handle.join().unwrap();
        assert!(stream.is_none());
        assert_eq!(serde_json::to_string(&reply).unwrap() + "\n", text);
    }
    assert!(matches!(follow(&socket_path(), &monitor(), LONG), Err(Failure::NoDaemon(_))));
}

#[test]
fn only_the_first_reply_has_a_deadline() {
    let first = Duration::from_secs(1);
    let (path, handle) = daemon(move |mut stream| {
        stream.write_all(DONE.as_bytes()).unwrap();
        // Nobody writes to us: when this is over, so is the deadline of the first reply.
        stream.set_read_timeout(Some(first + Duration::from_millis(100))).unwrap();
        stream.read(&mut [0]).unwrap_err();
        stream.write_all(line(&event(1)).as_bytes()).unwrap();
    });
    let (received, _) = all(events(&path, first));
    handle.join().unwrap();
    assert_eq!(received, [event(1)]);
}

#[test]
fn what_is_no_event_ends_it_after_what_came_before() {
    for (text, what, cause) in [
        ("nonsense\n", "cannot understand the reply", "expected"),
        ("\n", "cannot understand the reply", "EOF"),
        (DONE, "cannot understand the reply", "it is not an event"),
        (
            "{\"error\":{\"object\":\"monitor\",\"what\":\"stopped\",\"cause\":\"too slow\"}}\n",
            "stopped",
            "too slow",
        ),
    ] {
        let (path, handle) = daemon(move |mut stream| {
            let text = DONE.to_owned() + &line(&event(1)) + text + &line(&event(2));
            stream.write_all(text.as_bytes()).unwrap();
        });
        let (received, end) = all(events(&path, LONG));
        handle.join().unwrap();
        let error = broken(end);
        assert_eq!(received, [event(1)]);
        assert_eq!(error.what, what);
        assert!(error.cause.contains(cause), "{error}");
    }
}

#[test]
fn a_line_too_long_is_refused_with_its_end_or_without() {
    for end in ["", "\n"] {
        let (path, handle) = daemon(move |mut stream| {
            // Writing fails once the client has refused and closed.
            let _ = stream.write_all((DONE.to_owned() + &line(&event(1))).as_bytes());
            let _ = stream.write_all(&vec![b' '; LINE_BYTES_MAX + 1]);
            let _ = stream.write_all(end.as_bytes());
            // Until the client is gone.
            stream.set_read_timeout(Some(LONG)).unwrap();
            let _ = stream.read(&mut [0]);
        });
        let (received, failure) = all(events(&path, LONG));
        handle.join().unwrap();
        assert_eq!(received, [event(1)]);
        assert_eq!(broken(failure).cause, format!("longer than {LINE_BYTES_MAX} bytes"));
    }
}

#[test]
fn a_line_as_long_as_allowed_is_taken() {
    let mut long = event(1);
    long.text.clear();
    long.text = "x".repeat(LINE_BYTES_MAX - line(&long).len());
    let text = DONE.to_owned() + &line(&long);
    assert_eq!(line(&long).len(), LINE_BYTES_MAX);
    let (path, handle) = daemon(move |mut stream| stream.write_all(text.as_bytes()).unwrap());
    let (received, _) = all(events(&path, LONG));
    handle.join().unwrap();
    assert_eq!(received, [long]);
}
