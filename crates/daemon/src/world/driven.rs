//! What of a bond goes on whatever the daemon waits for: its host's machine, the links of its members, its tables.
//!
//! A thread of its own drives it ([`Driving`]). Others look in and change it, each for a short time: whoever holds it does not
//! wait for the kernel's network lock, for a file or for a client.
//!
//! [`Driving`]: super::driving::Driving

mod behind;
pub(crate) mod events;
pub(crate) mod links;
mod reports;

use crate::{
    io::{clock::Sleeps, error::About as _},
    world::{history::History, member::Member, tables},
};
use linkbraid_api::Error;
use linkbraid_dataplane::{ArpPlusRing, Tables};
use linkbraid_link::{ArpPlusSender, announcements};
use linkbraid_proto::{
    Time, answers,
    host::{self, Action, Host, Input, LaneCount, PLAIN_PLAN_FIRST, Settings, Write},
};
use linkbraid_wire::MacAddr;
use parking_lot::{Mutex, MutexGuard};
use reports::Reports;
use std::{
    collections::BTreeMap,
    net::IpAddr,
    ops::{Deref, DerefMut},
    sync::Arc,
    time::Duration,
};
use tokio::sync::Notify;

/// The counter of questions that the kernel asked everyone (`TX_ASKED_ALL`): each names the bond's MAC.
const ASKED_ALL: &str = "tx_asked_all";
/// The counter of unicast frames of plain hosts...
const FROM_PLAIN: &str = "rx_plain";
/// ...and those of the answers to probes among them.
const ANSWERS: [&str; 2] = ["rx_probed", "rx_probed_lost"];
/// How often counters are read to see which lanes carry data.
const LOOK: Duration = Duration::from_millis(100);
/// How long a restarted daemon waits for the peers of its predecessor to speak.
pub(crate) const INHERIT: Duration = Duration::from_secs(5);

/// One bond, driven.
pub(crate) struct Driven {
    pub name: String,
    /// Of the bond's interface.
    pub ifindex: u32,
    /// What its interface is called; somebody may rename it.
    pub interface: String,
    /// Its MAC and its addresses, and whether it is a router, as the machine knows them.
    own: answers::Own,
    pub settings: Settings,
    pub members: Vec<Member>,
    /// Names of members by slot, of those that are gone too: their last events come later.
    names: BTreeMap<u8, String>,
    /// The machine that knows its peers and lanes, and what the data path is to hold.
    pub host: Host,
    tables: Arc<Tables>,
    /// What distinguishes mirrored frames of this daemon from those of others before it.
    epoch: u32,
    pub history: History,
    /// The neighbour table is to be asked for.
    pub wants_neighbours: bool,
    /// Questions that the kernel had asked everyone when they were counted last.
    asked_all: u64,
    /// Of its internal port.
    pub port: u32,
    /// Of that port's other end.
    pub port_end: Option<u32>,
    /// When groups are to be reported again.
    groups: Reports,
    /// Guests may be reached by other members than before.
    guests_moved: bool,
    /// They are to be announced now.
    announces_guests: bool,
    /// What the data path had counted of guests when they were read last.
    guests_seen: u64,
    /// Other members carry traffic than when the stripe length was set.
    pub stripe_stale: bool,
    /// When counters are to be read next.
    look_at: Time,
    /// Whether the machine has slept.
    sleeps: Sleeps,
    /// Since when its addresses are to be announced.
    announces: Option<Time>,
    /// When inherited peers that have not spoken are forgotten.
    inherit_until: Option<Time>,
    /// Programs of another build are on the members: what is for the daemon is heard beside them.
    pub listens: bool,
    /// The bond is gone: nothing is sent or written any more.
    pub over: bool,
}

