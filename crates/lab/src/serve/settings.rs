//! What servers are told: settings in files of their own, nothing from the machine's.

/// Where samba keeps what it writes.
pub(super) const SAMBA_FOLDERS: [&str; 6] =
    ["private dir", "lock directory", "state directory", "cache directory", "pid directory", "ncalrpc dir"];
/// Where vsftpd locks itself up before anybody has logged in.
pub(super) const VSFTPD_EMPTY: &str = "empty";
/// What clients call the folder.
pub(super) const SHARE: &str = "content";

/// nginx.conf; paths are below the folder that `-p` names.
pub(super) fn nginx(address: &str, port: u16, content: &str) -> String {
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
         server {{ listen {address}:{port}; root {content}; }}\n\
         }}\n"
    )
}

/// vsftpd.conf(5): anybody may read. It acts as a user that every Debian has and whose home exists, and its processes
/// stay in the lab's namespace.
pub(super) fn vsftpd(address: &str, port: u16, folder: &str, content: &str) -> String {
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
         anon_root={content}\n\
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
pub(super) fn samba(address: &str, port: u16, folder: &str, content: &str) -> String {
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
         [{SHARE}]\n\
         path = {content}\n\
         guest ok = yes\n\
         read only = yes\n"
    )
}

/// ganesha.conf(8): anybody may read, by NFS 4 alone, which needs no port mapper.
pub(super) fn ganesha(address: &str, port: u16, folder: &str, content: &str) -> String {
    format!(
        "NFS_CORE_PARAM {{ Protocols = 4; NFS_Port = {port}; Bind_addr = {address}; Enable_NLM = false; Enable_RQUOTA = false; }}\n\
         NFSV4 {{ RecoveryBackend = fs_ng; RecoveryRoot = {folder}; Graceless = true; }}\n\
         NFS_KRB5 {{ Active_krb5 = false; CCacheDir = {folder}; }}\n\
         EXPORT {{\n\
         Export_Id = 1;\n\
         Path = {content};\n\
         Pseudo = /{SHARE};\n\
         Access_Type = RO;\n\
         Squash = No_Root_Squash;\n\
         SecType = sys, none;\n\
         FSAL {{ Name = VFS; }}\n\
         }}\n"
    )
}
