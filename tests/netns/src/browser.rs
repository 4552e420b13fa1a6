//! A real browser on a host of a lab: Chromium, driven by its own driver (W3C WebDriver).

use crate::SOON;
use linkbraid_lab::{Host, Running, wait_for, wait_until};
use serde_json::{Value, json};
use std::net::TcpStream;
use std::process::Command;

/// Where the driver listens; every host of a lab has its ports for itself.
const DRIVER: u16 = 9515;
/// How the driver calls an element (WebDriver, section 11).
const ELEMENT: &str = "element-6066-11e4-a52e-4f735466cecf";

/// Whether something listens on that port of a host.
pub fn listens(host: Host<'_>, port: u16) -> bool {
    host.run(|| TcpStream::connect(("127.0.0.1", port)).is_ok()).unwrap_or(false)
}

/// A browser with one window. It ends with it.
pub struct Browser<'net> {
    host: Host<'net>,
    session: String,
    _driver: Running,
}

impl<'net> Browser<'net> {
    /// Starts it, with a window of so many pixels.
    ///
    /// # Panics
    /// When it does not start.
    #[track_caller]
    pub fn start(host: Host<'net>, (width, height): (u32, u32)) -> Self {
        let mut command = host.command("chromedriver");
        command.arg(format!("--port={DRIVER}"));
        let driver = Running::serve(command, SOON, || listens(host, DRIVER))
            .unwrap_or_else(|e| panic!("{e}; it is in the package chromium-driver: scripts/deps.sh test"));
        let size = format!("--window-size={width},{height}");
        let args =
            ["--headless=new", "--no-sandbox", "--disable-gpu", "--disable-dev-shm-usage", size.as_str()];
        let wanted =
            json!({ "goog:loggingPrefs": { "browser": "ALL" }, "goog:chromeOptions": { "args": args } });
        let made = json!({ "capabilities": { "alwaysMatch": wanted } });
        let answer = ask(host, "POST", "/session", &made).expect("a session");
        let session = answer["sessionId"].as_str().expect("it has a name").to_owned();
        Self { host, session, _driver: driver }
    }

    /// What the driver says.
    fn ask(&self, method: &str, path: &str, body: &Value) -> Result<Value, String> {
        ask(self.host, method, &format!("/session/{}{path}", self.session), body)
    }

    /// Goes to a page.
    ///
    /// # Panics
    /// When it cannot.
    #[track_caller]
    pub fn open(&self, url: &str) {
        self.ask("POST", "/url", &json!({ "url": url })).expect("opens");
    }

    /// What a script of the page returns.
    ///
    /// # Panics
    /// When it throws.
    #[track_caller]
    pub fn run(&self, script: &str) -> Value {
        self.ask("POST", "/execute/sync", &json!({ "script": script, "args": [] })).expect("runs")
    }

    /// The text of the first element that a selector of CSS finds, as one sees it; empty where there is none.
    #[track_caller]
    pub fn text(&self, selector: &str) -> String {
        let script = format!(
            "const found = document.querySelector({}); return found?.innerText ?? found?.textContent ?? ''",
            json!(selector)
        );
        self.run(&script).as_str().unwrap_or_default().to_owned()
    }

    /// How many elements a selector finds.
    #[track_caller]
    pub fn count(&self, selector: &str) -> u64 {
        let script = format!("return document.querySelectorAll({}).length", json!(selector));
        self.run(&script).as_u64().unwrap_or_default()
    }

    /// Waits until an element has a text.
    ///
    /// # Panics
    /// When it never does.
    #[track_caller]
    pub fn wait_text(&self, selector: &str, text: &str) {
        let what = format!("'{text}' in {selector}");
        wait_until(SOON, &what, || self.text(selector), |seen| seen.contains(text))
            .unwrap_or_else(|e| panic!("{e}"));
    }

    /// Waits until a selector finds so many elements.
    ///
    /// # Panics
    /// When it never does.
    #[track_caller]
    pub fn wait_count(&self, selector: &str, count: u64) {
        let what = format!("{count} of {selector}");
        wait_until(SOON, &what, || self.count(selector), |seen| *seen == count)
            .unwrap_or_else(|e| panic!("{e}"));
    }

    /// Clicks on the first element that a selector finds, where a user could; waits until there is one. A page that is drawn again
    /// and again may have another one by then: that is tried again.
    ///
    /// # Panics
    /// When there is none, or another one is in front of it.
    #[track_caller]
    pub fn click(&self, selector: &str) {
        let click = || {
            let found =
                self.ask("POST", "/element", &json!({ "using": "css selector", "value": selector }))?;
            let id = found[ELEMENT].as_str().ok_or("no name")?;
            self.ask("POST", &format!("/element/{id}/click"), &json!({}))
        };
        wait_for(SOON, &format!("a click on {selector}"), click).unwrap_or_else(|e| panic!("{e}"));
    }

    /// A picture of what it shows (PNG, in base64).
    ///
    /// # Panics
    /// When there is none.
    #[track_caller]
    pub fn picture(&self) -> String {
        self.ask("GET", "/screenshot", &Value::Null).expect("a picture").as_str().expect("a text").to_owned()
    }

    /// Errors of scripts and of what the page wanted to load.
    #[track_caller]
    pub fn errors(&self) -> Vec<String> {
        let log = self.ask("POST", "/se/log", &json!({ "type": "browser" })).expect("a log");
        let lines = log.as_array().expect("a list").iter();
        lines.filter(|line| line["level"] == "SEVERE").map(|line| line["message"].to_string()).collect()
    }
}

impl Drop for Browser<'_> {
    fn drop(&mut self) {
        if std::thread::panicking() {
            eprintln!("--- the page\n{}", self.ask("GET", "/source", &Value::Null).unwrap_or_default());
        }
        // Its processes are of another group than the driver's.
        let _ = self.ask("DELETE", "", &Value::Null);
    }
}

/// One request to the driver: its answer, or what it says is wrong.
fn ask(host: Host<'_>, method: &str, path: &str, body: &Value) -> Result<Value, String> {
    let mut command: Command = host.command("curl");
    command.args(["--silent", "--show-error", "--max-time", "60", "--request", method]);
    if !body.is_null() {
        command.args(["--header", "Content-Type: application/json", "--data-binary", &body.to_string()]);
    }
    let output =
        command.arg(format!("http://127.0.0.1:{DRIVER}{path}")).output().map_err(|e| e.to_string())?;
    let text = String::from_utf8_lossy(&output.stdout);
    let answer: Value = serde_json::from_str(&text)
        .map_err(|e| format!("{e}: {text}{}", String::from_utf8_lossy(&output.stderr)))?;
    let value = &answer["value"];
    match value["error"].as_str() {
        Some(error) => Err(format!("{error}: {}", value["message"].as_str().unwrap_or_default())),
        None => Ok(value.clone()),
    }
}
