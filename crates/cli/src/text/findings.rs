//! `check`

use super::{Style, Tone, severity};
use linkbraid_api::FindingRecord;
use linkbraid_terminal::{human, report::one_line};

/// Narrower than this, text is left to the terminal.
const TEXT_WIDTH_MIN: usize = 20;

/// One finding a line as the daemon orders them, the command that helps below it.
pub fn findings(records: &[FindingRecord], style: &Style) -> String {
    if records.is_empty() {
        return "nothing to check\n".to_owned();
    }
    let records = records.iter().map(Line::of).collect::<Vec<_>>();
    let widest = |part: fn(&Line) -> &str| {
        records.iter().map(|line| part(line).chars().count()).max().unwrap_or_default()
    };
    let (word, object, name) =
        (widest(|line| line.word), widest(|line| &line.object), widest(|line| &line.name));
    let indent = word + object + name + 6;
    let mut out = String::new();
    for line in &records {
        let padding = " ".repeat(word - line.word.len());
        let text = match style.width {
            Some(width) => human::wrap(&line.text, width.saturating_sub(indent).max(TEXT_WIDTH_MIN)),
            None => vec![line.text.clone()],
        };
        out.push_str(&format!(
            "{}{padding}  {:<object$}  {:<name$}  {}\n",
            style.paint(line.tone, line.word),
            line.object,
            line.name,
            text.join(&format!("\n{:indent$}", ""))
        ));
        if let Some(hint) = &line.hint {
            out.push_str(&format!("{}  hint: {hint}\n", " ".repeat(word)));
        }
    }
    out
}

struct Line {
    word: &'static str,
    tone: Tone,
    object: String,
    name: String,
    text: String,
    hint: Option<String>,
}

impl Line {
    fn of(record: &FindingRecord) -> Self {
        let (word, tone) = severity(record.severity);
        Self {
            word,
            tone,
            object: one_line(&record.object),
            name: one_line(&record.name).replace('_', " "),
            text: one_line(&record.text),
            hint: record.hint.as_deref().map(one_line),
        }
    }
}
