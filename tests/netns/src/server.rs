//! Real servers on a host of a lab, as children of the test, and downloads from them.
//!
//! A server has one file to give away. Its settings, its content, what it writes by itself and what clients fetch lie
//! in a folder of its own, which goes with it. Nothing of the machine's own servers is read or touched.

mod download;
mod scratch;
mod settings;

pub use download::Download;
pub use scratch::Scratch;

use crate::{Net, SOON};
use linkbraid_lab::{Host, Running, tool, wait_for};
use std::{
    fs::{self, File},
    io::Read,
    path::{Path, PathBuf},
    process::{Command, Stdio},
};

/// The folder that clients see.
const CONTENT: &str = "content";
/// The one file in it.
const FILE: &str = "file";

/// What a server speaks.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Service {
    /// FTP, by vsftpd.
    Ftp,
    /// HTTP, by nginx.
    Http,
    /// SMB, by samba.
    Smb,
    /// NFS 4, by nfs-ganesha, which like its client does without the kernel's NFS.
    Nfs,
}

/// A server that runs. Dropping it ends it and removes its files, also while panicking; then its log is printed first.
pub struct Server<'net> {
    service: Service,
    host: Host<'net>,
    bytes: u64,
    digest: String,
    // In this order: nothing writes into the folder any more when it is removed.
    process: Running,
    scratch: Scratch,
}

impl Service {
    /// Where it listens: no privileged port, and every lab host has its ports for itself.
    fn port(self) -> u16 {
        match self {
            Self::Ftp => 2121,
            Self::Http => 8080,
            Self::Smb => 4450,
            Self::Nfs => 20490,
        }
    }

    /// The Debian package of its client.
    fn client_package(self) -> &'static str {
        match self {
            Self::Ftp | Self::Http => "curl",
            Self::Smb => "smbclient",
            Self::Nfs => "libnfs-utils",
        }
    }

    /// Its Debian package.
    fn package(self) -> &'static str {
        match self {
            Self::Ftp => "vsftpd",
            Self::Http => "nginx",
            Self::Smb => "samba",
            Self::Nfs => "nfs-ganesha",
        }
    }
}

impl<'net> Server<'net> {
    /// Starts a server on a host, bound to the host's IPv4 address, with a file of `bytes` random bytes, and waits
    /// until it listens.
    ///
    /// # Panics
    /// When its program is missing or does not start.
    #[track_caller]
    pub fn start(net: &'net Net, name: &str, service: Service, bytes: u64) -> Self {
        let host = net.host(name);
        let scratch = Scratch::new();
        fs::create_dir(scratch.path().join(CONTENT)).expect("makes a folder");
        let file = scratch.path().join(CONTENT).join(FILE);
        let mut random = File::open("/dev/urandom").expect("opens").take(bytes);
        std::io::copy(&mut random, &mut File::create(&file).expect("makes a file")).expect("fills it");
        let digest = digest(&file);
        let mut command = settings::server(service, host, scratch.path());
        let log = File::create(scratch.path().join("output")).expect("makes a file");
        command.stdin(Stdio::null()).stdout(log.try_clone().expect("an open file")).stderr(log);
        let mut process = start(command, service.package());
        let listening =
            wait_for(SOON, &format!("{} to listen", service.package()), || match process.ended() {
                Some(status) => Ok(Err(status)),
                None if listens(host, service.port()) => Ok(Ok(())),
                None => Err("it does not listen yet"),
            });
        let server = Self { service, host, bytes, digest, process, scratch };
        if let Err(status) = listening.unwrap_or_else(|e| panic!("{e}")) {
            panic!("'{}' ended: {status}", server.process.words());
        }
        server
    }

    /// The client of a host begins to fetch the file into one of its own.
    #[track_caller]
    pub fn download(&self, net: &'net Net, name: &str) -> Download<'_> {
        Download::start(self, net.host(name))
    }

    /// Where a client puts what it fetches.
    fn target(&self) -> PathBuf {
        self.scratch.path().join("fetched")
    }
}

impl Drop for Server<'_> {
    fn drop(&mut self) {
        if !std::thread::panicking() {
            return;
        }
        // Not every server writes each of them.
        for name in ["output", "log", "log.smbd", "client"] {
            if let Ok(text) = fs::read_to_string(self.scratch.path().join(name)) {
                eprintln!("--- '{name}' of {}\n{text}", self.service.package());
            }
        }
    }
}

/// Starts a program of a Debian package.
#[track_caller]
fn start(command: Command, package: &str) -> Running {
    match Running::start(command) {
        Ok(running) => running,
        // Not apt-get itself: it would start the service on this machine.
        Err(error) => panic!("{error}; it is in the package '{package}'; hint: scripts/deps.sh test"),
    }
}

/// The SHA-256 of a file, by coreutils.
#[track_caller]
fn digest(file: &Path) -> String {
    let said = tool::run(Command::new("sha256sum").arg(file)).unwrap_or_else(|e| panic!("{e}"));
    let digest = said.split_whitespace().next().unwrap_or_default();
    assert_eq!(digest.len(), 64, "{said}");
    digest.to_owned()
}

/// Whether a TCP socket of the host listens on `port`: state 0A in `/proc/net/tcp`, or in `tcp6`, where some have IPv4 addresses, too.
fn listens(host: Host<'_>, port: u16) -> bool {
    let wanted = format!(":{port:04X}");
    let text = ["tcp", "tcp6"].map(|table| host.proc_net(table).unwrap_or_default()).concat();
    text.lines().any(|line| {
        let mut words = line.split_whitespace().skip(1);
        words.next().is_some_and(|local| local.ends_with(&wanted)) && words.nth(1) == Some("0A")
    })
}
