//! How each server and each client is told what to do: settings in files of the test, nothing from the machine's own.

use super::{CONTENT, FILE, Service};
use linkbraid_lab::Host;
use std::{fs, path::Path, process::Command};

/// The file with a server's settings.
const SETTINGS: &str = "settings";
/// Where samba keeps what it writes.
const SAMBA_FOLDERS: [&str; 6] =
    ["private dir", "lock directory", "state directory", "cache directory", "pid directory", "ncalrpc dir"];
/// Where vsftpd locks itself up before anybody has logged in.
const VSFTPD_EMPTY: &str = "empty";

/// The command of a server in the foreground, with its settings and the folders it wants made in `folder`.
#[track_caller]
pub(super) fn server(service: Service, host: Host<'_>, folder: &Path) -> Command {
    let (address, port) = (host.ipv4(), service.port());
    let settings = folder.join(SETTINGS);
    let make = |name: &str| fs::create_dir(folder.join(name)).expect("makes a folder");
    let (text, mut command);
    match service {
        Service::Ftp => {
            make(VSFTPD_EMPTY);
            text = vsftpd(address, port, folder);
            command = host.command("vsftpd");
            command.arg(&settings);
        }
        Service::Http => {
            text = nginx(address, port);
            command = host.command("nginx");
            command.arg("-c").arg(&settings).arg("-p").arg(folder).args(["-e", "log", "-g", "daemon off;"]);
        }
        Service::Smb => {
            SAMBA_FOLDERS.iter().for_each(|name| make(&name.replace(' ', "-")));
            text = samba(address, port, folder);
            command = host.command("smbd");
            command.args(["--foreground", "--no-process-group"]);
            command.arg(format!("--configfile={}", settings.display()));
            command.arg(format!("--log-basename={}", folder.display()));
        }
        Service::Nfs => {
            text = ganesha(address, port, folder);
            command = host.command("ganesha.nfsd");
            command.arg("-F").arg("-f").arg(&settings).arg("-L").arg(folder.join("log"));
            command.arg("-p").arg(folder.join("pid"));
            // It would ask the machine's bus for a name.
            command.env("DBUS_SYSTEM_BUS_ADDRESS", "unix:path=/nowhere");
        }
    }
    fs::write(&settings, text).expect("writes");
    command
}

/// The command of a client on `host` that fetches the file from `server` into `target`, in the server's folder.
pub(super) fn client(service: Service, server: Host<'_>, host: Host<'_>, target: &Path) -> Command {
    let (address, port) = (server.ipv4(), service.port());
    let scheme = match service {
        Service::Ftp => "ftp",
        Service::Http => "http",
        Service::Smb => {
            let mut command = host.command("smbclient");
            command.arg(format!("//{address}/{CONTENT}")).args(["-p", &port.to_string(), "--no-pass"]);
            // What it keeps goes into the server's folders, not into the machine's.
            command.arg(format!("--configfile={}", target.with_file_name(SETTINGS).display()));
            command.args(["-c", &format!("get {FILE} {}", target.display())]);
            return command;
        }
        Service::Nfs => {
            let mut command = host.command("nfs-cp");
            command.arg(format!("nfs://{address}/{CONTENT}/{FILE}?nfsport={port}&version=4")).arg(target);
            return command;
        }
    };
    let mut command = host.command("curl");
    // `--disable` must come first: the user's own settings are not read.
    command.args(["--disable", "--noproxy", "*", "--silent", "--show-error", "--fail", "--output"]);
    command.arg(target).arg(format!("{scheme}://{address}:{port}/{FILE}"));
    command
}

/// nginx.conf; paths are below the folder that `-p` names.
fn nginx(address: &str, port: u16) -> String {
    let temporary = ["client_body", "proxy", "fastcgi", "uwsgi", "scgi"];
    let temporary: String = temporary.iter().map(|name| format!("{name}_temp_path {name};\n")).collect();
    format!(
        "user root;\n\
         worker_processes 1;\n\
         pid pid;\n\
         events {{}}\n\
         http {{\n\
         {temporary}\
         access_log off;\n\
         sendfile on;\n\
         server {{ listen {address}:{port}; root {CONTENT}; }}\n\
         }}\n"
    )
}

/// vsftpd.conf(5): anybody may read. It acts as a user that every Debian has and whose home exists, and its processes
/// stay in the lab's namespace.
fn vsftpd(address: &str, port: u16, folder: &Path) -> String {
    let folder = folder.display();
    format!(
        "listen=YES\n\
         background=NO\n\
         listen_address={address}\n\
         listen_port={port}\n\
         connect_from_port_20=NO\n\
         local_enable=NO\n\
         anonymous_enable=YES\n\
         no_anon_password=YES\n\
         ftp_username=daemon\n\
         anon_root={folder}/{CONTENT}\n\
         secure_chroot_dir={folder}/{VSFTPD_EMPTY}\n\
         xferlog_enable=YES\n\
         vsftpd_log_file={folder}/log\n\
         isolate=NO\n\
         isolate_network=NO\n\
         seccomp_sandbox=NO\n"
    )
}

/// smb.conf(5): a guest may read. In answers of 64 KiB, not 8 MiB, and one after the other: the client writes whole
/// answers in their order, and what waits for its turn is no progress that can be seen.
fn samba(address: &str, port: u16, folder: &Path) -> String {
    let folder = folder.display();
    let own = SAMBA_FOLDERS.iter().map(|name| format!("{name} = {folder}/{}\n", name.replace(' ', "-")));
    let own: String = own.collect();
    format!(
        "[global]\n\
         server role = standalone server\n\
         interfaces = {address}/32\n\
         bind interfaces only = yes\n\
         smb ports = {port}\n\
         smb2 max read = 65536\n\
         aio read size = 0\n\
         disable netbios = yes\n\
         disable spoolss = yes\n\
         load printers = no\n\
         printing = bsd\n\
         printcap name = /dev/null\n\
         map to guest = bad user\n\
         guest account = nobody\n\
         {own}\
         [{CONTENT}]\n\
         path = {folder}/{CONTENT}\n\
         guest ok = yes\n\
         read only = yes\n"
    )
}

/// ganesha.conf(8): anybody may read, by NFS 4 alone, which needs no port mapper.
fn ganesha(address: &str, port: u16, folder: &Path) -> String {
    let folder = folder.display();
    format!(
        "NFS_CORE_PARAM {{ Protocols = 4; NFS_Port = {port}; Bind_addr = {address}; Enable_NLM = false; Enable_RQUOTA = false; }}\n\
         NFSV4 {{ RecoveryBackend = fs_ng; RecoveryRoot = {folder}; Graceless = true; }}\n\
         NFS_KRB5 {{ Active_krb5 = false; CCacheDir = {folder}; }}\n\
         EXPORT {{\n\
         Export_Id = 1;\n\
         Path = {folder}/{CONTENT};\n\
         Pseudo = /{CONTENT};\n\
         Access_Type = RO;\n\
         Squash = No_Root_Squash;\n\
         SecType = sys, none;\n\
         FSAL {{ Name = VFS; }}\n\
         }}\n"
    )
}
