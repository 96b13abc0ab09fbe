//! Runs the tests of the store and of the program over PostgreSQL, while hosts are killed, and while the
//! server is killed.
//!
//! The server is Debian's, in a temporary folder, on a port of the loopback, as a user without
//! rights: it refuses to run as root. Where it cannot be had, the tests are left out, and that is
//! reported.

mod packages;

use std::{
    net::{TcpListener, TcpStream},
    os::unix::{fs::chown, process::CommandExt},
    path::{Path, PathBuf},
    process::{Child, Command, Stdio},
    thread,
    time::{Duration, Instant},
};

use anyhow::{Context, Result, bail, ensure};

use self::packages::ServerPrograms;
use crate::process::{cargo_command, run_command};

/// The user that the server runs as if this task runs as root: nobody.
const NOBODY: u32 = 65534;

/// The superuser of the server, and its database.
const USER: &str = "test";

/// Longest wait for a server that starts.
const START_TIME_MAX: Duration = Duration::from_secs(60);

/// How often the server is killed.
const KILLS: usize = 4;

/// The test that writes meanwhile.
const KILL_TEST: &str = "tests::postgres::faults::what_was_acknowledged_outlives_the_server";

/// The integration tests about a server.
const PROGRAM_TESTS: [&str; 3] = ["postgres::", "service::machines::", "service::outages::"];

/// The test of several hosts that are killed.
const CLUSTER_TEST: &str =
    "service::cluster::hosts_that_are_killed_lose_nothing_and_repeat_nothing";

/// The flags about its size, with the variables that tell the test.
const CLUSTER_FLAGS: [(&str, &str); 3] = [
    ("--sessions", "SALLYPORT_TEST_SESSIONS"),
    ("--kills", "SALLYPORT_TEST_KILLS"),
    ("--seed", "SALLYPORT_TEST_SEED"),
];

/// Names the database for the tests.
const ADDRESS_VARIABLE: &str = "SALLYPORT_TEST_POSTGRES";

/// Names the client with which the tests do what an administrator does.
const CLIENT_VARIABLE: &str = "SALLYPORT_TEST_PSQL";

const USAGE: &str = "usage: cargo xtask postgres [cluster] [--download] [--sessions N] [--kills N] \
                     [--seed N]";

/// A server that ends with this value.
struct Server {
    programs: ServerPrograms,
    data: PathBuf,
    port: u16,
    child: Child,
    _folder: tempfile::TempDir,
}

/// What the arguments ask for.
#[derive(Default)]
struct Wanted {
    /// The packages of Debian are used even if a server is installed.
    downloads: bool,
    /// Only the test of several hosts runs.
    cluster_only: bool,
    /// Variables with their values.
    cluster: Vec<(&'static str, String)>,
}

impl Wanted {
    fn parse(args: &[String]) -> Result<Self> {
        let (mut wanted, mut args) = (Self::default(), args.iter());
        while let Some(flag) = args.next() {
            match flag.as_str() {
                "--download" => wanted.downloads = true,
                "cluster" => wanted.cluster_only = true,
                flag => {
                    let known = CLUSTER_FLAGS.iter().find(|(name, _)| *name == flag);
                    let value = args.next().filter(|value| value.parse::<u64>().is_ok());
                    let (Some((_, variable)), Some(value)) = (known, value) else {
                        bail!("{USAGE}");
                    };
                    wanted.cluster.push((variable, value.clone()));
                }
            }
        }
        Ok(wanted)
    }
}

/// Runs the tests, or says why they are left out.
pub(crate) fn run_postgres_tests(args: &[String]) -> Result<()> {
    let wanted = Wanted::parse(args)?;
    let Some(programs) = ServerPrograms::find(wanted.downloads) else {
        println!("left out: the tests over PostgreSQL, which is neither installed nor downloaded");
        return Ok(());
    };
    let program = build_tests("--test=it", "host")?;
    if wanted.cluster_only {
        return run_cluster(&program, &Server::start(programs)?, &wanted);
    }
    let store = build_tests("--lib", "host/crates/store")?;
    println!("the store's tests over SQLite");
    run_command(&mut Command::new(&store))?;
    let mut server = Server::start(programs)?;
    println!("the store's tests over PostgreSQL at {}", server.address());
    let mut on_server = server.test_command(&store);
    run_command(on_server.args(["--include-ignored", "--skip", KILL_TEST]))?;
    println!("the program over the same server");
    run_command(server.test_command(&program).arg("--include-ignored").args(PROGRAM_TESTS))?;
    run_cluster(&program, &server, &wanted)?;
    println!("the store over the same server, killed {KILLS} times while it is written to");
    run_while_killed(&store, &mut server)
}

fn run_cluster(program: &Path, server: &Server, wanted: &Wanted) -> Result<()> {
    println!("several hosts over the same server, killed while users talk");
    let mut test = server.test_command(program);
    test.args(["--exact", "--ignored", "--nocapture", CLUSTER_TEST]);
    run_command(test.envs(wanted.cluster.iter().map(|(name, value)| (name, value))))
}

fn run_while_killed(test: &Path, server: &mut Server) -> Result<()> {
    let mut writer = Command::new(test)
        .args(["--exact", "--ignored", "--nocapture", KILL_TEST])
        .env(ADDRESS_VARIABLE, server.address())
        .spawn()
        .context("cannot start the tests")?;
    let mut kills = 0;
    while kills < KILLS && writer.try_wait()?.is_none() {
        thread::sleep(Duration::from_millis(1500));
        server.kill_and_restart()?;
        kills += 1;
    }
    ensure!(writer.wait()?.success(), "something was lost with the server");
    ensure!(kills == KILLS, "the writer ended before the server was killed {KILLS} times");
    Ok(())
}

/// Builds tests as they are built with all others, and returns the program of the package in a folder.
fn build_tests(selection: &str, folder: &str) -> Result<PathBuf> {
    let output = cargo_command()
        .args(["test", "--workspace", selection, "--no-run", "--message-format", "json"])
        .stderr(Stdio::inherit())
        .output()
        .context("cannot start cargo")?;
    ensure!(output.status.success(), "the tests do not build");
    let text = String::from_utf8_lossy(&output.stdout);
    let manifest = format!("/{folder}/Cargo.toml");
    let program = text.lines().find_map(|line| {
        let message: serde_json::Value = serde_json::from_str(line).ok()?;
        // The program that the tests run is among the messages too.
        let is_test = message["profile"]["test"] == true;
        let is_wanted = is_test && message["manifest_path"].as_str()?.ends_with(&manifest);
        message["executable"].as_str().filter(|_| is_wanted).map(PathBuf::from)
    });
    program.with_context(|| format!("cargo names no tests of {folder}"))
}

impl Server {
    fn start(programs: ServerPrograms) -> Result<Self> {
        let folder = tempfile::tempdir()?;
        if rustix::process::geteuid().is_root() {
            chown(folder.path(), Some(NOBODY), Some(NOBODY))?;
        }
        let data = folder.path().join("data");
        let mut initdb = unprivileged(&programs, "initdb");
        initdb.arg("--pgdata").arg(&data).args(["--username", USER, "--auth", "trust"]);
        run_command(initdb.args(["--encoding", "UTF8", "--no-locale"]).stdout(Stdio::null()))?;
        let port = TcpListener::bind("127.0.0.1:0")?.local_addr()?.port();
        let child = start_server(&programs, &data, port)?;
        let mut server = Self { programs, data, port, child, _folder: folder };
        server.wait_until_ready()?;
        Ok(server)
    }

