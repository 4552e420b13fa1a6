//! Clients of the metrics, with the daemon's loop left out.

use super::*;
use linkbraid_api::EventKind;
use std::{
    env,
    io::{Read as _, Write as _},
    net::TcpStream,
    os::unix::net::{UnixDatagram, UnixListener as StdUnixListener, UnixStream as StdUnixStream},
    process, ptr, thread,
};

/// What an idle machine does at once.
const SOON: Duration = Duration::from_secs(10);

fn path(name: &str) -> std::path::PathBuf {
    env::temp_dir().join(format!("linkbraid-metrics-{}-{name}", process::id()))
}

fn block_on<T>(what: impl Future<Output = T>) -> T {
    runtime::Builder::new_current_thread().enable_all().build().expect("a runtime").block_on(what)
}

/// Why nobody can listen at that address.
fn bind_error(address: &MetricsAddress) -> Error {
    block_on(Listener::bind(address)).err().expect("refused")
}

/// Tries until it can be done.
fn soon<T>(mut what: impl FnMut() -> io::Result<T>) -> T {
    let begun = std::time::Instant::now();
    loop {
        match what() {
            Ok(done) => return done,
            Err(error) => assert!(begun.elapsed() < SOON, "{error}"),
        }
        thread::sleep(Duration::from_millis(5));
    }
}

fn get(stream: &mut (impl io::Read + io::Write)) -> String {
    stream.write_all(b"GET /metrics HTTP/1.1\r\nHost: x\r\n\r\n").expect("a small request");
    let mut text = String::new();
    stream.read_to_string(&mut text).expect("an answer, and the end");
    text
}

/// The metrics at that address; the loop answers each question with an empty snapshot, and says how many there were.
struct Served {
    metrics: Option<Metrics>,
    feed: broadcast::Sender<EventRecord>,
    answers: Option<JoinHandle<usize>>,
}

impl Served {
    fn start(address: MetricsAddress) -> Self {
        let feed = broadcast::Sender::new(16);
        let (asks, mut asked) = mpsc::channel::<Ask>(1);
        let answers = thread::spawn(move || {
            let mut count = 0;
            while let Some(answer) = asked.blocking_recv() {
                count += 1;
                let _ = answer.send(Snapshot::default());
            }
            count
        });
        let metrics = Metrics::start(address, feed.subscribe(), asks).expect("starts");
        Self { metrics: Some(metrics), feed, answers: Some(answers) }
    }

    /// How many snapshots were asked for.
    fn end(mut self) -> usize {
        drop(self.metrics.take());
        self.answers.take().expect("once").join().expect("ends with it")
    }
}

#[test]
fn a_socket_serves_its_owner_and_group_and_goes_with_the_daemon() {
    let path = path("owner");
    fs::write(&path, "").expect("writes");
    let address = MetricsAddress::Unix(path.clone());
    assert_eq!(bind_error(&address).cause, "the path is that of another file");
    fs::remove_file(&path).expect("it is there");
    // One that nobody listens on any more.
    drop(StdUnixListener::bind(&path).expect("binds"));
    let served = Served::start(address.clone());
    let text = get(&mut soon(|| StdUnixStream::connect(&path)));
    assert!(text.starts_with("HTTP/1.1 200 OK\r\nContent-Type: text/plain; version=0.0.4"), "{text}");
    assert!(text.contains("linkbraid_build_info{version=\""), "{text}");
    assert_eq!(fs::metadata(&path).expect("a socket").permissions().mode() & 0o777, 0o660);
    assert_eq!(bind_error(&address).cause, "another program listens there");
    served.end();
    assert!(!path.exists());
}

#[test]
fn what_is_another_programs_stays() {
    let path = path("others");
    let address = MetricsAddress::Unix(path.clone());
    // Somebody has it open, and still no client can connect.
    let datagrams = UnixDatagram::bind(&path).expect("binds");
    let error = bind_error(&address);
    assert!(path.exists(), "{error}");
    drop(datagrams);
    fs::remove_file(&path).expect("it is there");
    let served = Served::start(address);
    get(&mut soon(|| StdUnixStream::connect(&path)));
    fs::remove_file(&path).expect("it is there");
    let other = StdUnixListener::bind(&path).expect("binds");
    served.end();
    assert!(path.exists());
    drop(other);
    fs::remove_file(&path).expect("it is there");
}

