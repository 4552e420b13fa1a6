//! What is not as it is to be with the keys of a bond, and which hosts have none.

use crate::world::{bond::Bond, keys::why};
use linkbraid_api::{Auth, FindingRecord, Severity};
use linkbraid_proto::{Time, auth::Unkeyed, host::Host};

/// Hosts that are named; of further ones it is said how many there are.
const NAMED_MAX: usize = 3;

/// All that is to be said of keys.
pub(super) fn of_keys(bond: &Bond, host: &Host, now: Time) -> Vec<FindingRecord> {
    let (name, auth) = (&bond.saved.name, bond.saved.settings.auth);
    let mut all = Vec::new();
    let finding = |severity, word: &str, text: String, hint: String| FindingRecord {
        severity,
        object: name.to_string(),
        name: word.to_owned(),
        text,
        hint: Some(hint),
    };
    let set = |mode: &str| format!("linkbraid bond set {name} --auth {mode}");
    if let Some(error) = &bond.keys.error {
        let follows = match (auth, bond.keys.in_words()) {
            (_, Some(keys)) => format!("the keys from before go on: {keys}"),
            (Auth::Require, None) => "no host is believed, and all are plain hosts".to_owned(),
            (_, None) => "own messages are not signed".to_owned(),
        };
        let text = format!("{}: {}; {follows}", error.what, error.cause);
        all.push(finding(Severity::Error, "keys", text, error.hint.clone().unwrap_or_else(|| set("off"))));
    }
    let hosts: Vec<&Unkeyed> = host.auth().unkeyed(now).collect();
    let (text, hint) = match (auth, hosts.is_empty()) {
        (Auth::Off, _) | (Auth::Require, true) => return all,
        (Auth::Permit, true) => ("auth is permit, which protects nothing".to_owned(), set("require")),
        (Auth::Permit, false) => {
            let text =
                format!("auth is permit, which protects nothing; {}", without_key(&hosts, "not ready"));
            (text, format!("linkbraid stats {name}"))
        }
        (Auth::Require, false) => (without_key(&hosts, "one link only"), format!("linkbraid stats {name}")),
    };
    all.push(finding(Severity::Warning, "no_key", text, hint));
    all
}

/// `198.18.0.3: another key, one link only`
fn without_key(hosts: &[&Unkeyed], follows: &str) -> String {
    let name =
        |host: &Unkeyed| host.address.map_or_else(|| host.mac.to_string(), |address| address.to_string());
    if let [host] = hosts {
        return format!("{}: {}, {follows}", name(host), why(host.why));
    }
    let names: Vec<String> = hosts.iter().take(NAMED_MAX).map(|host| name(host)).collect();
    let more = hosts.len().saturating_sub(NAMED_MAX);
    let more = if more == 0 { String::new() } else { format!(" and {more} more") };
    format!("{}{more}: another key or none, {follows}", names.join(", "))
}
