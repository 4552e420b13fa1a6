//! `check`: can this machine do it, and what will get in the way.
//!
//! Facts are gathered first ([`facts`]), from the kernel and from what managers of interfaces leave in `/run`; what
//! they mean is decided after that by functions of the facts alone ([`findings`]). Nothing is changed: whether the
//! kernel takes the programs is tried in a network namespace that is gone afterwards ([`trial`]).

mod between;
mod device;
mod facts;
mod findings;
mod interface;
mod machine;
mod trial;

use crate::{
    io::{
        error::About as _,
        manager::Roots,
        state::{SavedBond, saved},
    },
    world::World,
};
use facts::{Bond, Facts};
use linkbraid_api::{Error, FindingRecord, LinkName};
use linkbraid_dataplane::HookChoice;
use linkbraid_link::Netlink;
pub(super) use machine::{FILTERS, filters};
use machine::{Machine, Missing};
use std::path::Path;
pub(crate) use trial::in_words as trial;

/// Interfaces that one request may name.
const INTERFACES_MAX: usize = 256;

/// Looks at the machine and at these interfaces (a bond stands for its members); without any at the members of all
/// bonds, and without bonds at every Ethernet interface. What is found comes in the order machine, interfaces,
/// bonds. Takes milliseconds where there is a bond, and as long as `bond add` where there is none.
///
/// # Errors
/// More interfaces than it looks at in one go, or a kernel that does not list them.
pub(crate) async fn run(world: &World, interfaces: Vec<LinkName>) -> Result<Vec<FindingRecord>, Error> {
    let bonds: Vec<Bond> = world.bonds.values().map(facts::bond).collect();
    let works = async {
        // Loading the programs takes long enough to be felt by a bond, and a bond proves that they load.
        match world.bonds.values().next() {
            Some(bond) => Ok(trial::works(bond.path.hook())),
            None => trial::run(world.hook).await,
        }
    };
    look(&world.netlink, None, bonds, works, interfaces).await
}

/// The same where no daemon runs, with a finding that says so and names the command that starts one. Of bonds that an
/// earlier daemon left, what the files in `state` say is known.
///
/// # Errors
/// As above.
pub(crate) async fn without_daemon(
    state: &Path,
    start: String,
    interfaces: Vec<LinkName>,
) -> Result<Vec<FindingRecord>, Error> {
    let about = |result: linkbraid_link::Result<_>| result.about("check", "cannot look at the interfaces");
    let netlink = Netlink::new().about("check", "cannot reach the kernel")?;
    let links = about(netlink.links().await)?;
    let is_there = |bond: &SavedBond| {
        links.iter().any(|link| Some(link.index) == bond.ifindex && link.name == bond.name.as_str())
    };
    let bonds = saved::<SavedBond>(state).iter().filter(|bond| is_there(bond)).map(facts::left).collect();
    look(&netlink, Some(start), bonds, trial::run(HookChoice::Auto), interfaces).await
}

/// What is found; `start` is the command that starts a daemon, where none runs.
async fn look(
    netlink: &Netlink,
    start: Option<String>,
    bonds: Vec<Bond>,
    works: impl Future<Output = Result<String, Missing>>,
    interfaces: Vec<LinkName>,
) -> Result<Vec<FindingRecord>, Error> {
    if interfaces.len() > INTERFACES_MAX {
        let cause = format!("{} interfaces; allowed are up to {INTERFACES_MAX}", interfaces.len());
        return Err(Error::new("check", "too many at once", cause).hint("linkbraid check"));
    }
    let roots = Roots::default();
    let machine = Machine::look(&roots, works.await, start);
    let names = interfaces.into_iter().map(String::from).collect();
    let interfaces = facts::interfaces(netlink, &bonds, names, &roots)
        .await
        .about("check", "cannot look at the interfaces")?;
    Ok(all(&Facts { machine, interfaces, bonds }))
}

/// All findings: the machine, each interface, each bond.
fn all(facts: &Facts) -> Vec<FindingRecord> {
    let mut all = facts.machine.report().finish();
    for interface in &facts.interfaces {
        let mut report = interface.report();
        between::compare(interface, facts, &mut report);
        all.extend(report.finish());
    }
    // Bonds whose members nobody asked for are left out.
    let is_asked = |bond: &&Bond| {
        bond.members.is_empty() || facts.interfaces.iter().any(|of| of.bond.as_ref() == Some(&bond.name))
    };
    for bond in facts.bonds.iter().filter(is_asked) {
        all.extend(bond.report().finish());
    }
    all
}

#[cfg(test)]
mod tests;
