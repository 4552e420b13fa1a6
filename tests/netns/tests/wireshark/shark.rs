//! Capture files, and what tshark reads in them with the dissectors of `dist/wireshark/linkbraid.lua`.

use std::{
    collections::{BTreeMap, BTreeSet},
    fs,
    net::Ipv6Addr,
    path::{Path, PathBuf},
    process::{Command, Stdio},
};

/// Values by the name of their field, in the order in which they are in the frame.
pub type Fields = BTreeMap<String, Vec<String>>;

/// The dissectors' protocols.
const PROTOCOLS: [&str; 3] = ["arpplus", "lbmirror", "lbfabric"];
/// Stands between the values of one field; in no value.
const BETWEEN: char = ';';
/// Ethernet, in the head of a capture file.
const LINKTYPE_ETHERNET: u32 = 1;
/// What a reader is told of the length of frames.
const SNAPLEN: u32 = 1 << 18;

/// A frame as it was captured: maybe only the first of its bytes.
pub struct Record {
    pub bytes: Vec<u8>,
    /// Bytes that it had on the wire.
    pub length: usize,
}

impl Record {
    /// All of a frame.
    pub fn whole(bytes: Vec<u8>) -> Self {
        Self { length: bytes.len(), bytes }
    }
}

/// tshark with our dissectors and nobody's settings. Its folder goes with it.
pub struct Shark {
    folder: PathBuf,
    /// Where dissectors are installed.
    plugins: PathBuf,
    /// The type of each field of the dissectors.
    types: BTreeMap<String, String>,
    seen: BTreeSet<String>,
}

impl Shark {
    /// Asks it which fields there are.
    ///
    /// # Panics
    /// When it does not run, or does not take the dissectors.
    #[track_caller]
    pub fn new(name: &str) -> Self {
        let folder = std::env::temp_dir().join(format!("linkbraid-shark-{}-{name}", std::process::id()));
        fs::create_dir(&folder).expect("makes a folder");
        let mut shark = Self { folder, plugins: plugins(), types: BTreeMap::new(), seen: BTreeSet::new() };
        let listed = shark.run(&["-G", "fields"]);
        for line in listed.lines() {
            let mut words = line.split('\t');
            let (Some("F"), _, Some(name), Some(kind)) =
                (words.next(), words.next(), words.next(), words.next())
            else {
                continue;
            };
            if PROTOCOLS.iter().any(|protocol| name.split('.').next() == Some(protocol)) {
                shark.types.insert(name.to_owned(), kind.to_owned());
            }
        }
        assert!(shark.types.len() > 100, "the dissectors have only {:?}", shark.types);
        shark
    }

    #[track_caller]
    fn run(&self, arguments: &[&str]) -> String {
        let script = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../dist/wireshark/linkbraid.lua");
        // In a namespace of its own, where no installed copy of the dissectors is.
        let mut command = Command::new("unshare");
        command
            .args(["--mount", "sh", "-c", "mount -t tmpfs tmpfs \"$0\" && exec tshark \"$@\""])
            .arg(&self.plugins);
        // The first argument decides what the others may be.
        command.args(arguments).args(["-n", "-X", &format!("lua_script:{}", script.display())]);
        command.env("HOME", &self.folder).env("XDG_CONFIG_HOME", &self.folder);
        let output = command.stdin(Stdio::null()).output().expect("starts");
        let said = String::from_utf8_lossy(&output.stderr);
        assert!(output.status.success() && !said.contains("Lua"), "{command:?}: {said}");
        String::from_utf8(output.stdout).expect("text")
    }

