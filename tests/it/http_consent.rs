//! Agreeing to a request while the call that makes it runs: the guest waits, its clock stands
//! still, and what holds is what is granted in the end.

use std::{
    io,
    net::IpAddr,
    sync::{
        Arc, Mutex, OnceLock,
        atomic::{AtomicBool, Ordering},
        mpsc,
    },
    time::Duration,
};

use sallyport_contract::{BoxFuture, CallReport, Denial, Effect, HostNameResolver, Outcome};
use serde_json::{Value, json};
use tokio::sync::Notify;

use crate::support::{
    Guarded, Response, Scripted, Server,
    registry::{data, told},
    warden::{entry, hostile, policy, requests},
};

/// Longest wait for something that comes at once unless a test has failed.
const PATIENCE: Duration = Duration::from_secs(20);

/// How long something is waited for that may not come.
const SHORT_WAIT: Duration = Duration::from_millis(500);

fn no(access: &str) -> Denial {
    Denial::new(format!("hostile may not {access}"), "the user said no: not today")
}

fn to(server: &Server) -> Value {
    json!({ "authority": server.authority() })
}

/// A question that is open until a test closes it.
#[derive(Clone)]
struct Question {
    opened: Arc<Mutex<mpsc::Sender<()>>>,
    answered: Arc<Notify>,
    dropped: Arc<AtomicBool>,
}

impl Question {
    fn new() -> (Self, mpsc::Receiver<()>) {
        let (opened, is_open) = mpsc::channel();
        let opened = Arc::new(Mutex::new(opened));
        (Self { opened, answered: Arc::default(), dropped: Arc::default() }, is_open)
    }

    /// Has a warden ask it and agree in the end.
    fn asked_by(&self, warden: Scripted) -> Scripted {
        let question = self.clone();
        warden.agreeing(move |_, _| {
            let question = question.clone();
            Box::pin(async move {
                let _dropped = Dropped(Arc::clone(&question.dropped));
                question.opened.lock().unwrap().send(()).unwrap();
                question.answered.notified().await;
                Ok(Some("allowed once".into()))
            })
        })
    }
}

struct Dropped(Arc<AtomicBool>);

impl Drop for Dropped {
    fn drop(&mut self) {
        self.0.store(true, Ordering::SeqCst);
    }
}

#[test]
fn every_request_is_agreed_to_and_the_answer_is_on_record() {
    let server = Server::saying("hello");
    let warden = hostile(&server, "").agreeing(|_, access| {
        assert!(access.what.starts_with("GET ") && access.url().path() == "/x", "{}", access.what);
        assert_eq!(access.call.tool().to_string(), "hostile.fetches");
        Box::pin(async { Ok(Some("allowed once".into())) })
    });
    let tools = Guarded::by(warden);
    let report = tools
        .call("fetches", &json!({ "authority": server.authority(), "path": "/x?key=private" }));
    assert_eq!(data(&report)["status"], 200);
    let what = format!("GET {}/x", server.url());
    let asked = Effect::Asked { what: what.clone(), answer: "allowed once".into() };
    assert!(report.effects.contains(&asked), "{:?}", report.effects);
    assert_eq!(tools.warden.asked(), [what]);
}

#[test]
fn a_no_is_a_denial_and_nothing_leaves() {
    let server = Server::saying("hello");
    let warden = hostile(&server, "").agreeing(|_, access| {
        let denial = no(access.what);
        Box::pin(async { Err(denial) })
    });
    let tools = Guarded::by(warden);
    let report = tools.call("fetches", &to(&server));
    assert_eq!(report.outcome, Outcome::Denied(no(&format!("GET {}/", server.url()))));
    assert!(server.seen().is_empty());
    // The tool itself sees a refusal and can go on.
    let turn = json!({ "requests": [to(&server)] });
    let report = tools.call("fetches_in_turn", &turn);
    assert!(data(&report)[0]["error"].as_str().unwrap().contains("HttpRequestDenied"));
}

/// Waits long enough for a guest that is not held to do many things.
fn some_time() {
    std::thread::sleep(Duration::from_millis(300));
}

#[test]
fn while_somebody_thinks_the_guest_and_its_clock_stand_still() {
    let server = Server::saying("hello");
    let (question, is_open) = Question::new();
    let warden = question.asked_by(hostile(&server, "limits = { time = \"1s\" }"));
    let tools = Guarded::by(warden);
    let call = tools.spawn(tools.begin("works_while_it_waits", &to(&server)));
    is_open.recv_timeout(PATIENCE).unwrap();
    some_time();
    // The guest sends requests without end, and each of them looks at the grant.
    let looks = tools.warden.looks();
    (0..4).for_each(|_| some_time());
    assert_eq!(tools.warden.looks(), looks, "the guest works on for free");
    question.answered.notify_one();
    let report = tools.wait(call).unwrap();
    let [status, elapsed_ms] = [0, 1].map(|at| data(&report)[at].as_u64().unwrap());
    assert_eq!(status, 200);
    assert!(elapsed_ms < 1000, "on its own clock {elapsed_ms} ms went by");
}

