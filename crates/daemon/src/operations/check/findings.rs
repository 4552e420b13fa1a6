//! What is found about one object, as records in the order in which people read them.

use linkbraid_api::{FindingRecord, Severity};

/// What is found about one object: first what is fine, in one sentence, then the rest.
pub(super) struct Report {
    object: String,
    /// The name of the sentence about what is fine.
    name: &'static str,
    fine: Vec<String>,
    found: Vec<FindingRecord>,
}

impl Report {
    pub(super) fn new(object: impl Into<String>, name: &'static str) -> Self {
        Self { object: object.into(), name, fine: Vec::new(), found: Vec::new() }
    }

    /// A part of the sentence about what is fine.
    pub(super) fn fine(&mut self, part: impl Into<String>) {
        self.fine.push(part.into());
    }

    pub(super) fn warn(&mut self, name: &'static str, text: impl Into<String>, hint: impl Into<String>) {
        self.add(Severity::Warning, name, text, Some(hint.into()));
    }

    pub(super) fn error(&mut self, name: &'static str, text: impl Into<String>, hint: impl Into<String>) {
        self.add(Severity::Error, name, text, Some(hint.into()));
    }

    /// One that `show` has, too.
    pub(super) fn take(&mut self, finding: impl IntoIterator<Item = FindingRecord>) {
        self.found.extend(finding);
    }

    pub(super) fn add(
        &mut self,
        severity: Severity,
        name: &'static str,
        text: impl Into<String>,
        hint: Option<String>,
    ) {
        let (object, name, text) = (self.object.clone(), name.to_owned(), text.into());
        self.found.push(FindingRecord { severity, object, name, text, hint });
    }

    /// The records: worst last, as one reads a list that ends at the prompt.
    pub(super) fn finish(mut self) -> Vec<FindingRecord> {
        if !self.fine.is_empty() {
            let text = self.fine.join(", ");
            self.add(Severity::Ok, self.name, text, None);
        }
        self.found.sort_by_key(|finding| finding.severity);
        self.found
    }
}

/// `'a', 'b' and 'c'`.
pub(super) fn list(names: &[String]) -> String {
    let quoted: Vec<String> = names.iter().map(|name| format!("'{name}'")).collect();
    match quoted.split_last() {
        Some((last, rest)) if !rest.is_empty() => format!("{} and {last}", rest.join(", ")),
        _ => quoted.concat(),
    }
}
