//! The folder and its files: private, made as they should be, opened by many at once, and never
//! touched when they are not ours to touch.

use std::{
    os::unix::fs::{PermissionsExt, symlink},
    sync::Barrier,
    thread,
};

use super::*;
use crate::{
    NewSession, SessionFilter, StoreError,
    sqlite::{database::LOG_BYTES_MAX, migration, transaction_error},
};

fn chmod(path: &Path, mode: u32) {
    fs::set_permissions(path, fs::Permissions::from_mode(mode)).unwrap();
}

fn mode(path: &Path) -> u32 {
    fs::metadata(path).unwrap().permissions().mode() & 0o777
}

#[test]
fn everything_is_made_private() {
    let parent = TempDir::new().unwrap();
    let folder = parent.path().join("a/b");
    let store = HostStore::open(&folder).unwrap();
    drop(store.audit_log());
    assert_eq!(mode(&folder), 0o700);
    let mut names: Vec<String> = Vec::new();
    for entry in fs::read_dir(&folder).unwrap() {
        let entry = entry.unwrap();
        assert_eq!(mode(&entry.path()), 0o600, "{:?}", entry.path());
        names.push(entry.file_name().into_string().unwrap());
    }
    names.sort();
    assert_eq!(names, ["audit.head", "audit.key", FILE, "store.sqlite3-shm", "store.sqlite3-wal"]);
}

/// Each of many commands writes a little. What the log still holds, the next one has to read.
#[test]
fn the_log_of_writes_does_not_grow_from_command_to_command() {
    let fixture = Fixture::sqlite();
    for number in 1..=150 {
        Fixture { store: HostStore::open(fixture.path()).unwrap(), ..Fixture::sqlite() }
            .append([number]);
    }
    let log = fs::metadata(fixture.path().join("store.sqlite3-wal")).unwrap();
    assert!(log.len() < 2 * LOG_BYTES_MAX, "{} bytes", log.len());
    assert_eq!((fixture.verify().records, fixture.problems()), (150, vec![]));
}

#[test]
fn opening_makes_a_folder_and_no_more() {
    let parent = TempDir::new().unwrap();
    let folder = parent.path().join("store");
    HostStore::open(&folder).unwrap();
    assert_eq!(fs::read_dir(&folder).unwrap().count(), 0);
}

/// Spoils a folder with a database in it, and compares why it is refused.
fn check_refused(spoil: impl FnOnce(&Path, &Path), want: &str, hint: &str) {
    let parent = TempDir::new().unwrap();
    let folder = parent.path().join("store");
    drop(HostStore::open(&folder).unwrap().audit_log());
    spoil(&folder, parent.path());
    let error = HostStore::open(&folder).unwrap_err();
    assert!(error.to_string().ends_with(want), "{error}");
    assert!(error.hint().unwrap().contains(hint), "{error:?}");
}

#[test]
fn what_is_not_private_is_not_used() {
    for bits in [0o710, 0o701, 0o750, 0o777] {
        check_refused(|folder, _| chmod(folder, bits), "others can use it", "chmod 700 /");
    }
    for bits in [0o640, 0o604, 0o620, 0o666] {
        let spoil = |folder: &Path, _: &Path| chmod(&folder.join(FILE), bits);
        check_refused(spoil, "others can use it", "chmod 600 /");
    }
    let moved = |path: &Path, parent: &Path| {
        let elsewhere = parent.join("elsewhere");
        fs::rename(path, &elsewhere).unwrap();
        symlink(&elsewhere, path).unwrap();
    };
    check_refused(moved, "it is a link", "");
    check_refused(|folder, parent| moved(&folder.join(FILE), parent), "it is not a plain file", "");
    check_refused(
        |folder, _| {
            fs::remove_dir_all(folder).unwrap();
            fs::write(folder, "").unwrap();
        },
        "File exists (os error 17)",
        "check the folder",
    );
}

