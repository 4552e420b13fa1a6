//! Real containers on a bond: podman has `linkbraid-cni` attaches them, by the file of docs/guides/containers.md.

use crate::containers::{self, PART, PLUGINS, RATE, given, network};
use linkbraid_lab::{Host, LinkSpec, Running, Topology, shape, wait_for};
use linkbraid_netns_tests::{Net, SOON, sh};
use serde_json::Value;
use std::{
    fs,
    os::unix::fs::symlink,
    path::{Path, PathBuf},
    process::Command,
};

/// How many tries the rate gets, on a machine that may be busy.
const TRIES: usize = 5;
/// Containers that come and go.
const TIMES: usize = 20;

/// The image that [`Podman::image`] makes.
pub const IMAGE: &str = "localhost/linkbraid:test";

/// podman on one host of a lab, with containers, images and networks of its own.
pub struct Podman<'n> {
    host: Host<'n>,
    /// Where all of it is, with an empty root of a container in `rootfs`.
    pub folder: PathBuf,
    /// Holds the mounts that its commands share: the containers' network namespaces, and control groups as the kernel has them now,
    /// should this machine still mount them as it did before.
    mounts: Running,
}

impl<'n> Podman<'n> {
    #[track_caller]
    pub fn on(net: &'n Net, name: &str, first: u8) -> Self {
        let host = net.host(name);
        let folder = net.lab().folder().join(format!("podman-{name}"));
        let root = folder.join("rootfs");
        for inside in ["usr", "proc", "sys", "dev", "tmp", "etc", "run"] {
            fs::create_dir_all(root.join(inside)).expect("makes");
        }
        for inside in ["bin", "sbin", "lib", "lib64"] {
            symlink(Path::new("usr").join(inside), root.join(inside)).expect("links");
        }
        let list = network(host, &folder.join("leases"), first);
        fs::create_dir_all(folder.join("cni")).expect("makes");
        fs::write(folder.join("cni/50-bond0.conflist"), list.to_string()).expect("writes");
        let settings = format!(
            "[network]\nnetwork_backend = \"cni\"\nnetwork_config_dir = \"{}\"\ncni_plugin_dirs = [\"{PLUGINS}\", \"{}\"]\n\
             [engine]\ncgroup_manager = \"cgroupfs\"\nruntime = \"crun\"\nevents_logger = \"none\"\nlock_type = \"file\"\n\
             infra_image = \"{IMAGE}\"\n\
             [containers]\nlog_driver = \"none\"\n\
             default_ulimits = [\"nofile=1024:1024\", \"nproc=1024:1024\"]\n",
            folder.join("cni").display(),
            containers::folder().display()
        );
        fs::write(folder.join("containers.conf"), settings).expect("writes");
        let mut holder = host.command("unshare");
        let groups = "/sys/fs/cgroup";
        let hold = format!(
            "[ \"$(stat -fc %T {groups})\" = cgroup2fs ] || {{ umount -l {groups} && mount -t cgroup2 none {groups}; }}; \
             touch {}/held; exec sleep infinity",
            folder.display()
        );
        holder.args(["--mount", "sh", "-c", &hold]);
        let mounts = host.spawn(holder).expect("starts");
        wait_for(SOON, "the mounts", || fs::metadata(folder.join("held"))).unwrap_or_else(|e| panic!("{e}"));
        Self { host, folder, mounts }
    }

    pub fn command(&self, words: &str) -> Command {
        let mut command = self.host.command("nsenter");
        command.args(["--mount", &format!("--target={}", self.mounts.id()), "podman"]);
        for (option, inside) in [("--root", "root"), ("--runroot", "run"), ("--tmpdir", "tmp")] {
            command.arg(option).arg(self.folder.join(inside));
        }
        // Control groups for containers take a limit that the lab's machine may not raise.
        command
            .args(["--storage-driver", "vfs", "--runtime-flag", "cgroup-manager=disabled"])
            .args(words.split(' '));
        command.env("CONTAINERS_CONF", self.folder.join("containers.conf"));
        command
    }

    #[track_caller]
    pub fn does(&self, words: &str) -> String {
        let done = self.command(words).output().expect("podman is installed");
        assert!(done.status.success(), "{words}: {}", String::from_utf8_lossy(&done.stderr));
        String::from_utf8_lossy(&done.stdout).trim().to_owned()
    }

