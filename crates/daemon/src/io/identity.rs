//! Who this host is to others.

use linkbraid_api::Error;

/// Random bytes for a new identity, which is kept with the bond's state for as long as the bond lives, or what nobody may guess.
pub(crate) fn new_secret() -> Result<[u8; 16], Error> {
    let mut bytes = [0; 16];
    getrandom::fill(&mut bytes).map(|()| bytes).map_err(|cause| failed(&cause))
}

/// A seed for the protocols' spreading of messages over time, or the name of a start.
pub(crate) fn new_seed() -> Result<u64, Error> {
    getrandom::u64().map_err(|cause| failed(&cause))
}

fn failed(cause: &getrandom::Error) -> Error {
    Error::new("daemon", "cannot draw a random number", cause.to_string())
}

/// 32 hexadecimal digits.
pub(crate) fn hex(id: &[u8]) -> String {
    use std::fmt::Write as _;
    id.iter().fold(String::new(), |mut text, byte| {
        let _ = write!(text, "{byte:02x}");
        text
    })
}
