//! Key files: read only where nobody but root can have written or read them, and written so that they are never half there.

use linkbraid_api::{Error, KEY_FILE_BYTES_MAX, KeyFile, KeyId, KeySource, SECRET_LEN, SecretKey};
use std::{
    env,
    fs::{self, File, OpenOptions},
    io::{self, Read as _, Write as _},
    os::unix::fs::{MetadataExt as _, OpenOptionsExt as _},
    path::{Path, PathBuf},
};
use zeroize::Zeroizing;

/// Where systemd puts the credentials of a service.
const CREDENTIALS: &str = "CREDENTIALS_DIRECTORY";

/// Who may read a key file, and write it: its owner alone.
const MODE: u32 = 0o600;

/// What a file was like when it was looked at: another one, or another text, has another stamp. None: it was not there.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Stamp(Option<[i64; 6]>);

/// What the file of these keys is like now.
pub(crate) fn stamp(source: &KeySource) -> Stamp {
    let of = |path: PathBuf| {
        let found = fs::metadata(path).ok()?;
        let (ino, size) = (found.ino() as i64, found.size() as i64);
        // The change time follows the owner and the mode, too.
        let (changed, changed_ns) = (found.ctime(), found.ctime_nsec());
        Some([found.dev() as i64, ino, size, changed, changed_ns, i64::from(found.mode())])
    };
    Stamp(path(source).ok().flatten().and_then(of))
}

/// Where the file is; none where there is to be none. A refusal is a cause, and a command that helps.
fn path(source: &KeySource) -> Result<Option<PathBuf>, (String, String)> {
    match source {
        KeySource::None => Ok(None),
        KeySource::File(path) => Ok(Some(path.into())),
        KeySource::Credential(name) => match env::var_os(CREDENTIALS) {
            Some(folder) => Ok(Some(Path::new(&folder).join(name))),
            None => Err((
                "systemd has given this service no credentials (LoadCredential=)".to_owned(),
                "systemctl edit linkbraid".to_owned(),
            )),
        },
    }
}

/// What has keys.
#[derive(Debug, Clone, Copy)]
pub(crate) enum Object<'a> {
    /// A bond of that name.
    Bond(&'a str),
    /// A fabric of that name.
    Fabric(&'a str),
}

/// The keys of what requires or permits them.
pub(crate) fn read(object: Object<'_>, source: &KeySource) -> Result<KeyFile, Error> {
    let (kind, name) = match object {
        Object::Bond(name) => ("bond", name),
        Object::Fabric(name) => ("fabric", name),
    };
    let what = format!("cannot use the keys of '{}'", String::from(source.clone()));
    let refuse = |(cause, hint): (String, String)| Error::new(name, &what, cause).hint(hint);
    let Some(path) = path(source).map_err(refuse)? else {
        let cause = "no key is set, and auth is not off";
        return Err(Error::new(name, "cannot use keys", cause)
            .hint(format!("linkbraid {kind} set {name} --key /etc/linkbraid/{name}.key")));
    };
    read_path(&path).map_err(refuse)
}

/// Reads a key file that a user names.
///
/// # Errors
/// It is not there, others than root may have read or written it, or it holds no keys as it should.
pub fn read_key_file(path: &Path) -> Result<KeyFile, Error> {
    let refuse =
        |(cause, hint)| Error::new(path.display().to_string(), "cannot use the keys", cause).hint(hint);
    read_path(path).map_err(refuse)
}

fn read_path(path: &Path) -> Result<KeyFile, (String, String)> {
    let name = path.display();
    let not_read = |error: io::Error| {
        let hint = match error.kind() {
            io::ErrorKind::NotFound => format!("linkbraid key new {name}"),
            _ => format!("ls -l {name}"),
        };
        (in_words(&error), hint)
    };
    // Opening a pipe would wait for whoever writes into it.
    let file =
        OpenOptions::new().read(true).custom_flags(nix::libc::O_NONBLOCK).open(path).map_err(not_read)?;
    let found = file.metadata().map_err(not_read)?;
    if !found.is_file() {
        return Err(("it is no file".to_owned(), format!("ls -ld {name}")));
    }
    if found.uid() != 0 {
        return Err((
            format!("it belongs to user {}, not to root", found.uid()),
            format!("chown root {name}"),
        ));
    }
    let mode = found.mode() & 0o7777;
    if mode & 0o077 != 0 {
        let cause = format!("others than root may read or write it (its mode is {mode:04o})");
        return Err((cause, format!("chmod 600 {name}")));
    }
    let new = || format!("linkbraid key new {name}.new");
    let mut bytes = Zeroizing::new(Vec::with_capacity(KEY_FILE_BYTES_MAX + 1));
    file.take(KEY_FILE_BYTES_MAX as u64 + 1).read_to_end(&mut bytes).map_err(not_read)?;
    if bytes.len() > KEY_FILE_BYTES_MAX {
        return Err((format!("it is longer than {KEY_FILE_BYTES_MAX} bytes"), new()));
    }
    let text = std::str::from_utf8(&bytes).map_err(|_| ("it is no text".to_owned(), new()))?;
    KeyFile::read(text).map_err(|cause| (cause, new()))
}

/// A key that nobody has had before.
///
/// # Errors
/// The kernel gives no random numbers.
pub fn new_key() -> Result<SecretKey, Error> {
    let failed =
        |cause: getrandom::Error| Error::new("key", "cannot draw a random number", cause.to_string());
    let mut secret = Zeroizing::new([0; SECRET_LEN]);
    getrandom::fill(&mut secret[..]).map_err(failed)?;
    Ok(SecretKey { id: KeyId(getrandom::u32().map_err(failed)?), secret })
}

/// Writes a key file as a whole: whoever reads it finds the old one or the new one. `is_new`: there is none yet.
///
/// # Errors
/// It cannot be written, or is there already.
pub fn write_key_file(path: &Path, keys: &KeyFile, is_new: bool) -> Result<(), Error> {
    let name = path.display().to_string();
    let failed = |error: io::Error| {
        let hint = format!("ls -ld {}", folder(path).display());
        Error::new(&name, "cannot write the keys", in_words(&error)).hint(hint)
    };
    if is_new && fs::symlink_metadata(path).is_ok() {
        return Err(Error::new(&name, "cannot write the keys", "the file is there already")
            .hint(format!("linkbraid key show {name}")));
    }
    // A link leads to the file that is meant.
    let path = fs::canonicalize(path).unwrap_or_else(|_| path.to_owned());
    let mut beside = path.clone().into_os_string();
    beside.push(format!(".{}", std::process::id()));
    let write = || -> io::Result<()> {
        let mut file = OpenOptions::new().write(true).create_new(true).mode(MODE).open(&beside)?;
        file.write_all(keys.text().as_bytes())?;
        file.sync_all()?;
        match is_new {
            // Fails where somebody has made it meanwhile.
            true => fs::hard_link(&beside, &path).and_then(|()| fs::remove_file(&beside)),
            false => fs::rename(&beside, &path),
        }?;
        File::open(folder(&path))?.sync_all()
    };
    write().map_err(|error| {
        let _ = fs::remove_file(&beside);
        failed(error)
    })
}

/// The folder of a file, also of one that has only a name.
fn folder(path: &Path) -> &Path {
    match path.parent() {
        Some(folder) if folder.as_os_str().is_empty() => Path::new("."),
        Some(folder) => folder,
        None => Path::new("/"),
    }
}

fn in_words(error: &io::Error) -> String {
    let text = error.to_string().to_lowercase();
    text.split(" (os error").next().unwrap_or_default().to_owned()
}

#[cfg(test)]
mod tests;
