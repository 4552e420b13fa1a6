//! Keeps the program that takes frames early where packets to this node arrive: on the interface that has its address.

use linkbraid_dataplane::{Early, EarlyAt};
use linkbraid_link::Netlink;
use std::{
    net::IpAddr,
    sync::mpsc::{Receiver, RecvTimeoutError, Sender, channel},
    thread::{Builder, JoinHandle},
    time::Duration,
};

/// How often it is looked where the address is. Until then frames take the normal path.
const EVERY: Duration = Duration::from_secs(5);

/// A thread of its own, for the kernel takes its time. The program leaves with it.
pub(super) struct KeepsEarly {
    /// Ends the thread when it is dropped.
    end: Option<Sender<()>>,
    thread: Option<JoinHandle<()>>,
}

impl KeepsEarly {
    /// None where there are no threads to be had.
    pub(super) fn start(early: Early, address: IpAddr) -> Option<Self> {
        let (end, ended) = channel();
        let work = move || keep(&early, address, &ended);
        let thread = Builder::new().name("lb-early".into()).spawn(work).ok()?;
        Some(Self { end: Some(end), thread: Some(thread) })
    }
}

impl Drop for KeepsEarly {
    fn drop(&mut self) {
        self.end = None;
        if let Some(thread) = self.thread.take() {
            let _ = thread.join();
        }
    }
}

fn keep(early: &Early, address: IpAddr, ended: &Receiver<()>) {
    let Ok(runtime) = tokio::runtime::Builder::new_current_thread().enable_all().build() else { return };
    let mut at: Option<(u32, EarlyAt)> = None;
    let mut refused = false;
    loop {
        // What the kernel cannot say now changes nothing.
        if let Ok(holder) = runtime.block_on(holder(address))
            && at.as_ref().map(|(index, _)| *index) != holder
        {
            // Off the one before it is on the other, or its address is here no more.
            drop(at.take());
            let attached = holder.map(|index| (index, early.attach(index)));
            at = match attached {
                Some((index, Ok(attached))) => {
                    tracing::debug!(index, "VXLAN frames are taken early");
                    Some((index, attached))
                }
                Some((_, Err(error))) => {
                    if !refused {
                        tracing::warn!(%error, "VXLAN frames are not taken early");
                    }
                    refused = true;
                    None
                }
                None => None,
            };
        }
        if ended.recv_timeout(EVERY) != Err(RecvTimeoutError::Timeout) {
            return;
        }
    }
}

/// The interface that has an address, if its frames have Ethernet headers and come from elsewhere.
async fn holder(address: IpAddr) -> linkbraid_link::Result<Option<u32>> {
    let netlink = Netlink::new()?;
    for index in netlink.holders(address).await? {
        // One that is gone by now has it no more.
        if netlink.link_by_index(index).await.is_ok_and(|link| link.ethernet && !link.loopback) {
            return Ok(Some(index));
        }
    }
    Ok(None)
}
