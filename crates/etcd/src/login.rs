//! How etcd is to be reached: further servers, certificates, a name and a password, from a TOML file.

use etcd_client::{Certificate, ConnectOptions, Identity, TlsOptions};
use serde::Deserialize;
use std::{
    fs::{self, File},
    io::Read as _,
    os::unix::fs::MetadataExt as _,
    path::{Path, PathBuf},
    time::Duration,
};

/// How long a connection, and an answer, may take.
const ANSWER_MAX: Duration = Duration::from_secs(3);
/// How often a silent connection is tested.
const TEST: Duration = Duration::from_secs(2);

/// The file. All of it may be left out.
#[derive(Debug, Clone, Default, PartialEq, Eq, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Login {
    /// Further servers, `HOST:PORT`.
    #[serde(default)]
    pub servers: Vec<String>,
    user: Option<String>,
    password: Option<String>,
    /// Who signed the servers' certificates (PEM). With it connections are encrypted.
    ca: Option<PathBuf>,
    /// This node's own certificate, and its key (PEM).
    cert: Option<PathBuf>,
    key: Option<PathBuf>,
}

impl Login {
    /// Reads the file.
    ///
    /// # Errors
    /// It cannot be read, others may read it, or what it says makes no sense: in words.
    pub fn read(path: &Path) -> Result<Self, String> {
        let of = |cause: String| format!("{}: {cause}", path.display());
        let mut file = File::open(path).map_err(|error| of(error.to_string()))?;
        let mode = file.metadata().map_err(|error| of(error.to_string()))?.mode();
        if mode & 0o077 != 0 {
            return Err(of(format!(
                "its mode is {:o}, so others may read the password; 600 is needed",
                mode & 0o777
            )));
        }
        let mut text = String::new();
        file.read_to_string(&mut text).map_err(|error| of(error.to_string()))?;
        let login: Self = toml::from_str(&text).map_err(|error| of(error.message().to_owned()))?;
        match &login {
            Self { user: Some(_), password: None, .. } | Self { user: None, password: Some(_), .. } => {
                Err(of("user and password belong together".into()))
            }
            Self { cert: Some(_), key: None, .. } | Self { cert: None, key: Some(_), .. } => {
                Err(of("cert and key belong together".into()))
            }
            Self { cert: Some(_), ca: None, .. } => Err(of("with cert, ca is needed, too".into())),
            _ => Ok(login),
        }
    }

    /// What a server is called in a URL.
    pub fn url(&self, server: &str) -> String {
        format!("{}://{server}", if self.ca.is_some() { "https" } else { "http" })
    }

    /// How to connect.
    ///
    /// # Errors
    /// A certificate cannot be read: in words.
    pub fn options(&self) -> Result<ConnectOptions, String> {
        let mut options = ConnectOptions::new()
            .with_connect_timeout(ANSWER_MAX)
            .with_timeout(ANSWER_MAX)
            .with_keep_alive(TEST, TEST)
            .with_keep_alive_while_idle(true)
            .with_auto_token_refresh(true)
            .with_require_leader(true);
        if let (Some(user), Some(password)) = (&self.user, &self.password) {
            options = options.with_user(user, password);
        }
        let pem = |path: &PathBuf| fs::read(path).map_err(|error| format!("{}: {error}", path.display()));
        if let Some(ca) = &self.ca {
            let mut tls = TlsOptions::new().ca_certificate(Certificate::from_pem(pem(ca)?));
            if let (Some(cert), Some(key)) = (&self.cert, &self.key) {
                tls = tls.identity(Identity::from_pem(pem(cert)?, pem(key)?));
            }
            options = options.with_tls(tls);
        }
        Ok(options)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::os::unix::fs::PermissionsExt as _;

    #[test]
    fn files_that_others_can_read_or_that_make_no_sense_are_refused() {
        let path = std::env::temp_dir().join(format!("linkbraid-login-{}", std::process::id()));
        let read = |text: &str, mode: u32| {
            fs::write(&path, text).unwrap();
            fs::set_permissions(&path, fs::Permissions::from_mode(mode)).unwrap();
            Login::read(&path).map_err(|cause| cause.split_once(": ").unwrap().1.to_owned())
        };
        let good = "servers = [\"a:2379\"]\nuser = \"fab\"\npassword = \"x\"\nca = \"/etc/ca.pem\"\n";
        let login = read(good, 0o600).unwrap();
        assert_eq!((login.servers.len(), login.url("a:1").as_str()), (1, "https://a:1"));
        assert_eq!(Login::default().url("a:1"), "http://a:1");
        let refused = read(good, 0o644).unwrap_err();
        assert!(refused.starts_with("its mode is 644"), "{refused}");
        for (text, cause) in [
            ("user = \"fab\"", "user and password belong together"),
            ("cert = \"/a\"", "cert and key belong together"),
            ("cert = \"/a\"\nkey = \"/b\"", "with cert, ca is needed, too"),
            ("users = 1", "unknown field `users`"),
        ] {
            let refused = read(text, 0o600).unwrap_err();
            assert!(refused.contains(cause), "{refused}");
        }
        fs::remove_file(&path).unwrap();
    }
}
