//! One link: this node and one peer, without time. What the model checker explores is this very machine.
//!
//! In: [`LinkInput`]. Out: [`Effect`]. Who drives it has a clock ([`super::Session`]) or lets any timer run out at any time
//! (`tests/model_session.rs`); nothing here depends on how long something took, so safety does not either.
//!
//! ```text
//!                     an answer that echoes the present cookie
//!     +------+ ------------------------------------------------> +----+ --+ HELLO: answer ACCEPT
//!     | Down |                                                   | Up |   | ALIVE, ACCEPT: it lives
//!     +------+ <------------------------------------------------ +----+ <-+
//!      ^    |   expired, BYE, REFUSE, another MTU, gone, stop     |  ^
//!      +----+                                                     |  | it proves that it lives: two have one number
//!      HELLO: answer ACCEPT           another start of the peer   v  | ... or the doubt runs out and it has not: Down,
//!      resend: HELLO                  proves that it lives     +-------+ and at once Up with the other start
//!                                                              | Up, in|
//!                                                              | doubt |
//!                                                              +-------+
//! ```
//!
//! **A cookie proves once.** It is drawn again whenever the link comes up, goes down, or gets into doubt, and with each question for a
//! round trip, so an echo proves that the sender lived after that moment, whatever a network delays, repeats or reorders, and whatever a clock does: epochs
//! need to differ, not to grow.

use super::{Counter, Down, Mismatch, Side, Verdict};
use crate::limits::PAST_EPOCHS_MAX;
use linkbraid_wire::fabric::{Control, ControlKind, Tag};

mod event;
mod fast_path;

#[cfg(test)]
mod tests;

pub use event::{Effect, Known, LinkInput, Own};

/// So many HELLOs in a row say that the peer does not hold the link as up. One may be the question for a round trip, whose ALIVE was
/// overtaken or is lost.
const DEAF_HELLOS: u8 = 2;

#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
enum State {
    Down(Verdict),
    Up {
        peer: Known,
        /// How often in a row it said HELLO and nothing else since.
        hellos: u8,
        /// Another start that has proven that it lives; the one that is up must, too.
        rival: Option<Known>,
    },
}

//= docs/fabric.md#6.6
/// The machine of one link.
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
pub struct Link {
    cookie: u64,
    number: u32,
    state: State,
    /// The epoch that was up last, 0 if none was.
    last: u64,
    /// Those that were up before another one was, newest first; 0 is none.
    past: [u64; PAST_EPOCHS_MAX],
    /// What frames of the start that is up must carry over the fast path.
    tag: Option<Tag>,
    /// Some came.
    heard: bool,
}

/// What one call works with: who we are, where cookies come from, where effects go.
struct Call<'a> {
    own: &'a Own,
    fresh: &'a mut dyn FnMut() -> u64,
    out: &'a mut Vec<Effect>,
}

impl Call<'_> {
    fn count(&mut self, counter: Counter) {
        self.out.push(Effect::Count(counter));
    }
}

impl Link {
    /// A link to a peer of which nothing is known. Cookies must not be 0 and must not repeat.
    pub fn new(fresh: &mut dyn FnMut() -> u64) -> Link {
        Link {
            cookie: fresh(),
            number: 0,
            state: State::Down(Verdict::Down(Down::Unheard)),
            last: 0,
            past: [0; PAST_EPOCHS_MAX],
            tag: None,
            heard: false,
        }
    }

