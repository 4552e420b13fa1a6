//! What dist/kubernetes has for clusters: a cluster's types take it, podman plays the pod of the DaemonSet on a host of a lab, which installs
//! the plugin there, and that takes what Multus would give it.

use crate::containers::{self, Network};
use crate::containers_podman::{IMAGE, Podman};
use linkbraid_lab::{Fault, LinkSpec, Topology, daemon};
use linkbraid_netns_tests::{BOND, Net, flow::Flow, server::Scratch, sh, until};
use serde_json::{Value, json};
use std::io::Write as _;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};
use std::{env, fs};

/// Debian's, which has the cluster's types.
const PYTHON: &str = "/usr/bin/python3";
const SCHEMAS: &str = include_str!("kubernetes/schemas.py");
/// Where the daemon of the pod listens, below the host's folders that the test has of its own.
const SOCKET: &str = "run/linkbraid/linkbraid.sock";
/// Where the program is in the image of dist/kubernetes/Containerfile.
const PROGRAM: &str = "/usr/bin/linkbraid";
const PLUGIN: &str = "/usr/lib/cni/linkbraid-cni";
/// Where a node's runtime looks for plugins.
const PLUGINS: &str = "opt/cni/bin";

/// The documents of a file of dist/kubernetes.
#[track_caller]
fn documents(name: &str) -> Vec<Value> {
    let path = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../dist/kubernetes").join(name);
    let done = Command::new(PYTHON).args(["-c", SCHEMAS]).arg(path).output().expect("it is installed");
    assert!(done.status.success(), "{name}: {}", String::from_utf8_lossy(&done.stderr));
    serde_json::from_slice(&done.stdout).expect("JSON")
}

/// The document of this kind and name.
#[track_caller]
fn document<'d>(all: &'d [Value], kind: &str, name: &str) -> &'d Value {
    let found = all.iter().find(|document| document["kind"] == kind && document["metadata"]["name"] == name);
    found.unwrap_or_else(|| panic!("no {kind} {name}"))
}

/// What the Node Problem Detector runs.
struct Condition {
    folder: Scratch,
}

impl Condition {
    fn of(all: &[Value]) -> Self {
        let data = &document(all, "ConfigMap", "linkbraid-condition")["data"];
        let settings: Value =
            serde_json::from_str(data["condition.json"].as_str().expect("text")).expect("JSON");
        let daemon_set = document(all, "DaemonSet", "linkbraid");
        let spec = &daemon_set["spec"]["template"]["spec"];
        let detector = &spec["containers"][1];
        let folder = detector["volumeMounts"][0]["mountPath"].as_str().expect("a path");
        assert_eq!(settings["rules"][0]["path"], format!("{folder}/condition.sh"));
        assert_eq!(settings["rules"][0]["condition"], settings["conditions"][0]["type"]);
        let named = format!("--config.custom-plugin-monitor={folder}/condition.json");
        assert!(detector["args"].as_array().expect("some").contains(&json!(named)), "{detector}");
        let condition = Self { folder: Scratch::new() };
        fs::write(condition.script(), data["condition.sh"].as_str().expect("text")).expect("writes");
        condition
    }

    fn script(&self) -> PathBuf {
        self.folder.path().join("condition.sh")
    }

    /// Waits until it ends with this status; its line.
    #[track_caller]
    fn wait(&self, net: &Net, status: i32) -> String {
        let look = || {
            let done = net.host("a").command("bash").arg(self.script()).output().expect("it is installed");
            (done.status.code(), String::from_utf8_lossy(&done.stdout).trim().to_owned())
        };
        let (_, line) = until("the node's condition", look, |(code, _)| *code == Some(status));
        assert!(line.len() <= 80 && !line.contains('\n'), "{line}");
        line
    }
}

/// The pod that the DaemonSet makes on each node, as one that podman can play: with this machine's programs in the place of an image,
/// without the container of another project, and with folders of the host's that are the test's own.
fn pod(all: &[Value], folder: &Path) -> Value {
    let daemon_set = document(all, "DaemonSet", "linkbraid");
    let template = &daemon_set["spec"]["template"];
    let (mut metadata, mut spec) = (template["metadata"].clone(), template["spec"].clone());
    metadata["name"] = json!("linkbraid");
    spec["containers"].as_array_mut().expect("some").truncate(1);
    let mut container = spec["containers"][0].take();
    assert_eq!(container["command"], json!([PROGRAM]));
    container["image"] = json!(IMAGE);
    let binary = daemon::binary().expect("it is built");
    for words in ["/command", "/livenessProbe/exec/command", "/readinessProbe/exec/command"] {
        container.pointer_mut(words).expect("there")[0] = json!(binary);
    }
    // Containers of the lab's machine have no control groups of their own.
    container.as_object_mut().expect("one").remove("resources");
    // The other container puts the plugin where the node's runtime looks for plugins.
    let mut installer = spec["initContainers"][0].take();
    assert_eq!(installer["command"][4], PLUGIN);
    installer["image"] = json!(IMAGE);
    installer["command"][4] = json!(containers::folder().join("linkbraid-cni"));
    let mounts = container["volumeMounts"].as_array_mut().expect("some");
    let volumes = spec["volumes"].as_array_mut().expect("some");
    for volume in volumes.iter_mut() {
        let path = volume["hostPath"]["path"].as_str().map(str::to_owned);
        if let Some(path) = path.filter(|path| !path.starts_with("/sys/")) {
            volume["hostPath"]["path"] = json!(folder.join(path.trim_start_matches('/')));
        }
    }
    volumes.retain(|volume| volume["name"] != "condition");
    let installed = installer["volumeMounts"].as_array_mut().expect("some");
    for path in [Path::new("/usr"), binary.parent().expect("a folder")] {
        let name = format!("test-{}", volumes.len());
        volumes.push(json!({"name": name, "hostPath": {"path": path, "type": "Directory"}}));
        for mounts in [&mut *mounts, &mut *installed] {
            mounts.push(json!({"name": name, "mountPath": path, "readOnly": true}));
        }
    }
    spec["containers"][0] = container;
    spec["initContainers"][0] = installer;
    json!({"apiVersion": "v1", "kind": "Pod", "metadata": metadata, "spec": spec})
}

