//! Daemons that come and go, and bonds that are made again.

use super::{BOND, Bed};
use linkbraid_api::{BondRecord, Error};

impl Bed {
    pub(super) fn bond(&self, name: &str) -> Result<(), Error> {
        let host = self.host(name)?;
        host.bond_lines(BOND).iter().try_for_each(|line| host.linkbraid(line).map(drop))
    }

    /// Removes the bonds of all hosts and makes them again: nothing is remembered of what failed before, such as the
    /// time that a flapping link is held down for.
    pub fn make_again(&self) -> Result<(), Error> {
        for name in &self.bonded {
            self.host(name)?.linkbraid(&format!("bond del {BOND}"))?;
        }
        self.bonded.iter().try_for_each(|name| self.bond(name))?;
        self.damping.set(true);
        self.meet()?;
        self.make_class_again()
    }

    /// Removes the bonds of all hosts; the daemons stay.
    pub fn part(&mut self) -> Result<(), Error> {
        for name in std::mem::take(&mut self.bonded) {
            self.host(&name)?.linkbraid(&format!("bond del {BOND}"))?;
        }
        Ok(())
    }

    /// Deletes, adds or sets a member of the bond of a host, with a weight where one is named.
    pub fn member(&self, name: &str, verb: &str, nic: &str, weight: Option<u32>) -> Result<(), Error> {
        let weight = weight.map_or_else(String::new, |mbit| format!(" --weight {mbit}"));
        self.host(name)?.linkbraid(&format!("member {verb} {BOND} {nic}{weight}")).map(drop)
    }

    pub fn members(&self, name: &str) -> Result<Vec<String>, Error> {
        let bonds: Vec<BondRecord> = self.host(name)?.ask(&format!("show {BOND}"))?;
        Ok(bonds.into_iter().flat_map(|bond| bond.members).map(|member| member.interface).collect())
    }

    pub fn has_daemon(&mut self, name: &str) -> bool {
        self.daemons.get_mut(name).is_some_and(linkbraid_lab::Daemon::runs)
    }

    pub fn daemon_id(&self, name: &str) -> Result<u32, Error> {
        let daemon = self.daemons.get(name).map(linkbraid_lab::Daemon::id);
        daemon.ok_or_else(|| Error::new(format!("host {name}"), "cannot look at its daemon", "it has none"))
    }

    /// Kills the daemon of a host without warning, as a crash would.
    pub fn kill_daemon(&mut self, name: &str) {
        if let Some(daemon) = self.daemons.remove(name) {
            daemon.kill();
        }
    }

    /// Ends the daemon of a host, as an upgrade would.
    pub fn stop_daemon(&mut self, name: &str) -> Result<(), Error> {
        match self.daemons.remove(name) {
            Some(daemon) => daemon.stop().map(drop),
            None => Ok(()),
        }
    }

    /// Starts a daemon on a host that has none; returns once it answers.
    pub fn start_daemon(&mut self, name: &str) -> Result<(), Error> {
        let daemon = self.host(name)?.daemon()?;
        self.daemons.insert(name.to_owned(), daemon);
        Ok(())
    }
}
