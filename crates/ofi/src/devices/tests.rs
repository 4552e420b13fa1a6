use super::{is_gone, open_devices};
use std::{
    fs::{self, File},
    os::unix::fs::MetadataExt as _,
};

#[test]
fn devices_are_found_and_other_files_are_not() {
    let (device, file) =
        (File::open("/dev/zero").expect("it is there"), File::open("/proc/self/exe").expect("it is there"));
    let open = open_devices().expect("this process may look");
    let identity = |of: &File| of.metadata().map(|of| (of.dev(), of.ino())).expect("it is open");
    let has = |wanted: &File| open.iter().any(|open| identity(open) == identity(wanted));
    assert!(has(&device) && !has(&file));
}

#[test]
fn without_a_name_it_is_gone() {
    let name = std::env::temp_dir().join(format!("linkbraid-devices-{}", std::process::id()));
    let file = File::create_new(&name).expect("there is room");
    assert!(!is_gone(&file));
    fs::remove_file(&name).expect("it was there");
    assert!(is_gone(&file));
}