#[test]
fn a_time_out_of_the_guest_s_own_waits_for_the_answer_too() {
    let server = Server::saying("hello");
    let (question, is_open) = Question::new();
    let tools = Guarded::by(question.asked_by(hostile(&server, "")));
    let arguments = json!({ "url": server.url(), "wait_ms": 500 });
    let call = tools.spawn(tools.begin("fetches_with_patience", &arguments));
    is_open.recv_timeout(PATIENCE).unwrap();
    (0..3).for_each(|_| some_time());
    question.answered.notify_one();
    assert_eq!(data(&tools.wait(call).unwrap()), 200);
}

#[test]
fn h43_the_time_of_an_exchange_does_not_run_while_somebody_thinks() {
    let server = Server::saying("hello");
    let (question, is_open) = Question::new();
    let limits = "limits = { http-time = \"500ms\" }";
    let tools = Guarded::by(question.asked_by(hostile(&server, limits)));
    let call = tools.spawn(tools.begin("fetches", &to(&server)));
    is_open.recv_timeout(PATIENCE).unwrap();
    (0..3).for_each(|_| some_time());
    question.answered.notify_one();
    assert_eq!(data(&tools.wait(call).unwrap())["status"], 200);
}

#[test]
fn h43_an_exchange_that_is_under_way_does_not_age_while_somebody_thinks() {
    let (release, held) = mpsc::channel::<()>();
    let held = Mutex::new(held);
    let server = Server::start(move |request| {
        if request.target == "/slow" {
            let _ = held.lock().unwrap().recv_timeout(PATIENCE);
        }
        Response::ok("hello")
    });
    let (question, is_open) = Question::new();
    let asking = question.clone();
    let warden = hostile(&server, "limits = { http-time = \"1s\" }").agreeing(move |_, access| {
        let asking = asking.clone();
        let is_asked = access.url().path() == "/asked";
        Box::pin(async move {
            if is_asked {
                asking.opened.lock().unwrap().send(()).unwrap();
                asking.answered.notified().await;
            }
            Ok(None)
        })
    });
    let tools = Guarded::by(warden);
    let at = |path: &str| json!({ "authority": server.authority(), "path": path });
    let both = json!({ "requests": [at("/slow"), at("/asked")] });
    let call = tools.spawn(tools.begin("fetches_at_once", &both));
    is_open.recv_timeout(PATIENCE).unwrap();
    (0..6).for_each(|_| some_time());
    release.send(()).unwrap();
    question.answered.notify_one();
    assert_eq!(data(&tools.wait(call).unwrap()), &json!(["200", "200"]));
}

#[test]
fn h20_a_call_that_is_cancelled_takes_its_question_back() {
    let server = Server::saying("hello");
    let (question, is_open) = Question::new();
    let tools = Guarded::by(question.asked_by(hostile(&server, "")));
    let call = tools.spawn(tools.begin("fetches", &to(&server)));
    is_open.recv_timeout(PATIENCE).unwrap();
    call.abort();
    assert!(tools.wait(call).unwrap_err().is_cancelled());
    let begun = std::time::Instant::now();
    while !question.dropped.load(Ordering::SeqCst) {
        assert!(begun.elapsed() < PATIENCE, "somebody is still being asked");
        std::thread::sleep(Duration::from_millis(5));
    }
    assert!(server.seen().is_empty());
}

#[test]
fn h67_a_grant_that_is_revoked_while_somebody_thinks_is_gone() {
    let server = Server::saying("hello");
    let warden = hostile(&server, "").agreeing(|warden, _| {
        warden.change(&policy(&[], ""));
        Box::pin(async { Ok(Some("allowed once".into())) })
    });
    let report = Guarded::by(warden).call("fetches", &to(&server));
    assert!(told(&report).contains("its policy grants no network access"), "{}", told(&report));
    assert!(server.seen().is_empty());
}

#[test]
fn h67_a_grant_that_became_stricter_is_agreed_to_again() {
    let server = Server::saying("hello");
    let stricter = policy(&[entry(&server, ", decision = \"ask\"")], "");
    let warden = hostile(&server, "").agreeing(move |warden, _| {
        warden.change(&stricter);
        Box::pin(async { Ok(None) })
    });
    let tools = Guarded::by(warden);
    assert_eq!(data(&tools.call("fetches", &to(&server)))["status"], 200);
    assert_eq!(tools.warden.asked().len(), 2, "once for the grant as it was, once as it is");
}

