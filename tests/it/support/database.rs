//! A database of its own on the server of the tests.

use std::{
    env,
    path::PathBuf,
    process::{self, Command},
    sync::atomic::{AtomicU32, Ordering},
    thread,
};

/// A password in every address, which no output may show. The server of the tests needs none.
pub(crate) const PASSWORD: &str = "geheim-4711";

/// A database, which goes with the test.
pub(crate) struct Database {
    client: PathBuf,
    /// User, host and port of the server.
    server: String,
    name: String,
}

impl Database {
    /// An empty database; `None` where no server is named (`cargo xtask postgres`).
    pub(crate) fn new() -> Option<Self> {
        static NUMBER: AtomicU32 = AtomicU32::new(0);
        let address = env::var("SALLYPORT_TEST_POSTGRES").ok()?;
        let client = env::var("SALLYPORT_TEST_PSQL").ok()?.into();
        let server = address.strip_prefix("postgres://")?.strip_suffix("/postgres")?.to_owned();
        let number = NUMBER.fetch_add(1, Ordering::Relaxed);
        let name = format!("it_{}_{number}", process::id());
        let database = Self { client, server, name };
        database.administer(&format!("CREATE DATABASE {}", database.name));
        Some(database)
    }

    /// The configuration of a program that uses the database.
    pub(crate) fn config(&self) -> String {
        format!("[store]\nurl = \"{}\"\n", self.address())
    }

    /// The address, with its password.
    pub(crate) fn address(&self) -> String {
        let (user, place) = self.server.split_once('@').unwrap();
        format!("postgres://{user}:{PASSWORD}@{place}/{}", self.name)
    }

    /// The address as the program shows it.
    pub(crate) fn shown(&self) -> String {
        format!("postgres://{}/{}", self.server, self.name)
    }

    /// Does what any program can that opens the database, and returns the values.
    #[track_caller]
    pub(crate) fn sql(&self, sql: &str) -> String {
        self.run(&self.name, sql)
    }

    /// Does what an administrator does to the whole database; `{}` is its name.
    #[track_caller]
    pub(crate) fn administer(&self, sql: &str) {
        self.run("postgres", &sql.replace("{}", &self.name));
    }

    #[track_caller]
    fn run(&self, database: &str, sql: &str) -> String {
        let address = format!("postgres://{}/{database}", self.server);
        let mut client = Command::new(&self.client);
        client.args(["--no-psqlrc", "--quiet", "--tuples-only", "--no-align"]);
        client.args(["--set", "ON_ERROR_STOP=1", "--command", sql, &address]);
        let output = client.output().unwrap();
        assert!(output.status.success(), "{sql}: {}", String::from_utf8_lossy(&output.stderr));
        String::from_utf8(output.stdout).unwrap().trim().to_owned()
    }
}

impl Drop for Database {
    fn drop(&mut self) {
        if !thread::panicking() {
            self.administer("DROP DATABASE {} WITH (FORCE)");
        }
    }
}
