//! Refusals of the parts of a fabric, in the one shape the user sees.

use linkbraid_api::Error;
use linkbraid_link::TapError;

/// The refusal of the kernel.
pub(super) fn of_tap(error: &TapError) -> Error {
    let refusal = Error::new(&error.name, &error.what, error.cause.to_string());
    match error.hint() {
        Some(hint) => refusal.hint(hint),
        None => refusal,
    }
}

/// The refusal of a transport. What it hints at is a whole command for the user.
pub(crate) fn of_transport(error: linkbraid_fabric::Error, name: &str, node: u16, nodes: u16) -> Error {
    let refusal = Error::new(error.object, error.what, error.cause);
    let hint = match error.hint {
        Some(hint) if hint.starts_with("--") => {
            format!("linkbraid fabric add {name} --node {node} --nodes {nodes} {hint}")
        }
        Some(hint) => hint,
        None => "linkbraid fabric add --help".to_owned(),
    };
    refusal.hint(hint)
}
