//! Keys that cannot be used are refused before anything is touched.

use super::desired::{Change, Step};
use crate::io::keys;
use linkbraid_api::{Auth, Error, config::BondConfig};

/// Refuses keys that cannot be used, where somebody waits for the answer. What the daemon does of itself, as at its start, goes on
/// without them: a bond that trusts nobody is better than none.
pub(super) fn check(step: &Step) -> Result<(), Error> {
    let Step::Bond(Change { name, from, to: Some(BondConfig { settings, .. }) }) = step else {
        return Ok(());
    };
    let before = from.as_ref().map(|from| (from.settings.auth, &from.settings.key));
    if settings.auth == Auth::Off || before == Some((settings.auth, &settings.key)) {
        return Ok(());
    }
    keys::read(name, &settings.key).map(drop)
}
