//! Who this host is to others.

use linkbraid_api::Error;

/// A new identity: 16 random bytes, kept with the bond's state for as long as the bond lives.
pub(crate) fn new_host_id() -> Result<[u8; 16], Error> {
    let mut id = [0; 16];
    getrandom::fill(&mut id)
        .map_err(|cause| Error::new("daemon", "cannot draw a host id", cause.to_string()))?;
    Ok(id)
}

/// A seed for the protocols' spreading of messages over time, or the name of a start.
pub(crate) fn new_seed() -> Result<u64, Error> {
    getrandom::u64().map_err(|cause| Error::new("daemon", "cannot draw a number", cause.to_string()))
}

/// What nobody may guess.
pub(crate) fn new_secret() -> Result<[u8; 16], Error> {
    let mut secret = [0; 16];
    getrandom::fill(&mut secret)
        .map_err(|cause| Error::new("daemon", "cannot draw a secret", cause.to_string()))?;
    Ok(secret)
}

/// 32 hexadecimal digits.
pub(crate) fn hex(id: &[u8]) -> String {
    use std::fmt::Write as _;
    id.iter().fold(String::new(), |mut text, byte| {
        let _ = write!(text, "{byte:02x}");
        text
    })
}
