//! Tokens over time. Each test is named after what others got wrong.

use std::{
    io::{BufRead, BufReader},
    path::Path,
    process::{Child, Command, Stdio},
    sync::{Arc, Mutex},
    thread,
    time::Duration,
};

use serde_json::{Value, json};

use super::logins::{connect, home_of};
use crate::support::{Home, McpClient, disk::Disk, home::finish, identity::IdentityServer};

fn server_with(fields: Value) -> IdentityServer {
    let identity = IdentityServer::start();
    identity.with(|state| state.fields = fields.as_object().unwrap().clone());
    identity
}

fn connected(fields: Value) -> (IdentityServer, Home) {
    let identity = server_with(fields);
    let home = home_of(&identity);
    connect(&home, &identity);
    (identity, home)
}

#[track_caller]
fn lists_items(home: &Home) {
    let (report, code) = home.call("service.list_items", &json!({}));
    assert_eq!((&report["outcome"], code), (&json!("completed"), 0), "{report}");
}

fn status(home: &Home) -> String {
    let shown = home.run(&["connection", "show", "service", "--output", "json"]).ended(0).json();
    shown["status"].as_str().unwrap().to_owned()
}

#[test]
fn an_access_token_without_refresh_token_and_with_a_year_of_life_is_used_as_it_is() {
    for fields in [
        json!({"refresh_token": null, "expires_in": 31_536_000}),
        json!({"refresh_token": null, "expires_in": null}),
        json!({"refresh_token": null, "expires_in": -5}),
        json!({"expires_in": "31536000"}),
    ] {
        let (identity, home) = connected(fields);
        lists_items(&home);
        lists_items(&home);
        assert_eq!(identity.with(|state| state.refreshes), 0);
    }
}

#[test]
fn tokens_that_live_shorter_than_the_early_window_are_not_refreshed_on_every_call() {
    let (identity, home) = connected(json!({"expires_in": 240}));
    for _ in 0..3 {
        lists_items(&home);
    }
    assert_eq!(identity.with(|state| state.refreshes), 0);
}

#[test]
fn a_401_in_mid_session_refreshes_once_and_the_call_is_repeated_once() {
    let (identity, home) = connected(json!({}));
    lists_items(&home);
    identity.with(|state| state.access.clear());
    lists_items(&home);
    let (refreshes, scopes) =
        identity.with(|state| (state.refreshes, state.refresh_scopes.clone()));
    assert_eq!(refreshes, 1);
    assert_eq!(scopes, [None], "the scope is left out on refresh");
}

#[test]
fn a_refreshed_token_that_is_still_refused_needs_a_sign_in_and_makes_no_loop() {
    let (identity, home) = connected(json!({}));
    identity.with(|state| state.refuses_all = true);
    let (report, _) = home.call("service.list_items", &json!({}));
    assert!(report.to_string().contains("Sign in again."), "{report}");
    assert_eq!(identity.with(|state| state.refreshes), 1);
    assert_eq!(status(&home), "expired");
    home.call("service.list_items", &json!({}));
    assert_eq!(identity.with(|state| state.refreshes), 1);
}

#[test]
fn a_revoked_account_is_expired_and_connecting_again_mends_it() {
    let (identity, home) = connected(json!({"expires_in": 1}));
    identity.with(|state| state.refresh.clear());
    identity.with(|state| state.access.clear());
    // The first call finds out, the next one knows.
    home.call("service.list_items", &json!({}));
    home.run(&["call", "service.list_items", "{}", "-v"])
        .ended(7)
        .remarks(&["sallyport connection add service"]);
    assert_eq!(status(&home), "expired");
    let context = home.run(&["connection", "context", "--output", "json"]).ended(0).json();
    assert_eq!(context["expired"][0]["name"], "service", "{context}");
    identity.with(|state| state.fields.clear());
    connect(&home, &identity);
    lists_items(&home);
}

