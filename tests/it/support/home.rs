//! A home of its own for every test: configuration, policy, plugins, and the program run in it.

use std::{
    fs,
    io::Write,
    os::{fd::OwnedFd, unix::fs::symlink},
    path::{Path, PathBuf},
    process::{Child, Command, Stdio},
    sync::Arc,
};

use serde_json::{Value, json};
use tempfile::TempDir;

use super::{
    patience::{self, Heard, end_of},
    token_search::find_token,
};

/// The program's own folder in the home of its user.
const OWN: &str = "sallyport";

/// The home of a user: the program's own folder in it, and whatever else a test needs.
pub(crate) struct Home {
    /// Whoever still needs the folder holds it.
    pub(crate) folder: Arc<HomeFolder>,
    env: Vec<(String, String)>,
}

/// The folder of a home. When the test has ended, nothing in it may contain a token.
pub(crate) struct HomeFolder(TempDir);

/// A finished run of the program.
#[derive(Debug)]
pub(crate) struct Ran {
    pub(crate) stdout: String,
    pub(crate) stderr: String,
    pub(crate) code: i32,
}

/// The folder of the repository.
pub(crate) fn repository() -> &'static Path {
    Path::new(concat!(env!("CARGO_MANIFEST_DIR"), "/.."))
}

/// Reads something that a task of the repository builds.
#[track_caller]
fn built(path: &Path, task: &str) -> Vec<u8> {
    fs::read(path).unwrap_or_else(|error| {
        panic!("{}: {error}; build it with `cargo xtask {task}`", path.display())
    })
}

/// The component of a guest of the tests.
#[track_caller]
pub(crate) fn guest(name: &str) -> Vec<u8> {
    let path = format!("tests/guests/target/wasm32-wasip2/release/{name}.wasm");
    built(&repository().join(path), "guests")
}

/// The component of a plugin of the repository.
#[track_caller]
pub(crate) fn plugin_component(name: &str) -> Vec<u8> {
    built(&repository().join(format!("plugins-wasm/{name}/{name}.wasm")), "plugins")
}

/// A file of a plugin that a page of `docs/roles` shows, as it stood there when it was built.
#[track_caller]
pub(crate) fn page_file(plugin: &str, file: &str) -> String {
    let path = repository().join("target/pages").join(plugin).join(file);
    String::from_utf8(built(&path, "guests")).unwrap()
}

/// The component of a plugin that a page of `docs/roles` shows.
#[track_caller]
pub(crate) fn page_component(plugin: &str) -> Vec<u8> {
    let path = format!("target/pages/target/wasm32-wasip2/release/{plugin}.wasm");
    built(&repository().join(path), "guests")
}

impl HomeFolder {
    pub(crate) fn path(&self) -> &Path {
        self.0.path()
    }
}

impl Drop for HomeFolder {
    fn drop(&mut self) {
        if std::thread::panicking() {
            return;
        }
        if let Some(file) = find_token(self.path()) {
            panic!("a token is in {}", file.display());
        }
    }
}

impl Home {
    /// An empty home. What is compiled in it is shared with the other tests, which saves minutes.
    pub(crate) fn new() -> Self {
        let home = Self::with_own_cache();
        let shared = Path::new(env!("CARGO_TARGET_TMPDIR")).join("cache");
        fs::create_dir_all(&shared).unwrap();
        symlink(shared, home.path("cache")).unwrap();
        home
    }

    /// An empty home whose cache is its own, and empty too.
    pub(crate) fn with_own_cache() -> Self {
        patience::watch();
        let folder = TempDir::with_prefix("sallyport-it-").unwrap();
        fs::create_dir_all(folder.path().join(OWN).join("plugins")).unwrap();
        Self { folder: Arc::new(HomeFolder(folder)), env: Vec::new() }
    }

