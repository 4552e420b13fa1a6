//! Members that are wanted and not there, in the bond's file ([`SavedBond::absent`]).
//!
//! [`SavedBond::absent`]: crate::io::state::SavedBond::absent

use crate::{
    io::state::SavedAbsent,
    world::{World, bond::Bond},
};
use linkbraid_api::{Error, config::MemberConfig};

/// A member's interface is gone: unless it was about to leave, or had not yet joined, the bond wants it back.
pub(crate) fn lost(bond: &mut Bond, name: &str, ifindex: u32) {
    let saved = &bond.saved;
    let member = saved.members.iter().find(|member| member.before.link.index == ifindex);
    if let Some(member) = member.filter(|member| member.stays()) {
        let absent = SavedAbsent::of(member, name);
        bond.saved.absent.push(absent);
    }
}

/// A member is wanted no more that is not there, if it is one.
///
/// # Errors
/// The bond's file cannot be written.
pub(crate) fn give_up(world: &mut World, bond: &str, name: &str) -> Result<(), Error> {
    let Some(bond) = world.bonds.get_mut(bond) else { return Ok(()) };
    let before = bond.saved.absent.len();
    bond.saved.absent.retain(|absent| absent.name != name);
    if bond.saved.absent.len() == before {
        return Ok(());
    }
    if bond.member(name).is_none() {
        bond.report_member(name, "removed", "removed; it was not there");
    }
    world.state.write(&bond.saved)
}

/// A bond has got a link: no other one waits for it any more.
pub(super) fn taken(world: &mut World, by: &str, name: &str) {
    for bond in world.bonds.values_mut().filter(|bond| bond.saved.name != by) {
        let before = bond.saved.absent.len();
        bond.saved.absent.retain(|absent| absent.name != name);
        if bond.saved.absent.len() < before {
            bond.report_member(name, "removed", format!("removed; it is in '{by}' now"));
            if let Err(error) = world.state.write(&bond.saved) {
                tracing::error!(%error, "a later daemon will wait for it");
            }
        }
    }
}

/// A bond waits for a member that is not there.
///
/// # Errors
/// The bond's file cannot be written.
pub(super) fn wait_for(
    world: &mut World,
    of: &str,
    member: &MemberConfig,
    move_address: bool,
) -> Result<(), Error> {
    let bond = world.bonds.get_mut(of).ok_or_else(|| Error::new(of, "no such bond", "it is gone"))?;
    let class = member.class.as_deref().and_then(|class| bond.class_number(class)).unwrap_or(0);
    let (name, settings) = (member.interface.to_string(), member.settings);
    bond.saved.absent.push(SavedAbsent {
        name,
        settings,
        class,
        move_address,
        applied: false,
        gives_mac: false,
    });
    world.state.write(&bond.saved)
}
