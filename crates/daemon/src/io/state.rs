//! What must survive a restart of the daemon, as one JSON file a bond or fabric, replaced as a whole.
//!
//! The file is written before the machine is changed and removed after it is as it was, so a daemon that died half
//! way finds here what to put back.

use crate::io::error::About as _;
use linkbraid_api::{
    BondSettings, ClassName, ClassSettings, Error, LinkName, MemberSettings, Precedence, Rule,
};
use linkbraid_link::{Route, Saved};
use linkbraid_proto::inspector::Timing;
use serde::{Deserialize, Deserializer, Serialize, de::DeserializeOwned};
use std::{
    fs, io,
    path::{Path, PathBuf},
};

/// One bond.
#[derive(Debug, Clone, Serialize, Deserialize)]
pub(crate) struct SavedBond {
    /// Its name, which is that of its interface.
    #[serde(deserialize_with = "LinkName::read_of_link")]
    pub name: LinkName,
    /// Its interface, once it is there.
    pub ifindex: Option<u32>,
    /// Whether `bond add` came to its end.
    pub complete: bool,
    /// Its MTU.
    pub mtu: u32,
    /// Addresses given with `--address`.
    pub addresses: Vec<String>,
    #[serde(flatten)]
    pub settings: BondSettings,
    pub host_id: [u8; 16],
    /// The latest that a daemon has used with this host id.
    #[serde(default)]
    pub epoch: u64,
    /// The boot in which this is true: after the next one, interfaces are others.
    pub boot_id: String,
    /// A place that no other bond on this machine has: NAMESPACE/BOND, by the number of the network namespace and the name that the
    /// bond was given.
    #[serde(alias = "pins", deserialize_with = "last_two")]
    pub place: PathBuf,
    /// Its members, in order.
    pub members: Vec<SavedMember>,
    /// Members that are to come back: their interfaces are gone.
    #[serde(default)]
    pub absent: Vec<SavedAbsent>,
    /// Its classes, in the order in which their rules are tried.
    #[serde(default)]
    pub classes: Vec<SavedClass>,
    /// Whether a configuration file made it; of members and classes likewise.
    #[serde(default)]
    pub applied: bool,
    /// Those of the addresses that a configuration file gave.
    #[serde(default)]
    pub applied_addresses: Vec<String>,
}

/// One class.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub(crate) struct SavedClass {
    /// Its number in the data path and in what peers hear, from 1; peers know it by its name.
    pub number: u8,
    pub name: ClassName,
    pub rules: Vec<Rule>,
    /// Whether it was given members of its own, whatever has become of them.
    pub has_members: bool,
    #[serde(flatten)]
    pub settings: ClassSettings,
    /// Whether a configuration file made it.
    #[serde(default)]
    pub applied: bool,
}

impl SavedClass {
    /// Whether its frames leave before others.
    pub(crate) fn has_precedence(&self) -> bool {
        match self.settings.precedence {
            Precedence::Auto => !self.has_members,
            Precedence::On => true,
            Precedence::Off => false,
        }
    }
}

impl SavedBond {
    /// The interfaces that its programs are on, its own first, as far as they are known.
    pub(crate) fn interfaces(&self) -> Vec<u32> {
        self.ifindex.into_iter().chain(self.members.iter().map(|member| member.before.link.index)).collect()
    }

    /// When the inspector probes and trusts.
    pub(crate) fn timing(&self) -> Timing {
        let settings = &self.settings.inspector;
        Timing {
            interval: settings.probe_interval.duration(),
            multiplier: u8::try_from(settings.probe_multiplier.0).unwrap_or(u8::MAX),
            up_delay: settings.up_delay.duration(),
            hold_max: settings.hold_max.duration(),
            ..Timing::default()
        }
    }
}

/// One member.
#[derive(Debug, Clone, Serialize, Deserialize)]
pub(crate) struct SavedMember {
    /// Its place in the data path's tables.
    pub slot: u8,
    #[serde(flatten)]
    pub settings: MemberSettings,
    /// The number of its class; 0 for none.
    #[serde(default)]
    pub class: u8,
    /// `member add` has not come to its end.
    #[serde(default)]
    pub joining: bool,
    /// `member del` has not come to its end.
    #[serde(default)]
    pub leaving: bool,
    /// Whether a configuration file added it.
    #[serde(default)]
    pub applied: bool,
    /// What it was like before it joined.
    pub before: Saved,
}

/// A member whose interface is gone, as it is to be when it is back.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub(crate) struct SavedAbsent {
    pub name: String,
    #[serde(flatten)]
    pub settings: MemberSettings,
    /// The number of its class; 0 for none.
    pub class: u8,
    /// Its default route and its addresses moved to the bond when it was added.
    pub move_address: bool,
    /// Whether a configuration file added it.
    pub applied: bool,
    /// It was named first when the bond was made, so the bond has its MAC from when it is there.
    #[serde(default)]
    pub gives_mac: bool,
}

