//! The queueing discipline at the root of an interface: the order in which frames leave that wait for it.
//!
//! A class with precedence needs one that heeds the priority of frames. `pfifo_fast` does, is part of every kernel, and needs no
//! settings: priorities 6 and 7 leave before all others, by the kernel's own map (net/sched/sch_generic.c). It takes only the
//! place of what the kernel chose itself, which comes back when it goes; what somebody has set stays. Its number says that it is ours.

use crate::{
    Netlink,
    error::{Kind, Result},
    netlink::{CREATE, EXCL},
    rtnl::{Builder, QDISC_HEADER, attribute, number_at, text},
};
use nix::libc;
use std::collections::BTreeMap;

/// `TC_H_ROOT` (linux/pkt_sched.h).
const ROOT: u32 = 0xffff_ffff;
/// The number of ours, as `tc qdisc show` writes it `1b0d:`.
const OURS: u32 = 0x1b0d_0000;
/// Its kind.
const KIND: &str = "pfifo_fast";
/// What does not let frames wait: those of interfaces on top of others.
const NO_QUEUE: &str = "noqueue";
/// Type of the attribute that holds the kind (`TCA_KIND`, linux/rtnetlink.h).
const TCA_KIND: u16 = 1;
/// Where `struct tcmsg` has the interface, the number of the queueing discipline, and what it hangs on.
const IFINDEX: usize = 4;
const HANDLE: usize = 8;
const PARENT: usize = 12;

/// The queueing discipline at the root of an interface.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Queue {
    /// Its kind, such as `fq_codel` or `mq`.
    pub kind: String,
    handle: u32,
}

impl Queue {
    /// Whether it is the one that [`Netlink::queue_by_priority`] sets.
    pub fn is_ours(&self) -> bool {
        self.handle == OURS && self.kind == KIND
    }

    /// Whether the kernel chose it, and frames wait in it: it may be replaced. Those of users have numbers.
    pub fn is_default(&self) -> bool {
        self.handle == 0 && self.has_frames()
    }

    /// Whether frames wait in it at all.
    pub fn has_frames(&self) -> bool {
        self.kind != NO_QUEUE
    }
}

/// A request about the root of an interface.
fn root(index: u32, handle: u32) -> Builder {
    let mut header = [0; QDISC_HEADER];
    for (at, number) in [(IFINDEX, index), (HANDLE, handle), (PARENT, ROOT)] {
        header[at..at + 4].copy_from_slice(&number.to_ne_bytes());
    }
    Builder::new(&header)
}

impl Netlink {
    /// The queueing discipline of each interface; one that was never up has none.
    ///
    /// # Errors
    /// As the kernel says.
    pub async fn queues(&self) -> Result<BTreeMap<u32, Queue>> {
        let all = self.dump(libc::RTM_GETQDISC, vec![0; QDISC_HEADER]).await;
        let all = all.map_err(|refusal| refusal.about("netlink", "cannot list queueing disciplines"))?;
        let roots = all.iter().filter(|one| number_at(&one.payload, PARENT) == ROOT);
        let queue = |payload: &[u8]| {
            let kind = attribute(payload, QDISC_HEADER, TCA_KIND).map(text)?;
            Some((number_at(payload, IFINDEX), Queue { kind, handle: number_at(payload, HANDLE) }))
        };
        Ok(roots.filter_map(|one| queue(&one.payload)).collect())
    }

    /// Has frames of priority 6 and 7 leave an interface before others that wait. Refused where somebody has set another
    /// queueing discipline.
    ///
    /// # Errors
    /// As the kernel says.
    pub async fn queue_by_priority(&self, index: u32) -> Result<()> {
        let request = root(index, OURS).text(TCA_KIND, KIND).finish();
        let asked = self.ask(libc::RTM_NEWQDISC, CREATE | EXCL, request);
        self.about_link(index, "cannot set its queueing discipline", asked).await
    }

    /// Gives an interface back the queueing discipline that the kernel chooses, where it has ours.
    ///
    /// # Errors
    /// As the kernel says.
    pub async fn queue_by_default(&self, index: u32) -> Result<()> {
        if !self.queues().await?.get(&index).is_some_and(Queue::is_ours) {
            return Ok(());
        }
        let asked = async {
            match self.ask(libc::RTM_DELQDISC, 0, root(index, OURS).finish()).await {
                // It has gone meanwhile, or the interface has.
                Err(refusal) if matches!(refusal.kind, Kind::NotFound | Kind::NoDevice) => Ok(Vec::new()),
                asked => asked,
            }
        };
        self.about_link(index, "cannot remove its queueing discipline", asked).await
    }
}
