//! A replica of a PostgreSQL database: it is made over all links, and follows while links fail.

use linkbraid_lab::{Fault, Host, Running, Topology, wait_for};
use linkbraid_netns_tests::{Net, SOON, server::Scratch, until};
use nix::sys::signal::Signal;
use std::fs;
use std::os::unix::fs::chown;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};
use std::time::{Duration, Instant};

/// Where Debian has its programs.
const PROGRAMS: &str = "/usr/lib/postgresql/15/bin";
/// They do not run as root.
const USER: &str = "postgres";
/// What each of the four links carries, Mbit/s.
const RATE: u32 = 100;
/// How many times as soon as over one link a copy is there over four, at least: its begin and its end wait for the disk.
const TIMES: f64 = 2.2;
/// Rows of random text, some 70 MB with their index.
const ROWS: u32 = 600_000;
/// Rows that are written while links fail, in so many transactions.
const MORE: u32 = 400_000;
const TRANSACTIONS: u32 = 200;

/// Gives a folder to the database's user.
#[track_caller]
fn give(path: &Path) {
    let user = nix::unistd::User::from_name(USER).expect("reads").expect("the package makes it");
    chown(path, Some(user.uid.as_raw()), Some(user.gid.as_raw())).expect("gives it away");
}

/// A program of the database's on a host, as its user.
fn command(host: Host<'_>, program: &str) -> Command {
    let mut command = host.command("setpriv");
    command.args([&format!("--reuid={USER}"), &format!("--regid={USER}"), "--clear-groups"]);
    command.arg(Path::new(PROGRAMS).join(program)).current_dir("/");
    command
}

#[track_caller]
fn run(mut command: Command) -> String {
    let done = command.output().expect("it is installed");
    assert!(done.status.success(), "{command:?}: {}", String::from_utf8_lossy(&done.stderr));
    String::from_utf8_lossy(&done.stdout).trim().to_owned()
}

/// A server that runs.
struct Server<'n> {
    host: Host<'n>,
    data: PathBuf,
    process: Running,
}

impl<'n> Server<'n> {
    #[track_caller]
    fn start(host: Host<'n>, data: PathBuf) -> Self {
        let mut server = command(host, "postgres");
        server.arg("-D").arg(&data).stdin(Stdio::null());
        let socket = data.with_extension("socket");
        fs::create_dir(&socket).expect("makes a folder");
        give(&socket);
        // It writes nothing through to the disk.
        server.args([
            "-c",
            &format!("unix_socket_directories={}", socket.display()),
            "-c",
            "listen_addresses=*",
        ]);
        server.args([
            "-c",
            "fsync=off",
            "-c",
            "shared_buffers=32MB",
            "-c",
            "dynamic_shared_memory_type=mmap",
        ]);
        server.args(["-c", "max_wal_senders=4", "-c", "wal_keep_size=512MB"]);
        let log = fs::File::create(data.with_extension("log")).expect("makes a file");
        server.stdout(log.try_clone().expect("an open file")).stderr(log);
        let process = host.spawn(server).expect("starts");
        let server = Self { host, data, process };
        let answers = || server.ask("select 1").output().expect("it is installed");
        wait_for(SOON, "the database to answer", || {
            let done = answers();
            if done.status.success() {
                Ok(())
            } else {
                Err(String::from_utf8_lossy(&done.stderr).into_owned())
            }
        })
        .unwrap_or_else(|e| panic!("{e}: {}", server.log()));
        server
    }

    fn ask(&self, sql: &str) -> Command {
        let mut client = command(self.host, "psql");
        client
            .arg("--host")
            .arg(self.data.with_extension("socket"))
            .args(["-X", "-A", "-t", "-d", "postgres", "-c", sql]);
        client
    }

    #[track_caller]
    fn says(&self, sql: &str) -> String {
        run(self.ask(sql))
    }

    fn log(&self) -> String {
        fs::read_to_string(self.data.with_extension("log")).unwrap_or_default()
    }
}