impl SavedAbsent {
    /// A member that is gone, by the name that it had at last.
    pub(crate) fn of(member: &SavedMember, name: &str) -> Self {
        Self {
            name: name.to_owned(),
            settings: member.settings,
            class: member.class,
            move_address: member.before.routes.iter().any(Route::is_default),
            applied: member.applied,
            gives_mac: false,
        }
    }
}

impl SavedMember {
    /// Whether it is neither coming nor going.
    pub(crate) const fn stays(&self) -> bool {
        !self.joining && !self.leaving
    }
}

/// What has a file of its own.
pub(crate) trait OnFile: Serialize + DeserializeOwned {
    /// How the names of such files end.
    const EXTENSION: &str;
    /// What it is called in messages.
    const KIND: &str;

    fn name(&self) -> &str;

    /// The boot in which it is true: after the next one, interfaces are others.
    fn boot_id(&self) -> &str;
}

impl OnFile for SavedBond {
    const EXTENSION: &str = "json";
    const KIND: &str = "bond";

    fn name(&self) -> &str {
        &self.name
    }

    fn boot_id(&self) -> &str {
        &self.boot_id
    }
}

/// Where a daemon on this socket has the directory of these files, unless it is told another one.
pub(crate) fn beside(socket: &Path) -> PathBuf {
    let mut path = socket.to_owned().into_os_string();
    path.push(".state");
    path.into()
}

/// The directory of these files.
#[derive(Debug, Clone)]
pub(crate) struct StateDir(PathBuf);

impl StateDir {
    pub(crate) fn open(path: PathBuf) -> Result<Self, Error> {
        fs::create_dir_all(&path).about(&path.display().to_string(), "cannot create the state directory")?;
        // What a daemon was writing when it died; the file it was to replace is still the whole one.
        for entry in fs::read_dir(&path).into_iter().flatten().flatten() {
            if entry.path().extension().is_some_and(|extension| extension == "new") {
                let _ = fs::remove_file(entry.path());
            }
        }
        Ok(Self(path))
    }

    fn file<T: OnFile>(&self, name: &str) -> PathBuf {
        self.0.join(format!("{name}.{}", T::EXTENSION))
    }

    /// Writes a file, whole or not at all.
    pub(crate) fn write<T: OnFile>(&self, record: &T) -> Result<(), Error> {
        let (name, file) = (record.name(), self.file::<T>(record.name()));
        let new = self.0.join(format!("{name}.{}.new", T::EXTENSION));
        let text = serde_json::to_vec_pretty(record).map_err(|error| {
            Error::new(name, format!("cannot save the {}'s state", T::KIND), error.to_string())
        })?;
        fs::write(&new, text)
            .and_then(|()| fs::rename(&new, &file))
            .about(name, format!("cannot write '{}'", file.display()))
    }

    /// Removes a file, if it is there.
    pub(crate) fn remove<T: OnFile>(&self, name: &str) -> Result<(), Error> {
        let file = self.file::<T>(name);
        match fs::remove_file(&file) {
            Err(cause) if cause.kind() != io::ErrorKind::NotFound => {
                Err(cause).about(name, format!("cannot remove '{}'", file.display()))
            }
            _ => Ok(()),
        }
    }

    /// All of a kind that were made since this boot, by name; what an earlier boot left is removed, and a file that
    /// cannot be read is reported and left.
    pub(crate) fn read_all<T: OnFile>(&self) -> Vec<T> {
        let mut records = on_file::<T>(&self.0);
        records.retain(|record| {
            let current = is_current(record);
            if !current {
                tracing::info!(kind = T::KIND, name = record.name(), "from before the last boot; discarded");
                let _ = self.remove::<T>(record.name());
            }
            current
        });
        records.sort_by(|a, b| a.name().cmp(b.name()));
        records
    }
}

/// All of a kind in a directory that were made since this boot, in no order. Nothing is changed there.
pub(crate) fn saved<T: OnFile>(directory: &Path) -> Vec<T> {
    on_file::<T>(directory).into_iter().filter(is_current).collect()
}

fn on_file<T: OnFile>(directory: &Path) -> Vec<T> {
    let Ok(entries) = fs::read_dir(directory) else { return Vec::new() };
    let paths = entries.flatten().map(|entry| entry.path());
    let files = paths.filter(|path| path.extension().is_some_and(|extension| extension == T::EXTENSION));
    files.filter_map(|path| read(&path)).collect()
}

fn is_current<T: OnFile>(record: &T) -> bool {
    record.boot_id() == boot_id()
}

/// Earlier builds had a place in a BPF file system.
fn last_two<'de, D: Deserializer<'de>>(from: D) -> Result<PathBuf, D::Error> {
    let path = PathBuf::deserialize(from)?;
    let skipped = path.components().count().saturating_sub(2);
    Ok(path.components().skip(skipped).collect())
}

/// What the kernel calls this boot.
pub(crate) fn boot_id() -> String {
    fs::read_to_string("/proc/sys/kernel/random/boot_id").unwrap_or_default().trim().to_owned()
}

