//! What ARP+ counts.

use crate::counter::counters;
use linkbraid_wire::{Kind, Refusal};

counters! {
    Counters;
    TxBroadcast = 0, "tx_broadcast", "frames sent with a BROADCAST";
    TxReply = 1, "tx_reply", "frames sent with a REPLY";
    TxChange = 2, "tx_change", "frames sent with a CHANGE";
    TxClear = 3, "tx_clear", "frames sent with a CLEAR";
    RxBroadcast = 4, "rx_broadcast", "BROADCASTs of other hosts that the table took";
    RxReply = 5, "rx_reply", "REPLYs of other hosts that the table took";
    RxChange = 6, "rx_change", "CHANGEs of other hosts that the table took";
    RxClear = 7, "rx_clear", "CLEARs of other hosts that the table took";
    RxOwn = 8, "rx_own", "own frames that came back through a switch, ignored but for what they say of it";
    RxStopped = 9, "rx_stopped", "messages ignored because the protocol was not running";
    RxUnknownMember = 10, "rx_unknown_member", "frames refused because they came in on no member of the bond";
    UnknownTlv = 11, "unknown_tlv", "TLVs of unknown type that were skipped";
    ReplySuppressed = 12, "reply_suppressed", "REPLYs not sent because the own mapping was broadcast meanwhile";
    ReplyCollapsed = 13, "reply_collapsed", "REPLYs not sent because one CHANGE to all replaced them";
    SourceNotListed = 14, "source_not_listed", "messages refused whose Ethernet source is not among their hardware addresses";
    NoIdentity = 15, "no_identity", "messages refused that have neither a host id nor an IP address";
    StaleEpoch = 16, "stale_epoch", "messages refused because they are of an earlier epoch of the host";
    StaleSequence = 17, "stale_sequence", "messages refused because a later mapping of the host is known";
    StaleCleared = 18, "stale_cleared", "messages refused because the host has left since";
    ClearUnknown = 19, "clear_unknown", "CLEARs of hosts that the table does not have";
    ClearNotOwner = 20, "clear_not_owner", "CLEARs refused that came from a MAC the host does not own";
    ConflictOwnAddress = 21, "conflict_own_address", "messages refused because they claim an IP address of this host";
    ConflictOwnMac = 22, "conflict_own_mac", "messages refused because they claim a MAC of this host";
    ConflictOwnHostId = 23, "conflict_own_host_id", "messages refused because they claim the host id of this host";
    ConflictPeerMac = 24, "conflict_peer_mac", "messages refused because they claim a MAC that another live host owns";
    ConflictPeerAddress = 25, "conflict_peer_address", "messages that claim an IP address which another live host has";
    ConflictPeerHostId = 26, "conflict_peer_host_id", "messages refused because two hosts use one host id";
    LimitHosts = 27, "limit_hosts", "hosts refused because the table was full";
    LimitAliases = 28, "limit_aliases", "former MACs forgotten early because a host had too many";
    LimitTombstones = 29, "limit_tombstones", "departures forgotten early because there were too many";
    LimitConflicts = 30, "limit_conflicts", "conflicts not reported because too many were open";
    LimitActions = 31, "limit_actions", "events dropped because too many actions waited";
    LimitMembers = 32, "limit_members", "own members not announced because a message holds 16";
    LimitAddresses = 33, "limit_addresses", "own IP addresses not announced because a message holds 33";
    PeerJoined = 34, "peer_joined", "hosts that entered the table";
    PeerChanged = 35, "peer_changed", "mappings that replaced earlier ones of the same epoch";
    PeerRestarted = 36, "peer_restarted", "hosts that came back with a later epoch";
    PeerLeft = 37, "peer_left", "hosts deleted because they said so";
    PeerSilent = 38, "peer_silent", "hosts that fell silent";
    PeerExpired = 39, "peer_expired", "hosts deleted after a long silence";
    RefusedTruncated = 40, "refused_truncated", "frames refused: the message ends inside a field of the published part";
    RefusedTooLong = 41, "refused_too_long", "frames refused: the message is longer than 1500 bytes";
    RefusedNotArpPlus = 42, "refused_not_arp_plus", "frames refused: the EtherType is not ARP+";
    RefusedSourceNotHost = 43, "refused_source_not_host", "frames refused: the Ethernet source is a group or all zeros";
    RefusedHardwareLength = 44, "refused_hardware_length", "frames refused: the hardware address length is not 6";
    RefusedProtocolLength = 45, "refused_protocol_length", "frames refused: the protocol address length is none of 0, 4 and 16";
    RefusedNoHardware = 46, "refused_no_hardware", "frames refused: there is no hardware address";
    RefusedTooManyHardware = 47, "refused_too_many_hardware", "frames refused: there are more than 16 hardware addresses";
    RefusedUnknownType = 48, "refused_unknown_type", "frames refused: the message type is unknown";
    RefusedHardwareNotHost = 49, "refused_hardware_not_host", "frames refused: a hardware address is a group or all zeros";
    RefusedHardwareTwice = 50, "refused_hardware_twice", "frames refused: a hardware address stands twice";
    RefusedAddressNotHost = 51, "refused_address_not_host", "frames refused: an IP address cannot be that of a host";
    RefusedTlvTruncated = 52, "refused_tlv_truncated", "frames refused: a TLV reaches past the end";
    RefusedTlvLength = 53, "refused_tlv_length", "frames refused: a known TLV has a length it cannot have";
    RefusedTlvTwice = 54, "refused_tlv_twice", "frames refused: a TLV that may stand once stands twice";
    RefusedTlvMissing = 55, "refused_tlv_missing", "frames refused: a TLV that must be there is missing";
    RefusedTlvValue = 56, "refused_tlv_value", "frames refused: a known TLV holds a value it cannot have";
    RefusedVersionZero = 57, "refused_version_zero", "frames refused: the version is 0";
    RefusedMemberCount = 58, "refused_member_count", "frames refused: not one MEMBER for each hardware address";
    RefusedMemberTwice = 59, "refused_member_twice", "frames refused: two members have one index";
    RefusedTooManyAddresses = 60, "refused_too_many_addresses", "frames refused: there are more than 32 further IP addresses";
    RefusedAuthNotLast = 61, "refused_auth_not_last", "frames refused: a TLV follows AUTH";
    RefusedDigestMismatch = 62, "refused_digest_mismatch", "frames refused: the digest does not match the mapping";
    TxRefused = 63, "tx_refused", "own messages that could not be written because the own mapping breaks a rule";
    RefusedProbeNotUnicast = 64, "refused_probe_not_unicast", "probes refused: the destination is a group or all zeros";
    RefusedProbeHardware = 65, "refused_probe_hardware", "probes refused: the hardware address is not the Ethernet source";
    RefusedNotArp = 66, "refused_not_arp", "frames refused: the EtherType is not ARP";
    RefusedArpFormat = 67, "refused_arp_format", "ARP refused: not for IPv4 on Ethernet";
    RefusedArpNotReply = 68, "refused_arp_not_reply", "ARP refused: not a reply";
    RefusedArpNotForProbe = 69, "refused_arp_not_for_probe", "ARP replies refused: not an answer to a probe";
    RefusedArpSender = 70, "refused_arp_sender", "ARP replies refused: the sender is not the Ethernet source";
    RefusedArpTarget = 71, "refused_arp_target", "ARP replies refused: the target is not the Ethernet destination, or no member";
    LimitJoins = 72, "limit_joins", "messages of new hosts refused because too many joined in a short time";
    RefusedClassNumber = 73, "refused_class_number", "frames refused: the number of a class is not 1 to 7";
    RefusedClassName = 74, "refused_class_name", "frames refused: a class has a name it cannot have";
    RefusedClassTwice = 75, "refused_class_twice", "frames refused: two classes have one number or one name";
    LimitClasses = 76, "limit_classes", "own classes not announced because a message holds 7";
    RefusedNotAdvertisement = 77, "refused_not_advertisement", "IPv6 refused: not a neighbour advertisement";
    RefusedAdvertisementNotForProbe = 78, "refused_advertisement_not_for_probe", "neighbour advertisements refused: not an answer to a probe";
    RefusedAdvertisementChecksum = 79, "refused_advertisement_checksum", "neighbour advertisements refused: the checksum is wrong";
    RefusedGuestVlan = 80, "refused_guest_vlan", "frames refused: the VLAN of a guest is above 4094";
    RefusedGuestMac = 81, "refused_guest_mac", "frames refused: the MAC of a guest is a group or all zeros";
    RefusedGuestAddresses = 82, "refused_guest_addresses", "frames refused: a guest has no address, or more than 8";
    RefusedGuestTwice = 83, "refused_guest_twice", "frames refused: two guests of one VLAN have one MAC or one address";
    RefusedTooManyGuests = 84, "refused_too_many_guests", "frames refused: there are more than 64 guests";
    LimitGuests = 85, "limit_guests", "own guests not announced because a message holds no more: they are not striped";
    LimitGuestAddresses = 86, "limit_guest_addresses", "addresses of guests not used because there are too many";
    ConflictGuestMac = 87, "conflict_guest_mac", "guests not accepted because their MAC is a member's or a gateway's";
    ConflictOwnGuest = 88, "conflict_own_guest", "looks at a guest of this host that another host announces, too, and that sends here";
    ConflictPeerGuest = 89, "conflict_peer_guest", "looks at a guest that two hosts announce: it is not striped";
    PublishedOnly = 90, "published_only", "messages refused because they have only the published part, and hosts that send such are not to be peers";
    Stranger = 91, "stranger", "messages refused that change what is known of a live host and come from a MAC that it does not have";
    Disproved = 92, "disproved", "messages refused that said a host had left or restarted, because it still answers probes as before";
    LimitChanges = 93, "limit_changes", "messages refused because the host changed its mapping too often in a short time";
    PeerEvicted = 94, "peer_evicted", "hosts that never answered a probe and made room for others in a full table";
}

