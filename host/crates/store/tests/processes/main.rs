//! Several processes at one store, processes that are killed, and one that has no room to write.
//!
//! The other processes are this very test binary, started for one of the tests that are ignored
//! otherwise.

#![expect(clippy::unwrap_used, reason = "a test fails by panicking, in its helpers too")]

use std::{
    fs,
    path::{Path, PathBuf},
    process::{self, Child, Command, Stdio},
    sync::LazyLock,
    thread,
    time::Duration,
};

use sallyport_store::HostStore;
use tokio::runtime::{self, Runtime};

mod audit;
mod kept;
mod sessions;

/// No other process lives so long unless it hangs; whoever reads what it says waits no longer.
const LIFE_MAX: Duration = Duration::from_secs(180);

/// The user of the sessions.
const USER: &str = "local";

/// Names the folder to the other process.
const FOLDER: &str = "STORE_TEST_FOLDER";

#[expect(clippy::disallowed_methods, reason = "the other process is this binary")]
fn command(program: &Path) -> Command {
    Command::new(program)
}

fn own_binary() -> PathBuf {
    std::env::current_exe().unwrap()
}

/// Starts one of the ignored tests in a process of its own.
fn start(mut command: Command, test: &str, folder: &Path) -> Child {
    command
        .args(["--exact", test, "--ignored", "--nocapture"])
        .env(FOLDER, folder)
        .stdout(Stdio::piped())
        .spawn()
        .unwrap()
}

/// The store of the folder that this process was started for.
#[expect(clippy::disallowed_methods, reason = "a test is told its folder by the environment")]
fn store_of_parent() -> HostStore {
    let folder = std::env::var_os(FOLDER).expect("only another test starts this one");
    thread::spawn(end_in_time);
    HostStore::open(Path::new(&folder)).unwrap()
}

/// Waits for what the store does on other threads.
trait Wait: Future + Sized {
    fn wait(self) -> Self::Output {
        static RUNTIME: LazyLock<Runtime> =
            LazyLock::new(|| runtime::Builder::new_current_thread().build().unwrap());
        RUNTIME.block_on(self)
    }
}

impl<F: Future> Wait for F {}

/// Ends this process when it hangs, and says where its threads are.
#[expect(clippy::print_stdout, reason = "the test that waits for it reads it")]
fn end_in_time() {
    thread::sleep(LIFE_MAX);
    for task in fs::read_dir("/proc/self/task").into_iter().flatten().flatten() {
        let told = ["comm", "wchan", "syscall"]
            .map(|name| fs::read_to_string(task.path().join(name)).unwrap_or_default());
        println!("it hangs: {told:?}");
    }
    process::exit(1);
}