impl Drop for Server<'_> {
    fn drop(&mut self) {
        // At once, but it takes its shared memory with it.
        let _ = self.process.signal(Signal::SIGQUIT);
        let _ = self.process.wait();
    }
}

/// Copies a database from one host to another, in the way that a replica begins with; how long that takes.
#[track_caller]
fn copy(from: Host<'_>, to: Host<'_>, folder: &Path) -> Duration {
    let mut copy = command(to, "pg_basebackup");
    copy.args(["-h", from.ipv4(), "-U", USER, "-X", "stream", "-c", "fast", "--no-sync", "-R", "-D"])
        .arg(folder);
    let began = Instant::now();
    run(copy);
    began.elapsed()
}

#[test]
fn a_replica_is_made_over_all_links_and_follows_while_links_fail() {
    let net = Net::up(Topology::symmetric(2, 4, Some(RATE)));
    let (a, b) = (net.host("a"), net.host("b"));
    let scratch = Scratch::new();
    give(scratch.path());
    let at = |name: &str| scratch.path().join(name);
    let mut init = command(a, "initdb");
    init.args(["--no-sync", "--auth=trust", "--encoding=UTF8", "--locale=C", "-D"]).arg(at("primary"));
    run(init);
    let admitted = "\nhost all all samenet trust\nhost replication all samenet trust\n";
    let list = at("primary").join("pg_hba.conf");
    fs::write(&list, fs::read_to_string(&list).expect("reads") + admitted).expect("writes");
    let primary = Server::start(a, at("primary"));
    let rows = |from: u32, to: u32| {
        format!("select i, md5(random()::text) || md5(random()::text) from generate_series({from}, {to}) i")
    };
    primary.says(&format!("create table t (id, words) as {}", rows(1, ROWS)));

    let alone = copy(a, b, &at("alone"));
    net.bond_all();
    let together = copy(a, b, &at("replica"));
    let times = alone.as_secs_f64() / together.as_secs_f64();
    eprintln!("a copy takes {alone:.2?} over one link, {together:.2?} over four: {times:.2} times as soon");
    assert!(times >= TIMES, "{times:.2}");

    let replica = Server::start(b, at("replica"));
    let stream = "select pid, backend_start from pg_stat_replication where state = 'streaming'";
    let connection = until("the replica to follow", || primary.says(stream), |said| !said.is_empty());
    let each = MORE / TRANSACTIONS;
    let written = |transaction: u32| {
        let first = ROWS + transaction * each;
        format!("insert into t {};", rows(first + 1, first + each))
    };
    let script: String = (0..TRANSACTIONS).map(written).collect::<Vec<_>>().join("\n");
    let file = at("more.sql");
    fs::write(&file, script).expect("writes");
    let mut writer = command(a, "psql");
    writer.arg("--host").arg(primary.data.with_extension("socket")).args([
        "-X",
        "-q",
        "-v",
        "ON_ERROR_STOP=1",
        "-d",
        "postgres",
        "-f",
    ]);
    writer.arg(&file).stdin(Stdio::null());
    let mut writer = a.spawn(writer).expect("starts");
    let count = |server: &Server<'_>| server.says("select count(*) from t").parse::<u32>().expect("a number");
    // Each fault comes after so many rows have reached the replica.
    for (part, link, fault) in [(10, 0, Fault::Silent), (4, 1, Fault::Carrier)] {
        let enough = ROWS + MORE / part;
        until("rows at the replica", || count(&replica), |rows| *rows >= enough);
        a.link(link).expect("a link").fail(fault).expect("fails");
        eprintln!("{fault:?} of link {link} with {} rows at the replica", count(&replica));
    }
    assert!(count(&replica) < ROWS + MORE, "the faults came while it was written to");
    assert!(writer.wait().expect("ends").success());
    let all = ROWS + each * TRANSACTIONS;
    until("all rows at the replica", || count(&replica), |rows| *rows == all);
    assert_eq!(count(&primary), all);
    assert_eq!(primary.says(stream), connection, "on the same connection\n{}", replica.log());
}
