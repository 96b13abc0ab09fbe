//! Several services with one store: any of them runs a session, one at a time; and each request and
//! each timer is done once. `cargo xtask postgres` starts the server for those of several machines.

use std::{
    collections::BTreeSet,
    fs,
    io::Write,
    process::Command,
    thread,
    time::{Duration, Instant},
};

use sallyport_contract::services::{DataOwner, TimerRequest, TimerSchedule};
use sallyport_store::{DatabaseAddress, HostStore};
use serde_json::{Value, json};

use super::{CLOCK, ECHO, ServiceProgram, bearer, home, talking_model, token};
use crate::support::{
    Home, OpenAi, Running,
    database::{Database, PASSWORD},
    patience::{until_so, wait},
};

/// Machines of users whose model says the same in each turn.
fn machines<const N: usize>(database: &Database, model: &OpenAi) -> [Home; N] {
    machines_of(database, || home(model))
}

/// Machines: homes of their own, with the key of the audit of the first.
pub(super) fn machines_of<const N: usize>(
    database: &Database,
    home: impl Fn() -> Home,
) -> [Home; N] {
    let homes = std::array::from_fn(|_| home().config(database.config()));
    homes[0].run(&["call", CLOCK, "{}"]).ended(0);
    let key = "state/postgres/audit.key";
    for other in &homes[1..] {
        fs::create_dir_all(other.path("state/postgres")).unwrap();
        fs::copy(homes[0].path(key), other.path(key)).unwrap();
        private(&other.path("state/postgres"), 0o700);
        private(&other.path("state"), 0o700);
    }
    homes
}

fn private(path: &std::path::Path, mode: u32) {
    use std::os::unix::fs::PermissionsExt;
    fs::set_permissions(path, fs::Permissions::from_mode(mode)).unwrap();
}

/// Begins or continues a session at a service, and has one turn there.
fn talk(service: &ServiceProgram, token: &str, session: &str) {
    let mut events = service.stream(token, session, "");
    service.say(token, session, "hello");
    events.until("\"type\":\"turn-ended\"");
}

fn turns(service: &ServiceProgram, token: &str, session: &str) -> Value {
    service.get(token, &format!("/v1/sessions/{session}"))["stored"]["turns"].clone()
}

#[test]
fn of_two_services_with_one_home_one_runs_a_session() {
    let model = talking_model();
    let home = home(&model);
    let ann = token(&home, "ann", "user");
    let [first, second] = [(); 2].map(|()| ServiceProgram::start(&home));
    let session = first.open_session(&ann);
    talk(&first, &ann, &session);
    let resume = json!({ "resume": session });
    let refused = second.post(&ann, "/v1/sessions", &resume).has(409);
    assert_eq!(refused.problem(), "session-elsewhere");
    drop(first);
    second.post(&ann, "/v1/sessions", &resume).has(201);
    talk(&second, &ann, &session);
    assert_eq!(turns(&second, &ann, &session), 2);
}

#[test]
#[ignore = "needs PostgreSQL: cargo xtask postgres"]
fn a_session_is_run_by_one_service_and_goes_on_at_another_when_it_dies() {
    let database = Database::new();
    let model = talking_model();
    let homes: [Home; 2] = machines(&database, &model);
    let [here, there] = homes.each_ref().map(|home| token(home, "ann", "user"));
    let [first, second] = homes.each_ref().map(ServiceProgram::start);
    let session = first.open_session(&here);
    talk(&first, &here, &session);
    let path = format!("/v1/sessions/{session}");
    let resume = json!({ "resume": session });
    assert_eq!(turns(&second, &there, &session), 1, "any service shows it");
    let refused = second.post(&there, "/v1/sessions", &resume).has(409);
    assert_eq!(refused.problem(), "session-elsewhere");
    let command = json!({ "type": "undo" });
    let refused = second.post(&there, &format!("{path}/commands"), &command).has(409);
    assert_eq!(refused.problem(), "session-elsewhere");

    // One that closes it leaves it to others, and back.
    first.post(&here, &format!("{path}/close"), &json!({})).has(204);
    second.post(&there, "/v1/sessions", &resume).has(201);
    talk(&second, &there, &session);
    let refused = first.post(&here, "/v1/sessions", &resume).has(409);
    assert_eq!(refused.problem(), "session-elsewhere");

    // It is killed.
    drop(second);
    until_so("the session is free", || first.post(&here, "/v1/sessions", &resume).status == 201);
    talk(&first, &here, &session);
    assert_eq!(turns(&first, &here, &session), 3);
    let second = ServiceProgram::start(&homes[1]);
    assert_eq!(turns(&second, &there, &session), 3);
    for home in &homes {
        home.run(&["audit", "verify"]).ended(0);
    }
}

