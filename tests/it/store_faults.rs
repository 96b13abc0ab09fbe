//! A store that cannot be used for a while: its audit names nothing that was not done, and what waits
//! for it continues afterwards.

use std::{
    sync::{
        Arc, Mutex,
        atomic::{AtomicBool, AtomicUsize, Ordering},
    },
    thread,
    time::Duration,
};

use sallyport_contract::{LOCAL_USER, async_trait};
use sallyport_runtime::{
    HostNotice, HostOptions, NoticeSink,
    policy_change::{PolicyChangeError, record_change},
};
use sallyport_store::{
    AuditEntry, AuditFilter, AuditKind, AuditProblem, AuditStore, AuditVerification, AuditWriter,
    HostStore, OpenSession, SessionClaim, SessionPresence, StoreError, audit::HostUser,
};
use serde_json::json;
use tempfile::TempDir;

use crate::support::{
    Home, Tools,
    living::REQUESTS,
    patience::{until_so, wait},
    registry::data,
};

const POLICY: &str = "[plugin.living]\nschedule = true\nnotify = true\n\
                      [[rule]]\ntool = \"living.*\"\ndecision = \"allow\"";

/// Longer than a change of the policy waits for its record, and shorter than a log waits at its end.
const HANGS_FOR: Duration = Duration::from_secs(7);

/// What is wrong with the disk of an audit.
#[derive(Default)]
struct Faults {
    is_full: AtomicBool,
    /// How many writes are refused.
    failures_left: AtomicUsize,
    failures: AtomicUsize,
    hangs: AtomicBool,
}

/// The audit of a store, with faults.
struct FaultyAudit(Arc<dyn AuditStore>, Arc<Faults>);

struct FaultyWriter(Box<dyn AuditWriter>, Arc<Faults>);

impl FaultyAudit {
    fn inside(store: HostStore) -> (HostStore, Arc<Faults>) {
        let faults = Arc::new(Faults::default());
        let audit = Arc::new(Self(Arc::clone(&store.audit), Arc::clone(&faults)));
        (HostStore { audit, ..store }, faults)
    }
}

#[async_trait]
impl AuditStore for FaultyAudit {
    async fn read_records(&self, filter: AuditFilter) -> Result<Vec<AuditEntry>, StoreError> {
        self.0.read_records(filter).await
    }

    async fn verify(&self, expected_head: Option<&str>) -> Result<AuditVerification, StoreError> {
        self.0.verify(expected_head).await
    }

    async fn prune(&self, before_ms: u64) -> Result<u64, StoreError> {
        self.0.prune(before_ms).await
    }

    fn writer(&self) -> Box<dyn AuditWriter> {
        Box::new(FaultyWriter(self.0.writer(), Arc::clone(&self.1)))
    }
}

impl AuditWriter for FaultyWriter {
    fn append(
        &mut self,
        lines: &[&str],
        is_durable: bool,
    ) -> Result<Vec<AuditProblem>, StoreError> {
        let faults = &self.1;
        if lines.is_empty() {
            return self.0.append(lines, is_durable);
        }
        if faults.hangs.swap(false, Ordering::SeqCst) {
            thread::sleep(HANGS_FOR);
        }
        let left = faults.failures_left.load(Ordering::SeqCst);
        if left > 0 || faults.is_full.load(Ordering::SeqCst) {
            faults.failures_left.store(left.saturating_sub(1), Ordering::SeqCst);
            faults.failures.fetch_add(1, Ordering::SeqCst);
            return Err(StoreError::Full { path: "audit".into() });
        }
        self.0.append(lines, is_durable)
    }

    fn sync(&mut self) -> Result<Vec<AuditProblem>, StoreError> {
        self.0.sync()
    }
}

/// Changes a policy while its record cannot be written, and returns what the audit has of it when it
/// has that many records.
fn messages_of_refused_change(count: usize, spoil: impl FnOnce(&Faults)) -> Vec<String> {
    let folder = TempDir::new().unwrap();
    let store = HostStore::open(&folder.path().join("store")).unwrap();
    let (store, faults) = FaultyAudit::inside(store);
    spoil(&faults);
    let mut is_changed = false;
    let changed =
        record_change(&store, &HostUser::from_process("tester"), "files", "grants x", || {
            is_changed = true;
            Ok::<_, String>(())
        });
    assert!(matches!(changed, Err(PolicyChangeError::Audit(_))), "{changed:?}");
    assert!(!is_changed);
    recorded_changes(&store, count)
}

/// The messages about changes of the policy that the audit has when it has that many.
fn recorded_changes(store: &HostStore, count: usize) -> Vec<String> {
    let filter = AuditFilter { kind: Some(AuditKind::Policy), ..AuditFilter::default() };
    let read_messages = || {
        let records = wait(store.audit.read_records(filter.clone())).unwrap();
        let messages = records.into_iter().map(|entry| entry.record.unwrap().message.unwrap());
        messages.collect::<Vec<_>>()
    };
    // On a slow disk, the log is still written after it was dropped.
    until_so("the records are written", || read_messages().len() >= count);
    read_messages()
}

