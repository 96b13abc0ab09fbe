//! A real browser without a screen, driven over the protocol that its driver speaks: JSON over
//! HTTP.

use std::{
    fs,
    io::Write,
    path::Path,
    process::{Child, Command, Stdio},
    thread,
    time::{Duration, Instant},
};

use serde_json::{Value, json};
use tempfile::TempDir;

use super::{
    client,
    patience::{Heard, until},
};

/// Longest wait for something to appear on a page.
const PATIENCE: Duration = Duration::from_secs(60);

/// How often a page is looked at.
const LOOK_EVERY: Duration = Duration::from_millis(50);

/// The programs, as Debian names them.
const DRIVER: &str = "/usr/bin/chromedriver";
const CHROMIUM: &str = "/usr/bin/chromium";

/// What keeps it from doing anything but show the page.
const FLAGS: [&str; 9] = [
    "--headless",
    "--no-sandbox",
    "--disable-gpu",
    "--disable-quic",
    "--disable-sync",
    "--disable-background-networking",
    "--disable-component-update",
    "--no-first-run",
    "--window-size=1000,900",
];

/// A browser with one page; it ends with the value.
pub(crate) struct Browser {
    driver: Child,
    authority: String,
    session: String,
    _profile: TempDir,
}

impl Browser {
    /// Starts one. Where there is none on the machine, the test says so and is passed over.
    pub(crate) fn start() -> Option<Self> {
        if !Path::new(DRIVER).exists() || !Path::new(CHROMIUM).exists() {
            let words = format!("skipped: there is no {DRIVER} with {CHROMIUM}\n");
            std::io::stderr().write_all(words.as_bytes()).unwrap();
            return None;
        }
        let profile = TempDir::with_prefix("sallyport-browser-").unwrap();
        let mut command = Command::new(DRIVER);
        command.args(["--port=0", "--allowed-ips=127.0.0.1"]).stdin(Stdio::null());
        command.env("HOME", profile.path()).stdout(Stdio::piped()).stderr(Stdio::null());
        let mut driver = command.spawn().unwrap();
        let port = port(&mut driver);
        let mut args: Vec<String> = FLAGS.iter().map(|&flag| flag.to_owned()).collect();
        args.push(format!("--user-data-dir={}", profile.path().join("profile").display()));
        let options = json!({ "binary": CHROMIUM, "args": args });
        let logs = json!({ "browser": "ALL" });
        let wanted = json!({ "goog:chromeOptions": options, "goog:loggingPrefs": logs });
        let wanted = json!({ "alwaysMatch": wanted });
        let authority = format!("127.0.0.1:{port}");
        let mut browser = Self { driver, authority, session: String::new(), _profile: profile };
        let begun = browser.tell("POST", "", &json!({ "capabilities": wanted })).unwrap();
        browser.session = format!("/{}", begun["sessionId"].as_str().unwrap());
        Some(browser)
    }

    /// Goes to an address.
    #[track_caller]
    pub(crate) fn open(&self, url: &str) {
        self.tell("POST", "/url", &json!({ "url": url })).unwrap();
    }

    /// The address that it is at.
    #[track_caller]
    pub(crate) fn url(&self) -> String {
        self.tell("GET", "/url", &Value::Null).unwrap().as_str().unwrap().to_owned()
    }

    /// Waits until there is something that shows a text, and returns all that it shows.
    #[track_caller]
    pub(crate) fn sees(&self, selector: &str, text: &str) -> String {
        let begin = Instant::now();
        loop {
            let shown = self.text(selector).unwrap_or_default();
            if shown.contains(text) && self.element(selector).is_some() {
                return shown;
            }
            assert!(begin.elapsed() < PATIENCE, "no {text:?} in {selector}: {}", self.source());
            thread::sleep(LOOK_EVERY);
        }
    }

