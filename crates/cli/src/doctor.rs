//! `linkbraid doctor`: what keeps a bond below the sum of its links.

use crate::args::DoctorArgs;
use crate::{check, text};
use linkbraid_api::{
    BondRecord, Error, FindingRecord, LaneRecord, LinkName, PeerRecord, Records, Reply, Request,
};
use linkbraid_doctor::{Describe, Side};
use linkbraid_terminal::{
    client,
    report::{self, Failed},
};
use std::io::{self, IsTerminal};
use std::net::IpAddr;
use std::path::Path;
use std::time::Duration;

/// Asks, or answers.
pub fn run(socket: &Path, args: DoctorArgs, json: bool) -> Result<(), Failed> {
    let host = Host::find(socket, args.bond)?;
    if let Some(peer) = args.answer {
        host.lanes_to(peer)?;
        let lasts = Duration::from_secs(60 * u64::from(args.minutes));
        report::print(&format!("answering {peer} for {} min; Ctrl-C ends it\n", args.minutes))?;
        let note = |line: &str| {
            // Nobody need read it.
            let _ = report::print(&format!("{line}\n"));
        };
        let describe = || host.describe(peer).map_err(|failed| failed.error);
        return linkbraid_doctor::answer(peer, lasts, &describe, &note).map_err(Failed::refused);
    }
    let peer = args.peer.map_or_else(|| host.only_peer(), Ok)?;
    host.lanes_to(peer)?;
    let note = |line: &str| {
        if io::stderr().is_terminal() {
            eprintln!("{line}");
        }
    };
    let describe = host.describe(peer)?;
    let examination = linkbraid_doctor::examine(peer, &*describe, &note).map_err(Failed::refused)?;
    let diagnosis = linkbraid_doctor::diagnose(examination);
    if json {
        return report::print(&text::json(&diagnosis));
    }
    report::print(&text::diagnosis(
        &diagnosis,
        peer,
        &text::Style::new(report::colour()).width(report::width()),
    ))
}

/// This host's part: a daemon and a bond.
struct Host<'s> {
    socket: &'s Path,
    bond: LinkName,
}

impl<'s> Host<'s> {
    fn find(socket: &'s Path, bond: Option<LinkName>) -> Result<Self, Failed> {
        let bonds = bonds(socket, bond)?;
        let [bond] = &bonds[..] else {
            let cause = format!("this host has {} bonds", bonds.len());
            return Err(Failed::usage(Error::new("doctor", "which bond?", cause).hint("linkbraid show")));
        };
        Ok(Self { socket, bond: LinkName::of_link(&bond.name) })
    }

    fn peers(&self) -> Result<Vec<PeerRecord>, Failed> {
        let request = Request::Peers { bond: Some(self.bond.clone()), peer: None };
        match client::ask(self.socket, &request, client::REPLY_TIMEOUT)? {
            Reply::Records(Records::Peers(peers)) => Ok(peers),
            Reply::Error(error) => Err(Failed::refused(error)),
            _ => Err(client::unexpected(self.socket, "cannot list peers")),
        }
    }

    fn no_peer(&self, what: &str, cause: String) -> Failed {
        let hint = format!("linkbraid peers {}", self.bond);
        Failed::refused(Error::new(self.bond.to_string(), what, cause).hint(hint))
    }

    fn only_peer(&self) -> Result<IpAddr, Failed> {
        let peers = self.peers()?;
        let addresses: Vec<IpAddr> = peers
            .iter()
            .filter(|peer| peer.proven)
            .filter_map(|peer| peer.address.as_ref()?.parse().ok())
            .collect();
        match addresses[..] {
            [peer] => Ok(peer),
            _ => {
                Err(self.no_peer("which peer?", format!("{} of its peers have an address", addresses.len())))
            }
        }
    }

    /// Whether it is a peer, to which lanes lead.
    fn lanes_to(&self, peer: IpAddr) -> Result<(), Failed> {
        match self.side(peer, &[]).map_err(Failed::refused)?.lanes.is_empty() {
            false => Ok(()),
            true => Err(self.no_peer(&format!("cannot be examined with '{peer}'"), "it is no peer".into())),
        }
    }

    /// What describes this host in one examination. What is amiss is found once, at its beginning.
    fn describe(&self, peer: IpAddr) -> Result<Describe<'_>, Failed> {
        let bonds = bonds(self.socket, Some(self.bond.clone()))?;
        let members = bonds.iter().flat_map(|bond| &bond.members);
        let members = members.map(|member| LinkName::of_link(&member.interface)).collect();
        let findings = check::findings(self.socket, members)?;
        Ok(Box::new(move || self.side(peer, &findings)))
    }

    /// What this host is now.
    fn side(&self, peer: IpAddr, findings: &[FindingRecord]) -> Result<Side, Error> {
        let own = |failed: Failed| failed.error;
        let bonds = bonds(self.socket, Some(self.bond.clone())).map_err(own)?;
        let lanes = lanes(self.socket, &self.bond).map_err(own)?;
        let Some(bond) = bonds.first() else {
            return Err(
                Error::new(self.bond.to_string(), "cannot be examined", "it is gone").hint("linkbraid show")
            );
        };
        Ok(Side::of(bond, &lanes, &peer.to_string(), findings))
    }
}

fn bonds(socket: &Path, name: Option<LinkName>) -> Result<Vec<BondRecord>, Failed> {
    match client::ask(socket, &Request::Show { name }, client::REPLY_TIMEOUT)? {
        Reply::Records(Records::Bonds(bonds)) => Ok(bonds),
        Reply::Error(error) => Err(Failed::refused(error)),
        _ => Err(client::unexpected(socket, "cannot show bonds")),
    }
}

fn lanes(socket: &Path, bond: &LinkName) -> Result<Vec<LaneRecord>, Failed> {
    let request = Request::Lanes { bond: Some(bond.clone()), peer: None };
    match client::ask(socket, &request, client::REPLY_TIMEOUT)? {
        Reply::Records(Records::Lanes(lanes)) => Ok(lanes),
        Reply::Error(error) => Err(Failed::refused(error)),
        _ => Err(client::unexpected(socket, "cannot list lanes")),
    }
}