fn read<T: OnFile>(path: &Path) -> Option<T> {
    let bytes =
        fs::read(path).inspect_err(|error| tracing::error!(%error, ?path, "cannot read state")).ok()?;
    serde_json::from_slice(&bytes).inspect_err(|error| tracing::error!(%error, ?path, "damaged state")).ok()
}

#[cfg(test)]
mod tests {
    use super::{SavedBond, SavedClass, StateDir};
    use linkbraid_api::{BondSettings, Fallback, Policy, Stripe};
    use std::{
        env, fs,
        path::{Path, PathBuf},
        process,
    };

    struct Scratch(PathBuf);

    impl Drop for Scratch {
        fn drop(&mut self) {
            let _ = fs::remove_dir_all(&self.0);
        }
    }

    fn bond(name: &str) -> SavedBond {
        SavedBond {
            name: linkbraid_api::LinkName::of_link(name),
            ifindex: Some(7),
            complete: true,
            mtu: 1500,
            addresses: vec!["198.18.0.1/24".into()],
            settings: BondSettings {
                policy: Policy::Flow,
                stripe: Stripe::Us(200),
                ..BondSettings::default()
            },
            host_id: [3; 16],
            epoch: 7,
            boot_id: super::boot_id(),
            place: "4026532000/bond0".into(),
            members: Vec::new(),
            absent: Vec::new(),
            classes: Vec::new(),
            applied: false,
            applied_addresses: Vec::new(),
        }
    }

    /// The shape that a running daemon may have left; one of long ago, without what came later.
    #[test]
    fn files_of_earlier_daemons_are_read() {
        let old = r#"{"name":"b","ifindex":7,"complete":true,"mtu":9000,"addresses":["198.18.0.1/24"],"policy":"flow",
            "stripe":{"us":200},"damping":false,"probes":false,"probe_interval_ms":20,"probe_multiplier":5,
            "up_delay_ms":7,"host_id":[3,3,3,3,3,3,3,3,3,3,3,3,3,3,3,3],"boot_id":"x",
            "pins":"/sys/fs/bpf/linkbraid/4026532000/b","members":[]}"#;
        let bond: SavedBond = serde_json::from_str(old).unwrap();
        assert_eq!(bond.place, Path::new("4026532000/b"));
        let (settings, probing) = (&bond.settings, bond.settings.inspector);
        assert_eq!((bond.mtu, settings.policy, settings.stripe), (9000, Policy::Flow, Stripe::Us(200)));
        assert!(!settings.damping && !settings.latency && !probing.probes);
        assert_eq!((probing.probe_interval.0, probing.probe_multiplier.0), (20, 5));
        assert_eq!(probing.up_delay.0, 7);
        assert_eq!(bond.timing().hold_max, linkbraid_proto::inspector::Timing::default().hold_max);
        let class = r#"{"number":1,"name":"v","rules":["dscp=ef"],"has_members":false,"policy":"mirror",
            "fallback":"block","borrow":"idle"}"#;
        let class: SavedClass = serde_json::from_str(class).unwrap();
        assert_eq!((class.settings.policy, class.settings.fallback), (Policy::Mirror, Fallback::Block));
        let written = serde_json::to_value(&bond).unwrap();
        for key in
            ["policy", "stripe", "damping", "latency", "probes", "probe_interval_ms", "probe_multiplier"]
        {
            assert!(written.get(key).is_some(), "{key} in {written}");
        }
        assert_eq!(written["up_delay_ms"], 7);
    }

    #[test]
    fn what_is_written_is_read_back_and_damage_is_left_out() {
        let scratch = Scratch(env::temp_dir().join(format!("linkbraid-state-{}", process::id())));
        let state = StateDir::open(scratch.0.clone()).unwrap();
        state.write(&bond("b")).unwrap();
        state.write(&bond("a")).unwrap();
        fs::write(scratch.0.join("c.json"), b"{ half").unwrap();
        fs::write(scratch.0.join("d.new"), b"{}").unwrap();
        let names: Vec<_> = state.read_all::<SavedBond>().into_iter().map(|bond| bond.name).collect();
        assert_eq!(names, ["a", "b"]);
        let back = &state.read_all::<SavedBond>()[0];
        assert_eq!(
            (back.settings.policy, back.settings.stripe, back.host_id),
            (Policy::Flow, Stripe::Us(200), [3; 16])
        );
        StateDir::open(scratch.0.clone()).unwrap();
        assert!(!scratch.0.join("d.new").exists(), "half a file is left");
        state.remove::<SavedBond>("a").unwrap();
        state.remove::<SavedBond>("a").unwrap();
        assert_eq!(state.read_all::<SavedBond>().len(), 1);
        state.write(&SavedBond { boot_id: "another".into(), ..bond("b") }).unwrap();
        assert!(state.read_all::<SavedBond>().is_empty());
    }
}