    /// Adds plugins of the repository.
    #[track_caller]
    pub(crate) fn plugins(mut self, names: &[&str]) -> Self {
        for name in names {
            let manifest = repository().join(format!("plugins-wasm/{name}/plugin.toml"));
            let manifest = String::from_utf8(built(&manifest, "plugins")).unwrap();
            self = self.component(name, &manifest, &plugin_component(name));
        }
        self
    }

    /// Adds a guest of the tests under its own name. `rest` follows the usual lines of its
    /// manifest.
    #[track_caller]
    pub(crate) fn guest(self, name: &str, rest: &str) -> Self {
        self.component(name, &manifest(name, rest), &guest(name))
    }

    /// Adds a component with its manifest, in a folder of that name.
    pub(crate) fn component(self, folder: &str, manifest: &str, bytes: &[u8]) -> Self {
        self.file(&format!("plugins/{folder}/plugin.toml"), manifest)
            .file(&format!("plugins/{folder}/{folder}.wasm"), bytes)
    }

    /// Writes a file of the program.
    pub(crate) fn file(self, path: &str, bytes: impl AsRef<[u8]>) -> Self {
        write(&self.path(path), bytes);
        self
    }

    /// Writes a file of the user.
    pub(crate) fn user_file(self, path: &str, bytes: impl AsRef<[u8]>) -> Self {
        write(&self.user_path(path), bytes);
        self
    }

    /// Writes the policy.
    pub(crate) fn policy(self, text: impl AsRef<str>) -> Self {
        self.file("policy.toml", text.as_ref())
    }

    /// Writes the configuration.
    pub(crate) fn config(self, text: impl AsRef<str>) -> Self {
        self.file("sallyport.toml", text.as_ref())
    }

    /// Sets a variable of the environment.
    pub(crate) fn env(mut self, name: &str, value: impl Into<String>) -> Self {
        self.env.push((name.to_owned(), value.into()));
        self
    }

    /// A path in the program's own folder.
    pub(crate) fn path(&self, path: &str) -> PathBuf {
        self.folder.path().join(OWN).join(path)
    }

    /// A path in the user's home.
    pub(crate) fn user_path(&self, path: &str) -> PathBuf {
        self.folder.path().join(path)
    }

    /// The environment of the program: nothing of the tests' own but the path.
    pub(crate) fn environment(&self) -> Vec<(String, String)> {
        let text = |path: &Path| path.to_str().unwrap().to_owned();
        let path = std::env::var("PATH").unwrap_or_default();
        let mut env = vec![
            ("PATH".to_owned(), path),
            ("HOME".to_owned(), text(self.folder.path())),
            ("SALLYPORT_HOME".to_owned(), text(&self.folder.path().join(OWN))),
            // On a busy machine every plugin is there all the same.
            ("SALLYPORT_COMPILE_WAIT".to_owned(), "60s".to_owned()),
        ];
        env.extend(self.env.iter().cloned());
        env
    }

    /// Runs the program with nothing on its standard input.
    #[track_caller]
    pub(crate) fn run(&self, args: &[&str]) -> Ran {
        self.run_with_input(args, "")
    }

    /// Runs the program with a text on its standard input.
    #[track_caller]
    pub(crate) fn run_with_input(&self, args: &[&str], input: &str) -> Ran {
        let mut child = self.start(args);
        // A program that does not read its input closes it.
        let _ = child.stdin.take().unwrap().write_all(input.as_bytes());
        finish(child, args)
    }

    /// Starts the program and leaves it running.
    pub(crate) fn start(&self, args: &[&str]) -> Child {
        self.start_by(&[], args)
    }

    /// Starts the program by way of another one, which takes it and its arguments as its last ones.
    pub(crate) fn start_by(&self, launcher: &[&str], args: &[&str]) -> Child {
        let words = [launcher, &[env!("CARGO_BIN_EXE_sallyport")], args].concat();
        let mut command = Command::new(words[0]);
        command.args(&words[1..]).env_clear().envs(self.environment());
        command.stdin(Stdio::piped()).stdout(Stdio::piped()).stderr(Stdio::piped());
        command.current_dir(self.folder.path()).spawn().unwrap()
    }

