//! Which provider of libfabric to use, and how it writes addresses.

use super::{
    abi::{self, Info},
    library::Library,
};
use linkbraid_fabric::{Error, Result};
use nix::{libc, sys::socket::SockaddrStorage};
use std::{
    ffi::{CStr, CString, c_int},
    net::SocketAddr,
    ptr,
};

/// What registered memory may cost a caller, all of which is done for whoever wants it.
const MR_MODES: c_int =
    abi::MR_LOCAL | abi::MR_ALLOCATED | abi::MR_PROV_KEY | abi::MR_VIRT_ADDR | abi::MR_ENDPOINT;

/// Formats of addresses that are those of IP.
const IP_FORMATS: [u32; 3] = [abi::SOCKADDR, abi::SOCKADDR_IN, abi::SOCKADDR_IN6];

/// No provider is like what was asked for: `FI_ENODATA`.
const NOTHING_FOUND: c_int = -libc::ENODATA;

/// Something that a provider offers: a list of which the first is used.
pub struct Offer {
    loaded: &'static Library,
    info: *mut Info,
}

// SAFETY: what `info` points to belongs to this alone, and the library keeps no thread's hold on it.
unsafe impl Send for Offer {}

impl Drop for Offer {
    fn drop(&mut self) {
        // SAFETY: it came from the library, and nobody else has it.
        unsafe { (self.loaded.freeinfo)(self.info) };
    }
}

impl Offer {
    /// What is wanted, of `provider` or of all; `posted` is how many messages may be posted, 0: as many as it likes.
    fn hints(library: &'static Library, provider: Option<&CStr>, posted: usize) -> Option<Self> {
        // SAFETY: without an original it makes an empty one.
        let info = unsafe { (library.dupinfo)(ptr::null()) };
        if info.is_null() {
            return None;
        }
        let hints = Self { loaded: library, info };
        // SAFETY: an empty one has all attributes, each its own, and texts in it are freed with it (`fi_getinfo(3)`).
        unsafe {
            (*info).caps = abi::MSG | abi::SEND | abi::RECV;
            (*info).mode = abi::CONTEXT | abi::CONTEXT2;
            (*(*info).ep_attr).r#type = abi::EP_RDM;
            (*(*info).tx_attr).msg_order = abi::ORDER_SAS;
            (*(*info).rx_attr).msg_order = abi::ORDER_SAS;
            // `ofi_rxm` makes buffers for as many, and takes 30 ms for its usual number.
            (*(*info).tx_attr).size = posted;
            (*(*info).rx_attr).size = posted;
            (*(*info).domain_attr).mr_mode = MR_MODES;
            (*(*info).domain_attr).threading = abi::THREAD_DOMAIN;
            (*(*info).domain_attr).resource_mgmt = abi::RM_ENABLED;
            if let Some(provider) = provider {
                (*(*info).fabric_attr).prov_name = libc::strdup(provider.as_ptr());
            }
        }
        Some(hints)
    }

    /// Asks for what `hints` say, at an address.
    fn ask(hints: &Self, address: Option<SocketAddr>, flags: u64) -> Result<Self, c_int> {
        let text = |text: String| CString::new(text).map_err(|_| -libc::EINVAL);
        let node = address.map(|address| text(address.ip().to_string())).transpose()?;
        let service = address.map(|address| text(address.port().to_string())).transpose()?;
        let pointer = |text: &Option<CString>| text.as_ref().map_or(ptr::null(), |text| text.as_ptr());
        let flags = if address.is_some() { flags | abi::NUMERICHOST } else { 0 };
        let mut info = ptr::null_mut();
        // SAFETY: both texts and the hints live for the call, and a list comes back only if all went well.
        let done = unsafe {
            let getinfo = hints.loaded.getinfo;
            getinfo(abi::VERSION, pointer(&node), pointer(&service), flags, hints.info, &raw mut info)
        };
        if done != 0 || info.is_null() { Err(done) } else { Ok(Self { loaded: hints.loaded, info }) }
    }

