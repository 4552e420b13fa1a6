//! A change that is undone unless a user confirms it in time: whoever cuts himself off need not do anything.
//!
//! What there was before is on file from before the first step, so that a later daemon undoes the change: at once if this one
//! died while it made it, or else when the time is over. Undoing is one more operation, from what there is then.

use super::{
    current::{current, mark_as_before},
    desired::{Current, diff},
    operation::{By, Operation},
};
use crate::{
    io::{
        clock::since_boot,
        state::{OnFile, boot_id},
    },
    world::World,
};
use linkbraid_api::{ChangeRecord, Error, Reply, config::Config};
use linkbraid_proto::Time;
use serde::{Deserialize, Serialize};
use std::time::Duration;
use tokio::sync::oneshot;

mod given;

use given::Given;

/// How often it is tried to undo what cannot be undone whole, and how long after another try.
const TRIES_MAX: u32 = 5;
const RETRY: Duration = Duration::from_secs(2);

/// The change that waits, if there is one.
#[derive(Default)]
pub(super) struct Unconfirmed(Option<Waiting>);

struct Waiting {
    saved: SavedChange,
    /// When it is undone; none while it is being made, or undone.
    until: Option<Time>,
    tries: u32,
    /// Who asked for it to be undone.
    answer: Option<oneshot::Sender<Reply>>,
}

/// What is on file of it.
#[derive(Serialize, Deserialize)]
struct SavedChange {
    boot_id: String,
    command: String,
    limit: Duration,
    /// When it is undone, since the boot; none if it is not made whole.
    until: Option<Duration>,
    before: Current,
    #[serde(default)]
    given: Vec<Given>,
}

impl OnFile for SavedChange {
    const EXTENSION: &str = "unconfirmed";
    const KIND: &str = "change";

    /// There is one at a time.
    fn name(&self) -> &str {
        "change"
    }

    fn boot_id(&self) -> &str {
        &self.boot_id
    }
}

impl Unconfirmed {
    /// Looks for one that an earlier daemon left; whether there is one.
    pub(super) fn at_start(&mut self, world: &World) -> bool {
        let Some(saved) = world.state.read_all::<SavedChange>().pop() else { return false };
        let left = saved.until.unwrap_or_default().saturating_sub(since_boot());
        tracing::warn!("not confirmed, undone in {} s: {}", left.as_secs(), saved.command);
        let until = Some(world.clock.now() + left);
        self.0 = Some(Waiting { saved, until, tries: 0, answer: None });
        true
    }

    /// Why no other change can be made now.
    pub(super) fn refuses(&self) -> Option<Error> {
        let Waiting { saved, until, .. } = self.0.as_ref()?;
        let cause = match until {
            Some(_) => format!("another change is to be confirmed or undone first: {}", saved.command),
            None => format!("another change is under way: {}", saved.command),
        };
        Some(Error::new("daemon", "cannot change anything", cause).hint("linkbraid confirm"))
    }

    /// Notes what there is before a change.
    ///
    /// # Errors
    /// The file cannot be written.
    pub(super) async fn begin(
        &mut self,
        world: &World,
        before: &Current,
        (limit, command): (Duration, String),
    ) -> Result<(), Error> {
        let given = given::read(world).await;
        let saved =
            SavedChange { boot_id: boot_id(), command, limit, until: None, before: before.clone(), given };
        world.state.write(&saved)?;
        self.0 = Some(Waiting { saved, until: None, tries: 0, answer: None });
        Ok(())
    }

    /// The change is made; a line for the user.
    pub(super) fn made(&mut self, world: &World) -> Option<String> {
        let Waiting { saved, until, .. } = self.0.as_mut()?;
        saved.until = Some(since_boot() + saved.limit);
        *until = Some(world.clock.now() + saved.limit);
        if let Err(error) = world.state.write(saved) {
            tracing::error!(%error, "a later daemon undoes the change at once");
        }
        let seconds = saved.limit.as_secs();
        tracing::info!("undone in {seconds} s unless confirmed: {}", saved.command);
        Some(format!("the change is undone in {seconds} s; to keep it: linkbraid confirm"))
    }

    /// The change is not made, or it stays.
    ///
    /// # Errors
    /// Its file cannot be removed: a later daemon would undo it.
    pub(super) fn end(&mut self, world: &World) -> Result<(), Error> {
        if let Some(Waiting { saved, .. }) = &self.0 {
            world.state.remove::<SavedChange>(saved.name())?;
        }
        self.0 = None;
        Ok(())
    }

    /// `confirm`: the change stays, or is undone now.
    pub(super) fn confirm(&mut self, world: &World, undo: bool, answer: oneshot::Sender<Reply>) {
        let refused = |what: &str, hint: &str| {
            Reply::Error(Error::new("confirm", "nothing to confirm", what).hint(hint))
        };
        let answered = match &mut self.0 {
            None => refused("no change waits for it", "linkbraid show"),
            Some(Waiting { until: None, .. }) => {
                refused("the change is still under way", "linkbraid confirm")
            }
            Some(waiting) if undo => {
                waiting.until = Some(world.clock.now());
                waiting.answer = Some(answer);
                return;
            }
            Some(waiting) => {
                let command = waiting.saved.command.clone();
                let ended = self.end(world);
                if ended.is_ok() {
                    tracing::info!("confirmed: {command}");
                }
                ended.map_or_else(Reply::Error, |()| Reply::Done { warnings: Vec::new() })
            }
        };
        // The client may have hung up.
        let _ = answer.send(answered);
    }

    /// When it is undone.
    pub(super) fn wake(&self) -> Option<Time> {
        self.0.as_ref().and_then(|waiting| waiting.until)
    }

