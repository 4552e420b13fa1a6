//! `linkbraid-etcd`: nodes of a fabric find each other by etcd. The daemon starts this program for each such fabric.
//!
//! This node is registered under a lease, so that it vanishes when it is gone for [`LEASE`]; the others are watched. What etcd says is
//! written into a directory file, which the fabric follows, and which stays when etcd is away. What the daemon says, and hears, is
//! [`EtcdOrder`] and [`EtcdReport`].

mod login;
mod own;
mod session;
mod table;

use linkbraid_fabric::{Address, Etcd, EtcdOrder, EtcdReport, Join, confine};
use login::Login;
use std::{
    fs,
    io::{self, Write as _},
    path::{Path, PathBuf},
    process::ExitCode,
    time::Duration,
};
use table::Table;
use tokio::sync::mpsc;

/// Seconds after which a node that is not heard of is taken out.
const LEASE: i64 = 10;
/// Between two attempts to reach etcd.
const AGAIN: Duration = Duration::from_secs(1);

/// What this program does for one node.
struct Node {
    join: Join,
    etcd: Etcd,
    login: Login,
    file: PathBuf,
    table: Table,
    /// What was reported last.
    said: Option<EtcdReport>,
}

/// How the daemon ends it.
enum End {
    /// It may come back: the lease decides.
    Gone,
    /// The node leaves.
    Leaves,
}

fn main() -> ExitCode {
    // Files and TCP need no privilege.
    let confined = confine(&[]).map_err(|error| format!("cannot give up privileges: {error}"));
    let started = confined.and_then(|()| Node::start());
    let node = match started {
        Ok(node) => node,
        Err(cause) => {
            report(&EtcdReport::Refused(cause));
            return ExitCode::FAILURE;
        }
    };
    report(&EtcdReport::Ready);
    match tokio::runtime::Builder::new_current_thread().enable_all().build() {
        Ok(runtime) => {
            runtime.block_on(node.run());
            ExitCode::SUCCESS
        }
        Err(error) => {
            eprintln!("cannot start: {error}");
            ExitCode::FAILURE
        }
    }
}

fn report(report: &EtcdReport) {
    let Ok(mut line) = serde_json::to_vec(report) else { return };
    line.push(b'\n');
    // Without a daemon nobody hears it, and the end of the input comes next.
    let _ = io::stdout().write_all(&line);
}

/// The next order of the daemon; none where it has ended.
fn order(input: &mut impl io::BufRead) -> Option<EtcdOrder> {
    let mut line = String::new();
    let read = input.read_line(&mut line).ok()?;
    if read == 0 { None } else { serde_json::from_str(&line).ok() }
}

impl Node {
    /// Hears what is to be done, and writes a directory: of this node, and of those that were known before.
    fn start() -> Result<Self, String> {
        let Some(EtcdOrder::Register { address, node, nodes, queues }) = order(&mut io::stdin().lock())
        else {
            return Err("the daemon is of another version".into());
        };
        let join = Join { node, nodes, queues };
        let address: Address = address.parse().map_err(|error: linkbraid_fabric::Error| error.cause)?;
        join.check(&address.to_string()).map_err(|error| error.cause)?;
        let etcd = address.etcd().ok_or("the address has no etcd://")?.clone();
        let login = etcd.login.as_deref().map(Login::read).transpose()?.unwrap_or_default();
        // What is wrong with certificates is to be said at once.
        login.options()?;
        let file = etcd.file(&join);
        let before = fs::read_to_string(&file).unwrap_or_default();
        let own = match etcd.own {
            Some(own) => own,
            None => own::towards(&etcd.endpoint).or_else(|cause| own::of(&before, node).ok_or(cause))?,
        };
        let mut table = Table::new(join, own);
        table.remember(&before);
        let node = Self { join, etcd, login, file, table, said: None };
        node.write().map_err(|error| format!("cannot write {}: {error}", node.file.display()))?;
        Ok(node)
    }

    /// Works until the daemon ends, or the node leaves.
    async fn run(mut self) {
        let (sender, mut ends) = mpsc::channel(1);
        std::thread::spawn(move || {
            let end = match order(&mut io::stdin().lock()) {
                Some(EtcdOrder::Leave) => End::Leaves,
                Some(EtcdOrder::Register { .. }) | None => End::Gone,
            };
            let _ = sender.blocking_send(end);
        });
        let mut turn = 0;
        let end = loop {
            let servers = self.servers();
            let server = servers[turn % servers.len()].clone();
            match session::hold(&mut self, &server, &mut ends).await {
                session::Over::Ended(end) => break end,
                session::Over::Failed(cause) => self.say(EtcdReport::Trouble(cause)),
            }
            turn += 1;
            tokio::select! {
                end = ends.recv() => break end.unwrap_or(End::Gone),
                () = tokio::time::sleep(AGAIN) => {}
            }
        };
        if let End::Leaves = end {
            let _ = fs::remove_file(&self.file);
        }
    }

    /// Where etcd may be: as the user has it, and as it was learned.
    fn servers(&self) -> Vec<String> {
        let mut all = vec![self.etcd.endpoint.clone()];
        for server in self.login.servers.iter().chain(&self.table.servers) {
            if !all.contains(server) {
                all.push(server.clone());
            }
        }
        all
    }

    /// Reports something once.
    fn say(&mut self, news: EtcdReport) {
        if self.said.as_ref() != Some(&news) {
            report(&news);
            self.said = Some(news);
        }
    }

    /// Writes the directory, and reports whether all of it could be used.
    fn publish(&mut self) {
        let written = self.write();
        let news = match written {
            Ok(None) => EtcdReport::Registered,
            Ok(Some(cause)) => EtcdReport::Trouble(format!("something of it is left out: {cause}")),
            Err(error) => EtcdReport::Trouble(format!("cannot write {}: {error}", self.file.display())),
        };
        self.say(news);
    }

    /// Writes the directory, unless it is there already; what is left out.
    fn write(&self) -> io::Result<Option<String>> {
        let (text, refused) = self.table.text();
        if fs::read_to_string(&self.file).is_ok_and(|before| before == text) {
            return Ok(refused);
        }
        if let Some(folder) = self.file.parent() {
            fs::create_dir_all(folder)?;
        }
        replace(&self.file, &text)?;
        Ok(refused)
    }
}

/// Replaces a file by a new one, whole.
fn replace(file: &Path, text: &str) -> io::Result<()> {
    let mut beside = file.as_os_str().to_owned();
    beside.push(".new");
    let mut new = fs::File::create(&beside)?;
    new.write_all(text.as_bytes())?;
    // It is what a boot without etcd begins with.
    new.sync_all()?;
    fs::rename(&beside, file)
}
