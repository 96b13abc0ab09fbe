//! Tests of the crate against databases, heads and keys that somebody has been at.

use std::{fs, path::Path, time::Duration};

use rusqlite::Connection;
use tempfile::TempDir;

use crate::{
    AuditFilter, AuditKind, AuditLog, AuditRecord, Entry, Store, Verification, audit::Who,
    database::FILE,
};

mod approvals;
mod crash;
mod folder;
mod log;
mod mend;
mod property;
mod prune;
mod read;
mod record;
mod sessions;
mod tamper;

/// Far more than any of these tests needs; a hanging test still ends.
const PATIENCE: Duration = Duration::from_secs(60);

/// A store in a folder of its own, which goes with it.
struct Fixture {
    _parent: TempDir,
    store: Store,
}

impl Fixture {
    fn new() -> Self {
        let parent = TempDir::new().unwrap();
        let store = Store::open(&parent.path().join("store")).unwrap();
        Self { _parent: parent, store }
    }

    /// A store with records 1 to `count`.
    fn with_records(count: u64) -> Self {
        let fixture = Self::new();
        fixture.append(1..=count);
        fixture
    }

    /// A copy of what is on the disk, as another start of the program finds it.
    fn copy(&self) -> Self {
        let copy = Self::new();
        for entry in fs::read_dir(self.path()).unwrap() {
            let entry = entry.unwrap();
            fs::copy(entry.path(), copy.path().join(entry.file_name())).unwrap();
        }
        copy
    }

    fn path(&self) -> &Path {
        self.store.folder()
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

    fn verify(&self) -> Verification {
        self.store.audit().verify(None).unwrap()
    }

    /// The problems as lines, for comparison.
    fn problems(&self) -> Vec<String> {
        self.verify().problems.iter().map(ToString::to_string).collect()
    }

    fn entries(&self, filter: AuditFilter) -> Vec<Entry> {
        self.store.audit().records(filter).map(Result::unwrap).collect()
    }

    /// Does what any program can that opens the file.
    fn sql(&self, text: &str) {
        let connection = Connection::open(self.path().join(FILE)).unwrap();
        connection.execute_batch(text).unwrap();
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
        ..AuditRecord::new(AuditKind::Call, 1000 * number, Who::of_process("me"))
    }
}
