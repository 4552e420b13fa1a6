//! The order in which a NIC of a host sends what waits: inside the token bucket that makes its rate.

use crate::link::Link;
use crate::spec::Options;
use crate::{shape, tool};
use linkbraid_api::Error;
use std::time::Duration;

/// What waits in a NIC's queue is sent in which order.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Order {
    /// As it came: how a lab is built.
    Fifo,
    /// By the priority of its socket, with the kernel's usual map into three bands: 6 and 7 before all others, 0 before 1.
    Priority,
}

/// Queues with three bands and that map, the one that can be configured first. The other is in every kernel that has
/// queues at all: it is what a NIC without a qdisc of its own gets.
const PRIORITY: [&str; 2] = ["prio", "pfifo_fast"];

/// The number of the token bucket, and of its class that the queue hangs on.
pub(crate) const BUCKET: &str = "1:";
const CLASS: &str = "1:1";

/// The number of the queue that delays: another kind of queue cannot take the token bucket's.
const DELAYS: &str = "3:";
/// Frames that may be under way in a port that delays them: more than fit any delay of a switch.
const DELAY_FRAMES: u32 = 1000;

impl Link<'_> {
    /// Delays what the switch's port sends to the host by so much, before the port's token bucket, as a switch that stores
    /// and forwards does; returns the two commands. The kernel must have netem, and the link a rate. What waits now is lost.
    pub fn set_delay(&self, delay: Duration) -> Result<[String; 2], Error> {
        let port = self.port();
        let cannot = |cause: &str| Error::new("lab", format!("cannot delay what '{port}' sends"), cause);
        let rate = self.spec().rate_mbit.ok_or_else(|| cannot("its link has no rate"))?;
        let bucket = self.host().lab.topology().options.port_bucket(rate, self.spec().mtu);
        let delay = delay.as_micros();
        let lines = [
            format!(
                "qdisc replace dev {port} root handle {DELAYS} netem limit {DELAY_FRAMES} delay {delay}us"
            ),
            format!("qdisc replace dev {port} parent {DELAYS}1 {bucket}"),
        ];
        tool::tc_batch(self.switch_netns().name(), &lines)?;
        Ok(lines.map(|line| format!("tc {line}")))
    }

    /// Has its NIC and the switch's port send at another rate from now on, as a Wi-Fi bridge or a policed port does. What waits
    /// stays, and so do the bursts: a bucket never passes what waits in it and is longer than its burst. The link must have
    /// had a rate.
    pub fn set_rate(&self, mbit: u32) -> Result<(), Error> {
        let (nic, port, mtu) = (self.nic(), self.port(), self.spec().mtu);
        let Some(built) = self.spec().rate_mbit else {
            let what = format!("cannot change the rate of '{nic}'");
            return Err(Error::new(format!("host {}", self.host().name()), what, "it has none"));
        };
        let options = &self.host().lab.topology().options;
        let options = Options { burst_bytes: Some(options.burst(built, mtu)), ..options.clone() };
        let change =
            |device: &str, bucket: String| format!("qdisc change dev {device} root handle {BUCKET} {bucket}");
        self.host().sh(&format!("tc {}", change(&nic, options.nic_bucket(mbit, mtu))))?;
        tool::tc_batch(self.switch_netns().name(), &[change(&port, options.port_bucket(mbit, mtu))])
    }

    /// Sets the order in which its NIC sends; returns the kind of queue that does it. The link must have a rate, because
    /// without one nothing ever waits. What waits now is lost.
    pub fn set_order(&self, order: Order) -> Result<&'static str, Error> {
        let nic = self.nic();
        if self.spec().rate_mbit.is_none() {
            let what = format!("cannot set the order of '{nic}'");
            return Err(Error::new(format!("host {}", self.host().name()), what, "it has no rate"));
        }
        let set = |kind: &str| {
            let line = format!("tc qdisc replace dev {nic} parent {CLASS} {kind}");
            self.host().sh(&line).map(drop)
        };
        match order {
            Order::Fifo => {
                set(&format!("bfifo limit {}", shape::host_queue(self.spec().mtu))).map(|()| "bfifo")
            }
            Order::Priority => {
                let [wanted, always] = PRIORITY;
                set(wanted).map(|()| wanted).or_else(|_| set(always).map(|()| always))
            }
        }
    }
}
