//! libfabric, found when it is first needed: nothing is linked to it, so where it is absent only this transport is.

use super::abi::{FabricAttr, Info, VERSION};
use linkbraid_fabric::{Error, Result};
use nix::libc;
use std::{
    ffi::{CStr, c_char, c_int, c_void},
    mem::{MaybeUninit, transmute_copy},
    sync::OnceLock,
};

/// The name of the library, as Debian's package libfabric1 has it.
const NAME: &CStr = c"libfabric.so.1";

/// The symbol version whose structures are those of [`super::abi`].
const SYMBOLS: &CStr = c"FABRIC_1.3";

/// A provider that is asked first, for it answers soon.
const QUICK: &CStr = c"tcp";

/// What helps if it is absent.
const INSTALL: &str = "apt-get install libfabric1";

/// Signals that providers have been seen to take for themselves.
const SIGNALS: [c_int; 8] = [
    libc::SIGBUS,
    libc::SIGSEGV,
    libc::SIGTERM,
    libc::SIGINT,
    libc::SIGABRT,
    libc::SIGFPE,
    libc::SIGILL,
    libc::SIGPIPE,
];

type GetInfo =
    unsafe extern "C" fn(u32, *const c_char, *const c_char, u64, *const Info, *mut *mut Info) -> c_int;
type FreeInfo = unsafe extern "C" fn(*mut Info);
type DupInfo = unsafe extern "C" fn(*const Info) -> *mut Info;
type OpenFabric = unsafe extern "C" fn(*mut FabricAttr, *mut *mut super::abi::Fabric, *mut c_void) -> c_int;
type Version = unsafe extern "C" fn() -> u32;
type StrError = unsafe extern "C" fn(c_int) -> *const c_char;

/// The functions of the library that are not inline.
pub struct Library {
    pub(super) getinfo: GetInfo,
    pub(super) freeinfo: FreeInfo,
    pub(super) dupinfo: DupInfo,
    pub(super) fabric: OpenFabric,
    strerror: StrError,
}

impl Library {
    /// The library. It stays loaded from the first use on: providers start threads, which cannot be unloaded.
    ///
    /// # Errors
    /// It is not there, or is too old.
    pub fn get(object: &str) -> Result<&'static Self> {
        static LIBRARY: OnceLock<Result<Library, String>> = OnceLock::new();
        let library = LIBRARY.get_or_init(|| keeping_signals(Self::load));
        library
            .as_ref()
            .map_err(|cause| Error::new(object, "cannot use this transport", cause.as_str()).hint(INSTALL))
    }

    fn load() -> Result<Self, String> {
        // SAFETY: the name is a string with its end, and the library's initialisers are those of a system library.
        let handle = unsafe { libc::dlopen(NAME.as_ptr(), libc::RTLD_NOW | libc::RTLD_LOCAL) };
        if handle.is_null() {
            return Err(format!("there is no {}", NAME.to_string_lossy()));
        }
        // SAFETY: each is what the headers declare under this name and symbol version.
        let library = unsafe {
            let version: Version = symbol(handle, c"fi_version", c"FABRIC_1.0")?;
            let version = version();
            if version < VERSION {
                let (major, minor) = (version >> 16, version & 0xffff);
                return Err(format!("libfabric is version {major}.{minor}; 1.17 or newer is needed"));
            }
            Self {
                getinfo: symbol(handle, c"fi_getinfo", SYMBOLS)?,
                freeinfo: symbol(handle, c"fi_freeinfo", SYMBOLS)?,
                dupinfo: symbol(handle, c"fi_dupinfo", SYMBOLS)?,
                fabric: symbol(handle, c"fi_fabric", c"FABRIC_1.1")?,
                strerror: symbol(handle, c"fi_strerror", c"FABRIC_1.0")?,
            }
        };
        // The first question, whatever it is, loads the providers, and with them whatever they do to the process.
        let mut found = std::ptr::null_mut();
        // SAFETY: an empty question has all attributes, and texts in it are freed with it (`fi_getinfo(3)`); what is found
        // is given back.
        unsafe {
            let question = (library.dupinfo)(std::ptr::null());
            if question.is_null() {
                return Err("there is no memory".into());
            }
            (*(*question).fabric_attr).prov_name = libc::strdup(QUICK.as_ptr());
            if (library.getinfo)(VERSION, std::ptr::null(), std::ptr::null(), 0, question, &raw mut found)
                == 0
            {
                (library.freeinfo)(found);
            }
            (library.freeinfo)(question);
        }
        Ok(library)
    }

    /// What an error of the library means; its numbers are negative in what functions return.
    pub fn words(&self, error: isize) -> String {
        let error = c_int::try_from(error.abs()).unwrap_or(c_int::MAX);
        // SAFETY: it takes any number and gives a string that stays.
        let text = unsafe { CStr::from_ptr((self.strerror)(error)) };
        text.to_string_lossy().to_lowercase()
    }
}

/// Finds one function.
///
/// # Safety
/// `F` is the type of a function pointer, and that of what the library has under this name.
unsafe fn symbol<F: Copy>(handle: *mut c_void, name: &CStr, version: &CStr) -> Result<F, String> {
    const { assert!(size_of::<F>() == size_of::<*mut c_void>()) };
    // SAFETY: the handle is that of a loaded library, and both strings have their ends.
    let found = unsafe { libc::dlvsym(handle, name.as_ptr(), version.as_ptr()) };
    if found.is_null() {
        let (name, version) = (name.to_string_lossy(), version.to_string_lossy());
        return Err(format!("libfabric has no {name} of {version}; 1.17 or newer is needed"));
    }
    // SAFETY: not null, of the same size, and of that type as the caller promises.
    Ok(unsafe { transmute_copy(&found) })
}

/// Runs something and gives the process its signal handlers back: the provider `shm` takes some of them, and would end
/// the process itself.
fn keeping_signals<T>(run: impl FnOnce() -> T) -> T {
    let mut before = [MaybeUninit::<libc::sigaction>::uninit(); SIGNALS.len()];
    for (signal, before) in SIGNALS.iter().zip(&mut before) {
        // SAFETY: without a new action the call only writes the present one.
        unsafe { libc::sigaction(*signal, std::ptr::null(), before.as_mut_ptr()) };
    }
    let done = run();
    for (signal, before) in SIGNALS.iter().zip(&before) {
        // SAFETY: the call above filled it, for every one of these signals exists; it was in force before.
        unsafe { libc::sigaction(*signal, before.as_ptr(), std::ptr::null_mut()) };
    }
    done
}
