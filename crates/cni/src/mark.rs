//! The mark on what a container sends, by which its class is known: a rule of nftables where it comes in from the container's
//! interface. The table of each such interface has that interface's name in its own.

use crate::failure::{Code, Failure};
use std::{
    io::Write as _,
    process::{Command, Stdio},
};

const PREFIX: &str = "linkbraid-cni-";

/// Gives what comes in by `link` this mark, in place of what a former container of the same name had.
///
/// # Errors
/// nft is not there, or the kernel refuses.
pub fn set(link: &str, mark: u32) -> Result<(), Failure> {
    let table = format!("netdev {PREFIX}{link}");
    nft(&format!(
        "add table {table}\ndelete table {table}\ntable {table} {{\n chain in {{\n  type filter hook ingress device \"{link}\" \
         priority 0; policy accept;\n  meta mark set {mark:#x}\n }}\n}}\n"
    ))
    .map(drop)
}

/// Takes the mark away. One that is not there is fine, and without nft there is none.
pub fn remove(link: &str) {
    let table = format!("netdev {PREFIX}{link}");
    _ = nft(&format!("add table {table}\ndelete table {table}\n"));
}

/// Whether what comes in by `link` gets this mark.
pub fn is_set(link: &str, mark: u32) -> bool {
    let said = nft(&format!("list table netdev {PREFIX}{link}\n")).unwrap_or_default();
    said.lines().any(|line| line.trim() == format!("meta mark set {mark:#010x}"))
}

/// The interfaces that have one; none where nft is not there, because then nobody has made one.
pub fn all() -> Vec<String> {
    let said = nft("list tables netdev\n").unwrap_or_default();
    let names = said.lines().filter_map(|line| line.strip_prefix("table netdev ")?.strip_prefix(PREFIX));
    names.map(str::to_owned).collect()
}

fn nft(script: &str) -> Result<String, Failure> {
    let failed = |error: &dyn std::fmt::Display| {
        Failure::new(Code::Refused, "cannot mark what the container sends", error)
    };
    let mut command = Command::new("nft");
    command.args(["-f", "-"]).stdin(Stdio::piped()).stdout(Stdio::piped()).stderr(Stdio::piped());
    let mut child =
        command.spawn().map_err(|error| failed(&format!("nft: {error}")).hint("apt install nftables"))?;
    // Who does not read all of it says why.
    _ = child.stdin.take().map(|mut input| input.write_all(script.as_bytes()));
    let done = child.wait_with_output().map_err(|error| failed(&error))?;
    if done.status.success() {
        return Ok(String::from_utf8_lossy(&done.stdout).into_owned());
    }
    let said = String::from_utf8_lossy(&done.stderr);
    Err(failed(&said.lines().next().unwrap_or("nft says nothing")))
}