impl Counter {
    /// The counter of frames sent with that kind of message.
    pub const fn sent(kind: Kind) -> Counter {
        match kind {
            Kind::Broadcast => Counter::TxBroadcast,
            Kind::Reply => Counter::TxReply,
            Kind::Change => Counter::TxChange,
            Kind::Clear => Counter::TxClear,
        }
    }

    /// The counter of messages of that kind that the table took.
    pub const fn received(kind: Kind) -> Counter {
        match kind {
            Kind::Broadcast => Counter::RxBroadcast,
            Kind::Reply => Counter::RxReply,
            Kind::Change => Counter::RxChange,
            Kind::Clear => Counter::RxClear,
        }
    }
}

impl From<Refusal> for Counter {
    fn from(refusal: Refusal) -> Counter {
        match refusal {
            Refusal::Truncated => Counter::RefusedTruncated,
            Refusal::TooLong => Counter::RefusedTooLong,
            Refusal::NotArpPlus => Counter::RefusedNotArpPlus,
            Refusal::SourceNotHost => Counter::RefusedSourceNotHost,
            Refusal::HardwareLength => Counter::RefusedHardwareLength,
            Refusal::ProtocolLength => Counter::RefusedProtocolLength,
            Refusal::NoHardware => Counter::RefusedNoHardware,
            Refusal::TooManyHardware => Counter::RefusedTooManyHardware,
            Refusal::UnknownType => Counter::RefusedUnknownType,
            Refusal::HardwareNotHost => Counter::RefusedHardwareNotHost,
            Refusal::HardwareTwice => Counter::RefusedHardwareTwice,
            Refusal::AddressNotHost => Counter::RefusedAddressNotHost,
            Refusal::TlvTruncated => Counter::RefusedTlvTruncated,
            Refusal::TlvLength => Counter::RefusedTlvLength,
            Refusal::TlvTwice => Counter::RefusedTlvTwice,
            Refusal::TlvMissing => Counter::RefusedTlvMissing,
            Refusal::TlvValue => Counter::RefusedTlvValue,
            Refusal::VersionZero => Counter::RefusedVersionZero,
            Refusal::MemberCount => Counter::RefusedMemberCount,
            Refusal::MemberTwice => Counter::RefusedMemberTwice,
            Refusal::TooManyAddresses => Counter::RefusedTooManyAddresses,
            Refusal::AuthNotLast => Counter::RefusedAuthNotLast,
            Refusal::DigestMismatch => Counter::RefusedDigestMismatch,
            Refusal::ClassNumber => Counter::RefusedClassNumber,
            Refusal::ClassName => Counter::RefusedClassName,
            Refusal::ClassTwice => Counter::RefusedClassTwice,
            Refusal::GuestVlan => Counter::RefusedGuestVlan,
            Refusal::GuestMac => Counter::RefusedGuestMac,
            Refusal::GuestAddresses => Counter::RefusedGuestAddresses,
            Refusal::GuestTwice => Counter::RefusedGuestTwice,
            Refusal::TooManyGuests => Counter::RefusedTooManyGuests,
            Refusal::ProbeNotUnicast => Counter::RefusedProbeNotUnicast,
            Refusal::ProbeHardware => Counter::RefusedProbeHardware,
            Refusal::NotArp => Counter::RefusedNotArp,
            Refusal::ArpFormat => Counter::RefusedArpFormat,
            Refusal::ArpNotReply => Counter::RefusedArpNotReply,
            Refusal::ArpNotForProbe => Counter::RefusedArpNotForProbe,
            Refusal::ArpSender => Counter::RefusedArpSender,
            Refusal::ArpTarget => Counter::RefusedArpTarget,
            Refusal::NotAdvertisement => Counter::RefusedNotAdvertisement,
            Refusal::AdvertisementNotForProbe => Counter::RefusedAdvertisementNotForProbe,
            Refusal::AdvertisementChecksum => Counter::RefusedAdvertisementChecksum,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    //= docs/arp-plus.md#2.8 type=test
    #[test]
    fn every_refusal_is_a_counter_of_its_own() {
        for refusal in Refusal::ALL {
            assert_eq!(Counter::from(*refusal).name(), format!("refused_{}", refusal.name()));
        }
    }
}
