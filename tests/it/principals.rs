//! What one user keeps, another never sees.

use std::{
    sync::{
        Arc,
        atomic::{AtomicUsize, Ordering},
    },
    thread,
    time::Duration,
};

use sallyport_contract::{
    ApprovalAnswer, ApprovalRequest, BoxFuture, Consent, Principal, RequestedCall,
};
use sallyport_runtime::{
    HostOptions,
    clock::now_ms,
    history,
    session::{
        self, ModelHandle, OpenedSession, SessionConfig, SessionError, SessionOverrides,
        SessionSelector, SessionSpec,
    },
};
use sallyport_session::JournalRecord;
use sallyport_store::{HostStore, SessionFilter, StoreError};
use serde_json::{Value, json};
use tempfile::TempDir;

use crate::support::{
    Home, Tools,
    living::REQUESTS,
    patience::{until_so, wait},
    registry::data,
};

const POLICY: &str = "[plugin.living]\nstate = true\nschedule = true\nnotify = true\n\
                      [[rule]]\ntool = \"living.*\"\ndecision = \"allow\"";

fn users() -> [Principal; 2] {
    ["ann", "ben"].map(|user| Principal { user: user.to_owned(), conversation: None })
}

/// Does something on behalf of a user, and returns what came of each step.
fn steps(tools: &Tools, user: &Principal, steps: &[&str]) -> Value {
    let arguments = json!({ "steps": steps }).to_string();
    let call = tools.host.call(user, "living.acts".parse().unwrap(), arguments);
    data(&tools.wait(call)).clone()
}

#[test]
fn what_one_user_keeps_and_plans_no_other_user_sees() {
    let home = Home::new().guest("living", REQUESTS).policy(POLICY);
    let tools = Tools::of(&home);
    let [ann, ben] = users();
    steps(&tools, &ann, &["set color green", "in 3600000 tea"]);
    steps(&tools, &ben, &["set color blue"]);
    let color = |user: &Principal| steps(&tools, user, &["get color"])[0].to_string();
    assert!(color(&ann).contains("green") && !color(&ann).contains("blue"), "{}", color(&ann));
    assert!(color(&ben).contains("blue") && !color(&ben).contains("green"), "{}", color(&ben));
    let timers = |user: &Principal| steps(&tools, user, &["timers"])[0].to_string();
    assert_ne!(timers(&ann), "\"\"");
    assert_eq!(timers(&ben), "\"\"");
    // What ben removes is his.
    steps(&tools, &ben, &["del color"]);
    assert!(color(&ann).contains("green"), "{}", color(&ann));
    assert!(!color(&ben).contains("green"), "{}", color(&ben));
}

/// They were all kept for the local user.
#[test]
fn reminders_of_one_user_are_listed_and_cancelled_by_no_other() {
    let home = Home::new();
    let tools = Tools::of(&home);
    let [ann, ben] = users();
    let call = |user: &Principal, tool: &str, arguments: Value| {
        let call = tools.host.call(user, tool.parse().unwrap(), arguments.to_string());
        tools.wait(call)
    };
    let reminder = json!({ "text": "tea", "when": "in 2 hours" });
    let id = data(&call(&ann, "reminder.create", reminder))["id"].clone();
    let list = |user: &Principal| data(&call(user, "reminder.list", json!({}))).to_string();
    assert!(list(&ann).contains("tea"), "{}", list(&ann));
    assert!(!list(&ben).contains("tea"), "{}", list(&ben));
    let cancel = |user| call(user, "reminder.cancel", json!({ "reminder": id })).outcome.as_str();
    assert_ne!(cancel(&ben), "completed");
    assert!(list(&ann).contains("tea"), "{}", list(&ann));
    assert_eq!(cancel(&ann), "completed");
}

