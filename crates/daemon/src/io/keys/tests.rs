use super::*;
use std::os::unix::fs::{PermissionsExt as _, chown};

/// A folder that goes with the test.
struct Folder(PathBuf);

impl Folder {
    fn new(name: &str) -> Self {
        let folder = env::temp_dir().join(format!("linkbraid-keys-{name}-{}", std::process::id()));
        fs::create_dir_all(&folder).expect("a folder");
        Self(folder)
    }

    fn file(&self, name: &str) -> PathBuf {
        self.0.join(name)
    }
}

impl Drop for Folder {
    fn drop(&mut self) {
        let _ = fs::remove_dir_all(&self.0);
    }
}

fn refused(path: &Path) -> (String, String) {
    let error = read_key_file(path).expect_err("is refused");
    (error.cause.clone(), error.hint.expect("a command"))
}

#[test]
fn a_file_is_written_for_its_owner_alone_and_reads_back() {
    let folder = Folder::new("write");
    let path = folder.file("a");
    let keys = KeyFile::new(new_key().expect("a key"));
    write_key_file(&path, &keys, true).expect("written");
    assert_eq!(fs::metadata(&path).expect("is there").mode() & 0o7777, MODE);
    assert_eq!(fs::read_dir(&folder.0).expect("a folder").count(), 1, "nothing is left beside it");
    let again = write_key_file(&path, &KeyFile::new(new_key().expect("a key")), true).expect_err("is there");
    assert_eq!(again.cause, "the file is there already");
    if nix::unistd::geteuid().is_root() {
        assert_eq!(read_key_file(&path).expect("reads"), keys);
    }
    let before = stamp(&KeySource::File(path.display().to_string()));
    write_key_file(&path, &KeyFile::new(new_key().expect("a key")), false).expect("replaced");
    assert_ne!(stamp(&KeySource::File(path.display().to_string())), before);
    assert!(write_key_file(&folder.file("no/where"), &keys, true).is_err());
}

#[test]
fn a_name_alone_is_a_file_of_this_folder() {
    for (path, its) in [("a", "."), ("/a", "/"), ("/b/a", "/b"), ("b/a", "b")] {
        assert_eq!(folder(Path::new(path)), Path::new(its));
    }
}

#[test]
fn files_that_others_may_have_read_are_refused_with_the_command_that_helps() {
    if !nix::unistd::geteuid().is_root() {
        return;
    }
    let folder = Folder::new("read");
    let path = folder.file("a");
    let name = path.display().to_string();
    assert_eq!(refused(&path), ("no such file or directory".to_owned(), format!("linkbraid key new {name}")));
    write_key_file(&path, &KeyFile::new(new_key().expect("a key")), true).expect("written");
    for mode in [0o644, 0o640, 0o602] {
        fs::set_permissions(&path, fs::Permissions::from_mode(mode)).expect("is ours");
        let cause = format!("others than root may read or write it (its mode is {mode:04o})");
        assert_eq!(refused(&path), (cause, format!("chmod 600 {name}")));
    }
    fs::set_permissions(&path, fs::Permissions::from_mode(0o400)).expect("is ours");
    assert!(read_key_file(&path).is_ok(), "as systemd makes credentials");
    chown(&path, Some(1234), None).expect("root may");
    assert_eq!(
        refused(&path),
        ("it belongs to user 1234, not to root".to_owned(), format!("chown root {name}"))
    );
    assert_eq!(refused(&folder.0).0, "it is no file");
    let pipe = folder.file("pipe");
    nix::unistd::mkfifo(&pipe, nix::sys::stat::Mode::S_IRUSR).expect("a pipe");
    assert_eq!(refused(&pipe).0, "it is no file");
    let bad = folder.file("bad");
    for (bytes, cause) in [
        (vec![], "it holds no key"),
        (vec![0xff; 10], "it is no text"),
        (vec![b'#'; KEY_FILE_BYTES_MAX + 1], "it is longer than 4096 bytes"),
    ] {
        fs::write(&bad, bytes).expect("written");
        fs::set_permissions(&bad, fs::Permissions::from_mode(0o600)).expect("is ours");
        assert_eq!(refused(&bad).0, cause);
    }
}

#[test]
fn a_bond_without_a_usable_source_is_refused_by_name() {
    let none = read(Object::Bond("bond0"), &KeySource::None).expect_err("no key");
    assert_eq!(none.to_string(), "bond0: cannot use keys: no key is set, and auth is not off");
    let hint = |object| read(object, &KeySource::None).expect_err("no key").hint;
    let says =
        |kind: &str, name: &str| format!("linkbraid {kind} set {name} --key /etc/linkbraid/{name}.key");
    assert_eq!(hint(Object::Bond("bond0")), Some(says("bond", "bond0")));
    assert_eq!(hint(Object::Fabric("fab0")), Some(says("fabric", "fab0")));
    let gone =
        read(Object::Bond("bond0"), &KeySource::File("/nonexistent/key".to_owned())).expect_err("no file");
    assert_eq!(
        gone.to_string(),
        "bond0: cannot use the keys of '/nonexistent/key': no such file or directory"
    );
    if env::var_os(CREDENTIALS).is_none() {
        let credential =
            read(Object::Bond("bond0"), &KeySource::Credential("key".to_owned())).expect_err("none is given");
        assert!(
            credential.to_string().starts_with("bond0: cannot use the keys of 'credential:key': systemd")
        );
    }
}
