//! The audit log: nothing that was taken is lost, and nothing is taken that cannot be written.

use std::{
    pin::pin,
    sync::atomic::AtomicUsize,
    task::{Context, Waker},
    thread,
    time::Instant,
};

use super::*;
use crate::{
    AuditError,
    audit::{AuditWriter, problem::AuditProblem},
    error::StoreError,
    sqlite::migration,
};

/// A log that cannot be opened, and the end of the message.
fn check_closed(spoil: impl FnOnce(&Fixture), want: &str) {
    let fixture = Fixture::sqlite();
    spoil(&fixture);
    let log = fixture.store.audit_log();
    let error = log.flush(PATIENCE).unwrap_err();
    assert!(error.to_string().contains(want), "{error}");
    assert!(error.hint().is_some(), "{error}");
    for _ in 0..3 {
        assert_eq!(log.append(record(1)).unwrap_err().to_string(), error.to_string());
    }
    assert_eq!(log.flush(PATIENCE).unwrap_err().to_string(), error.to_string());
}

#[test]
fn a_log_that_cannot_be_written_takes_nothing() {
    check_closed(
        |fixture| {
            drop(fixture.log());
            fs::remove_file(fixture.path().join("store.sqlite3-wal")).unwrap();
            fs::write(fixture.path().join(FILE), "no database".repeat(100)).unwrap();
        },
        "is damaged: file is not a database",
    );
    check_closed(|fixture| fs::create_dir(fixture.path().join(FILE)).unwrap(), "not a plain file");
    check_closed(
        |fixture| fs::create_dir(fixture.path().join("audit.head")).unwrap(),
        "not a plain file",
    );
    check_closed(
        |fixture| fs::create_dir(fixture.path().join("audit.key")).unwrap(),
        "not a plain file",
    );
    check_closed(
        |fixture| fs::remove_dir_all(fixture.path()).unwrap(),
        "No such file or directory",
    );
    check_closed(
        |fixture| {
            drop(fixture.log());
            fixture.sql("PRAGMA user_version = 99");
        },
        &format!("has the form 99, this program knows forms up to {}", migration::NEWEST),
    );
}

/// Waits for a future that a thread completes.
fn wait<T>(future: impl Future<Output = T>) -> T {
    let runtime = tokio::runtime::Builder::new_current_thread().build().unwrap();
    runtime.block_on(future)
}

/// The log works, then its head cannot be written, then it can again.
#[test]
fn a_failure_on_the_way_refuses_what_is_new_and_keeps_what_was_done() {
    let fixture = Fixture::sqlite();
    let log = fixture.log();
    wait(log.commit(record(1))).unwrap();
    let head = fixture.path().join("audit.head");
    fs::remove_file(&head).unwrap();
    fs::create_dir(&head).unwrap();
    assert!(matches!(wait(log.commit(record(2))), Err(AuditError::Failed(_))));
    assert!(matches!(log.append(record(3)), Err(AuditError::Failed(_))));
    log.append_completed(record(4));
    assert!(matches!(log.flush(PATIENCE), Err(AuditError::Failed(_))));
    fs::remove_dir(&head).unwrap();
    log.append_completed(record(5));
    // As long as nobody tries, nothing is taken.
    assert!(matches!(log.append(record(6)), Err(AuditError::Failed(_))));
    wait(log.commit(record(7))).unwrap();
    assert!(log.failure().is_none());
    log.append(record(8)).unwrap();
    drop(log);
    let calls: Vec<_> = fixture
        .entries(AuditFilter { kind: Some(AuditKind::Call), ..AuditFilter::default() })
        .into_iter()
        .map(|entry| entry.record.unwrap().at_ms / 1000)
        .collect();
    assert_eq!(calls, [1, 4, 5, 7, 8]);
}

