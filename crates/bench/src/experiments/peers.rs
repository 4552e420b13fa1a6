//! What people would use otherwise: bonding, team and MPTCP of a stock kernel, beside linkbraid in the same run.
//!
//! A kernel that has them is measured as it is. Elsewhere a stock kernel is booted in an emulated machine, and its report
//! is this one's.

mod awake;
mod failures;
pub(super) mod figure;
mod goals;
mod guest;
mod here;
mod rates;
mod setup;
mod system;

pub(crate) use failures::{KINDS, PINGS, id as failure_id};
pub(crate) use rates::{LOADS, id as rate_id};
pub(crate) use system::{SYSTEMS, System};

use crate::experiments::prelude::*;
use awake::Awake;

pub(crate) const NAME: &str = "peers";
/// What boots a stock kernel for it, in the source tree.
pub(super) const SCRIPT: &str = "tests/vm/peers";

/// Mbit/s of a link: little, so that an emulated processor is not what limits.
const RATE: u32 = 20;

pub(super) fn run(run: &mut Run<'_>) -> Result<(), Error> {
    if let Some(missing) = here::missing_in_kernel()? {
        return guest::run(run, &missing);
    }
    let awake = Awake::start();
    let missing = here::missing_for_systems();
    if let Some(reason) = &missing.delay {
        run.skip("delay", reason);
    }
    rates::run(run, &awake, &missing)?;
    failures::run(run, &awake, &missing)?;
    run.goals(goals::goals(&run.report));
    Ok(())
}