impl Driven {
    /// A bond without members, and without what its interface is like.
    pub(crate) fn new(
        (name, ifindex): (&str, u32),
        settings: Settings,
        config: host::Config,
        (tables, epoch): (Arc<Tables>, u32),
        history: History,
    ) -> Result<Self, Error> {
        let left = tables::adopt(&tables).about(name, "cannot read the data path's tables")?;
        Ok(Self {
            name: name.to_owned(),
            ifindex,
            interface: name.to_owned(),
            own: answers::Own { mac: MacAddr::default(), addresses: Vec::new(), router: false },
            host: Host::new(config, settings.clone(), left),
            settings,
            members: Vec::new(),
            names: BTreeMap::new(),
            tables,
            epoch,
            history,
            wants_neighbours: false,
            asked_all: 0,
            port: 0,
            port_end: None,
            groups: Reports::default(),
            guests_moved: false,
            announces_guests: false,
            guests_seen: 0,
            stripe_stale: false,
            look_at: Time::ZERO,
            sleeps: Sleeps::default(),
            announces: None,
            inherit_until: None,
            listens: false,
            over: false,
        })
    }

    /// Begins to speak to peers; does nothing if it does already.
    pub(crate) fn start(&mut self, now: Time) {
        self.host.handle(now, Input::Start);
        self.inherit_until = Some(now + INHERIT);
    }

    /// Hands in what the members are now.
    pub(crate) fn report_members(&mut self, now: Time) {
        self.host.handle(now, Input::Settings(self.settings.clone()));
        let members = self.members.iter().map(Member::to_host).collect();
        self.host.handle(now, Input::Members(members));
        for member in &mut self.members {
            self.names.insert(member.slot, member.name.clone());
            if std::mem::take(&mut member.was_reset) {
                self.host.handle(now, Input::Reset(member.slot));
            }
        }
    }

    /// Hands in the bond's MAC and addresses, and whether it is a router.
    pub(crate) fn report_own(&mut self, now: Time, own: answers::Own) {
        self.own = own;
        self.host.handle(now, Input::Own(self.own.clone()));
    }

    /// Brings the data path's tables up to date with members, settings and addresses.
    pub(crate) fn write_tables(&mut self, now: Time) -> Result<(), Error> {
        self.report_members(now);
        self.host.settle();
        self.write_difference()
    }

    fn write_difference(&mut self) -> Result<(), Error> {
        let bond = tables::Bond { ifindex: self.ifindex, epoch: self.epoch };
        let (tables, moved, groups) = (&self.tables, &mut self.guests_moved, &mut self.groups);
        let written = self.host.write(|write| {
            if let Write::Bond(row) = &write {
                groups.follow(&row.elected);
            }
            *moved |= matches!(write, Write::Plan(number, _) if number == 0 || number >= PLAIN_PLAN_FIRST);
            tables::write(tables, bond, &write)
        });
        written.about(&self.name, "cannot write the data path's tables")
    }

    /// Hands in a frame from the data path.
    pub(crate) fn frame(&mut self, now: Time, slot: u8, bytes: &[u8], heard_again: bool) {
        self.host.handle(now, Input::Frame { slot, bytes, heard_again });
    }

    /// Hands in a frame that was heard on an interface, if that is a member.
    pub(crate) fn heard_frame(&mut self, now: Time, index: u32, frame: &[u8]) {
        let member = self.members.iter().find(|member| member.ifindex == index);
        if let Some(slot) = member.map(|member| member.slot) {
            self.frame(now, slot, frame, false);
        }
    }

    /// When something is to be done next.
    pub(crate) fn wake(&self) -> Time {
        let others = [self.host.poll_timeout(), self.inherit_until];
        others.into_iter().flatten().fold(self.look_at, Time::min)
    }

