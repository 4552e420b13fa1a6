//! Whether an interface's clsact queueing discipline has filters, whoever put them there.

use crate::{
    Netlink,
    error::{Kind, Result},
    rtnl::QDISC_HEADER,
};
use nix::libc;
use std::thread;

/// `TC_H_CLSACT` with `TC_H_MIN_INGRESS` and with `TC_H_MIN_EGRESS` (linux/pkt_sched.h).
const PARENTS: [u32; 2] = [0xffff_fff2, 0xffff_fff3];

impl Netlink {
    /// Whether there is a filter on either side. An interface without clsact has none.
    ///
    /// # Errors
    /// As the kernel says.
    pub async fn has_filters(&self, index: u32) -> Result<bool> {
        for parent in PARENTS {
            let mut request = vec![0; QDISC_HEADER];
            request[4..8].copy_from_slice(&index.to_ne_bytes());
            request[12..16].copy_from_slice(&parent.to_ne_bytes());
            match self.dump_some(libc::RTM_GETTFILTER, request, 1).await {
                Ok(filters) if filters.is_empty() => {}
                Ok(_) => return Ok(true),
                Err(refusal) if matches!(refusal.kind, Kind::NotFound | Kind::NoDevice) => {}
                Err(refusal) => return Err(refusal.about(index.to_string(), "cannot list its filters")),
            }
        }
        Ok(false)
    }
}

/// The same for callers without a connection, in the network namespace of the calling thread. Waits for the answer.
///
/// # Errors
/// The same; or no thread or connection can be had.
pub fn has_filters(index: u32) -> std::io::Result<bool> {
    // A thread of its own: the caller's may be one of a runtime, where waiting is not allowed.
    let asked = thread::Builder::new().spawn(move || {
        let (runtime, netlink) = Netlink::blocking()?;
        runtime.block_on(netlink.has_filters(index)).map_err(std::io::Error::other)
    })?;
    asked.join().unwrap_or_else(|_| Err(std::io::Error::other("the thread that lists filters panicked")))
}
