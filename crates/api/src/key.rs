//! Keys of ARP+: where a bond has them from, and the file that holds them.

use crate::value::{Value, words};
use clap::ValueEnum;
use serde::{Deserialize, Serialize};
use std::fmt::Write as _;
use zeroize::Zeroizing;

#[cfg(test)]
mod tests;

/// Most keys of a file: the one in use, and the one before or after it.
pub const KEYS_MAX: usize = 2;

/// Bytes of a secret.
pub const SECRET_LEN: usize = 32;

/// The longest file that is read.
pub const KEY_FILE_BYTES_MAX: usize = 4096;

/// What stands behind the key that signs.
const SIGNS: &str = "signs";

/// What stands before the name of a credential.
const CREDENTIAL: &str = "credential:";

/// Whose ARP+ a bond believes.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Serialize, Deserialize, ValueEnum)]
#[cfg_attr(test, derive(schemars::JsonSchema))]
#[serde(rename_all = "kebab-case")]
pub enum Auth {
    /// Everybody's. Own messages are not signed.
    #[default]
    Off,
    /// Everybody's. Own messages are signed: until all hosts have the key.
    Permit,
    /// That of hosts that have the key.
    Require,
}

words!(Auth, "MODE");

/// Where a bond has its keys from.
#[derive(Debug, Clone, PartialEq, Eq, Default, Serialize, Deserialize)]
#[cfg_attr(test, derive(schemars::JsonSchema))]
#[serde(try_from = "String", into = "String")]
pub enum KeySource {
    /// It has none.
    #[default]
    None,
    /// A key file, by its whole path.
    File(String),
    /// A credential that systemd gives to the service, by its name.
    Credential(String),
}

impl Value for KeySource {
    const NAME: &'static str = "FILE";

    fn read(text: &str) -> Result<Self, String> {
        let is_plain = |c: char| c.is_ascii_alphanumeric() || "-_.".contains(c);
        match text.strip_prefix(CREDENTIAL) {
            Some(name) if !name.is_empty() && !name.starts_with('.') && name.chars().all(is_plain) => {
                Ok(Self::Credential(name.to_owned()))
            }
            None if text == "none" => Ok(Self::None),
            None if text.starts_with('/') && !text.chars().any(char::is_control) => {
                Ok(Self::File(text.to_owned()))
            }
            _ => Err(format!(
                "'{text}' is not allowed; allowed are none, the whole path of a key file, and {CREDENTIAL}NAME"
            )),
        }
    }

    fn text(&self) -> String {
        match self {
            Self::None => "none".to_owned(),
            Self::File(path) => path.clone(),
            Self::Credential(name) => format!("{CREDENTIAL}{name}"),
        }
    }
}

impl TryFrom<String> for KeySource {
    type Error = String;

    fn try_from(text: String) -> Result<Self, String> {
        Self::read(&text)
    }
}

impl From<KeySource> for String {
    fn from(source: KeySource) -> String {
        source.text()
    }
}

/// The number of a key, by which hosts tell which one signed: eight hexadecimal digits.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
#[cfg_attr(test, derive(schemars::JsonSchema))]
#[serde(try_from = "String", into = "String")]
pub struct KeyId(pub u32);

impl std::fmt::Display for KeyId {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(f, "{:08x}", self.0)
    }
}

impl KeyId {
    /// Reads what a user writes.
    ///
    /// # Errors
    /// The cause, with what is allowed.
    pub fn read(text: &str) -> Result<Self, String> {
        let is_id = text.len() == 8 && text.bytes().all(|byte| byte.is_ascii_hexdigit());
        let id = is_id.then(|| u32::from_str_radix(text, 16).ok()).flatten();
        id.map(Self).ok_or_else(|| format!("'{text}' is not a key id; allowed are 8 hexadecimal digits"))
    }
}

impl TryFrom<String> for KeyId {
    type Error = String;

    fn try_from(text: String) -> Result<Self, String> {
        Self::read(&text)
    }
}

impl From<KeyId> for String {
    fn from(id: KeyId) -> String {
        id.to_string()
    }
}

/// A key of a bond, without its secret.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(test, derive(schemars::JsonSchema))]
pub struct KeyRecord {
    /// Its number.
    pub id: KeyId,
    /// Whether own messages are signed with it.
    pub signs: bool,
}

/// One key. Its memory is overwritten when it is dropped, and it is never printed.
#[derive(Clone, PartialEq, Eq)]
pub struct SecretKey {
    /// Its number.
    pub id: KeyId,
    /// What nobody else may know.
    pub secret: Zeroizing<[u8; SECRET_LEN]>,
}

impl std::fmt::Debug for SecretKey {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(f, "SecretKey({})", self.id)
    }
}

/// What a key file holds: one or two keys, of which one signs. A line each: the id, the secret in hexadecimal digits, and `signs`
/// behind the one that does. Lines that are empty or begin with `#` count for nothing.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct KeyFile {
    keys: Vec<SecretKey>,
    signs: KeyId,
}

impl KeyFile {
    /// A file with one key.
    pub fn new(key: SecretKey) -> Self {
        Self { signs: key.id, keys: vec![key] }
    }

