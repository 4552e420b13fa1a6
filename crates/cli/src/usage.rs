//! Wrong usage in our own shape: one line that says what is wrong and one hint, never the whole help.

use crate::report::{self, Failed};
use clap::error::{ContextKind, ContextValue, ErrorKind};
use linkbraid_api::{Error, ExitCode};

/// Prints help or version where that is what was asked for; otherwise the refusal.
pub fn report(error: clap::Error) -> Result<(), Failed> {
    match error.kind() {
        ErrorKind::DisplayHelp | ErrorKind::DisplayVersion => {
            let styled = error.render();
            let text = if report::colour() { styled.ansi().to_string() } else { styled.to_string() };
            report::print(&text)
        }
        _ => Err(Failed { error: refusal(&error, &words()), code: ExitCode::Usage }),
    }
}

/// The words of the command line that name the object: `bond add`, or `linkbraid` where there are none.
fn words() -> String {
    object(std::env::args().skip(1))
}

/// Follows the words as far as the command knows them; options and their values in between are skipped.
fn object(args: impl Iterator<Item = String>) -> String {
    let mut command = <crate::args::Cli as clap::CommandFactory>::command();
    let mut words = Vec::new();
    for arg in args {
        if arg == "--" {
            break;
        }
        if let Some(found) = command.find_subcommand(&arg) {
            let found = found.clone();
            words.push(arg);
            command = found;
        }
    }
    if words.is_empty() { "linkbraid".to_owned() } else { words.join(" ") }
}

/// The refusal of a value that has said all itself, such as a rule, which has parts of its own.
fn told(error: &clap::Error) -> Option<Error> {
    std::error::Error::source(error)?.downcast_ref::<Error>().cloned()
}

/// Turns clap's error into ours. `object` is the words understood so far.
fn refusal(error: &clap::Error, object: &str) -> Error {
    if let Some(told) = told(error) {
        return told;
    }
    let help = if object == "linkbraid" {
        "linkbraid --help".to_owned()
    } else {
        format!("linkbraid {object} --help")
    };
    let text = |kind| error.get(kind).map(words_of).unwrap_or_default();
    let argument = option_name(&text(ContextKind::InvalidArg));
    let value = text(ContextKind::InvalidValue);
    let (what, cause) = match error.kind() {
        ErrorKind::InvalidSubcommand => {
            let word = text(ContextKind::InvalidSubcommand);
            let near = text(ContextKind::SuggestedSubcommand);
            let cause = if near.is_empty() {
                "no such word".to_owned()
            } else {
                format!("no such word; did you mean '{near}'")
            };
            (format!("word '{word}'"), cause)
        }
        ErrorKind::UnknownArgument => {
            let near = text(ContextKind::SuggestedArg);
            let cause = match (argument.starts_with('-'), near.is_empty()) {
                (true, true) => "no such option".to_owned(),
                (true, false) => format!("no such option; did you mean '{near}'"),
                (false, _) if runs_a_command(object) => "write '--' before the command".to_owned(),
                (false, _) => "one word too many".to_owned(),
            };
            let kind = if argument.starts_with('-') { "option" } else { "word" };
            (format!("{kind} '{argument}'"), cause)
        }
        ErrorKind::ValueValidation => {
            let cause = std::error::Error::source(error).map(ToString::to_string).unwrap_or(value);
            (format!("{} '{argument}'", kind_of(&argument)), cause)
        }
        ErrorKind::InvalidValue if value.is_empty() => {
            (format!("option '{argument}'"), "it lacks its value".to_owned())
        }
        ErrorKind::InvalidValue => {
            let allowed = text(ContextKind::ValidValue);
            (format!("option '{argument}'"), format!("'{value}' is not allowed; allowed are {allowed}"))
        }
        ErrorKind::MissingRequiredArgument => {
            let missing = missing(error);
            ("missing".to_owned(), missing)
        }
        ErrorKind::MissingSubcommand | ErrorKind::DisplayHelpOnMissingArgumentOrSubcommand => {
            ("a word is missing".to_owned(), format!("allowed are {}", known_words(object)))
        }
        ErrorKind::ArgumentConflict => {
            let cause = match option_name(&text(ContextKind::PriorArg)) {
                other if other.is_empty() || other == argument => "it was given more than once".to_owned(),
                other => format!("it cannot be given together with '{other}'"),
            };
            (format!("option '{argument}'"), cause)
        }
        ErrorKind::TooManyValues
        | ErrorKind::NoEquals
        | ErrorKind::WrongNumberOfValues
        | ErrorKind::TooFewValues => {
            let takes =
                if text(ContextKind::InvalidArg).contains('<') { "exactly one value" } else { "no value" };
            (format!("option '{argument}'"), format!("it takes {takes}"))
        }
        ErrorKind::InvalidUtf8 => {
            ("cannot read the command line".to_owned(), "it is not valid UTF-8".to_owned())
        }
        _ => {
            let first = error.to_string();
            let first = first.lines().next().unwrap_or_default().trim_start_matches("error: ").to_owned();
            ("wrong usage".to_owned(), first)
        }
    };
    Error::new(object, what, cause).hint(help)
}

/// `--mtu <BYTES>` is the option `--mtu`; `<NAME>` is the word `NAME`.
fn option_name(argument: &str) -> String {
    let first = argument.split_whitespace().next().unwrap_or_default();
    first.trim_matches(['<', '>', '[', ']']).trim_end_matches("...").trim_end_matches(['>', ']']).to_owned()
}

fn kind_of(argument: &str) -> &'static str {
    if argument.starts_with('-') { "option" } else { "word" }
}

fn words_of(value: &ContextValue) -> String {
    match value {
        ContextValue::String(one) => one.clone(),
        ContextValue::Strings(many) => many.join(", "),
        other => other.to_string(),
    }
}

/// What is missing, in words: `--member <IF[,IF...]>, NAME`.
fn missing(error: &clap::Error) -> String {
    match error.get(ContextKind::InvalidArg) {
        Some(ContextValue::Strings(many)) => many
            .iter()
            .map(|one| one.trim_end_matches("..."))
            .map(|one| match one.strip_prefix('<').and_then(|rest| rest.strip_suffix('>')) {
                Some(group) if group.starts_with("--") => options_of(group),
                Some(word) => word.to_owned(),
                None => one.replace(" <", " ").trim_end_matches('>').to_owned(),
            })
            .collect::<Vec<_>>()
            .join(", "),
        _ => "a word or option".to_owned(),
    }
}

/// `--policy <POLICY>|--mtu <BYTES>` names the options alone.
fn options_of(group: &str) -> String {
    let parts = group.split_whitespace().flat_map(|part| part.split('|'));
    let options: Vec<&str> = parts.filter(|part| part.starts_with("--")).collect();
    format!("{}{}", if options.len() > 1 { "one of " } else { "" }, options.join(", "))
}

/// Whether what stands behind `--` is a command line of its own.
fn runs_a_command(object: &str) -> bool {
    named(&<crate::args::Cli as clap::CommandFactory>::command(), object)
        .get_arguments()
        .any(clap::Arg::is_last_set)
}

fn named<'a>(root: &'a clap::Command, object: &str) -> &'a clap::Command {
    object.split(' ').try_fold(root, |command, word| command.find_subcommand(word)).unwrap_or(root)
}

fn known_words(object: &str) -> String {
    let root = <crate::args::Cli as clap::CommandFactory>::command();
    let found = named(&root, object);
    let known = found.get_subcommands().filter(|word| !word.is_hide_set());
    known.map(|word| word.get_name().to_owned()).collect::<Vec<_>>().join(", ")
}

#[cfg(test)]
mod tests;
