//! Errors in the command line, in the same form as other errors: one line that says what is wrong, and one hint.

use crate::report::{self, Failed};
use clap::{
    Command,
    error::{ContextKind, ContextValue, ErrorKind},
};
use linkbraid_api::Error;
use std::error::Error as _;

/// Prints help or version if the user asked for it, otherwise the refusal.
pub fn report(error: &clap::Error, command: Command) -> Result<(), Failed> {
    match error.kind() {
        ErrorKind::DisplayHelp | ErrorKind::DisplayVersion => {
            let styled = error.render();
            let text = if report::colour() { styled.ansi().to_string() } else { styled.to_string() };
            report::print(&text)
        }
        _ => Err(Failed::usage(refusal(error, command, std::env::args().skip(1)))),
    }
}

/// The command and subcommand of a command line.
struct Asked {
    /// Their names, as far as they are known: `bond add`.
    words: Vec<String>,
    /// The last one of them.
    command: Command,
}

impl Asked {
    /// Follows the names of commands, and skips options and their values in between.
    fn find(command: Command, args: impl Iterator<Item = String>) -> Self {
        let mut asked = Self { words: Vec::new(), command };
        for arg in args.take_while(|arg| arg != "--") {
            if let Some(found) = asked.command.find_subcommand(&arg).cloned() {
                asked.words.push(arg);
                asked.command = found;
            }
        }
        asked
    }

    /// The object of the error.
    fn object(&self) -> String {
        if self.words.is_empty() { "linkbraid".to_owned() } else { self.words.join(" ") }
    }

    fn help(&self) -> String {
        ["linkbraid"]
            .into_iter()
            .chain(self.words.iter().map(String::as_str))
            .chain(["--help"])
            .collect::<Vec<_>>()
            .join(" ")
    }

    /// The subcommands that may come next.
    fn known_words(&self) -> String {
        let known = self.command.get_subcommands().filter(|word| !word.is_hide_set());
        known.map(Command::get_name).collect::<Vec<_>>().join(", ")
    }

    /// Whether what follows `--` is a command line of its own.
    fn runs_a_command(&self) -> bool {
        self.command.get_arguments().any(clap::Arg::is_last_set)
    }
}

/// Turns clap's error into ours.
pub fn refusal(error: &clap::Error, command: Command, args: impl Iterator<Item = String>) -> Error {
    let asked = Asked::find(command, args);
    // Some values have errors of their own, such as a rule, which has several parts.
    if let Some(complete) = error.source().and_then(|source| source.downcast_ref::<Error>()) {
        return complete.clone();
    }
    let text = |kind| error.get(kind).map(words_of).unwrap_or_default();
    let argument = option_name(&text(ContextKind::InvalidArg));
    let value = text(ContextKind::InvalidValue);
    let is_option = argument.starts_with('-');
    let named = format!("{} '{argument}'", if is_option { "option" } else { "argument" });
    let near = |cause: &str, kind| match text(kind) {
        near if near.is_empty() => cause.to_owned(),
        near => format!("{cause}; did you mean '{near}'"),
    };
    let (what, cause) = match error.kind() {
        ErrorKind::InvalidSubcommand => (
            format!("command '{}'", text(ContextKind::InvalidSubcommand)),
            near("no such command", ContextKind::SuggestedSubcommand),
        ),
        ErrorKind::UnknownArgument if is_option => (named, near("no such option", ContextKind::SuggestedArg)),
        ErrorKind::UnknownArgument if asked.runs_a_command() => {
            (named, "write '--' before the command".to_owned())
        }
        ErrorKind::UnknownArgument => (named, "one argument too many".to_owned()),
        ErrorKind::ValueValidation => (named, error.source().map_or(value, ToString::to_string)),
        ErrorKind::InvalidValue if value.is_empty() => (named, "its value is missing".to_owned()),
        ErrorKind::InvalidValue => {
            let allowed = text(ContextKind::ValidValue);
            (named, format!("'{value}' is not allowed; allowed are {allowed}"))
        }
        ErrorKind::MissingRequiredArgument => ("missing".to_owned(), missing(error)),
        ErrorKind::MissingSubcommand | ErrorKind::DisplayHelpOnMissingArgumentOrSubcommand => {
            ("a command is missing".to_owned(), format!("allowed are {}", asked.known_words()))
        }
        ErrorKind::ArgumentConflict => match option_name(&text(ContextKind::PriorArg)) {
            other if other.is_empty() || other == argument => {
                (named, "it was given more than once".to_owned())
            }
            other => (named, format!("it cannot be given together with '{other}'")),
        },
        ErrorKind::TooManyValues
        | ErrorKind::NoEquals
        | ErrorKind::WrongNumberOfValues
        | ErrorKind::TooFewValues => {
            let has_value = text(ContextKind::InvalidArg).contains('<');
            (named, format!("it takes {}", if has_value { "exactly one value" } else { "no value" }))
        }
        ErrorKind::InvalidUtf8 => {
            ("cannot read the command line".to_owned(), "it is not valid UTF-8".to_owned())
        }
        _ => {
            let first = error.to_string();
            let first = first.lines().next().unwrap_or_default();
            ("wrong usage".to_owned(), first.trim_start_matches("error: ").to_owned())
        }
    };
    Error::new(asked.object(), what, cause).hint(asked.help())
}

/// `--mtu <BYTES>` is the option `--mtu`; `<NAME>` is the argument `NAME`.
fn option_name(argument: &str) -> String {
    let first = argument.split_whitespace().next().unwrap_or_default();
    first.trim_matches(['<', '>', '[', ']']).trim_end_matches("...").trim_end_matches(['>', ']']).to_owned()
}

fn words_of(value: &ContextValue) -> String {
    match value {
        ContextValue::String(one) => one.clone(),
        ContextValue::Strings(many) => many.join(", "),
        other => other.to_string(),
    }
}

/// What is missing, in words: `--member IF[,IF...], NAME`.
fn missing(error: &clap::Error) -> String {
    let Some(ContextValue::Strings(many)) = error.get(ContextKind::InvalidArg) else {
        return "an argument or option".to_owned();
    };
    let in_words = |one: &String| {
        let one = one.trim_end_matches("...");
        match one.strip_prefix('<').and_then(|rest| rest.strip_suffix('>')) {
            Some(group) if group.starts_with("--") => options_of(group),
            Some(word) => word.to_owned(),
            None => one.replace(" <", " ").trim_end_matches('>').to_owned(),
        }
    };
    many.iter().map(in_words).collect::<Vec<_>>().join(", ")
}

/// `--policy <POLICY>|--mtu <BYTES>` names the options alone.
fn options_of(group: &str) -> String {
    let parts = group.split_whitespace().flat_map(|part| part.split('|'));
    let options: Vec<&str> = parts.filter(|part| part.starts_with("--")).collect();
    format!("{}{}", if options.len() > 1 { "one of " } else { "" }, options.join(", "))
}

#[cfg(test)]
mod tests;
