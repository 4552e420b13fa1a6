//! A lab with daemons on its hosts.

use crate::{SOON, Said};
use linkbraid_api::{BondRecord, CounterRecord, LaneRecord, PeerRecord, PeerState, StatsRecord};
use linkbraid_lab::{Host, Lab, Running, Topology, daemon, wait_for, wait_until};
use nix::sys::signal::Signal;
use nix::sys::socket::{getsockopt, sockopt::PeerCredentials};
use nix::unistd::Pid;
use serde::de::DeserializeOwned;
use std::collections::{BTreeMap, BTreeSet};
use std::fs::{self, File};
use std::os::unix::fs::MetadataExt;
use std::os::unix::net::UnixStream;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};
use std::sync::{Mutex, MutexGuard};
use std::time::Duration;

/// The name of the bond on every host.
pub const BOND: &str = "bond0";

/// A lab and the daemons on its hosts. Dropping it ends them and removes all; after a panic it first prints the
/// daemons' logs and what each says of its bonds.
pub struct Net {
    daemons: Mutex<BTreeMap<String, Running>>,
    lab: Lab,
}

/// One host as the tables of others should show it: host id, MAC, and of each member MAC, life and weight.
pub type View = (String, String, BTreeSet<(String, bool, u32)>);

impl Net {
    /// Brings the lab up; no daemon runs yet.
    ///
    /// # Panics
    /// When it can't be built: without root, or without a program that labs need.
    #[track_caller]
    pub fn up(topology: Topology) -> Self {
        assert!(nix::unistd::geteuid().is_root(), "this test makes network namespaces: run it as root");
        let lab = Lab::up(topology).unwrap_or_else(|error| panic!("{error}; hint: {:?}", error.hint));
        Self { daemons: Mutex::default(), lab }
    }

    /// Brings the lab up with a daemon and a bond over all links on every host that is not plain, and waits until
    /// they know each other.
    #[track_caller]
    pub fn bonded(topology: Topology) -> Self {
        let net = Self::up(topology);
        net.bond_all();
        net
    }

    /// Starts a daemon and adds a bond on every host that is not plain, and waits until they know each other.
    #[track_caller]
    pub fn bond_all(&self) {
        let names: Vec<String> =
            self.lab.hosts().filter(|host| !host.spec().plain).map(|host| host.name().to_owned()).collect();
        for name in &names {
            self.start(name, &[]);
            self.bond(name);
        }
        self.wait_tables(&names.iter().map(String::as_str).collect::<Vec<_>>());
    }

    /// The lab.
    pub fn lab(&self) -> &Lab {
        &self.lab
    }

