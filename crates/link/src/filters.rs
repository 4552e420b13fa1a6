//! Filters of an interface's clsact queueing discipline, whoever put them there.

use crate::{
    Netlink,
    error::{Kind, Result},
    rtnl::{QDISC_HEADER, number_at},
};
use nix::libc;
use std::thread;

/// `TC_H_CLSACT` with `TC_H_MIN_INGRESS` and with `TC_H_MIN_EGRESS` (linux/pkt_sched.h).
const SIDES: [(&str, u32); 2] = [("ingress", 0xffff_fff2), ("egress", 0xffff_fff3)];
/// Where `struct tcmsg` has the preference of a filter, in the upper half.
const INFO: usize = 16;

impl Netlink {
    /// Whether there is a filter on either side. An interface without clsact has none.
    ///
    /// # Errors
    /// As the kernel says.
    pub async fn has_filters(&self, index: u32) -> Result<bool> {
        self.filters_before(index, u32::MAX).await.map(|sides| !sides.is_empty())
    }

    /// The sides, `ingress` and `egress`, where a filter comes before those of this preference. An interface without clsact has none.
    ///
    /// # Errors
    /// As the kernel says.
    pub async fn filters_before(&self, index: u32, preference: u32) -> Result<Vec<&'static str>> {
        let mut sides = Vec::new();
        for (side, parent) in SIDES {
            let mut request = vec![0; QDISC_HEADER];
            request[4..8].copy_from_slice(&index.to_ne_bytes());
            request[12..16].copy_from_slice(&parent.to_ne_bytes());
            // In the order in which frames come to them.
            let first = match self.dump_some(libc::RTM_GETTFILTER, request, 1).await {
                Err(refusal) if matches!(refusal.kind, Kind::NotFound | Kind::NoDevice) => Vec::new(),
                first => {
                    first.map_err(|refusal| refusal.about(index.to_string(), "cannot list its filters"))?
                }
            };
            let is_before = |info: u32| info >> 16 < preference;
            if first.first().is_some_and(|filter| is_before(number_at(&filter.payload, INFO))) {
                sides.push(side);
            }
        }
        Ok(sides)
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