    /// What `provider` offers at this node's own address, for so many messages posted at a time.
    ///
    /// # Errors
    /// There is no such provider, or it cannot use the address.
    pub fn find(
        library: &'static Library,
        object: &str,
        provider: &str,
        own: SocketAddr,
        posted: usize,
    ) -> Result<Self> {
        let failed = |cause: String| Error::new(object, "cannot use this transport", cause);
        let Ok(name) = CString::new(provider) else { return Err(failed("a name has no zero".into())) };
        let hints = Self::hints(library, Some(&name), posted.next_power_of_two())
            .ok_or_else(|| failed("there is no memory".into()))?;
        let error = match Self::ask(&hints, Some(own), abi::SOURCE) {
            Ok(offer) => return Ok(offer),
            Err(error) => error,
        };
        let there = Self::providers(library);
        let known = |there: &String| there == provider || there.split(';').any(|part| part == provider);
        if there.iter().any(known) {
            let cause = match error {
                NOTHING_FOUND => format!("provider '{provider}' cannot use {}", own.ip()),
                error => format!("provider '{provider}': {}", library.words(error as isize)),
            };
            return Err(failed(cause).hint("ip address show"));
        }
        let list = if there.is_empty() { "none".into() } else { format!("'{}'", there.join("', '")) };
        let cause =
            format!("libfabric has no provider '{provider}' with reliable messages; there are {list}");
        let best = if there.iter().any(|there| there == "net") { "net" } else { "tcp" };
        let place = object.split_once(',').map_or("/etc/linkbraid/NAME", |(_, place)| place);
        Err(failed(cause).hint(format!("--transport ofi:{best},{place}")))
    }

    /// The names of all providers that could be used.
    pub fn providers(library: &'static Library) -> Vec<String> {
        let Some(hints) = Self::hints(library, None, 0) else { return Vec::new() };
        let Ok(all) = Self::ask(&hints, None, 0) else { return Vec::new() };
        let mut names: Vec<String> = Vec::new();
        let mut next = all.info;
        // SAFETY: a list from the library, each with its attributes, ends with a null pointer.
        while let Some(info) = unsafe { next.as_ref() } {
            // SAFETY: as above; the name is a string or null.
            unsafe {
                let name = (*info.fabric_attr).prov_name;
                if !name.is_null() {
                    let name = CStr::from_ptr(name).to_string_lossy().into_owned();
                    if !names.contains(&name) {
                        names.push(name);
                    }
                }
            }
            next = info.next;
        }
        names
    }

    /// How the provider writes the address of a peer.
    ///
    /// # Errors
    /// It knows no such address; in words.
    pub fn address_of(&self, peer: SocketAddr) -> Result<Vec<u8>, String> {
        if !self.by_name() {
            use nix::sys::socket::SockaddrLike;
            let raw = SockaddrStorage::from(peer);
            // SAFETY: the length is that of what the pointer points to.
            let bytes = unsafe { std::slice::from_raw_parts(raw.as_ptr().cast::<u8>(), raw.len() as usize) };
            return Ok(bytes.to_vec());
        }
        let name = self.name().ok_or("the provider has no name")?;
        let hints = Self::hints(self.loaded, Some(&name), 0).ok_or("there is no memory")?;
        let found = Self::ask(&hints, Some(peer), 0).map_err(|error| self.loaded.words(error as isize))?;
        // SAFETY: the address has that many bytes, or is null.
        let bytes = unsafe {
            let Info { dest_addr, dest_addrlen, .. } = *found.info;
            if dest_addr.is_null() {
                return Err(format!("the provider knows no {peer}"));
            }
            std::slice::from_raw_parts(dest_addr.cast::<u8>(), dest_addrlen)
        };
        Ok(bytes.to_vec())
    }

    /// The provider's full name.
    pub fn name(&self) -> Option<CString> {
        // SAFETY: the offer is alive, with its attributes; the name is a string or null.
        unsafe {
            let name = (*(*self.info).fabric_attr).prov_name;
            (!name.is_null()).then(|| CStr::from_ptr(name).to_owned())
        }
    }

    /// Whether addresses are names, which the provider looks up, rather than those of IP.
    pub fn by_name(&self) -> bool {
        // SAFETY: the offer is alive.
        let format = unsafe { (*self.info).addr_format };
        !IP_FORMATS.contains(&format)
    }

    /// The library that this is an offer of.
    pub fn loaded(&self) -> &'static Library {
        self.loaded
    }

    /// For the calls that open what is offered.
    pub(super) fn info(&self) -> *mut Info {
        self.info
    }

    /// Bytes of the longest message.
    pub fn message_max(&self) -> usize {
        // SAFETY: the offer is alive, with its attributes.
        unsafe { (*(*self.info).ep_attr).max_msg_size }
    }

    /// Whether the provider wants what it is given to be registered, and bound to the endpoint.
    pub(super) fn memory_modes(&self) -> (bool, bool) {
        // SAFETY: the offer is alive, with its attributes.
        let modes = unsafe { (*(*self.info).domain_attr).mr_mode };
        (modes & abi::MR_LOCAL != 0, modes & abi::MR_ENDPOINT != 0)
    }
}
