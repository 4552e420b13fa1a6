//! Who this host is to others.

use linkbraid_api::Error;

/// A new identity: 16 random bytes, kept with the bond's state for as long as the bond lives.
pub(crate) fn new_host_id() -> Result<[u8; 16], Error> {
    let mut id = [0; 16];
    getrandom::fill(&mut id)
        .map_err(|cause| Error::new("daemon", "cannot draw a host id", cause.to_string()))?;
    Ok(id)
}

/// A seed for the protocols' spreading of messages over time.
pub(crate) fn new_seed() -> u64 {
    getrandom::u64().unwrap_or(0x9e37_79b9_7f4a_7c15)
}

/// 32 hexadecimal digits.
pub(crate) fn hex(id: &[u8]) -> String {
    use std::fmt::Write as _;
    id.iter().fold(String::new(), |mut text, byte| {
        let _ = write!(text, "{byte:02x}");
        text
    })
}
