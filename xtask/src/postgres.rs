//! Runs the tests of the store and of the program over PostgreSQL, and once more while its server is
//! killed.
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

/// The integration tests that need a server.
const PROGRAM_TESTS: [&str; 2] = ["postgres::", "service::machines::"];

/// Names the database for the tests.
const ADDRESS_VARIABLE: &str = "SALLYPORT_TEST_POSTGRES";

/// Names the client with which the tests do what an administrator does.
const CLIENT_VARIABLE: &str = "SALLYPORT_TEST_PSQL";

/// A server that ends with this value.
struct Server {
    programs: ServerPrograms,
    data: PathBuf,
    port: u16,
    child: Child,
    _folder: tempfile::TempDir,
}

/// Runs the tests, or says why they are left out. `--download` uses the packages of Debian even if
/// a server is installed.
pub(crate) fn run_postgres_tests(args: &[String]) -> Result<()> {
    let downloads = match args {
        [] => false,
        [flag] if flag == "--download" => true,
        _ => bail!("usage: cargo xtask postgres [--download]"),
    };
    let Some(programs) = ServerPrograms::find(downloads) else {
        println!("left out: the tests over PostgreSQL, which is neither installed nor downloaded");
        return Ok(());
    };
    let store = build_tests("--lib", "sallyport_store")?;
    let program = build_tests("--test=it", "it")?;
    println!("the store's tests over SQLite");
    run_command(&mut Command::new(&store))?;
    let mut server = Server::start(programs)?;
    println!("the store's tests over PostgreSQL at {}", server.address());
    run_command(Command::new(&store).env(ADDRESS_VARIABLE, server.address()))?;
    println!("the program over the same server");
    run_command(server.test_command(&program).args(PROGRAM_TESTS))?;
    println!("the store over the same server, killed {KILLS} times while it is written to");
    run_while_killed(&store, &mut server)
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

/// Builds tests as they are built with all others, and returns the program of one target.
fn build_tests(selection: &str, target: &str) -> Result<PathBuf> {
    let output = cargo_command()
        .args(["test", "--workspace", selection, "--no-run", "--message-format", "json"])
        .stderr(Stdio::inherit())
        .output()
        .context("cannot start cargo")?;
    ensure!(output.status.success(), "the tests do not build");
    let text = String::from_utf8_lossy(&output.stdout);
    let program = text.lines().find_map(|line| {
        let message: serde_json::Value = serde_json::from_str(line).ok()?;
        let is_wanted = message["target"]["name"] == target;
        message["executable"].as_str().filter(|_| is_wanted).map(PathBuf::from)
    });
    program.with_context(|| format!("cargo names no tests of {target}"))
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
