//! What the daemon says: samples of its records, and events.

use linkbraid_api::{
    BondRecord, Error, EventRecord, FabricRecord, LaneRecord, LatencyRecord, LinkName, Records, Reply,
    Request,
};
use linkbraid_terminal::{client, report::Failed};
use std::path::Path;
use std::thread;
use std::time::{Duration, Instant};

/// From one sample to the next, and from one attempt to reach the daemon to the next.
pub const PERIOD: Duration = Duration::from_secs(1);

/// What the daemon said at one moment.
#[derive(Debug, Clone)]
pub struct Sample {
    /// When.
    pub at: Instant,
    /// The bonds that are watched.
    pub bonds: Vec<BondRecord>,
    /// The fabrics that are watched.
    pub fabrics: Vec<FabricRecord>,
    /// The lanes of these bonds.
    pub lanes: Vec<LaneRecord>,
    /// Latency of these bonds by class, where it is measured.
    pub latency: Vec<LatencyRecord>,
}

/// Asks the daemon for all that is watched.
///
/// # Errors
/// There is no daemon, or it refuses, as where there is no such bond.
pub fn sample(socket: &Path, name: Option<&LinkName>) -> Result<Sample, Failed> {
    let ask = |request| match client::ask(socket, &request, client::REPLY_TIMEOUT)? {
        Reply::Records(records) => Ok(records),
        Reply::Error(error) => Err(Failed::refused(error)),
        _ => Err(client::unexpected(socket, "cannot watch")),
    };
    let unexpected = || client::unexpected(socket, "cannot watch");
    let at = Instant::now();
    let mut sample = Sample { at, bonds: vec![], fabrics: vec![], lanes: vec![], latency: vec![] };
    match ask(Request::Show { name: name.cloned() })? {
        Records::Bonds(bonds) => sample.bonds = bonds,
        Records::Fabrics(fabrics) => sample.fabrics = fabrics,
        _ => return Err(unexpected()),
    }
    if name.is_none() {
        let Records::Fabrics(fabrics) = ask(Request::FabricShow { name: None })? else {
            return Err(unexpected());
        };
        sample.fabrics = fabrics;
    }
    if !sample.bonds.is_empty() {
        let Records::Lanes(lanes) = ask(Request::Lanes { bond: name.cloned(), peer: None })? else {
            return Err(unexpected());
        };
        sample.lanes = lanes;
    }
    // Of a bond that does not measure it, latency is refused.
    for bond in sample.bonds.iter().filter(|bond| bond.settings.latency) {
        let Records::Latency(latency) = ask(Request::Latency { name: Some(LinkName::of_link(&bond.name)) })?
        else {
            return Err(unexpected());
        };
        sample.latency.extend(latency);
    }
    Ok(sample)
}

/// Hands in samples, one a [`PERIOD`], for as long as they are taken.
pub fn samples(socket: &Path, name: Option<&LinkName>, take: impl Fn(Result<Sample, Error>) -> bool) {
    loop {
        thread::sleep(PERIOD);
        if !take(sample(socket, name).map_err(|failed| failed.error)) {
            return;
        }
    }
}

/// Hands in events for as long as they are taken; those of the next daemon, too, where one ends.
pub fn events(socket: &Path, name: Option<&LinkName>, take: impl Fn(EventRecord) -> bool) {
    let request = Request::Monitor { bond: name.cloned() };
    loop {
        let followed = client::follow(socket, &request, client::REPLY_TIMEOUT);
        if let Ok((_, Some(mut events))) = followed {
            // Whatever is wrong with the daemon, samples tell it.
            while let Ok(event) = events.wait() {
                if !take(event) {
                    return;
                }
            }
        }
        thread::sleep(PERIOD);
    }
}
