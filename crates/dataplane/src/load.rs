//! Loads the compiled programs.

use crate::{
    HOLDER, MAPS, OBJECT,
    attached::short,
    error::{Error as E, Result},
    intf::LB_FLOWS_MIN,
};
use libbpf_rs::{MapHandle, MapType, Object, ObjectBuilder, ProgramMut, libbpf_sys};
use std::{
    collections::HashMap,
    ffi::OsStr,
    os::fd::{AsFd, AsRawFd as _, FromRawFd as _, OwnedFd},
    time::Duration,
};

/// How often loading is tried while it is interrupted, and the pause between.
const LOAD_TRIES: u32 = 5;
const LOAD_PAUSE: Duration = Duration::from_millis(20);

/// An unused socket, which the kernel closes when this process ends; none where the kernel has no AF_XDP.
pub(crate) fn holder() -> Option<OwnedFd> {
    // SAFETY: it takes numbers, and gives a descriptor that nobody else has or -1.
    unsafe {
        let fd = nix::libc::socket(nix::libc::AF_XDP, nix::libc::SOCK_RAW | nix::libc::SOCK_CLOEXEC, 0);
        (fd >= 0).then(|| OwnedFd::from_raw_fd(fd))
    }
}

/// The map of striped flows, which is as large as the machine allows.
const FLOWS: &str = "lb_flows";
/// It takes this part of the machine's memory.
const FLOWS_MEMORY_SHARE: u64 = 1024;
/// More flows than that are not striped at once.
const FLOWS_MAX: u64 = 16_384;
/// So many free entries each processor keeps for itself, and as many that it is about to give back (`bpf_lru_list.c` of the kernel).
const FLOWS_A_PROCESSOR: u64 = 2 * 128;

fn flows(flow_bytes: u32) -> u32 {
    let memory = nix::sys::sysinfo::sysinfo().map_or(0, |info| info.ram_total());
    flows_of(memory, libbpf_rs::num_possible_cpus().unwrap_or(1), flow_bytes)
}

/// How many flows are remembered on a machine with so many bytes of memory and processors.
fn flows_of(memory: u64, processors: usize, flow_bytes: u32) -> u32 {
    let paid = memory / FLOWS_MEMORY_SHARE / u64::from(flow_bytes.max(1));
    let flows = paid.clamp(LB_FLOWS_MIN.into(), FLOWS_MAX) + FLOWS_A_PROCESSOR * processors as u64;
    u32::try_from(flows).unwrap_or(u32::MAX)
}

/// Loads the object, with these maps of an earlier load in the place of new ones.
pub(crate) fn load(old: &HashMap<String, OwnedFd>, holds: bool) -> Result<Object> {
    patiently(|| load_object(old, holds, true))
}

/// An object of these maps of an earlier load, without programs.
pub(crate) fn maps(old: &HashMap<String, OwnedFd>, holds: bool) -> Result<Object> {
    load_object(old, holds, false)
}

/// Loads again where the verifier was interrupted: it gives up with EAGAIN on any pending signal, such as that of a machine that is
/// being frozen, and libbpf tries only five times in a row without a pause.
pub(crate) fn patiently(load: impl Fn() -> Result<Object>) -> Result<Object> {
    let mut tries = 0;
    loop {
        tries += 1;
        match load() {
            Err(E::Load(cause)) if tries < LOAD_TRIES && cause.kind() == libbpf_rs::ErrorKind::WouldBlock => {
                std::thread::sleep(LOAD_PAUSE);
            }
            loaded => return loaded,
        }
    }
}

fn load_object(old: &HashMap<String, OwnedFd>, holds: bool, programs: bool) -> Result<Object> {
    let mut open =
        ObjectBuilder::default().name("linkbraid").and_then(|b| b.open_memory(OBJECT)).map_err(E::Load)?;
    for mut program in open.progs_mut() {
        program.set_autoload(programs);
    }
    for mut map in open.maps_mut() {
        if map.name() == HOLDER && !holds {
            map.set_type(MapType::Array).map_err(E::Load)?;
        }
        if map.name() == FLOWS {
            map.set_max_entries(flows(map.value_size())).map_err(E::Load)?;
        }
        let name = MAPS.iter().find(|name| map.name() == OsStr::new(name));
        if let Some(old) = name.and_then(|name| old.get(short(name))) {
            map.reuse_fd(old.as_fd()).map_err(E::Load)?;
        } else if !programs {
            map.set_autocreate(false).map_err(E::Load)?;
        }
    }
    open.load().map_err(E::Load)
}

/// Has the kernel keep a map for as long as a program, whether or not the program uses it.
pub(crate) fn bind(program: &impl AsFd, map: &MapHandle) -> Result<()> {
    let (program, map) = (program.as_fd().as_raw_fd(), map.as_fd().as_raw_fd());
    // SAFETY: both are numbers of open files, and no options are given.
    match unsafe { libbpf_sys::bpf_prog_bind_map(program, map, std::ptr::null()) } {
        0 => Ok(()),
        error => Err(E::Load(libbpf_rs::Error::from_raw_os_error(-error))),
    }
}

pub(crate) fn program<'o>(object: &'o Object, name: &'static str) -> Result<ProgramMut<'o>> {
    object.progs_mut().find(|program| program.name() == OsStr::new(name)).ok_or(E::Missing(name))
}

/// The file of a program, which outlives the object.
pub(crate) fn program_file(object: &Object, name: &'static str) -> Result<OwnedFd> {
    program(object, name)?.as_fd().try_clone_to_owned().map_err(|cause| E::Load(cause.into()))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn large_machines_remember_more_flows_and_small_ones_enough() {
        const GIB: u64 = 1 << 30;
        let room = |memory, processors: usize| flows_of(memory, processors, 4300) - 256 * processors as u32;
        assert_eq!(room(0, 1), LB_FLOWS_MIN);
        assert_eq!(room(4 * GIB, 4), LB_FLOWS_MIN);
        assert!((4000..8000).contains(&room(24 * GIB, 2)), "{}", room(24 * GIB, 2));
        // What the processors keep for themselves comes on top.
        assert_eq!(u64::from(room(1 << 40, 256)), FLOWS_MAX);
    }
}
