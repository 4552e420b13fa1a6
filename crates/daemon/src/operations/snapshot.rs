//! All that metrics are made of, at one moment.

use crate::world::{
    World,
    bond::Bond,
    fabric::{Fabric, record as fabrics},
    record,
};
use linkbraid_api::{Error, Records};
use linkbraid_metrics::{PEERS_MAX, Snapshot, may_have_series};
use linkbraid_proto::{Time, arp_plus::Peer};
use std::time::Instant;

/// What makes records of bonds.
type Make = fn(&[&Bond], Time) -> Result<Records, Error>;
/// Those of every bond. None asks the kernel for more than counters.
const OF_BONDS: [Make; 5] = [record::bonds, peers, lanes, record::stats, record::classes];

/// Those that the metrics show: anybody on the wire can make up hosts.
fn lanes(bonds: &[&Bond], now: Time) -> Result<Records, Error> {
    let is_wanted =
        |bond: &Bond, peer: &Peer| may_have_series(peer.answers, bond.saved.settings.inspector.probes);
    Ok(Records::Lanes(record::lanes_to(bonds, now, is_wanted, PEERS_MAX)?))
}

fn peers(bonds: &[&Bond], now: Time) -> Result<Records, Error> {
    record::peers(bonds, now, None)
}

/// The records of all bonds and fabrics, without those that cannot be read.
pub(crate) fn snapshot(world: &World) -> Snapshot {
    let (begun, now) = (Instant::now(), world.clock.now());
    let mut snapshot = Snapshot::default();
    for bond in world.bonds.values() {
        let latency = bond.latency.is_some().then_some(record::latency as Make);
        for make in OF_BONDS.into_iter().chain(latency) {
            match make(&[bond], now) {
                Ok(records) => snapshot.records.push(records),
                Err(error) => {
                    tracing::debug!(%error, "not among the metrics");
                    snapshot.failed += 1;
                }
            }
        }
    }
    let all: Vec<&Fabric> = world.fabrics.values().collect();
    snapshot.records.extend([fabrics::records(&all, now), fabrics::stats(&all, now)]);
    snapshot.took = begun.elapsed();
    snapshot
}
