//! A download under way, watched: it must not stall.

use super::{FILE, Server, digest, start};
use crate::SOON;
use linkbraid_lab::{Host, Running, wait_for};
use std::{
    fmt::Debug,
    fs::{self, File},
    path::PathBuf,
    process::Stdio,
    time::{Duration, Instant},
};

/// A download without a new byte for this long has stalled.
const STALLED: Duration = Duration::from_secs(5);

/// A client that fetches the file of a server; killed on drop.
pub struct Download<'server> {
    server: &'server Server<'server>,
    client: Running,
    target: PathBuf,
    received: u64,
    grew: Instant,
    longest: Duration,
}

impl<'server> Download<'server> {
    #[track_caller]
    pub(super) fn start(server: &'server Server<'server>, host: Host<'_>) -> Self {
        let target = server.target();
        let folder = server.scratch.path();
        let words = server.service.client(server.host.ipv4(), folder, FILE, Some(&target));
        let mut command = host.command(&words[0]);
        command.args(&words[1..]);
        let log = File::create(target.with_file_name("client")).expect("makes a file");
        command.stdin(Stdio::null()).stdout(log.try_clone().expect("an open file")).stderr(log);
        let [_, (_, package)] = server.service.programs();
        let client = start(command, package);
        Self { server, client, target, received: 0, grew: Instant::now(), longest: Duration::ZERO }
    }

    /// Bytes in the client's file so far.
    pub fn received(&self) -> u64 {
        // The client makes its file when the first data comes.
        fs::metadata(&self.target).map_or(0, |file| file.len())
    }

    /// The longest time without a new byte, as far as was looked.
    pub fn longest_pause(&self) -> Duration {
        self.longest
    }

    /// Waits until `look` gives `Ok` while the download goes on.
    ///
    /// # Panics
    /// When that takes too long, when the download stalls, or when it ends first.
    #[track_caller]
    pub fn while_it_runs<T, O: Debug>(
        &mut self,
        what: &str,
        mut look: impl FnMut(&Self) -> Result<T, O>,
    ) -> T {
        let seen = wait_for(SOON, what, || {
            // Asked first: what is seen after it is seen of a download under way.
            if let Some(status) = self.client.ended() {
                panic!("the download ended ({status}) at {} bytes before {what}", self.received());
            }
            self.watch(what);
            look(self)
        });
        seen.unwrap_or_else(|e| panic!("{e}"))
    }

    /// Waits for its end and checks what arrived.
    ///
    /// # Panics
    /// When it stalls, fails, or the file differs.
    #[track_caller]
    pub fn finish(mut self) {
        let status = loop {
            match self.client.ended() {
                Some(status) => break status,
                None => self.watch("the end"),
            }
            // The watch itself has the deadline.
            std::thread::park_timeout(Duration::from_millis(10));
        };
        assert!(status.success(), "'{}': {status}", self.client.words());
        assert_eq!(self.received(), self.server.bytes, "bytes that arrived");
        assert_eq!(digest(&self.target), self.server.digest, "what arrived differs");
    }

    #[track_caller]
    fn watch(&mut self, what: &str) {
        let now = Instant::now();
        let received = self.received();
        let pause = now - self.grew;
        self.longest = self.longest.max(pause);
        if received != self.received {
            (self.received, self.grew) = (received, now);
        } else if pause > STALLED {
            panic!("the download stalled at {received} of {} bytes, waiting for {what}", self.server.bytes);
        }
    }
}
