//! Real servers of files that a host of a lab can run, and their clients. Each has its settings, and what it writes by itself, in a folder
//! of its own. Nothing of the machine's own servers is read or touched.

mod settings;

use crate::Host;
use settings::{SAMBA_FOLDERS, SHARE, VSFTPD_EMPTY};
use std::{fs, io, path::Path, process::Command};

/// The file with a server's settings, in its folder.
const SETTINGS: &str = "settings";

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

impl Service {
    /// Where it listens: no privileged port, and every lab host has its ports for itself.
    pub fn port(self) -> u16 {
        match self {
            Self::Ftp => 2121,
            Self::Http => 8080,
            Self::Smb => 4450,
            Self::Nfs => 20490,
        }
    }

    /// The programs of its server and of its client, each with its Debian package.
    pub fn programs(self) -> [(&'static str, &'static str); 2] {
        match self {
            Self::Ftp => [("vsftpd", "vsftpd"), ("curl", "curl")],
            Self::Http => [("nginx", "nginx"), ("curl", "curl")],
            Self::Smb => [("smbd", "samba"), ("smbclient", "smbclient")],
            Self::Nfs => [("ganesha.nfsd", "nfs-ganesha"), ("nfs-cat", "libnfs-utils")],
        }
    }

    /// The command of a server in the foreground that lets anybody read the files of `content`, with its settings and the folders it
    /// wants made in `folder`. Both are absolute paths.
    ///
    /// # Errors
    /// These cannot be made.
    pub fn server(self, host: Host<'_>, folder: &Path, content: &Path) -> io::Result<Command> {
        let (address, port, settings) = (host.ipv4(), self.port(), folder.join(SETTINGS));
        let [at, files] = [folder, content].map(|path| path.display().to_string());
        let mut command = host.command(self.programs()[0].0);
        let text = match self {
            Self::Ftp => {
                fs::create_dir(folder.join(VSFTPD_EMPTY))?;
                command.arg(&settings);
                settings::vsftpd(address, port, &at, &files)
            }
            Self::Http => {
                command.arg("-c").arg(&settings).arg("-p").arg(folder).args([
                    "-e",
                    "log",
                    "-g",
                    "daemon off;",
                ]);
                settings::nginx(address, port, &files)
            }
            Self::Smb => {
                for name in SAMBA_FOLDERS {
                    fs::create_dir(folder.join(name.replace(' ', "-")))?;
                }
                command.args(["--foreground", "--no-process-group"]);
                command.arg(format!("--configfile={}", settings.display()));
                command.arg(format!("--log-basename={at}"));
                settings::samba(address, port, &at, &files)
            }
            Self::Nfs => {
                command.arg("-F").arg("-f").arg(&settings).arg("-L").arg(folder.join("log"));
                command.arg("-p").arg(folder.join("pid"));
                // It would ask the machine's bus for a name.
                command.env("DBUS_SYSTEM_BUS_ADDRESS", "unix:path=/nowhere");
                settings::ganesha(address, port, &at, &files)
            }
        };
        fs::write(&settings, text)?;
        Ok(command)
    }

    /// The words of a client that fetches `file` from the server at `address`, whose folder is `folder`, and writes it to `target` or, without
    /// one, to its standard output.
    pub fn client(self, address: &str, folder: &Path, file: &str, target: Option<&Path>) -> Vec<String> {
        let port = self.port();
        let target = target.map(|target| target.display().to_string());
        let curl = |scheme: &str| {
            // `--disable` must come first: the user's own settings are not read.
            let words =
                ["curl", "--disable", "--noproxy", "*", "--silent", "--show-error", "--fail", "--output"];
            let mut words = words.map(str::to_owned).to_vec();
            words.extend([
                target.clone().unwrap_or_else(|| "-".to_owned()),
                format!("{scheme}://{address}:{port}/{file}"),
            ]);
            words
        };
        match self {
            Self::Ftp => curl("ftp"),
            Self::Http => curl("http"),
            // What it keeps goes into the server's folders, not into the machine's.
            Self::Smb => vec![
                "smbclient".into(),
                format!("//{address}/{SHARE}"),
                "-p".into(),
                port.to_string(),
                "--no-pass".into(),
                format!("--configfile={}", folder.join(SETTINGS).display()),
                "-c".into(),
                format!("get {file} {}", target.as_deref().unwrap_or("-")),
            ],
            Self::Nfs => {
                let url = format!("nfs://{address}/{SHARE}/{file}?nfsport={port}&version=4");
                match target {
                    Some(target) => vec!["nfs-cp".into(), url, target],
                    None => vec!["nfs-cat".into(), url],
                }
            }
        }
    }
}
