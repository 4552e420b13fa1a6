//! `key`: key files. No daemon is asked; one that runs looks at its files by itself.

use crate::{args::KeyVerb, text};
use linkbraid_api::{Error, KeyFile};
use linkbraid_daemon::{new_key, read_key_file, write_key_file};
use linkbraid_terminal::report::{self, Failed};
use std::path::Path;

/// Carries out the verb, and shows what the file holds then.
pub fn run(verb: KeyVerb, json: bool) -> Result<(), Failed> {
    carry_out(verb).map_err(Failed::refused).and_then(|keys| {
        let records = keys.records();
        if json {
            return report::print(&text::json(&records));
        }
        let line = |key: &linkbraid_api::KeyRecord| {
            format!("{}{}\n", key.id, if key.signs { "  signs" } else { "" })
        };
        report::print(&records.iter().map(line).collect::<String>())
    })
}

fn carry_out(verb: KeyVerb) -> Result<KeyFile, Error> {
    match verb {
        KeyVerb::New { file } => {
            let keys = KeyFile::new(new_key()?);
            write_key_file(&file, &keys, true).map(|()| keys)
        }
        KeyVerb::Add { file, from } => {
            let other = read_key_file(&from)?;
            change(&file, |keys| {
                let key = other.keys().iter().find(|key| key.id == other.signs());
                key.map_or(Ok(()), |key| keys.add(key.clone()))
            })
        }
        KeyVerb::Use { file, id } => change(&file, |keys| keys.sign_with(id)),
        KeyVerb::Del { file, id } => change(&file, |keys| keys.remove(id)),
        KeyVerb::Show { file } => read_key_file(&file),
    }
}

fn change(file: &Path, change: impl FnOnce(&mut KeyFile) -> Result<(), String>) -> Result<KeyFile, Error> {
    let mut keys = read_key_file(file)?;
    let name = file.display().to_string();
    change(&mut keys).map_err(|cause| {
        Error::new(&name, "cannot change the keys", cause).hint(format!("linkbraid key show {name}"))
    })?;
    write_key_file(file, &keys, false).map(|()| keys)
}
