//! The man page of the configuration file, from the keys that are read and from the options of the same names.

use clap::{Arg, Command, builder::ValueRange};
use clap_mangen::roff::{Roff, bold, italic, roman};
use linkbraid_api::{CONFIG_PATHS, config};

/// What the page is called, and its section.
pub const NAME: (&str, &str) = ("linkbraid.toml", "5");

const EXAMPLE: &str = include_str!("../../../../dist/linkbraid.toml");

const ABOUT: [&str; 5] = [
    "Bonds and fabrics that come back after a boot. The files are TOML. The service reads them when it starts, and \
        'linkbraid apply' reads them when it is called.",
    "/etc/linkbraid.toml is read first, then the files in /etc/linkbraid whose names end in .toml, in the order of their \
        names. All are applied as one. Each bond and each fabric is in one file, with all that it has: a second file \
        that names it is refused, and so is a link that two bonds have. No file changes what another one says.",
    "Keys are the long options of the command and take the same values, numbers as numbers. A list of one may be written \
        without brackets. An option that is left out has the default of the command, except that MTU and MAC stay as they \
        are. Whatever cannot be is refused with its file and line before anything is changed.",
    "The service removes nothing when it starts, and waits for links that come late. 'linkbraid apply' also removes what an \
        earlier file has added and no file names any more.",
    "To be sure of a change, see what it would do ('linkbraid apply --dry-run') before it is made.",
];

/// What a table is about, and the command whose options it has.
const TABLES: [(&str, &[&str]); 5] = [
    (
        "What concerns the daemon as a whole; it takes effect when the daemon starts. These keys stand before all tables.",
        &["daemon"],
    ),
    ("A fabric: an Ethernet interface over shared memory or any network.", &["fabric", "add"]),
    ("A bond: one interface over several links.", &["bond", "add"]),
    (
        "A member of a bond. In the list 'member', a name stands for a member without options; one with options is a table: \
            { name = \"eth2\", weight = 100 }.",
        &["member", "add"],
    ),
    ("A class: traffic that rules choose. Rules are tried in the order of the classes.", &["class", "add"]),
];

/// Keys that have no option of their name, or another meaning than it.
const OWN: [(&str, &str, &str); 5] = [
    (
        "",
        "metrics",
        "Where metrics for Prometheus are served: an address with a port, such as \"127.0.0.1:9919\", or the whole path of a \
            Unix socket. Without this key, and without the option of the daemon, none are",
    ),
    (
        "bond.NAME",
        "member",
        "The links that are its members, as a list; the first one gives a new bond its MAC",
    ),
    ("bond.NAME", "class", "Its classes; each is a table of its own, see below"),
    ("bond.NAME.member", "name", "The link"),
    ("bond.NAME.class.NAME", "member", "Members of the bond that are for this class, as a list"),
];

/// The page.
pub fn page(command: &Command) -> Roff {
    let mut out = Roff::new();
    let source = format!("linkbraid {}", env!("CARGO_PKG_VERSION"));
    out.control("TH", [NAME.0, NAME.1, "", source.as_str(), "linkbraid"]);
    out.control("SH", ["NAME"])
        .text([roman(format!("{} - bonds and fabrics that come back after a boot", NAME.0))]);
    out.control("SH", ["SYNOPSIS"]).text([bold(CONFIG_PATHS[0])]);
    out.control("br", []).text([bold(format!("{}/*.toml", CONFIG_PATHS[1]))]);
    out.control("SH", ["DESCRIPTION"]);
    for paragraph in ABOUT {
        out.control("PP", []).text([roman(paragraph)]);
    }
    for ((table, keys), (about, words)) in config::tables().into_iter().zip(TABLES) {
        let title = match table {
            "" => "DAEMON".to_owned(),
            "bond.NAME.member" => "MEMBERS".to_owned(),
            table => format!("[{table}]"),
        };
        out.control("SH", [title.as_str()]).text([roman(about)]);
        for key in keys {
            let option = option(command, words, &key);
            let value = option.and_then(value).map_or_else(String::new, |value| format!(" = {value}"));
            out.control("TP", []).text([bold(key.clone()), italic(value)]);
            out.text([roman(meaning(table, &key, option))]);
        }
    }
    out.control("SH", ["EXAMPLE"]).control("nf", []);
    for line in EXAMPLE.lines() {
        out.text([roman(line)]);
    }
    out.control("fi", []);
    out.control("SH", ["SEE ALSO"]).text([
        bold("linkbraid"),
        roman("(8), "),
        bold("linkbraid-apply"),
        roman("(8)"),
    ]);
    out
}

/// The option of a command with the name of a key.
fn option<'c>(command: &'c Command, words: &[&str], key: &str) -> Option<&'c Arg> {
    let command = words.iter().try_fold(command, |command, word| command.find_subcommand(word))?;
    command.get_arguments().find(|arg| arg.get_long() == Some(key) || arg.get_id().as_str() == key)
}

/// What stands for the value of an option; nothing for a switch.
fn value(option: &Arg) -> Option<String> {
    if option.get_num_args() == Some(ValueRange::EMPTY) {
        return Some("true or false".to_owned());
    }
    let names: Vec<&str> = option.get_value_names()?.iter().map(|name| name.as_str()).collect();
    Some(names.join(" "))
}

/// What a key is for.
fn meaning(table: &str, key: &str, option: Option<&Arg>) -> String {
    match OWN.iter().find(|own| (own.0, own.1) == (table, key)) {
        Some((_, _, text)) => (*text).to_owned(),
        None => option.and_then(Arg::get_help).map(ToString::to_string).unwrap_or_default(),
    }
}

#[cfg(test)]
mod tests;
