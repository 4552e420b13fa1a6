//! Real servers on a host of a lab, as children of the test, and downloads from them.
//!
//! A server has one file to give away. Its settings, its content, what it writes by itself and what clients fetch lie
//! in a folder of its own, which goes with it. Nothing of the machine's own servers is read or touched.

mod download;
mod scratch;

pub use download::Download;
pub use linkbraid_lab::serve::Service;
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
        let content = scratch.path().join(CONTENT);
        fs::create_dir(&content).expect("makes a folder");
        let file = content.join(FILE);
        let mut random = File::open("/dev/urandom").expect("opens").take(bytes);
        std::io::copy(&mut random, &mut File::create(&file).expect("makes a file")).expect("fills it");
        let digest = digest(&file);
        let mut command = service.server(host, scratch.path(), &content).expect("makes its settings");
        let log = File::create(scratch.path().join("output")).expect("makes a file");
        command.stdin(Stdio::null()).stdout(log.try_clone().expect("an open file")).stderr(log);
        let [(_, package), _] = service.programs();
        let mut process = start(command, package);
        let listening = wait_for(SOON, &format!("{package} to listen"), || match process.ended() {
            Some(status) => Ok(Err(status)),
            None if host.listens(service.port()) => Ok(Ok(())),
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
                eprintln!("--- '{name}' of {:?}\n{text}", self.service);
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
