//! Somebody on the network who has no key: he hears what nodes say, repeats it later, and sends what he made of it.

use super::{Due, World, millis};
use linkbraid_proto::auth;
use linkbraid_wire::fabric::{Control, ControlKind, RefuseReason, emit_control, parse_control};
use std::{rc::Rc, sync::Arc, time::Duration};

/// What he remembers.
const RECORDED_MAX: usize = 400;

/// How long he waits between two messages, at most.
const PAUSE: Duration = millis(5);

#[derive(Default)]
pub struct Hostile {
    /// Sender, receiver and what was said.
    recorded: Vec<(u16, u16, Rc<[u8]>)>,
    /// So many messages did he send.
    pub sent: u64,
}

/// The key of all nodes.
fn settings() -> auth::Settings {
    let key = auth::Key::new(1, [42; auth::SECRET_LEN].into());
    let ring = auth::Ring::new(vec![key], 1).expect("a ring");
    auth::Settings { mode: auth::Mode::Require, ring: Arc::new(ring) }
}

/// In the sender's name: another kind of message with all else as it was, and a farewell, a refusal or another MTU above all.
fn forged(from: u16, to: u16, bytes: &[u8], choice: u64) -> Option<Vec<u8>> {
    let (header, seen) = parse_control(bytes).ok()?;
    let kind = ControlKind::ALL[choice as usize % ControlKind::ALL.len()];
    let reason = (kind == ControlKind::Refuse).then_some(RefuseReason::Taken);
    let mut control = Control { kind, reason, ..seen };
    if choice.is_multiple_of(3) {
        control.offer.mtu = 1400;
    }
    let ends = ((from, header.sender_epoch), (to, header.receiver_epoch));
    emit_control(ends.0, ends.1, &control).ok().map(|bytes| bytes.to_vec())
}

impl World {
    /// Nodes that start from now on have a key and require it, and he is on the network.
    pub fn protect(&mut self) {
        self.auth = settings();
        self.hostile = Some(Hostile::default());
        self.network.after(PAUSE, Due::Attack);
    }

    /// He hears what is on its way.
    pub(super) fn record(&mut self, from: u16, to: u16, bytes: &Rc<[u8]>) {
        let place = self.hostile.is_some().then(|| self.random(RECORDED_MAX as u64) as usize);
        let (Some(hostile), Some(place)) = (&mut self.hostile, place) else { return };
        if hostile.recorded.len() >= RECORDED_MAX {
            // Some stay for long.
            hostile.recorded.swap_remove(place);
        }
        hostile.recorded.push((from, to, bytes.clone()));
    }

    /// He sends something.
    pub(super) fn attack(&mut self) {
        let [which, kind, choice] = [0; 3].map(|_| self.random(1 << 30));
        let pause = millis(1 + choice % PAUSE.as_millis() as u64);
        let Some(hostile) = &mut self.hostile else { return };
        self.network.after(pause, Due::Attack);
        if hostile.recorded.is_empty() {
            return;
        }
        let (from, to, bytes) = hostile.recorded[which as usize % hostile.recorded.len()].clone();
        let bytes: Rc<[u8]> = match kind % 4 {
            0 | 1 => bytes,
            2 => match forged(from, to, &bytes, choice) {
                Some(bytes) => bytes.into(),
                None => return,
            },
            _ => {
                let mut changed = bytes.to_vec();
                let at = choice as usize % changed.len();
                changed[at] ^= (choice >> 16) as u8 | 1;
                changed.into()
            }
        };
        hostile.sent += 1;
        self.network.deliver(Duration::ZERO, Due::Control { from, to, bytes });
    }
}
