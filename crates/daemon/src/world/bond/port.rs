//! The internal port of a bond: the port of its bridge by which its own frames and those of guests leave.

use crate::io::error::About as _;
use linkbraid_api::{Error, LinkName};
use linkbraid_dataplane::DataPath;
use linkbraid_link::{LinkInfo, Netlink, PortFlags};

/// Makes the internal port of the bond `name`, whose interface has the index `bond`, or puts it right, and sets it up; its index and
/// that of its other end.
pub(super) async fn make(
    netlink: &Netlink,
    path: &mut DataPath,
    (name, bond): (&LinkName, u32),
) -> Result<(u32, Option<u32>), Error> {
    let (port, end) = netlink.internal_port(bond).await.about(name, "cannot make its internal port")?;
    path.attach_port(port).about(name, "cannot attach the data path")?;
    netlink.set_up(port).await.about(name, "cannot set its internal port up")?;
    Ok((port, end))
}

/// Whether the port carries the frames of the bond with the index `bond`.
pub(super) fn works(port: &LinkInfo, bond: u32) -> bool {
    port.running()
        && port.kind.as_deref() == Some("veth")
        && port.controller == Some(bond)
        && port.port == Some(PortFlags::INTERNAL)
        && !port.port_blocked
}
