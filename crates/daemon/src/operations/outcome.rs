//! What has come of a request when it is begun.

use super::wait::Pending;
use crate::world::fabric::Ticket;

/// What has come of a request.
pub(crate) enum Outcome {
    /// It is done, with these lines for the user.
    Done(Vec<String>),
    /// It goes on.
    Waits(Pending),
    /// A thread does the rest.
    Fabric(Ticket),
}
