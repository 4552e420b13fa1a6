//! Clients that crowd, clients that go, and clients of other makers.

use super::*;
use crate::world::history::new_feed;
use linkbraid_api::Records;
use std::{net::Shutdown, time::Duration};
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

/// A client.
async fn connect(path: &Path) -> Connection<Stream> {
    timeout(SOON, zlink::tokio::unix::connect(path)).await.expect("in time").expect("listens")
}

/// A client that has asked.
async fn asks(path: &Path, request: &Request) -> Connection<Stream> {
    let mut client = connect(path).await;
    let call = zlink::Call::new(Method::try_from(request).expect("a call"));
    let call = call.set_more(matches!(request, Request::Monitor { .. }));
    client.send_call(&call, Vec::new()).await.expect("a small call");
    client
}

/// What a client hears next.
async fn hears(client: &mut Connection<Stream>) -> zlink::Result<Reply> {
    let (reply, _) = timeout(SOON, client.receive_reply::<Reply, Refusal>()).await.expect("an answer")?;
    match reply {
        Ok(reply) => Ok(reply.into_parameters().expect("parameters")),
        Err(Refusal::Refused(error)) => Ok(Reply::Error(error)),
    }
}

/// What a client hears that sends these bytes.
async fn said_to(path: &Path, bytes: &[u8]) -> String {
    use tokio::io::{AsyncBufReadExt as _, AsyncWriteExt as _, BufReader};
    let mut client = UnixStream::connect(path).await.expect("listens");
    client.write_all(bytes).await.expect("small enough");
    let mut said = Vec::new();
    timeout(SOON, BufReader::new(&mut client).read_until(0, &mut said))
        .await
        .expect("an answer")
        .expect("reads");
    String::from_utf8(said).expect("text").trim_end_matches('\0').to_owned()
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
    let all = Some(Rights::All);
    assert_eq!([0, own, own + 1].map(|uid| rights(uid, false)), [all, all, None]);
    assert_eq!([0, own, own + 1].map(|uid| rights(uid, true)), [all, all, Some(Rights::Read)]);
}

const SHOW: Request = Request::Show { name: None };
const MONITOR: Request = Request::Monitor { bond: None };

#[tokio::test]
async fn monitors_keep_nobody_else_out() {
    served("monitors", async |path, mut requests| {
        let mut open = Vec::new();
        for _ in 0..MONITORS_MAX {
            open.push(asks(&path, &MONITOR).await);
            let call = next(&mut requests).await;
            call.answer.send(Reply::Done { warnings: Vec::new() }).expect("it waits");
        }
        let client = asks(&path, &SHOW).await;
        assert_eq!(next(&mut requests).await.request, SHOW, "a request finds its place");
        drop(client);
        // One monitor too many hears so, and nobody is asked.
        let said = hears(&mut asks(&path, &MONITOR).await).await;
        let Ok(Reply::Error(error)) = said else { panic!("{said:?}") };
        assert!(error.cause.contains("clients listen already"), "{error}");
    })
    .await;
}

#[tokio::test]
async fn a_client_that_closed_is_gone_and_one_that_only_stopped_sending_is_not() {
    served("gone", async |path, mut requests| {
        let client = asks(&path, &SHOW).await;
        let call = next(&mut requests).await;
        assert!(!call.is_gone());
        let socket = client.read().read_half().as_fd().try_clone_to_owned().expect("open");
        StdStream::from(socket).shutdown(Shutdown::Write).expect("open");
        assert!(!call.is_gone(), "it still listens");
        drop(client);
        assert!(call.is_gone());
    })
    .await;
}

