//! The kernel, files, and whatever else is not known without asking.

pub(crate) mod clock;
pub(crate) mod config;
pub(crate) mod error;
pub(crate) mod group;
pub(crate) mod helper;
pub(crate) mod identity;
pub(crate) mod keys;
pub(crate) mod manager;
pub(crate) mod marks;
pub(crate) mod programs;
pub(crate) mod state;
pub(crate) mod undo;
