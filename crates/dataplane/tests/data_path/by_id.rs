//! What is opened by its number, and what is not.

use super::{
    lent::programs,
    lifecycle::{attached, hooks, interfaces},
};
use libbpf_rs::libbpf_sys;
use linkbraid_dataplane::{MAPS_MAX, Object, open};
use std::{
    os::fd::{AsRawFd as _, FromRawFd as _, OwnedFd},
    ptr::null_mut,
};

/// `r0 = 0; exit`.
const NOTHING: [u64; 2] = [0xb7, 0x95];

/// A program of this name that is no bond's, and its number.
fn stranger(name: &std::ffi::CStr) -> (OwnedFd, u32) {
    let mut info = libbpf_sys::bpf_prog_info::default();
    let mut bytes = size_of::<libbpf_sys::bpf_prog_info>() as u32;
    // SAFETY: two instructions, names that end with a zero, no options, and `info` with its own size; all outlive the calls.
    unsafe {
        let file = libbpf_sys::bpf_prog_load(
            libbpf_sys::BPF_PROG_TYPE_SOCKET_FILTER,
            name.as_ptr(),
            c"GPL".as_ptr(),
            NOTHING.as_ptr().cast(),
            NOTHING.len() as libbpf_sys::size_t,
            null_mut(),
        );
        assert!(file >= 0, "{file}");
        let file = OwnedFd::from_raw_fd(file);
        assert_eq!(libbpf_sys::bpf_prog_get_info_by_fd(file.as_raw_fd(), &mut info, &mut bytes), 0);
        (file, info.id)
    }
}

#[test]
fn nothing_is_opened_that_belongs_to_no_bond() {
    let hook = hooks()[0];
    interfaces();
    let path = attached(hook);
    let ids = path.map_ids().unwrap();
    let program = programs(&ids)[0].id;
    let count = |object| open(object).unwrap().len();
    assert_eq!(count(Object::Program(program)), 1);
    assert!((1..=MAPS_MAX).contains(&count(Object::Maps(program))));
    let (_file, stranger) = stranger(c"stranger");
    for id in [stranger, 0] {
        assert_eq!((count(Object::Program(id)), count(Object::Maps(id))), (0, 0));
    }
    assert_eq!(count(Object::Link(0)), 0);
}
