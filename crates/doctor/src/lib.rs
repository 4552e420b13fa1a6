//! Why a bond carries less than its links together.
//!
//! Two hosts take part: one that asks ([`examine`]) and one whose administrator agreed to answer ([`answer`]). Over a TCP
//! connection through the bond they tell each other what each is ([`Side`]), send frames over one lane at a time, and then
//! TCP over all of them. What that says is decided by [`diagnose`] alone, which touches nothing.
//!
//! | module | what it does |
//! |---|---|
//! | `side` | what one host knows of itself |
//! | `burst` | frames over one lane, counted where they arrive |
//! | `flow` | TCP, and what the kernel says kept it back |
//! | `load` | processors |
//! | `talk` | messages between the two |
//! | `ask`, `answer` | the two ends |
//! | `verdict` | from figures to causes |

mod answer;
mod ask;
mod burst;
mod flow;
pub mod limits;
mod load;
mod side;
mod socket;
mod talk;
mod verdict;

pub use answer::{Describe, answer};
pub use ask::examine;
pub use burst::{Heard, Sent};
pub use flow::Sender;
pub use load::Load;
pub use side::{Lane, Member, Side};
pub use verdict::{Cause, Code, Diagnosis, Direction, Examination, FlowTest, LaneTest, Watched, diagnose};
