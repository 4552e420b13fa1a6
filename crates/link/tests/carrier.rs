//! Carrier, polled.

mod common;

use std::{
    fs,
    path::{Path, PathBuf},
    sync::mpsc::{Receiver, channel},
    time::Duration,
};

use common::{cable, in_namespace, run, script, until};
use linkbraid_link::CarrierPoll;

/// Longest wait for a word.
const DEADLINE: Duration = Duration::from_secs(10);
const PERIOD: Duration = Duration::from_millis(2);
/// Rounds after which silence counts as silence.
const ROUNDS: u64 = 25;

/// A poll, what it reports, and the directory of its thread in /proc (known once it has reported something).
struct Reports {
    poll: CarrierPoll,
    words: Receiver<(u32, bool, PathBuf)>,
    thread: PathBuf,
}

impl Reports {
    fn start() -> Self {
        Self::every(PERIOD)
    }

    fn every(period: Duration) -> Self {
        let (sender, words) = channel();
        let poll = CarrierPoll::start(period, move |index, carrier| {
            let thread = Path::new("/proc/self/task").join(nix::unistd::gettid().to_string());
            let _ = sender.send((index, carrier, thread));
        });
        Self { poll: poll.unwrap(), words, thread: PathBuf::new() }
    }

    fn watch(&self, members: &[(u32, &str)]) {
        self.poll.watch(members.iter().map(|(index, name)| (*index, (*name).to_owned())).collect());
    }

    fn next(&mut self) -> (u32, bool) {
        let (index, carrier, thread) = self.words.recv_timeout(DEADLINE).expect("nothing was reported");
        self.thread = thread;
        (index, carrier)
    }

    /// How often the thread has gone to sleep: once a round, and sometimes for a lock.
    fn sleeps(&self) -> u64 {
        let status = fs::read_to_string(self.thread.join("status")).unwrap();
        let line = status.lines().find_map(|line| line.strip_prefix("voluntary_ctxt_switches:")).unwrap();
        line.trim().parse().unwrap()
    }

    /// Processor time of the thread.
    fn busy(&self) -> Duration {
        let text = fs::read_to_string(self.thread.join("schedstat")).unwrap();
        Duration::from_nanos(text.split_whitespace().next().unwrap().parse().unwrap())
    }

    async fn rounds(&self, rounds: u64) {
        let from = self.sleeps();
        until(|| async { self.sleeps() }, |now| *now >= from + rounds).await;
    }

    async fn silent(&self) {
        self.rounds(ROUNDS).await;
        assert_eq!(self.words.try_recv().ok(), None);
    }
}

#[test]
fn the_first_state_and_then_every_change_is_told_once() {
    in_namespace(|net| async move {
        let (a, b) = (cable(&net, "eth0", "sw0").await, cable(&net, "eth1", "sw1").await);
        run("ip link set sw1 down");
        let mut reports = Reports::start();
        reports.watch(&[(a, "eth0"), (b, "eth1")]);
        assert_eq!([reports.next(), reports.next()], [(a, true), (b, false)]);
        reports.silent().await;
        run("ip link set sw0 down");
        assert_eq!(reports.next(), (a, false));
        run("ip link set sw0 up");
        assert_eq!(reports.next(), (a, true));
        run("ip link set sw1 up");
        assert_eq!(reports.next(), (b, true));
        run("ip link set eth1 down");
        assert_eq!(reports.next(), (b, false), "set down is no carrier");
        reports.silent().await;
    });
}

#[test]
fn a_new_list_takes_the_place_of_the_old_one() {
    in_namespace(|net| async move {
        let (a, b) = (cable(&net, "eth0", "sw0").await, cable(&net, "eth1", "sw1").await);
        let mut reports = Reports::start();
        reports.watch(&[(a, "eth0")]);
        assert_eq!(reports.next(), (a, true));
        reports.watch(&[(a, "eth0"), (b, "eth1")]);
        assert_eq!(reports.next(), (b, true), "what was known is not reported again");
        reports.watch(&[(b, "eth1")]);
        run("ip link set sw0 down");
        reports.silent().await;
        reports.watch(&[(a, "eth0"), (b, "eth1")]);
        assert_eq!(reports.next(), (a, false), "back in the list is new in the list");
    });
}

