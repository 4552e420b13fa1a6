//! Messages from peers, judged before the kernel gets what is in them.

use super::{
    BATCH, Config, ControlMessage, Counter, Counters, Engine, LOOK_LEN, Learned, Mac, Peer, Port,
    PortRefusal, Shared, derived_node, is_group, judge,
};
use crate::{
    Bytes, Shape, Taken, Transport,
    engine::{CONTROL_SHARES, control::Outlet},
};
use linkbraid_wire::fabric::{CONTROL_MAX, DATA_MIN, FRAME_MIN, HEADER_LEN, Header, Kind, VIRTIO_LEN};

/// What is looked at of a message that carries a frame.
const HEAD_LEN: usize = HEADER_LEN + VIRTIO_LEN + LOOK_LEN;
const ZERO: Mac = [0; 6];

/// What judging needs, while the transport lends its bytes.
struct Incoming<'a, P> {
    port: &'a mut P,
    shape: Shape,
    config: Config,
    shared: &'a Shared,
    outlet: &'a Outlet,
    peers: &'a mut [Peer],
    row: usize,
    now: u64,
    gone: &'a mut bool,
    controls: usize,
}

impl<T: Transport, P: Port> Engine<T, P> {
    /// Takes what peers sent; how many messages that were.
    pub(super) fn receive(&mut self, now: u64) -> usize {
        let mut incoming = Incoming {
            port: &mut self.port,
            shape: self.shape,
            config: self.config,
            shared: &self.shared,
            outlet: &self.outlet,
            peers: &mut self.peers,
            row: self.row,
            now,
            gone: &mut self.gone,
            controls: 0,
        };
        let taken = self.transport.receive(BATCH, &mut |peer, bytes| {
            incoming.take(peer, bytes);
            Taken::Yes
        });
        if incoming.controls > 0 {
            self.outlet.session.raise();
        }
        taken
    }
}

impl<P: Port> Incoming<'_, P> {
    fn take(&mut self, peer: u16, bytes: Bytes<'_>) {
        let Some(counters) = self.shared.counters(self.row, peer) else { return };
        if let Err(reason) = self.judge(peer, bytes, counters) {
            counters.one(reason);
        }
    }

    fn judge(&mut self, peer: u16, bytes: Bytes<'_>, counters: &Counters) -> Result<(), Counter> {
        // The peer may change its memory while we look: what is judged is this copy.
        let mut head = [0; HEAD_LEN];
        let looked = bytes.copy_to(&mut head);
        let (header, rest) = head[..looked].split_first_chunk::<HEADER_LEN>().ok_or(Counter::RxDropHeader)?;
        let header = Header::parse(header).map_err(|_| Counter::RxDropHeader)?;
        let after = bytes.len() - HEADER_LEN;
        if header.length as usize != after {
            return Err(Counter::RxDropHeader);
        }
        if header.sender != peer || header.receiver != self.shape.node {
            return Err(Counter::RxDropNode);
        }
        let state = self.peers.get_mut(usize::from(peer)).ok_or(Counter::RxDropNode)?;
        let own = self.shared.epoch();
        let in_force = state.epoch != 0 && (header.sender_epoch, header.receiver_epoch) == (state.epoch, own);
        if header.kind == Kind::Control {
            // Who speaks to an earlier start of this node is ignored by the session anyway.
            if ![0, own].contains(&header.receiver_epoch) {
                return Err(Counter::RxDropEpoch);
            }
            let share = header.sequence as usize % CONTROL_SHARES;
            let storm = if in_force { &mut state.control_storms[share] } else { &mut state.strange_storm };
            if !storm.take(self.now) {
                return Err(Counter::ControlDropStorm);
            }
            return self.control(peer, bytes, counters);
        }
        if header.stream != self.shape.queue {
            return Err(Counter::RxDropNode);
        }
        if !in_force {
            return Err(Counter::RxDropEpoch);
        }
        //= docs/fabric.md#9.4
        if state.encrypted && !bytes.is_encrypted() {
            return Err(Counter::RxDropPlain);
        }
        if !state.window.take(header.sequence) {
            return Err(Counter::RxDropTwice);
        }
        let (virtio, start) = rest.split_first_chunk::<VIRTIO_LEN>().ok_or(Counter::RxDropHeader)?;
        let len = after - VIRTIO_LEN;
        let virtio = judge(virtio, start, len).ok_or(Counter::RxDropVirtio)?;
        let (to, from) = addresses(start).ok_or(Counter::RxDropVirtio)?;
        self.source(peer, from, counters)?;
        let to_all = is_group(to);
        if to_all && !self.peers.get_mut(usize::from(peer)).is_some_and(|state| state.storm.take(self.now)) {
            return Err(Counter::RxDropStorm);
        }
        // The bytes that were judged, not those that lie there by now.
        head[HEADER_LEN..HEADER_LEN + VIRTIO_LEN].copy_from_slice(&virtio);
        match self.port.write(&head[HEADER_LEN..looked], bytes.skip(looked)) {
            Ok(()) => {
                counters.one(Counter::RxFrames);
                counters.add(Counter::RxBytes, len as u64);
                Ok(())
            }
            Err(PortRefusal::Down) => Err(Counter::RxDropDown),
            Err(PortRefusal::Frame) => Err(Counter::RxDropKernel),
            Err(PortRefusal::Gone) => {
                *self.gone = true;
                Err(Counter::RxDropKernel)
            }
        }
    }

    /// Learns who sent a frame, unless that is somebody who cannot have.
    fn source(&mut self, peer: u16, from: Mac, counters: &Counters) -> Result<(), Counter> {
        if is_group(from) || from == ZERO || self.shared.is_own(from) {
            return Err(Counter::RxDropSource);
        }
        if let Some(node) = derived_node(self.config.fabric, from) {
            return if node == peer { Ok(()) } else { Err(Counter::RxDropSource) };
        }
        let seconds = (self.now / 1_000_000_000) as u32;
        match self.shared.macs().learn(from, peer, seconds) {
            Learned::Known => {}
            Learned::New => counters.one(Counter::MacLearned),
            Learned::Moved => counters.one(Counter::MacMoved),
            Learned::Full => counters.one(Counter::MacFull),
        }
        Ok(())
    }

    /// Hands a control message to the session, which judges it.
    fn control(&mut self, peer: u16, bytes: Bytes<'_>, counters: &Counters) -> Result<(), Counter> {
        let mut message = [0; HEADER_LEN + CONTROL_MAX];
        let len = bytes.copy_to(&mut message);
        let message = ControlMessage::new(peer, &message[..len]).ok_or(Counter::RxDropHeader)?;
        if !self.outlet.send(&message) {
            return Err(Counter::ControlDropFull);
        }
        self.controls += 1;
        counters.one(Counter::ControlIn);
        Ok(())
    }
}

/// Destination and source of a frame.
pub(super) fn addresses(frame: &[u8]) -> Option<(Mac, Mac)> {
    let [a, b, c, d, e, f, g, h, i, j, k, l, ..] = *frame else { return None };
    Some(([a, b, c, d, e, f], [g, h, i, j, k, l]))
}

const _: () = assert!(DATA_MIN == VIRTIO_LEN + FRAME_MIN && LOOK_LEN >= FRAME_MIN);
