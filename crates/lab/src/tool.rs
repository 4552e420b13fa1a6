//! Runs the programs that the lab needs, and says which Debian package a missing one is in.

use linkbraid_api::Error;
use std::io::Write;
use std::process::{Command, Output, Stdio};

/// What the lab and its users call, and the Debian package of each.
const PACKAGES: [(&str, &str); 10] = [
    ("ip", "iproute2"),
    ("tc", "iproute2"),
    ("bridge", "iproute2"),
    ("ethtool", "ethtool"),
    ("iperf3", "iperf3"),
    ("ping", "iputils-ping"),
    ("mptcpize", "mptcpize"),
    ("teamd", "libteam-utils"),
    ("NPtcp", "netpipe-tcp"),
    ("sockperf", "sockperf"),
];

/// The error for a program that cannot be started: names its package.
pub fn cannot_start(program: &str, error: &std::io::Error) -> Error {
    let package = PACKAGES.iter().find(|(name, _)| *name == program).map(|(_, package)| *package);
    let cannot = Error::new("lab", format!("cannot run '{program}'"), error.to_string());
    match (error.kind(), package) {
        (std::io::ErrorKind::NotFound, Some(package)) => cannot.hint(format!("apt-get install {package}")),
        _ => cannot,
    }
}

/// Refuses to go on without root or without a program of `programs`.
pub fn require(programs: &[&str]) -> Result<(), Error> {
    if !nix::unistd::Uid::effective().is_root() {
        let cause = "network namespaces need root";
        return Err(Error::new("lab", "cannot start", cause).hint("sudo linkbraid lab demo"));
    }
    let path = std::env::var_os("PATH").unwrap_or_default();
    for program in programs {
        if !std::env::split_paths(&path).any(|folder| folder.join(program).is_file()) {
            return Err(cannot_start(program, &std::io::Error::from(std::io::ErrorKind::NotFound)));
        }
    }
    Ok(())
}

/// Runs a command to its end; its standard output, or an error that ends in its own words.
pub fn run(command: &mut Command) -> Result<String, Error> {
    run_with(command, None)
}

/// The same, with `input` on its standard input.
pub fn run_with(command: &mut Command, input: Option<&str>) -> Result<String, Error> {
    let program = command.get_program().to_string_lossy().into_owned();
    command.stdin(if input.is_some() { Stdio::piped() } else { Stdio::null() });
    let mut child = command
        .stdout(Stdio::piped())
        .stderr(Stdio::piped())
        .spawn()
        .map_err(|error| cannot_start(&program, &error))?;
    if let (Some(mut pipe), Some(input)) = (child.stdin.take(), input) {
        // A child that ends early says why on its standard error; the broken pipe adds nothing.
        let _ = pipe.write_all(input.as_bytes());
    }
    let output = child.wait_with_output().map_err(|error| cannot_start(&program, &error))?;
    checked(&words(command), output)
}

/// A command's standard output if it succeeded.
pub fn checked(what: &str, output: Output) -> Result<String, Error> {
    if output.status.success() {
        return Ok(String::from_utf8_lossy(&output.stdout).into_owned());
    }
    let said = |bytes: &[u8]| String::from_utf8_lossy(bytes).trim().replace('\n', "; ");
    let (stderr, stdout) = (said(&output.stderr), said(&output.stdout));
    let cause =
        [stderr, stdout].into_iter().find(|s| !s.is_empty()).unwrap_or_else(|| output.status.to_string());
    Err(Error::new("lab", format!("'{what}' failed"), cause))
}

/// A command as it would be typed.
pub fn words(command: &Command) -> String {
    let mut text = command.get_program().to_string_lossy().into_owned();
    for word in command.get_args() {
        text.push(' ');
        text.push_str(&word.to_string_lossy());
    }
    text
}

/// Runs lines of `ip -batch` in a namespace.
pub fn ip_batch(namespace: &str, lines: &[String]) -> Result<(), Error> {
    batch("ip", namespace, lines)
}

/// Runs lines of `tc -batch` in a namespace.
pub fn tc_batch(namespace: &str, lines: &[String]) -> Result<(), Error> {
    batch("tc", namespace, lines)
}

fn batch(program: &str, namespace: &str, lines: &[String]) -> Result<(), Error> {
    if lines.is_empty() {
        return Ok(());
    }
    let text = lines.join("\n") + "\n";
    run_with(Command::new(program).args(["-n", namespace, "-batch", "-"]), Some(&text)).map(drop)
}
