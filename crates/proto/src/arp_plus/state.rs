//! The published states S0 to S3 and every step between them.
//!
//! ```text
//!                 Start: broadcast BROADCAST
//!      +--------+ -----------------------------> +--------------+ --+ own change: broadcast CHANGE
//!      | S0     |                                | S1           |   | timeout: what is due
//!      | start  | <----------------------------- | running      | <-+
//!      +--------+   Stop: broadcast CLEAR        +--------------+
//!                                                  |  ^     |  ^
//!                            BROADCAST received    |  |     |  |   REPLY, CHANGE or CLEAR received
//!                                   +--------------+  |     |  +--------------+
//!                                   v      entry made: |     |                | table updated,
//!                               +--------+ send REPLY  |     |    +--------+  | or refused
//!                               | S2     | ------------+     +--> | S3     | -+
//!                               +--------+ or refused             +--------+
//! ```
//!
//! S2 and S3 are left before `handle` returns; they are states so that "every action leads back to S1" is a fact of
//! one table instead of a habit of the code.

use linkbraid_wire::Kind;
use serde::{Deserialize, Serialize};

#[cfg(test)]
mod tests;

/// Where the protocol stands.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Serialize, Deserialize)]
pub enum State {
    /// Not running: nothing is sent, nothing learned.
    S0,
    /// Running.
    S1,
    /// A BROADCAST has come: making the sender's entry.
    S2,
    /// A REPLY, CHANGE or CLEAR has come: updating the table.
    S3,
}

impl State {
    /// All four.
    pub const ALL: [State; 4] = [State::S0, State::S1, State::S2, State::S3];
}

impl std::fmt::Display for State {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        std::fmt::Debug::fmt(self, f)
    }
}

/// A signal to a state.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum Signal {
    /// Join.
    Start,
    /// Leave.
    Stop,
    /// The own mapping is another one.
    OwnChange,
    /// A deadline may have passed.
    Timeout,
    /// A message of a foreign host.
    Received(Kind),
    /// The table took the message.
    Done,
    /// The table refused the message.
    Refused,
}

impl Signal {
    /// All of them.
    pub const ALL: [Signal; 10] = [
        Signal::Start,
        Signal::Stop,
        Signal::OwnChange,
        Signal::Timeout,
        Signal::Received(Kind::Broadcast),
        Signal::Received(Kind::Reply),
        Signal::Received(Kind::Change),
        Signal::Received(Kind::Clear),
        Signal::Done,
        Signal::Refused,
    ];
}

/// What to do on the way.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum Effect {
    /// Nothing.
    Nothing,
    /// The message came at a time when it means nothing.
    Ignore,
    /// Broadcast BROADCAST, a few times.
    Join,
    /// Broadcast CHANGE, a few times.
    Announce,
    /// Broadcast CLEAR and forget the table.
    Leave,
    /// Do what is due.
    RunTimers,
    /// Make the sender's entry.
    MakeEntry,
    /// Update or delete the sender's entry.
    UpdateTable,
    /// Send the sender a REPLY.
    Reply,
}

/// One step: pure, total.
pub const fn step(state: State, signal: Signal) -> (State, Effect) {
    use Effect as E;
    use Signal as I;
    use State::{S0, S1, S2, S3};
    //= docs/arp-plus.md#4.1
    match (state, signal) {
        (S0, I::Start) => (S1, E::Join),
        (S0, I::Received(_)) => (S0, E::Ignore),
        (S0, I::Stop | I::OwnChange | I::Timeout | I::Done | I::Refused) => (S0, E::Nothing),

        (S1, I::Stop) => (S0, E::Leave),
        (S1, I::OwnChange) => (S1, E::Announce),
        (S1, I::Timeout) => (S1, E::RunTimers),
        (S1, I::Received(Kind::Broadcast)) => (S2, E::MakeEntry),
        (S1, I::Received(Kind::Reply | Kind::Change | Kind::Clear)) => (S3, E::UpdateTable),
        (S1, I::Start | I::Done | I::Refused) => (S1, E::Nothing),

        (S2, I::Done) => (S1, E::Reply),
        (S2, I::Refused) => (S1, E::Nothing),
        (S2, I::Received(_)) => (S2, E::Ignore),
        (S2, I::Start | I::Stop | I::OwnChange | I::Timeout) => (S2, E::Nothing),

        (S3, I::Done | I::Refused) => (S1, E::Nothing),
        (S3, I::Received(_)) => (S3, E::Ignore),
        (S3, I::Start | I::Stop | I::OwnChange | I::Timeout) => (S3, E::Nothing),
    }
}