/// Lets a program run as one of another machine does: no other program can see its process.
const ELSEWHERE: [&str; 5] = ["unshare", "--pid", "--fork", "--mount-proc", "--kill-child=KILL"];

/// How to run a program as one of another machine; `None` where the system does not allow it.
pub(super) fn elsewhere() -> Option<&'static [&'static str]> {
    let trial = Command::new(ELSEWHERE[0]).args(&ELSEWHERE[1..]).arg("true").status();
    trial.is_ok_and(|status| status.success()).then_some(&ELSEWHERE)
}

/// Nobody can see that the process of a machine has ended. Its lease says so.
#[test]
#[ignore = "needs PostgreSQL: cargo xtask postgres"]
fn a_session_whose_machine_dies_goes_on_when_its_lease_ends() {
    let database = Database::new();
    let Some(elsewhere) = elsewhere() else {
        println!("left out: this system makes no namespaces of processes");
        return;
    };
    let model = talking_model();
    let homes: [Home; 2] = machines(&database, &model);
    let [here, there] = homes.each_ref().map(|home| token(home, "ann", "user"));
    let first = ServiceProgram::start_by(&homes[0], elsewhere, &[]);
    let second = ServiceProgram::start(&homes[1]);
    let session = first.open_session(&here);
    talk(&first, &here, &session);
    let resume = json!({ "resume": session });
    let open = || second.post(&there, "/v1/sessions", &resume);
    assert_eq!(open().has(409).problem(), "session-elsewhere");
    drop(first);
    let begin = Instant::now();
    until_so("the session is free", || open().status == 201);
    println!("taken up {:?} after its machine was killed", begin.elapsed());
    talk(&second, &there, &session);
    assert_eq!(turns(&second, &there, &session), 2);
}

#[test]
#[ignore = "needs PostgreSQL: cargo xtask postgres"]
fn a_request_with_a_key_is_done_by_one_service() {
    let database = Database::new();
    let model = talking_model();
    let homes: [Home; 2] = machines(&database, &model);
    let tokens = homes.each_ref().map(|home| token(home, "ann", "user"));
    let services = homes.each_ref().map(ServiceProgram::start);
    let clock = format!("/v1/tools/{CLOCK}/call");
    let ask = |at: usize, key: &str| {
        let lines = format!("{}Idempotency-Key: {key}\r\n", bearer(&tokens[at]));
        services[at].request("POST", &clock, &lines, "{}")
    };
    for round in 0..5 {
        let key = format!("k{round}");
        let replies = thread::scope(|scope| {
            let both = [0, 1].map(|at| {
                let (ask, key) = (&ask, &key);
                scope.spawn(move || ask(at, key))
            });
            both.map(|reply| reply.join().unwrap())
        });
        for reply in &replies {
            let is_running = reply.status == 409 && reply.problem() == "request-running";
            assert!(reply.status == 200 || is_running, "{reply:#?}");
        }
        let [first, second] = [0, 1].map(|at| ask(at, &key).has(200).body);
        assert_eq!(first, second, "both have the reply of the one call");
    }
    let calls = services[0].get(&tokens[0], "/v1/audit?kind=call&tool=get_time");
    assert_eq!(calls["records"].as_array().unwrap().len(), 5, "{calls}");
}

#[test]
#[ignore = "needs PostgreSQL: cargo xtask postgres"]
fn a_request_that_a_dead_service_began_is_not_repeated_by_another() {
    let database = Database::new();
    let model = talking_model();
    let policy = "[plugin.hostile]\nlimits = { time = \"2h\" }\n";
    let homes = machines::<2>(&database, &model).map(|home| home.policy(policy));
    let [here, there] = homes.each_ref().map(|home| token(home, "ann", "user"));
    let otto = token(&homes[1], "otto", "operator");
    let [first, second] = homes.each_ref().map(ServiceProgram::start);
    let path = "/v1/tools/hostile.sleeps_an_hour/call";
    let key = "Idempotency-Key: k\r\n";
    let head = format!(
        "POST {path} HTTP/1.1\r\nHost: {}\r\n{}{key}Content-Type: application/json\r\n\
         Content-Length: 2\r\n\r\n{{}}",
        first.address,
        bearer(&here)
    );
    let mut stream = first.connect();
    stream.write_all(head.as_bytes()).unwrap();
    let decisions = || {
        let page = second.get(&otto, "/v1/audit?kind=decision&tool=sleeps_an_hour");
        page["records"].as_array().unwrap().len()
    };
    until_so("the call runs", || decisions() == 1);
    let lines = format!("{}{key}", bearer(&there));
    let running = second.request("POST", path, &lines, "{}").has(409);
    assert_eq!(running.problem(), "request-running");
    drop(first);
    until_so("the other service has noticed", || {
        second.request("POST", path, &lines, "{}").has(409).problem() == "outcome-unknown"
    });
    assert_eq!(decisions(), 1, "it is not made again");
}