    /// Starts the program with these as its standard input and output.
    pub(crate) fn start_with(&self, args: &[&str], [stdin, stdout]: [OwnedFd; 2]) -> Child {
        let mut command = Command::new(env!("CARGO_BIN_EXE_sallyport"));
        command.args(args).env_clear().envs(self.environment());
        command.stdin(stdin).stdout(stdout).stderr(Stdio::null());
        command.current_dir(self.folder.path()).spawn().unwrap()
    }

    /// Calls one tool and returns what the program tells about it as JSON, with its exit code.
    #[track_caller]
    pub(crate) fn call(&self, tool: &str, arguments: &Value) -> (Value, i32) {
        let ran = self.run(&["call", tool, &arguments.to_string(), "--output", "json"]);
        (ran.json(), ran.code)
    }
}

fn write(path: &Path, bytes: impl AsRef<[u8]>) {
    fs::create_dir_all(path.parent().unwrap()).unwrap();
    fs::write(path, bytes).unwrap();
}

/// A manifest of a test's plugin.
pub(crate) fn manifest(name: &str, rest: &str) -> String {
    format!(
        "name = \"{name}\"\nversion = \"1.0.0\"\ndescription = \"A guest of the tests.\"\n{rest}"
    )
}

/// Waits for the program, and fails when it hangs.
#[track_caller]
pub(crate) fn finish(mut child: Child, args: &[&str]) -> Ran {
    drop(child.stdin.take());
    // A stream that goes elsewhere is not read here.
    let stdout = child.stdout.take().map(Heard::of);
    let stderr = child.stderr.take().map(Heard::of);
    let so_far = |heard: &Option<Heard>| heard.as_ref().map(Heard::so_far).unwrap_or_default();
    let status = end_of(&mut child, || {
        format!("sallyport {args:?}\n{}\n{}", so_far(&stdout), so_far(&stderr))
    });
    let whole = |heard: Option<Heard>| heard.as_ref().map(Heard::whole).unwrap_or_default();
    // A signal has no exit code; no test expects one.
    Ran { stdout: whole(stdout), stderr: whole(stderr), code: status.code().unwrap_or(-1) }
}

impl Ran {
    /// Fails when the program ended with another code.
    #[track_caller]
    pub(crate) fn ended(self, code: i32) -> Self {
        assert_eq!(self.code, code, "{self:#?}");
        self
    }

    /// Fails when standard output lacks one of the texts.
    #[track_caller]
    pub(crate) fn answers(self, texts: &[&str]) -> Self {
        for text in texts {
            assert!(self.stdout.contains(text), "no {text:?} on standard output of {self:#?}");
        }
        self
    }

    /// Fails when standard error lacks one of the texts.
    #[track_caller]
    pub(crate) fn remarks(self, texts: &[&str]) -> Self {
        for text in texts {
            assert!(self.stderr.contains(text), "no {text:?} on standard error of {self:#?}");
        }
        self
    }

    /// Fails when either stream holds one of the texts.
    #[track_caller]
    pub(crate) fn hides(self, texts: &[&str]) -> Self {
        for text in texts {
            let shown = self.stdout.contains(text) || self.stderr.contains(text);
            assert!(!shown, "{text:?} is shown in {self:#?}");
        }
        self
    }

    /// Standard output as JSON.
    #[track_caller]
    pub(crate) fn json(&self) -> Value {
        serde_json::from_str(&self.stdout).unwrap_or_else(|error| {
            panic!("{error}: standard output is no JSON: {self:#?}");
        })
    }
}

/// The arguments of a tool that takes an amount.
pub(crate) fn amount(n: u64) -> Value {
    json!({ "n": n })
}
