//! A database of its own on the server of the tests, and a proxy before it that a test can cut.

use std::{
    env,
    io::{self, Read, Write},
    net::{Shutdown, TcpListener, TcpStream},
    path::PathBuf,
    process::{self, Command},
    sync::{
        Arc, Mutex,
        atomic::{AtomicBool, AtomicU32, Ordering},
    },
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
    /// An empty database on the server that `cargo xtask postgres` names. Without it, the tests
    /// that need one are ignored.
    pub(crate) fn new() -> Self {
        static NUMBER: AtomicU32 = AtomicU32::new(0);
        let given = |name| env::var(name).expect("cargo xtask postgres names a server");
        let (address, client) = (given("SALLYPORT_TEST_POSTGRES"), given("SALLYPORT_TEST_PSQL"));
        let server = address.strip_prefix("postgres://").unwrap().strip_suffix("/postgres");
        let (client, server) = (client.into(), server.unwrap().to_owned());
        let number = NUMBER.fetch_add(1, Ordering::Relaxed);
        let name = format!("it_{}_{number}", process::id());
        let database = Self { client, server, name };
        database.administer(&format!("CREATE DATABASE {}", database.name));
        database
    }

    /// The configuration of a program that uses the database.
    pub(crate) fn config(&self) -> String {
        let (_, place) = self.server.split_once('@').unwrap();
        self.config_at(place)
    }

    /// The configuration of a program that reaches the database by another host and port.
    pub(crate) fn config_at(&self, place: &str) -> String {
        format!("[store]\nurl = \"{}\"\n", self.address_at(place))
    }

    /// The address, with its password.
    pub(crate) fn address(&self) -> String {
        let (_, place) = self.server.split_once('@').unwrap();
        self.address_at(place)
    }

    fn address_at(&self, place: &str) -> String {
        let (user, _) = self.server.split_once('@').unwrap();
        format!("postgres://{user}:{PASSWORD}@{place}/{}", self.name)
    }

    /// The address as the program shows it.
    pub(crate) fn shown(&self) -> String {
        format!("postgres://{}/{}", self.server, self.name)
    }

    /// A proxy before the server that a test can cut.
    pub(crate) fn proxy(&self) -> DatabaseProxy {
        DatabaseProxy::to(self.server.split_once('@').unwrap().1)
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

/// Passes on what a program says to the database; a test can cut it, as a network does.
pub(crate) struct DatabaseProxy {
    /// Where it listens: host and port.
    pub(crate) address: String,
    connections: Arc<ProxiedConnections>,
}

#[derive(Default)]
struct ProxiedConnections {
    is_cut: AtomicBool,
    streams: Mutex<Vec<TcpStream>>,
}

impl DatabaseProxy {
    fn to(server: &str) -> Self {
        let listener = TcpListener::bind("127.0.0.1:0").unwrap();
        let address = listener.local_addr().unwrap().to_string();
        let connections = Arc::new(ProxiedConnections::default());
        let (server, shared) = (server.to_owned(), Arc::clone(&connections));
        thread::spawn(move || {
            for stream in listener.incoming().flatten() {
                // The server may have ended.
                let _ = shared.connect(stream, &server);
            }
        });
        Self { address, connections }
    }

    /// Ends all connections, and each new one at once.
    pub(crate) fn cut(&self) {
        self.connections.is_cut.store(true, Ordering::SeqCst);
        for stream in self.connections.streams.lock().unwrap().drain(..) {
            // The other side may have ended it.
            let _ = stream.shutdown(Shutdown::Both);
        }
    }

    /// Lets new connections through.
    pub(crate) fn mend(&self) {
        self.connections.is_cut.store(false, Ordering::SeqCst);
    }
}

impl ProxiedConnections {
    fn connect(&self, client: TcpStream, server: &str) -> io::Result<()> {
        let mut streams = self.streams.lock().unwrap();
        if self.is_cut.load(Ordering::SeqCst) {
            return Ok(());
        }
        let server = TcpStream::connect(server)?;
        streams.extend([client.try_clone()?, server.try_clone()?]);
        let there = (client.try_clone()?, server.try_clone()?);
        thread::spawn(move || pass(there.0, there.1));
        thread::spawn(move || pass(server, client));
        Ok(())
    }
}

/// Passes bytes on until one side ends.
fn pass(mut from: TcpStream, mut to: TcpStream) {
    let mut bytes = [0; 16 * 1024];
    while let Ok(count @ 1..) = from.read(&mut bytes) {
        if to.write_all(&bytes[..count]).is_err() {
            break;
        }
    }
    let _ = to.shutdown(Shutdown::Both);
}
