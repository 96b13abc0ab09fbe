//! Groups of the policy: every way in, the words of a refusal, and budgets that outlive the program.

use std::fs;

use sallyport_contract::services::{DataOwner, TimerRequest, TimerSchedule};
use sallyport_store::HostStore;
use serde_json::{Value, json};

use super::{
    CLOCK, HttpReply, ServiceProgram, bearer, home,
    sign_on::{ROLES, home_at, signed_on},
    talking_model, token,
};
use crate::support::{
    Home, OpenAi, Reply,
    openid::OpenIdServer,
    patience::{until_so, wait},
};

const DENIED: &str = "
[group.support]
users = ['ann']
login-groups = ['support']
[[group.support.rule]]
tool = 'clock.get_time'
decision = 'deny'
message = 'no clock for support'
";

const WORDS: &str = "no clock for support (rule of the group support at policy.toml:5)";

fn call(service: &ServiceProgram, lines: &str) -> HttpReply {
    service.request("POST", &format!("/v1/tools/{CLOCK}/call"), lines, "{}")
}

#[track_caller]
fn outcome(reply: HttpReply) -> String {
    reply.has(200).json()["outcome"].as_str().unwrap().to_owned()
}

fn telling_time() -> OpenAi {
    let call = |id| Reply::call(id, "clock__get_time", &json!({}));
    let said = || Reply::Text("It is late.");
    OpenAi::start(vec![call("c1"), said(), call("c2"), said()])
}

#[test]
fn a_group_applies_to_each_way_in_and_a_change_counts_from_the_next_call() {
    let model = telling_time();
    let home = home(&model).policy(DENIED);
    let (ann, ben) = (token(&home, "ann", "operator"), token(&home, "ben", "user"));
    let service = ServiceProgram::start(&home);
    let report = call(&service, &bearer(&ann)).has(200).json();
    assert_eq!(report["outcome"], "denied", "{report}");
    let reason = &report["reason"]["rule"];
    assert_eq!((&reason["group"], &reason["text"]), (&json!("support"), &json!(WORDS)), "{report}");
    let check = service.post(&ann, &format!("/v1/tools/{CLOCK}/check"), &json!({})).has(200).json();
    assert_eq!((&check["blocked"], &check["errors"]), (&json!(true), &json!([WORDS])), "{check}");
    assert_eq!(outcome(call(&service, &bearer(&ben))), "completed");

    let session = service.open_session(&ann);
    let mut events = service.stream(&ann, &session, "");
    service.say(&ann, &session, "What time is it?");
    assert!(events.until("turn-ended").contains("of the group support"));
    // The session goes on under the policy of each moment.
    fs::write(home.path("policy.toml"), DENIED.replace("'ann'", "'eve'")).unwrap();
    service.say(&ann, &session, "What time is it now?");
    let rest = events.until("\"outcome\":\"completed\"").to_owned();
    assert_eq!(rest.matches("of the group support").count(), 1, "{rest}");
    assert_eq!(outcome(call(&service, &bearer(&ann))), "completed");
}

#[test]
fn the_groups_of_the_last_log_in_count_also_after_a_restart() {
    let (identity, model) = (OpenIdServer::start(), talking_model());
    let home = home_at(&identity, &model, ROLES).policy(DENIED);
    let service = ServiceProgram::start(&home);
    let groups = |groups: Value| {
        identity.with(|state| drop(state.claims.insert("groups".to_owned(), groups)));
    };
    groups(json!(["staff", "support"]));
    let first = signed_on(&service, &identity);
    assert_eq!(outcome(call(&service, &first)), "denied");
    let explained = |more: &[&str]| {
        let args = [&["policy", "explain", CLOCK, "--user", "sso:ann"], more].concat();
        home.run(&args).ended(0).stdout
    };
    assert!(explained(&[]).contains(WORDS));
    assert!(!explained(&["--login-group", "staff"]).contains(WORDS));
    drop(service);
    let service = ServiceProgram::start(&home);
    assert!(explained(&[]).contains(WORDS), "it is stored");
    groups(json!(["staff"]));
    let second = signed_on(&service, &identity);
    assert_eq!(outcome(call(&service, &second)), "completed");
    assert!(!explained(&[]).contains(WORDS));
}

const BUDGETS: &str = "
[group.all]
users = ['*']
[group.all.budget]
calls-per-day = 2
sessions = 1
[group.talk]
users = ['ann']
[group.talk.budget]
tokens-per-month = 1
";

