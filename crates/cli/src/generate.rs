//! Man pages and completions, from the same definitions as parsing and help; `make install` calls this.

mod file;

use crate::args::Cli;
use clap::{Command, CommandFactory};
use clap_complete::Shell;
use clap_mangen::{Man, roff};
use linkbraid_api::Error;
use linkbraid_terminal::args::{SOCKET_ENV, STATE_ENV};
use linkbraid_terminal::report::{self, Failed, plain};
use std::fs;
use std::io;
use std::path::Path;

/// The section of man pages that has commands of the administrator.
const SECTION: &str = "8";
/// The shells that get completions, and the file name each one looks for.
const SHELLS: [(Shell, &str); 3] =
    [(Shell::Bash, "linkbraid"), (Shell::Zsh, "_linkbraid"), (Shell::Fish, "linkbraid.fish")];

/// Writes the man pages into folders of `dir`, one a section: of each word into `man8` (`linkbraid.8`,
/// `linkbraid-bond-add.8` and so on), of the configuration file into `man5`.
pub fn man(dir: &Path) -> Result<(), Failed> {
    let mut command = visible(Cli::command());
    command.build();
    all_pages(&command, dir).map_err(|error| cannot_write(dir, &error))
}

fn all_pages(command: &Command, dir: &Path) -> io::Result<()> {
    let folder = |section: &str| {
        let folder = dir.join(format!("man{section}"));
        fs::create_dir_all(&folder).map(|()| folder)
    };
    pages(command, &folder(SECTION)?)?;
    let (name, section) = file::NAME;
    fs::write(folder(section)?.join(format!("{name}.{section}")), file::page(command).to_roff())
}

/// Prints the completions of one shell, or writes those of all shells into a directory, one folder a shell.
pub fn completions(target: &str) -> Result<(), Failed> {
    if let Some((shell, _)) = SHELLS.iter().find(|(shell, _)| shell.to_string() == target) {
        return report::print(&String::from_utf8_lossy(&script(*shell)));
    }
    let dir = Path::new(target);
    let write = || {
        for (shell, file) in SHELLS {
            let folder = dir.join(shell.to_string());
            fs::create_dir_all(&folder)?;
            fs::write(folder.join(file), script(shell))?;
        }
        Ok(())
    };
    if !dir.is_dir() {
        let cause = "it is neither bash, zsh, fish nor an existing directory";
        return Err(Failed::refused(
            Error::new(target, "cannot write completions", cause).hint("linkbraid completions bash"),
        ));
    }
    write().map_err(|error| cannot_write(dir, &error))
}

fn cannot_write(dir: &Path, error: &io::Error) -> Failed {
    let object = dir.display().to_string();
    Failed::refused(Error::new(object, "cannot write files", plain(error)))
}

fn script(shell: Shell) -> Vec<u8> {
    let mut out = Vec::new();
    clap_complete::generate(shell, &mut visible(Cli::command()), "linkbraid", &mut out);
    out
}

/// The command without its hidden words: what is installed must not list what users should not call.
fn visible(command: Command) -> Command {
    let hidden = |word: &Command| word.is_hide_set();
    let words = command.get_subcommands().filter(|word| !hidden(word)).cloned().collect::<Vec<_>>();
    // clap cannot remove a subcommand, so the root is made again from the parts the pages are made of.
    let mut shown = Command::new("linkbraid")
        .version(env!("CARGO_PKG_VERSION"))
        .about(command.get_about().cloned().unwrap_or_default())
        .disable_help_subcommand(true)
        .subcommand_required(true)
        .args(command.get_arguments().cloned().collect::<Vec<_>>())
        .subcommands(words);
    if let Some(long) = command.get_long_about() {
        shown = shown.long_about(long.clone());
    }
    if let Some(after) = command.get_after_help() {
        shown = shown.after_help(after.clone());
    }
    shown
}

/// One page for `command` and one for each word below it.
fn pages(command: &Command, dir: &Path) -> io::Result<()> {
    let name = command.get_display_name().unwrap_or_else(|| command.get_name()).to_owned();
    let page = Man::new(command.clone())
        .title(name.clone())
        .section(SECTION)
        .manual("linkbraid")
        .source(format!("linkbraid {}", env!("CARGO_PKG_VERSION")));
    let mut out = Vec::new();
    page.render_title(&mut out)?;
    page.render_name_section(&mut out)?;
    synopsis(command).to_writer(&mut out)?;
    page.render_description_section(&mut out)?;
    page.render_options_section(&mut out)?;
    if command.get_subcommands().next().is_some() {
        page.render_subcommands_section(&mut out)?;
    }
    examples(command).to_writer(&mut out)?;
    fs::write(dir.join(format!("{name}.{SECTION}")), out)?;
    command.get_subcommands().try_for_each(|word| pages(word, dir))
}

/// The usage line of the help.
fn synopsis(command: &Command) -> roff::Roff {
    let usage = command.clone().render_usage().to_string();
    let usage = usage.trim_start_matches("Usage: ").to_owned();
    let mut out = roff::Roff::new();
    out.control("SH", ["SYNOPSIS"]).text([roff::roman(usage)]);
    out
}

/// The block below the help, with its lines kept as they are, and the sections every page ends with.
fn examples(command: &Command) -> roff::Roff {
    let mut out = roff::Roff::new();
    if let Some(after) = command.get_after_help() {
        let text = after.to_string();
        let text =
            text.strip_prefix("Examples:\n").or_else(|| text.strip_prefix("Example:\n")).unwrap_or(&text);
        let text = text.split("\n\nExit status:").next().unwrap_or_default();
        out.control("SH", ["EXAMPLES"]).control("nf", []);
        for line in text.lines() {
            out.text([roff::roman(line)]);
        }
        out.control("fi", []);
    }
    out.control("SH", ["EXIT STATUS"]);
    let own = "1 refused or failed, 2 wrong usage, 3 no daemon.";
    out.text([roff::roman(match command.get_arguments().any(clap::Arg::is_last_set) {
        true => format!("That of the command; if the command is not run, {own}"),
        false => format!("0 done, {own}"),
    })]);
    out.control("SH", ["ENVIRONMENT"]);
    for (name, meaning) in [
        (SOCKET_ENV, "The daemon's socket, unless --socket is given."),
        (STATE_ENV, "The daemon's state directory, unless --state is given."),
        ("NO_COLOR", "If it is not empty, the output has no colour."),
    ] {
        out.control("TP", []).text([roff::bold(name)]).text([roff::roman(meaning)]);
    }
    out.control("SH", ["FILES"]).control("TP", []);
    out.text([roff::bold(linkbraid_api::DEFAULT_SOCKET)]).text([roff::roman("The daemon's socket.")]);
    let [file, folder] = linkbraid_api::CONFIG_PATHS;
    out.control("TP", []).text([roff::bold(format!("{file}, {folder}/*.toml"))]);
    out.text([
        roff::roman("What comes back after a boot, see "),
        roff::bold(file::NAME.0),
        roff::roman("(5)."),
    ]);
    out
}

#[cfg(test)]
mod tests;
