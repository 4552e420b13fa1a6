//! The VXLAN device of a fabric.

use linkbraid_link::{Kind, Netlink, is_up, vxlan_name, vxlan_serves};

/// A device that goes when it is dropped.
pub(super) struct Device {
    name: String,
    index: u32,
    port: u16,
}

impl Device {
    /// Removes the device that a killed daemon left for the interface with index `tap`: it has its name, and its port.
    pub(super) fn clear(tap: u32) {
        apart(move || async move {
            if let Ok(netlink) = Netlink::new() {
                sweep(&netlink, Some(tap)).await;
            }
        });
    }

    /// Makes the device that serves the interface with index `tap`. What is wrong otherwise. It is down.
    pub(super) fn make(fabric: &str, tap: u32, port: u16, v6: bool) -> Result<Self, String> {
        let alias = format!("linkbraid: frames of fabric {fabric} past the daemon");
        let made = apart(move || async move {
            let netlink = Netlink::new()?;
            // Packets without a checksum of their own, as over IPv4, were joined below already.
            netlink.create_vxlan(tap, &alias, port, v6).await
        });
        let index = of_kernel(made, port)?;
        Ok(Self { name: vxlan_name(tap), index, port })
    }

    /// Sets it up, once somebody looks at what comes: its own stack must get nothing. What is wrong otherwise.
    pub(super) fn set_up(&self) -> Result<(), String> {
        let index = self.index;
        of_kernel(apart(move || async move { Netlink::new()?.set_up(index).await }), self.port)
    }

    pub(super) fn index(&self) -> u32 {
        self.index
    }

    /// Whether it is there and set up.
    pub(super) fn is_there(&self) -> bool {
        is_up(&self.name, self.index)
    }
}

impl Drop for Device {
    fn drop(&mut self) {
        let index = self.index;
        let gone = apart(move || async move { Netlink::new()?.delete_link(index).await });
        if let Some(Err(error)) = gone {
            tracing::debug!(%error, "the VXLAN device is gone already");
        }
    }
}

/// Removes the devices that daemons left which were killed: that of this interface, and those whose interface is no more.
pub(crate) async fn sweep(netlink: &Netlink, tap: Option<u32>) {
    let Ok(links) = netlink.links().await else { return };
    for link in &links {
        let Some(serves) = vxlan_serves(link) else { continue };
        let lives = links.iter().any(|other| other.index == serves && other.kind.as_deref() == Some("tun"));
        if (Some(serves) == tap || !lives)
            && let Err(error) = netlink.delete_link(link.index).await
        {
            tracing::warn!(%error, "what a killed daemon left stays");
        }
    }
}

/// What the kernel said to a thread, in words.
fn of_kernel<T>(made: Option<linkbraid_link::Result<T>>, port: u16) -> Result<T, String> {
    made.ok_or("a thread failed")?.map_err(|error| {
        let port = if error.kind == Kind::Exists { format!(" (UDP port {port})") } else { String::new() };
        format!("{}: {}{port}", error.what, error.cause())
    })
}

/// Asks the kernel on a thread of its own, whoever calls: it may be the loop, which must not start another one. None if
/// that thread failed.
fn apart<F, T>(ask: impl FnOnce() -> F + Send) -> Option<T>
where
    F: Future<Output = T>,
    T: Send,
{
    std::thread::scope(|scope| {
        let work = || {
            let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build().ok()?;
            Some(runtime.block_on(async { ask().await }))
        };
        scope.spawn(work).join().ok().flatten()
    })
}
