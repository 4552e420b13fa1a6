//! Keys that cannot be used are refused before anything is touched.

use super::desired::{Change, Step};
use crate::io::keys::{self, Object};
use linkbraid_api::{Auth, Error, FabricAdd, config::BondConfig};

/// Refuses keys that cannot be used, where somebody waits for the answer. What the daemon does of itself, as at its start, goes on
/// without them: a bond or fabric that trusts nobody is better than none.
pub(super) fn check(step: &Step) -> Result<(), Error> {
    let (object, before, (auth, key)) = match step {
        Step::Bond(Change { name, from, to: Some(to) }) => {
            let of = |bond: &BondConfig| (bond.settings.auth, bond.settings.key.clone());
            (Object::Bond(name), from.as_ref().map(of), of(to))
        }
        Step::Fabric(Change { name, from, to: Some(to) }) => {
            let of = |fabric: &FabricAdd| {
                let settings = fabric.settings();
                (settings.auth, settings.key)
            };
            (Object::Fabric(name), from.as_ref().map(of), of(to))
        }
        _ => return Ok(()),
    };
    if auth == Auth::Off || before.is_some_and(|(was, of)| was == auth && of == key) {
        return Ok(());
    }
    keys::read(object, &key).map(drop)
}
