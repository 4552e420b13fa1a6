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
mod tests {
    use super::*;
    use std::io::{BufRead as _, BufReader, pipe};

    #[test]
    fn a_log_that_nobody_reads_delays_nobody_and_says_what_it_lost() {
        let (reader, writer) = pipe().unwrap();
        let (log, written) = Log::with_room(2, writer).unwrap();
        // More than a pipe holds, so that the thread waits with it.
        let long = [vec![b'x'; 1 << 20], vec![b'\n']].concat();
        log.add(&long);
        let begin = Instant::now();
        for n in 0..10 {
            log.add(format!("line {n}\n").as_bytes());
        }
        assert!(begin.elapsed() < Duration::from_millis(100), "it waited");
        let mut lines = BufReader::new(reader).lines().map(Result::unwrap);
        assert_eq!(lines.next().map(|line| line.len()), Some(1 << 20));
        assert_eq!(lines.next().as_deref(), Some("line 0"));
        let mut added = 10;
        while log.dropped.load(Relaxed) > 0 {
            log.add(b"after\n");
            added += 1;
            thread::yield_now();
        }
        drop(written);
        drop(log);
        let rest: Vec<String> = lines.collect();
        let reported = rest
            .iter()
            .filter_map(|line| line.strip_prefix("lines not logged because the log was not read: "));
        let lost: Vec<usize> = reported.map(|count| count.parse().unwrap()).collect();
        assert!(!lost.is_empty(), "{rest:?}");
        // Line 0 was read before.
        assert_eq!(1 + rest.len() - lost.len() + lost.iter().sum::<usize>(), added, "{rest:?}");
        assert_eq!(rest.last().map(String::as_str), Some("after"));
    }

    #[test]
    fn the_end_waits_for_the_last_line_and_not_for_ever() {
        let (reader, writer) = pipe().unwrap();
        let (log, written) = Log::start(writer).unwrap();
        log.add(b"the last words\n");
        drop(written);
        assert_eq!(BufReader::new(reader).lines().next().unwrap().unwrap(), "the last words");
        let (_reader, writer) = pipe().unwrap();
        let (log, written) = Log::start(writer).unwrap();
        log.add(&vec![b'x'; 1 << 20]);
        let begin = Instant::now();
        drop(written);
        assert!(begin.elapsed() < 2 * END_MAX, "it waited for ever");
    }
}