    /// A deadline may have come.
    pub(crate) fn timeout(&mut self, now: Time) {
        // Before deadlines that were set before.
        if let Some(slept) = self.sleeps.look() {
            self.woke(now, slept);
        }
        self.host.handle(now, Input::Timeout);
        if self.inherit_until.is_some_and(|until| until <= now) {
            self.inherit_until = None;
            // Peers of an earlier daemon that have not spoken are plain hosts from now on.
            self.host.handle(now, Input::DropInherited);
        }
        if self.look_at <= now {
            self.look_at = now + LOOK;
            self.groups.look(now);
            // Not more often: there may be thousands of guests.
            self.announces_guests |= std::mem::take(&mut self.guests_moved);
            if let Err(error) = self.look_at_counters(now) {
                tracing::error!(%error, "cannot read the data path's counters");
            }
            if let Err(error) = self.look_at_guests(now) {
                tracing::error!(%error, "cannot follow the guests");
            }
        }
    }

    /// The machine has slept.
    fn woke(&mut self, now: Time, slept: Duration) {
        let text = format!(
            "this host has slept for {:.1} s; peers and plain hosts hear of it now",
            slept.as_secs_f64()
        );
        self.history.bond(None, "woke", text);
        self.host.handle(now, Input::Woke);
        (self.announces, self.announces_guests) = (Some(now), true);
    }

    /// Reads which lanes carry data, and whether the kernel has asked everyone something.
    fn look_at_counters(&mut self, now: Time) -> Result<(), Error> {
        let what = "cannot read counters";
        let mut plans = Vec::new();
        let used = self.tables.look_at_used().about(&self.name, what)?;
        for number in self.host.plans_to_read(&used) {
            let counts = self.tables.lane_counts(number).about(&self.name, what)?;
            let delivered = self.tables.lane_deliveries(number).about(&self.name, what)?;
            let lanes = counts.iter().zip(delivered).map(|(count, delivered)| LaneCount {
                bytes: count.bytes,
                busy_bytes: delivered.busy_bytes,
                busy_us: delivered.busy_us,
                tcp_bytes: delivered.sent_bytes,
                lost_bytes: delivered.lost_bytes,
            });
            plans.push((number, lanes.collect()));
        }
        self.host.handle(now, Input::LaneCounts(plans));
        let frames = |name| Ok::<u64, Error>(self.tables.reason(name).about(&self.name, what)?.frames);
        let answers = ANSWERS.into_iter().map(frames).sum::<Result<u64, Error>>()?;
        let from_plain = frames(FROM_PLAIN)?.saturating_sub(answers);
        self.host.handle(now, Input::PlainFrames(from_plain));
        let count = self.tables.reason(ASKED_ALL).about(&self.name, what)?;
        if count.frames != self.asked_all {
            self.asked_all = count.frames;
            self.host.handle(now, Input::Broadcast);
        }
        Ok(())
    }

    /// Carries out what the machine wants; whether anything but frames came of it.
    pub(crate) fn act(&mut self, sender: &mut ArpPlusSender) -> bool {
        let mut changed = false;
        while !self.over
            && let Some(action) = self.host.poll_action()
        {
            changed |= !matches!(action, Action::Send { .. });
            match action {
                Action::Send { slot, frame } => self.send(sender, slot, &frame),
                Action::FailedSlots(slots) => {
                    self.guests_moved = true;
                    if let Err(error) = self.tables.set_failed_slots(slots) {
                        tracing::error!(bond = %self.name, %error, "the data path is not up to date");
                    }
                }
                Action::Tables => {
                    if let Err(error) = self.write_difference() {
                        tracing::error!(%error, "the data path is not up to date");
                    }
                }
                Action::AskNeighbours => self.wants_neighbours = true,
                Action::Stripe => self.stripe_stale = true,
                Action::AnnounceGuests(macs) => self.announce_guests(sender, &macs),
                Action::PlansShort => tracing::warn!(
                    bond = %self.name,
                    "too few plan numbers for all peers and classes; some classes use the plan of the default class"
                ),
                Action::Inspector(event) => self.inspector_event(&event),
                Action::ArpPlus(event) => self.arp_plus_event(&event),
                Action::Unkeyed(host) => self.unkeyed(&host),
            }
        }
        if let Some(now) = self.announces.take().filter(|_| !self.over) {
            self.announce(sender, now);
        }
        if std::mem::take(&mut self.announces_guests) && !self.over {
            let elsewhere = |mac: &MacAddr| self.host.arp_plus().is_guest_elsewhere(*mac);
            let here: Vec<MacAddr> = self.guests().into_iter().filter(|mac| !elsewhere(mac)).collect();
            self.announce_guests(sender, &here);
        }
        if self.groups.take() && !self.over {
            self.ask_groups(sender);
        }
        changed
    }

