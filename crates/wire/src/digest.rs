//! A hash of a host's own mapping: equal mappings, equal digests, in every message and epoch state.

use crate::{Message, tlv};

/// FNV-1a, 64 bits: no secret, no dependency; it finds differences, it does not authenticate.
struct Fnv(u64);

impl Fnv {
    const fn new() -> Self {
        Fnv(0xcbf2_9ce4_8422_2325)
    }

    fn write(&mut self, bytes: &[u8]) {
        for byte in bytes {
            self.0 = (self.0 ^ u64::from(*byte)).wrapping_mul(0x0100_0000_01b3);
        }
    }
}

impl Message {
    /// Digest of the whole mapping: what [`Message::sent_digest`] holds, classes, features and guests; not kind, sequence or
    /// AUTH.
    pub fn mapping_digest(&self) -> u64 {
        let mut hash = Fnv(self.sent_digest());
        if let Some(extension) = &self.extension {
            for class in &extension.classes {
                let value = tlv::class_value(class);
                hash.write(&[value.len() as u8]);
                hash.write(&value);
            }
            if extension.features != 0 {
                hash.write(&extension.features.to_be_bytes());
            }
            for guest in &extension.guests {
                let value = tlv::guest_value(guest);
                hash.write(&[value.len() as u8]);
                hash.write(&value);
            }
        }
        hash.0
    }

    /// What the DIGEST TLV holds: a digest of host id, epoch, addresses, hardware addresses and members. It leaves out
    /// CLASS, FEATURES and GUEST, or a receiver that skips them as unknown would refuse the message.
    pub fn sent_digest(&self) -> u64 {
        //= docs/arp-plus.md#3.7
        let mut hash = Fnv::new();
        if let Some(extension) = &self.extension {
            hash.write(&extension.host.0);
            hash.write(&extension.epoch.to_be_bytes());
        }
        let address = self.address.as_ref().map(tlv::address_bytes).unwrap_or_default();
        hash.write(&[address.len() as u8]);
        hash.write(&address);
        hash.write(&[self.hardware.len() as u8]);
        self.hardware.iter().for_each(|mac| hash.write(&mac.0));
        if let Some(extension) = &self.extension {
            extension.members.iter().for_each(|member| hash.write(&tlv::member_value(member)));
            for address in &extension.addresses {
                let bytes = tlv::address_bytes(address);
                hash.write(&[bytes.len() as u8]);
                hash.write(&bytes);
            }
        }
        hash.0
    }
}