#[test]
fn a_timer_of_any_user_fires_and_its_message_goes_to_that_user() {
    let home = Home::new().guest("living", REQUESTS).policy(POLICY);
    let tools = Tools::of(&home);
    let [ann, ben] = users();
    steps(&tools, &ann, &["doing 1 tell-user_tea_tea"]);
    let timekeeper = tools.wait(async { tools.host.start_timekeeper() });
    let take = |user: &Principal| {
        let batch = wait(tools.host.store().notices.take_batch(&user.user, "s", u64::MAX / 2));
        batch.unwrap().notices.len()
    };
    let timers = || wait(tools.host.store().timers.all()).unwrap().len();
    until_so("the timer fires", || {
        thread::sleep(Duration::from_millis(20));
        timers() == 0
    });
    assert_eq!(take(&ben), 0, "ben gets nothing of ann's");
    assert_eq!(take(&ann), 1);
    tools.wait(timekeeper.stop());
}

/// Opens a session of a user in the store of the host.
fn open(
    tools: &Tools,
    user: &Principal,
    selector: SessionSelector,
) -> Result<OpenedSession, SessionError> {
    let (store, limits) = (tools.host.store(), tools.settings.sessions);
    tools.wait(session::open_session(store, limits, user, &selector))
}

/// Begins a session with some words and a kept result; returns its id.
fn begin(tools: &Tools, user: &Principal, words: &str) -> String {
    let mut opened = open(tools, user, SessionSelector::New).unwrap();
    let input = JournalRecord::Input { message: words.into() };
    tools.wait(opened.journal.write_records(vec![input])).unwrap();
    assert_eq!(tools.wait(opened.journal.keep_result(format!("result of {words}"))), Ok(1));
    opened.session_id
}

fn check_missing<T>(found: Result<T, StoreError>) {
    assert!(matches!(found, Err(StoreError::SessionNotFound { .. })), "{:?}", found.err());
}

#[test]
fn no_way_leads_one_user_to_the_session_of_another() {
    let tools = Tools::of(&Home::new());
    let [ann, ben] = users();
    let id = begin(&tools, &ann, "secret of ann");
    let sessions = &tools.host.store().sessions;
    let results = &tools.host.store().kept_results;
    // To resume it: the latest one, by its id, and by the start of it.
    let nothing = open(&tools, &ben, SessionSelector::Latest);
    assert!(matches!(nothing, Err(SessionError::NothingToContinue)));
    for prefix in [&id, &id[..6]] {
        let named = open(&tools, &ben, SessionSelector::Named(prefix.to_owned()));
        assert!(matches!(named, Err(SessionError::Store(StoreError::SessionNotFound { .. }))));
        check_missing(wait(sessions.find_by_prefix(&ben.user, prefix)));
    }
    // Its words: lists, searches, and the records and results of an export.
    assert_eq!(wait(sessions.list(SessionFilter::of_user(&ben.user))).unwrap(), []);
    assert_eq!(wait(sessions.search_records(&ben.user, "secret", 9)).unwrap(), []);
    check_missing(wait(sessions.get(&ben.user, &id)));
    check_missing(wait(results.find(&ben.user, &id, 1)));
    let mut forged = wait(sessions.get(&ann.user, &id)).unwrap();
    forged.user.clone_from(&ben.user);
    check_missing(wait(history::read_records(tools.host.store(), &forged)));
    // To change it.
    check_missing(wait(sessions.fork(&ben.user, &id, 1, "fork", 1)));
    check_missing(wait(sessions.rename(&ben.user, &id, "ben's")));
    check_missing(wait(sessions.remove(&ben.user, &id)));
    // Beside a session of his own, all of that finds his own.
    let own = begin(&tools, &ben, "secret of ben");
    for (user, id) in [(&ann, &id), (&ben, &own)] {
        let latest = open(&tools, user, SessionSelector::Latest).unwrap();
        assert_eq!((&latest.session_id, &latest.user), (id, &user.user));
        assert_eq!(latest.past.turn_count(), 1);
        let hits = wait(sessions.search_records(&user.user, "secret", 9)).unwrap();
        assert_eq!(hits.iter().map(|hit| &hit.session_id).collect::<Vec<_>>(), [id]);
    }
}

