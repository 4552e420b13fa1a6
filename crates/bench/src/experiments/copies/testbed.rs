//! Files on a disk, servers that have them, and programs that copy them.

use super::COPIES;
use crate::activity::Activity;
use crate::experiments::prelude::*;
use linkbraid_lab::{Running, serve::Service, tool};
use nix::mount::{MntFlags, MsFlags, mount, umount2};
use nix::sys::statfs::{TMPFS_MAGIC, statfs};
use std::fs;
use std::io::{self, Read};
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};

/// Where files are that must outlive a restart (FHS 5.15): on a disk, if the machine has one.
const DISK: &str = "/var/tmp";
/// Bytes that are written at once, each time through to the disk.
const BLOCK: &str = "4K";
const LISTEN_LIMIT: Duration = Duration::from_secs(10);
/// Seconds that a copy may take.
const COPY_LIMIT: u32 = 60;
const MB: usize = 1_000_000;

/// A folder with files of each size, which are in memory (`tmpfs`) so that no disk limits who serves them; it goes with the value.
pub(super) struct Testbed {
    folder: PathBuf,
}

pub(super) struct Copied {
    /// MB/s of all files, until the last is on the disk.
    pub mbyte: f64,
    pub cpu_share: f64,
    pub typed: String,
}

/// A server under way in a lab, and the host that copies from it.
pub(super) struct Server<'a> {
    service: Service,
    server: Host<'a>,
    client: Host<'a>,
    /// What the server keeps.
    folder: PathBuf,
    _process: Running,
}

impl Testbed {
    /// Writes eight files of each size, all of them different.
    ///
    /// # Errors
    /// The folder is not on a disk, or no `tmpfs` can be mounted in it.
    pub fn make(sizes: &[usize]) -> Result<Self, Error> {
        let disk = Path::new(DISK);
        let fail = |e: &dyn std::fmt::Display| Error::new(DISK, "cannot make files", e.to_string());
        if statfs(disk).map_err(|e| fail(&e))?.filesystem_type() == TMPFS_MAGIC {
            return Err(Error::new(
                DISK,
                "cannot time copies",
                "it is in memory (tmpfs), and copies go to a disk",
            ));
        }
        let testbed = Self { folder: disk.join(format!("linkbraid-copies-{}", std::process::id())) };
        let files = testbed.folder.join("files");
        fs::create_dir_all(&files).map_err(|e| fail(&e))?;
        mount(Some("tmpfs"), &files, Some("tmpfs"), MsFlags::empty(), None::<&str>).map_err(|e| fail(&e))?;
        let mut random = fs::File::open("/dev/urandom").map_err(|e| fail(&e))?;
        for size in sizes {
            for copy in 0..COPIES {
                let mut content = vec![0; size * MB];
                let written = random
                    .read_exact(&mut content)
                    .and_then(|()| fs::write(testbed.source(*size, copy), &content));
                written.map_err(|e| fail(&e))?;
            }
        }
        Ok(testbed)
    }

    pub fn place(&self) -> String {
        let kind = Command::new("stat").args(["-f", "-c", "%T", DISK]).output();
        let kind = kind.map(|output| String::from_utf8_lossy(&output.stdout).trim().to_owned());
        format!("{DISK} ({})", kind.unwrap_or_default())
    }

    pub fn commands(&self) -> Vec<String> {
        vec![
            format!("a# nginx, smbd or ganesha.nfsd, with the files of {}", self.folder.display()),
            format!("a# {} (local)", local(Path::new("FILE"), Path::new("COPY"))),
            format!("b# {} (remote)", written("CLIENT", Path::new("COPY"))),
        ]
    }

    fn source(&self, size: usize, copy: usize) -> PathBuf {
        self.folder.join("files").join(name(size, copy))
    }

