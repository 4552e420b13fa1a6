//! What follows from the news of the threads that join and end ([`crate::world::fabric::job`]).

use crate::{
    io::{error::About as _, undo::UndoLog},
    operations::setup::replace_addresses,
    world::{
        World,
        fabric::{
            Fabric, RETRY, State, Ticket,
            job::{Done, Job, Place, Why, Work},
            node::Node,
            read_addresses,
            saved::SavedFabric,
        },
        history::{Change, History},
    },
};
use linkbraid_api::Error;
use std::time::Duration;
use tokio::{sync::mpsc::UnboundedReceiver, time::timeout};

/// How long a daemon that stops waits for the ends of its fabrics at most: large queues take a second a gigabyte.
const STOP_MAX: Duration = Duration::from_secs(10);

/// A thread is done.
pub(crate) async fn done(world: &mut World, done: Done) {
    let Some(mut job) = world.jobs.take(done.ticket) else { return };
    let name = job.saved.name.clone();
    match std::mem::replace(&mut job.work, Work::Cancelled) {
        Work::End(reply) => job.reply(reply),
        Work::Cancelled => match done.output.joined(&name).0 {
            Ok(place) => give_back(world, job, place, Ok(())),
            Err(_) => job.reply(Ok(())),
        },
        Work::Add => match done.output.joined(&name).0 {
            Ok(place) => add(world, job, *place).await,
            Err(error) => job.reply(Err(error)),
        },
        Work::Join(why) => {
            let (place, refused) = done.output.joined(&name);
            let kept = join(world, done.ticket, why, place, refused.as_ref()).await;
            job.reply(refused.map_or(kept, Err));
        }
    }
}

/// Gives a place up; whoever waits hears of it when it is gone.
fn give_back(world: &mut World, mut job: Job, place: Box<Place>, reply: Result<(), Error>) {
    let answer = job.take_answer();
    let saved = place.saved.clone();
    world.jobs.end(&saved, reply, answer, move || drop(place));
}

/// A new fabric has its place.
async fn add(world: &mut World, mut job: Job, place: Place) {
    let mut saved = place.saved.clone();
    // Anybody could see it meanwhile.
    match world.netlink.link_by_index(saved.ifindex).await.about(&saved.name, "cannot add the fabric") {
        Ok(link) => saved.follow(&link),
        Err(error) => return give_back(world, job, Box::new(place), Err(error)),
    }
    let interface = (saved.name.as_str(), saved.ifindex);
    let mut log = UndoLog::new(&world.netlink);
    if let Err(error) = replace_addresses(&mut log, interface, &[], &saved.addresses, |_| false).await {
        return give_back(world, job, Box::new(place), Err(error));
    }
    let history = History::new(&saved.name, world.feed.clone());
    let waits =
        State::Waits { error: Error::new(&saved.name, "not ready", "it is added"), until: world.clock.now() };
    let mut fabric = Fabric::new(saved.clone(), history, waits);
    let auth = fabric.fresh_keys();
    let threads = (place.tap, place.transports, place.fast_path);
    let begun = Node::start(&saved, threads, auth, world.clock, world.events.clone());
    let node = match begun {
        Ok(node) => node,
        Err(error) => return job.reply(Err(error)),
    };
    // From here on it stays, so it is on file before.
    let kept = world.state.write(&saved).and_then(|()| node.finish_add());
    if let Err(error) = kept {
        let _ = world.state.remove::<SavedFabric>(&saved.name);
        let answer = job.take_answer();
        world.jobs.end(&saved, Err(error), answer, move || node.stop());
        return;
    }
    let text = format!("added as node {} of {} on {}", saved.node, saved.nodes, saved.transport);
    fabric.history.add(Change::fabric(&saved.name, "added", text));
    let warning =
        node.fast_path_is_refused().map(|cause| format!("{}: frames do not use VXLAN: {cause}", saved.name));
    fabric.state = State::Runs(node);
    read_addresses(&world.netlink, &mut fabric).await;
    world.fabrics.insert(fabric.saved.name.clone(), fabric);
    job.warn(Ok(()), warning.into_iter().collect());
}

/// A fabric that is known has its place, or has none.
async fn join(
    world: &mut World,
    ticket: Ticket,
    why: Why,
    place: Result<Box<Place>, Error>,
    refused: Option<&Error>,
) -> Result<(), Error> {
    let mut fabrics = world.fabrics.values_mut();
    let Some(fabric) = fabrics.find(|fabric| fabric.state.waits_for(ticket)) else { return Ok(()) };
    let name = fabric.saved.name.clone();
    let changed = matches!(why, Why::Changed(_));
    if let (Why::Changed(before), Some(_)) = (&why, refused) {
        let ifindex = fabric.saved.ifindex;
        let was = std::mem::replace(&mut fabric.saved.settings, before.settings.clone());
        if was.mtu != before.settings.mtu
            && let Err(error) = world.netlink.set_mtu(ifindex, before.settings.mtu.0).await
        {
            tracing::warn!(fabric = %name, %error, "its MTU stays as it was to be");
        }
    }
    let begun = place.and_then(|place| {
        fabric.saved.nodes = place.saved.nodes;
        let Place { tap, transports, fast_path, .. } = *place;
        let auth = fabric.fresh_keys();
        let threads = (tap, transports, fast_path);
        Node::start(&fabric.saved, threads, auth, world.clock, world.events.clone())
    });
    let (reason, text) = match why {
        Why::Adopt => ("adopted", "taken over from an earlier daemon, with its interface".to_owned()),
        Why::Retry => ("adopted", "it could join".to_owned()),
        Why::Lost => ("anew", "restarted in the memory that has the name now".to_owned()),
        Why::Moved => ("anew", "restarted at its new address".to_owned()),
        Why::Changed(_) => {
            ("anew", format!("restarted as node {} of {}", fabric.saved.node, fabric.saved.nodes))
        }
    };
    match begun {
        Ok(node) => {
            fabric.state = State::Runs(node);
            fabric.history.add(Change::fabric(&name, reason, text));
        }
        Err(error) => {
            // Said once, not every second.
            if !matches!(why, Why::Retry) {
                let text = format!("{error}; tried again every second");
                fabric.history.add(Change::fabric(&name, "failed", text));
            }
            fabric.state = State::Waits { error, until: world.clock.now() + RETRY };
        }
    }
    if changed { world.state.write(&fabric.saved) } else { Ok(()) }
}

/// Ends all fabrics, all at once, and waits for that. The kernel keeps their interfaces; bonds with such a member hear of it
/// while there is somebody to report it.
pub(crate) async fn stop_all(world: &mut World, news: &mut UnboundedReceiver<Done>) {
    // Nobody waits any more for what is new, and half of it must not stay.
    world.jobs.cancel_all();
    for fabric in std::mem::take(&mut world.fabrics).into_values() {
        if let State::Runs(node) = fabric.state {
            world.jobs.end(&fabric.saved, Ok(()), None, move || node.stop());
        }
        world.driving.carrier(fabric.saved.ifindex, false);
    }
    let ends = async {
        while !world.jobs.is_empty()
            && let Some(news) = news.recv().await
        {
            done(world, news).await;
        }
    };
    if timeout(STOP_MAX, ends).await.is_err() {
        tracing::warn!("not all fabrics have ended");
    }
}