/// It stayed claimed until its last sign of life was too old.
#[test]
fn a_session_that_was_opened_and_never_started_is_free_again() {
    let tools = Tools::of(&Home::new());
    let [ann, _] = users();
    let id = begin(&tools, &ann, "hello");
    let (store, limits) = (tools.host.store(), tools.settings.sessions);
    let is_open = || tools.wait(store.presence.is_open(&id, now_ms())).unwrap();
    let selector = SessionSelector::Named(id.clone());
    tools.wait(async {
        let opened = session::open_session(store, limits, &ann, &selector).await.unwrap();
        assert!(store.presence.is_open(&id, now_ms()).await.unwrap());
        drop(opened);
    });
    until_so("the session is free", || !is_open());
}

#[test]
fn a_session_of_one_user_is_not_run_with_the_configuration_of_another() {
    let tools = Tools::of(&Home::new());
    let [ann, ben] = users();
    let overrides = SessionOverrides::default();
    let config = SessionConfig::from_settings(&overrides, &tools.settings, &tools.host, &ben);
    let config = tools.wait(config).unwrap();
    for (user, runs) in [(&ann, false), (&ben, true)] {
        let prepared = tools.host.prepare_session(SessionSpec {
            opened: open(&tools, user, SessionSelector::Ephemeral).unwrap(),
            config: &config,
            model: &ModelHandle::Offline,
            answers_questions: false,
            receives_notices: false,
        });
        assert_eq!(prepared.is_ok(), runs, "{user:?}");
        assert!(runs || matches!(prepared, Err(SessionError::OtherUser)));
    }
}

/// Agrees for the rest of the session, and counts the questions.
#[derive(Default)]
struct SessionConsent(AtomicUsize);

impl Consent for SessionConsent {
    fn ask_user(&self, _: ApprovalRequest) -> BoxFuture<'_, ApprovalAnswer> {
        self.0.fetch_add(1, Ordering::SeqCst);
        Box::pin(async { ApprovalAnswer::Session })
    }
}

#[test]
fn what_one_user_approves_for_a_session_counts_for_no_other_user() {
    let policy = POLICY.replace("\"allow\"", "\"ask\"");
    let home = Home::new().guest("living", REQUESTS).policy(&policy);
    let consent = Arc::new(SessionConsent::default());
    let asked = Arc::clone(&consent);
    let tools = Tools::opened(&home, |options| HostOptions { consent, ..options });
    let [ann, ben] = users();
    let questions_of_call = |user: &Principal| {
        let before = asked.0.load(Ordering::SeqCst);
        let call = RequestedCall {
            context: user.call_context("c".to_owned(), "shared"),
            tool: "living.acts".parse().unwrap(),
            arguments: json!({ "steps": [] }).to_string(),
        };
        assert!(tools.wait(Arc::clone(tools.host.toolbox()).admit_call(call)).is_ok());
        asked.0.load(Ordering::SeqCst) - before
    };
    assert_eq!((questions_of_call(&ann), questions_of_call(&ann)), (1, 0));
    assert_eq!((questions_of_call(&ben), questions_of_call(&ann)), (1, 0));
}

#[test]
fn the_sessions_of_a_host_are_in_the_store_that_it_was_given() {
    let (home, folder) = (Home::new(), TempDir::new().unwrap());
    let store = HostStore::open(&folder.path().join("own")).unwrap();
    let tools = Tools::opened(&home, |options| HostOptions { store: Some(store), ..options });
    let [ann, _] = users();
    let id = begin(&tools, &ann, "hello");
    let found = |store: &HostStore| wait(store.sessions.get(&ann.user, &id)).is_ok();
    assert!(found(tools.host.store()));
    let default_store = HostStore::open(&home.path("state")).unwrap();
    assert!(!found(&default_store), "nothing is in the state folder");
}
