//! The keys of a bond, as they were read last. Their file is looked at again and again, since commands change it.

use crate::io::keys::{self, Stamp};
use linkbraid_api::{Auth, BondSettings, Error, KeyRecord, KeySource};
use linkbraid_proto::auth::{self, Key, Mode, Ring};
use std::sync::Arc;

/// What a bond is set to, and what came of it.
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
    /// were read from it before go on; a bond that has read none yet has none, and goes on with plain hosts only.
    pub(crate) fn follow(&mut self, bond: &str, settings: &BondSettings) -> bool {
        let stamp = (settings.auth != Auth::Off).then(|| keys::stamp(&settings.key));
        let same_source = self.source == settings.key;
        if same_source && self.mode == settings.auth && self.stamp == stamp {
            return false;
        }
        if !same_source || settings.auth == Auth::Off {
            *self = Self::default();
        }
        (self.mode, self.source, self.stamp) = (settings.auth, settings.key.clone(), stamp);
        if self.mode == Auth::Off {
            return true;
        }
        match keys::read(bond, &self.source) {
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