#[test]
fn what_is_committed_is_named_by_the_head_when_it_is_told() {
    let fixture = Fixture::sqlite();
    let log = fixture.log();
    log.append(record(1)).unwrap();
    wait(log.commit(record(2))).unwrap();
    // As a failure of the power at this moment leaves it.
    let copy = fixture.copy();
    copy.sql("DELETE FROM audit WHERE seq > 1");
    assert_eq!(copy.problems(), ["record 2: cut off"]);
}

#[test]
fn what_nobody_waits_for_is_named_by_the_head_soon() {
    let fixture = Fixture::sqlite();
    let log = fixture.log();
    let head = || fs::read(fixture.path().join("audit.head")).unwrap();
    let before = head();
    log.append(record(1)).unwrap();
    while head() == before {
        thread::yield_now();
    }
    let copy = fixture.copy();
    copy.sql("DELETE FROM audit");
    assert_eq!(copy.problems(), ["record 1: cut off"]);
}

#[test]
fn a_commit_that_nobody_waits_for_any_more_is_written_all_the_same() {
    let fixture = Fixture::new();
    let log = fixture.log();
    drop(log.commit(record(1)));
    drop(log);
    assert_eq!(fixture.verify().records, 1);
}

#[test]
fn a_dropped_log_has_written_everything() {
    let fixture = Fixture::new();
    let log = fixture.store.audit_log();
    for number in 1..=3000 {
        log.append(record(number)).unwrap();
    }
    drop(log);
    assert_eq!((fixture.verify().records, fixture.problems()), (3000, vec![]));
}

/// A process that holds the database keeps the writer waiting. An append is refused when too many
/// records wait, and a flush fails when it takes too long.
#[test]
fn the_queue_is_bounded_and_a_flush_ends() {
    let fixture = Fixture::sqlite();
    let log = fixture.log();
    let holder = Connection::open(fixture.path().join(FILE)).unwrap();
    holder.execute_batch("BEGIN IMMEDIATE").unwrap();
    let refused = (0..).find_map(|number| log.append(record(number)).err()).unwrap();
    assert!(matches!(refused, AuditError::QueueFull { records_max: 4096 }), "{refused}");
    let late = log.flush(Duration::from_millis(10)).unwrap_err();
    assert!(matches!(late, AuditError::TimedOut { records: 4096.., .. }), "{late}");
    holder.execute_batch("ROLLBACK").unwrap();
    log.flush(PATIENCE).unwrap();
    log.append(record(1)).unwrap();
    log.flush(PATIENCE).unwrap();
    assert!(fixture.verify().records > 4096);
}

/// Calls in quick succession were refused while the disk was busy for some hundred milliseconds.
#[test]
fn a_record_was_refused_because_the_disk_was_busy_for_a_moment() {
    let fixture = Fixture::sqlite();
    let log = fixture.log();
    let holder = Connection::open(fixture.path().join(FILE)).unwrap();
    holder.execute_batch("BEGIN IMMEDIATE").unwrap();
    while log.append(record(1)).is_ok() {}
    let mut late = Some(record(2));
    let mut context = Context::from_waker(Waker::noop());
    // One who stops waiting still has the record.
    assert!(pin!(log.append_when_possible(&mut late)).poll(&mut context).is_pending());
    assert!(late.is_some());
    let mut appended = pin!(log.append_when_possible(&mut late));
    assert!(appended.as_mut().poll(&mut context).is_pending());
    holder.execute_batch("ROLLBACK").unwrap();
    wait(appended).unwrap();
    log.flush(PATIENCE).unwrap();
    assert!(fixture.verify().records > 4096);
    assert_eq!(fixture.problems(), [""; 0]);
}