    /// Waits until there is nothing of a kind.
    #[track_caller]
    pub(crate) fn loses(&self, selector: &str) {
        let begin = Instant::now();
        while self.element(selector).is_some() {
            assert!(begin.elapsed() < PATIENCE, "{selector} is still there: {}", self.source());
            thread::sleep(LOOK_EVERY);
        }
    }

    /// Clicks on something.
    #[track_caller]
    pub(crate) fn click(&self, selector: &str) {
        let element = self.element(selector).unwrap();
        self.tell("POST", &format!("/element/{element}/click"), &json!({})).unwrap();
    }

    /// Types into something.
    #[track_caller]
    pub(crate) fn types(&self, selector: &str, text: &str) {
        let element = self.element(selector).unwrap();
        let text = json!({ "text": text });
        self.tell("POST", &format!("/element/{element}/value"), &text).unwrap();
    }

    /// Makes the window another size, in pixels.
    #[track_caller]
    pub(crate) fn resizes(&self, width: u32, height: u32) {
        let size = json!({ "width": width, "height": height });
        self.tell("POST", "/window/rect", &size).unwrap();
    }

    /// What a script returns.
    #[track_caller]
    pub(crate) fn script(&self, script: &str) -> Value {
        self.tell("POST", "/execute/sync", &json!({ "script": script, "args": [] })).unwrap()
    }

    /// What the browser has complained about since it was last asked: errors of scripts, what a
    /// policy forbade, what could not be loaded.
    #[track_caller]
    pub(crate) fn complaints(&self) -> Vec<String> {
        let log = self.tell("POST", "/se/log", &json!({ "type": "browser" })).unwrap();
        log.as_array().unwrap().iter().map(|entry| entry["message"].to_string()).collect()
    }

    /// Keeps a picture of the page.
    #[track_caller]
    pub(crate) fn picture(&self, path: &Path) {
        let picture = self.tell("GET", "/screenshot", &Value::Null).unwrap();
        let bytes = data_encoding::BASE64.decode(picture.as_str().unwrap().as_bytes()).unwrap();
        fs::create_dir_all(path.parent().unwrap()).unwrap();
        fs::write(path, bytes).unwrap();
    }

    fn text(&self, selector: &str) -> Option<String> {
        let element = self.element(selector)?;
        let text = self.tell("GET", &format!("/element/{element}/text"), &Value::Null);
        // It may be gone again.
        Some(text.ok()?.as_str()?.to_owned())
    }

    fn element(&self, selector: &str) -> Option<String> {
        let wanted = json!({ "using": "css selector", "value": selector });
        let found = self.tell("POST", "/element", &wanted).ok()?;
        found.as_object()?.values().next()?.as_str().map(str::to_owned)
    }

    fn source(&self) -> String {
        let source = self.tell("GET", "/source", &Value::Null).unwrap_or_default();
        let source = source.as_str().unwrap_or_default();
        source.split_once("</style>").map_or(source, |(_, rest)| rest).to_owned()
    }

    fn tell(&self, method: &str, path: &str, body: &Value) -> Result<Value, Value> {
        let path = format!("/session{}{path}", self.session);
        let body = if body.is_null() { String::new() } else { body.to_string() };
        let headers = [("Content-Type", "application/json")];
        let answer = client::ask(&self.authority, method, &path, &headers, &body);
        let mut told: Value = serde_json::from_str(&answer.body).unwrap_or_default();
        let value = told["value"].take();
        if answer.status == 200 { Ok(value) } else { Err(value) }
    }
}

impl Drop for Browser {
    fn drop(&mut self) {
        let _ = self.tell("DELETE", "", &Value::Null);
        let _ = self.driver.kill();
        let _ = self.driver.wait();
    }
}

/// The port that the driver says it has taken.
fn port(driver: &mut Child) -> u16 {
    let said = Heard::of(driver.stdout.take().unwrap());
    until("the port of the driver", || {
        let said = said.so_far();
        // The end of the line is there too.
        let (rest, _) = said.split("started successfully on port ").nth(1)?.split_once('.')?;
        rest.parse().ok()
    })
}
