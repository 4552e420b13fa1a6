//! One bond as the daemon holds it.

use crate::{
    io::{
        clock::{Clock, epoch},
        error::About as _,
        identity,
        state::SavedBond,
    },
    world::{
        event::Event,
        history::{Feed, History},
        stripe, tables,
    },
};
use linkbraid_api::{Error, Weight};
use linkbraid_dataplane::{self as dataplane, DataPath, HookChoice, LatencyMeter};
use linkbraid_link::{ArpPlusSender, LinkInfo, Netlink, announcements};
use linkbraid_proto::host::{self, Host};
use linkbraid_wire::{HostId, MacAddr};
use std::{collections::BTreeMap, net::IpAddr, path::PathBuf};
use tokio::{
    io::{Interest, unix::AsyncFd},
    sync::mpsc,
    task::JoinHandle,
};

pub(crate) mod class;
mod drive;
pub(crate) mod events;
mod find;

/// A member whose link does not tell its speed gets this weight, in Mbit/s.
const WEIGHT_MBIT_UNKNOWN: u32 = 1000;
/// One member.
#[derive(Debug, Clone)]
pub(crate) struct Member {
    pub slot: u8,
    pub ifindex: u32,
    pub name: String,
    pub mac: MacAddr,
    /// Set up by the administrator.
    pub admin_up: bool,
    /// With carrier, as netlink told last.
    pub carrier: bool,
    /// With carrier, as the poll told last: it is earlier, where the driver has an answer.
    pub polled: Option<bool>,
    /// In the bond; somebody may take it out by hand.
    pub ours: bool,
    /// Added just now, and not yet known to reach anybody.
    pub joining: bool,
    /// Peers were told that it leaves; it still takes frames in.
    pub leaving: bool,
    /// The link's own speed, if it tells one.
    pub speed_mbit: Option<u32>,
    pub full_duplex: Option<bool>,
    pub weight: Weight,
    /// The number of its class; 0 for none.
    pub class: u8,
}

impl Member {
    /// Whether it has carrier.
    pub(crate) fn has_carrier(&self) -> bool {
        self.polled.unwrap_or(self.carrier)
    }

    /// Why it carries no traffic, in words; `known` is what the machine knows of it.
    pub(crate) fn reason(&self, known: Option<&host::Member>) -> &'static str {
        match (self.ours, self.admin_up, self.has_carrier()) {
            _ if known.is_some_and(host::Member::live) => "",
            _ if self.leaving => "leaving",
            (false, ..) => "taken out of the bond by hand",
            (_, false, _) => "set down",
            (_, true, false) => "no carrier",
            _ if known.is_some_and(|known| known.alive) => "joining: no peer has answered through it yet",
            _ => "carrier is back, waiting until it lasts",
        }
    }

    /// Its share.
    pub(crate) fn weight_mbit(&self) -> u32 {
        match self.weight {
            Weight::Mbit(mbit) => mbit,
            Weight::Auto => self.speed_mbit.filter(|mbit| *mbit > 0).unwrap_or(WEIGHT_MBIT_UNKNOWN),
        }
    }
}

/// One bond.
pub(crate) struct Bond {
    pub saved: SavedBond,
    pub ifindex: u32,
    /// What its interface is called; somebody may rename it.
    interface: String,
    pub mac: MacAddr,
    pub addresses: Vec<(IpAddr, u8)>,
    pub members: Vec<Member>,
    /// Names of members by slot, of those that are gone too: their last events come later.
    pub names: BTreeMap<u8, String>,
    /// The machine that knows its peers and lanes, and what the data path is to hold.
    pub host: Host,
    pub path: DataPath,
    /// Members that are fabrics of this daemon, a bit a slot, as the data path was told.
    held: Option<u32>,
    pub history: History,
    /// The neighbour table is to be asked for.
    pub wants_neighbours: bool,
    /// Questions that the kernel had asked everyone when they were counted last.
    pub asked_all: u64,
    /// What `gso_max_size` was set to.
    pub stripe_bytes: u32,
    /// Other members carry traffic than when the stripe length was set.
    pub stripe_stale: bool,
    /// What measures where the time goes, while it does.
    pub latency: Option<LatencyMeter>,
    /// Where the control groups of its classes are.
    pub group: PathBuf,
    /// What tells mirrored frames of this daemon from those of others before it.
    pub epoch: u32,
    /// What the data path was told of its classes.
    pub classes: class::Written,
    reader: JoinHandle<()>,
}