#[test]
fn a_transient_failure_is_not_a_logout() {
    for (status_code, media_type, body) in [
        (503, "text/html", "<html>down</html>"),
        (500, "application/json", ""),
        (200, "text/html", "<html>"),
        (400, "application/json", r#"{"error": "temporarily_unavailable"}"#),
    ] {
        let (identity, home) = connected(json!({}));
        identity.with(|state| {
            state.access.clear();
            state.next = vec![(status_code, media_type, body.to_owned())];
        });
        let (report, _) = home.call("service.list_items", &json!({}));
        assert_eq!(report["outcome"], "failed", "{report}");
        assert_eq!(status(&home), "active", "{body}");
        lists_items(&home);
    }
}

#[test]
fn two_sessions_that_refresh_a_rotating_token_at_once_make_one_refresh_and_both_go_on() {
    let (identity, home) = connected(json!({}));
    identity.with(|state| state.access.clear());
    let args = ["call", "service.list_items", "{}", "--output", "json"];
    let running: Vec<Child> = (0..6).map(|_| home.start(&args)).collect();
    for child in running {
        finish(child, &args).ended(0).answers(&["completed"]);
    }
    assert_eq!(identity.with(|state| state.refreshes), 1);
}

#[test]
fn a_login_in_another_process_is_seen_by_the_live_session() {
    let identity = IdentityServer::start();
    let home = home_of(&identity);
    let mut client = McpClient::greeted(&home, &[], &json!({}));
    let mut call = || {
        let result = client.call("service__list_items", &json!({}));
        result["content"][0]["text"].as_str().unwrap().to_owned()
    };
    let mend = "sallyport connection add service";
    let before = call();
    assert!(before.contains(mend), "{before}");
    connect(&home, &identity);
    assert_eq!(call(), r#"["a","b","c"]"#);
    home.run(&["connection", "remove", "service"]).ended(0);
    let after = call();
    assert!(after.contains(mend), "{after}");
}

#[test]
fn a_key_that_is_lost_asks_for_a_new_sign_in_and_a_readable_one_is_refused() {
    use std::os::unix::fs::PermissionsExt;
    let (identity, home) = connected(json!({}));
    let key = home.path("state/connections.key");
    std::fs::set_permissions(&key, std::fs::Permissions::from_mode(0o644)).unwrap();
    home.run(&["call", "service.list_items", "{}", "-v"]).ended(7).remarks(&["others may open it"]);
    std::fs::remove_file(&key).unwrap();
    home.run(&["call", "service.list_items", "{}", "-v"])
        .ended(7)
        .remarks(&["sallyport connection add service"]);
    connect(&home, &identity);
    lists_items(&home);
}

/// Space of the small disk, in bytes: for the databases and their journals.
const DISK_BYTES: u64 = 8 << 20;

/// How long the store cannot be written to after the service has rotated the token.
const FAULT_TIME: Duration = Duration::from_millis(600);

/// Makes a call whose refresh token is rotated while `begin` has made the store unusable. `end`
/// makes it usable again, and until then the new access token is not used.
#[track_caller]
fn rotates_during(
    identity: &IdentityServer,
    home: &Home,
    begin: impl FnOnce() + Send + 'static,
    end: impl FnOnce() + Send + 'static,
) {
    let ends = Arc::new(Mutex::new(None));
    let started = Arc::clone(&ends);
    let server = identity.server.clone();
    let calls = move || server.seen().iter().filter(|one| one.target == "/api/items").count();
    identity.with(|state| {
        state.access.clear();
        state.on_refresh = Some(Box::new(move || {
            begin();
            let before = calls();
            let ending = thread::spawn(move || {
                thread::sleep(FAULT_TIME);
                let during = calls();
                end();
                assert_eq!(during, before, "a token was used before it was written");
            });
            *started.lock().unwrap() = Some(ending);
        }));
    });
    lists_items(home);
    ends.lock().unwrap().take().expect("nothing was refreshed").join().unwrap();
    // The rotated token is the one that is kept.
    identity.with(|state| state.access.clear());
    lists_items(home);
    assert_eq!(identity.with(|state| state.refreshes), 2);
}

#[test]
fn a_rotated_token_is_not_lost_while_the_disk_is_full() {
    let identity = server_with(json!({}));
    let home = home_of(&identity);
    let Some(disk) = Disk::mount(&home.path("state"), DISK_BYTES) else { return };
    connect(&home, &identity);
    let disk = Arc::new(disk);
    let (full, roomy) = (Arc::clone(&disk), Arc::clone(&disk));
    rotates_during(&identity, &home, move || full.fill(0), move || roomy.make_room());
}

#[test]
fn a_rotated_token_is_written_before_it_is_used_while_another_process_locks_the_store() {
    let (identity, home) = connected(json!({}));
    let database = home.path("state/store.sqlite3");
    let holder = Arc::new(Mutex::new(None));
    let held = Arc::clone(&holder);
    let begin = move || *held.lock().unwrap() = Some(lock_database(&database));
    let end = move || {
        let mut child: Child = holder.lock().unwrap().take().unwrap();
        child.kill().unwrap();
        child.wait().unwrap();
    };
    rotates_during(&identity, &home, begin, end);
}

/// Another program that holds the lock of writers until it is killed.
fn lock_database(database: &Path) -> Child {
    assert!(database.is_file(), "{}", database.display());
    let program = "import sqlite3, sys, time\n\
                   store = sqlite3.connect(sys.argv[1], timeout=60, isolation_level=None)\n\
                   store.execute('BEGIN IMMEDIATE')\n\
                   print('locked', flush=True)\n\
                   time.sleep(600)\n";
    let mut child = Command::new("python3")
        .args(["-c", program])
        .arg(database)
        .stdout(Stdio::piped())
        .spawn()
        .unwrap();
    let mut line = String::new();
    BufReader::new(child.stdout.as_mut().unwrap()).read_line(&mut line).unwrap();
    assert_eq!(line, "locked\n");
    child
}
