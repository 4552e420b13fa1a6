//! What the daemon and the program say to each other: words with a zero byte after each.

use crate::{
    Error, Join,
    engine::{Config, Identity, Poll},
};

/// The first word of every message. Both programs are of one version: what they share has no other layout.
const VERSION: &str = concat!("linkbraid ", env!("CARGO_PKG_VERSION"), " 1");
/// Which place to take.
#[derive(Debug, PartialEq, Eq)]
pub(super) struct Order {
    pub address: String,
    pub join: Join,
}

/// What came of that.
#[derive(Debug, PartialEq, Eq)]
pub(super) enum Opened {
    Place { frame_max: usize },
    Refused(Error),
}

/// What to run there.
#[derive(Debug)]
pub(super) struct Start {
    pub identity: Identity,
    pub config: Config,
}

fn words(all: &[&dyn ToString]) -> Vec<u8> {
    let text: String = all.iter().map(|word| word.to_string().replace('\0', " ") + "\0").collect();
    format!("{VERSION}\0{text}").into_bytes()
}

/// The words after the version.
fn read(bytes: &[u8]) -> Option<Vec<&str>> {
    let mut words = std::str::from_utf8(bytes).ok()?.strip_suffix('\0')?.split('\0');
    (words.next()? == VERSION).then(|| words.collect())
}

impl Order {
    pub fn words(&self) -> Vec<u8> {
        let Join { node, nodes, queues } = &self.join;
        words(&[&self.address, node, nodes, queues])
    }

    pub fn read(bytes: &[u8]) -> Option<Self> {
        let [address, node, nodes, queues] = read(bytes)?[..] else { return None };
        let join =
            Join { node: node.parse().ok()?, nodes: nodes.parse().ok()?, queues: queues.parse().ok()? };
        Some(Self { address: address.to_owned(), join })
    }
}

impl Opened {
    pub fn words(&self) -> Vec<u8> {
        match self {
            Self::Place { frame_max } => words(&[frame_max]),
            Self::Refused(Error { object, what, cause, hint }) => {
                words(&[object, what, cause, &hint.as_deref().unwrap_or_default()])
            }
        }
    }

    pub fn read(bytes: &[u8]) -> Option<Self> {
        match read(bytes)?[..] {
            [frame_max] => Some(Self::Place { frame_max: frame_max.parse().ok()? }),
            [object, what, cause, hint] => {
                let error = Error::new(object, what, cause);
                Some(Self::Refused(if hint.is_empty() { error } else { error.hint(hint) }))
            }
            _ => None,
        }
    }
}

impl Start {
    pub fn words(&self) -> Vec<u8> {
        let Identity { node, nodes, queues, epoch, began } = self.identity;
        let Config { poll, fabric, storm_rate, storm_burst } = self.config;
        words(&[&node, &nodes, &queues, &epoch, &began, &poll.number(), &fabric, &storm_rate, &storm_burst])
    }

    pub fn read(bytes: &[u8]) -> Option<Self> {
        let numbers: Vec<u64> = read(bytes)?.iter().map(|word| word.parse().ok()).collect::<Option<_>>()?;
        let [node, nodes, queues, epoch, began, poll, fabric, storm_rate, storm_burst] = numbers[..] else {
            return None;
        };
        let short = |number: u64| u16::try_from(number).ok();
        let identity =
            Identity { node: short(node)?, nodes: short(nodes)?, queues: short(queues)?, epoch, began };
        let config = Config {
            poll: Poll::of_number(u8::try_from(poll).ok()?),
            fabric: u8::try_from(fabric).ok()?,
            storm_rate: u32::try_from(storm_rate).ok()?,
            storm_burst: u32::try_from(storm_burst).ok()?,
        };
        Some(Self { identity, config })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_is_said_is_understood() {
        let order = Order { address: "ofi:tcp,/a b".into(), join: Join { node: 1, nodes: 512, queues: 64 } };
        assert_eq!(Order::read(&order.words()), Some(order));
        for opened in [
            Opened::Place { frame_max: 65_792 },
            Opened::Refused(Error::new("a", "b", "")),
            Opened::Refused(Error::new("a", "b", "c").hint("d")),
        ] {
            assert_eq!(Opened::read(&opened.words()), Some(opened));
        }
        let identity = Identity { node: 1, nodes: 2, queues: 3, epoch: u64::MAX, began: 5 };
        let config = Config { poll: Poll::Busy, fabric: 7, storm_rate: 8, storm_burst: 9 };
        let start = Start::read(&Start { identity, config }.words()).expect("understood");
        assert_eq!(start.identity, identity);
        assert_eq!(format!("{:?}", start.config), format!("{config:?}"));
    }

    #[test]
    fn another_version_and_half_a_message_make_no_sense() {
        let words = Opened::Place { frame_max: 1 }.words();
        assert_eq!(Opened::read(&words[..words.len() - 1]), None);
        assert_eq!(Opened::read(b"linkbraid 0.0.1 1\0" as &[u8]), None);
        assert_eq!(Opened::read(&[]), None);
    }
}