#[test]
fn where_the_unit_makes_the_folder_read_only_it_is_said() {
    let address = MetricsAddress::Unix("/run/metrics/a.sock".into());
    let error = refused(&address, &io::ErrorKind::ReadOnlyFilesystem.into());
    assert!(error.cause.contains("'ReadWritePaths=/run/metrics'"), "{error}");
    assert_eq!(error.hint.as_deref(), Some("systemctl edit linkbraid"));
}

#[test]
fn a_snapshot_becomes_text_once_in_each_format() {
    block_on(async {
        let (asks, mut asked) = mpsc::channel::<Ask>(1);
        let source = Source { asks, last: Mutex::default(), events: RefCell::default() };
        // It is used for long, however slow this machine is.
        let snapshot = Snapshot { took: Duration::from_secs(60), ..Snapshot::default() };
        let made = async { asked.recv().await.expect("a question").send(snapshot).expect("one who waits") };
        let (first, ()) = tokio::join!(source.metrics(Format::Text), made);
        let first = first.expect("metrics");
        // Nobody would answer another question.
        let second = source.metrics(Format::Text).await.expect("the same");
        assert!(ptr::eq(first.body(), second.body()));
        let other = source.metrics(Format::OpenMetrics).await.expect("of the same snapshot");
        assert_ne!(other, first);
    });
}

#[test]
fn snapshots_take_little_of_the_control_threads_time() {
    assert_eq!(fresh(Duration::ZERO), FRESH);
    assert_eq!(fresh(Duration::from_secs(1)), Duration::from_secs(20));
}

#[test]
fn it_listens_as_soon_as_the_port_is_free() {
    let taken = std::net::TcpListener::bind("127.0.0.1:0").expect("binds");
    let socket = taken.local_addr().expect("bound");
    let served = Served::start(MetricsAddress::Tcp(socket));
    // Accepted by nobody: this one is not the daemon's.
    drop(TcpStream::connect(socket).expect("listens"));
    drop(taken);
    let mut stream = soon(|| TcpStream::connect(socket));
    assert!(get(&mut stream).starts_with("HTTP/1.1 200 OK"));
    assert_eq!(served.end(), 1);
}

#[test]
fn a_crowd_shares_one_snapshot_and_is_served_beside_those_who_say_nothing() {
    let path = path("crowd");
    let served = Served::start(MetricsAddress::Unix(path.clone()));
    let silent: Vec<_> = (0..2 * CLIENTS_MAX).map(|_| soon(|| StdUnixStream::connect(&path))).collect();
    let begun = std::time::Instant::now();
    for _ in 0..20 {
        let text = get(&mut soon(|| StdUnixStream::connect(&path)));
        assert!(text.starts_with("HTTP/1.1 200 OK"), "{text}");
    }
    assert!(begun.elapsed() < CLIENT_MAX, "nobody waited until the silent ones had to go");
    let windows = begun.elapsed().as_millis() / FRESH.as_millis() + 1;
    drop(silent);
    let asked = served.end() as u128;
    assert!((1..=windows).contains(&asked), "{asked} snapshots in {windows} times {FRESH:?}");
}

#[test]
fn events_are_counted() {
    let path = path("events");
    let served = Served::start(MetricsAddress::Unix(path.clone()));
    let event = EventRecord {
        time_ms: 0,
        bond: String::new(),
        kind: EventKind::Member,
        object: "eth1".into(),
        old: Some("up".into()),
        new: Some("down".into()),
        reason: "no_carrier".into(),
        text: String::new(),
        took_us: Some(12_000),
    };
    served.feed.send(event).expect("somebody listens");
    let wanted = "linkbraid_events_total{kind=\"member\",reason=\"no_carrier\"} 1";
    soon(|| match get(&mut soon(|| StdUnixStream::connect(&path))) {
        text if text.contains(wanted) => Ok(()),
        text => Err(io::Error::other(text)),
    });
    served.end();
}

#[test]
fn a_request_is_bounded() {
    let path = path("bounded");
    let served = Served::start(MetricsAddress::Unix(path.clone()));
    let mut stream = soon(|| StdUnixStream::connect(&path));
    stream.write_all(&[b'x'; 2 * REQUEST_BYTES_MAX]).expect("sends");
    let mut text = String::new();
    // What was not read may cut the answer short.
    let _ = stream.read_to_string(&mut text);
    assert!(text.is_empty() || text.starts_with("HTTP/1.1 4"), "{text}");
    assert_eq!(served.end(), 0);
}
