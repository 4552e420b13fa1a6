//! One bond as the daemon holds it.

mod find;
pub(crate) mod found;
mod port;
mod precedence;

use crate::{
    io::{
        clock::Clock,
        error::About as _,
        identity,
        keys::Object,
        state::{SavedBond, SavedClass},
    },
    world::{
        driven::{Driven, Guard, Shared},
        driving::Driving,
        history::{Feed, History},
        keys::Keys,
        member::Member,
        rules::Rules,
        stripe,
    },
};
use found::Found;
use linkbraid_api::{Auth, Borrow, Error, Fallback, Policy};
use linkbraid_dataplane::{self as dataplane, DataPath, LatencyMeter};
use linkbraid_link::{ArpPlusSender, LinkInfo, Netlink, forwards_ipv6};
use linkbraid_proto::{Secret, Time, answers, auth, host, host::StripeBasis, plan::ClassTerms};
use linkbraid_wire::{HostId, MacAddr};
use std::{net::IpAddr, sync::Arc};

/// One bond.
pub(crate) struct Bond {
    pub saved: SavedBond,
    pub ifindex: u32,
    pub mac: MacAddr,
    pub addresses: Vec<(IpAddr, u8)>,
    /// Its programs; the tables are written by the thread that drives it, too.
    pub path: DataPath,
    /// Members that are fabrics of this daemon, a bit a slot, as the data path knows them.
    held: Option<u32>,
    /// What `gso_max_size` was set to.
    pub stripe_bytes: u32,
    /// The port of the bridge by which frames leave.
    port: u32,
    /// Whether buffers of several UDP datagrams are cut before they come to the bond; none: not known.
    cuts: Option<bool>,
    /// What measures where the time goes, while it does.
    pub latency: Option<LatencyMeter>,
    /// The rules of its classes.
    pub rules: Rules,
    /// What the data path knows of precedence: classes, a bit each, and what members carry, in kbit/s by slot; none: not known.
    precedence: Option<(u32, [u32; dataplane::MEMBERS_MAX])>,
    /// What others have done to its interfaces.
    pub found: Found,
    /// The keys of ARP+.
    pub keys: Keys,
    /// While its MTU changes: the least that its members have meanwhile.
    pub mtu_meanwhile: Option<u32>,
    /// The MTU that its interface was given by hand, until its members get it.
    pub mtu_by_hand: Option<u32>,
    drive: Drive,
}

/// A bond's share of the thread that drives all; it ends with it.
struct Drive {
    bond: Arc<Shared>,
    driving: Arc<Driving>,
}

impl Drop for Drive {
    fn drop(&mut self) {
        self.driving.remove(&self.bond);
    }
}

impl Bond {
    /// A bond whose interface is there, with its data path. Its internal port and its members come later.
    pub(crate) fn new(
        saved: SavedBond,
        ifindex: u32,
        mac: MacAddr,
        path: DataPath,
        driving: Arc<Driving>,
        feed: Feed,
    ) -> Result<Self, Error> {
        let config = host::Config {
            host_id: HostId(saved.host_id),
            epoch: saved.epoch,
            secret: Secret::new(identity::new_secret()?),
        };
        let tables = (path.tables(), identity::new_seed()? as u32);
        let history = History::new(&saved.name, feed);
        let mut keys = Keys::default();
        keys.follow(Object::Bond(&saved.name), saved.settings.auth, &saved.settings.key);
        let settings = settings(&saved, saved.mtu, keys.settings());
        let driven = Driven::new((&saved.name, ifindex), settings, config, tables, history)?;
        Ok(Self {
            rules: Rules::new(&saved.name, &saved.place),
            saved,
            ifindex,
            mac,
            addresses: Vec::new(),
            path,
            held: None,
            stripe_bytes: 0,
            port: 0,
            cuts: None,
            latency: None,
            precedence: None,
            found: Found::default(),
            keys,
            mtu_meanwhile: None,
            mtu_by_hand: None,
            drive: Drive { bond: Arc::new(Shared::new(driven)), driving },
        })
    }

    /// Begins to speak to peers; the thread that drives bonds goes on with it.
    pub(crate) async fn start(&self, clock: Clock) -> Result<(), Error> {
        self.driven().start(clock.now());
        self.drive.driving.add(self.drive.bond.clone()).await
    }