    /// Makes an image of the empty root and of a program for pods, which live as long as it does.
    #[track_caller]
    pub fn image(&self) {
        let root = self.folder.join("rootfs");
        fs::copy("/bin/busybox", root.join("busybox")).expect("it is installed");
        let packed = self.folder.join("image.tar");
        sh(self.host, &format!("tar --create --directory {} --file {} .", root.display(), packed.display()));
        self.does(&format!(
            "import --quiet --change STOPSIGNAL=SIGKILL --change CMD=[\"/busybox\",\"sleep\",\"1000000\"] {} {IMAGE}",
            packed.display()
        ));
    }

    /// Runs a program in a new container.
    #[track_caller]
    fn run(&self, options: &str, program: &str) {
        let root = self.folder.join("rootfs");
        self.does(&format!(
            "run {options} --network bond0 -v /usr:/usr:ro --rootfs {} {program}",
            root.display()
        ));
    }

    /// The address of a container.
    #[track_caller]
    fn address(&self, name: &str) -> String {
        let found: Value = serde_json::from_str(&self.does(&format!("inspect {name}"))).expect("JSON");
        found[0]["NetworkSettings"]["Networks"]["bond0"]["IPAddress"].as_str().expect("one").to_owned()
    }

    /// Interfaces of the host, and addresses that are given away.
    fn state(&self) -> (usize, usize) {
        (sh(self.host, "ip -o link").lines().count(), given(&self.folder.join("leases")))
    }
}

impl Drop for Podman<'_> {
    fn drop(&mut self) {
        let _ = self.command("pod rm --all --force --time 0").output();
        let _ = self.command("rm --all --force --time 0").output();
        // What podman makes for pods, unless another one's are in it.
        let mut tidy = self.host.command("nsenter");
        tidy.args(["--mount", &format!("--target={}", self.mounts.id()), "rmdir"]);
        tidy.args(["conmon", ""].map(|inside| format!("/sys/fs/cgroup/libpod_parent/{inside}")));
        let _ = tidy.output();
    }
}

#[test]
fn containers_of_two_hosts_have_all_links_and_leave_nothing() {
    let lab = Topology::symmetric(2, 4, Some(RATE));
    let net = Net::bonded(lab.plain_host([LinkSpec::switch(0, Some(RATE))]));
    let [here, there] = [("a", 201), ("b", 203)].map(|(name, first)| Podman::on(&net, name, first));
    let before = here.state();
    // They may choose how their connections are paced, where the machine's own way is another one.
    there.run("--detach --cap-add NET_ADMIN --name far", "iperf3 --server");
    here.run("--detach --cap-add NET_ADMIN --name near", "sleep infinity");
    let far = there.address("far");
    for address in [&far, net.host("c").ipv4(), net.host("b").ipv4()] {
        let words = format!("exec near ping -c 1 -W 1 {address}");
        wait_for(SOON, address, || {
            let done = here.command(&words).output().expect("podman is installed");
            if done.status.success() {
                Ok(())
            } else {
                Err(String::from_utf8_lossy(&done.stdout).into_owned())
            }
        })
        .unwrap_or_else(|e| panic!("{e}"));
    }
    let enough = PART * 4.0 * f64::from(RATE) * shape::tcp_share(1500, false);
    let seen: Vec<f64> = (0..TRIES)
        .map(|_| {
            let said =
                here.does(&format!("exec near iperf3 --client {far} --congestion cubic --time 4 --json"));
            let said: Value = serde_json::from_str(&said).expect("JSON");
            said["end"]["sum_received"]["bits_per_second"].as_f64().unwrap_or_else(|| panic!("{said}")) / 1e6
        })
        .scan(false, |done, mbit| (!std::mem::replace(done, mbit >= enough)).then_some(mbit))
        .collect();
    println!("one flow of a container: {seen:.0?} Mbit/s over four links of {RATE}");
    assert!(seen.last().is_some_and(|mbit| *mbit >= enough), "{seen:?} of {enough}");
    here.does("rm --force --time 0 near");
    for _ in 0..TIMES {
        here.run("--rm", "true");
    }
    assert_eq!(here.state(), before);
    there.does("rm --force --time 0 far");
}