    /// Reads the text of a file.
    ///
    /// # Errors
    /// The cause. It holds nothing of a secret.
    pub fn read(text: &str) -> Result<Self, String> {
        let (mut keys, mut signing) = (Vec::<SecretKey>::new(), Vec::new());
        for (line, at) in text.lines().zip(1..) {
            let mut words = line.split_whitespace();
            let Some(id) = words.next().filter(|word| !word.starts_with('#')) else { continue };
            // What stands in a wrong place may be a secret, so it is not repeated.
            let id = KeyId::read(id)
                .map_err(|_| format!("line {at} does not begin with a key id of 8 hexadecimal digits"))?;
            let secret = secret(words.next().unwrap_or_default())
                .map_err(|cause| format!("line {at}: the secret of key {id} {cause}"))?;
            match (words.next(), words.next()) {
                (None, _) => {}
                (Some(SIGNS), None) => signing.push(id),
                _ => return Err(format!("line {at}: only '{SIGNS}' may follow the secret of key {id}")),
            }
            if keys.iter().any(|key| key.id == id) {
                return Err(format!("two keys have the id {id}"));
            }
            keys.push(SecretKey { id, secret });
        }
        match (keys.len(), signing.as_slice()) {
            (0, _) => Err("it holds no key".to_owned()),
            (KEYS_MAX.., _) if keys.len() > KEYS_MAX => {
                Err(format!("it holds {} keys; allowed are 1 or {KEYS_MAX}", keys.len()))
            }
            (_, [signs]) => Ok(Self { keys, signs: *signs }),
            (_, []) => Err(format!("no key has '{SIGNS}' behind it")),
            _ => Err(format!("more than one key has '{SIGNS}' behind it")),
        }
    }

    /// Writes it so that [`read`](Self::read) makes the same of it.
    pub fn text(&self) -> Zeroizing<String> {
        // As long as it gets, so that no part of it stays behind in memory.
        let mut text = Zeroizing::new(String::with_capacity(KEY_FILE_BYTES_MAX));
        text.push_str("# Keys of linkbraid: who has this file can speak for every host of the bond.\n");
        for key in &self.keys {
            let _ = write!(text, "{} ", key.id);
            for byte in key.secret.iter() {
                let _ = write!(text, "{byte:02x}");
            }
            text.push_str(if key.id == self.signs { " signs\n" } else { "\n" });
        }
        text
    }

    /// The keys.
    pub fn keys(&self) -> &[SecretKey] {
        &self.keys
    }

    /// The key that signs.
    pub const fn signs(&self) -> KeyId {
        self.signs
    }

    /// All without their secrets.
    pub fn records(&self) -> Vec<KeyRecord> {
        self.keys.iter().map(|key| KeyRecord { id: key.id, signs: key.id == self.signs }).collect()
    }

    /// Adds a key, which does not sign yet.
    ///
    /// # Errors
    /// The cause.
    pub fn add(&mut self, key: SecretKey) -> Result<(), String> {
        if self.keys.iter().any(|other| other.id == key.id) {
            return Err(format!("it holds key {} already", key.id));
        }
        if self.keys.len() == KEYS_MAX {
            return Err(format!("it holds {KEYS_MAX} keys, which is the limit; remove one first"));
        }
        self.keys.push(key);
        Ok(())
    }

    /// Signs with that key from now on.
    ///
    /// # Errors
    /// The cause.
    pub fn sign_with(&mut self, id: KeyId) -> Result<(), String> {
        self.find(id)?;
        self.signs = id;
        Ok(())
    }

    /// Removes a key that does not sign.
    ///
    /// # Errors
    /// The cause.
    pub fn remove(&mut self, id: KeyId) -> Result<(), String> {
        let at = self.find(id)?;
        if id == self.signs {
            return Err(format!("key {id} signs; let the other one sign first"));
        }
        self.keys.remove(at);
        Ok(())
    }

    fn find(&self, id: KeyId) -> Result<usize, String> {
        let ids = || self.keys.iter().map(|key| key.id.to_string()).collect::<Vec<_>>().join(" and ");
        let at = self.keys.iter().position(|key| key.id == id);
        at.ok_or_else(|| format!("it holds no key {id}, but {}", ids()))
    }
}

/// The bytes that these hexadecimal digits stand for. A refusal is what follows "the secret".
fn secret(digits: &str) -> Result<Zeroizing<[u8; SECRET_LEN]>, String> {
    let wanted = SECRET_LEN * 2;
    if digits.len() != wanted {
        return Err(format!("has {} characters; it has to have {wanted}", digits.len()));
    }
    let mut secret = Zeroizing::new([0; SECRET_LEN]);
    for (byte, two) in secret.iter_mut().zip(digits.as_bytes().chunks_exact(2)) {
        let digit = |c: u8| char::from(c).to_digit(16).map(|digit| digit as u8);
        let (Some(high), Some(low)) = (digit(two[0]), digit(two[1])) else {
            return Err("holds something else than hexadecimal digits".to_owned());
        };
        *byte = high << 4 | low;
    }
    if secret.iter().all(|byte| *byte == secret[0]) {
        return Err("is the same byte again and again, which anybody can guess".to_owned());
    }
    Ok(secret)
}
