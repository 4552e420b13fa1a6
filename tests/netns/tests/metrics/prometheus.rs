//! Prometheus on a host of a lab, as a child of the test, with the rules of dist/ and nothing of the machine's own.

use linkbraid_lab::{Host, Running, tool, wait_for};
use linkbraid_netns_tests::SOON;
use serde_json::Value;
use std::{
    fs::{self, File},
    path::{Path, PathBuf},
    process::Stdio,
};

/// Where it listens.
const ADDRESS: &str = "127.0.0.1:9090";
/// What the dashboard leaves to Grafana.
const VARIABLES: [(&str, &str); 4] =
    [("$__rate_interval", "10s"), ("$__interval", "1m"), ("$instance", ".*"), ("$bond", ".*")];

/// What users install.
pub(super) fn dist() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("../../dist")
}

/// All expressions of the dashboard, with something in the place of its variables.
pub(super) fn expressions() -> Vec<String> {
    let text = fs::read_to_string(dist().join("grafana/linkbraid.json")).expect("reads");
    let dashboard: Value = serde_json::from_str(&text).expect("JSON");
    let panels = dashboard["panels"].as_array().expect("panels").iter();
    let targets = panels.filter_map(|panel| panel["targets"].as_array()).flatten();
    let filled = |target: &Value| {
        let text = target["expr"].as_str().expect("an expression").to_owned();
        VARIABLES.iter().fold(text, |text, (name, value)| text.replace(name, value))
    };
    targets.map(filled).inspect(|text| assert!(!text.contains('$'), "{text}")).collect()
}

/// One that runs; dropping it ends it.
pub(super) struct Prometheus<'net> {
    host: Host<'net>,
    log: PathBuf,
    _process: Running,
}

impl<'net> Prometheus<'net> {
    /// Starts it on a host, with a folder for its files. It scrapes hosts by name and address, once a second, and fires alerts as soon
    /// as their expression holds.
    #[track_caller]
    pub(super) fn start(host: Host<'net>, folder: &Path, scraped: &[(&str, &str)]) -> Self {
        let folder = folder.join("prometheus");
        fs::create_dir(&folder).expect("makes a folder");
        let (log, settings, rules) =
            (folder.join("log"), folder.join("prometheus.yml"), folder.join("linkbraid.rules.yml"));
        let text = fs::read_to_string(dist().join("prometheus/linkbraid.rules.yml")).expect("reads");
        let at_once = |line: &str| match line.trim_start().starts_with("for: ") {
            true => String::new(),
            false => format!("{line}\n"),
        };
        fs::write(&rules, text.lines().map(at_once).collect::<String>()).expect("writes");
        let mut text =
            "global: {scrape_interval: 1s, evaluation_interval: 1s}\nrule_files: [linkbraid.rules.yml]\n\
                        scrape_configs:\n- job_name: linkbraid\n  static_configs:\n"
                .to_owned();
        for (name, address) in scraped {
            text += &format!("  - {{targets: [\"{address}:9919\"], labels: {{instance: {name}}}}}\n");
        }
        fs::write(&settings, text).expect("writes");
        let mut command = host.command("prometheus");
        command.arg(format!("--config.file={}", settings.display()));
        command.arg(format!("--storage.tsdb.path={}", folder.join("data").display()));
        command.arg(format!("--web.listen-address={ADDRESS}"));
        let file = File::create(&log).expect("makes a file");
        command.stdin(Stdio::null()).stdout(file.try_clone().expect("an open file")).stderr(file);
        let process = Running::start(command).unwrap_or_else(|e| panic!("{e}; hint: scripts/deps.sh test"));
        let prometheus = Self { host, log, _process: process };
        wait_for(SOON, "Prometheus to be ready", || prometheus.get("/-/ready", &[]))
            .unwrap_or_else(|e| panic!("{e}"));
        prometheus
    }

    fn get(&self, path: &str, options: &[&str]) -> Result<String, String> {
        let mut command = self.host.command("curl");
        command.args(["--silent", "--show-error", "--fail", "--max-time", "10"]).args(options);
        tool::run(command.arg(format!("http://{ADDRESS}{path}"))).map_err(|error| error.to_string())
    }

    #[track_caller]
    fn data(&self, path: &str, options: &[&str]) -> Value {
        let text = self.get(path, options).unwrap_or_else(|e| panic!("{options:?}: {e}"));
        let mut answer: Value = serde_json::from_str(&text).expect("JSON");
        answer["data"].take()
    }

    /// What an expression gives now: the values of its series.
    #[track_caller]
    pub(super) fn query(&self, expression: &str) -> Vec<f64> {
        let query = format!("query={expression}");
        let data = self.data("/api/v1/query", &["--get", "--data-urlencode", &query]);
        let series = data["result"].as_array().expect("series").iter();
        let value = |one: &Value| one["value"][1].as_str().and_then(|text| text.parse().ok());
        series.map(|one| value(one).unwrap_or_else(|| panic!("{expression}: {one}"))).collect()
    }

    /// The labels of the alerts that fire now.
    #[track_caller]
    pub(super) fn firing(&self) -> Vec<Value> {
        let data = self.data("/api/v1/alerts", &[]);
        let alerts = data["alerts"].as_array().expect("alerts").iter();
        alerts.filter(|alert| alert["state"] == "firing").map(|alert| alert["labels"].clone()).collect()
    }
}

impl Drop for Prometheus<'_> {
    fn drop(&mut self) {
        if std::thread::panicking() {
            eprintln!("--- log of Prometheus\n{}", fs::read_to_string(&self.log).unwrap_or_default());
        }
    }
}