    /// A host by name.
    #[track_caller]
    pub fn host(&self, name: &str) -> Host<'_> {
        self.lab.host(name).expect("the topology has this host")
    }

    fn running(&self) -> MutexGuard<'_, BTreeMap<String, Running>> {
        // A panic while it was held left at worst a daemon that is killed all the same.
        self.daemons.lock().unwrap_or_else(std::sync::PoisonError::into_inner)
    }

    /// Starts a daemon with `options` and waits until it answers.
    #[track_caller]
    pub fn start(&self, name: &str, options: &[&str]) {
        let log = File::options().create(true).append(true).open(self.host(name).log());
        self.start_logging_to(name, options, log.expect("the lab's folder is there"));
    }

    /// The same, with its log to somewhere else than its file.
    #[track_caller]
    pub fn start_logging_to(&self, name: &str, options: &[&str], log: File) {
        let mut command = self.host(name).linkbraid_command(linkbraid());
        command.arg("daemon").args(options);
        self.start_command(name, command, log);
    }

    /// Starts the daemon of another build.
    #[track_caller]
    pub fn start_build(&self, name: &str, binary: &Path, options: &[&str]) {
        let host = self.host(name);
        let log = File::options().create(true).append(true).open(host.log());
        let mut command = host.linkbraid_command(binary);
        command.arg("daemon").args(options);
        self.start_command(name, command, log.expect("the lab's folder is there"));
    }

    /// Starts a daemon behind a command that ends with its own, such as `ip netns exec NAMESPACE`.
    #[track_caller]
    pub fn start_behind(&self, name: &str, words: &[&str], options: &[&str]) {
        let host = self.host(name);
        let log = File::options().create(true).append(true).open(host.log());
        let mut command = host.linkbraid_command(words[0]);
        command.args(&words[1..]).arg(linkbraid()).arg("daemon").args(options);
        self.start_command(name, command, log.expect("the lab's folder is there"));
    }

    #[track_caller]
    fn start_command(&self, name: &str, mut command: Command, log: File) {
        let host = self.host(name);
        command.stdin(Stdio::null());
        command.stdout(log.try_clone().expect("an open file")).stderr(log);
        let mut process = Running::start(command).expect("starts");
        wait_for(SOON, &format!("the daemon of host '{name}'"), || match process.ended() {
            Some(status) => Ok(Err(status)),
            None => UnixStream::connect(host.socket()).map(|_| Ok(())).map_err(|e| e.to_string()),
        })
        .expect("listens")
        .unwrap_or_else(|status| panic!("the daemon of host '{name}' ended: {status}\n{}", self.log(name)));
        self.running().insert(name.into(), process);
    }

    /// Kills a daemon without warning, and waits for its end.
    #[track_caller]
    pub fn kill(&self, name: &str) {
        let mut daemon = self.running().remove(name).expect("it runs");
        daemon.signal(Signal::SIGKILL).expect("it runs");
        daemon.wait().expect("it ends");
    }

    /// Asks a daemon to end, and waits for that.
    #[track_caller]
    pub fn stop(&self, name: &str) {
        let mut daemon = self.running().remove(name).expect("it runs");
        daemon.signal(Signal::SIGTERM).expect("it runs");
        let status = wait_for(SOON, "the daemon to end", || daemon.ended().ok_or("it still runs"));
        let status = status.expect("ends");
        assert!(status.success(), "daemon of {name}: {status}");
    }

    /// The process of a host's daemon.
    #[track_caller]
    pub fn pid(&self, name: &str) -> Pid {
        let socket = UnixStream::connect(self.host(name).socket()).expect("it listens");
        Pid::from_raw(getsockopt(&socket, PeerCredentials).expect("a peer").pid())
    }

    /// What the threads of a host's daemon ran so far, which is finer than the ticks of the process.
    pub fn processor(&self, name: &str) -> Duration {
        let threads = fs::read_dir(format!("/proc/{}/task", self.pid(name))).expect("it runs").flatten();
        let ran = |thread: fs::DirEntry| -> u64 {
            let told = fs::read_to_string(thread.path().join("schedstat")).unwrap_or_default();
            told.split_whitespace().next().and_then(|ns| ns.parse().ok()).unwrap_or(0)
        };
        Duration::from_nanos(threads.map(ran).sum())
    }

    /// Whether a daemon that was started still runs.
    pub fn runs(&self, name: &str) -> bool {
        self.running().get_mut(name).is_some_and(|daemon| daemon.ended().is_none())
    }

    /// What the daemons of a host have logged.
    pub fn log(&self, name: &str) -> String {
        fs::read_to_string(self.host(name).log()).unwrap_or_default()
    }

    /// Runs one `linkbraid` command line (split at spaces) on a host; whatever it comes to.
    #[track_caller]
    pub fn say(&self, name: &str, line: &str) -> Said {
        self.say_words(name, &line.split_whitespace().collect::<Vec<_>>())
    }

    /// The same where words have spaces.
    #[track_caller]
    pub fn say_words(&self, name: &str, words: &[&str]) -> Said {
        Said::by(self.host(name).linkbraid_command(linkbraid()).args(words))
    }

    /// Runs one `linkbraid` command line that must succeed; its standard output.
    #[track_caller]
    pub fn ok(&self, name: &str, line: &str) -> String {
        let said = self.say(name, line);
        assert_eq!(said.code, 0, "{name}# linkbraid {line}: {said:?}");
        said.out
    }

    /// Adds a bond over all links of a host, each weighted by its rate in the lab (a veth claims 10 Gbit/s).
    #[track_caller]
    pub fn bond(&self, name: &str) {
        let links = &self.host(name).spec().links;
        let members: Vec<String> = (0..links.len()).map(|link| format!("eth{link}")).collect();
        self.ok(name, &format!("bond add {BOND} --member {}", members.join(",")));
        for (member, link) in members.iter().zip(links) {
            if let Some(rate) = link.rate_mbit {
                self.ok(name, &format!("member set {BOND} {member} --weight {rate}"));
            }
        }
    }

    /// What a command prints as JSON.
    #[track_caller]
    pub fn records<T: DeserializeOwned>(&self, name: &str, line: &str) -> T {
        let text = self.ok(name, &format!("{line} --json"));
        serde_json::from_str(&text).unwrap_or_else(|e| panic!("{name}# linkbraid {line}: {e}: {text}"))
    }

    /// `show` of the bond of a host.
    #[track_caller]
    pub fn show(&self, name: &str) -> BondRecord {
        self.show_of(name, BOND)
    }

    /// The same of another bond.
    #[track_caller]
    pub fn show_of(&self, name: &str, bond: &str) -> BondRecord {
        let mut all: Vec<BondRecord> = self.records(name, &format!("show {bond}"));
        all.pop().expect("the bond is there")
    }

    /// The names of its members.
    #[track_caller]
    pub fn members(&self, name: &str, bond: &str) -> Vec<String> {
        self.show_of(name, bond).members.into_iter().map(|member| member.interface).collect()
    }

    /// `peers`, over all bonds.
    #[track_caller]
    pub fn peers(&self, name: &str) -> Vec<PeerRecord> {
        self.records(name, "peers")
    }

    /// `lanes`, over all bonds.
    #[track_caller]
    pub fn lanes(&self, name: &str) -> Vec<LaneRecord> {
        self.records(name, "lanes")
    }

    /// Waits until the lanes of a host in a class (none: all other traffic) to a peer are those: pairs of NICs. Each has been proven:
    /// before that the same lanes may carry frames for a while, and make room for the first one that is.
    #[track_caller]
    pub fn wait_lanes(&self, name: &str, to: &str, class: Option<&str>, wanted: &[(usize, usize)]) {
        let peer = self.host(to);
        let mut wanted: Vec<(String, String)> =
            wanted.iter().map(|(own, theirs)| (format!("eth{own}"), peer.mac(*theirs))).collect();
        wanted.sort();
        let is_it = |lane: &LaneRecord| {
            lane.peer == peer.ipv4() && lane.class.as_deref() == class && lane.share_ppm > 0
        };
        let lanes = || {
            let mut lanes: Vec<_> = self.lanes(name).into_iter().filter(is_it).collect();
            lanes.sort_by(|a, b| (&a.member, &a.peer_mac).cmp(&(&b.member, &b.peer_mac)));
            lanes
        };
        let is_wanted = |lane: &LaneRecord, (own, theirs): &(String, String)| {
            lane.state == "up" && lane.member == *own && lane.peer_mac.as_ref() == Some(theirs)
        };
        wait_until(SOON, &format!("the lanes of {class:?} from {name}: {wanted:?}"), lanes, |lanes| {
            lanes.len() == wanted.len()
                && lanes.iter().zip(&wanted).all(|(lane, wanted)| is_wanted(lane, wanted))
        })
        .unwrap_or_else(|e| panic!("{e}"));
    }

    /// `stats` of the bond of a host.
    #[track_caller]
    pub fn stats(&self, name: &str) -> Vec<CounterRecord> {
        let mut all: Vec<StatsRecord> = self.records(name, &format!("stats {BOND}"));
        all.pop().expect("the bond is there").counters
    }

    /// The frames of one counter of `stats`.
    #[track_caller]
    pub fn counter(&self, name: &str, counter: &str) -> u64 {
        let all = self.stats(name);
        let found = all.iter().find(|c| c.name == counter);
        found.unwrap_or_else(|| panic!("no counter '{counter}' in {all:?}")).frames
    }

    /// What others should have in their tables about a host.
    #[track_caller]
    pub fn own_view(&self, name: &str) -> View {
        let bond = self.show(name);
        let members = bond.members.into_iter().map(|m| (m.mac, m.live, m.weight_mbit)).collect();
        (bond.host_id, bond.mac, members)
    }

    /// The table of a host: every peer that is alive.
    #[track_caller]
    pub fn table(&self, name: &str) -> Vec<View> {
        let alive = self.peers(name).into_iter().filter(|peer| peer.state == PeerState::Alive);
        let view = |peer: PeerRecord| {
            let members =
                peer.members.into_iter().map(|m| (m.mac, m.live, m.weight_mbit.unwrap_or(0))).collect();
            (peer.host_id.unwrap_or_default(), peer.mac, members)
        };
        let mut table: Vec<View> = alive.map(view).collect();
        table.sort();
        table
    }

    /// Waits until the table of each of `names` holds exactly what the others tell of themselves.
    #[track_caller]
    pub fn wait_tables(&self, names: &[&str]) {
        let differences = || {
            let own: Vec<View> = names.iter().map(|name| self.own_view(name)).collect();
            let wrong = names.iter().zip(&own).filter_map(|(name, me)| {
                let mut wanted: Vec<View> = own.iter().filter(|view| *view != me).cloned().collect();
                wanted.sort();
                let table = self.table(name);
                (table != wanted).then(|| format!("{name} has {table:?}, and should have {wanted:?}"))
            });
            wrong.collect::<Vec<_>>()
        };
        wait_until(SOON, "equal tables", differences, Vec::is_empty).unwrap_or_else(|e| panic!("{e}"));
    }

    /// The number of the network namespace of a host.
    pub fn namespace(&self, name: &str) -> u64 {
        let inode = self.host(name).run(|| fs::metadata("/proc/thread-self/ns/net").map(|m| m.ino()));
        inode.expect("enters").expect("has a namespace")
    }

    fn report(&self) {
        for host in self.lab.hosts() {
            let log = self.log(host.name());
            if log.is_empty() {
                continue;
            }
            eprintln!("--- log of host {}\n{log}", host.name());
            for line in ["show", "peers", "lanes", "stats"] {
                let said = self.say(host.name(), line);
                eprintln!("--- {}# linkbraid {line}\n{}{}", host.name(), said.out, said.err);
            }
            let links = host.sh("ip -s -d link").unwrap_or_else(|e| e.to_string());
            eprintln!("--- {}# ip -s -d link\n{links}", host.name());
        }
    }
}

/// The `linkbraid` to run.
#[track_caller]
pub(crate) fn linkbraid() -> PathBuf {
    daemon::binary().unwrap_or_else(|error| panic!("{error}; hint: {:?}", error.hint))
}

impl Drop for Net {
    fn drop(&mut self) {
        if std::thread::panicking() {
            self.report();
        }
        self.running().clear();
    }
}
