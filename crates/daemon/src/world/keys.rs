//! The keys of a bond or a fabric, as they were read last. Their file is looked at again and again, since commands change it.

use crate::io::keys::{self, Object, Stamp};
use linkbraid_api::{Auth, Error, KeyRecord, KeySource};
use linkbraid_proto::auth::{self, Key, Mode, Ring, Why};
use std::sync::Arc;

/// What it is set to, and what came of it.
#[derive(Debug, Default)]
pub(crate) struct Keys {
    mode: Auth,
    source: KeySource,
    stamp: Option<Stamp>,
    ring: Arc<Ring>,
    /// The keys in use, without their secrets.
    pub records: Vec<KeyRecord>,
    /// Why those of the file are not in use.
    pub error: Option<Error>,
}

impl Keys {
    /// Follows the settings and the file; whether anything is otherwise than before. Where the file cannot be used, the keys that
    /// were read from it before go on; who has read none yet has none, and believes nobody where keys are required.
    pub(crate) fn follow(&mut self, object: Object<'_>, auth: Auth, key: &KeySource) -> bool {
        let stamp = (auth != Auth::Off).then(|| keys::stamp(key));
        let same_source = self.source == *key;
        if same_source && self.mode == auth && self.stamp == stamp {
            return false;
        }
        if !same_source || auth == Auth::Off {
            *self = Self::default();
        }
        (self.mode, self.source, self.stamp) = (auth, key.clone(), stamp);
        if self.mode == Auth::Off {
            return true;
        }
        match keys::read(object, &self.source) {
            Ok(file) => {
                let keys = file.keys().iter().map(|key| Key::new(key.id.0, key.secret.clone())).collect();
                // What a file may hold, a ring may.
                self.ring = Arc::new(Ring::new(keys, file.signs().0).unwrap_or_default());
                (self.records, self.error) = (file.records(), None);
            }
            Err(error) => self.error = Some(error),
        }
        true
    }

    /// As the machine has them.
    pub(crate) fn settings(&self) -> auth::Settings {
        let mode = match self.mode {
            Auth::Off => Mode::Off,
            Auth::Permit => Mode::Permit,
            Auth::Require => Mode::Require,
        };
        auth::Settings { mode, ring: self.ring.clone() }
    }

    /// What is in use, in words; none where nothing is.
    pub(crate) fn in_words(&self) -> Option<String> {
        let one = |key: &KeyRecord| format!("{}{}", key.id, if key.signs { " (signs)" } else { "" });
        let all: Vec<String> = self.records.iter().map(one).collect();
        (!all.is_empty()).then(|| all.join(", "))
    }
}

/// Why a host or node is not believed, in words.
pub(crate) const fn why(why: Why) -> &'static str {
    match why {
        Why::NoKey => "no key",
        Why::AnotherKey => "another key",
    }
}
