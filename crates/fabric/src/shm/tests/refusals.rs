use super::{Name, join, node, open, refusal};
use crate::Address;
use nix::{
    sys::stat::Mode,
    unistd::{Gid, Uid},
};
use std::{
    fs,
    os::unix::fs::{FileExt, MetadataExt, PermissionsExt},
};

#[test]
fn numbers_out_of_range_are_refused() {
    let name = Name::new();
    let address = name.address();
    let cases = [
        (join(2, 2, 1), "node 2 is outside the range 0 to 1 of 2 nodes"),
        (join(0, 1, 1), "node count 1 is outside the allowed range 2 to 512"),
        (join(0, 513, 1), "node count 513 is outside the allowed range 2 to 512"),
        (join(0, 2, 0), "queue count 0 is outside the allowed range 1 to 64"),
        (join(0, 2, 65), "queue count 65 is outside the allowed range 1 to 64"),
    ];
    for (join, cause) in cases {
        assert_eq!(refusal(&address, join), format!("{address}: cannot join: {cause}"));
    }
    assert!(name.files().is_empty());
}

#[test]
fn bad_addresses_are_refused() {
    let cases = [
        ("smoke:/x", "no such transport 'smoke'"),
        ("shm", "'' is not an absolute path"),
        ("shm:x", "'x' is not an absolute path"),
        ("shm:/x,ring=5", "ring size '5' is not a power of two from 262144 to 67108864"),
        ("shm:/x,ring=1000k", "ring size '1000k' is not"),
        ("shm:/x,fast", "no such option 'fast'"),
    ];
    for (address, cause) in cases {
        let error = address.parse::<Address>().expect_err(address);
        assert!(error.cause.contains(cause), "{error}");
        assert_eq!((error.object.as_str(), error.what.as_str()), (address, "cannot use this transport"));
    }
}

#[test]
fn nodes_that_disagree_are_refused() {
    let name = Name::new();
    let address = name.address();
    let _a = node(&address, 0, 2);
    let larger = format!("{address},ring=4M");
    let cases = [
        (&address, join(0, 2, 1), "another process is node 0 of it"),
        (&address, join(1, 4, 1), "it was made with node count 2, this node has node count 4"),
        (&address, join(1, 2, 3), "it was made with queue count 1, this node has queue count 3"),
        (&larger, join(1, 2, 1), "it was made with ring size 2097152, this node has ring size 4194304"),
    ];
    for (address, join, cause) in cases {
        assert_eq!(refusal(address, join), format!("{address}: cannot join: {cause}"));
    }
    let _b = node(&address, 1, 2);
}

