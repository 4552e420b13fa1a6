//! How long the scheduler lets a thread of a fabric run at a time.
//!
//! A thread that spins offers the processor to others (`sched_yield`). Since Linux 6.18 (kernel/sched/fair.c,
//! `yield_task_fair`) who does so gives up all that is left of its slice, and with the usual slices of some milliseconds a
//! few offers that somebody takes add up to a tenth of a second without a turn: other nodes presume that this one has failed. With
//! short slices an offer costs little, and a thread that was just woken has its turn early (EEVDF: the deadline is a slice away).

use nix::libc;

/// The shortest that the kernel grants (since Linux 6.12), nanoseconds.
const SLICE_NS: u64 = 100_000;

/// `struct sched_attr` of linux/sched/types.h, as of its first version (`SCHED_ATTR_SIZE_VER0`).
#[repr(C)]
#[derive(Debug, Default, Clone, Copy)]
struct SchedAttr {
    size: u32,
    policy: u32,
    flags: u64,
    nice: i32,
    priority: u32,
    runtime_ns: u64,
    deadline_ns: u64,
    period_ns: u64,
}

const SIZE: u32 = size_of::<SchedAttr>() as u32;
const _: () = assert!(SIZE == 48);

/// Gives the calling thread short slices. Kernels that know none of that leave it as it is.
pub fn shorten_slices() {
    let Some(attr) = own() else { return };
    if attr.policy != libc::SCHED_OTHER.cast_unsigned() {
        return;
    }
    let attr = SchedAttr { size: SIZE, flags: 0, runtime_ns: SLICE_NS, ..attr };
    // SAFETY: the kernel reads `size` bytes of `attr`, which lives until it returns; 0 is the calling thread.
    unsafe { libc::syscall(libc::SYS_sched_setattr, 0, &raw const attr, 0) };
}

/// What the calling thread has.
fn own() -> Option<SchedAttr> {
    let mut attr = SchedAttr::default();
    // SAFETY: the kernel writes at most `SIZE` bytes into `attr`, which has as many and where any bits are a value.
    let done = unsafe { libc::syscall(libc::SYS_sched_getattr, 0, &raw mut attr, SIZE, 0) };
    (done == 0).then_some(attr)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_thread_keeps_its_policy_and_its_nice_value() {
        // On a thread of its own: the test's runner keeps what it has.
        std::thread::spawn(|| {
            let before = own().expect("the kernel reports it");
            shorten_slices();
            let after = own().expect("the kernel reports it");
            assert_eq!((after.policy, after.nice), (before.policy, before.nice));
            // Kernels before 6.12 leave it at what they have.
            assert!(after.runtime_ns == SLICE_NS || after.runtime_ns == before.runtime_ns, "{after:?}");
        })
        .join()
        .expect("no panic");
    }
}
