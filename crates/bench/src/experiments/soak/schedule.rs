//! Which step comes next: pure, and the same for the same seed.

use crate::experiments::Random;
use linkbraid_lab::Fault;
use std::fmt;

/// Hosts, and links of each, all into one switch.
pub(super) const HOSTS: usize = 2;
pub(super) const LINKS: usize = 3;
/// A daemon is started again after at most so many steps of its host's silence: peers forget a host that is silent for
/// seconds.
const DOWN_STEPS_MAX: u32 = 3;
const WEIGHTS: [u32; 4] = [10, 50, 100, 200];

/// One step: what is done, and to which link of which host.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct Action {
    host: usize,
    pub link: usize,
    pub what: What,
}

/// What is done; the last two to the host, whatever the link.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum What {
    Fail(Fault),
    Mend,
    MemberDel,
    MemberAdd,
    /// In Mbit/s.
    Weight(u32),
    Kill,
    Start,
}

/// Steps without an end.
#[derive(Debug, Clone)]
pub(super) struct Schedule {
    random: Random,
    hosts: [Host; HOSTS],
}

/// What a host is like after the steps so far.
#[derive(Debug, Clone, Default)]
struct Host {
    members: [bool; LINKS],
    faults: [Option<Fault>; LINKS],
    /// Steps since its daemon was killed.
    down: Option<u32>,
    /// Lanes have gone since, or there was none, and nobody here knows of what there is now.
    blind: bool,
}

impl Action {
    pub fn host(self) -> &'static str {
        ["a", "b"][self.host]
    }

    pub fn kind(self) -> &'static str {
        match self.what {
            What::Fail(fault) => fault.word(),
            What::Mend => "mend",
            What::MemberDel => "member-del",
            What::MemberAdd => "member-add",
            What::Weight(_) => "weight",
            What::Kill => "daemon-kill",
            What::Start => "daemon-start",
        }
    }
}

impl fmt::Display for Action {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{} {}", self.kind(), self.host())?;
        match self.what {
            What::Kill | What::Start => Ok(()),
            What::Weight(mbit) => write!(f, "/eth{} {mbit} Mbit/s", self.link),
            _ => write!(f, "/eth{}", self.link),
        }
    }
}

impl Host {
    fn works(&self, link: usize) -> bool {
        self.members[link] && self.faults[link].is_none()
    }

    fn any_works(&self) -> bool {
        (0..LINKS).any(|link| self.works(link))
    }
}

impl Schedule {
    /// All links are good, and members; all daemons run.
    pub fn new(seed: u64) -> Self {
        let host = Host { members: [true; LINKS], ..Host::default() };
        Self { random: Random(seed), hosts: std::array::from_fn(|_| host.clone()) }
    }

    /// Whether two hosts that know of all that has happened have a lane: a good member each, on one switch.
    pub fn lane_is_left(&self) -> bool {
        self.hosts.iter().all(|host| host.any_works() && !host.blind)
    }

    /// What everything is like, for whoever looks for the cause of something.
    pub fn state(&self) -> String {
        let link = |host: &Host, link: usize| match (host.members[link], host.faults[link]) {
            (true, None) => "good".to_owned(),
            (true, Some(fault)) => fault.word().to_owned(),
            (false, None) => "no member".to_owned(),
            (false, Some(fault)) => format!("no member and {}", fault.word()),
        };
        let host = |(name, host): (&str, &Host)| {
            let links: Vec<String> = (0..LINKS).map(|l| format!("eth{l} {}", link(host, l))).collect();
            let daemon = if host.down.is_some() { ", no daemon" } else { "" };
            format!("{name}: {}{daemon}", links.join(", "))
        };
        ["a", "b"].into_iter().zip(&self.hosts).map(host).collect::<Vec<_>>().join("; ")
    }

    /// The next step; what [`Schedule::lane_is_left`] says holds after it.
    pub fn next_action(&mut self) -> Action {
        let overdue =
            self.hosts.iter().position(|host| host.down.is_some_and(|steps| steps >= DOWN_STEPS_MAX));
        let action = match overdue {
            Some(host) => Action { host, link: 0, what: What::Start },
            None => loop {
                // Some draws are not possible as things are; one that mends or breaks a link always is.
                if let Some(action) = self.draw() {
                    break action;
                }
            },
        };
        self.apply(action);
        action
    }

    fn draw(&mut self) -> Option<Action> {
        let (kind, host, link) = (self.random.below(100), self.random.below(HOSTS), self.random.below(LINKS));
        let fault = Fault::ALL[self.random.below(Fault::ALL.len())];
        let mbit = WEIGHTS[self.random.below(WEIGHTS.len())];
        let here = &self.hosts[host];
        let far = &self.hosts[1 - host];
        let alive = here.down.is_none();
        let members = here.members.iter().filter(|member| **member).count();
        let what = match kind {
            0..18 if here.faults[link].is_none() => What::Fail(fault),
            18..56 if here.faults[link].is_some() => What::Mend,
            56..64 if alive && here.members[link] && members > 1 => What::MemberDel,
            // A member that no peer answers through is refused.
            64..78 if alive && !here.members[link] && here.faults[link].is_none() => {
                (far.down.is_none() && far.any_works()).then_some(What::MemberAdd)?
            }
            78..86 if alive && here.members[link] => What::Weight(mbit),
            86..90 if alive => What::Kill,
            90..100 if !alive => What::Start,
            _ => return None,
        };
        Some(Action { host, link, what })
    }

    fn apply(&mut self, action: Action) {
        for host in &mut self.hosts {
            host.down = host.down.map(|steps| steps + 1);
        }
        let left = self.lane_is_left();
        let here = &mut self.hosts[action.host];
        match action.what {
            What::Fail(fault) => here.faults[action.link] = Some(fault),
            What::Mend => here.faults[action.link] = None,
            What::MemberDel => here.members[action.link] = false,
            What::MemberAdd => here.members[action.link] = true,
            What::Weight(_) => {}
            What::Kill => (here.down, here.blind) = (Some(0), !left),
            What::Start => (here.down, here.blind) = (None, false),
        }
        if matches!(action.what, What::Fail(_) | What::MemberDel) {
            for host in self.hosts.iter_mut().filter(|host| host.down.is_some()) {
                host.blind = true;
            }
        }
    }
}

#[cfg(test)]
mod tests;
