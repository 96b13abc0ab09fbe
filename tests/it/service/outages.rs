//! The database goes away while the answer of a model arrives: what was acknowledged stays, and nothing
//! is done without its record.

use std::sync::{
    Arc,
    atomic::{AtomicBool, Ordering},
};

use serde_json::{Value, json};

use super::{
    EventReader, ServiceProgram,
    machines::{elsewhere, machines_of},
    token,
};
use crate::support::{
    Home, Reply, Server,
    database::{Database, DatabaseProxy},
    patience::until_so,
    server::Response,
    warden::{entry, requests},
};

/// What the model says before it calls the tool, so that the test sees that its answer arrives.
const BEGUN: &str = "I fetch it.";

const FETCH: &str = "hostile__fetches";

/// A service whose database goes away.
struct Outage {
    proxy: DatabaseProxy,
    home: Home,
    /// Lets the model end the answer that it has begun.
    goes_on: Arc<AtomicBool>,
    /// The server that the tool fetches a page from.
    pages: Server,
    ann: String,
}

impl Outage {
    fn prepare(database: &Database) -> Self {
        let (goes_on, pages) = (Arc::new(AtomicBool::new(false)), Server::saying("done"));
        let model = pausing_model(&pages, &goes_on);
        let proxy = database.proxy();
        let home = home(&model, &pages).config(database.config_at(&proxy.address));
        let ann = token(&home, "ann", "user");
        Self { proxy, home, goes_on, pages, ann }
    }

    /// Has one turn, begins another one, and cuts the database off while its answer arrives.
    fn cut_mid_turn(&self, service: &ServiceProgram) -> (String, EventReader) {
        let session = service.open_session(&self.ann);
        let mut events = service.stream(&self.ann, &session, "");
        service.say(&self.ann, &session, "hello");
        events.until("\"type\":\"turn-ended\"");
        service.say(&self.ann, &session, "fetch the page");
        events.until(BEGUN);
        self.proxy.cut();
        self.goes_on.store(true, Ordering::SeqCst);
        (session, events)
    }

    fn turns(&self, service: &ServiceProgram, session: &str) -> Vec<Value> {
        let export = service.get(&self.ann, &format!("/v1/sessions/{session}/export"));
        export["turns"].as_array().unwrap().clone()
    }

    /// Fetches the page in a further turn.
    fn fetch(&self, service: &ServiceProgram, session: &str) {
        let mut events = service.stream(&self.ann, session, "");
        service.say(&self.ann, session, "fetch it again");
        events.until("\"outcome\":\"completed\"");
        until_so("the end of the turn", || {
            self.turns(service, session).last().unwrap()["end"] == "answered"
        });
        assert_eq!(self.pages.seen().len(), 1);
        self.home.run(&["audit", "verify"]).ended(0);
    }
}

fn home(model: &Server, pages: &Server) -> Home {
    let net = entry(pages, "");
    let rule = "[[rule]]\ntool = \"hostile.fetches\"\ndecision = \"allow\"\n";
    Home::new()
        .env("OPENAI_BASE_URL", format!("{}/v1", model.url()))
        .env("SALLYPORT_MODEL", "m")
        .plugins(&["clock"])
        .guest("hostile", &requests(&[&format!("GET,HEAD,POST {}/**", pages.url())]))
        .policy(format!("[plugin.hostile]\nnet = [{net}]\n{rule}"))
}

/// A model that fetches a page if it is asked to, and pauses in the middle of that answer.
fn pausing_model(pages: &Server, goes_on: &Arc<AtomicBool>) -> Server {
    let arguments = json!({ "authority": pages.authority(), "path": "/page" });
    let goes_on = Arc::clone(goes_on);
    Server::start(move |request| {
        let body: Value = serde_json::from_str(&request.body).unwrap_or_default();
        let last = body["messages"].as_array().and_then(|messages| messages.last());
        let text = last.filter(|message| message["role"] == "user").map(Value::to_string);
        if text.is_some_and(|text| text.contains("fetch")) {
            return pausing_call(&arguments, &goes_on);
        }
        Reply::Text("Good day.").render(body["stream"] == true)
    })
}

/// A streamed answer with a pause between its text and its call.
fn pausing_call(arguments: &Value, goes_on: &Arc<AtomicBool>) -> Response {
    let call = Reply::call("c1", FETCH, arguments);
    let (Response::Stall(begun), Response::Bytes(whole)) =
        (Reply::Stalls(BEGUN).render(true), call.render(true))
    else {
        panic!("streams are bytes")
    };
    let head_end = whole.windows(4).position(|bytes| bytes == b"\r\n\r\n").unwrap() + 4;
    Response::Pause(begun, Arc::clone(goes_on), whole[head_end..].to_vec())
}

