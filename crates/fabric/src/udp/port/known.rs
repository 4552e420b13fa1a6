//! Where peers are, as the directory says now.

use super::Port;
use crate::limits::PATH_LOOK_FRAMES;
use std::net::SocketAddr;

impl Port {
    /// Follows the directory, if it has changed.
    pub(super) fn follow_directory(&mut self) {
        if self.directory.version() != self.version {
            self.take_addresses();
        }
    }

    /// Takes over the addresses of all peers. What waits for one at its address of before goes; parts of frames that came from
    /// there do, too.
    #[cold]
    pub(super) fn take_addresses(&mut self) {
        //= docs/fabric.md#10.1
        // Before the addresses, so that a change in between is seen at the next look.
        self.version = self.directory.version();
        let known = self.directory.directory();
        let queue = self.shape.queue;
        for index in 0..self.peers.len() {
            let mut target = known.address(self.peers[index].node);
            if let Some(target) = &mut target {
                target.set_port(target.port() + queue);
            }
            // Datagrams come without a scope, which the socket's own address fixes.
            let address = target.map(|target| SocketAddr::new(target.ip(), target.port()));
            if address == self.peers[index].address {
                continue;
            }
            self.outbox.drop_waiting(index);
            let peer = &mut self.peers[index];
            peer.assembly.drop_waiting();
            peer.address = address;
            peer.look_in = PATH_LOOK_FRAMES;
            if let Some(target) = target {
                peer.raw = target.into();
                self.look(index);
            }
        }
        let addresses = self.peers.iter().enumerate();
        self.by_address = addresses.filter_map(|(at, peer)| Some((peer.address?, at))).collect();
        self.by_address.sort_unstable();
    }
}
