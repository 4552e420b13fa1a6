use super::super::tests::{LONG, answering, daemon, socket_path};
use super::{Events, Failure, follow};
use linkbraid_api::{Error, EventKind, EventRecord, Records, Reply, Request};
use std::io::{Read, Write};
use std::path::Path;
use std::time::Duration;

const REFUSED: &str = "{\"error\":\"org.linkbraid.Daemon.Refused\",\"parameters\":{\"object\":\"bond9\",\
    \"what\":\"no such bond\",\"cause\":\"there are no bonds\"}}\0";
const DONE: &str = "{\"parameters\":{\"warnings\":[]}}\0";

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
    let reply = zlink::Reply::new(Some(Reply::Event { event: event.clone() })).set_continues(Some(true));
    serde_json::to_string(&reply).unwrap() + "\0"
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
        // Those that are here, and then the next one that comes.
        let next = events.take().and_then(|event| event.map_or_else(|| events.wait(), Ok));
        match next {
            Ok(event) => received.push(event),
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
        assert_eq!(
            handle.join().unwrap(),
            "{\"method\":\"org.linkbraid.Daemon.Monitor\",\"parameters\":{\"bond\":null},\"more\":true}\0"
        );
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
        let text = DONE.to_owned() + &line(&event(1)) + "{\"parameters\":{\"event\":{\"time_ms\"";
        stream.write_all(text.as_bytes()).unwrap();
    });
    let (received, end) = all(events(&path, LONG));
    handle.join().unwrap();
    assert_eq!(received, [event(1)]);
    assert!(matches!(end, Failure::NoDaemon(_)), "{end:?}");
}

#[test]
fn a_refusal_or_another_reply_begins_no_stream() {
    let error = Error::new("bond9", "no such bond", "there are no bonds");
    for (text, reply) in [
        (REFUSED, Reply::Error(error)),
        ("{\"parameters\":{\"lanes\":[]}}\0", Reply::Records(Records::Lanes(Vec::new()))),
    ] {
        let (path, handle) = answering(text);
        let (said, stream) = follow(&path, &monitor(), LONG).unwrap();
        handle.join().unwrap();
        assert!(stream.is_none());
        assert_eq!(said, reply);
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
        ("nonsense\0", "cannot understand the reply", "expected"),
        (DONE, "cannot understand the reply", "it is not an event"),
        (REFUSED, "no such bond", "there are no bonds"),
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
