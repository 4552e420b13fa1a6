//! Keeps the program that takes frames early where packets to this node arrive: on the interface that has its address.

use super::device::apart;
use linkbraid_dataplane::{Early, EarlyAt};
use linkbraid_link::Netlink;
use std::{
    net::IpAddr,
    sync::mpsc::{Receiver, RecvTimeoutError, Sender, channel},
    thread::{Builder, JoinHandle},
    time::Duration,
};

/// How often it is looked where the address is. Until then frames go the long way.
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
    let mut at: Option<(u32, Option<EarlyAt>)> = None;
    loop {
        let holder = holder(address);
        if at.as_ref().map(|(index, _)| *index) != holder {
            // Off the one before it is on the other, or its address is here no more.
            drop(at.take());
            at = holder.map(|index| {
                let attached = early.attach(index);
                match &attached {
                    Ok(_) => tracing::debug!(index, "frames by VXLAN are taken early"),
                    Err(error) => tracing::debug!(%error, "frames by VXLAN are not taken early"),
                }
                (index, attached.ok())
            });
        }
        if ended.recv_timeout(EVERY) != Err(RecvTimeoutError::Timeout) {
            return;
        }
    }
}

/// The interface that has an address, if its frames have Ethernet headers and come from elsewhere.
fn holder(address: IpAddr) -> Option<u32> {
    let found = apart(move || async move {
        let netlink = Netlink::new()?;
        let Some(index) = netlink.holder(address).await? else { return Ok(None) };
        let links = netlink.links().await?;
        let fits = links.iter().any(|link| link.index == index && link.ethernet && !link.loopback);
        Ok::<_, linkbraid_link::Error>(fits.then_some(index))
    });
    found.and_then(Result::ok).flatten()
}
