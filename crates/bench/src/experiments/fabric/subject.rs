//! What is measured: fabrics, and what they are compared with.

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct Subject {
    pub word: &'static str,
    pub kind: Kind,
    pub quick: bool,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Kind {
    /// A pair of veth between the two namespaces, with a rate in Mbit/s or without one, and nothing else.
    Veth { mtu: u32, rate: Option<u32> },
    /// The kernel's VXLAN over that pair.
    Vxlan,
    Fabric {
        /// The part of its transport before the file.
        transport: &'static str,
        /// The part behind it.
        more: &'static str,
        mtu: u32,
        poll: &'static str,
        encrypt: bool,
    },
}

const fn fabric(word: &'static str, transport: &'static str, mtu: u32, poll: &'static str) -> Subject {
    Subject { word, kind: Kind::Fabric { transport, more: "", mtu, poll, encrypt: false }, quick: true }
}

const fn queues(word: &'static str, poll: &'static str, encrypt: bool) -> Subject {
    Subject {
        word,
        kind: Kind::Fabric { transport: "udp:", more: ",vxlan=off", mtu: MTU, poll, encrypt },
        quick: true,
    }
}

/// One that a quick run has not.
const fn whole(subject: Subject) -> Subject {
    Subject { quick: false, ..subject }
}

/// The MTU of most, and that of the pair when it is not asked for another one.
pub(super) const MTU: u32 = 1500;

pub(super) const VETH: Subject =
    Subject { word: "veth", kind: Kind::Veth { mtu: MTU, rate: None }, quick: true };
pub(super) const GIGABIT: Subject =
    whole(Subject { word: "gigabit", kind: Kind::Veth { mtu: MTU, rate: Some(1000) }, ..VETH });
pub(super) const VXLAN: Subject = Subject { word: "vxlan", kind: Kind::Vxlan, quick: true };
pub(super) const SHM: Subject = fabric("shm", "shm:", MTU, "adaptive");
pub(super) const SHM_LARGE: Subject = whole(fabric("shm-65521", "shm:", 65_521, "adaptive"));
pub(super) const SHM_BUSY: Subject = whole(fabric("shm-busy", "shm:", MTU, "busy"));
pub(super) const SHM_SLEEP: Subject = whole(fabric("shm-sleep", "shm:", MTU, "sleep"));
/// Without any option: TCP by the kernel's VXLAN, and all else by the queues.
pub(super) const UDP: Subject = fabric("udp", "udp:", MTU, "adaptive");
/// All by the queues.
pub(super) const UDP_QUEUES: Subject = queues("udp-queues", "adaptive", false);
/// The same, encrypted.
pub(super) const UDP_ENCRYPTED: Subject = whole(queues("udp-encrypted", "adaptive", true));
pub(super) const UDP_BUSY: Subject = whole(queues("udp-busy", "busy", false));
/// With the MTU that leaves room for all frames by the kernel's VXLAN.
pub(super) const UDP_VXLAN: Subject = Subject {
    word: "udp-vxlan",
    kind: Kind::Fabric {
        transport: "udp:",
        more: ",vxlan=4789",
        mtu: 1450,
        poll: "adaptive",
        encrypt: false,
    },
    quick: true,
};
/// The best TCP provider of libfabric 1.16 and 1.17.
pub(super) const OFI_NET: Subject = fabric("ofi-net", "ofi:net,", MTU, "adaptive");
/// The best one of later versions; before, the one whose wait object sleeps.
pub(super) const OFI_TCP: Subject = whole(fabric("ofi-tcp", "ofi:tcp,", MTU, "adaptive"));

/// The fabrics with the usual settings, one a transport.
pub(super) const FABRICS: [Subject; 4] = [SHM, UDP, OFI_NET, OFI_TCP];

impl Subject {
    /// The same with other threads.
    pub fn poll(self, poll: &'static str) -> Self {
        match self.kind {
            Kind::Fabric { transport, more, mtu, encrypt, .. } => {
                Self { kind: Kind::Fabric { transport, more, mtu, poll, encrypt }, ..self }
            }
            Kind::Veth { .. } | Kind::Vxlan => self,
        }
    }

    /// The same with another MTU.
    pub fn mtu(self, mtu: u32) -> Self {
        let kind = match self.kind {
            Kind::Fabric { transport, more, poll, encrypt, .. } => {
                Kind::Fabric { transport, more, mtu, poll, encrypt }
            }
            Kind::Veth { rate, .. } => Kind::Veth { mtu, rate },
            Kind::Vxlan => Kind::Vxlan,
        };
        Self { kind, ..self }
    }

    /// How its threads wait.
    pub fn how(self) -> &'static str {
        match self.kind {
            Kind::Fabric { poll, .. } => poll,
            Kind::Veth { .. } | Kind::Vxlan => "",
        }
    }

    /// Whether frames go by the kernel's VXLAN once both ends know that they can.
    pub fn is_fast(self) -> bool {
        matches!(self.kind, Kind::Fabric { transport: "udp:", more, .. } if more != ",vxlan=off")
    }

    /// Whether it needs libfabric, which may be missing on a machine.
    pub fn is_optional(self) -> bool {
        matches!(self.kind, Kind::Fabric { transport, .. } if transport.starts_with("ofi:"))
    }

    pub fn bases(self) -> &'static [&'static str] {
        match self.kind {
            Kind::Veth { rate: None, .. } => &[],
            Kind::Veth { .. } => &["veth"],
            Kind::Vxlan => &["veth"],
            Kind::Fabric { transport: "shm:", .. } => &["veth"],
            Kind::Fabric { encrypt: true, .. } => &["udp-queues", "vxlan"],
            Kind::Fabric { transport: "udp:", .. } => &["vxlan", "veth"],
            Kind::Fabric { .. } => &["udp", "veth"],
        }
    }
}
