use super::*;

#[test]
fn a_signal_stops_the_work_instead_of_the_process() {
    for signal in [SIGINT, SIGTERM] {
        let guard = Interrupt::catch("lab").expect("catches");
        assert_eq!(guard.check(), Ok(()));
        signal_hook::low_level::raise(signal).expect("raises");
        assert!(guard.is_caught());
        assert_eq!(guard.check().expect_err("stopped").what, "stopped");
    }
}

#[test]
fn a_signal_ends_the_process_once_the_guard_is_gone() {
    drop(Interrupt::catch("lab").expect("catches"));
    // SAFETY: the child calls nothing but kill(2) on itself and _exit(2).
    match unsafe { nix::unistd::fork() }.expect("forks") {
        nix::unistd::ForkResult::Child => {
            let _ = signal_hook::low_level::raise(SIGINT);
            // SAFETY: it ends this process and touches nothing of it.
            unsafe { nix::libc::_exit(0) }
        }
        nix::unistd::ForkResult::Parent { child } => {
            let ended = nix::sys::wait::waitpid(child, None).expect("ends");
            let signal = nix::sys::signal::Signal::SIGINT;
            assert_eq!(ended, nix::sys::wait::WaitStatus::Signaled(child, signal, false));
        }
    }
}
