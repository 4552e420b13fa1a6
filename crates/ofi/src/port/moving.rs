//! How messages move: what was sent, what came, and what to do when either fails.

use super::{
    super::{
        endpoint::{Done, Post, READ},
        message::{HEAD, Head, Kind, MESSAGE_MAX},
        talk::Heard,
    },
    Port, Purpose,
    link::Waiting,
};
use crate::limits::{HELLO_MAX, HELLO_MIN, LOOK_UP};
use std::time::Instant;

/// Times that the library is asked for more within one call.
const READS: usize = 2;

impl Port {
    /// Where the next `len` bytes for a peer go: slot, and place in it. None: there is no room, or no peer yet.
    pub(super) fn place_for(&mut self, index: usize, len: usize) -> Option<(usize, usize)> {
        for first in [true, false] {
            let link = &mut self.links[index];
            if !link.talk.is_up() {
                return None;
            }
            match link.open {
                Some((slot, end)) if end + len <= MESSAGE_MAX => return Some((slot, end)),
                _ => {}
            }
            if let Some(slot) = link.free.pop() {
                self.purposes[slot] = Purpose::Frames { link: index, frames: 0, end: 0, life: 0 };
                if let Some(full) = link.open.take() {
                    link.sealed.push_back(full);
                    link.flushed = false;
                    self.post(index);
                }
                return Some((slot, HEAD));
            }
            if first {
                self.post(index);
                self.progress();
            }
        }
        None
    }

    /// Sends the messages that a peer has room for.
    pub(super) fn post(&mut self, index: usize) {
        loop {
            let link = &mut self.links[index];
            if link.sealed.is_empty() && link.flushed {
                link.flushed = false;
                link.sealed.extend(link.open.take());
            }
            let (Some((slot, end)), Some(to)) = (link.sealed.front().copied(), link.address) else { break };
            if !link.talk.has_room() {
                break;
            }
            let head = link.talk.head(Kind::Data, self.shape.node, self.shape.nodes, self.shape.queue);
            if let Purpose::Frames { life, end: to, .. } = &mut self.purposes[slot] {
                (*life, *to) = (head.life, end);
            }
            self.endpoint.pool.bytes_mut(slot)[..HEAD].copy_from_slice(&head.emit());
            match self.endpoint.send(slot, end, to) {
                Ok(()) => {
                    link.sealed.pop_front();
                    link.talk.sent(Kind::Data);
                    link.under_way += 1;
                    link.under_way_bytes += end - HEAD;
                }
                Err(Post::Again) => break,
                Err(Post::Failed(_)) => {
                    self.broke(index);
                    break;
                }
            }
        }
    }

    /// Sends a message without frames. False: not now.
    fn control(&mut self, index: usize, kind: Kind) -> bool {
        let link = &mut self.links[index];
        let Some(to) = link.address else { return false };
        let Some(slot) = link.controls.pop() else { return false };
        let head = link.talk.head(kind, self.shape.node, self.shape.nodes, self.shape.queue);
        self.purposes[slot] = Purpose::Control { link: index, life: head.life };
        self.endpoint.pool.bytes_mut(slot)[..HEAD].copy_from_slice(&head.emit());
        match self.endpoint.send(slot, HEAD, to) {
            Ok(()) => {
                link.talk.sent(kind);
                link.under_way += 1;
                true
            }
            Err(_) => {
                link.controls.push(slot);
                false
            }
        }
    }

    /// Sends whatever is due to any peer.
    pub(super) fn pump(&mut self) {
        let now = (self.connecting > 0).then(Instant::now);
        for index in 0..self.links.len() {
            let link = &mut self.links[index];
            if let (Some(now), Some(due)) = (now, link.hello_due())
                && now >= due
            {
                link.wants_hello = true;
                link.due = now + link.pause;
                link.pause = (link.pause * 2).min(HELLO_MAX);
                link.hellos += 1;
                if link.hellos.is_multiple_of(LOOK_UP) || link.address.is_none() {
                    self.look_up(index);
                }
            }
            if self.links[index].wants_hello {
                let said = self.control(index, Kind::Hello);
                self.links[index].wants_hello = !said;
            }
            if self.links[index].has_work() {
                self.post(index);
            }
            if self.links[index].talk.owes() {
                self.control(index, Kind::Credit);
            }
        }
    }

    /// Lets the library work, and takes what it has done.
    pub(super) fn progress(&mut self) {
        for _ in 0..READS {
            let mut done = [Done::default(); READ];
            let count = self.endpoint.read(&mut done);
            done[..count].iter().for_each(|done| self.take(done));
            if count < READ {
                break;
            }
        }
        while let Some(slot) = self.unposted.pop() {
            if self.endpoint.receive(slot).is_err() {
                self.unposted.push(slot);
                break;
            }
        }
    }