    /// What another thread drives. It waits while this is held.
    pub(crate) fn driven(&self) -> Guard<'_> {
        self.drive.bond.lock()
    }

    /// The members as they are now.
    pub(crate) fn members(&self) -> Vec<Member> {
        self.driven().members.clone()
    }

    pub(crate) fn member(&self, name: &str) -> Option<Member> {
        self.driven().members.iter().find(|member| member.name == name).cloned()
    }

    /// Reports something about the bond as a whole.
    pub(crate) fn report(&self, new: Option<&str>, reason: &str, text: impl Into<String>) {
        self.driven().history.bond(new, reason, text);
    }

    /// Reports something about a member.
    pub(crate) fn report_member(&self, member: &str, reason: &str, text: impl Into<String>) {
        self.driven().history.member(member, reason, text);
    }

    /// Gives the members what is on file of them, and of the bond.
    pub(crate) fn follow_saved(&self) {
        let mut driven = self.driven();
        for saved in &self.saved.members {
            for member in driven.members.iter_mut().filter(|member| member.slot == saved.slot) {
                (member.joining, member.leaving) = (saved.joining, saved.leaving);
                (member.settings, member.class) = (saved.settings, saved.class);
            }
        }
        driven.want_mtu(self.mtu());
    }

    /// What its members have to carry now, in bytes.
    fn mtu(&self) -> u32 {
        self.mtu_meanwhile.unwrap_or(self.saved.mtu)
    }

    /// Follows the name of a member's link, by which it is looked for when it is gone; whether that is another one than before.
    pub(crate) fn follow_name(&mut self, link: &LinkInfo) -> bool {
        let before = self.saved.members.iter_mut().map(|member| &mut member.before.link);
        let renamed = before.filter(|before| before.index == link.index && before.name != link.name);
        renamed.map(|before| before.name.clone_from(&link.name)).count() > 0
    }

    /// The lowest slot that is free.
    pub(crate) fn free_slot(&self) -> Option<u8> {
        let driven = self.driven();
        (0..dataplane::MEMBERS_MAX as u8)
            .find(|slot| driven.members.iter().all(|member| member.slot != *slot))
    }

    /// Brings machine and tables up to date with members, settings and addresses.
    pub(crate) fn write_tables(&mut self, clock: Clock) -> Result<(), Error> {
        self.report_own(clock);
        self.follow_keys();
        let mut driven = self.driven();
        driven.settings = settings(&self.saved, self.mtu(), self.keys.settings());
        driven.write_tables(clock.now())
    }

    fn follow_keys(&mut self) -> bool {
        let settings = &self.saved.settings;
        self.keys.follow(Object::Bond(&self.saved.name), settings.auth, &settings.key)
    }

    /// Takes over the keys of its file, where that is another one than before.
    pub(crate) fn look_at_keys(&mut self, clock: Clock) -> Result<(), Error> {
        if !self.follow_keys() {
            return Ok(());
        }
        match (&self.keys.error, self.keys.in_words()) {
            (Some(error), _) => self.report(None, "keys_refused", error.to_string()),
            (None, Some(keys)) => self.report(None, "keys", format!("its keys are {keys} now")),
            (None, None) => {}
        }
        self.write_tables(clock)
    }

    /// Reads the bond's addresses from the kernel and hands them to the machine.
    pub(crate) async fn read_addresses(&mut self, netlink: &Netlink, clock: Clock) -> Result<(), Error> {
        let addresses =
            netlink.addresses(self.ifindex).await.about(&self.saved.name, "cannot read its addresses")?;
        self.addresses = addresses.iter().map(|address| (address.ip, address.prefix)).collect();
        self.report_own(clock);
        Ok(())
    }

    /// Hands in the bond's MAC and addresses, and whether the kernel forwards IPv6 for others, as its own advertisements say:
    /// without that flag hosts would drop us as their router.
    fn report_own(&self, clock: Clock) {
        let router = forwards_ipv6(&self.saved.name);
        let own = answers::Own { mac: self.mac, addresses: self.addresses.clone(), router };
        self.driven().report_own(clock.now(), own);
    }

    /// Reads what a member's link is like now, as the kernel may not announce it; the link, if that is a member.
    pub(crate) async fn read_member(&self, netlink: &Netlink, index: u32, clock: Clock) -> Option<LinkInfo> {
        let since = self.driven().announced(index)?;
        let link = netlink.link_by_index(index).await.ok()?;
        let speed = linkbraid_link::speed(&link.name);
        self.driven().link_read(clock.now(), since, &link, speed);
        Some(link)
    }

    /// Writes into the data path which members go with this daemon: the interfaces of its fabrics.
    pub(crate) fn hold(&mut self, fabrics: &[u32]) -> Result<(), Error> {
        let members = self.members();
        let held = members.iter().filter(|member| fabrics.contains(&member.ifindex));
        let mask = held.fold(0, |mask, member| mask | 1 << member.slot);
        if self.held != Some(mask) {
            self.path.set_held_slots(mask).about(&self.saved.name, "cannot write the data path's tables")?;
            self.held = Some(mask);
        }
        Ok(())
    }

    /// Whether control groups, keys or fabrics that come and go without a word make a difference to it.
    pub(crate) fn has_to_look(&self) -> bool {
        self.held != Some(0) || !self.saved.classes.is_empty() || self.saved.settings.auth != Auth::Off
    }

    /// Whether other members carry traffic than when the stripe length was set.
    pub(crate) fn is_stripe_stale(&self) -> bool {
        self.driven().stripe_stale
    }

    /// Does what follows from the rates of members: the length of stripes, and what frames with precedence may have.
    pub(crate) async fn follow_rates(&mut self, netlink: &Netlink, now: Time) -> Result<(), Error> {
        self.write_precedence(netlink, now).await?;
        self.write_stripe(netlink).await
    }

    /// Sets the stripe length from the members' rates, and has buffers of UDP cut. Connections that exist take the length over, too.
    pub(crate) async fn write_stripe(&mut self, netlink: &Netlink) -> Result<(), Error> {
        self.cut_datagrams();
        let bytes = self.stripe_wanted();
        if bytes == self.stripe_bytes {
            return Ok(());
        }
        netlink
            .set_gso_max(self.ifindex, bytes, None)
            .await
            .about(&self.saved.name, "cannot set the stripe length")?;
        self.path
            .set_stripe(stripe::data_bytes(bytes))
            .about(&self.saved.name, "cannot write the data path's tables")?;
        let is_first = std::mem::replace(&mut self.stripe_bytes, bytes) == 0;
        let mut stale = vec![self.ifindex];
        match netlink.links().await {
            Ok(links) => {
                for link in links.iter().filter(|link| link.lower == Some(self.ifindex)) {
                    self.write_stripe_above(netlink, link).await;
                    stale.push(link.index);
                }
            }
            Err(error) => tracing::warn!(%error, "TCP over interfaces on the bond may be slow"),
        }
        for index in stale.into_iter().filter(|_| !is_first) {
            if let Err(error) = netlink.recheck_routes(index).await {
                tracing::debug!(%error, "connections that exist keep the old stripe length");
            }
        }
        Ok(())
    }

    /// Has the kernel cut buffers of several UDP datagrams before they come to the bond, where they would be spread: as one stripe
    /// they arrive out of order by more than QUIC bears.
    fn cut_datagrams(&mut self) {
        let policies = self.saved.classes.iter().map(|class| class.settings.policy);
        let spreads = policies.chain([self.saved.settings.policy]).any(Policy::spreads);
        let cuts = spreads && self.driven().members.len() > 1;
        if self.cuts.replace(cuts) == Some(cuts) {
            return;
        }
        if let Err(errno) = linkbraid_link::set_udp_segmentation(&self.saved.name, !cuts) {
            let cause = errno.desc().to_lowercase();
            tracing::warn!(bond = %self.saved.name, %cause, "QUIC that hands over several packets at once may be slow");
        }
    }

    /// The index that its internal port has, or had; 0 before it was there.
    pub(crate) fn port(&self) -> u32 {
        self.port
    }

    /// Whether the internal port carries the bond's frames.
    pub(crate) async fn has_port(&self, netlink: &Netlink) -> bool {
        netlink.link_by_index(self.port).await.is_ok_and(|link| port::works(&link, self.ifindex))
    }

    /// Makes the internal port again, or puts it right.
    pub(crate) async fn mend_port(&mut self, netlink: &Netlink) -> Result<(), Error> {
        let (port, end) = port::make(netlink, &mut self.path, (&self.saved.name, self.ifindex)).await?;
        self.port = port;
        // After the port's program: on the bond it takes the place of the one that earlier builds sent frames with.
        self.path.attach_bond(self.ifindex).about(&self.saved.name, "cannot attach the data path")?;
        let mut driven = self.driven();
        (driven.port, driven.port_end) = (port, end);
        Ok(())
    }

    /// The `gso_max_size` that suits the members: the shortest that any traffic wants, since a buffer does not know its class yet.
    fn stripe_wanted(&self) -> u32 {
        let mut driven = self.driven();
        driven.stripe_stale = false;
        let StripeBasis { slowest_kbit, long } = driven.host.stripe();
        let length = |(policy, weights): (Policy, Vec<u32>)| {
            // Links that carry less than they tell have shorter stripes, never longer ones.
            let slowest = slowest_kbit.map_or(u64::MAX, u64::from);
            let rates: Vec<u64> = weights.iter().map(|mbit| (u64::from(*mbit) * 1000).min(slowest)).collect();
            stripe::gso_max_size(policy, self.saved.settings.stripe, long, &rates, self.saved.mtu)
        };
        driven.host.spreads().into_iter().map(length).min().unwrap_or(stripe::GSO_BYTES_MAX)
    }

    /// Gives an interface stacked on the bond, such as a VLAN or a VXLAN device, the bond's stripe length: TCP builds its buffers to the
    /// limit of the interface that a connection's route names, and the kernel hands this limit to no other. It is not the bond's
    /// own interface, and may be gone by now: where that fails, nothing else does.
    pub(crate) async fn write_stripe_above(&self, netlink: &Netlink, link: &LinkInfo) {
        // Longer buffers would be cut into frames on their way into the bond.
        if link.lower != Some(self.ifindex) || self.stripe_bytes == 0 {
            return;
        }
        let differs = |size: u32| size != self.stripe_bytes;
        if (differs(link.gso_max_size) || link.gso_ipv4_max_size.is_some_and(differs))
            && let Err(error) = netlink.set_gso_max(link.index, self.stripe_bytes, None).await
        {
            tracing::warn!(%error, "TCP over '{}' may be slow", link.name);
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

    /// Makes the control groups of classes that have none.
    pub(crate) fn make_groups(&mut self) {
        self.rules.make_groups(&self.saved.classes);
    }

    /// Removes the control groups of classes that are gone.
    pub(crate) fn remove_groups(&mut self) {
        self.rules.remove_groups(&self.saved.classes);
    }

    /// Writes the rules of its classes, if they differ from those written last.
    pub(crate) fn write_rules(&mut self) -> Result<(), Error> {
        self.rules.write(&self.saved.classes, &self.path)
    }

    /// The data path alone; the protocol ends without a word.
    pub(crate) fn into_path(self) -> DataPath {
        self.path
    }

    /// Announces to plain hosts which MAC the bond's addresses are at now.
    pub(crate) fn announce(&self, sender: &mut ArpPlusSender, clock: Clock) {
        self.report_own(clock);
        self.driven().announce(sender, clock.now());
    }
}

/// The settings as the machine has them.
fn settings(saved: &SavedBond, mtu: u32, auth: auth::Settings) -> host::Settings {
    let class = |class: &SavedClass| host::Class {
        name: class.name.to_string(),
        terms: ClassTerms {
            number: class.number,
            has_members: class.has_members,
            block: class.settings.fallback == Fallback::Block,
            lends: class.settings.borrow == Borrow::Idle,
        },
        policy: class.settings.policy,
    };
    host::Settings {
        probes: saved.settings.inspector.probes,
        timing: saved.timing(),
        mtu,
        damping: saved.settings.damping,
        policy: saved.settings.policy,
        published_only: saved.settings.published_only,
        auth,
        classes: saved.classes.iter().map(class).collect(),
    }
}
