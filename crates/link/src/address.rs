//! IP addresses of interfaces, kept as the kernel's own messages so that they go back as they were.

use std::net::IpAddr;

use nix::{
    libc,
    time::{ClockId, clock_gettime},
};
use serde::{Deserialize, Serialize};

use crate::{
    Netlink,
    error::{Error, Kind, Result},
    netlink::{CREATE, EXCL, REPLACE},
    rtnl::{ADDRESS_HEADER, Builder, Raw, attribute, attributes, number, number_at, text},
};

/// `IFA_FLAGS`, `IFA_PROTO` (linux/if_addr.h).
const IFA_FLAGS: u16 = 8;
const IFA_PROTO: u16 = 11;
/// Values of `IFA_PROTO`: made by the kernel for loopback, from a router's announcement, as link-local.
const MADE_BY_KERNEL: std::ops::RangeInclusive<u8> = 1..=3;
/// A lifetime that does not end.
const FOREVER: u32 = u32::MAX;

/// One IP address of an interface.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Address {
    /// The host's own address.
    pub ip: IpAddr,
    /// Length of the prefix, in bits.
    pub prefix: u8,
    /// The index of the interface that has it.
    pub index: u32,
    /// The kernel's flags of it, `IFA_F_*`.
    pub flags: u32,
    /// Made by the kernel itself: IPv6 link-local, from a router's announcement, or temporary. Such addresses come
    /// and go with the interface's IPv6 and are never moved.
    pub automatic: bool,
    /// Seconds since boot when it was read; lifetimes count from here.
    pub(crate) read_at: u64,
    /// The kernel's message.
    pub(crate) message: Vec<u8>,
}

impl Address {
    pub(crate) fn parse(raw: &Raw, read_at: u64) -> Option<Self> {
        let message = &raw.payload;
        let find = |kind| attribute(message, ADDRESS_HEADER, kind);
        // IFA_LOCAL is the host's address on point-to-point links, where IFA_ADDRESS is the other end's.
        let ip = ip(find(libc::IFA_LOCAL).or_else(|| find(libc::IFA_ADDRESS))?)?;
        let flags = find(IFA_FLAGS).and_then(number).unwrap_or(u32::from(*message.get(2)?));
        let by_kernel = find(IFA_PROTO).and_then(|p| p.first()).is_some_and(|p| MADE_BY_KERNEL.contains(p));
        Some(Self {
            ip,
            prefix: *message.get(1)?,
            index: number_at(message, 4),
            flags,
            automatic: ip.is_ipv6() && (by_kernel || flags & libc::IFA_F_TEMPORARY != 0),
            read_at,
            message: message.clone(),
        })
    }

    /// Not yet proven to be free of duplicates (IPv6).
    #[must_use]
    pub fn tentative(&self) -> bool {
        self.flags & libc::IFA_F_TENTATIVE != 0
    }

    /// Given for a time, as DHCP does (RFC 2131): the kernel removes it unless somebody renews it.
    #[must_use]
    pub fn is_leased(&self) -> bool {
        self.ip.is_ipv4() && self.flags & libc::IFA_F_PERMANENT == 0
    }

    /// Its attributes without those that change by themselves.
    pub(crate) fn stable_attributes(&self) -> Vec<(u16, &[u8])> {
        attributes(&self.message, ADDRESS_HEADER)
            .filter(|(kind, _)| ![IFA_FLAGS, libc::IFA_CACHEINFO].contains(kind))
            .collect()
    }

    /// The message that adds it to interface `index`, with `flags`; none when its lifetime is over. Labels that
    /// start with the name `from` start with `to` instead.
    fn request(&self, index: u32, flags: u32, rename: Option<(&str, &str)>, now: u64) -> Option<Vec<u8>> {
        let mut header = self.message.get(..ADDRESS_HEADER)?.to_vec();
        header[2] = (flags & 0xff) as u8;
        header[4..8].copy_from_slice(&index.to_ne_bytes());
        let mut request = Builder::new(&header);
        for (kind, value) in attributes(&self.message, ADDRESS_HEADER) {
            request = match kind {
                IFA_FLAGS => request,
                libc::IFA_CACHEINFO => {
                    request.bytes(kind, &remaining(value, now.saturating_sub(self.read_at))?)
                }
                libc::IFA_LABEL => match rename {
                    Some(names) => request.text(kind, &relabel(&text(value), names)),
                    None => request.bytes(kind, value),
                },
                _ => request.bytes(kind, value),
            };
        }
        Some(request.u32(IFA_FLAGS, flags).finish())
    }
}