#[test]
#[ignore = "needs PostgreSQL: cargo xtask postgres"]
fn a_database_that_is_back_in_time_is_not_missed_by_a_turn() {
    let database = Database::new();
    let outage = Outage::prepare(&database);
    let service = ServiceProgram::start(&outage.home);
    let (session, mut events) = outage.cut_mid_turn(&service);
    assert_eq!(outage.pages.seen().len(), 0);
    outage.proxy.mend();
    events.until("\"outcome\":\"completed\"");
    until_so("the end of the turn", || {
        outage.turns(&service, &session).last().unwrap()["end"] == "answered"
    });
    let turns = outage.turns(&service, &session);
    assert_eq!(turns.len(), 2, "{turns:#?}");
    assert_eq!(turns[1]["steps"][1]["outcome"], "completed", "{turns:#?}");
    assert_eq!(outage.pages.seen().len(), 1);
    outage.home.run(&["audit", "verify"]).ended(0);
}

#[test]
#[ignore = "needs PostgreSQL: cargo xtask postgres"]
fn a_call_does_not_run_while_the_database_is_gone_and_its_turn_is_stored_afterwards() {
    let database = Database::new();
    let outage = Outage::prepare(&database);
    let service = ServiceProgram::start(&outage.home);
    let (session, mut events) = outage.cut_mid_turn(&service);
    let text = events.until("\"type\":\"call-finished\"").to_owned();
    assert!(text.contains("journal-failed"), "the user is told: {text}");
    assert_eq!(outage.pages.seen().len(), 0, "nothing is done without its record");
    service.ask("", "GET", "/readyz", "").has(503);
    outage.proxy.mend();
    // The journal is tried again at the end of each turn, with all that it missed.
    outage.fetch(&service, &session);
    let turns = outage.turns(&service, &session);
    assert_eq!(turns.len(), 3, "{turns:#?}");
    assert_eq!((&turns[0]["end"], &turns[1]["end"]), (&json!("answered"), &json!("answered")));
    assert_ne!(turns[1]["steps"][1]["outcome"], "completed", "{turns:#?}");
}

#[test]
#[ignore = "needs PostgreSQL: cargo xtask postgres"]
fn a_service_that_is_killed_while_its_database_is_gone_loses_nothing_that_was_acknowledged() {
    let database = Database::new();
    let outage = Outage::prepare(&database);
    let service = ServiceProgram::start(&outage.home);
    let (session, events) = outage.cut_mid_turn(&service);
    drop((service, events));
    assert_eq!(outage.pages.seen().len(), 0);
    outage.proxy.mend();
    let service = ServiceProgram::start(&outage.home);
    let turns = outage.turns(&service, &session);
    assert_eq!(turns.len(), 2, "its input was shown, so it is stored: {turns:#?}");
    assert_eq!((&turns[0]["end"], &turns[1]["end"]), (&json!("answered"), &Value::Null));
    let resume = json!({ "resume": session });
    service.post(&outage.ann, "/v1/sessions", &resume).has(201);
    outage.fetch(&service, &session);
}

/// A machine that loses the database, and finds it again when another one has its session.
#[test]
#[ignore = "needs PostgreSQL: cargo xtask postgres"]
fn a_session_that_continues_elsewhere_ends_on_the_machine_that_was_cut_off() {
    let Some(elsewhere) = elsewhere() else {
        println!("left out: this system makes no namespaces of processes");
        return;
    };
    let (database, pages) = (Database::new(), Server::saying("done"));
    let model = pausing_model(&pages, &Arc::new(AtomicBool::new(true)));
    let proxy = database.proxy();
    let homes: [Home; 2] = machines_of(&database, || home(&model, &pages));
    let [here, there] = homes.each_ref().map(|home| token(home, "ann", "user"));
    let [slow, other] = homes;
    let slow = slow.config(database.config_at(&proxy.address));
    let first = ServiceProgram::start_by(&slow, elsewhere, &[]);
    let second = ServiceProgram::start(&other);
    let session = first.open_session(&here);
    let mut events = first.stream(&here, &session, "");
    first.say(&here, &session, "hello");
    events.until("\"type\":\"turn-ended\"");
    proxy.cut();
    let resume = json!({ "resume": session });
    until_so("the lease of the first has ended", || {
        second.post(&there, "/v1/sessions", &resume).status == 201
    });
    let mut others = second.stream(&there, &session, "");
    second.say(&there, &session, "hello");
    others.until("\"type\":\"turn-ended\"");
    proxy.mend();
    first.say(&here, &session, "hello");
    let rest = events.rest();
    assert!(rest.contains("journal-failed"), "{rest}");
    let path = format!("/v1/sessions/{session}/commands");
    until_so("the session is closed here", || {
        let command = json!({ "type": "undo" });
        let reply = first.post(&here, &path, &command);
        reply.status == 409 && reply.problem() == "session-elsewhere"
    });
    second.say(&there, &session, "hello");
    until_so("a further turn there", || {
        let shown = second.get(&there, &format!("/v1/sessions/{session}"));
        shown["stored"]["turns"] == 3
    });
    slow.run(&["audit", "verify"]).ended(0);
}
