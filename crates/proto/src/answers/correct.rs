//! What hosts have cached: who is corrected when, with which frames, and how many a second.

use super::{Action, Answers, Counter, Host};
use crate::{Time, limits};
use linkbraid_wire::{MacAddr, Refusal, emit_advertisement, emit_arp_reply};
use std::{net::IpAddr, time::Duration};

/// A correction may be lost, or come within the second in which Linux ignores it.
const CORRECTIONS: u8 = 2;

/// A token bucket: [`limits::ANSWER_BURST`] at once, [`limits::ANSWER_RATE`] a second.
#[derive(Debug, Clone, Copy, Default)]
pub(super) struct Bucket {
    /// The bucket is full again at that time.
    full_at: Time,
}

const TOKEN: Duration = Duration::from_nanos(1_000_000_000 / limits::ANSWER_RATE);

impl Bucket {
    /// Takes that many tokens, or says when they will be there.
    fn take(&mut self, now: Time, count: usize) -> Result<(), Time> {
        let count = (count as u64).min(limits::ANSWER_BURST) as u32;
        let full_at = self.full_at.max(now) + TOKEN * count;
        let ready = full_at.minus(TOKEN * limits::ANSWER_BURST as u32);
        if ready > now {
            return Err(ready);
        }
        self.full_at = full_at;
        Ok(())
    }
}

impl Answers {
    /// The MAC of the member that a host is to name.
    fn name_of(&self, host: &Host) -> Option<MacAddr> {
        let slot = host.slot?;
        self.members.iter().find(|member| member.slot == slot).map(|member| member.mac)
    }

    /// Hosts that are to name another MAC than before are corrected at once.
    pub(super) fn tell_names(&mut self) {
        let wrong = |(mac, host): (&MacAddr, &Host)| {
            let name = self.name_of(host)?;
            (Some(name) != host.named).then_some((*mac, name))
        };
        for (mac, name) in self.hosts.iter().filter_map(wrong).collect::<Vec<_>>() {
            if let Some(host) = self.hosts.get_mut(&mac) {
                host.named = Some(name);
            }
            // Before all that is due at some time: these may be sending to a failed member.
            self.line_up(mac, Time::ZERO);
        }
    }

    /// Everyone who knows us has taken the bond's MAC, or ignored it for having changed a moment ago.
    pub(super) fn broadcast(&mut self, now: Time) {
        let hosts: Vec<MacAddr> = self.hosts.keys().copied().collect();
        hosts.into_iter().for_each(|mac| self.renamed(now, mac));
    }

    /// That host may have taken the bond's MAC.
    pub(super) fn renamed(&mut self, now: Time, mac: MacAddr) {
        let Some(name) = self.hosts.get(&mac).map(|host| self.name_of(host)) else { return };
        match name {
            Some(name) if name != self.own.mac => self.line_up(mac, now + limits::ANSWER_AGAIN),
            Some(_) => {}
            None => self.hosts.get_mut(&mac).into_iter().for_each(|host| host.named = None),
        }
    }

    /// All corrections from then on, or from when the next one is due anyway: whoever waits keeps its place, however
    /// often the kernel broadcasts.
    fn line_up(&mut self, mac: MacAddr, at: Time) {
        let Some(host) = self.hosts.get_mut(&mac) else { return };
        host.left = CORRECTIONS;
        if host.place.is_some_and(|(due, _)| due <= at) {
            return;
        }
        self.ticket += 1;
        let place = (at, self.ticket);
        if let Some(old) = host.place.replace(place) {
            self.queue.remove(&old);
        }
        self.queue.insert(place, mac);
    }

    /// Sends what is due, as far as the rate limit lets it.
    pub(super) fn correct_due(&mut self, now: Time) {
        self.blocked = None;
        while let Some((place, mac)) = self.queue.first_key_value().map(|(place, mac)| (*place, *mac)) {
            if place.0 > now {
                return;
            }
            let frames = self.corrections(mac);
            if let Err(ready) = self.bucket.take(now, frames.len()) {
                self.counters.one(Counter::LimitRate);
                self.blocked = Some(ready);
                return;
            }
            for (counter, frame) in frames {
                let full = frame.is_some() && self.actions.len() >= limits::ACTIONS_MAX;
                self.counters.one(if full { Counter::LimitActions } else { counter });
                self.actions.extend(frame.filter(|_| !full));
            }
            self.queue.remove(&place);
            let Some(host) = self.hosts.get_mut(&mac) else { continue };
            host.place = None;
            host.left = host.left.saturating_sub(1);
            if host.left > 0 {
                self.ticket += 1;
                let next = (now + limits::ANSWER_AGAIN, self.ticket);
                host.place = Some(next);
                self.queue.insert(next, mac);
            }
        }
    }

    /// One frame for each own address that the host may have cached, and how it counts.
    fn corrections(&self, mac: MacAddr) -> Vec<(Counter, Option<Action>)> {
        let Some(host) = self.hosts.get(&mac) else { return Vec::new() };
        let (Some(slot), Some(name)) = (host.slot, self.name_of(host)) else { return Vec::new() };
        let answer = |(own, prefix): &(IpAddr, u8)| {
            let ip = known_by(&host.ips, *own, *prefix)?;
            Some(match correction(mac, ip, name, *own, self.own.router) {
                Ok((counter, frame)) => (counter, Some(Action::Send { slot, frame })),
                Err(_) => (Counter::TxRefused, None),
            })
        };
        self.own.addresses.iter().filter_map(answer).collect()
    }
}

/// The address of the host by which it may know that own one: of the same subnet; any of the family, if the own one is a
/// subnet of its own, since only the host's routes tell who asks for such; link-local, if the own one is not.
pub(super) fn known_by(ips: &[IpAddr], own: IpAddr, prefix: u8) -> Option<IpAddr> {
    let whole = if own.is_ipv4() { 32 } else { 128 };
    let family = || ips.iter().copied().filter(move |ip| ip.is_ipv4() == own.is_ipv4());
    let near = family().find(|ip| prefix >= whole || bits(*ip, prefix) == bits(own, prefix));
    let link_local = |ip: &IpAddr| matches!(ip, IpAddr::V6(ip) if ip.is_unicast_link_local());
    near.or_else(|| family().find(link_local))
}

/// The first bits of an address.
fn bits(ip: IpAddr, prefix: u8) -> u128 {
    let all = match ip {
        IpAddr::V4(ip) => u128::from(ip.to_bits()) << 96,
        IpAddr::V6(ip) => ip.to_bits(),
    };
    all.checked_shr(128 - u32::from(prefix.min(128))).unwrap_or(0)
}

fn correction(
    mac: MacAddr,
    ip: IpAddr,
    name: MacAddr,
    own: IpAddr,
    router: bool,
) -> Result<(Counter, Vec<u8>), Refusal> {
    match (ip, own) {
        (IpAddr::V4(ip), IpAddr::V4(own)) => {
            emit_arp_reply(mac, ip, name, own).map(|frame| (Counter::TxArpReply, frame))
        }
        (IpAddr::V6(ip), IpAddr::V6(own)) => {
            emit_advertisement(mac, ip, name, own, router).map(|frame| (Counter::TxAdvertisement, frame))
        }
        (IpAddr::V4(_), IpAddr::V6(_)) | (IpAddr::V6(_), IpAddr::V4(_)) => Err(Refusal::AddressNotHost),
    }
}
