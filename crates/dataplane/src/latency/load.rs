//! Loads the meter's programs and puts them in their places.

use super::CallHook;
use crate::{
    error::{Error, Result},
    intf::lb_meter,
};
use libbpf_rs::{
    Link, Object, ObjectBuilder, OpenObject,
    btf::{Btf, types::Func},
};
use nix::{
    libc,
    sys::socket::{AddressFamily, SockFlag, SockType, socket},
};
use std::{os::fd::AsRawFd as _, path::Path};

static OBJECT: &[u8] = include_bytes!(concat!(env!("OUT_DIR"), "/latency.bpf.o"));

/// Programs at the entry of kernel functions, with the function and the module that may hold it. IPv6 may be a module or
/// missing; `inet_sendpage` is gone since 6.5.
const FUNCTIONS: &[(&str, &str, Option<&str>)] = &[
    ("lb_inet_sendmsg", "inet_sendmsg", None),
    ("lb_inet6_sendmsg", "inet6_sendmsg", Some("ipv6")),
    ("lb_inet_sendpage", "inet_sendpage", None),
];
const SYSCALLS: &str = "lb_syscall";
/// The section that holds `meter`.
const METER: &str = ".rodata.meter";

/// Loads the programs and attaches them.
pub fn load(meter: &lb_meter, hook: CallHook) -> Result<(Object, Vec<Link>)> {
    let missing = "type information (BTF, CONFIG_DEBUG_INFO_BTF)";
    let types = Btf::from_vmlinux().map_err(|cause| Error::NoMeter { missing, cause })?;
    let mut open = ObjectBuilder::default()
        .name("lb_latency")
        .and_then(|builder| builder.open_memory(OBJECT))
        .map_err(Error::Load)?;
    choose(&mut open, hook, |name, module| {
        types.type_by_name::<Func<'_>>(name).is_some() || module.is_some_and(has_types)
    });
    let mut section = open.maps_mut().find(|map| map.name() == METER).ok_or(Error::Missing(METER))?;
    let value = section.initial_value_mut().ok_or(Error::Missing(METER))?;
    let raw = bytemuck::bytes_of(meter);
    value.get_mut(..raw.len()).ok_or(Error::Missing(METER))?.copy_from_slice(raw);
    let object = open.load().map_err(|cause| refused(hook, cause))?;
    let links = object
        .progs_mut()
        .filter(|program| program.autoload())
        .map(|program| program.attach().map_err(|cause| refused(hook, cause)))
        .collect::<Result<Vec<Link>>>()?;
    Ok((object, links))
}

/// Leaves out the programs of the other hook, and those whose function this kernel does not have.
fn choose(open: &mut OpenObject, hook: CallHook, has: impl Fn(&str, Option<&str>) -> bool) {
    for mut program in open.progs_mut() {
        let name = program.name().to_string_lossy().into_owned();
        let wanted = match FUNCTIONS.iter().find(|row| row.0 == name) {
            Some((_, function, module)) => hook == CallHook::Functions && has(function, *module),
            None => name != SYSCALLS || hook == CallHook::Syscalls,
        };
        program.set_autoload(wanted);
    }
}

fn has_types(module: &str) -> bool {
    Path::new("/sys/kernel/btf").join(module).exists()
}

fn refused(hook: CallHook, cause: libbpf_rs::Error) -> Error {
    let missing = match hook {
        CallHook::Functions => "function entry hooks for BPF (CONFIG_DYNAMIC_FTRACE_WITH_DIRECT_CALLS)",
        CallHook::Syscalls => "tracepoints for BPF (CONFIG_BPF_EVENTS, CONFIG_FTRACE_SYSCALLS)",
    };
    Error::NoMeter { missing, cause }
}

/// What the kernel knows this thread's network namespace by (5.14).
pub fn net_cookie() -> Result<u64> {
    let missing = "cookies of network namespaces (SO_NETNS_COOKIE, Linux 5.14)";
    let failed = |errno: nix::Error| Error::NoMeter {
        missing,
        cause: libbpf_rs::Error::from_raw_os_error(errno as i32),
    };
    let socket =
        socket(AddressFamily::Unix, SockType::Datagram, SockFlag::SOCK_CLOEXEC, None).map_err(failed)?;
    let mut cookie = 0u64;
    let mut bytes = size_of::<u64>() as libc::socklen_t;
    // SAFETY: nix has no such option. The socket is open, and `cookie` and `bytes` are alive during the call, which
    // writes no more than `bytes` says.
    let result = unsafe {
        libc::getsockopt(
            socket.as_raw_fd(),
            libc::SOL_SOCKET,
            libc::SO_NETNS_COOKIE,
            (&raw mut cookie).cast(),
            &raw mut bytes,
        )
    };
    nix::errno::Errno::result(result).map_err(failed)?;
    Ok(cookie)
}