#[test]
#[ignore = "needs PostgreSQL: cargo xtask postgres"]
fn a_service_whose_database_is_gone_does_nothing_until_it_is_back() {
    let database = Database::new();
    let (model, proxy) = (talking_model(), database.proxy());
    let home = home(&model).config(database.config_at(&proxy.address));
    let ann = token(&home, "ann", "user");
    let service = ServiceProgram::start(&home);
    let session = service.open_session(&ann);
    talk(&service, &ann, &session);
    let clock = format!("/v1/tools/{CLOCK}/call");
    let lines = format!("{}Idempotency-Key: k\r\n", bearer(&ann));
    proxy.cut();
    let refused = service.request("POST", &clock, &lines, "{}").has(503);
    assert_eq!(refused.problem(), "store-unavailable");
    assert!(!refused.body.contains(PASSWORD), "{refused:#?}");
    assert_eq!(service.ask("", "GET", "/readyz", "").has(503).problem(), "store-unavailable");
    service.ask("", "GET", "/healthz", "").has(200);
    proxy.mend();
    service.ask("", "GET", "/readyz", "").has(200);
    let done = service.request("POST", &clock, &lines, "{}").has(200).body;
    assert_eq!(service.request("POST", &clock, &lines, "{}").has(200).body, done);
    let calls = service.get(&ann, "/v1/audit?kind=call&tool=get_time");
    assert_eq!(calls["records"].as_array().unwrap().len(), 1, "{calls}");
    assert_eq!(turns(&service, &ann, &session), 1);
}

#[test]
#[ignore = "needs PostgreSQL: cargo xtask postgres"]
fn a_call_at_one_service_is_approved_at_another() {
    let database = Database::new();
    let model = talking_model();
    let homes: [Home; 2] = machines(&database, &model);
    let [here, _] = homes.each_ref().map(|home| token(home, "ann", "user"));
    let amy = token(&homes[1], "amy", "approver");
    let [first, second] = homes.each_ref().map(ServiceProgram::start);
    let path = format!("/v1/tools/{ECHO}/call");
    let body = json!({ "arguments": { "text": "hello" } });
    thread::scope(|scope| {
        let calling = scope.spawn(|| first.post(&here, &path, &body).has(200).json());
        let card = second.only_question(&amy);
        let answer = json!({ "answer": "once", "hash": card["hash"] });
        let id = card["id"].as_str().unwrap();
        second.post(&amy, &format!("/v1/approvals/{id}/answer"), &answer).has(200);
        assert_eq!(calling.join().unwrap()["outcome"], "completed");
    });
}

const TIMERS: usize = 60;

#[test]
#[ignore = "needs PostgreSQL: cargo xtask postgres"]
fn each_timer_is_fired_by_one_machine() {
    let database = Database::new();
    let model = talking_model();
    let machine = |home: Home| {
        let policy = "[plugin.timer]\nschedule = { timers = 2000 }\nnotify = true\nstate = true\n";
        home.plugins(&["timer"]).policy(policy)
    };
    let homes = machines::<2>(&database, &model).map(machine);
    let address = DatabaseAddress::parse(&database.address()).unwrap();
    let store = HostStore::connect(&address, &homes[0].path("state/postgres")).unwrap();
    let owner = DataOwner { plugin: "timer".parse().unwrap(), user: "local".to_owned() };
    let names: BTreeSet<String> = (0..TIMERS).map(|number| format!("timer{number}e")).collect();
    for name in &names {
        let plan = TimerRequest {
            schedule: TimerSchedule::InMs(1),
            label: Some(name.clone()),
            payload: json!({ "seconds": 5, "number": 1, "set_ms": 1 }).to_string(),
            session_id: "s-before".to_owned(),
            interval_ms_min: 0,
            timers_max: u32::MAX,
        };
        wait(store.timers.add_timer(&owner, plan)).unwrap();
    }
    let mut hosts = homes.each_ref().map(|home| Running::start(home, &["chat"]));
    let said = |hosts: &[Running; 2]| hosts.each_ref().map(|host| host.said().1).concat();
    until_so("all timers are told", || {
        let said = said(&hosts);
        names.iter().all(|name| said.contains(name.as_str()))
    });
    // What would be told twice has had the time to be.
    thread::sleep(Duration::from_secs(1));
    for host in &mut hosts {
        let (code, _, stderr) = host.ends();
        assert_eq!(code, 0, "{stderr}");
    }
    let said = said(&hosts);
    for name in &names {
        assert_eq!(said.matches(name.as_str()).count(), 1, "{name} in {said}");
    }
    assert_eq!(wait(store.timers.all()).unwrap().len(), 0);
}
