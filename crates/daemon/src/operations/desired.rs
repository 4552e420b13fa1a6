//! What there is and what is wanted, as values. A request ([`merge`]) or a file ([`file`]) is merged with what there is, and
//! the difference is a list of steps ([`step`]) in an order that can be taken ([`diff`]).
//! Pure: whatever changes the machine goes this way, so all of it can be tried without one.

pub(super) mod diff;
pub(super) mod file;
pub(super) mod merge;
mod step;

pub(super) use diff::diff;
pub(super) use step::{Change, Class, Current, Made, Moving, Step};
