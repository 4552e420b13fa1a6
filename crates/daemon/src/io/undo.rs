//! Changes of interfaces that belong together: if one fails, those before it are taken back.

use crate::io::error::About as _;
use linkbraid_api::Error;
use linkbraid_link::Netlink;
use linkbraid_wire::MacAddr;
use std::net::IpAddr;

/// One change of an interface.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Op {
    Mac { from: MacAddr, to: MacAddr },
    Mtu { from: u32, to: u32 },
    AddAddress(IpAddr, u8),
    RemoveAddress(IpAddr, u8),
}

impl Op {
    const fn inverse(self) -> Self {
        match self {
            Self::Mac { from, to } => Self::Mac { from: to, to: from },
            Self::Mtu { from, to } => Self::Mtu { from: to, to: from },
            Self::AddAddress(ip, prefix) => Self::RemoveAddress(ip, prefix),
            Self::RemoveAddress(ip, prefix) => Self::AddAddress(ip, prefix),
        }
    }

    async fn carry_out(self, netlink: &Netlink, name: &str, ifindex: u32) -> Result<(), Error> {
        let (done, what) = match self {
            Self::Mac { to, .. } => (netlink.set_mac(ifindex, to).await, format!("cannot set MAC {to}")),
            Self::Mtu { to, .. } => (netlink.set_mtu(ifindex, to).await, format!("cannot set MTU {to}")),
            Self::AddAddress(ip, prefix) => (
                netlink.add_address(ifindex, ip, prefix).await,
                format!("cannot add address '{ip}/{prefix}'"),
            ),
            Self::RemoveAddress(ip, prefix) => (
                netlink.del_address_alone(ifindex, ip, prefix).await,
                format!("cannot remove address '{ip}/{prefix}'"),
            ),
        };
        done.about(name, what)
    }
}

/// The changes so far, each with the name and the index of its interface. They stay unless they are taken back.
pub(crate) struct UndoLog {
    pub netlink: Netlink,
    done: Vec<(String, u32, Op)>,
}

impl UndoLog {
    pub(crate) fn new(netlink: &Netlink) -> Self {
        Self { netlink: netlink.clone(), done: Vec::new() }
    }

    /// Carries out one more.
    pub(crate) async fn carry_out(&mut self, (name, ifindex): (&str, u32), op: Op) -> Result<(), Error> {
        op.carry_out(&self.netlink, name, ifindex).await?;
        self.done.push((name.to_owned(), ifindex, op));
        Ok(())
    }

    /// Takes all of them back, the last one first, because of an error; that, with what could not be taken back.
    pub(crate) async fn take_back(self, mut error: Error) -> Error {
        for (name, ifindex, op) in self.done.into_iter().rev() {
            error = not_undone(error, op.inverse().carry_out(&self.netlink, &name, ifindex).await.err());
        }
        error
    }
}

/// Why something failed, with what of it could not be undone.
pub(crate) fn not_undone(mut error: Error, others: impl IntoIterator<Item = Error>) -> Error {
    for other in others {
        error.cause.push_str(&format!("; what was done before could not be undone: {other}"));
    }
    error
}

#[cfg(test)]
mod tests;
