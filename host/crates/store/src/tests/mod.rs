//! Tests of the crate against databases, heads and keys that somebody has been at.

use std::{
    fs,
    path::Path,
    sync::{
        Arc, LazyLock,
        atomic::{AtomicU64, Ordering},
    },
    time::Duration,
};

use rusqlite::Connection;
use sallyport_contract::{DataOwner, LOCAL_USER};
use tempfile::TempDir;
use tokio::runtime::{self, Runtime};

use crate::{
    AuditEntry, AuditFilter, AuditKind, AuditLog, AuditRecord, AuditVerification, HostStore,
    audit::HostUser,
    process::ProcessIdentity,
    sqlite::{SqliteStore, database::FILE},
};

mod approvals;
mod connections;
mod crash;
mod folder;
mod idempotency;
mod log;
mod memories;
mod mend;
mod notices;
#[cfg(feature = "postgres")]
mod postgres;
mod presence;
mod property;
mod prune;
mod questions;
mod read;
mod record;
mod sessions;
mod state;
mod tamper;
mod tasks;
mod timers;
mod users;

/// Far more than any of these tests needs; a hanging test still ends.
const PATIENCE: Duration = Duration::from_secs(60);

/// The user of the sessions of tests that are about something else.
const USER: &str = LOCAL_USER;

/// A store of its own, which goes with it. Tests of what every store does run on SQLite, and once
/// more on PostgreSQL where a server is named (`cargo xtask postgres`).
struct Fixture {
    _parent: TempDir,
    backend: Backend,
    store: HostStore,
}

/// The database behind a fixture.
enum Backend {
    Sqlite(SqliteStore),
    #[cfg(feature = "postgres")]
    Postgres(postgres::TestSchema),
}

impl Fixture {
    /// A store in the database that this run is about.
    fn new() -> Self {
        #[cfg(feature = "postgres")]
        if let Some(address) = postgres::test_address() {
            let parent = TempDir::new().unwrap();
            let schema = postgres::TestSchema::new(address, &parent.path().join("store"));
            let store = HostStore::from_parts(schema.store.clone());
            return Self { _parent: parent, backend: Backend::Postgres(schema), store };
        }
        Self::sqlite()
    }

    /// A store in SQLite, for tests of its files.
    fn sqlite() -> Self {
        let parent = TempDir::new().unwrap();
        let sqlite = SqliteStore::open(&parent.path().join("store")).unwrap();
        let store = HostStore::from_sqlite(sqlite.clone());
        Self { _parent: parent, backend: Backend::Sqlite(sqlite), store }
    }

    /// A store with records 1 to `count`.
    fn with_records(count: u64) -> Self {
        let fixture = Self::new();
        fixture.append(1..=count);
        fixture
    }

    /// [`with_records`](Self::with_records), in SQLite.
    fn sqlite_with_records(count: u64) -> Self {
        let fixture = Self::sqlite();
        fixture.append(1..=count);
        fixture
    }

    /// The store in SQLite, in tests of it.
    fn sqlite_store(&self) -> &SqliteStore {
        match &self.backend {
            Backend::Sqlite(sqlite) => sqlite,
            #[cfg(feature = "postgres")]
            Backend::Postgres(_) => panic!("the test is about SQLite"),
        }
    }

    /// Whether the store is in SQLite.
    fn is_sqlite(&self) -> bool {
        matches!(self.backend, Backend::Sqlite(_))
    }

    /// A copy of what is on the disk, as another start of the program finds it.
    fn copy(&self) -> Self {
        let copy = Self::sqlite();
        for entry in fs::read_dir(self.path()).unwrap() {
            let entry = entry.unwrap();
            fs::copy(entry.path(), copy.path().join(entry.file_name())).unwrap();
        }
        copy
    }

    /// The same store as another start of the program opens it.
    fn reopen(&self) -> HostStore {
        match &self.backend {
            Backend::Sqlite(_) => HostStore::open(self.path()).unwrap(),
            #[cfg(feature = "postgres")]
            Backend::Postgres(schema) => HostStore::from_parts(schema.reopen()),
        }
    }

    /// The store by another clock.
    fn with_clock(&self, clock: Arc<dyn Fn() -> u64 + Send + Sync>) -> HostStore {
        match &self.backend {
            Backend::Sqlite(sqlite) => {
                let mut sqlite = sqlite.clone();
                sqlite.clock = clock;
                HostStore::from_sqlite(sqlite)
            }
            #[cfg(feature = "postgres")]
            Backend::Postgres(schema) => HostStore::from_parts(schema.with_clock(clock)),
        }
    }

