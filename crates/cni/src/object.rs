//! What the daemon says of the bond or fabric.

use crate::{
    config::{Config, Place},
    failure::{Code, Failure},
};
use linkbraid_api::{Health, Records, Reply, Request, Rule};
use linkbraid_terminal::client;
use std::time::Duration;

/// How long one answer of the daemon is waited for; the runtime waits meanwhile.
const ANSWER_MAX: Duration = Duration::from_secs(10);

/// How well the bond or fabric works.
///
/// # Errors
/// There is none, or no daemon answers: it may be there later. A plugin that made something of that name in its place would keep the
/// daemon from it.
pub fn health(config: &Config, place: &Place) -> Result<(Health, String), Failure> {
    let name = Some(place.name().clone());
    let request = match place {
        Place::Bond(_) => Request::Show { name },
        Place::Fabric(_) => Request::FabricShow { name },
    };
    match ask(config, &request)? {
        Records::Bonds(bonds) if matches!(place, Place::Bond(_)) => {
            bonds.into_iter().next().map(|bond| (bond.health, bond.reason))
        }
        Records::Fabrics(fabrics) if matches!(place, Place::Fabric(_)) => {
            fabrics.into_iter().next().map(|fabric| (fabric.health, fabric.reason))
        }
        _ => None,
    }
    .ok_or_else(|| {
        Failure::new(Code::Configuration, place.name(), "it is a fabric where the network has a bond")
    })
}

/// The mark that a rule of the container's class asks for; none where the container has no class.
///
/// # Errors
/// There is no such class, or none of its rules asks for a mark alone.
pub fn mark(config: &Config, place: &Place) -> Result<Option<u32>, Failure> {
    let Some(class) = config.class()? else { return Ok(None) };
    let bond = place.name();
    let Records::Classes(classes) = ask(config, &Request::ClassShow { bond: Some(bond.clone()) })? else {
        return Ok(None);
    };
    let Some(record) = classes.into_iter().find(|record| class == *record.name) else {
        return Err(Failure::new(Code::Configuration, bond, format!("it has no class '{class}'"))
            .hint(format!("linkbraid class add {bond} {class} --match fwmark=0x10")));
    };
    let marks = record.rules.iter().filter_map(|rule| {
        let rule: Rule = rule.matches.parse().ok()?;
        let mark = rule.fwmark?;
        (rule == Rule { fwmark: Some(mark), ..Rule::default() }).then_some(mark.0)
    });
    marks.into_iter().next().map(Some).ok_or_else(|| {
        let what = format!("{bond} class {class}");
        Failure::new(
            Code::Configuration,
            what,
            "it has no rule for a mark, by which frames of a container are told",
        )
        .hint(format!("linkbraid class set {bond} {class} --match fwmark=0x10"))
    })
}

fn ask(config: &Config, request: &Request) -> Result<Records, Failure> {
    let socket = &config.words.socket;
    match client::ask(socket, request, ANSWER_MAX) {
        Ok(Reply::Records(records)) => Ok(records),
        Ok(Reply::Error(error)) => Err(Failure::said(Code::Later, &error)),
        Ok(_) => {
            Err(Failure::said(Code::Later, &client::unexpected(socket, "cannot attach containers").error))
        }
        Err(client::Failure::NoDaemon(error) | client::Failure::Broken(error)) => {
            Err(Failure::said(Code::Later, &error))
        }
    }
}
