use super::{programs, run};
use linkbraid_dataplane::{Hook, HookChoice};

fn attempt(choice: HookChoice) -> Result<String, crate::operations::check::machine::Missing> {
    let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build().unwrap();
    runtime.block_on(run(choice))
}

#[test]
fn a_kernel_that_can_proves_it_and_nothing_is_left() {
    assert!(nix::unistd::geteuid().is_root(), "this test loads BPF programs: run it as root");
    let before = std::fs::read_to_string("/proc/thread-self/net/dev").unwrap().lines().count();
    for hook in [Hook::Clsact, Hook::Tcx] {
        match attempt(HookChoice::Only(hook)) {
            Ok(works) => assert_eq!(works, format!("bridge, eBPF and the {hook} hook")),
            // tcx came with 6.6.
            Err(missing) => assert_eq!((missing.name, hook), ("hook", Hook::Tcx), "{missing:?}"),
        }
    }
    assert!(attempt(HookChoice::Auto).is_ok());
    assert_eq!(programs(HookChoice::Auto).err(), None, "what a service without namespaces can try");
    let after = std::fs::read_to_string("/proc/thread-self/net/dev").unwrap().lines().count();
    assert_eq!(before, after, "an interface is left");
}