#[tokio::test]
async fn names_that_lead_out_of_a_directory_reach_nobody() {
    served("names", async |path, mut requests| {
        for (method, parameters) in [
            ("ClassDel", r#"{"bond":"bond0","name":"../../cgroup"}"#),
            ("ClassAdd", r#"{"bond":"bond0","name":"../x","rules":["dscp=ef"]}"#),
            ("BondAdd", r#"{"name":"../state","members":["eth1"]}"#),
            ("FabricDel", r#"{"name":"../../etc"}"#),
            ("Check", r#"{"interfaces":["../net"]}"#),
        ] {
            let call = format!(r#"{{"method":"org.linkbraid.Daemon.{method}","parameters":{parameters}}}"#);
            let said = said_to(&path, format!("{call}\0").as_bytes()).await;
            assert!(
                said.starts_with(r#"{"error":"org.linkbraid.Daemon.Refused""#) && said.contains("'../"),
                "{said}"
            );
            assert!(requests.try_recv().is_err(), "{call} reached the loop");
        }
    })
    .await;
}

#[tokio::test]
async fn it_describes_itself_as_varlink_wants() {
    served("describes", async |path, _| {
        let said = said_to(&path, b"{\"method\":\"org.varlink.service.GetInfo\"}\0").await;
        assert!(said.contains(r#""product":"linkbraid""#) && said.contains(INTERFACE), "{said}");
        for interface in [INTERFACE, SERVICE] {
            let call = format!(
                r#"{{"method":"org.varlink.service.GetInterfaceDescription","parameters":{{"interface":"{interface}"}}}}"#
            );
            let said = said_to(&path, format!("{call}\0").as_bytes()).await;
            assert!(said.contains(&format!("interface {interface}")), "{said}");
        }
        for (call, error) in [
            (r#"{"method":"org.varlink.service.GetInterfaceDescription"}"#, "org.varlink.service.InvalidParameter"),
            (r#"{"method":"org.varlink.service.GetTime"}"#, "org.varlink.service.MethodNotFound"),
            (
                r#"{"method":"org.varlink.service.GetInterfaceDescription","parameters":{"interface":"a.b"}}"#,
                "org.varlink.service.InterfaceNotFound",
            ),
            (r#"{"method":"org.linkbraid.Daemon.Monitor"}"#, "org.varlink.service.ExpectedMore"),
            (r#"{"method":"org.linkbraid.Daemon.Wish"}"#, "org.linkbraid.Daemon.Refused"),
            (r#"{"method":"org.linkbraid.Daemon.Show","parameters":{"wish":1}}"#, "org.linkbraid.Daemon.Refused"),
            ("nonsense", "org.linkbraid.Daemon.Refused"),
        ] {
            let said = said_to(&path, format!("{call}\0").as_bytes()).await;
            assert!(said.starts_with(&format!(r#"{{"error":"{error}""#)), "{call}: {said}");
        }
    })
    .await;
}

#[tokio::test]
async fn a_call_that_is_too_long_is_refused() {
    served("long", async |path, mut requests| {
        let said = said_to(&path, &vec![b' '; LINE_BYTES_MAX + 1]).await;
        assert!(said.contains("longer than"), "{said}");
        assert!(requests.try_recv().is_err());
        // What is not too long is taken, in however many pieces it comes.
        let mut call = br#"{"method":"org.linkbraid.Daemon.Show"}"#.to_vec();
        call.splice(0..0, std::iter::repeat_n(b' ', LINE_BYTES_MAX - call.len()));
        call.push(0);
        let answers = async {
            let call = next(&mut requests).await;
            assert_eq!(call.request, SHOW);
            call.answer.send(Reply::Records(Records::Bonds(Vec::new()))).expect("it waits");
        };
        let (said, ()) = tokio::join!(said_to(&path, &call), answers);
        assert_eq!(said, r#"{"parameters":{"bonds":[]}}"#);
    })
    .await;
}

#[tokio::test]
async fn who_wants_no_reply_gets_none() {
    served("oneway", async |path, mut requests| {
        let both = concat!(
            r#"{"method":"org.linkbraid.Daemon.Show","oneway":true}"#,
            "\0",
            r#"{"method":"org.linkbraid.Daemon.Peers"}"#,
            "\0"
        );
        let answers = async {
            for _ in 0..2 {
                let call = next(&mut requests).await;
                let records = match call.request {
                    Request::Show { .. } => Records::Bonds(Vec::new()),
                    _ => Records::Peers(Vec::new()),
                };
                call.answer.send(Reply::Records(records)).expect("it waits");
            }
        };
        let (said, ()) = tokio::join!(said_to(&path, both.as_bytes()), answers);
        assert_eq!(said, r#"{"parameters":{"peers":[]}}"#);
    })
    .await;
}

#[tokio::test]
async fn those_who_may_read_may_do_nothing_else() {
    let feed = new_feed();
    let (calls, _requests) = mpsc::channel(1);
    let reader = Client { calls, feed, monitors: Arc::new(Semaphore::new(1)), rights: Rights::Read };
    assert_eq!(reader.allow(Ok(SHOW)), Ok(SHOW));
    assert_eq!(reader.allow(Ok(MONITOR)), Ok(MONITOR));
    let refused = reader.allow(Ok(Request::Check { interfaces: Vec::new() })).expect_err("only root may");
    assert_eq!(refused.hint.as_deref(), Some("sudo linkbraid check"));
}