    /// What it reads in frames that were captured in this order, a millisecond apart.
    ///
    /// # Panics
    /// When a dissector fails.
    #[track_caller]
    pub fn read(&mut self, records: &[Record], options: &[&str]) -> Vec<Fields> {
        let file = self.folder.join("frames.pcap");
        fs::write(&file, capture(records)).expect("writes");
        let file = file.display().to_string();
        let mut arguments = vec!["-r", &file, "-T", "fields", "-E", "occurrence=a"];
        let aggregator = format!("aggregator={BETWEEN}");
        arguments.extend(["-E", &aggregator, "-e", "_ws.lua.error", "-e", "_ws.col.Info"]);
        let names: Vec<String> = self.types.keys().cloned().collect();
        names.iter().for_each(|name| arguments.extend(["-e", name]));
        arguments.extend(options);
        let text = self.run(&arguments);
        let lines: Vec<&str> = text.lines().collect();
        assert_eq!(lines.len(), records.len(), "a line for each frame");
        lines.iter().enumerate().map(|(at, line)| self.line(at, line, &names)).collect()
    }

    fn line(&mut self, at: usize, line: &str, names: &[String]) -> Fields {
        let mut columns = line.split('\t');
        let (error, info) = (columns.next().unwrap_or_default(), columns.next().unwrap_or_default());
        assert!(error.is_empty() && !info.contains("Lua"), "frame {at}: {error} {info}");
        let mut fields = Fields::new();
        for (name, values) in names.iter().zip(columns) {
            if !values.is_empty() {
                let values = values.split(BETWEEN).map(|value| self.plain(name, value));
                fields.insert(name.clone(), values.collect());
                self.seen.insert(name.clone());
            }
        }
        fields
    }

    /// A value as it is compared: numbers in decimal, bytes as digits only.
    fn plain(&self, name: &str, value: &str) -> String {
        match self.types[name].as_str() {
            "FT_BYTES" => value.replace(':', ""),
            "FT_BOOLEAN" => u8::from(matches!(value, "1" | "True")).to_string(),
            "FT_IPv6" => value.parse::<Ipv6Addr>().expect("an address").to_string(),
            kind if kind.starts_with("FT_UINT") => match value.strip_prefix("0x") {
                Some(digits) => u64::from_str_radix(digits, 16).expect("a number").to_string(),
                None => value.to_owned(),
            },
            _ => value.to_owned(),
        }
    }

    /// The fields of the dissectors that no frame had so far.
    pub fn unseen(&self) -> Vec<&String> {
        self.types.keys().filter(|name| !self.seen.contains(*name)).collect()
    }
}

impl Drop for Shark {
    fn drop(&mut self) {
        let _ = fs::remove_dir_all(&self.folder);
    }
}

/// The folder that tshark loads dissectors from.
fn plugins() -> PathBuf {
    let said = Command::new("tshark").args(["-G", "folders"]).stdin(Stdio::null()).output();
    let said = said.expect("tshark runs (scripts/deps.sh test)").stdout;
    let text = String::from_utf8_lossy(&said);
    let folder = text.lines().find_map(|line| line.strip_prefix("Global Lua Plugins:"));
    PathBuf::from(folder.expect("it has one").trim())
}

/// A capture file (pcap).
fn capture(records: &[Record]) -> Vec<u8> {
    let mut file = Vec::new();
    let mut put = |words: &[u32]| words.iter().for_each(|word| file.extend(word.to_le_bytes()));
    put(&[0xa1b2_c3d4, 4 << 16 | 2, 0, 0, SNAPLEN, LINKTYPE_ETHERNET]);
    for (at, record) in (0u32..).zip(records) {
        let lengths = [record.bytes.len(), record.length].map(|bytes| bytes as u32);
        let head = [1 + at / 1000, at % 1000 * 1000, lengths[0], lengths[1]];
        head.iter().for_each(|word| file.extend(word.to_le_bytes()));
        file.extend(&record.bytes);
    }
    file
}

/// Adds a value to a field.
pub fn put(fields: &mut Fields, name: &str, value: impl ToString) {
    fields.entry(name.to_owned()).or_default().push(value.to_string());
}

/// Bytes as tshark has them.
pub fn hex(bytes: &[u8]) -> String {
    bytes.iter().map(|byte| format!("{byte:02x}")).collect()
}

/// The reasons of one kind that a dissector gave, such as those under `arpplus.refused.`.
pub fn reasons(fields: &Fields, kind: &str) -> BTreeSet<String> {
    fields.keys().filter_map(|name| name.strip_prefix(kind)).map(str::to_owned).collect()
}
