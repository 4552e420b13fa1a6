//! The code at the end of a control message, by which holders of a key know that one of them has written it.

use super::{CONTROL_LEN, ControlBytes, FAST_PATH_FEATURE, FAST_PATH_LEN, FabricRefusal, HEADER_LEN};
use crate::auth::AUTH_CODE_LEN;

/// Bytes of the id of a key.
const KEY_ID_LEN: usize = 4;

/// Bytes at the end of a message that has a code: the id of the key, and the code.
pub const FABRIC_AUTH_LEN: usize = KEY_ID_LEN + AUTH_CODE_LEN;

/// The bit of an offer's features that says that a code stands at the end. Offers here never have it: it is written with the code.
pub const FABRIC_AUTH_FEATURE: u16 = 0x2000;

/// Where the length stands in the header, and the features behind it.
const LENGTH_AT: usize = 28;
const FEATURES_AT: usize = HEADER_LEN + 14;

/// A message with a code.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct SealedControl<'a> {
    /// By which key the code is.
    pub key_id: u32,
    /// What the code covers: all that stands before it.
    pub covered: &'a [u8],
    /// The code.
    pub code: [u8; AUTH_CODE_LEN],
}

/// Appends a code to a whole control message that has none. `code` makes it of what it covers.
pub fn seal_control(
    message: &mut ControlBytes,
    key_id: u32,
    code: impl FnOnce(&[u8]) -> [u8; AUTH_CODE_LEN],
) {
    //= docs/fabric.md#8.1
    let code_at = message.len + KEY_ID_LEN;
    let length = code_at + AUTH_CODE_LEN - HEADER_LEN;
    message.bytes[LENGTH_AT..HEADER_LEN].copy_from_slice(&(length as u32).to_be_bytes());
    message.bytes[FEATURES_AT] |= FABRIC_AUTH_FEATURE.to_be_bytes()[0];
    message.bytes[message.len..code_at].copy_from_slice(&key_id.to_be_bytes());
    let code = code(&message.bytes[..code_at]);
    message.bytes[code_at..code_at + AUTH_CODE_LEN].copy_from_slice(&code);
    message.len = code_at + AUTH_CODE_LEN;
}

/// The code of a whole control message that can be read; none if it has none.
///
/// # Errors
/// It says that it has one, and is too short for it.
pub fn sealed_control(bytes: &[u8]) -> Result<Option<SealedControl<'_>>, FabricRefusal> {
    let features = bytes.get(FEATURES_AT..).and_then(|rest| rest.first_chunk::<2>());
    let features = u16::from_be_bytes(*features.ok_or(FabricRefusal::Truncated)?);
    if features & FABRIC_AUTH_FEATURE == 0 {
        return Ok(None);
    }
    let fast_path = if features & FAST_PATH_FEATURE == 0 { 0 } else { FAST_PATH_LEN };
    let (covered, code) = bytes.split_last_chunk().ok_or(FabricRefusal::Truncated)?;
    let (before, key_id) = covered.split_last_chunk().ok_or(FabricRefusal::Truncated)?;
    if before.len() < HEADER_LEN + CONTROL_LEN + fast_path {
        return Err(FabricRefusal::Truncated);
    }
    Ok(Some(SealedControl { key_id: u32::from_be_bytes(*key_id), covered, code: *code }))
}
