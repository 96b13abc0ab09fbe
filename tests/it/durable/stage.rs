//! A home with everything at once: timers, a secret that is sent, files that are changed, and a
//! server that sees what arrives. Each act has a number, by which its record is found again.

use std::{
    collections::BTreeSet,
    fs,
    path::{Path, PathBuf},
    process::Child,
    sync::atomic::{AtomicU64, Ordering},
};

use serde_json::{Value, json};

use crate::support::{
    Home, OpenAi, Ran, Running, Server,
    home::finish,
    living::REQUESTS,
    warden::{entry, requests},
};

const TOKEN: &str = "token-4711-0815-2342";

const SECRET: &str = "[[request.secrets]]\nname = \"token\"\nwhy = \"tests\"\n";

/// More records than any test makes.
const RECORDS_MAX: &str = "1000000";

/// The home and the server.
pub(super) struct Stage {
    pub(super) home: Home,
    server: Server,
    next: AtomicU64,
}

/// Something that leaves a trace outside.
#[derive(Debug, Clone)]
pub(super) struct Act {
    pub(super) tool: &'static str,
    pub(super) arguments: String,
    number: u64,
}

/// What the audit says.
pub(super) struct Records(Vec<Value>);

impl Stage {
    pub(super) fn new() -> Self {
        let server = Server::saying("hello");
        let url = server.url();
        let asks = format!("{}{SECRET}", requests(&[&format!("GET,HEAD,POST {url}/**")]));
        let home =
            Home::new().guest("hostile", &asks).guest("living", REQUESTS).plugins(&["files"]);
        let folder = home.user_path("granted");
        fs::create_dir_all(&folder).unwrap();
        let policy = format!(
            "[plugin.hostile]\nnet = [{}]\nsecrets = [{{ name = \"token\", to = \"{url}\", \
             header = \"Authorization\", format = \"Bearer {{}}\" }}]\n\
             [secret.token]\nenv = \"TOKEN\"\n\
             [plugin.living]\nstate = true\nschedule = {{ timers = 512 }}\n\
             [plugin.files]\nfs = [{{ path = {folder:?}, mount = \"/data\", access = \"read-write\" }}]\n\
             [[rule]]\ntool = \"hostile.*\"\ndecision = \"allow\"\n\
             [[rule]]\ntool = \"living.*\"\ndecision = \"allow\"\n\
             [[rule]]\ntool = \"files.*\"\ndecision = \"allow\"\n",
            entry(&server, "")
        );
        let home = home.policy(policy).env("TOKEN", TOKEN);
        Self { home, server, next: AtomicU64::new(1) }
    }

    /// The same with a model.
    pub(super) fn with_model(self, model: &OpenAi) -> Self {
        Self { home: self.home.env("OPENAI_BASE_URL", model.base_url()), ..self }
    }

    /// Sends the secret to the server.
    pub(super) fn fetch(&self) -> Act {
        let number = self.number();
        let arguments = json!({ "authority": self.server.authority(), "path": path(number) });
        Act { tool: "hostile.fetches", arguments: arguments.to_string(), number }
    }

    /// Makes a file.
    pub(super) fn write(&self) -> Act {
        let number = self.number();
        let arguments = json!({ "path": format!("/data{}", path(number)), "text": "written" });
        Act { tool: "files.write", arguments: arguments.to_string(), number }
    }

    /// Lets the guest that keeps and plans do something.
    pub(super) fn steps(&self, steps: &[String]) -> Act {
        let arguments = json!({ "steps": steps }).to_string();
        Act { tool: "living.acts", arguments, number: self.number() }
    }

    fn number(&self) -> u64 {
        self.next.fetch_add(1, Ordering::Relaxed)
    }

    fn file(&self, number: u64) -> PathBuf {
        self.home.user_path("granted").join(&path(number)[1..])
    }

    #[track_caller]
    pub(super) fn call(&self, act: &Act) -> Ran {
        self.home.run(&act.command())
    }

    /// Calls by way of another program.
    #[track_caller]
    pub(super) fn call_by(&self, launcher: &[&str], act: &Act) -> Ran {
        finish(self.home.start_by(launcher, &act.command()), &act.command())
    }