    /// What undoes it, if it is time.
    pub(super) async fn next(&mut self, world: &mut World) -> Option<Operation> {
        let waiting =
            self.0.as_mut().filter(|it| it.until.is_some_and(|until| until <= world.clock.now()))?;
        waiting.until = None;
        let has = current(world).await;
        let links = world.netlink.links().await;
        let is_there =
            |name: &str| links.as_ref().map_or(true, |all| all.iter().any(|link| link.name == name));
        let steps = diff(&has.config, &wanted(&waiting.saved.before, &has.config, is_there));
        Some(Operation::new(By::Undo, steps, has))
    }

    /// It was undone, or not whole.
    pub(super) async fn undone(&mut self, world: &mut World, mut errors: Vec<Error>) {
        let Some(waiting) = &mut self.0 else { return };
        errors.extend(given::put_back(world, &waiting.saved.given).await);
        mark_as_before(world, &waiting.saved.before);
        waiting.tries += 1;
        if !errors.is_empty() && waiting.tries < TRIES_MAX {
            waiting.until = Some(world.clock.now() + RETRY);
            return;
        }
        let (command, answer) = (waiting.saved.command.clone(), waiting.answer.take());
        match errors.last() {
            None => tracing::warn!("not confirmed, undone: {command}"),
            Some(error) => tracing::error!(%error, "not confirmed, and not undone whole: {command}"),
        }
        if let Err(error) = self.end(world) {
            errors.push(error);
            // In memory it is over: what is left of it is said at the next start.
            self.0 = None;
        }
        if let Some(answer) = answer {
            let reply = errors.pop().map_or_else(|| Reply::Done { warnings: Vec::new() }, Reply::Error);
            let _ = answer.send(reply);
        }
    }

    /// For `show`.
    pub(super) fn records(&self, now: Time) -> Vec<ChangeRecord> {
        let record = |Waiting { saved, until, .. }: &Waiting| ChangeRecord {
            command: saved.command.clone(),
            left_ms: until.map(|until| u64::try_from(until.since(now).as_millis()).unwrap_or(u64::MAX)),
        };
        self.0.iter().map(record).collect()
    }
}

/// What is to be there again: what was there before, less the links that are gone since, which may come back. Addresses that
/// the change gave to an interface which had them already stay on it.
fn wanted(before: &Current, now: &Config, is_there: impl Fn(&str) -> bool) -> Config {
    let mut wanted = before.config.clone();
    let keep = |name: &str, to: &mut Vec<String>, now: Option<&Vec<String>>| {
        let held = before.held.get(name);
        let kept = now.into_iter().flatten().filter(|one| held.is_some_and(|held| held.contains(*one)));
        let kept: Vec<String> = kept.filter(|one| !to.contains(one)).cloned().collect();
        to.extend(kept);
    };
    for (name, bond) in &mut wanted.bonds {
        keep(name, &mut bond.addresses, now.bonds.get(name).map(|now| &now.addresses));
        for member in &mut bond.members {
            let is_made = before.config.fabrics.contains_key(&member.interface);
            member.absent = !is_made && !is_there(&member.interface);
        }
    }
    for (name, fabric) in &mut wanted.fabrics {
        keep(name, &mut fabric.addresses, now.fabrics.get(name).map(|now| &now.addresses));
    }
    wanted
}

#[cfg(test)]
mod tests {
    use super::*;
    use linkbraid_api::{ConfigFile, config::Document};

    fn config(text: &str) -> Config {
        Document::read(&[ConfigFile { file: "f".into(), text: text.into() }]).unwrap().config
    }

    #[test]
    fn what_was_there_before_is_wanted_again_as_far_as_it_can_be() {
        let text = "[bond.bond0]\nmember = ['eth1', 'eth2']\naddress = '198.18.0.1/24'\n";
        let held = ["198.18.0.1/24", "198.18.9.1/24"].map(str::to_owned).to_vec();
        let before = Current {
            config: config(text),
            held: [("bond0".parse().unwrap(), held)].into(),
            ..Current::default()
        };
        let now = config("[bond.bond0]\nmember = 'eth1'\naddress = ['198.18.9.1/24', '198.18.8.1/24']\n");
        let bond = &wanted(&before, &now, |name| name == "eth1").bonds["bond0"];
        // It was on the interface, whoever gave it; the other one was not.
        assert_eq!(bond.addresses, ["198.18.0.1/24", "198.18.9.1/24"]);
        let absent: Vec<bool> = bond.members.iter().map(|member| member.absent).collect();
        assert_eq!(absent, [false, true]);
        // A bond that the change removed.
        assert_eq!(wanted(&before, &Config::default(), |_| true), before.config);
    }

    /// A later daemon reads what this one wrote.
    #[test]
    fn what_is_on_file_is_read_back() {
        let text = "[fabric.f]\nnode = 0\nnodes = 2\ntransport = 'shm:x'\n[bond.b]\nmember = ['e', { name = 'f', weight = 9 }]\n\
                    mtu = 1500\n[bond.b.class.v]\nmatch = 'dscp=ef'\nmember = 'f'\n";
        let before = Current {
            config: config(text),
            made: [("b".parse().unwrap(), Default::default())].into(),
            ..Current::default()
        };
        let saved = SavedChange {
            boot_id: boot_id(),
            command: "linkbraid bond del b".into(),
            limit: Duration::from_secs(60),
            until: None,
            before,
            given: Vec::new(),
        };
        let text = serde_json::to_string(&saved).unwrap();
        let back: SavedChange = serde_json::from_str(&text).unwrap();
        assert_eq!((back.before.config, back.until), (saved.before.config, None));
        assert_eq!(back.before.made.len(), 1);
    }
}