    /// Takes one input; what is to be done is appended to `out`, in this order. `fresh` draws cookies.
    pub fn handle(
        &mut self,
        own: &Own,
        input: LinkInput,
        fresh: &mut dyn FnMut() -> u64,
        out: &mut Vec<Effect>,
    ) {
        let call = &mut Call { own, fresh, out };
        match (input, self.state) {
            (LinkInput::Message { from, to, control }, _) => self.message(call, from, to, &control),
            (LinkInput::Resend, State::Down(_)) => self.send(call, ControlKind::Hello, 0, 0),
            (LinkInput::Resend, State::Up { peer, rival, .. }) => {
                self.send(call, ControlKind::Alive, peer.epoch, peer.cookie);
                if rival.is_some() {
                    self.send(call, ControlKind::Hello, peer.epoch, peer.cookie);
                }
            }
            (LinkInput::Ask { fresh }, State::Up { peer, rival: None, .. }) => {
                //= docs/fabric.md#5.9
                if fresh {
                    self.renew(call);
                }
                self.send(call, ControlKind::Hello, peer.epoch, peer.cookie);
            }
            (LinkInput::Traffic { epoch }, State::Up { peer, .. }) if peer.epoch == epoch => {
                call.out.push(Effect::Proof);
            }
            (LinkInput::Expired, State::Up { hellos, .. }) => {
                let why = if hellos >= DEAF_HELLOS { Down::Deaf } else { Down::Silent };
                self.down(call, Verdict::Down(why));
            }
            (LinkInput::Doubted, State::Up { rival: Some(_), .. }) => {
                //= docs/fabric.md#5.5
                self.down(call, Verdict::Down(Down::Restarted));
            }
            (LinkInput::Gone, State::Up { .. }) => self.down(call, Verdict::Down(Down::Gone)),
            (LinkInput::Changed, _) => self.changed(call),
            (LinkInput::Heard { heard }, State::Up { peer, .. }) => self.hears(call, heard, &peer),
            (LinkInput::Stop, _) => self.stop(call),
            // What is late: the timer of a link that has gone on since, frames of a start that is not up.
            (
                LinkInput::Ask { .. }
                | LinkInput::Traffic { .. }
                | LinkInput::Expired
                | LinkInput::Doubted
                | LinkInput::Gone
                | LinkInput::Heard { .. },
                State::Down(_) | State::Up { .. },
            ) => {}
        }
    }

    /// What is held of the peer.
    pub const fn verdict(&self) -> Verdict {
        match self.state {
            State::Down(verdict) => verdict,
            State::Up { peer, .. } => Verdict::Up { epoch: peer.epoch },
        }
    }

    /// The peer, while it is up.
    pub const fn peer(&self) -> Option<&Known> {
        match &self.state {
            State::Down(_) => None,
            State::Up { peer, .. } => Some(peer),
        }
    }

    /// What an answer must echo to prove that its sender lives.
    pub const fn cookie(&self) -> u64 {
        self.cookie
    }

    /// The other start of the peer that has proven that it lives, while the one that is up is in doubt.
    pub const fn rival(&self) -> Option<&Known> {
        match &self.state {
            State::Down(_) => None,
            State::Up { rival, .. } => rival.as_ref(),
        }
    }

    fn message(&mut self, call: &mut Call<'_>, from: u64, to: u64, control: &Control) {
        //= docs/fabric.md#4.2
        if to != 0 && to != call.own.epoch {
            return call.count(Counter::EarlierStart);
        }
        match control.kind {
            ControlKind::Hello | ControlKind::Accept | ControlKind::Alive => self.speech(call, from, control),
            ControlKind::Bye => self.bye(call, from),
            ControlKind::Refuse => self.refused(call, from, control),
        }
    }

    fn speech(&mut self, call: &mut Call<'_>, from: u64, control: &Control) {
        let known = self.peer().is_some_and(|peer| peer.epoch == from);
        //= docs/fabric.md#4.11
        if self.peer().is_some_and(|peer| known && peer.is_stale(control)) {
            return call.count(Counter::Stale);
        }
        //= docs/fabric.md#4.5
        //= docs/fabric.md#4.6
        if let Some(why) = Mismatch::between(&call.own.offer, &control.offer, known) {
            return self.refuse(call, from, control, known, why);
        }
        if known {
            self.peer_speaks(call, from, control);
        } else {
            let Control { cookie, number, offer, fast_path, .. } = *control;
            self.stranger_speaks(call, Known { epoch: from, cookie, number, offer, fast_path }, control);
        }
    }

