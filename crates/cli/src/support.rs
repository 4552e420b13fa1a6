//! `linkbraid support`: in one file, what somebody who helps from afar has to know, without keys and without addresses.
//!
//! Facts are gathered first ([`gather`]), each with a limit in size and in time. What must not leave the machine is replaced
//! after that, in all of them alike ([`redact`]).

mod gather;
mod program;
mod redact;

use crate::args::SupportArgs;
use crate::text;
use flate2::{Compression, write::GzEncoder};
use gather::Part;
use jiff::Zoned;
use linkbraid_api::Error;
use linkbraid_terminal::report::{self, Failed, plain};
use redact::Redactor;
use std::fs::{self, File, OpenOptions};
use std::io;
use std::os::unix::fs::OpenOptionsExt;
use std::path::{Path, PathBuf};
use std::time::{SystemTime, UNIX_EPOCH};

/// The folder in the bundle, and how the names of bundles begin.
const NAME: &str = "linkbraid-support";
/// Whom the bundle and its files are for.
const MODE: u32 = 0o600;

/// Writes the bundle, and says where it is.
pub fn run(socket: &Path, args: SupportArgs, json: bool) -> Result<(), Failed> {
    let path = args.file.or(args.output).unwrap_or_else(|| {
        PathBuf::from(format!("{NAME}-{}.tar.gz", Zoned::now().strftime("%Y%m%d-%H%M%S")))
    });
    // What cannot be written is refused before anything is gathered.
    let file = OpenOptions::new().write(true).create_new(true).mode(MODE).open(&path);
    let file = file.map_err(|error| Failed::refused(cannot_write(&path, &error)))?;
    let mut redactor = Redactor::new(!args.no_redact);
    let parts = finished(gather::all(socket), &mut redactor);
    if let Err(error) = write(file, &parts) {
        // Half a bundle is worse than none.
        let _ = fs::remove_file(&path);
        return Err(Failed::refused(cannot_write(&path, &error)));
    }
    if json {
        let names: Vec<&str> = parts.iter().map(|part| part.name.as_str()).collect();
        let record = serde_json::json!({ "file": path, "redacted": !args.no_redact, "parts": names });
        return report::print(&text::json(&record));
    }
    report::print(&format!("{}\n{}\n", path.display(), redactor.summary()))
}

/// The parts as they leave the machine, and before them what the bundle says of itself.
fn finished(mut parts: Vec<Part>, redactor: &mut Redactor) -> Vec<Part> {
    // A MAC counts in each of the ways of writing it where one of them is found anywhere.
    parts.iter_mut().flat_map(Part::texts).for_each(|text| redactor.learn(text));
    parts.iter_mut().flat_map(Part::texts).for_each(|text| *text = redactor.redact(text));
    parts.insert(0, Part::new("README.txt", readme(redactor, &parts)));
    parts
}

fn cannot_write(path: &Path, error: &io::Error) -> Error {
    let object = path.display().to_string();
    let error_of = Error::new(object, "cannot write the bundle", plain(error));
    match error.kind() {
        io::ErrorKind::AlreadyExists => error_of.hint(format!("ls -l {}", path.display())),
        _ => error_of.hint("linkbraid support /tmp/support.tar.gz"),
    }
}

/// What the bundle says of itself.
fn readme(redactor: &Redactor, parts: &[Part]) -> String {
    let mut text = format!(
        "What 'linkbraid support' found out about this machine.\n\n{}\n\
         Names of interfaces, bonds, classes and files are in it as they are.\n\n",
        redactor.summary()
    );
    for part in parts {
        let note = if part.note.is_empty() { String::new() } else { format!("  ({})", part.note) };
        text.push_str(&format!("{:<32}  {}{note}\n", part.name, part.source));
    }
    text
}

fn write(file: File, parts: &[Part]) -> io::Result<()> {
    let mut archive = tar::Builder::new(GzEncoder::new(file, Compression::default()));
    let now = SystemTime::now().duration_since(UNIX_EPOCH).unwrap_or_default().as_secs();
    for part in parts {
        let mut header = tar::Header::new_gnu();
        header.set_size(part.text.len() as u64);
        header.set_mode(MODE);
        header.set_mtime(now);
        archive.append_data(&mut header, format!("{NAME}/{}", part.name), part.text.as_bytes())?;
    }
    archive.into_inner()?.finish()?.sync_all()
}

#[cfg(test)]
mod tests {
    use super::{Part, Redactor, finished};

    #[test]
    fn names_sources_and_notes_are_redacted_and_so_is_what_lists_them() {
        let part = Part {
            name: "ethtool/enx020000000001.txt".to_owned(),
            source: "ethtool enx020000000001".to_owned(),
            note: "198.18.0.1 does not answer".to_owned(),
            text: "020000000002 is not known before the other part".to_owned(),
        };
        let other = Part::new("net/links.txt", "link/ether 02:00:00:00:00:02");
        let parts = finished(vec![part, other], &mut Redactor::new(true));
        let [readme, part, other]: [Part; 3] = parts.try_into().expect("three parts");
        assert_eq!(part.name, "ethtool/enxmac-1.txt");
        assert_eq!(part.source, "ethtool enxmac-1");
        assert_eq!(part.note, "ipv4-1 does not answer");
        assert_eq!(part.text, "mac-2 is not known before the other part");
        assert_eq!(other.text, "link/ether mac-2");
        for hidden in ["020000000001", "198.18.0.1"] {
            assert!(!readme.text.contains(hidden), "{}", readme.text);
        }
        assert!(
            readme.text.contains("ethtool/enxmac-1.txt") && readme.text.contains("2 MAC addresses and 1 IP")
        );
    }
}