#[test]
fn a_budget_is_each_users_own_and_outlives_the_program() {
    let model = OpenAi::start(vec![Reply::Text("Good day."); 4]);
    let home = home(&model).policy(BUDGETS);
    let (ann, ben) = (token(&home, "ann", "user"), token(&home, "ben", "user"));
    let service = ServiceProgram::start(&home);
    for _ in 0..2 {
        assert_eq!(outcome(call(&service, &bearer(&ann))), "completed");
    }
    let session = service.open_session(&ann);
    service.post(&ann, "/v1/sessions", &json!({})).has(429);
    let mut events = service.stream(&ann, &session, "");
    service.say(&ann, &session, "hello");
    events.until("turn-ended");
    assert!(!events.text.contains("budget-reached"), "{}", events.text);
    service.say(&ann, &session, "and again");
    assert!(events.until("\"group\":\"talk\"").contains("budget-reached"));

    drop(service);
    let service = ServiceProgram::start(&home);
    let spent = call(&service, &bearer(&ann)).has(429);
    assert_eq!(spent.problem(), "budget-spent");
    let title = spent.json()["title"].as_str().unwrap().to_owned();
    assert!(
        title.starts_with("the budget of the group all (2 calls per day) is used up"),
        "{title}"
    );
    let wait = spent.head.lines().find_map(|line| line.strip_prefix("retry-after: ")).unwrap();
    assert!((1..=86_400).contains(&wait.trim().parse::<u64>().unwrap()), "{wait}");
    let check = service.post(&ann, &format!("/v1/tools/{CLOCK}/check"), &json!({})).has(200).json();
    assert_eq!(check["blocked"], true, "{check}");
    let usage = service.get(&ann, "/v1/usage");
    let used: Vec<(&Value, &Value)> = usage["budgets"]
        .as_array()
        .unwrap()
        .iter()
        .map(|budget| (&budget["group"], &budget["measure"]))
        .collect();
    assert_eq!(used, [(&json!("all"), &json!("calls")), (&json!("talk"), &json!("tokens"))]);
    assert_eq!(
        (&usage["budgets"][0]["used"], &usage["budgets"][0]["limit"]),
        (&json!(2), &json!(2))
    );
    assert_eq!(outcome(call(&service, &bearer(&ben))), "completed", "everybody has their own");
    assert_eq!(service.get(&ben, "/v1/usage")["budgets"][0]["used"], 1);
}

#[test]
fn a_mistake_in_a_group_is_told_before_the_service_starts() {
    let home = Home::new().policy("[group.support]\nuser = ['ann']\n");
    let refused = home.run(&["serve", "--listen", "127.0.0.1:0"]).ended(3);
    refused.remarks(&["unknown key \"user\"", "did you mean \"users\"?"]);
    let home = Home::new().plugins(&["clock"]).policy(BUDGETS);
    let checked = home.run(&["policy", "check"]).ended(0);
    let lines = ["The group all (policy.toml:2) has 0 rules.", "(2 calls per day)"];
    checked.answers(&lines);
}

/// What the plugin with timers needs.
pub(super) const TIMER_GRANT: &str =
    "[plugin.timer]\nschedule = true\nnotify = true\nstate = true\n";

/// Sets timers of ann that are due at once, while no host runs.
pub(super) fn set_timers(home: &Home, labels: &[&str]) {
    let store = HostStore::open(&home.path("state")).unwrap();
    let owner = DataOwner { plugin: "timer".parse().unwrap(), user: "ann".to_owned() };
    for label in labels {
        let payload = json!({ "seconds": 5, "number": 1, "set_ms": 1 });
        let plan = TimerRequest {
            schedule: TimerSchedule::InMs(1),
            label: Some((*label).to_owned()),
            payload: payload.to_string(),
            session_id: "s-before".to_owned(),
            interval_ms_min: 0,
            timers_max: u32::MAX,
        };
        wait(store.timers.add_timer(&owner, plan)).unwrap();
    }
}

#[test]
fn a_group_holds_for_timers_that_fire_later() {
    const RULE: &str = "[group.support]\nusers = ['ann']\n[[group.support.rule]]\n\
                        tool = 'timer.role:timer'\ndecision = 'deny'\nmessage = 'no timers'\n";
    const BUDGET: &str =
        "[group.support]\nusers = ['ann']\n[group.support.budget]\ncalls-per-day = 1\n";
    let model = talking_model();
    let home = home(&model).plugins(&["timer"]).policy(format!("{TIMER_GRANT}{RULE}"));
    let ann = token(&home, "ann", "user");
    set_timers(&home, &["tea", "egg"]);
    let service = ServiceProgram::start(&home);
    service.running.remarks("is due and waits: ");
    service.running.remarks("no timers (rule of the group support at policy.toml");
    let fired = || {
        let path = "/v1/audit?plugin=timer&kind=call";
        service.get(&ann, path)["records"].as_array().unwrap().len()
    };
    assert_eq!(fired(), 0);
    // With the rule gone, a budget of one call is left for two timers.
    fs::write(home.path("policy.toml"), format!("{TIMER_GRANT}{BUDGET}")).unwrap();
    service.running.remarks("the budget of the group support (1 calls per day) is used up");
    until_so("one of two", || fired() == 1);
    let spent = call(&service, &bearer(&ann)).has(429);
    assert_eq!(spent.problem(), "budget-spent");
    let timers = wait(HostStore::open(&home.path("state")).unwrap().timers.all()).unwrap();
    assert_eq!(timers.len(), 1, "the other one is kept");
}