/// `struct ifa_cacheinfo` after `elapsed` seconds; none when the address is no longer valid.
fn remaining(cacheinfo: &[u8], elapsed: u64) -> Option<Vec<u8>> {
    let elapsed = u32::try_from(elapsed).unwrap_or(FOREVER);
    let mut left = cacheinfo.to_vec();
    // ifa_prefered, then ifa_valid.
    for (offset, may_end) in [(0, true), (4, false)] {
        let seconds = number_at(cacheinfo, offset);
        if seconds == FOREVER || left.len() < offset + 4 {
            continue;
        }
        let rest = seconds.saturating_sub(elapsed);
        if rest == 0 && !may_end {
            return None;
        }
        left[offset..offset + 4].copy_from_slice(&rest.to_ne_bytes());
    }
    Some(left)
}

/// `eth0:web` on `eth0` is `bond0:web` on `bond0`, as far as a label (15 bytes) can hold it.
fn relabel(label: &str, (from, to): (&str, &str)) -> String {
    let new = match label.strip_prefix(from) {
        Some(rest) if rest.is_empty() || rest.starts_with(':') => format!("{to}{rest}"),
        _ => return label.to_owned(),
    };
    if new.len() < libc::IFNAMSIZ { new } else { to.to_owned() }
}

/// An IP address in wire order, by its length.
pub(crate) fn ip(bytes: &[u8]) -> Option<IpAddr> {
    if let Ok(four) = <[u8; 4]>::try_from(bytes) {
        return Some(four.into());
    }
    <[u8; 16]>::try_from(bytes).ok().map(Into::into)
}

/// The same from the address.
pub(crate) fn octets(ip: IpAddr) -> Vec<u8> {
    match ip {
        IpAddr::V4(ip) => ip.octets().to_vec(),
        IpAddr::V6(ip) => ip.octets().to_vec(),
    }
}

/// Seconds since boot, asleep or not: lifetimes go on while the machine sleeps.
fn since_boot() -> u64 {
    clock_gettime(ClockId::CLOCK_BOOTTIME).map_or(0, |time| time.tv_sec().unsigned_abs())
}

impl Netlink {
    /// The addresses of an interface, both families, in the kernel's order.
    ///
    /// # Errors
    /// When the kernel refuses the list.
    pub async fn addresses(&self, index: u32) -> Result<Vec<Address>> {
        Ok(self.all_addresses().await?.into_iter().filter(|address| address.index == index).collect())
    }

    /// The indices of the interfaces that have an address.
    ///
    /// # Errors
    /// When the kernel refuses the list.
    pub async fn holders(&self, ip: IpAddr) -> Result<Vec<u32>> {
        let all = self.all_addresses().await?;
        Ok(all.into_iter().filter(|address| address.ip == ip).map(|address| address.index).collect())
    }

    pub(crate) async fn all_addresses(&self) -> Result<Vec<Address>> {
        let list = self
            .dump(libc::RTM_GETADDR, vec![0; ADDRESS_HEADER])
            .await
            .map_err(|refusal| refusal.about("netlink", "cannot list the addresses"))?;
        let now = since_boot();
        Ok(list.iter().filter_map(|raw| Address::parse(raw, now)).collect())
    }

    /// Gives the interface an address, as `ip address add IP/PREFIX dev IF` does.
    ///
    /// # Errors
    /// [`Kind::Exists`] when it has it already, [`Kind::BadValue`] for a prefix that is too long.
    pub async fn add_address(&self, index: u32, ip: IpAddr, prefix: u8) -> Result<()> {
        let request = plain(index, ip, prefix);
        let asked = self.ask(libc::RTM_NEWADDR, CREATE | EXCL, request);
        self.about_link(index, &format!("cannot add the address {ip}/{prefix}"), asked).await
    }

