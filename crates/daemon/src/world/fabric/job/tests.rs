//! Threads that join and end, without a kernel's interface.

use super::{super::tests::saved, Ended, Jobs, Ticket, Why, Work};
use linkbraid_dataplane::HookChoice;
use std::sync::mpsc;
use tokio::sync::{mpsc::UnboundedReceiver, oneshot};

/// One that ends as soon as it is asked to.
fn slow(jobs: &mut Jobs, name: &str) -> (Ticket, mpsc::Sender<()>, oneshot::Receiver<Ended>) {
    let (go, wait) = mpsc::channel::<()>();
    let (answer, reply) = oneshot::channel();
    let ticket = jobs.end(&saved(name), Ok(()), Some(answer), move || {
        let _ = wait.recv();
    });
    (ticket, go, reply)
}

fn next(news: &mut UnboundedReceiver<super::Done>) -> super::Done {
    news.blocking_recv().expect("a thread reports")
}

#[test]
fn nobody_waits_for_what_takes_long() {
    let (mut jobs, mut news) = Jobs::new(HookChoice::Auto);
    let (first, go_first, mut reply) = slow(&mut jobs, "fab0");
    let (second, go_second, _) = slow(&mut jobs, "fab1");
    assert!(first != second && news.try_recv().is_err() && !jobs.is_empty());
    assert_eq!(jobs.busy("fab0"), Some("it is being deleted"));
    assert_eq!(jobs.busy("fab2"), None);
    assert_eq!(jobs.saved().map(|saved| saved.name.as_str()).collect::<Vec<_>>(), ["fab0", "fab1"]);
    // The last one may be the first.
    go_second.send(()).unwrap();
    let done = next(&mut news);
    assert_eq!(done.ticket, second);
    jobs.take(second).unwrap().reply(Ok(()));
    assert!(reply.try_recv().is_err() && jobs.take(second).is_none() && jobs.busy("fab1").is_none());
    go_first.send(()).unwrap();
    assert_eq!(next(&mut news).ticket, first);
    jobs.take(first).unwrap().reply(Ok(()));
    assert!(matches!(reply.try_recv(), Ok(Ok(_))) && jobs.is_empty());
}

#[test]
fn a_thread_that_fails_is_done_all_the_same() {
    let (mut jobs, mut news) = Jobs::new(HookChoice::Auto);
    let ticket = jobs.end(&saved("fab0"), Ok(()), None, || panic!("as it is meant to"));
    let done = next(&mut news);
    assert_eq!(done.ticket, ticket);
    let Err(error) = done.output.joined("fab0").0 else { panic!("it joined nothing") };
    assert_eq!(error.to_string(), "fab0: cannot join: a thread failed");
}

#[test]
fn who_cannot_join_says_why_and_what_became_of_the_place_before() {
    let (mut jobs, mut news) = Jobs::new(HookChoice::Auto);
    let nowhere = |name: &str, file: &str| {
        let transport = format!("udp:/nowhere/{file}");
        super::SavedFabric { transport, ..saved(name) }
    };
    let ticket = jobs.join(&nowhere("fab0", "new"), Work::Add, None).unwrap();
    assert_eq!((jobs.busy("fab0"), jobs.tries()), (Some("it is being added"), false));
    let (place, refused) = next(&mut news).output.joined("fab0");
    let error = place.err().expect("there is none").to_string();
    assert!(error.starts_with("/nowhere/new: ") && refused.is_none(), "{error}");
    jobs.take(ticket).unwrap();
    let before = Box::new(nowhere("fab0", "old"));
    let ticket = jobs.join(&nowhere("fab0", "new"), Work::Join(Why::Changed(before)), None).unwrap();
    // It is in the list of fabrics, and no other one is tried meanwhile.
    assert_eq!((jobs.busy("fab0"), jobs.tries()), (None, true));
    let (place, refused) = next(&mut news).output.joined("fab0");
    assert!(refused.expect("the new one").to_string().starts_with("/nowhere/new: "));
    assert!(place.err().expect("nor the old one").to_string().starts_with("/nowhere/old: "));
    jobs.take(ticket).unwrap();
}

#[test]
fn whoever_waits_for_what_is_deleted_meanwhile_is_told() {
    let (mut jobs, _news) = Jobs::new(HookChoice::Auto);
    let before = Box::new(saved("fab0"));
    let wanted = super::SavedFabric { transport: "udp:/nowhere/x".into(), ..saved("fab0") };
    let ticket = jobs.join(&wanted, Work::Join(Why::Changed(before)), None).unwrap();
    let mut reply = jobs.wait(ticket).expect("it is under way");
    jobs.cancel(ticket);
    let Ok(Err(error)) = reply.try_recv() else { panic!("no word") };
    assert_eq!(error.to_string(), "fab0: cannot change the fabric: it was deleted meanwhile");
    assert_eq!((jobs.busy("fab0"), jobs.tries()), (Some("it is being deleted"), false));
    // Whoever deleted it waits for its end; a daemon that stops answers nobody.
    let mut reply = jobs.wait(ticket).expect("it is under way");
    jobs.cancel_all();
    assert_eq!(reply.try_recv().unwrap_err(), oneshot::error::TryRecvError::Empty);
    assert!(!jobs.is_empty());
}