#[test]
fn files_that_cannot_be_are_refused_and_left_alone() {
    let name = Name::new();
    let address = name.address();
    let original = {
        let _node = node(&address, 0, 2);
        fs::read(&name.0).unwrap()
    };
    let refused = |cause: &str| {
        let text = refusal(&address, join(0, 2, 1));
        assert!(text.starts_with(&format!("{address}: cannot join: ")) && text.contains(cause), "{text}");
        assert!(fs::symlink_metadata(&name.0).is_ok(), "{cause}");
    };
    let file = fs::File::create_new(&name.0).unwrap();
    fs::set_permissions(&name.0, fs::Permissions::from_mode(0o600)).unwrap();
    refused("the file has 0 bytes and is not that of a fabric");
    file.write_all_at(b"a letter", 0).unwrap();
    file.set_len(10_000).unwrap();
    refused("the file is not that of a fabric");
    file.set_len(0).unwrap();
    file.write_all_at(&original, 0).unwrap();
    file.set_len(8192).unwrap();
    refused("the file has 8192 bytes, its header says ");
    file.write_all_at(&original, 0).unwrap();
    file.write_all_at(&u64::to_ne_bytes(7), 8).unwrap();
    refused("the file is of version 7, this is version 1");
    file.write_all_at(&original, 0).unwrap();
    file.write_all_at(&u64::to_ne_bytes(70_000), 16).unwrap();
    refused("the header of the file is invalid");
    file.write_all_at(&original, 0).unwrap();
    fs::set_permissions(&name.0, fs::Permissions::from_mode(0o620)).unwrap();
    refused("others may write to the file (mode 620)");
    fs::set_permissions(&name.0, fs::Permissions::from_mode(0o600)).unwrap();
    if nix::unistd::geteuid().is_root() {
        nix::unistd::chown(&name.0, Some(Uid::from_raw(1)), None::<Gid>).unwrap();
        refused("the file belongs to user 1, this is user 0");
        let hint = open(&address, join(0, 2, 1)).err().and_then(|error| error.hint);
        assert_eq!(hint.as_deref(), Some("--transport shm:/run/linkbraid/NAME"));
        nix::unistd::chown(&name.0, Some(Uid::from_raw(0)), None::<Gid>).unwrap();
    }
    fs::remove_file(&name.0).unwrap();
    std::os::unix::fs::symlink("/dev/shm/linkbraid-test-none", &name.0).unwrap();
    refused("it is a symbolic link");
    fs::remove_file(&name.0).unwrap();
    nix::unistd::mkfifo(&name.0, Mode::S_IRUSR | Mode::S_IWUSR).unwrap();
    refused("it is not an ordinary file");
    fs::remove_file(&name.0).unwrap();
    fs::write(&name.0, &original).unwrap();
    fs::set_permissions(&name.0, fs::Permissions::from_mode(0o600)).unwrap();
    // What a crash of all left behind, here of another shape, is made again.
    let _node = node(&address, 0, 3);
}

#[test]
fn no_room_is_said_and_leaves_nothing() {
    let name = Name::new();
    let address = format!("{},ring=64M", name.address());
    let text = refusal(&address, join(0, 512, 64));
    assert!(
        text.contains("cannot make the shared memory: node count 512 and queue count 64 need "),
        "{text}"
    );
    // That is what the file system said when asked, before it had to give all that it has.
    assert!(text.contains("bytes, and /dev/shm has ") && text.ends_with(" bytes left"), "{text}");
    assert!(name.files().is_empty());
}

#[test]
fn a_folder_that_is_not_there_is_said() {
    let text = refusal("shm:/dev/shm/linkbraid-none/fabric", join(0, 2, 1));
    assert!(text.ends_with("cannot make the shared memory: it does not exist"), "{text}");
}

#[test]
fn fixed_memory_that_could_end_this_process_is_refused() {
    let name = Name::new();
    let address = format!("{},fixed", name.address());
    let refused = |cause: &str| {
        let text = refusal(&address, join(0, 2, 1));
        assert!(text.starts_with(&address) && text.contains(cause), "{text}");
    };
    nix::unistd::mkfifo(&name.0, Mode::S_IRWXU).unwrap();
    refused("it is not an ordinary file");
    fs::remove_file(&name.0).unwrap();
    let other = name.0.with_extension("other");
    let file = fs::File::create_new(&other).unwrap();
    file.set_len(8 << 20).unwrap();
    std::os::unix::fs::symlink(&other, &name.0).unwrap();
    refused("it is a symbolic link");
    fs::rename(&other, &name.0).unwrap();
    fs::set_permissions(&name.0, fs::Permissions::from_mode(0o666)).unwrap();
    refused("others may write to the file (mode 666)");
    fs::set_permissions(&name.0, fs::Permissions::from_mode(0o644)).unwrap();
    if Uid::effective().is_root() {
        nix::unistd::chown(&name.0, Some(Uid::from_raw(65_534)), None).unwrap();
        refused("the file belongs to user 65534, this is user 0");
        nix::unistd::chown(&name.0, Some(Uid::from_raw(0)), None).unwrap();
    }
    assert_eq!(file.metadata().unwrap().blocks(), 0);
    let _node = node(&address, 0, 2);
    assert!(file.metadata().unwrap().blocks() * 512 >= 8 << 20, "there is memory behind all of it");
    // More than any machine has.
    file.set_len(1 << 50).unwrap();
    refused("not all of its 1125899906842624 bytes have memory behind them, and /dev/shm has ");
}