    /// The start that is up speaks.
    fn peer_speaks(&mut self, call: &mut Call<'_>, from: u64, control: &Control) {
        let proves = control.echo == self.cookie;
        let State::Up { peer, hellos, rival } = &mut self.state else { return };
        peer.cookie = control.cookie;
        peer.number = control.number;
        peer.offer = control.offer;
        //= docs/fabric.md#5.3
        *hellos = if control.kind == ControlKind::Hello { hellos.saturating_add(1) } else { 0 };
        if control.kind == ControlKind::Hello {
            //= docs/fabric.md#4.3
            return self.send(call, ControlKind::Accept, from, control.cookie);
        }
        //= docs/fabric.md#5.11
        call.out.push(if proves { Effect::Proof } else { Effect::Sign });
        if !proves {
            return;
        }
        //= docs/fabric.md#7.4
        peer.fast_path = control.fast_path;
        if let Some(rival) = rival.take() {
            //= docs/fabric.md#5.6
            call.out.push(Effect::Duplicate { rival: rival.epoch });
            self.send_refuse(call, rival.epoch, rival.cookie, Mismatch::Taken);
            self.renew(call);
        }
    }

    /// A start that is not up speaks.
    fn stranger_speaks(&mut self, call: &mut Call<'_>, stranger: Known, control: &Control) {
        let hello = control.kind == ControlKind::Hello;
        //= docs/fabric.md#4.4
        let proves = !hello && control.echo == self.cookie;
        if self.past.contains(&stranger.epoch) {
            return self.past_speaks(call, &stranger, hello, proves);
        }
        match &mut self.state {
            State::Down(_) if proves => self.up(call, stranger),
            State::Down(_) if hello => {
                self.send(call, ControlKind::Accept, stranger.epoch, stranger.cookie);
                call.out.push(Effect::Hurry);
            }
            State::Down(_) => {
                //= docs/fabric.md#4.8
                call.count(Counter::Unproven);
                self.send(call, ControlKind::Hello, stranger.epoch, stranger.cookie);
            }
            // In doubt already: its time must run out, however often the rival proves that it lives.
            State::Up { rival: Some(rival), .. } if proves && rival.epoch == stranger.epoch => {
                *rival = stranger;
            }
            State::Up { rival, peer, .. } if proves => {
                //= docs/fabric.md#5.4
                call.out.push(Effect::Count(Counter::Doubts));
                call.out.push(Effect::Doubt);
                *rival = Some(stranger);
                let (epoch, cookie) = (peer.epoch, peer.cookie);
                self.renew(call);
                self.send(call, ControlKind::Hello, epoch, cookie);
            }
            State::Up { .. } => {
                call.count(Counter::OtherEpoch);
                if hello {
                    // Not ACCEPT: that would let it take the link for up, and lose what it sends.
                    self.send(call, ControlKind::Hello, stranger.epoch, stranger.cookie);
                }
            }
        }
    }

    /// A start speaks that another one has followed. If that is no delayed message, two live nodes have one number.
    fn past_speaks(&mut self, call: &mut Call<'_>, stranger: &Known, hello: bool, proves: bool) {
        //= docs/fabric.md#5.8
        call.count(Counter::OtherEpoch);
        match self.state {
            State::Up { .. } if hello => self.send(call, ControlKind::Hello, stranger.epoch, stranger.cookie),
            State::Up { .. } if proves => {
                call.out.push(Effect::Duplicate { rival: stranger.epoch });
                self.send_refuse(call, stranger.epoch, stranger.cookie, Mismatch::Taken);
            }
            State::Down(_) if hello || proves => {
                self.send_refuse(call, stranger.epoch, stranger.cookie, Mismatch::Taken);
            }
            State::Up { .. } | State::Down(_) => {}
        }
    }

    /// What it offers does not fit.
    fn refuse(&mut self, call: &mut Call<'_>, from: u64, control: &Control, known: bool, why: Mismatch) {
        call.count(Counter::RefusedPeer);
        if control.kind == ControlKind::Hello {
            self.send_refuse(call, from, control.cookie, why);
        }
        //= docs/fabric.md#4.7
        self.disagree(call, known, Verdict::Refused { by: Side::Local, why });
    }

    /// A REFUSE came.
    fn refused(&mut self, call: &mut Call<'_>, from: u64, control: &Control) {
        //= docs/fabric.md#4.7
        let Some(reason) = control.reason.filter(|_| control.echo == self.cookie) else {
            return call.count(Counter::Unproven);
        };
        let known = self.peer().is_some_and(|peer| peer.epoch == from);
        let why = Mismatch::of(reason, &call.own.offer, &control.offer);
        self.disagree(call, known, Verdict::Refused { by: Side::Peer, why });
    }

