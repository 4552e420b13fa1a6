use super::super::{AtomicU64, Map, Place};
use nix::{
    libc,
    sys::{
        memfd::{MFdFlags, memfd_create},
        resource::{Resource, setrlimit},
        signal::{Signal, raise},
    },
};
use std::{
    fs::File,
    os::{
        fd::{AsFd, AsRawFd},
        unix::process::ExitStatusExt,
    },
    process::Command,
    ptr,
    sync::{
        Arc,
        atomic::{AtomicBool, Ordering},
    },
    thread,
};

const BYTES: usize = 1 << 16;

fn file() -> File {
    let file = File::from(memfd_create("linkbraid-test", MFdFlags::MFD_CLOEXEC).expect("makes one"));
    file.set_len(BYTES as u64).expect("grows");
    file
}

fn map(file: &File) -> Arc<Map> {
    Map::file(file.as_fd(), BYTES).expect("maps")
}

fn word(map: &Arc<Map>, at: usize) -> Place<AtomicU64> {
    map.place(at).expect("fits")
}

#[test]
fn what_was_cut_off_reads_as_zeros_and_says_so() {
    let [cut, whole] = [file(), file()];
    let [lost, kept] = [map(&cut), map(&whole)];
    word(&lost, BYTES - 8).store(7, Ordering::Relaxed);
    word(&kept, BYTES - 8).store(8, Ordering::Relaxed);
    cut.set_len(4096).expect("shrinks");
    assert!(!lost.is_lost(), "nobody has looked");
    assert_eq!(word(&lost, BYTES - 8).load(Ordering::Relaxed), 0);
    assert!(lost.is_lost());
    // All of it is private now, also what the file still has.
    word(&lost, 0).store(9, Ordering::Relaxed);
    assert_eq!(word(&lost, 0).load(Ordering::Relaxed), 9);
    assert_eq!(word(&map(&cut), 0).load(Ordering::Relaxed), 0);
    assert_eq!((kept.is_lost(), word(&kept, BYTES - 8).load(Ordering::Relaxed)), (false, 8));
    // Its slot is free again, and clean.
    drop(lost);
    let maps: Vec<_> = (0..8).map(|_| map(&whole)).collect();
    assert!(maps.iter().all(|map| !map.is_lost()));
}

#[test]
fn threads_that_work_on_it_go_on() {
    for _ in 0..20 {
        let cut = file();
        let lost = map(&cut);
        let stop = AtomicBool::new(false);
        thread::scope(|scope| {
            for at in [0, BYTES / 2, BYTES - 8] {
                let (lost, stop) = (&lost, &stop);
                scope.spawn(move || {
                    while !stop.load(Ordering::Relaxed) {
                        word(lost, at).fetch_add(1, Ordering::Relaxed);
                    }
                });
            }
            while word(&lost, BYTES - 8).load(Ordering::Relaxed) == 0 {
                thread::yield_now();
            }
            cut.set_len(0).expect("shrinks");
            while !lost.is_lost() {
                thread::yield_now();
            }
            stop.store(true, Ordering::Relaxed);
        });
    }
}

/// What the process of [`any_other_bus_error_ends_the_process`] does.
#[test]
#[ignore = "a part of another test"]
fn process_with_a_bus_error() {
    let how = std::env::var("LINKBRAID_TEST_HOW").expect("set by the other test");
    setrlimit(Resource::RLIMIT_CORE, 0, 0).expect("less is allowed");
    let guarded = file();
    let _map = map(&guarded);
    if how == "sent" {
        // The standard library's handler lets the first one pass, as it does without ours.
        (0..2).for_each(|_| raise(Signal::SIGBUS).expect("sends"));
    } else {
        let other = file();
        // SAFETY: a new mapping at an address of the kernel's choice.
        let start = unsafe {
            libc::mmap(ptr::null_mut(), BYTES, libc::PROT_READ, libc::MAP_SHARED, other.as_raw_fd(), 0)
        };
        assert_ne!(start, libc::MAP_FAILED);
        other.set_len(0).expect("shrinks");
        // SAFETY: mapped; that it has nothing behind it is what this is about.
        unsafe { start.cast::<u8>().read_volatile() };
    }
    // Not a failure, which the other test would take for a death.
    std::process::exit(0);
}

#[test]
fn any_other_bus_error_ends_the_process() {
    for how in ["faulted", "sent"] {
        let program = std::env::current_exe().expect("this one");
        let output = Command::new(program)
            .args(["--exact", "ring::memory::fault::tests::process_with_a_bus_error", "--ignored"])
            .env("LINKBRAID_TEST_HOW", how)
            .output();
        let status = output.expect("it runs").status;
        assert_eq!(status.signal(), Some(libc::SIGBUS), "{how}: {status}");
    }
}
