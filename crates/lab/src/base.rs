//! Do the lab's own links keep their rate?

use crate::host::Host;
use crate::iperf::{Cc, Traffic, run};
use crate::shape;
use linkbraid_api::Error;
use serde::{Deserialize, Serialize};

/// How much of a link's rate one TCP flow fills.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct BaseRate {
    /// The rate of the slower of both first links, Mbit/s.
    pub rate_mbit: u32,
    /// Its burst in bytes.
    pub burst_bytes: u32,
    /// Goodput of the flow, Mbit/s.
    pub goodput_mbit: f64,
    /// The share of the rate that the flow's frames took: 1 is all of it.
    pub share: f64,
}

/// Measures whether the lab's own links keep their rate: one TCP flow over the first link of each host. Below a share of
/// 0.95, a result on top of it says more about the machine than about what is tested.
pub fn check_base_rate(client: Host<'_>, server: Host<'_>, cc: Cc, seconds: u32) -> Result<BaseRate, Error> {
    let links = [client.link(0)?, server.link(0)?];
    let Some(rate_mbit) = links.iter().filter_map(|l| l.spec().rate_mbit).min() else {
        return Err(Error::new("lab", "cannot check the base rate", "neither link has a rate"));
    };
    let mtu = links[0].spec().mtu.min(links[1].spec().mtu);
    let options = &client.lab.topology().options;
    let goodput_mbit = run(client, server, &Traffic::tcp(cc, seconds))?.way.mbit;
    Ok(BaseRate {
        rate_mbit,
        burst_bytes: options.burst(rate_mbit, mtu),
        goodput_mbit,
        share: goodput_mbit / f64::from(rate_mbit) / shape::tcp_share(mtu, false),
    })
}