impl Bond {
    /// Loads the data path and the protocol of a bond whose interface is there. Members come later.
    pub(crate) fn new(
        saved: SavedBond,
        ifindex: u32,
        mac: MacAddr,
        hook: HookChoice,
        events: mpsc::Sender<Event>,
        feed: Feed,
    ) -> Result<Self, Error> {
        let mut path = DataPath::load(&saved.pins, hook).about(&saved.name, "cannot load the data path")?;
        let left = tables::adopt(&path).about(&saved.name, "cannot read the data path's tables")?;
        path.attach_bond(ifindex).about(&saved.name, "cannot attach the data path")?;
        let reader = read_frames(&saved.name, ifindex, &path, events)?;
        let group = class::class_group(&saved.pins);
        let seed = identity::new_seed()?;
        let config = host::Config { host_id: HostId(saved.host_id), epoch: epoch(), seed };
        Ok(Self {
            names: BTreeMap::new(),
            host: Host::new(config, drive::settings(&saved), left),
            history: History::new(&saved.name, feed),
            wants_neighbours: false,
            asked_all: 0,
            interface: saved.name.clone(),
            saved,
            ifindex,
            mac,
            addresses: Vec::new(),
            members: Vec::new(),
            path,
            held: None,
            stripe_bytes: 0,
            stripe_stale: false,
            epoch: identity::new_seed()? as u32,
            latency: None,
            group,
            classes: class::Written::default(),
            reader,
        })
    }

    pub(crate) fn member(&self, name: &str) -> Option<&Member> {
        self.members.iter().find(|member| member.name == name)
    }

    /// The lowest slot that is free.
    pub(crate) fn free_slot(&self) -> Option<u8> {
        (0..dataplane::MEMBERS_MAX as u8).find(|slot| self.members.iter().all(|member| member.slot != *slot))
    }

    /// Reads the bond's addresses from the kernel and tells the protocol.
    pub(crate) async fn read_addresses(&mut self, netlink: &Netlink, clock: Clock) -> Result<(), Error> {
        let addresses =
            netlink.addresses(self.ifindex).await.about(&self.saved.name, "cannot read its addresses")?;
        self.addresses = addresses.iter().map(|address| (address.ip, address.prefix)).collect();
        self.tell_own(clock);
        Ok(())
    }

    /// Reads what a link is like now; whether anything about the member changed.
    pub(crate) fn refresh_member(&mut self, link: &LinkInfo) -> bool {
        if link.index == self.ifindex && link.name != self.interface {
            self.interface.clone_from(&link.name);
            let text = format!(
                "its interface is called '{}' now; the bond is, when the daemon starts anew",
                link.name
            );
            self.history.bond(None, "renamed", text);
        }
        let Some(member) = self.members.iter_mut().find(|member| member.ifindex == link.index) else {
            return false;
        };
        let before = member.clone();
        read_link(member, link, self.ifindex);
        if before.name != member.name {
            let text = format!("renamed: it was '{}'", before.name);
            let name = member.name.clone();
            self.history.member(&name, "renamed", text);
            return true;
        }
        let of = |member: &Member| {
            let link = (member.admin_up, member.carrier, member.ours, member.mac);
            (link, member.weight_mbit(), member.full_duplex)
        };
        of(&before) != of(member)
    }

    /// Tells the data path which members go with this daemon: the interfaces of its fabrics.
    pub(crate) fn hold(&mut self, fabrics: &[u32]) -> Result<(), Error> {
        let held = self.members.iter().filter(|member| fabrics.contains(&member.ifindex));
        let mask = held.fold(0, |mask, member| mask | 1 << member.slot);
        if self.held != Some(mask) {
            self.path.set_held_slots(mask).about(&self.saved.name, "cannot write the data path's tables")?;
            self.held = Some(mask);
        }
        Ok(())
    }

    /// Sets the stripe length from the live members' rates.
    pub(crate) async fn write_stripe(&mut self, netlink: &Netlink) -> Result<(), Error> {
        self.stripe_stale = false;
        // The shortest that any traffic wants: a buffer does not know its class yet.
        let wanted = self.host.spreads().into_iter();
        let bytes = wanted
            .map(|weights| stripe::gso_max_size(self.saved.settings.stripe, &weights, self.saved.mtu))
            .min();
        let bytes = bytes.unwrap_or(stripe::GSO_BYTES_MAX);
        if bytes != self.stripe_bytes {
            netlink
                .set_gso_max(self.ifindex, bytes, None)
                .await
                .about(&self.saved.name, "cannot set the stripe length")?;
            self.stripe_bytes = bytes;
            let links = netlink.links().await.about(&self.saved.name, "cannot list the interfaces")?;
            for link in &links {
                self.write_stripe_above(netlink, link).await?;
            }
        }
        Ok(())
    }