    /// Runs tests that may use the server.
    fn test_command(&self, tests: &Path) -> Command {
        let mut command = Command::new(tests);
        command.env(ADDRESS_VARIABLE, self.address());
        command.env(CLIENT_VARIABLE, self.programs.path("psql"));
        command
    }

    fn address(&self) -> String {
        format!("postgres://{USER}@127.0.0.1:{}/postgres", self.port)
    }

    /// Ends the server as a failure of the machine does, and starts it again with its files.
    fn kill_and_restart(&mut self) -> Result<()> {
        self.child.kill()?;
        self.child.wait()?;
        // Its processes end when they notice that it is gone; until then it refuses to start.
        let begun = Instant::now();
        while begun.elapsed() < START_TIME_MAX {
            self.child = start_server(&self.programs, &self.data, self.port)?;
            if self.wait_until_ready().is_ok() {
                return Ok(());
            }
            thread::sleep(Duration::from_millis(100));
        }
        bail!("the server does not start again")
    }

    fn wait_until_ready(&mut self) -> Result<()> {
        let begun = Instant::now();
        while begun.elapsed() < START_TIME_MAX {
            if let Some(status) = self.child.try_wait()? {
                bail!("the server ended with {status}");
            }
            if TcpStream::connect(("127.0.0.1", self.port)).is_ok() && self.is_ready() {
                return Ok(());
            }
            thread::sleep(Duration::from_millis(50));
        }
        bail!("the server does not answer")
    }

    fn is_ready(&self) -> bool {
        let mut check = unprivileged(&self.programs, "pg_isready");
        check.args(["--quiet", "--host", "127.0.0.1", "--port", &self.port.to_string()]);
        check.status().is_ok_and(|status| status.success())
    }
}

impl Drop for Server {
    fn drop(&mut self) {
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}

fn start_server(programs: &ServerPrograms, data: &Path, port: u16) -> Result<Child> {
    unprivileged(programs, "postgres")
        .arg("-D")
        .arg(data)
        .args(["-p", &port.to_string(), "-c", "listen_addresses=127.0.0.1"])
        .args(["-c", "unix_socket_directories=", "-c", "max_connections=300"])
        .stdout(Stdio::null())
        .stderr(Stdio::null())
        .spawn()
        .context("cannot start the server")
}

/// A program that runs as a user without rights, in a folder that this user may read.
fn unprivileged(programs: &ServerPrograms, name: &str) -> Command {
    let mut command = programs.command(name);
    command.current_dir("/");
    if rustix::process::geteuid().is_root() {
        command.uid(NOBODY).gid(NOBODY);
    }
    command
}
