//! The daemon's log leaves by a thread of its own: whoever reads it may be slow or hang, and the daemon goes on.

use std::io::{self, Write};
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering::Relaxed};
use std::sync::mpsc::{Receiver, SyncSender, sync_channel};
use std::thread;
use std::time::{Duration, Instant};

/// Lines that wait at most; further ones are dropped, and counted.
const WAITING_MAX: usize = 4096;
/// How long the end of the daemon waits for lines that wait.
const END_MAX: Duration = Duration::from_millis(500);
/// Name of the thread, at most 15 bytes.
const THREAD_NAME: &str = "lb-log";

/// Where lines are handed in. No thread waits there.
pub struct Log {
    lines: SyncSender<Vec<u8>>,
    /// Lines dropped since one was taken.
    dropped: AtomicU64,
}

/// Waits, when it is dropped, until the lines handed in are written, or nobody reads them.
pub struct Written {
    log: Arc<Log>,
    written: Receiver<()>,
}

impl Log {
    /// Starts the thread, which writes to `out`.
    pub fn start(out: impl Write + Send + 'static) -> io::Result<(Arc<Self>, Written)> {
        Self::with_room(WAITING_MAX, out)
    }

    fn with_room(lines: usize, mut out: impl Write + Send + 'static) -> io::Result<(Arc<Self>, Written)> {
        let (lines, waiting) = sync_channel::<Vec<u8>>(lines);
        let (end, written) = sync_channel(1);
        thread::Builder::new().name(THREAD_NAME.to_owned()).spawn(move || {
            for line in waiting {
                // An empty one is the last. A log that cannot be written is no reason to end.
                if line.is_empty() {
                    let _ = end.send(());
                } else {
                    let _ = out.write_all(&line);
                }
            }
        })?;
        let log = Arc::new(Self { lines, dropped: AtomicU64::new(0) });
        Ok((log.clone(), Written { log, written }))
    }

    fn add(&self, line: &[u8]) {
        let dropped = self.dropped.swap(0, Relaxed);
        let mut text = Vec::with_capacity(line.len());
        if dropped > 0 {
            let _ = writeln!(text, "lines not logged because the log was not read: {dropped}");
        }
        text.extend_from_slice(line);
        if self.lines.try_send(text).is_err() {
            self.dropped.fetch_add(dropped + 1, Relaxed);
        }
    }
}

impl Drop for Written {
    fn drop(&mut self) {
        let until = Instant::now() + END_MAX;
        while self.log.lines.try_send(Vec::new()).is_err() {
            if Instant::now() >= until {
                return;
            }
            thread::sleep(Duration::from_millis(1));
        }
        let _ = self.written.recv_timeout(until.saturating_duration_since(Instant::now()));
    }
}

/// One line is written by one call.
impl Write for &Log {
    fn write(&mut self, line: &[u8]) -> io::Result<usize> {
        if !line.is_empty() {
            self.add(line);
        }
        Ok(line.len())
    }

    fn flush(&mut self) -> io::Result<()> {
        Ok(())
    }
}

#[cfg(test)]
mod tests;