    pub(super) fn start(&self, act: &Act) -> Child {
        self.home.start(&act.command())
    }

    /// A session in which nobody says anything, and timers fire.
    pub(super) fn listener(&self) -> Running {
        Running::start(&self.home, &["chat", "--model", "offline"])
    }

    /// Whether anything of it is to be seen outside.
    pub(super) fn is_done(&self, act: &Act) -> bool {
        let target = path(act.number);
        self.file(act.number).exists()
            || self.server.seen().iter().any(|request| request.target == target)
    }

    /// Everything that the guest keeps, by key.
    pub(super) fn kept(&self) -> Vec<(String, String)> {
        let keys = self.home.run(&["state", "list", "living", "--output", "json"]).ended(0).json();
        let keys = keys.as_array().unwrap().iter().map(|key| key.as_str().unwrap().to_owned());
        let value = |key: String| {
            let got = self.home.run(&["state", "get", "living", &key]).ended(0).stdout;
            (key, got.trim_end_matches('\n').to_owned())
        };
        keys.map(value).collect()
    }

    pub(super) fn timers_left(&self) -> usize {
        let list = self.home.run(&["timer", "list", "--output", "json"]).ended(0).json();
        list.as_array().unwrap().len()
    }

    pub(super) fn records(&self) -> Records {
        let args = ["audit", "show", "--output", "json", "-n", RECORDS_MAX];
        let shown = self.home.run(&args).ended(0);
        Records(shown.stdout.lines().map(|line| serde_json::from_str(line).unwrap()).collect())
    }

    /// Fails when anything was done without a record, when the audit is not whole, or when the
    /// secret is anywhere but in requests to its server.
    #[track_caller]
    pub(super) fn check(&self) {
        let verified = self.home.run(&["audit", "verify"]);
        assert_eq!(verified.code, 0, "{verified:#?}");
        let records = self.records();
        let decided = records.decided();
        for request in self.server.seen() {
            let arguments = json!({ "authority": self.server.authority(), "path": request.target });
            let hash = hash(&arguments.to_string());
            assert!(decided.contains(&hash), "no record of {}", request.target);
            let sent = request.header("authorization").unwrap_or_default();
            assert_eq!(sent, format!("Bearer {TOKEN}"));
        }
        for entry in fs::read_dir(self.home.user_path("granted")).unwrap() {
            let name = entry.unwrap().file_name().into_string().unwrap();
            let arguments = json!({ "path": format!("/data/{name}"), "text": "written" });
            assert!(decided.contains(&hash(&arguments.to_string())), "no record of {name}");
        }
        assert!(!holds(&self.home.path("state"), TOKEN), "the secret is in the state folder");
    }
}

impl Act {
    fn command(&self) -> [&str; 3] {
        ["call", self.tool, &self.arguments]
    }
}

impl Records {
    /// The hashes of the arguments of all calls that were let through.
    fn decided(&self) -> BTreeSet<String> {
        let hashes = self.allowed().filter_map(|record| record["arguments"].as_str());
        hashes.map(str::to_owned).collect()
    }

    fn allowed(&self) -> impl Iterator<Item = &Value> {
        self.0
            .iter()
            .map(|entry| &entry["record"])
            .filter(|record| record["kind"] == "decision" && record["decision"] == "allow")
    }

    /// How many runs of a tool, or in a role, were let through.
    pub(super) fn count(&self, tool: &str) -> usize {
        self.allowed().filter(|record| record["tool"] == tool).count()
    }

    /// Whether a call was let through.
    pub(super) fn has(&self, act: &Act) -> bool {
        self.decided().contains(&hash(&act.arguments))
    }
}

fn path(number: u64) -> String {
    format!("/n-{number}")
}

fn hash(arguments: &str) -> String {
    blake3::hash(arguments.as_bytes()).to_hex().to_string()
}

fn holds(folder: &Path, text: &str) -> bool {
    let bytes = |path: PathBuf| fs::read(path).unwrap_or_default();
    let files = fs::read_dir(folder).unwrap().map(|entry| bytes(entry.unwrap().path()));
    let text = text.as_bytes();
    files.into_iter().any(|file| file.windows(text.len()).any(|window| window == text))
}
