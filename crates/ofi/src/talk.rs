//! What two nodes have advertised to each other: their lives, and how many messages each may still send. No I/O.
//!
//! Whoever has not heard that the peer knows its life says hello until it has. A life ends when something may have been
//! lost; what belongs to one that ended is refused by both sides, so no message is taken twice or out of order. Within a
//! life messages may come out of order, for providers complete long ones later.

use super::message::{Head, Kind, WINDOW_MAX};

/// One side of it.
#[derive(Debug, Clone)]
pub struct Talk {
    /// How many messages the peer may have waiting here; at most the bits of `came`.
    window: u16,
    life: u32,
    /// 0: none was heard of.
    peer_life: u32,
    known: bool,
    /// The next message with frames.
    number: u32,
    /// The first one that the peer has no room for.
    limit: u32,
    /// The next message with frames to be taken, and which of those from there on came already.
    taken: u32,
    came: u128,
    /// What was advertised of that to the peer.
    advertised: u32,
}

/// What to do about a message.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Heard {
    /// No more than that.
    Nothing,
    /// Its frames are those so many messages after the next ones.
    Frames(u32),
    /// A hello: whether the peer has restarted, and whether it wants an answer.
    Hello {
        /// What waits from it, and for it, is void.
        restarted: bool,
        /// Say hello to it.
        answer: bool,
    },
    /// It belongs to a life that ended.
    Old,
    /// It makes no sense, or one before it was lost: this life has ended.
    Broken,
}

impl Talk {
    /// Nothing was said; `life` is drawn at random.
    #[must_use]
    pub fn new(life: u32, window: u16) -> Self {
        let life = life.max(1);
        Self {
            window,
            life,
            peer_life: 0,
            known: false,
            number: 0,
            limit: 0,
            taken: 0,
            came: 0,
            advertised: 0,
        }
    }

    /// Both know each other: frames may be sent.
    #[must_use]
    pub fn is_up(&self) -> bool {
        self.known
    }

    /// The present life.
    #[must_use]
    pub fn life(&self) -> u32 {
        self.life
    }

    /// The head of a message. One with frames counts as sent with [`Talk::sent`].
    #[must_use]
    pub fn head(&self, kind: Kind, node: u16, nodes: u16, queue: u16) -> Head {
        Head {
            node,
            kind,
            known: self.known,
            nodes,
            queue,
            life: self.life,
            peer_life: self.peer_life,
            number: self.number,
            taken: self.taken,
            window: self.window,
        }
    }

    /// The peer has room for another message with frames.
    #[must_use]
    pub fn has_room(&self) -> bool {
        self.known && (1..=u32::from(WINDOW_MAX)).contains(&self.limit.wrapping_sub(self.number))
    }

    /// A message was sent: with frames, or only with what was taken.
    pub fn sent(&mut self, kind: Kind) {
        self.number = self.number.wrapping_add(u32::from(kind == Kind::Data));
        self.advertised = self.taken;
    }

    /// A message with frames is done with, its memory free.
    pub fn took(&mut self) {
        self.taken = self.taken.wrapping_add(1);
        self.came >>= 1;
    }

    /// The peer should hear soon how many were taken.
    #[must_use]
    pub fn owes(&self) -> bool {
        self.known && self.taken.wrapping_sub(self.advertised) >= u32::from(self.window / 2).max(1)
    }

    /// Something may have been lost: begin again.
    pub fn end_life(&mut self) {
        let life = self.life.wrapping_add(1).max(1);
        *self = Self { life, peer_life: self.peer_life, ..Self::new(life, self.window) };
    }

    /// Takes what the peer said.
    pub fn hear(&mut self, head: &Head) -> Heard {
        let to_this_life = head.peer_life == self.life;
        match head.kind {
            Kind::Hello => {
                let restarted = head.life != self.peer_life;
                if restarted {
                    let life = self.life;
                    *self = Self { life, peer_life: head.life, ..Self::new(life, self.window) };
                }
                self.known |= to_this_life;
                if to_this_life && !self.grant(head) {
                    return Heard::Broken;
                }
                Heard::Hello { restarted, answer: restarted || !to_this_life || !head.known }
            }
            _ if !to_this_life || head.life != self.peer_life => Heard::Old,
            Kind::Credit if self.grant(head) => self.heard_of(Heard::Nothing),
            Kind::Data if self.grant(head) => {
                let ahead = head.number.wrapping_sub(self.taken);
                if ahead >= self.window.into() || self.came & (1 << ahead) != 0 {
                    return Heard::Broken;
                }
                self.came |= 1 << ahead;
                self.heard_of(Heard::Frames(ahead))
            }
            _ => Heard::Broken,
        }
    }

    /// The peer uses this life, so it knows it.
    fn heard_of(&mut self, heard: Heard) -> Heard {
        self.known = true;
        heard
    }

    /// Takes what the peer has room for. False: it took what was never sent.
    fn grant(&mut self, head: &Head) -> bool {
        if self.number.wrapping_sub(head.taken) > u32::from(WINDOW_MAX) {
            return false;
        }
        let limit = head.taken.wrapping_add(head.window.into());
        if limit.wrapping_sub(self.limit) <= u32::MAX / 2 {
            self.limit = limit;
        }
        true
    }
}
