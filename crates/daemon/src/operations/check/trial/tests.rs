use super::run;
use linkbraid_dataplane::{Hook, HookChoice};
use std::{path::PathBuf, process};

fn attempt(
    pins: &std::path::Path,
    choice: HookChoice,
) -> Result<String, crate::operations::check::machine::Missing> {
    let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build().unwrap();
    runtime.block_on(run(pins, choice))
}

#[test]
fn a_kernel_that_can_proves_it_and_nothing_is_left() {
    assert!(nix::unistd::geteuid().is_root(), "this test loads BPF programs: run it as root");
    let pins = PathBuf::from(format!("/sys/fs/bpf/linkbraid-trial-{}", process::id()));
    let before = std::fs::read_to_string("/proc/thread-self/net/dev").unwrap().lines().count();
    for hook in [Hook::Clsact, Hook::Tcx] {
        match attempt(&pins, HookChoice::Only(hook)) {
            Ok(used) => assert_eq!(used, hook.to_string()),
            // tcx came with 6.6.
            Err(missing) => assert_eq!((missing.name, hook), ("hook", Hook::Tcx), "{missing:?}"),
        }
        assert!(!pins.exists(), "pins are left");
    }
    assert!(attempt(&pins, HookChoice::Auto).is_ok());
    let after = std::fs::read_to_string("/proc/thread-self/net/dev").unwrap().lines().count();
    assert_eq!(before, after, "an interface is left");
}

#[test]
fn what_is_lacking_is_named() {
    assert!(nix::unistd::geteuid().is_root(), "this test loads BPF programs: run it as root");
    let pins = std::env::temp_dir().join(format!("linkbraid-trial-{}", process::id()));
    let missing = attempt(&pins, HookChoice::Auto).unwrap_err();
    assert_eq!(missing.name, "bpf", "maps cannot be pinned outside a BPF file system: {missing:?}");
    assert!(!pins.exists(), "a directory is left");
}
