//! A thread that works until it is told to end.

use std::io;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::thread::JoinHandle;

/// A thread under way. Dropped, it is told to end, and nobody waits for it.
#[derive(Debug)]
pub struct Task<T> {
    over: Arc<AtomicBool>,
    thread: Option<JoinHandle<T>>,
}

impl<T: Send + 'static> Task<T> {
    /// Starts a thread that looks now and then whether it is to end.
    pub fn start(work: impl FnOnce(&AtomicBool) -> T + Send + 'static) -> Self {
        let over = Arc::new(AtomicBool::new(false));
        let own = Arc::clone(&over);
        Self { over, thread: Some(std::thread::spawn(move || work(&own))) }
    }

    /// Waits for its end; one that panicked has printed why.
    pub fn join(mut self) -> io::Result<T> {
        self.end();
        let joined = self.thread.take().and_then(|thread| thread.join().ok());
        joined.ok_or_else(|| io::Error::other("its thread ended early"))
    }
}

impl<T> Task<T> {
    /// Tells it to end.
    pub fn end(&self) {
        self.over.store(true, Ordering::Release);
    }
}

impl<T> Drop for Task<T> {
    fn drop(&mut self) {
        self.end();
    }
}