    /// Gives an interface stacked on the bond, such as a VLAN, the bond's stripe length: TCP builds its buffers to the
    /// limit of the interface that a connection's route names, and the kernel hands this limit to no other.
    pub(crate) async fn write_stripe_above(&self, netlink: &Netlink, link: &LinkInfo) -> Result<(), Error> {
        // One with a MAC of its own is a guest: its frames keep to one lane.
        if link.lower != Some(self.ifindex) || link.mac != self.mac || self.stripe_bytes == 0 {
            return Ok(());
        }
        let differs = |size: u32| size != self.stripe_bytes;
        if differs(link.gso_max_size) || link.gso_ipv4_max_size.is_some_and(differs) {
            netlink
                .set_gso_max(link.index, self.stripe_bytes, None)
                .await
                .about(&self.saved.name, format!("cannot set the stripe length of '{}'", link.name))?;
        }
        Ok(())
    }

    pub(crate) fn send(&self, sender: &mut ArpPlusSender, slot: u8, frame: &[u8]) {
        let Some(member) = self.members.iter().find(|member| member.slot == slot) else { return };
        if let Err(error) = sender.send(member.ifindex, frame) {
            tracing::debug!(bond = %self.saved.name, member = %member.name, %error, "ARP+ frame not sent");
        }
    }

    /// Measures where the time goes, or does not any more.
    pub(crate) fn measure_latency(&mut self, on: bool) -> Result<(), Error> {
        let name = &self.saved.name;
        match (on, self.latency.take()) {
            (true, None) => {
                let meter = LatencyMeter::start(&self.path).about(name, "cannot measure latency")?;
                self.latency = Some(meter);
            }
            (true, meter) => self.latency = meter,
            (false, Some(meter)) => meter.stop(&self.path).about(name, "cannot stop measuring")?,
            // One that a daemon left when it died.
            (false, None) => self.path.set_latency(false).about(name, "cannot stop measuring")?,
        }
        Ok(())
    }

    /// The data path alone; the protocol ends without a word.
    pub(crate) fn into_path(self) -> DataPath {
        self.reader.abort();
        self.path
    }

    /// Tells plain hosts which MAC the bond's addresses are at now.
    pub(crate) fn announce(&mut self, sender: &mut ArpPlusSender, clock: Clock) {
        let ips: Vec<IpAddr> = self.addresses.iter().map(|(ip, _)| *ip).collect();
        let router = self.is_router();
        // Each segment must hear it, and the frame's source must be the member's own MAC.
        for member in self.host.members().iter().filter(|member| member.live()) {
            for mut frame in announcements(self.host.mac_for(member), &ips, router) {
                if let Some(source) = frame.get_mut(6..12) {
                    source.copy_from_slice(&member.mac.0);
                }
                self.send(sender, member.slot, &frame);
            }
        }
        // All plain hosts have the same MAC now.
        self.host.handle(clock.now(), host::Input::Broadcast);
    }
}

/// Reads name, MAC, carrier and speed of a link into a member.
pub(crate) fn read_link(member: &mut Member, link: &LinkInfo, bond: u32) {
    member.name.clone_from(&link.name);
    member.ours = link.controller == Some(bond);
    member.mac = link.mac;
    (member.admin_up, member.carrier) = (link.up, link.carrier);
    if link.up && link.carrier {
        let speed = linkbraid_link::speed(&link.name);
        member.speed_mbit = speed.map(|speed| speed.mbit);
        member.full_duplex = speed.and_then(|speed| speed.full_duplex);
    }
}

/// A task that hands ARP+ frames from the ring buffer to the loop.
fn read_frames(
    name: &str,
    ifindex: u32,
    path: &DataPath,
    events: mpsc::Sender<Event>,
) -> Result<JoinHandle<()>, Error> {
    let mut ring = path.arp_plus_ring().about(name, "cannot read ARP+ frames")?;
    // What came while no daemon ran would be taken for news: members heard that have failed since, hosts that have left.
    let stale = ring.discard();
    if stale > 0 {
        tracing::info!(bond = name, frames = stale, "ARP+ frames from before this daemon are thrown away");
    }
    // SAFETY: the ring owns its descriptor, gives the same one at every call, and lives in the AsyncFd.
    let registered = unsafe { AsyncFd::register_with_interest(ring, Interest::READABLE) };
    let mut ring = registered.map_err(std::io::Error::from).about(name, "cannot wait for ARP+ frames")?;
    Ok(tokio::task::spawn_local(async move {
        loop {
            let Ok(mut ready) = ring.readable_mut().await else { return };
            while let Some((slot, frame)) = ready.get_inner_mut().next_frame() {
                // A full channel leaves frames in the kernel's ring, which counts what it cannot take.
                if events.send(Event::Frame { ifindex, slot, frame }).await.is_err() {
                    return;
                }
            }
            ready.clear_ready();
        }
    }))
}