#[test]
fn h67_a_grant_that_is_revoked_between_two_requests_stops_the_second() {
    let warden: Arc<OnceLock<Arc<Scripted>>> = Arc::default();
    let known = Arc::clone(&warden);
    let server = Server::start(move |_| {
        known.get().unwrap().change(&policy(&[], ""));
        Response::ok("hello")
    });
    let tools = Guarded::by(hostile(&server, ""));
    assert!(warden.set(Arc::clone(&tools.warden)).is_ok());
    let turn = json!({ "requests": [to(&server), to(&server)] });
    let report = tools.call("fetches_in_turn", &turn);
    assert_eq!(data(&report)[0]["status"], 200);
    assert!(data(&report)[1]["error"].as_str().unwrap().contains("HttpRequestDenied"));
    assert_eq!(server.seen().len(), 1);
}

/// Revokes everything while it looks a name up.
struct Revoking(Arc<OnceLock<Arc<Scripted>>>);

impl HostNameResolver for Revoking {
    fn resolve_host<'a>(&'a self, _: &'a str) -> BoxFuture<'a, io::Result<Vec<IpAddr>>> {
        self.0.get().unwrap().change(&policy(&[], ""));
        Box::pin(async { Ok(vec![IpAddr::from([127, 0, 0, 1])]) })
    }
}

#[test]
fn h67_a_grant_that_is_revoked_while_a_name_is_looked_up_is_gone() {
    let server = Server::saying("hello");
    let allow = format!("GET http://a.example:{}/**", server.port);
    let granted = format!("{{ allow = \"{allow}\", to-private = true, range = \"127.0.0.0/8\" }}");
    let warden = Scripted::new("hostile", &requests(&[&allow]), &policy(&[granted], ""));
    let known: Arc<OnceLock<Arc<Scripted>>> = Arc::default();
    let tools = Guarded::resolving(warden, Arc::new(Revoking(Arc::clone(&known))));
    assert!(known.set(Arc::clone(&tools.warden)).is_ok());
    let at = json!({ "authority": format!("a.example:{}", server.port) });
    let report = tools.call("fetches", &at);
    assert!(told(&report).contains("its policy grants no network access"), "{}", told(&report));
    assert!(server.seen().is_empty());
}

/// What was refused in a call, a line each.
fn refusals(report: &CallReport) -> Vec<String> {
    let refused = report.effects.iter().filter_map(|effect| match effect {
        Effect::Refused(denial) => Some(denial.to_string()),
        _ => None,
    });
    refused.collect()
}

#[test]
fn nobody_is_asked_more_often_than_a_call_may_send() {
    let server = Server::saying("hello");
    let warden = hostile(&server, "limits = { http-requests = 3 }").agreeing(|_, access| {
        let denial = no(access.what);
        Box::pin(async { Err(denial) })
    });
    let tools = Guarded::by(warden);
    let turn = json!({ "requests": vec![to(&server); 10] });
    let report = tools.call("fetches_in_turn", &turn);
    assert_eq!(tools.warden.asked().len(), 3);
    assert!(data(&report)[3]["error"].as_str().unwrap().contains("ConnectionLimitReached"));
    assert_eq!(refusals(&report).len(), 1, "{:?}", refusals(&report));
}

/// A guest that an open question stops before its other requests sends them after the answer, so how
/// many questions are open at once depends on the machine.
#[test]
fn questions_of_requests_at_once_stand_beside_each_other() {
    let server = Server::saying("hello");
    let (question, is_open) = Question::new();
    let tools = Guarded::by(question.asked_by(hostile(&server, "limits = { time = \"2s\" }")));
    let three = json!({ "requests": vec![to(&server); 3] });
    let call = tools.spawn(tools.begin("fetches_at_once", &three));
    is_open.recv_timeout(PATIENCE).unwrap();
    let others = (0..2).take_while(|_| is_open.recv_timeout(SHORT_WAIT).is_ok()).count();
    question.answered.notify_one();
    if others > 0 {
        // Another question is still open, so the clock stands.
        (0..8).for_each(|_| some_time());
    }
    for _ in 0..others {
        question.answered.notify_one();
        // One permit at a time: a second one would be lost.
        some_time();
    }
    for _ in others..2 {
        is_open.recv_timeout(PATIENCE).unwrap();
        question.answered.notify_one();
    }
    assert_eq!(data(&tools.wait(call).unwrap()), &json!(["200", "200", "200"]));
}

#[test]
fn without_a_grant_nobody_is_asked() {
    let server = Server::saying("hello");
    let request = requests(&[&format!("GET {}/**", server.url())]);
    let tools = Guarded::by(Scripted::new("hostile", &request, &policy(&[], "")));
    let report = tools.call("fetches", &to(&server));
    assert_eq!(report.outcome.as_str(), "denied");
    assert_eq!(tools.warden.asked(), [""; 0]);
}
