//! The machine: kernel, rights, BPF, and settings that concern every bond.

use super::findings::Report;
use crate::io::{manager::Roots, programs::can_restart};
use linkbraid_api::Severity;
use std::{fs, io::ErrorKind};

/// The oldest kernel that is tested.
const KERNEL_MIN: (u32, u32) = (6, 1);
/// Bits of capabilities (linux/capability.h).
const NET_ADMIN: u32 = 12;
const NET_RAW: u32 = 13;
const SYS_ADMIN: u32 = 21;
const PERFMON: u32 = 38;
const BPF: u32 = 39;
/// Switches of `br_netfilter`: of IPv4, of IPv6.
pub(in crate::operations) const FILTERS: [&str; 2] = ["bridge-nf-call-iptables", "bridge-nf-call-ip6tables"];

/// Why the data path does not work here.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct Missing {
    /// What is missing: `bridge`, `bpf`, `hook`, or `trial` where that could not be found out.
    pub name: &'static str,
    pub text: String,
    pub hint: Option<String>,
}

/// The machine.
#[derive(Debug, Clone)]
pub(super) struct Machine {
    /// As `uname -r` says it.
    pub release: String,
    /// Effective capabilities of this process, one a bit.
    pub capabilities: u64,
    /// A later daemon can take the data path over, or why not.
    pub restart: Result<(), Missing>,
    /// What of a bond works here, in words, or why it does not.
    pub works: Result<String, Missing>,
    /// Fabrics can have interfaces, or why not.
    pub tun: Result<(), Missing>,
    /// Which switches of `br_netfilter` are on.
    pub filters: Vec<&'static str>,
    /// How many processors work.
    pub processors: usize,
    /// The command that starts a daemon, where none runs.
    pub start: Option<String>,
}

impl Machine {
    /// Looks at the machine.
    pub(super) fn look(roots: &Roots, works: Result<String, Missing>, start: Option<String>) -> Self {
        let release = nix::sys::utsname::uname()
            .map(|name| name.release().to_string_lossy().into_owned())
            .unwrap_or_default();
        Self {
            release,
            capabilities: capabilities(roots),
            restart: can_restart().map_err(|error| Missing {
                name: "restart",
                text: format!("{}: {}", error.what, error.cause),
                hint: error.hint,
            }),
            works,
            tun: tun(roots),
            filters: filters(roots),
            processors: std::thread::available_parallelism().map_or(1, std::num::NonZero::get),
            start,
        }
    }

    pub(super) fn report(&self) -> Report {
        let mut report = Report::new("this machine", "machine");
        match version(&self.release) {
            Some(version) if version < KERNEL_MIN => report.warn(
                "kernel",
                format!("Linux {} is older than 6.1, the oldest that is tested", self.release),
                "uname -r",
            ),
            _ => report.fine(format!("Linux {}", self.release)),
        }
        let missing = self.missing();
        match missing.is_empty() {
            true => report.fine("all rights"),
            false => {
                let (who, hint) = match &self.start {
                    None => ("the daemon", "sudo linkbraid daemon"),
                    Some(_) => ("this command", "sudo linkbraid check"),
                };
                let text = format!("{who} does not have {}", missing.join(" and "));
                report.error("capabilities", text, hint);
            }
        }
        if let Some(start) = &self.start {
            report.warn("daemon", "no daemon runs; this was checked without one", start);
        }
        match &self.works {
            Ok(words) => report.fine(words),
            Err(missing) => {
                let severity = if missing.name == "trial" { Severity::Warning } else { Severity::Error };
                report.add(severity, missing.name, missing.text.clone(), missing.hint.clone());
            }
        }
        match &self.restart {
            Ok(()) => report.fine("restarts without loss"),
            Err(missing) => {
                report.add(Severity::Warning, missing.name, missing.text.clone(), missing.hint.clone())
            }
        }
        match &self.tun {
            Ok(()) => report.fine("TAP devices"),
            // A bond of NICs does without.
            Err(missing) => {
                report.add(Severity::Warning, missing.name, missing.text.clone(), missing.hint.clone())
            }
        }
        if !self.filters.is_empty() {
            let off = self.filters.iter().map(|name| format!("net.bridge.{name}=0")).collect::<Vec<_>>();
            report.warn(
                "bridge_netfilter",
                format!(
                    "{} {} on: traffic of a bond passes iptables twice, which costs CPU; \
                     some container networks need it",
                    self.filters.join(" and "),
                    if self.filters.len() > 1 { "are" } else { "is" }
                ),
                format!("sysctl -w {}", off.join(" ")),
            );
        }
        report
    }

    /// The capabilities that are missing.
    fn missing(&self) -> Vec<&'static str> {
        let has = |bit: u32| self.capabilities >> bit & 1 == 1;
        // CAP_SYS_ADMIN holds what became CAP_BPF and CAP_PERFMON.
        let needs = [
            (has(NET_ADMIN), "CAP_NET_ADMIN"),
            (has(NET_RAW), "CAP_NET_RAW"),
            (has(BPF) || has(SYS_ADMIN), "CAP_BPF"),
            (has(PERFMON) || has(SYS_ADMIN), "CAP_PERFMON"),
        ];
        needs.iter().filter(|(has, _)| !has).map(|(_, name)| *name).collect()
    }
}

/// Which of [`FILTERS`] are on.
pub(in crate::operations) fn filters(roots: &Roots) -> Vec<&'static str> {
    let is_on = |name: &&str| {
        fs::read_to_string(roots.proc.join("sys/net/bridge").join(name)).is_ok_and(|text| text.trim() != "0")
    };
    FILTERS.into_iter().filter(is_on).collect()
}

/// Major and minor number of a release such as `6.1.0-56-amd64`.
fn version(release: &str) -> Option<(u32, u32)> {
    let mut numbers = release.split(|c: char| !c.is_ascii_digit());
    Some((numbers.next()?.parse().ok()?, numbers.next()?.parse().ok()?))
}

/// Whether the device that makes the interfaces of fabrics can be opened.
fn tun(roots: &Roots) -> Result<(), Missing> {
    let path = roots.dev.join("net/tun");
    let Err(error) = fs::OpenOptions::new().read(true).write(true).open(&path) else { return Ok(()) };
    let (cause, hint) = match error.kind() {
        ErrorKind::NotFound => ("it does not exist".to_owned(), "modprobe tun".to_owned()),
        ErrorKind::PermissionDenied => ("no permission".to_owned(), format!("ls -l {}", path.display())),
        // A device file whose driver is not there.
        _ => (error.to_string(), "modprobe tun".to_owned()),
    };
    let text = format!("cannot open {}: {cause}; fabrics need it", path.display());
    Err(Missing { name: "tun", text, hint: Some(hint) })
}

fn capabilities(roots: &Roots) -> u64 {
    let status = fs::read_to_string(roots.proc.join("thread-self/status")).unwrap_or_default();
    let line = status.lines().find_map(|line| line.strip_prefix("CapEff:"));
    line.and_then(|text| u64::from_str_radix(text.trim(), 16).ok()).unwrap_or(0)
}

#[cfg(test)]
mod tests;
