//! Runs a program on a frame without sending it (`BPF_PROG_TEST_RUN`): for tests and for tracing.

use crate::{
    DataPath, EGRESS, INGRESS,
    error::{Error, Result},
};
use libbpf_rs::libbpf_sys;
use std::os::fd::AsRawFd as _;

/// Room for the frame that comes back, in bytes.
const FRAME_BYTES_MAX: usize = 16 * 1024;
/// Places in `struct __sk_buff`, in words.
const CONTEXT_MARK: usize = 2;
const CONTEXT_PRIORITY: usize = 8;
const CONTEXT_INGRESS_IFINDEX: usize = 9;
const CONTEXT_IFINDEX: usize = 10;
const CONTEXT_CB: usize = 12;
const CONTEXT_GSO_SEGS: usize = 41;
const CONTEXT_GSO_SIZE: usize = 44;
const CONTEXT_WORDS: usize = 45;
/// Room for all of it as any kernel has it (48 words since 5.16), else it refuses.
const CONTEXT_WORDS_MAX: usize = 64;
/// Words of `cb[]` in there.
const CB_WORDS: usize = 5;
/// Verdicts of include/uapi/linux/pkt_cls.h.
const TC_ACT_SHOT: i32 = 2;
const TC_ACT_REDIRECT: i32 = 7;

/// The direction of the frame.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Way {
    /// From the bond to a member.
    Out,
    /// From a member to the bond.
    In,
}

/// What the kernel keeps beside a frame.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct Beside {
    /// The socket priority of the frame.
    pub priority: u32,
    /// The firewall mark of the frame.
    pub mark: u32,
    /// Payload bytes of each segment that the frame is to be cut into; 0: none.
    pub gso_size: u32,
    /// The number of those segments.
    pub gso_segs: u32,
}

/// What the program decided about the frame.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Verdict {
    /// It continues to the network stack.
    Pass,
    /// It is dropped.
    Drop,
    /// It is redirected to an interface.
    Redirect,
}

/// The outcome of a program that was run with one frame.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Trial {
    /// What the program decided.
    pub verdict: Verdict,
    /// The frame as the program left it.
    pub frame: Vec<u8>,
    /// The priority that it goes on with.
    pub priority: u32,
}

impl DataPath {
    /// Runs a program on `frame` (with its Ethernet header) as if it were on the interface `ifindex` of the caller's
    /// network namespace. The frame goes nowhere, but counters and tables change as for a real one, and further
    /// copies of a multicast are really sent.
    ///
    /// # Errors
    /// The kernel refuses: no such interface, or a frame shorter than 14 bytes.
    pub fn trial(&self, way: Way, frame: &[u8], ifindex: u32) -> Result<Trial> {
        self.trial_with(way, frame, ifindex, Beside::default())
    }

    /// The same for a frame with something beside it. Its socket is of no protocol, and in the caller's control group.
    ///
    /// # Errors
    /// The same.
    pub fn trial_with(&self, way: Way, frame: &[u8], ifindex: u32, beside: Beside) -> Result<Trial> {
        self.run_with(way, frame, ifindex, beside, [0; CB_WORDS]).map(|(trial, _)| trial)
    }

    /// The same with words in `cb[]`, and what the program left there.
    pub(crate) fn run_with(
        &self,
        way: Way,
        frame: &[u8],
        ifindex: u32,
        beside: Beside,
        cb: [u32; CB_WORDS],
    ) -> Result<(Trial, [u32; CB_WORDS])> {
        let program = self.program(if way == Way::Out { EGRESS } else { INGRESS })?;
        // The beginning of the kernel's `struct __sk_buff` (include/uapi/linux/bpf.h); all other fields count as zero.
        let mut context = [0u32; CONTEXT_WORDS];
        context[CONTEXT_MARK] = beside.mark;
        context[CONTEXT_PRIORITY] = beside.priority;
        context[CONTEXT_GSO_SEGS] = beside.gso_segs;
        context[CONTEXT_GSO_SIZE] = beside.gso_size;
        context[CONTEXT_INGRESS_IFINDEX] = ifindex;
        context[CONTEXT_IFINDEX] = ifindex;
        context[CONTEXT_CB..CONTEXT_CB + CB_WORDS].copy_from_slice(&cb);
        let mut context_out = [0u32; CONTEXT_WORDS_MAX];
        let mut out = vec![0; FRAME_BYTES_MAX];
        let mut options = libbpf_sys::bpf_test_run_opts {
            sz: size_of::<libbpf_sys::bpf_test_run_opts>() as libbpf_sys::size_t,
            ctx_in: context.as_ptr().cast(),
            ctx_size_in: size_of_val(&context) as u32,
            ctx_out: context_out.as_mut_ptr().cast(),
            ctx_size_out: size_of_val(&context_out) as u32,
            data_in: frame.as_ptr().cast(),
            data_size_in: u32::try_from(frame.len()).unwrap_or(u32::MAX),
            data_out: out.as_mut_ptr().cast(),
            data_size_out: FRAME_BYTES_MAX as u32,
            ..Default::default()
        };
        // SAFETY: all pointers are to values of this function, with their sizes; the kernel writes to `out`, `context_out` and `options` alone.
        let answer = unsafe { libbpf_sys::bpf_prog_test_run_opts(program.as_raw_fd(), &mut options) };
        if answer != 0 {
            let cause = libbpf_rs::Error::from_raw_os_error(-answer);
            return Err(Error::Attach { what: "try a frame", ifindex, cause });
        }
        let verdict = match options.retval.cast_signed() {
            TC_ACT_SHOT => Verdict::Drop,
            TC_ACT_REDIRECT => Verdict::Redirect,
            _ => Verdict::Pass,
        };
        out.truncate(options.data_size_out as usize);
        let mut left = [0; CB_WORDS];
        left.copy_from_slice(&context_out[CONTEXT_CB..CONTEXT_CB + CB_WORDS]);
        Ok((Trial { verdict, frame: out, priority: context_out[CONTEXT_PRIORITY] }, left))
    }
}