/// Key and head are read again for every group of records.
#[test]
fn a_key_or_head_that_is_not_private_ends_the_log() {
    for name in ["audit.key", "audit.head"] {
        let fixture = Fixture::sqlite_with_records(1);
        let path = fixture.path().join(name);
        chmod(&path, 0o644);
        let error = fixture.store.audit_log().flush(PATIENCE).unwrap_err();
        assert!(error.to_string().ends_with("is not private: others can use it"), "{error}");
        assert!(fixture.store.audit.verify(None).wait().is_err());
        chmod(&path, 0o600);
        let elsewhere = fixture.path().join("elsewhere");
        fs::rename(&path, &elsewhere).unwrap();
        symlink(&elsewhere, &path).unwrap();
        assert!(fixture.store.audit_log().flush(PATIENCE).is_err(), "{name} is a link");
    }
}

#[test]
fn a_newer_database_is_not_touched() {
    let fixture = Fixture::sqlite_with_records(3);
    for form in [migration::NEWEST + 1, 99, -1] {
        fixture.sql(&format!("PRAGMA user_version = {form}"));
        let before = fs::read(fixture.path().join(FILE)).unwrap();
        let fresh = HostStore::open(fixture.path()).unwrap();
        let error = fresh.audit.verify(None).wait().unwrap_err();
        let newest = migration::NEWEST;
        let want = format!("has the form {form}, this program knows forms up to {newest}");
        assert!(error.to_string().ends_with(&want), "{error}");
        assert!(matches!(error, StoreError::NewerSchema { .. }));
        drop(fresh);
        assert_eq!(before, fs::read(fixture.path().join(FILE)).unwrap());
    }
}

/// A database of an earlier form, with a record and an approval where that form has them.
pub(super) fn of_form(form: usize) -> Fixture {
    let fixture = Fixture::sqlite();
    let path = fixture.path().join(FILE);
    fs::write(&path, "").unwrap();
    chmod(&path, 0o600);
    for step in migration::STEPS[..form].iter().copied().flatten() {
        fixture.sql(step);
    }
    fixture.sql(&format!("PRAGMA user_version = {form}"));
    if form >= 1 {
        let whole = Fixture::sqlite_with_records(1);
        for file in ["audit.key", "audit.head"] {
            fs::copy(whole.path().join(file), fixture.path().join(file)).unwrap();
        }
        let from = whole.path().join(FILE);
        let copy = "INSERT INTO audit SELECT * FROM other.audit; DETACH other";
        fixture.sql(&format!("ATTACH '{}' AS other; {copy}", from.display()));
    }
    if form >= 2 {
        let user = if form >= 9 { "'local', " } else { "" };
        let values = "'s-1', 'p', 'd', 't', 's', 'r', 1000";
        fixture.sql(&format!("INSERT INTO approval VALUES ({user}{values})"));
    }
    if form >= 3 {
        insert_body(&fixture);
        fixture.sql(
            "INSERT INTO session (key, id, title, model, folder, created_ms, updated_ms, parent_id,
                 parent_records, records, turns, tokens, cost_micro_usd) VALUES
                 (7, 's-0', 'A title', 'small', NULL, 1, 2, NULL, 0, 1, 1, 10, NULL);
             INSERT INTO record VALUES (7, 0, 2, 'input', 3, 1, 10, NULL);
             INSERT INTO words (rowid, text) VALUES (3, 'a needle');",
        );
    }
    fixture
}

/// A body as its own program keeps it; its hash cannot be written in SQL.
fn insert_body(fixture: &Fixture) {
    let connection = Connection::open(fixture.path().join(FILE)).unwrap();
    let hash = blake3::hash(b"a needle");
    let sql = "INSERT INTO body (key, hash, text) VALUES (3, ?1, 'a needle')";
    connection.execute(sql, [hash.as_bytes()]).unwrap();
}