#[test]
fn a_name_that_leads_elsewhere_says_nothing() {
    in_namespace(|net| async move {
        let a = cable(&net, "eth0", "sw0").await;
        let mut reports = Reports::start();
        reports.watch(&[(a, "eth0")]);
        assert_eq!(reports.next(), (a, true));
        run("ip link set eth0 down");
        assert_eq!(reports.next(), (a, false));
        script("ip link set eth0 name lan0\nip link set lan0 up");
        let running = |link: &linkbraid_link::Result<linkbraid_link::LinkInfo>| {
            link.as_ref().is_ok_and(linkbraid_link::LinkInfo::running)
        };
        until(|| net.link("lan0"), running).await.unwrap();
        reports.silent().await;
        // Another interface takes the name over; its carrier is not that of the first.
        cable(&net, "eth0", "other0").await;
        reports.silent().await;
        reports.watch(&[(a, "lan0")]);
        assert_eq!(reports.next(), (a, true));
        run("ip link set sw0 down");
        assert_eq!(reports.next(), (a, false));
        net.delete_link(a).await.unwrap();
        reports.silent().await;
    });
}

#[test]
fn a_driver_without_an_answer_does_not_keep_the_others_waiting() {
    in_namespace(|net| async move {
        run("ip link add dumb0 type ifb");
        run("ip link set dumb0 up");
        let dumb = net.link("dumb0").await.unwrap().index;
        let a = cable(&net, "eth0", "sw0").await;
        let mut reports = Reports::start();
        reports.watch(&[(dumb, "dumb0"), (99, "absent0"), (98, "a-name-longer-than-any"), (a, "eth0")]);
        assert_eq!(reports.next(), (a, true));
        reports.silent().await;
    });
}

#[test]
fn it_asks_in_the_namespace_it_was_started_in() {
    in_namespace(|net| async move {
        let a = cable(&net, "eth0", "sw0").await;
        let mut reports = Reports::start();
        nix::sched::unshare(nix::sched::CloneFlags::CLONE_NEWNET).unwrap();
        reports.watch(&[(a, "eth0")]);
        assert_eq!(reports.next(), (a, true));
    });
}

#[test]
fn nothing_to_watch_is_nothing_to_do() {
    in_namespace(|net| async move {
        let a = cable(&net, "eth0", "sw0").await;
        let mut idle = Reports::start();
        idle.watch(&[(a, "eth0")]);
        idle.next();
        idle.watch(&[]);
        // It notices the new list, then sleeps; another poll's rounds are the clock.
        let mut clock = Reports::start();
        clock.watch(&[(a, "eth0")]);
        clock.next();
        clock.rounds(ROUNDS).await;
        let before = idle.sleeps();
        clock.rounds(4 * ROUNDS).await;
        assert_eq!(idle.sleeps(), before, "it woke up for nothing");
    });
}

#[test]
fn the_thread_ends_with_the_poll() {
    in_namespace(|net| async move {
        let a = cable(&net, "eth0", "sw0").await;
        let mut reports = Reports::start();
        reports.watch(&[(a, "eth0")]);
        reports.next();
        let thread = reports.thread.clone();
        assert!(thread.exists());
        drop(reports);
        // A joined thread is still in /proc until the kernel has reaped it.
        until(|| async { thread.exists() }, |there| !there).await;
        // One that never had a list ends too.
        drop(CarrierPoll::start(PERIOD, |_, _| {}).unwrap());
    });
}

#[test]
fn what_the_kernel_announces_is_looked_into_at_once() {
    in_namespace(|net| async move {
        let index = cable(&net, "eth0", "sw0").await;
        // While nothing changes it is asked every 12.5 s, later than `DEADLINE`.
        let mut reports = Reports::every(Duration::from_millis(2500));
        reports.watch(&[(index, "eth0")]);
        assert_eq!(reports.next(), (index, true));
        run("ip link set sw0 down");
        reports.poll.hurry();
        assert_eq!(reports.next(), (index, false));
    });
}

#[test]
fn eight_members_cost_little() {
    in_namespace(|net| async move {
        let mut members = Vec::new();
        for number in 0..8 {
            let name = format!("eth{number}");
            members.push((cable(&net, &name, &format!("sw{number}")).await, name));
        }
        let mut reports = Reports::start();
        reports.poll.watch(members);
        for _ in 0..8 {
            reports.next();
        }
        let (from, rounds) = (reports.busy(), 200);
        reports.rounds(rounds).await;
        let round = (reports.busy() - from) / u32::try_from(rounds).unwrap();
        println!("a round of 8 members takes {round:?}: {:.2} % at 10 ms", round.as_secs_f64() * 1e4);
        assert!(round < Duration::from_millis(1), "{round:?}");
    });
}