    fn take(&mut self, done: &Done) {
        let slot = done.slot;
        match self.purposes[slot] {
            Purpose::Receive if done.error == 0 => self.hear(slot, done.len),
            Purpose::Receive => self.repost(slot),
            Purpose::Frames { link: index, frames, end, life } => {
                let link = &mut self.links[index];
                link.free.push(slot);
                link.under_way -= 1;
                link.under_way_bytes -= end - HEAD;
                if done.error != 0 {
                    link.stats.lost += frames;
                    self.failed(index, life);
                }
            }
            Purpose::Control { link: index, life } => {
                let link = &mut self.links[index];
                link.controls.push(slot);
                link.under_way -= 1;
                if done.error != 0 && link.talk.is_up() {
                    self.failed(index, life);
                }
            }
        }
    }

    /// A message did not reach a peer: if it was of this life, the life is over.
    fn failed(&mut self, index: usize, life: u32) {
        if life == self.links[index].talk.life() {
            self.broke(index);
        }
    }

    /// Posts a slot to be received into again.
    pub(super) fn repost(&mut self, slot: usize) {
        if self.endpoint.receive(slot).is_err() {
            self.unposted.push(slot);
        }
    }

    /// A message came.
    fn hear(&mut self, slot: usize, len: usize) {
        let head = Head::parse(&self.endpoint.pool.bytes(slot)[..len]);
        let ours = |head: &Head| (head.nodes, head.queue) == (self.shape.nodes, self.shape.queue);
        let known = head.filter(ours).and_then(|head| Some((head, self.index(head.node)?)));
        let Some((head, index)) = known else {
            self.strangers.bad_record += 1;
            return self.repost(slot);
        };
        let link = &mut self.links[index];
        link.heard = true;
        let was_up = link.talk.is_up();
        match link.talk.hear(&head) {
            Heard::Frames(ahead) => {
                let ahead = ahead as usize;
                if link.inbox.len() <= ahead {
                    link.inbox.resize(ahead + 1, None);
                }
                link.inbox[ahead] = Some(Waiting { slot, at: HEAD, end: len });
                if !was_up {
                    self.count_connecting();
                }
                return;
            }
            Heard::Nothing | Heard::Old => {}
            Heard::Hello { restarted, answer } => {
                link.wants_hello |= answer;
                link.pause = HELLO_MIN;
                if restarted {
                    self.void(index);
                    if self.by_name {
                        self.look_up(index);
                    }
                }
            }
            Heard::Broken => {
                link.stats.bad_record += 1;
                self.broke(index);
            }
        }
        if self.links[index].talk.is_up() != was_up {
            self.count_connecting();
        }
        self.repost(slot);
    }

    fn count_connecting(&mut self) {
        self.connecting = self.links.iter().filter(|link| !link.talk.is_up()).count();
    }

    /// Something was lost on the way: what arrived in this life is void, and both begin again. What was not sent yet waits.
    fn broke(&mut self, index: usize) {
        let link = &mut self.links[index];
        link.talk.end_life();
        link.start_hellos();
        self.drop_inbox(index);
        self.count_connecting();
    }

    /// The peer has restarted: what was for its earlier life, or from it, is void.
    fn void(&mut self, index: usize) {
        self.drop_inbox(index);
        let lost = self.drop_unsent(index);
        self.links[index].stats.lost += lost;
        self.cancel(index);
    }

    /// Forgets what came.
    fn drop_inbox(&mut self, index: usize) {
        while let Some(waiting) = self.links[index].inbox.pop_front() {
            if let Some(waiting) = waiting {
                self.repost(waiting.slot);
            }
        }
    }

    /// Takes what came without lending it to anybody. What others overtook comes yet.
    fn take_inbox(&mut self, index: usize) {
        while let Some(Some(waiting)) = self.links[index].inbox.front().copied() {
            self.links[index].inbox.pop_front();
            self.links[index].talk.took();
            self.repost(waiting.slot);
        }
    }

    /// Forgets what was not sent; how many frames that were.
    fn drop_unsent(&mut self, index: usize) -> u64 {
        let link = &mut self.links[index];
        link.flushed = false;
        let mut frames = 0;
        while let Some((slot, _)) = link.sealed.pop_front().or_else(|| link.open.take()) {
            if let Purpose::Frames { frames: some, .. } = self.purposes[slot] {
                frames += some;
            }
            link.free.push(slot);
        }
        frames
    }

    /// Gives up on what is under way to a peer.
    fn cancel(&mut self, index: usize) {
        for (slot, purpose) in self.purposes.iter().enumerate() {
            match purpose {
                Purpose::Frames { link, .. } | Purpose::Control { link, .. } if *link == index => {
                    self.endpoint.cancel(slot);
                }
                _ => {}
            }
        }
    }

    /// Makes the address of a peer known to libfabric again.
    fn look_up(&mut self, index: usize) {
        let link = &mut self.links[index];
        if let Some(address) = link.address.take() {
            self.endpoint.remove(address);
        }
        link.address = self.endpoint.insert(&link.name).ok();
    }

    /// A peer is gone, says whoever knows, or has come again. If nothing came from it since the last time, the talk with
    /// it begins again, too.
    pub(super) fn forget(&mut self, index: usize) {
        self.take_inbox(index);
        self.drop_unsent(index);
        let link = &mut self.links[index];
        if !std::mem::take(&mut link.heard) {
            link.talk.end_life();
            link.start_hellos();
            self.cancel(index);
            self.look_up(index);
            self.count_connecting();
        }
    }
}
