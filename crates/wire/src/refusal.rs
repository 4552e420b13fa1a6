//! Why bytes are not an ARP+ message.

/// Makes an enum of reasons, each with a name for its counter and a sentence for people.
macro_rules! refusals {
    ($reasons:ident; $($(#[doc = $doc:literal])+ $variant:ident = $name:literal, $text:literal;)+) => {
        /// Why a frame or message was refused. Each reason is one counter.
        #[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, thiserror::Error)]
        pub enum $reasons {
            $($(#[doc = $doc])+ #[error($text)] $variant,)+
        }

        impl $reasons {
            /// Every reason, in a fixed order.
            pub const ALL: &'static [$reasons] = &[$($reasons::$variant),+];

            /// Its name in counters: lower case with underscores, never renamed.
            pub const fn name(self) -> &'static str {
                match self { $($reasons::$variant => $name),+ }
            }

            /// One sentence for people.
            pub const fn description(self) -> &'static str {
                match self { $($reasons::$variant => $text),+ }
            }
        }
    };
}

pub(crate) use refusals;

refusals! {
    Refusal;
    /// Shorter than its fixed fields.
    Truncated = "truncated", "the message ends inside a field of the published part";
    /// Longer than [`crate::MESSAGE_LEN_MAX`].
    TooLong = "too_long", "the message is longer than 1500 bytes";
    /// The EtherType is not that of ARP+.
    NotArpPlus = "not_arp_plus", "the EtherType of the frame is not ARP+";
    /// The frame's source is a group or nobody.
    SourceNotHost = "source_not_host", "the Ethernet source address is a group or all zeros";
    /// HLEN is not 6.
    HardwareLength = "hardware_length", "the hardware address length is not 6";
    /// PLEN is none of 0, 4, 16.
    ProtocolLength = "protocol_length", "the protocol address length is none of 0, 4 and 16";
    /// COUNT is 0.
    NoHardware = "no_hardware", "the message has no hardware address";
    /// COUNT is above [`crate::HARDWARE_MAX`].
    TooManyHardware = "too_many_hardware", "the message has more than 16 hardware addresses";
    /// TYPE is not one that is read here: 1 to 4 for the table, 5 and 6 for the inspector.
    UnknownType = "unknown_type", "the message type is unknown";
    /// A hardware address is a group or all zeros.
    HardwareNotHost = "hardware_not_host", "a hardware address is a group or all zeros";
    /// A hardware address stands twice.
    HardwareTwice = "hardware_twice", "a hardware address stands twice in one message";
    /// An IP address is unspecified, a group, or the limited broadcast.
    AddressNotHost = "address_not_host", "an IP address is unspecified, a group or the limited broadcast";
    /// A TLV reaches past the end.
    TlvTruncated = "tlv_truncated", "a TLV reaches past the end of the message";
    /// A known TLV has a length it cannot have.
    TlvLength = "tlv_length", "a known TLV has a length it cannot have";
    /// A TLV that may stand once stands twice.
    TlvTwice = "tlv_twice", "a TLV that may stand once stands twice";
    /// HOST or SEQUENCE is missing; in a probe VERSION, HOST or PROBE.
    TlvMissing = "tlv_missing", "a TLV that must be there is missing";
    /// A known TLV holds a value it cannot have.
    TlvValue = "tlv_value", "a known TLV holds a value it cannot have";
    /// VERSION is 0.
    VersionZero = "version_zero", "the version of the extension is 0";
    /// Not as many MEMBER TLVs as hardware addresses.
    MemberCount = "member_count", "the number of MEMBER TLVs differs from the number of hardware addresses";
    /// Two members have one index.
    MemberTwice = "member_twice", "two MEMBER TLVs have the same index";
    /// A CLASS number that is 0 or above [`crate::CLASSES_MAX`].
    ClassNumber = "class_number", "the number of a class is not 1 to 7";
    /// A name that [`crate::is_class_name`] refuses.
    ClassName = "class_name", "the name of a class is not 1 to 15 of a-z, 0-9, - and _, or is that of all other traffic";
    /// Two classes have one number or one name.
    ClassTwice = "class_twice", "two CLASS TLVs have the same number or name";
    /// A VLAN above [`crate::VLAN_MAX`].
    GuestVlan = "guest_vlan", "the VLAN of a guest is above 4094";
    /// A guest's MAC is a group or all zeros.
    GuestMac = "guest_mac", "the MAC of a guest is a group or all zeros";
    /// A guest with no addresses or more than [`crate::GUEST_ADDRESSES_MAX`].
    GuestAddresses = "guest_addresses", "a guest has no address, or more than 8";
    /// Two guests are one, or have one address.
    GuestTwice = "guest_twice", "two GUEST TLVs of one VLAN have the same MAC or address";
    /// More than [`crate::GUESTS_MAX`].
    TooManyGuests = "too_many_guests", "the message has more than 64 guests";
    /// More than [`crate::MORE_ADDRESSES_MAX`].
    TooManyAddresses = "too_many_addresses", "the message has more than 32 further IP addresses";
    /// A TLV follows AUTH.
    AuthNotLast = "auth_not_last", "a TLV follows the AUTH TLV";
    /// DIGEST does not match the mapping in the same message.
    DigestMismatch = "digest_mismatch", "the DIGEST TLV does not match the mapping in the message";
    /// Another EtherType where ARP is looked for.
    NotArp = "not_arp", "the EtherType of the frame is not ARP";
    /// ARP for something else than IPv4 on Ethernet.
    ArpFormat = "arp_format", "the ARP packet is not one for IPv4 on Ethernet";
    /// The ARP operation is not 2 (reply).
    ArpNotReply = "arp_not_reply", "the ARP packet is not a reply";
    /// A target address other than 0.0.0.0: not an answer to a probe.
    ArpNotForProbe = "arp_not_for_probe", "the ARP reply answers no probe: its target address is not 0.0.0.0";
    /// The sender's hardware address is not the Ethernet source.
    ArpSender = "arp_sender", "the sender of the ARP reply is not its Ethernet source";
    /// The target's hardware address is not the Ethernet destination, or a group's.
    ArpTarget = "arp_target", "the target of the ARP reply is not its Ethernet destination, or is no member's";
    /// IPv6, but no neighbour advertisement.
    NotAdvertisement = "not_advertisement", "the IPv6 packet is not a neighbour advertisement";
    /// Unsolicited, or to another address than the one that the member asks from.
    AdvertisementNotForProbe = "advertisement_not_for_probe", "the neighbour advertisement answers no probe of the member that it is for";
    /// A wrong ICMPv6 checksum.
    AdvertisementChecksum = "advertisement_checksum", "the checksum of the neighbour advertisement is wrong";
    /// A probe to a group or to nobody.
    ProbeNotUnicast = "probe_not_unicast", "the destination of a probe is a group or all zeros";
    /// A probe with other hardware addresses than its Ethernet source.
    ProbeHardware = "probe_hardware", "the hardware address of a probe is not its Ethernet source, or there are several";
}