/// Plays the pod and the map of its configuration, in the place of the one before.
#[track_caller]
fn play(podman: &Podman<'_>, documents: &[&Value]) {
    podman.does("pod rm --force --ignore --time 0 linkbraid");
    let mut command = podman.command("kube play --log-driver none -");
    // Probes of the pod would be units of systemd; the test asks them itself.
    command.env("DISABLE_HC_SYSTEMD", "true");
    let mut player =
        command.stdin(Stdio::piped()).stdout(Stdio::piped()).stderr(Stdio::piped()).spawn().expect("starts");
    let mut input = player.stdin.take().expect("piped");
    for document in documents {
        writeln!(input, "---\n{document}").expect("takes it");
    }
    drop(input);
    let done = player.wait_with_output().expect("ends");
    assert!(done.status.success(), "{}", String::from_utf8_lossy(&done.stderr));
}

#[test]
fn the_pod_of_a_daemon_set_bonds_and_is_not_missed_while_it_is_replaced() {
    let all = documents("linkbraid.yaml");
    let condition = Condition::of(&all);
    // The first link of each host is the one that it has anyway.
    let net = Net::up(Topology::symmetric(2, 3, None).plain_host([LinkSpec::switch(0, None)]));
    net.start("b", &[]);
    net.ok("b", "bond add bond0 --member eth1,eth2 --address 198.18.0.200/24");
    let (a, pods) = (net.host("a"), net.host("c"));
    sh(pods, "ip link set eth0 down");
    sh(pods, "ip address flush dev eth0");

    let podman = Podman::on(&net, "a", 201);
    podman.image();
    let configuration = document(&all, "ConfigMap", "linkbraid");
    let pod = pod(&all, &podman.folder);
    condition.wait(&net, 2);
    play(&podman, &[configuration, &pod]);
    assert_eq!(condition.wait(&net, 0), "");
    podman.does("healthcheck run linkbraid-daemon");

    let installed =
        fs::read(podman.folder.join(PLUGINS).join("linkbraid-cni")).expect("the plugin is installed");
    assert!(installed == fs::read(containers::folder().join("linkbraid-cni")).expect("it is built"));
    let definition = documents("network.yaml").remove(0);
    let plugin: Value =
        serde_json::from_str(definition["spec"]["config"].as_str().expect("text")).expect("JSON");
    assert_eq!(plugin["bond"], BOND);
    let network = Network::changed(a, 201, |list| {
        list["cniVersion"] = plugin["cniVersion"].clone();
        // Addresses of a cluster's own store take a cluster.
        let (addresses, socket) = (list["plugins"][0]["ipam"].take(), podman.folder.join(SOCKET));
        list["plugins"][0] = plugin.clone();
        list["plugins"][0]["ipam"] = addresses;
        list["plugins"][0]["socket"] = json!(socket);
    });
    let said = network.add(pods);
    let address = said["ips"][0]["address"].as_str().unwrap_or_else(|| panic!("no address: {said}"));
    let address = address.split('/').next().expect("one").to_owned();
    pods.wait_ping("198.18.0.200", linkbraid_netns_tests::SOON).unwrap_or_else(|e| panic!("{e}"));

    let flow = Flow::between([(pods, &address), (net.host("b"), "198.18.0.200")]);
    flow.wait_received(100);
    let before = sh(a, "ip -o link show bond0");
    podman.does("kill --signal KILL linkbraid-daemon");
    assert_eq!(condition.wait(&net, 2), "the daemon of linkbraid does not answer");
    play(&podman, &[configuration, &pod]);
    assert_eq!(condition.wait(&net, 0), "");
    assert_eq!(sh(a, "ip -o link show bond0"), before, "the bond is the one that was there");
    flow.loses_nothing_more();
    assert_eq!(flow.end(), (0, 0), "lost, and twice");

    let link = a.link(2).expect("there");
    link.fail(Fault::Carrier).expect("sets");
    assert_eq!(condition.wait(&net, 1), "not complete: bond0; linkbraid show says what is missing");
    link.mend().expect("mends");
    condition.wait(&net, 0);
}
