//! Waiting for a condition instead of for a time.

use linkbraid_api::Error;
use std::fmt::Debug;
use std::time::{Duration, Instant};

/// How long to pause between two looks.
const PAUSE: Duration = Duration::from_millis(5);

/// Looks until `look` gives `Ok`, at most for `limit`; the error ends in what was last observed.
pub fn wait_for<T, O: Debug>(
    limit: Duration,
    what: &str,
    mut look: impl FnMut() -> Result<T, O>,
) -> Result<T, Error> {
    let deadline = Instant::now() + limit;
    loop {
        match look() {
            Ok(found) => return Ok(found),
            Err(observed) if Instant::now() >= deadline => {
                let cause = format!("not within {limit:?}; last observed: {observed:?}");
                return Err(Error::new("lab", format!("waiting for {what}"), cause));
            }
            Err(_) => std::thread::sleep(PAUSE),
        }
    }
}

/// Looks until `good` holds for what `look` gives, at most for `limit`.
pub fn wait_until<T: Debug>(
    limit: Duration,
    what: &str,
    mut look: impl FnMut() -> T,
    mut good: impl FnMut(&T) -> bool,
) -> Result<T, Error> {
    wait_for(limit, what, || {
        let seen = look();
        if good(&seen) { Ok(seen) } else { Err(seen) }
    })
}
