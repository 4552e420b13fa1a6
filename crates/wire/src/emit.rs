//! Values to bytes.

use crate::{Extension, HARDWARE_MAX, MESSAGE_LEN_MAX, Message, Refusal, tlv};
use std::net::IpAddr;

/// Most value bytes of one TLV.
const VALUE_MAX: usize = 255;

impl Message {
    /// Appends the message to `out`, every byte of it, without Ethernet header or padding.
    ///
    /// # Errors
    /// The rule of [`Message::check`] that the message breaks, or more guests than fit; `out` is then as it was.
    pub fn emit(&self, out: &mut Vec<u8>) -> Result<(), Refusal> {
        self.check()?;
        debug_assert!(self.hardware.len() <= HARDWARE_MAX, "checked above");
        let begin = out.len();
        let address = self.address.as_ref().map(tlv::address_bytes).unwrap_or_default();
        //= docs/arp-plus.md#2.1
        out.extend([6, address.len() as u8, self.hardware.len() as u8, self.kind as u8]);
        out.extend(address);
        self.hardware.iter().for_each(|mac| out.extend(mac.0));
        if let Some(extension) = &self.extension {
            self.emit_extension(extension, out);
        }
        if out.len() - begin > MESSAGE_LEN_MAX {
            out.truncate(begin);
            return Err(Refusal::TooLong);
        }
        Ok(())
    }

    fn emit_extension(&self, extension: &Extension, out: &mut Vec<u8>) {
        //= docs/arp-plus.md#3.1
        put(out, tlv::VERSION, &[extension.version]);
        let mut host = extension.host.0.to_vec();
        host.extend(extension.epoch.to_be_bytes());
        put(out, tlv::HOST, &host);
        put(out, tlv::SEQUENCE, &extension.sequence.to_be_bytes());
        extension.members.iter().for_each(|member| put(out, tlv::MEMBER, &tlv::member_value(member)));
        //= docs/arp-plus.md#3.9
        extension.classes.iter().for_each(|class| put(out, tlv::CLASS, &tlv::class_value(class)));
        //= docs/arp-plus.md#3.10
        if extension.features != 0 {
            put(out, tlv::FEATURES, &extension.features.to_be_bytes());
        }
        put_addresses(out, &extension.addresses);
        //= docs/arp-plus.md#3.12
        extension.guests.iter().for_each(|guest| put(out, tlv::GUEST, &tlv::guest_value(guest)));
        if extension.digest.is_some() {
            put(out, tlv::DIGEST, &self.sent_digest().to_be_bytes());
        }
        //= docs/arp-plus.md#3.8
        if let Some(auth) = &extension.auth {
            let mut value = auth.key_id.to_be_bytes().to_vec();
            value.extend(&auth.tag);
            put(out, tlv::AUTH, &value);
        }
    }
}

/// One TLV; every value written here is at most [`VALUE_MAX`] long by the limits in `lib.rs`.
pub(crate) fn put(out: &mut Vec<u8>, kind: u8, value: &[u8]) {
    debug_assert!(value.len() <= VALUE_MAX, "limits keep values short");
    out.extend([kind, value.len() as u8]);
    out.extend(value);
}

/// Runs of one family share a TLV, so that the order of addresses survives.
fn put_addresses(out: &mut Vec<u8>, addresses: &[IpAddr]) {
    for run in addresses.chunk_by(|a, b| a.is_ipv4() == b.is_ipv4()) {
        let len = if run[0].is_ipv4() { 4 } else { 16 };
        for chunk in run.chunks((VALUE_MAX - 1) / len) {
            let mut value = vec![len as u8];
            chunk.iter().for_each(|address| value.extend(tlv::address_bytes(address)));
            put(out, tlv::MORE_ADDRESSES, &value);
        }
    }
}
