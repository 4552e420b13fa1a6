//! What this kernel and this machine's programs have.

use super::system::{Kind, System};
use linkbraid_api::Error;
use linkbraid_lab::netns::{self, Netns};
use linkbraid_lab::tool;
use std::path::Path;

/// Measure here, whatever is missing: a guest does not boot a guest.
const HERE_ENV: &str = "LINKBRAID_BENCH_PEERS_HERE";
/// What is there with MPTCP.
const MPTCP: &str = "/proc/sys/net/mptcp/enabled";

#[derive(Debug, Default)]
pub(super) struct Missing {
    bond: Option<String>,
    team: Option<String>,
    mptcp: Option<String>,
    /// Why switches cannot be made to delay what they send.
    pub delay: Option<String>,
}

impl Missing {
    pub fn reason(&self, system: &System) -> Option<&str> {
        match system.kind {
            Kind::Linkbraid => None,
            Kind::Bond(_) | Kind::BondArp(_) => self.bond.as_deref(),
            Kind::Team(..) => self.team.as_deref(),
            Kind::Mptcp => self.mptcp.as_deref(),
        }
    }
}

/// What of the kernel's own this kernel is without, so that another one has to be booted; nothing where it has all that
/// matters, or is that other one.
pub(super) fn missing_in_kernel() -> Result<Option<String>, Error> {
    if std::env::var_os(HERE_ENV).is_some() {
        return Ok(None);
    }
    tool::require(&["ip"])?;
    let mut missing = Vec::new();
    if !Path::new(MPTCP).exists() {
        missing.push("MPTCP");
    }
    if device("bond").is_err() {
        missing.push("bonding");
    }
    Ok((!missing.is_empty()).then(|| missing.join(" and ")))
}

pub(super) fn missing_for_systems() -> Missing {
    let program = |name| tool::require(&[name]).err().map(|error| error.to_string());
    let kernel = |kind| device(kind).err().map(|error| format!("this kernel has no {kind} driver: {error}"));
    let no_mptcp = || (!Path::new(MPTCP).exists()).then(|| "this kernel has no MPTCP".to_owned());
    Missing {
        bond: kernel("bond"),
        team: program("teamd").or_else(|| kernel("team")),
        delay: netem()
            .err()
            .map(|error| format!("this kernel has no netem, so switches do not delay: {error}")),
        mptcp: no_mptcp().or_else(|| program("mptcpize")),
    }
}

fn device(kind: &str) -> Result<(), Error> {
    probe(kind, |name| tool::ip_batch(name, &[format!("link add probe0 type {kind}")]))
}

fn netem() -> Result<(), Error> {
    probe("netem", |name| tool::tc_batch(name, &["qdisc replace dev lo root netem delay 100us".into()]))
}

/// Tries something in a namespace of its own.
fn probe(what: &str, attempt: impl FnOnce(&str) -> Result<(), Error>) -> Result<(), Error> {
    let name = format!("lb-probe-{}-{what}", std::process::id());
    let made = Netns::create(&name).and_then(|_| attempt(&name));
    netns::remove(&name)?;
    made
}