/// What earlier programs wrote is there, and what they did not know can be used.
#[test]
fn steps_are_taken_from_every_form() {
    for form in 0..=migration::STEPS.len() {
        let fixture = of_form(form);
        let (store, opened_again) = (&fixture.store, HostStore::open(fixture.path()).unwrap());
        assert_eq!(store.audit.verify(None).wait().unwrap().records, form.min(1) as u64);
        let new = NewSession {
            user: USER.to_owned(),
            id: "s-1".to_owned(),
            title: "".to_owned(),
            model: "".to_owned(),
            folder: None,
            created_ms: 0,
        };
        store.sessions.create(new).wait().unwrap();
        let before = usize::from(form >= 3);
        let sessions = opened_again.sessions.list(SessionFilter::of_user(USER)).wait().unwrap();
        assert_eq!(sessions.len(), 1 + before);
        assert_eq!(
            opened_again.sessions.search_records(USER, "needle", 9).wait().unwrap().len(),
            before
        );
        if form >= 3 {
            let session = store.sessions.get(USER, "s-0").wait().unwrap();
            let records = store.sessions.read_page(&session, 0).wait().unwrap();
            assert_eq!(records[0].body, "a needle");
            assert!(store.sessions.get("ann", "s-0").wait().is_err(), "it is the local user's");
        }
        if form >= 2 {
            let approved = |user: &str| {
                let of_user = approvals::approval_of_earlier_forms(user);
                store.approvals.is_approved(&of_user).wait().unwrap()
            };
            assert!(approved(USER) && !approved("ann"));
        }
        assert_eq!(store.state.list_owners().wait().unwrap(), []);
        assert_eq!(store.timers.next_due_ms(0).wait().unwrap(), None);
        assert!(store.notices.take_batch("me", "s-0", 0).wait().unwrap().is_empty());
        assert_eq!(store.presence.list_open(0).wait().unwrap(), []);
        assert_eq!(store.memories.list_newest("me", 9).wait().unwrap(), []);
        assert_eq!(store.approvals.forget_session("s-1").wait().unwrap(), usize::from(form >= 2));
    }
}

#[test]
fn a_failure_to_open_is_not_kept() {
    let fixture = Fixture::sqlite_with_records(2);
    fixture.sql("PRAGMA user_version = 99");
    assert!(fixture.store.audit.verify(None).wait().is_err());
    fixture.sql(&format!("PRAGMA user_version = {}", migration::NEWEST));
    assert!(fixture.verify().is_intact());
}

/// All of them make the folder, the database, its form and the key, or find them made.
#[test]
fn many_can_open_a_new_store_at_once() {
    const OPENERS: usize = 8;
    for _ in 0..5 {
        let parent = TempDir::new().unwrap();
        let folder = parent.path().join("store");
        let start = Barrier::new(OPENERS);
        thread::scope(|scope| {
            for number in 0..OPENERS {
                let (start, folder) = (&start, &folder);
                scope.spawn(move || {
                    start.wait();
                    let log = HostStore::open(folder).unwrap().audit_log();
                    log.append(record(number as u64)).unwrap();
                    log.flush(PATIENCE).unwrap();
                    assert_eq!(log.warnings(), []);
                });
            }
        });
        let seen = HostStore::open(&folder).unwrap().audit.verify(None).wait().unwrap();
        assert_eq!((seen.records, seen.problems), (OPENERS as u64, vec![]));
    }
}

/// What the database says comes out as what people can do something about.
#[test]
fn errors_of_the_database_are_sorted() {
    let fixture = Fixture::sqlite_with_records(1);
    let connection = crate::sqlite::database::open_database(fixture.path()).unwrap();
    connection.execute_batch("PRAGMA max_page_count = 1").unwrap();
    let failed = |error| transaction_error::from_sql(fixture.path().join(FILE), &error);
    let full = connection.execute_batch("CREATE TABLE big AS SELECT zeroblob(1 << 20)");
    assert!(matches!(full.map_err(failed), Err(StoreError::Full { .. })));
    let holder = Connection::open(fixture.path().join(FILE)).unwrap();
    holder.execute_batch("BEGIN IMMEDIATE").unwrap();
    connection.busy_timeout(Duration::ZERO).unwrap();
    let busy = connection.execute_batch("BEGIN IMMEDIATE").map_err(failed);
    assert!(matches!(busy, Err(StoreError::Busy { .. })));
    let other = connection.execute_batch("SELECT nothing").map_err(failed);
    assert!(matches!(other, Err(StoreError::Database { .. })));
}