/// The record said that nothing had changed, also of a change that had been made in part.
#[test]
fn the_record_of_a_change_that_fails_says_no_more_than_its_error() {
    let folder = TempDir::new().unwrap();
    let store = HostStore::open(&folder.path().join("store")).unwrap();
    let changed =
        record_change(&store, &HostUser::from_process("tester"), "files", "removed", || {
            Err("it is removed in part".to_owned())
        });
    assert!(matches!(changed, Err(PolicyChangeError::Failed(_))), "{changed:?}");
    let messages = recorded_changes(&store, 2);
    assert_eq!(messages, ["removed", "removed: that failed: it is removed in part"]);
}

/// The record was kept for the next write, and no other one took it back.
#[test]
fn a_change_that_was_not_made_was_written_after_the_audit_had_failed() {
    let messages =
        messages_of_refused_change(1, |faults| faults.failures_left.store(1, Ordering::SeqCst));
    assert_eq!(messages.len(), 1, "{messages:?}");
    assert!(messages[0].starts_with("grants x: that failed, nothing is changed"), "{messages:?}");
}

#[test]
fn a_change_that_was_given_up_was_written_after_its_time_with_nothing_to_take_it_back() {
    let messages =
        messages_of_refused_change(2, |faults| faults.hangs.store(true, Ordering::SeqCst));
    assert_eq!((messages.len(), messages[0].as_str()), (2, "grants x"), "{messages:?}");
    assert!(messages[1].starts_with("grants x: that failed, nothing is changed"), "{messages:?}");
}

/// It waited for a change of the policy, though no policy had refused it.
#[test]
fn a_timer_that_could_not_be_recorded_once_never_fired_again() {
    let home = Home::new().guest("living", REQUESTS).policy(POLICY);
    let (store, faults) = FaultyAudit::inside(HostStore::open(&home.path("state")).unwrap());
    let warnings = Arc::new(Mutex::new(Vec::new()));
    let seen = Arc::clone(&warnings);
    let notices: NoticeSink = Arc::new(move |notice: HostNotice| {
        if let HostNotice::Warning(text) = notice {
            seen.lock().unwrap().push(text);
        }
    });
    let tools =
        Tools::opened(&home, |options| HostOptions { store: Some(store), notices, ..options });
    let report = tools.call("living.acts", &json!({ "steps": ["in 1 tea"] }));
    assert!(data(&report).is_array(), "{report:?}");
    faults.is_full.store(true, Ordering::SeqCst);
    let timekeeper = tools.wait(async { tools.host.start_timekeeper() });
    until_so("it is tried twice", || faults.failures.load(Ordering::SeqCst) > 1);
    let timers = || wait(tools.host.store().timers.all()).unwrap().len();
    assert_eq!(timers(), 1, "it stays due");
    faults.is_full.store(false, Ordering::SeqCst);
    until_so("it fires", || timers() == 0);
    tools.wait(timekeeper.stop());
    let warnings = warnings.lock().unwrap();
    let told = warnings.iter().filter(|text| text.contains("is due and waits: ")).count();
    assert_eq!(told, 1, "{warnings:?}");
}

/// The open sessions of a store that is away at times.
struct FaultyPresence(Arc<dyn SessionPresence>, Arc<Faults>);

#[async_trait]
impl SessionPresence for FaultyPresence {
    async fn mark_open(&self, user: &str, session_id: &str, now_ms: u64) -> Result<(), StoreError> {
        self.0.mark_open(user, session_id, now_ms).await
    }

    async fn claim_session(
        &self,
        user: &str,
        session_id: &str,
        now_ms: u64,
    ) -> Result<SessionClaim, StoreError> {
        self.0.claim_session(user, session_id, now_ms).await
    }

    async fn send_heartbeat(
        &self,
        user: &str,
        session_id: &str,
        now_ms: u64,
    ) -> Result<SessionClaim, StoreError> {
        self.0.send_heartbeat(user, session_id, now_ms).await
    }

    async fn mark_closed(&self, session_id: &str) -> Result<(), StoreError> {
        self.0.mark_closed(session_id).await
    }

    async fn list_open(&self, now_ms: u64) -> Result<Vec<OpenSession>, StoreError> {
        if self.1.is_full.load(Ordering::SeqCst) {
            self.1.failures.fetch_add(1, Ordering::SeqCst);
            return Err(StoreError::Full { path: "store".into() });
        }
        self.0.list_open(now_ms).await
    }
}

#[test]
fn a_reminder_that_cannot_be_posted_once_is_shown_later() {
    let home = Home::new();
    let faults = Arc::new(Faults::default());
    let store = HostStore::open(&home.path("state")).unwrap();
    let presence = Arc::new(FaultyPresence(Arc::clone(&store.presence), Arc::clone(&faults)));
    let store = HostStore { presence, ..store };
    let tools = Tools::opened(&home, |options| HostOptions { store: Some(store), ..options });
    let report = tools.call("reminder.create", &json!({ "text": "tea", "when": "in 1 second" }));
    assert!(data(&report)["id"].is_string(), "{report:?}");
    faults.is_full.store(true, Ordering::SeqCst);
    let timekeeper = tools.wait(async { tools.host.start_timekeeper() });
    until_so("it is tried twice", || faults.failures.load(Ordering::SeqCst) > 1);
    faults.is_full.store(false, Ordering::SeqCst);
    let timers = || wait(tools.host.store().timers.all()).unwrap().len();
    until_so("it is shown", || timers() == 0);
    tools.wait(timekeeper.stop());
    let batch = wait(tools.host.store().notices.take_batch(LOCAL_USER, "s", u64::MAX / 2));
    assert_eq!(batch.unwrap().notices.len(), 1);
}
