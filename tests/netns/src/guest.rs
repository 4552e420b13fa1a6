//! Guests of a lab's bonds: machines whose only link is a port of a bond.

use crate::{BOND, Net, sh};
use linkbraid_lab::Host;

/// What a guest calls its only link.
pub const GUEST_NIC: &str = "guest0";

impl Net {
    /// Takes a plain host from its switch and plugs it into the bond of the host `of`: its only link is [`GUEST_NIC`], which
    /// is still down and has no addresses.
    ///
    /// # Panics
    /// When a command is refused.
    #[track_caller]
    pub fn plug_in(&self, of: &str, guest: &str) -> Host<'_> {
        let (host, guest) = (self.host(of), self.host(guest));
        let port = format!("port-{}", guest.name());
        sh(guest, "ip link set eth0 down");
        sh(guest, "ip address flush dev eth0");
        sh(
            host,
            &format!("ip link add {port} type veth peer name {GUEST_NIC} netns {}", guest.netns().name()),
        );
        sh(host, &format!("ip link set {port} master {BOND} up"));
        // As machines do, and unlike the lab's hosts, it asks whether somebody else has its addresses.
        sh(guest, &format!("sysctl -q -w net.ipv6.conf.{GUEST_NIC}.accept_dad=1"));
        guest
    }

    /// The same, with its link up, and with addresses that end in `number`.
    ///
    /// # Panics
    /// When a command is refused.
    #[track_caller]
    pub fn move_in(&self, of: &str, guest: &str, number: u8) -> Host<'_> {
        let guest = self.plug_in(of, guest);
        for line in [
            format!("ip link set {GUEST_NIC} address 02:00:00:00:77:{number:02x}"),
            format!("ip address add 198.18.0.{number}/24 dev {GUEST_NIC}"),
            format!("ip address add 2001:db8::{number}/64 dev {GUEST_NIC}"),
            format!("ip link set {GUEST_NIC} up"),
        ] {
            sh(guest, &line);
        }
        guest
    }
}