    /// Takes an address from the interface.
    ///
    /// # Errors
    /// [`Kind::NotFound`] when it does not have it.
    pub async fn del_address(&self, index: u32, ip: IpAddr, prefix: u8) -> Result<()> {
        let asked = self.ask(libc::RTM_DELADDR, 0, plain(index, ip, prefix));
        self.about_link(index, &format!("cannot remove the address {ip}/{prefix}"), asked).await
    }

    /// Puts a recorded address on interface `index`, as it was: an address that is there already and one whose
    /// lifetime is over are no error.
    pub(crate) async fn put_address(
        &self,
        address: &Address,
        index: u32,
        rename: Option<(&str, &str)>,
    ) -> Result<()> {
        let what = || format!("cannot add the address {}/{}", address.ip, address.prefix);
        let now = since_boot();
        let wanted =
            address.flags & !(libc::IFA_F_TENTATIVE | libc::IFA_F_DADFAILED | libc::IFA_F_DEPRECATED);
        // An IPv6 address that this host holds needs no second search for duplicates, which would take a second and
        // refuse routes that prefer it meanwhile. The flag that skips the search is taken off again below.
        let (first, then) =
            if address.ip.is_ipv6() { (wanted | libc::IFA_F_NODAD, wanted) } else { (wanted, wanted) };
        let Some(request) = address.request(index, first, rename, now) else { return Ok(()) };
        match self.about_link(index, &what(), self.ask(libc::RTM_NEWADDR, CREATE | EXCL, request)).await {
            Err(error) if error.kind != Kind::Exists => return Err(error),
            _ => {}
        }
        if first != then
            && let Some(request) = address.request(index, then, rename, now)
        {
            self.about_link(index, &what(), self.ask(libc::RTM_NEWADDR, REPLACE, request)).await?;
        }
        Ok(())
    }

    /// Takes a recorded address from interface `index`; gone already, or gone with the interface, is no error.
    pub(crate) async fn remove_address(&self, address: &Address, index: u32) -> Result<()> {
        let Some(mut request) = address.message.get(..ADDRESS_HEADER).map(Builder::new) else {
            return Ok(());
        };
        for (kind, value) in attributes(&address.message, ADDRESS_HEADER) {
            if kind == libc::IFA_LOCAL || kind == libc::IFA_ADDRESS {
                request = request.bytes(kind, value);
            }
        }
        let mut request = request.finish();
        request[4..8].copy_from_slice(&index.to_ne_bytes());
        let what = format!("cannot remove the address {}/{}", address.ip, address.prefix);
        gone_is_fine(self.about_link(index, &what, self.ask(libc::RTM_DELADDR, 0, request)).await)
    }
}

/// What is to be removed may be gone already.
pub(crate) fn gone_is_fine(result: Result<()>) -> Result<()> {
    match result {
        Err(Error { kind: Kind::NotFound | Kind::NoDevice, .. }) => Ok(()),
        other => other,
    }
}

/// The message about one plain address.
fn plain(index: u32, ip: IpAddr, prefix: u8) -> Vec<u8> {
    let (family, bytes) = match ip {
        IpAddr::V4(ip) => (libc::AF_INET, ip.octets().to_vec()),
        IpAddr::V6(ip) => (libc::AF_INET6, ip.octets().to_vec()),
    };
    let mut header = vec![family as u8, prefix, 0, 0];
    header.extend(index.to_ne_bytes());
    let mut request = Builder::new(&header).bytes(libc::IFA_LOCAL, &bytes).bytes(libc::IFA_ADDRESS, &bytes);
    if let IpAddr::V4(ip) = ip
        && prefix < 31
    {
        // The kernel leaves the broadcast address of an IPv4 network to whoever adds the address.
        let hosts = u32::MAX.checked_shr(prefix.into()).unwrap_or(0);
        request = request.bytes(libc::IFA_BROADCAST, &(u32::from(ip) | hosts).to_be_bytes());
    }
    request.finish()
}

#[cfg(test)]
mod tests;