    fn send(&self, sender: &mut ArpPlusSender, slot: u8, frame: &[u8]) {
        let Some(member) = self.members.iter().find(|member| member.slot == slot) else { return };
        if let Err(error) = sender.send(member.ifindex, frame) {
            tracing::debug!(bond = %self.name, member = %member.name, %error, "ARP+ frame not sent");
        }
    }

    /// The reading end of its frames; one reader at a time.
    pub(crate) fn ring(&self) -> Result<ArpPlusRing, Error> {
        self.tables.arp_plus_ring().about(&self.name, "cannot read ARP+ frames")
    }

    /// Where to read which members plain hosts were heard on, where there are several segments.
    pub(crate) fn heard(&self) -> Option<Arc<Tables>> {
        (self.host.arp_plus().segments().len() > 1).then(|| self.tables.clone())
    }

    /// Announces to plain hosts which MAC the bond's addresses are at now.
    pub(crate) fn announce(&mut self, sender: &mut ArpPlusSender, now: Time) {
        let ips: Vec<IpAddr> = self.own.addresses.iter().map(|(ip, _)| *ip).collect();
        // Each segment must hear it, and the frame's source must be the member's own MAC.
        for member in self.host.members().iter().filter(|member| member.live()) {
            for mut frame in announcements(self.host.mac_for(member), &ips, self.own.router) {
                if let Some(source) = frame.get_mut(6..12) {
                    source.copy_from_slice(&member.mac.0);
                }
                self.send(sender, member.slot, &frame);
            }
        }
        // All plain hosts have the same MAC now.
        self.host.handle(now, Input::Broadcast);
    }

    /// Tells peers that this host leaves, until [`Self::start`].
    pub(crate) fn stop(&mut self, sender: &mut ArpPlusSender, now: Time) {
        self.host.handle(now, Input::Stop);
        self.act(sender);
    }
}

/// A bond, as the thread that drives it and others hold it.
pub(crate) struct Shared {
    driven: Mutex<Driven>,
    changed: Notify,
}

impl Shared {
    pub(crate) fn new(driven: Driven) -> Self {
        Self { driven: Mutex::new(driven), changed: Notify::new() }
    }

    /// For the thread that drives it.
    pub(crate) fn drive(&self) -> MutexGuard<'_, Driven> {
        // It is handed to whoever waits, however soon this thread wants it again.
        self.driven.lock()
    }

    /// For all others: if it is changed, the thread that drives it does what follows.
    pub(crate) fn lock(&self) -> Guard<'_> {
        Guard { driven: self.drive(), changed: &self.changed, is_changed: false }
    }

    /// Ends when somebody has changed it.
    pub(crate) async fn changed(&self) {
        self.changed.notified().await;
    }
}

/// A bond that somebody else than its thread looks at.
pub(crate) struct Guard<'s> {
    driven: MutexGuard<'s, Driven>,
    changed: &'s Notify,
    is_changed: bool,
}

impl Deref for Guard<'_> {
    type Target = Driven;

    fn deref(&self) -> &Driven {
        &self.driven
    }
}

impl DerefMut for Guard<'_> {
    fn deref_mut(&mut self) -> &mut Driven {
        self.is_changed = true;
        &mut self.driven
    }
}

impl Drop for Guard<'_> {
    fn drop(&mut self) {
        if self.is_changed {
            self.changed.notify_one();
        }
    }
}
