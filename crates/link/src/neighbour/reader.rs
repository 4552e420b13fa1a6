//! Neighbours, listed by a thread of its own.

use super::Neighbour;
use crate::{Netlink, error::Result};
use std::{
    io,
    sync::mpsc::{Receiver, SyncSender, sync_channel},
    thread,
};
use tokio::runtime::Runtime;

/// Lists that may be asked for at a time.
const ASKED_MAX: usize = 64;
/// Name of the thread, at most 15 bytes.
const THREAD_NAME: &str = "lb-neighbours";

/// A thread that lists the neighbours of an interface when it is asked to.
///
/// The kernel makes a list within the call that asks for it, under its network lock (RTNL), which somebody else may hold for
/// long: whoever has deadlines to meet must not wait there.
#[derive(Debug)]
pub struct NeighbourReader {
    ask: SyncSender<u32>,
}

impl NeighbourReader {
    /// Starts the thread in the network namespace of the caller. It calls `report` on its own thread, once for each question,
    /// with the interface and its neighbours ([`Netlink::neighbours`]). It ends after the answer under way once this value
    /// is dropped; nobody waits for that.
    ///
    /// # Errors
    /// When there is no thread or no connection to be had.
    pub fn start(report: impl Fn(u32, Result<Vec<Neighbour>>) + Send + 'static) -> io::Result<Self> {
        let (ask, asked) = sync_channel(ASKED_MAX);
        let (ready, started) = sync_channel(1);
        thread::Builder::new().name(THREAD_NAME.into()).spawn(move || match Netlink::blocking() {
            Ok((runtime, netlink)) => {
                let _ = ready.send(Ok(()));
                serve(&runtime, &netlink, &asked, report);
            }
            Err(error) => _ = ready.send(Err(error)),
        })?;
        started.recv().map_err(io::Error::other)??;
        Ok(Self { ask })
    }

    /// Asks for the neighbours of an interface, and never waits. False: too many lists are asked for already.
    pub fn ask(&self, index: u32) -> bool {
        self.ask.try_send(index).is_ok()
    }
}

fn serve(
    runtime: &Runtime,
    netlink: &Netlink,
    asked: &Receiver<u32>,
    report: impl Fn(u32, Result<Vec<Neighbour>>),
) {
    for index in asked {
        report(index, runtime.block_on(netlink.neighbours(index)));
    }
}