    fn path(&self) -> &Path {
        match &self.backend {
            Backend::Sqlite(sqlite) => sqlite.folder(),
            #[cfg(feature = "postgres")]
            Backend::Postgres(schema) => schema.folder(),
        }
    }

    /// Makes what this process holds in a table another's.
    fn hand_over(&self, table: &str, other: Other) {
        let name = other.name();
        self.sql(&format!("UPDATE {table} SET process = '{name}' WHERE process IS NOT NULL"));
        #[cfg(feature = "postgres")]
        if let (Backend::Postgres(schema), Other::Elsewhere) = (&self.backend, other) {
            schema.give_lease(&name);
        }
    }

    fn append(&self, numbers: impl IntoIterator<Item = u64>) {
        let log = self.log();
        for number in numbers {
            log.append(record(number)).unwrap();
        }
        log.flush(PATIENCE).unwrap();
    }

    /// A log that is open.
    fn log(&self) -> AuditLog {
        let log = self.store.audit_log();
        log.flush(PATIENCE).unwrap();
        log
    }

    fn verify(&self) -> AuditVerification {
        self.store.audit.verify(None).wait().unwrap()
    }

    /// The problems as lines, for comparison.
    fn problems(&self) -> Vec<String> {
        self.verify().problems.iter().map(ToString::to_string).collect()
    }

    fn entries(&self, filter: AuditFilter) -> Vec<AuditEntry> {
        self.store.audit.read_records(filter).wait().unwrap()
    }

    /// Does what any program can that opens the database.
    fn sql(&self, text: &str) {
        match &self.backend {
            Backend::Sqlite(_) => {
                let connection = Connection::open(self.path().join(FILE)).unwrap();
                connection.execute_batch(text).unwrap();
            }
            #[cfg(feature = "postgres")]
            Backend::Postgres(schema) => schema.sql(text),
        }
    }

    /// A number that the database itself counts.
    fn count(&self, sql: &str) -> u64 {
        match &self.backend {
            Backend::Sqlite(_) => {
                let connection = Connection::open(self.path().join(FILE)).unwrap();
                connection.query_row(sql, (), |row| row.get::<_, i64>(0)).unwrap() as u64
            }
            #[cfg(feature = "postgres")]
            Backend::Postgres(schema) => schema.count(sql),
        }
    }
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

/// A clock that a test sets.
#[derive(Clone, Default)]
struct Hands(Arc<AtomicU64>);

impl Hands {
    fn set(&self, now_ms: u64) {
        self.0.store(now_ms, Ordering::SeqCst);
    }

    /// The store of a fixture, by this clock.
    fn store(&self, fixture: &Fixture) -> HostStore {
        let hands = self.clone();
        fixture.with_clock(Arc::new(move || hands.0.load(Ordering::SeqCst)))
    }
}

/// The plugin `plugin` of the user `user`.
fn owner(plugin: &str, user: &str) -> DataOwner {
    DataOwner { plugin: plugin.parse().unwrap(), user: user.to_owned() }
}

/// Other processes, by what this one can tell of them.
#[derive(Clone, Copy)]
enum Other {
    /// Its number is given to nobody.
    Ended,
    /// Its number is given to this process, which started later.
    Replaced,
    /// It ran before the machine was started again.
    BeforeTheStart,
    /// It runs in another container.
    Elsewhere,
}

impl Other {
    fn name(self) -> String {
        let own = ProcessIdentity::current_process().to_string();
        let mut parts: Vec<&str> = own.split(' ').collect();
        match self {
            Self::Ended => parts[2] = "2147483647",
            Self::Replaced => parts[3] = "1",
            Self::BeforeTheStart => parts[0] = "another-start",
            Self::Elsewhere => parts[1] = "pid:[1]",
        }
        parts.join(" ")
    }
}

/// A record that can be told from others: its number is in its time, its call and its message.
fn record(number: u64) -> AuditRecord {
    AuditRecord {
        session: Some("s-1".to_owned()),
        call: Some(format!("c-{number}")),
        plugin: Some("weather".to_owned()),
        tool: Some("get_weather".to_owned()),
        message: Some(format!("message {number}")),
        ..AuditRecord::new(AuditKind::Call, 1000 * number, HostUser::from_process("me"))
    }
}