    /// Starts a server on the first host of a lab; the second one will copy from it.
    pub fn serve<'a>(&self, bed: &'a Bed, service: Service) -> Result<Server<'a>, Error> {
        let (server, client) = (bed.host("a")?, bed.host("b")?);
        let folder = self.folder.join(format!("{}-{service:?}", bed.name()));
        let command = fs::create_dir_all(&folder)
            .and_then(|()| service.server(server, &folder, &self.folder.join("files")))
            .map_err(|e| Error::new(folder.display().to_string(), "cannot write", e.to_string()))?;
        let log = |error: Error| {
            let log = fs::read_to_string(folder.join("log")).unwrap_or_default();
            Error { cause: format!("{}; {}", error.cause, log.trim().replace('\n', "; ")), ..error }
        };
        let process =
            Running::serve(command, LISTEN_LIMIT, || server.listens(service.port())).map_err(log)?;
        Ok(Server { service, server, client, folder, _process: process })
    }

    /// Copies eight files at once, the last `remote_copies` of them by the other host.
    pub fn copy(&self, at: &Server<'_>, size: usize, remote_copies: usize) -> Result<Copied, Error> {
        let commands = (0..COPIES).map(|copy| {
            let target = self.target(copy);
            if copy < COPIES - remote_copies {
                (at.server.command("sh"), local(&self.source(size, copy), &target))
            } else {
                let words = at.service.client(at.server.ipv4(), &at.folder, &name(size, copy), None);
                (
                    at.client.command("sh"),
                    written(&words.iter().map(quoted).collect::<Vec<_>>().join(" "), &target),
                )
            }
        });
        self.time(size, commands.collect())
    }

    /// The same with all of them on this machine, without a lab.
    pub fn copy_here(&self, size: usize) -> Result<f64, Error> {
        let commands =
            (0..COPIES).map(|copy| (Command::new("sh"), local(&self.source(size, copy), &self.target(copy))));
        Ok(self.time(size, commands.collect())?.mbyte)
    }

    fn target(&self, copy: usize) -> PathBuf {
        self.folder.join(format!("copy-{copy}"))
    }

    fn time(&self, size: usize, commands: Vec<(Command, String)>) -> Result<Copied, Error> {
        for copy in 0..COPIES {
            // One of the last round.
            let _ = fs::remove_file(self.target(copy));
        }
        let typed = commands.last().map(|(_, line)| line.clone()).unwrap_or_default();
        let (before, begin) = (Activity::now()?, Instant::now());
        let mut running = Vec::new();
        for (mut command, line) in commands {
            command.arg("-c").arg(&line).stdin(Stdio::null()).stdout(Stdio::null()).stderr(Stdio::null());
            running.push(Running::start(command)?);
        }
        for copy in &mut running {
            // A client has a limit, and dd ends with what it reads.
            let status = copy.wait()?;
            if !status.success() {
                return Err(Error::new("copies", format!("'{}' failed", copy.words()), status.to_string()));
            }
        }
        let (took, cpu) = (begin.elapsed(), Activity::now()?.since(&before));
        for copy in 0..COPIES {
            if !same(&self.source(size, copy), &self.target(copy)).unwrap_or(false) {
                return Err(Error::new("copies", format!("copy {copy}"), "it is not what was copied"));
            }
        }
        let mbyte = (COPIES * size * MB) as f64 / 1e6 / took.as_secs_f64();
        Ok(Copied { mbyte, cpu_share: cpu.share, typed })
    }
}

impl Drop for Testbed {
    fn drop(&mut self) {
        // Nothing else is in it; without the mount there is nothing to unmount.
        let _ = umount2(&self.folder.join("files"), MntFlags::MNT_DETACH);
        let _ = fs::remove_dir_all(&self.folder);
    }
}

fn name(size: usize, copy: usize) -> String {
    format!("{size}MB-{copy}")
}

/// A copy on one host: each block is on the disk before the next one is read.
fn local(source: &Path, target: &Path) -> String {
    format!("exec dd if={} of={} bs={BLOCK} oflag=dsync", source.display(), target.display())
}

/// A copy from another host, by a client that prints it, written alike.
fn written(client: &str, target: &Path) -> String {
    format!(
        "timeout {COPY_LIMIT} {client} | dd of={} bs={BLOCK} iflag=fullblock oflag=dsync",
        target.display()
    )
}

/// A word as a shell reads it. None of a client's has a quotation mark.
fn quoted(word: impl AsRef<str>) -> String {
    format!("'{}'", word.as_ref())
}

/// Whether what serves, and its client, are installed.
pub(super) fn installed(service: Service) -> Result<(), Error> {
    for (program, package) in service.programs() {
        tool::require(&[program]).map_err(|error| error.hint(format!("apt-get install {package}")))?;
    }
    Ok(())
}

fn same(one: &Path, other: &Path) -> io::Result<bool> {
    Ok(fs::read(one)? == fs::read(other)?)
}
