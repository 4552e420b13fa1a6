//! Whether a provider's wait object can be slept on. Some accept one that is always ready, and some one that never is:
//! so it is tried, on two endpoints of this process.

use super::{
    endpoint::{Done, Endpoint, READ},
    library::Library,
    offer::Offer,
    pool::Sizes,
};
use nix::poll::{PollFd, PollFlags, PollTimeout, poll};
use std::{
    collections::HashMap,
    net::{IpAddr, SocketAddr},
    sync::Mutex,
    time::{Duration, Instant},
};

/// How long anything may take.
const DEADLINE: Duration = Duration::from_millis(500);

/// Milliseconds in which nothing must wake a sleeper, so many times in a row, of so many tries.
const SLEEP: u8 = 5;
const SLEEPS: usize = 3;
const TRIES: usize = 12;

/// Messages that must wake one.
const WAKES: usize = 3;

/// What is sent.
const BYTES: usize = 64;

/// Messages posted at a time, both ways.
const POSTED: usize = 16;

/// Slots of the pool: the first two are received into.
const RECEIVED: [usize; 2] = [0, 1];
const SENT: usize = 2;

/// Whether the wait object of `provider` at `ip` works. The answer is remembered.
pub fn work(library: &'static Library, provider: &str, ip: IpAddr) -> bool {
    static KNOWN: Mutex<Option<HashMap<(String, IpAddr), bool>>> = Mutex::new(None);
    let mut known = KNOWN.lock().unwrap_or_else(std::sync::PoisonError::into_inner);
    let known = known.get_or_insert_default();
    *known.entry((provider.to_owned(), ip)).or_insert_with(|| try_it(library, provider, ip).unwrap_or(false))
}

/// An endpoint at any free port.
fn endpoint(library: &'static Library, provider: &str, ip: IpAddr) -> Option<Endpoint> {
    let offer = Offer::find(library, provider, provider, SocketAddr::new(ip, 0), POSTED).ok()?;
    let sizes = Sizes { long: 3, long_bytes: BYTES, short: 0, short_bytes: 0 };
    let mut endpoint = Endpoint::open(&offer, sizes, 2, true).ok()?;
    endpoint.wait_fd()?;
    RECEIVED.iter().all(|slot| endpoint.receive(*slot).is_ok()).then_some(endpoint)
}

fn try_it(library: &'static Library, provider: &str, ip: IpAddr) -> Option<bool> {
    // A provider may take its time to open one.
    let (from, to) = std::thread::scope(|scope| {
        let from = scope.spawn(|| endpoint(library, provider, ip));
        let to = endpoint(library, provider, ip);
        (from.join().ok().flatten(), to)
    });
    let (mut from, mut to) = (from?, to?);
    let name = to.name().ok()?;
    if name == from.name().ok()? {
        return None;
    }
    let address = from.insert(&name).ok()?;
    if !cross(&mut from, &mut to, address, false)? {
        return Some(false);
    }
    Some(sleeps(&mut to) && (0..WAKES).all(|_| cross(&mut from, &mut to, address, true) == Some(true)))
}

/// Whether it sleeps while nothing comes.
fn sleeps(endpoint: &mut Endpoint) -> bool {
    let mut in_a_row = 0;
    for _ in 0..TRIES {
        let may = endpoint.may_sleep();
        in_a_row = if may && !is_ready(endpoint, SLEEP) { in_a_row + 1 } else { 0 };
        if in_a_row == SLEEPS {
            return true;
        }
        endpoint.read(&mut [Done::default(); READ]);
    }
    false
}

fn is_ready(endpoint: &Endpoint, milliseconds: u8) -> bool {
    let Some(fd) = endpoint.wait_fd() else { return true };
    poll(&mut [PollFd::new(fd, PollFlags::POLLIN)], PollTimeout::from(milliseconds))
        .is_ok_and(|ready| ready > 0)
}

/// Sends a message; whether it came, and woke who slept if it was asleep.
fn cross(from: &mut Endpoint, to: &mut Endpoint, address: u64, asleep: bool) -> Option<bool> {
    let begun = Instant::now();
    let (mut sent, mut gone, mut came, mut woken) = (false, false, false, !asleep);
    // Whoever may not sleep yet reads what hinders it, before anything is under way.
    while asleep && !to.may_sleep() {
        to.read(&mut [Done::default(); READ]);
        if begun.elapsed() > DEADLINE {
            return Some(false);
        }
    }
    let mut done = [Done::default(); READ];
    while !(gone && came) {
        if begun.elapsed() > DEADLINE {
            return Some(false);
        }
        if !sent {
            sent = from.send(SENT, BYTES, address).is_ok();
        }
        let count = from.read(&mut done);
        for done in &done[..count] {
            if done.slot == SENT && done.error == 0 {
                gone = true;
            } else if done.slot == SENT {
                return Some(false);
            }
        }
        if !woken {
            woken = is_ready(to, 1);
        }
        if woken {
            let count = to.read(&mut done);
            for done in &done[..count] {
                came |= done.slot != SENT && done.error == 0;
                to.receive(done.slot).ok()?;
            }
        }
    }
    Some(true)
}
