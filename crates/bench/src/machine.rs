//! Where a result comes from: a number without its machine means nothing.

use linkbraid_lab::Host;
use linkbraid_lab::tool;
use procfs::{CpuInfo, Current, Meminfo};
use serde::{Deserialize, Serialize};
use std::collections::BTreeMap;
use std::process::Command;

/// Settings of the kernel that results depend on, below `/proc/sys`; one that a kernel has not is left out.
const SYSCTLS: [&str; 15] = [
    "net/ipv4/tcp_congestion_control",
    "net/ipv4/tcp_available_congestion_control",
    "net/ipv4/tcp_rmem",
    "net/ipv4/tcp_wmem",
    "net/ipv4/tcp_sack",
    "net/ipv4/tcp_timestamps",
    "net/ipv4/tcp_ecn",
    "net/ipv4/tcp_recovery",
    "net/ipv4/tcp_reordering",
    "net/ipv4/tcp_limit_output_bytes",
    "net/core/default_qdisc",
    "net/core/rmem_default",
    "net/core/wmem_default",
    "net/core/netdev_max_backlog",
    "net/core/netdev_budget",
];

/// What was measured on, and what was measured.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Machine {
    /// The CPU as it calls itself.
    pub cpu: String,
    /// CPUs that this process may use.
    pub cores: usize,
    /// Memory in MiB.
    pub memory_mib: u64,
    /// The kernel's release.
    pub kernel: String,
    /// The distribution.
    pub system: String,
    /// The version of linkbraid.
    pub linkbraid: String,
    /// The commit it was built from, with `+` after it if files had been changed; empty where that is not known.
    #[serde(default)]
    pub commit: String,
    /// How the linkbraid that was measured was compiled: `release` or `debug`.
    pub build: String,
    /// The version of iperf3.
    pub iperf3: String,
}

impl Machine {
    /// This machine. What cannot be found out is `unknown`.
    pub fn here() -> Self {
        let read = |path| std::fs::read_to_string(path).unwrap_or_default();
        let unknown = || "unknown".to_owned();
        let release = read("/etc/os-release");
        let system = release.lines().find_map(|line| line.strip_prefix("PRETTY_NAME="));
        let cpu = CpuInfo::current().ok().and_then(|info| info.model_name(0).map(ToOwned::to_owned));
        let iperf3 = tool::run(Command::new("iperf3").arg("--version")).unwrap_or_default();
        Self {
            cpu: cpu.unwrap_or_else(unknown),
            cores: std::thread::available_parallelism().map_or(1, usize::from),
            memory_mib: Meminfo::current().map_or(0, |memory| memory.mem_total >> 20),
            kernel: read("/proc/sys/kernel/osrelease").trim().to_owned(),
            system: system.map_or_else(unknown, |name| name.trim_matches('"').to_owned()),
            linkbraid: env!("CARGO_PKG_VERSION").to_owned(),
            commit: env!("LINKBRAID_COMMIT").to_owned(),
            build: if cfg!(debug_assertions) { "debug" } else { "release" }.to_owned(),
            iperf3: iperf3.split_whitespace().nth(1).map_or_else(unknown, ToOwned::to_owned),
        }
    }

    pub(crate) fn line(&self) -> String {
        let commit = if self.commit.is_empty() { "" } else { ", commit " };
        format!(
            "{}, {} cores, {} MiB, Linux {}, {}, iperf3 {}, linkbraid {} ({}{commit}{})",
            self.cpu,
            self.cores,
            self.memory_mib,
            self.kernel,
            self.system,
            self.iperf3,
            self.linkbraid,
            self.build,
            self.commit,
        )
    }
}

pub fn sysctls(host: Host<'_>) -> BTreeMap<String, String> {
    let read = |key: &str| {
        let text = std::fs::read_to_string(format!("/proc/sys/{key}")).ok()?;
        let words: Vec<&str> = text.split_whitespace().collect();
        Some((key.replace('/', "."), words.join(" ")))
    };
    host.run(|| SYSCTLS.iter().filter_map(|key| read(key)).collect()).unwrap_or_default()
}

#[cfg(test)]
mod tests;