    /// Nothing that is up goes down for what another start says.
    fn disagree(&mut self, call: &mut Call<'_>, known: bool, verdict: Verdict) {
        match &mut self.state {
            State::Up { .. } if known => self.down(call, verdict),
            State::Up { .. } => call.count(Counter::OtherEpoch),
            // Both refuse, and each hears of the other's: nothing new, and nothing to hurry for.
            State::Down(old) if old.says_the_same(verdict) => {}
            State::Down(old) => {
                if std::mem::replace(old, verdict) != verdict {
                    call.out.push(Effect::Verdict(verdict));
                }
            }
        }
    }

    fn bye(&mut self, call: &mut Call<'_>, from: u64) {
        match &mut self.state {
            //= docs/fabric.md#4.9
            State::Up { peer, .. } if peer.epoch == from => self.down(call, Verdict::Down(Down::Left)),
            State::Up { rival, .. } if rival.is_some_and(|rival| rival.epoch == from) => *rival = None,
            State::Up { .. } | State::Down(_) => call.count(Counter::OtherEpoch),
        }
    }

    fn changed(&mut self, call: &mut Call<'_>) {
        // So that the peer can tell what was said before from what is said now.
        self.renew(call);
        self.fit_tag(call);
        let State::Up { peer, rival, .. } = &mut self.state else {
            return call.out.push(Effect::Hurry);
        };
        //= docs/fabric.md#4.6
        let ours = call.own.offer;
        *rival = rival.filter(|rival| Mismatch::between(&ours, &rival.offer, false).is_none());
        let (peer, why) = (*peer, Mismatch::between(&ours, &peer.offer, true));
        match why {
            Some(why) => self.down(call, Verdict::Refused { by: Side::Local, why }),
            None => self.send(call, ControlKind::Alive, peer.epoch, peer.cookie),
        }
    }

    fn stop(&mut self, call: &mut Call<'_>) {
        //= docs/fabric.md#4.9
        if let Some(peer) = self.peer().copied() {
            self.send(call, ControlKind::Bye, peer.epoch, peer.cookie);
        }
        let stopped = Verdict::Down(Down::Stopped);
        self.state = State::Down(stopped);
        self.fit_tag(call);
        call.out.push(Effect::Verdict(stopped));
    }

    fn up(&mut self, call: &mut Call<'_>, peer: Known) {
        if self.last != 0 && self.last != peer.epoch {
            self.past.rotate_right(1);
            self.past[0] = self.last;
        }
        self.last = peer.epoch;
        self.state = State::Up { peer, hellos: 0, rival: None };
        self.fit_tag(call);
        //= docs/fabric.md#4.4
        self.renew(call);
        call.out.push(Effect::Verdict(self.verdict()));
        call.out.push(Effect::Proof);
        // So that the peer comes up without waiting, and before the first frame.
        self.send(call, ControlKind::Alive, peer.epoch, peer.cookie);
    }

    fn down(&mut self, call: &mut Call<'_>, verdict: Verdict) {
        let rival = self.rival().copied();
        self.state = State::Down(verdict);
        self.fit_tag(call);
        //= docs/fabric.md#4.4
        self.renew(call);
        call.out.push(Effect::Verdict(verdict));
        match rival {
            //= docs/fabric.md#5.5
            Some(rival) => self.up(call, rival),
            None => call.out.push(Effect::Hurry),
        }
    }

    /// The cookie so far proves nothing any more.
    fn renew(&mut self, call: &mut Call<'_>) {
        self.cookie = (call.fresh)();
        self.number = self.number.wrapping_add(1);
    }

    fn send(&self, call: &mut Call<'_>, kind: ControlKind, to: u64, echo: u64) {
        let control = Control {
            kind,
            reason: None,
            offer: call.own.offer,
            cookie: self.cookie,
            number: self.number,
            echo,
            fast_path: self.fast_path(call, kind, to),
        };
        call.out.push(Effect::Send(to, control));
    }

    fn send_refuse(&self, call: &mut Call<'_>, to: u64, echo: u64, why: Mismatch) {
        let kind = ControlKind::Refuse;
        let reason = Some(why.reason());
        let control = Control {
            kind,
            reason,
            offer: call.own.offer,
            cookie: self.cookie,
            number: self.number,
            echo,
            fast_path: None,
        };
        call.out.push(Effect::Send(to, control));
    }
}
