//! Clients that crowd, and clients that go.

use super::*;
use crate::world::history::new_feed;
use std::{
    io::{BufRead as _, BufReader as StdReader, Write as _},
    net::Shutdown,
    time::Duration,
};
use tokio::time::timeout;

/// What an idle machine does at once.
const SOON: Duration = Duration::from_secs(10);

/// A server with its loop left out: the calls come to the test.
async fn served<F: Future<Output = ()>>(name: &str, test: impl FnOnce(PathBuf, mpsc::Receiver<Call>) -> F) {
    let path = std::env::temp_dir().join(format!("linkbraid-server-{}-{name}", std::process::id()));
    let server = Server::bind(&path).expect("listens");
    let (calls, requests) = mpsc::channel(256);
    let local = tokio::task::LocalSet::new();
    local
        .run_until(async move {
            tokio::select! {
                () = server.serve(calls, new_feed()) => panic!("it serves for ever"),
                () = test(path, requests) => {}
            }
        })
        .await;
}

/// A client that has asked.
fn asks(path: &Path, request: &Request) -> StdStream {
    let mut stream = StdStream::connect(path).expect("listens");
    stream.set_read_timeout(Some(SOON)).expect("sets");
    let mut line = serde_json::to_vec(request).expect("a request");
    line.push(b'\n');
    stream.write_all(&line).expect("a small line");
    stream
}

async fn next(requests: &mut mpsc::Receiver<Call>) -> Call {
    timeout(SOON, requests.recv()).await.expect("a call").expect("it serves")
}

#[tokio::test]
async fn only_root_and_the_owner_may_ask() {
    served("owner", async |path, _| {
        use std::os::unix::fs::PermissionsExt as _;
        let mode = fs::metadata(path).expect("a socket").permissions().mode();
        assert_eq!(mode & 0o777, 0o600);
    })
    .await;
    let own = geteuid().as_raw();
    assert_eq!([0, own, own + 1, 65_534].map(may_ask), [true, true, false, own == 65_534]);
}

const SHOW: Request = Request::Show { name: None };
const MONITOR: Request = Request::Monitor { bond: None };

#[tokio::test]
async fn monitors_keep_nobody_else_out() {
    served("monitors", async |path, mut requests| {
        let mut open = Vec::new();
        for _ in 0..MONITORS_MAX {
            open.push(asks(&path, &MONITOR));
            let call = next(&mut requests).await;
            call.answer.send(Reply::Done { warnings: Vec::new() }).expect("it waits");
        }
        let client = asks(&path, &SHOW);
        assert_eq!(next(&mut requests).await.request, SHOW, "a request finds its place");
        drop(client);
        // One monitor too many hears so, and nobody is asked.
        let refused = asks(&path, &MONITOR);
        let said = tokio::task::spawn_blocking(move || {
            let mut line = String::new();
            StdReader::new(refused).read_line(&mut line).map(|_| line)
        });
        let said = timeout(SOON, said).await.expect("an answer").expect("no panic").expect("reads");
        assert!(said.contains("clients listen already"), "{said}");
    })
    .await;
}

#[tokio::test]
async fn a_client_that_closed_is_gone_and_one_that_only_stopped_sending_is_not() {
    served("gone", async |path, mut requests| {
        let client = asks(&path, &SHOW);
        let call = next(&mut requests).await;
        assert!(!call.is_gone());
        client.shutdown(Shutdown::Write).expect("open");
        assert!(!call.is_gone(), "it still listens");
        drop(client);
        assert!(call.is_gone());
    })
    .await;
}

#[tokio::test]
async fn names_that_lead_out_of_a_directory_reach_nobody() {
    served("names", async |path, mut requests| {
        for request in [
            r#"{"class_del":{"bond":"bond0","name":"../../cgroup"}}"#,
            r#"{"class_add":{"bond":"bond0","name":"../x","rules":["dscp=ef"]}}"#,
            r#"{"bond_add":{"name":"../state","members":["eth1"]}}"#,
            r#"{"fabric_del":{"name":"../../etc"}}"#,
            r#"{"check":{"interfaces":["../net"]}}"#,
        ] {
            let mut client = StdStream::connect(&path).expect("listens");
            client.set_nonblocking(true).expect("sets");
            writeln!(client, "{request}").expect("a small line");
            let mut client = UnixStream::from_std(client).expect("a socket");
            let mut line = String::new();
            let mut read = BufReader::new(&mut client);
            timeout(SOON, read.read_line(&mut line)).await.expect("an answer").expect("a line");
            let Ok(Reply::Error(error)) = serde_json::from_str(&line) else { panic!("{request}: {line}") };
            assert!(error.cause.contains("'../"), "{error}");
            assert!(requests.try_recv().is_err(), "{request} reached the loop");
        }
    })
    .await;
}