/// Whoever would have waited was refused before the thread was asked to try again.
#[test]
fn a_failure_with_a_full_queue_was_never_tried_again() {
    let fixture = Fixture::sqlite();
    let log = fixture.log();
    wait(log.commit(record(1))).unwrap();
    let head = fixture.path().join("audit.head");
    let fail_with_full_queue = || {
        fs::remove_file(&head).unwrap();
        fs::create_dir(&head).unwrap();
        assert!(wait(log.commit(record(2))).is_err());
        (0..4096).for_each(|number| log.append_completed(record(number)));
        assert!(wait(log.append_when_possible(&mut Some(record(3)))).is_err());
        fs::remove_dir(&head).unwrap();
    };
    fail_with_full_queue();
    wait(log.append_when_possible(&mut Some(record(4)))).unwrap();
    log.flush(PATIENCE).unwrap();
    fail_with_full_queue();
    while let Err(error) = log.commit_within(record(5), PATIENCE) {
        assert!(matches!(error, AuditError::QueueFull { .. }), "{error}");
        thread::yield_now();
    }
    // The log also says where its head was missing.
    assert!(fixture.verify().records >= 3 + 2 * 4096);
}

#[test]
fn many_threads_and_logs_make_one_chain() {
    const LOGS: u64 = 4;
    const RECORDS: u64 = 250;
    let fixture = Fixture::new();
    thread::scope(|scope| {
        for log in 0..LOGS {
            let fixture = &fixture;
            scope.spawn(move || {
                let log_of_its_own = fixture.reopen().audit_log();
                for number in 0..RECORDS {
                    log_of_its_own.append(record(log * RECORDS + number)).unwrap();
                }
                log_of_its_own.flush(PATIENCE).unwrap();
            });
        }
    });
    assert_eq!((fixture.verify().records, fixture.problems()), (LOGS * RECORDS, vec![]));
    let mut times: Vec<u64> = fixture
        .entries(AuditFilter::default())
        .into_iter()
        .map(|entry| entry.record.unwrap().at_ms / 1000)
        .collect();
    times.sort_unstable();
    assert_eq!(times, (0..LOGS * RECORDS).collect::<Vec<_>>(), "every record once");
}

/// Counts the records and the waits for the disk.
#[derive(Default, Clone)]
struct CountingWriter {
    records: Arc<AtomicUsize>,
    syncs: Arc<AtomicUsize>,
}

impl AuditWriter for CountingWriter {
    fn append(&mut self, lines: &[&str], _: bool) -> Result<Vec<AuditProblem>, StoreError> {
        self.records.fetch_add(lines.len(), Ordering::Relaxed);
        Ok(Vec::new())
    }

    fn sync(&mut self) -> Result<Vec<AuditProblem>, StoreError> {
        thread::sleep(Duration::from_millis(5));
        self.syncs.fetch_add(1, Ordering::Relaxed);
        Ok(Vec::new())
    }
}

#[test]
fn only_a_record_that_is_waited_for_costs_a_wait_for_the_disk() {
    const CALLS: usize = 20;
    let writer = CountingWriter::default();
    let log = AuditLog::start(Box::new(writer.clone()));
    let begun = Instant::now();
    // A call that may act waits for its decision, and not for its end.
    for number in 0..CALLS as u64 {
        wait(log.commit(record(number))).unwrap();
        log.append_completed(record(number));
    }
    log.flush(PATIENCE).unwrap();
    let late = 1 + begun.elapsed().as_secs() as usize;
    let syncs = writer.syncs.load(Ordering::Relaxed);
    assert!((CALLS..=CALLS + late).contains(&syncs), "{syncs}");
    // Of calls that cannot, all wait for nothing.
    let begun = Instant::now();
    for number in 0..2 * CALLS as u64 {
        log.append(record(number)).unwrap();
    }
    while writer.records.load(Ordering::Relaxed) < 4 * CALLS {
        thread::yield_now();
    }
    let more = writer.syncs.load(Ordering::Relaxed) - syncs;
    assert!(more <= 1 + begun.elapsed().as_secs() as usize, "{more}");
    // Callers that wait at the same time share one wait.
    let before = writer.syncs.load(Ordering::Relaxed);
    let commits: Vec<_> = (0..CALLS as u64).map(|number| log.commit(record(number))).collect();
    commits.into_iter().for_each(|commit| wait(commit).unwrap());
    let shared = writer.syncs.load(Ordering::Relaxed) - before;
    assert!(shared < CALLS / 2, "{shared}");
}
