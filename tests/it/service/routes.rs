//! Every route × every role × own and foreign IDs. The routes come from the document of the service,
//! so a route without a row fails.

use std::collections::BTreeMap;

use serde_json::{Value, json};

use super::{CLOCK, HttpReply, ServiceProgram, asking_model, home, token};

/// The statuses for no token, a user, an approver and an operator.
type Statuses = [u16; 4];

/// Something that others own.
const OWNED: Option<Statuses> = Some([401, 404, 404, 404]);

/// What each role gets from a route.
struct RouteRow {
    operation: &'static str,
    /// The body. `SESSION` is the ID of a session.
    body: Value,
    query: &'static str,
    own: Statuses,
    /// With the IDs of another user; `None` if the route takes none.
    foreign: Option<Statuses>,
}

fn row(operation: &'static str, own: Statuses, foreign: Option<Statuses>) -> RouteRow {
    RouteRow { operation, body: Value::Null, query: "", own, foreign }
}

fn rows() -> Vec<RouteRow> {
    let all = |status| [401, status, status, status];
    let for_operators = [401, 403, 403, 200];
    let empty = || json!({});
    // With a hash that is not the one of the question, so that it stays open.
    let yes = json!({ "answer": "once", "hash": "00" });
    vec![
        RouteRow { body: empty(), ..row("openSession", all(201), None) },
        row("listSessions", all(200), None),
        row("showSession", all(200), OWNED),
        row("streamEvents", all(200), OWNED),
        // A plain request opens none.
        row("openSocket", all(426), OWNED),
        RouteRow { body: json!({ "type": "pin" }), ..row("commandSession", all(202), OWNED) },
        row("exportSession", all(200), OWNED),
        row("listTools", all(200), None),
        RouteRow { body: empty(), ..row("checkCall", all(200), None) },
        RouteRow { body: empty(), ..row("callTool", all(200), None) },
        row("listPlugins", all(200), None),
        row("listConnections", all(200), None),
        // No plugin here has accounts.
        row("connectAccount", all(404), None),
        row("disconnectAccount", all(404), None),
        // Without the state of a sign-in, whoever asks. A token counts as the program's.
        row("finishSignIn", [400; 4], None),
        row("listGrants", for_operators, None),
        row("listApprovals", all(200), None),
        row("showApproval", all(200), Some([401, 404, 200, 200])),
        RouteRow {
            body: yes,
            ..row("answerApproval", [401, 403, 400, 400], Some([401, 404, 400, 400]))
        },
        row("listAudit", all(200), None),
        row("showUsage", all(200), None),
        RouteRow { query: "?user=FOREIGN", ..row("showUsage", [401, 404, 404, 200], None) },
        row("health", [200; 4], None),
        row("readiness", [200; 4], None),
        row("metrics", for_operators, None),
        row("openapi", [200; 4], None),
        // The last one, because nothing can be asked of a closed session.
        row("closeSession", all(204), OWNED),
    ]
}

/// A user with a session and a question.
struct Visitor {
    name: &'static str,
    token: String,
    session: String,
    approval: String,
}

impl Visitor {
    #[track_caller]
    fn new(service: &ServiceProgram, name: &'static str, token: String, reader: &str) -> Self {
        let session = service.open_session(&token);
        service.say(&token, &session, "echo");
        let approval = crate::support::patience::until("a question", || {
            let listed = service.get(reader, "/v1/approvals");
            let cards = listed["approvals"].as_array().unwrap().clone();
            let own = cards.into_iter().find(|card| card["user"] == name);
            own.map(|card| card["id"].as_str().unwrap().to_owned())
        });
        Self { name, token, session, approval }
    }
}

struct Operation {
    method: String,
    path: String,
}

/// The operations of the document by their names.
fn operations(document: &Value) -> BTreeMap<String, Operation> {
    let paths = document["paths"].as_object().unwrap().iter();
    let all = paths.flat_map(|(path, methods)| {
        methods.as_object().unwrap().iter().map(move |(method, operation)| {
            let name = operation["operationId"].as_str().unwrap().to_owned();
            (name, Operation { method: method.to_uppercase(), path: path.clone() })
        })
    });
    all.collect()
}

/// Asks with the IDs of `of`, and returns the answer up to the end of its head or its body.
fn ask(
    service: &ServiceProgram,
    operation: &Operation,
    row: &RouteRow,
    (token, of): (&str, &Visitor),
) -> HttpReply {
    let path = operation
        .path
        .replace("{session_id}", &of.session)
        .replace("{approval_id}", &of.approval)
        .replace("{tool}", CLOCK)
        .replace("{plugin}", "clock");
    let path = path + &row.query.replace("FOREIGN", of.name);
    if row.operation == "streamEvents" && !token.is_empty() {
        let mut stream = service.stream(token, &of.session, "Connection: close\r\n");
        let head = stream.until("\r\n\r\n").to_owned();
        let status = head.split(' ').nth(1).unwrap().parse().unwrap();
        return match status {
            200 => {
                let (head, cookies, body) = (head.to_lowercase(), Vec::new(), String::new());
                HttpReply { status, head, cookies, body }
            }
            _ => service.ask(token, &operation.method, &path, ""),
        };
    }
    let body = if row.body.is_null() { String::new() } else { row.body.to_string() };
    service.ask(token, &operation.method, &path, &body)
}

#[test]
fn every_route_gives_each_role_its_own_and_nothing_of_others() {
    let model = asking_model();
    let home = home(&model);
    let tokens = [("ann", "user"), ("amy", "approver"), ("otto", "operator"), ("ben", "user")];
    let tokens = tokens.map(|(name, role)| (name, token(&home, name, role)));
    let service = ServiceProgram::start(&home);
    let operator = tokens[2].1.clone();
    let [ann, amy, otto, ben] =
        tokens.map(|(name, token)| Visitor::new(&service, name, token, &operator));
    let document = service.request("GET", "/v1/openapi.json", "", "").has(200).json();
    let operations = operations(&document);
    let rows = rows();
    for name in operations.keys() {
        assert!(rows.iter().any(|row| row.operation == name), "{name} has no row");
    }
    for row in &rows {
        let operation = operations.get(row.operation).expect(row.operation);
        for (index, visitor) in [None, Some(&ann), Some(&amy), Some(&otto)].into_iter().enumerate()
        {
            let token = visitor.map_or("", |visitor| visitor.token.as_str());
            let is_about_others = row.query.contains("FOREIGN");
            let of = if is_about_others { &ben } else { visitor.unwrap_or(&ann) };
            let what = format!("{} {index}", row.operation);
            let own = ask(&service, operation, row, (token, of));
            assert_eq!(own.status, row.own[index], "{what}: {own:#?}");
            check_form(&own, &what);
            if !is_about_others {
                check_privacy(&own, visitor, &ben, &what);
            }
            let Some(foreign) = row.foreign else { continue };
            let foreign_reply = ask(&service, operation, row, (token, &ben));
            assert_eq!(foreign_reply.status, foreign[index], "foreign {what}: {foreign_reply:#?}");
            if foreign_reply.status == 404 {
                let missing = Visitor {
                    name: "none",
                    token: String::new(),
                    session: "1-0000000000000000".to_owned(),
                    approval: "0123456789".to_owned(),
                };
                let missing = ask(&service, operation, row, (token, &missing));
                assert_eq!(missing.body, foreign_reply.body, "{what}: it shows that it exists");
            }
        }
    }
    let (_, _, stderr) = service.running.interrupted();
    assert!(!stderr.contains("panicked"), "{stderr}");
}

#[track_caller]
fn check_form(reply: &HttpReply, what: &str) {
    for line in ["cache-control: no-store", "x-content-type-options: nosniff"] {
        assert!(reply.head.contains(line), "{what}: no {line} in {}", reply.head);
    }
    if reply.status >= 400 {
        reply.problem();
    }
    let asks_for_token = reply.head.contains("www-authenticate: bearer");
    assert_eq!(asks_for_token, reply.status == 401, "{what}");
}

/// A user reads nothing about another; approvers read questions, and operators the audit.
#[track_caller]
fn check_privacy(reply: &HttpReply, visitor: Option<&Visitor>, other: &Visitor, what: &str) {
    if visitor.is_none_or(|visitor| visitor.name == "ann") {
        for secret in [&other.session, &other.approval, &other.token] {
            assert!(!reply.body.contains(secret.as_str()), "{what} shows another's: {reply:#?}");
        }
        assert!(!reply.body.contains("\"ben\""), "{what} names another: {reply:#?}");
    }
}

#[test]
fn a_session_of_another_user_cannot_be_resumed_nor_found_by_the_start_of_its_id() {
    let model = super::talking_model();
    let home = home(&model);
    let (ann, ben) = (token(&home, "ann", "user"), token(&home, "ben", "operator"));
    let service = ServiceProgram::start(&home);
    let session = service.open_session(&ann);
    let mut events = service.stream(&ann, &session, "");
    service.say(&ann, &session, "hello");
    events.until("turn-ended");
    service.post(&ann, &format!("/v1/sessions/{session}/close"), &json!({})).has(204);
    let prefix = &session[..session.len() - 1];
    let rows = [(&ben, session.as_str()), (&ben, prefix), (&ann, prefix), (&ann, "")];
    for (token, id) in rows {
        let reply = service.post(token, "/v1/sessions", &json!({ "resume": id }));
        assert_eq!(reply.has(404).problem(), "not-found", "{id}");
    }
    service.post(&ann, "/v1/sessions", &json!({ "resume": session })).has(201);
    service.post(&ann, "/v1/sessions", &json!({ "resume": session })).has(200);
}

/// The host runs for a login, and its records name it; a user of the same name is somebody else.
#[test]
fn a_user_with_the_name_of_the_login_read_the_records_of_all() {
    let model = super::talking_model();
    let home = home(&model).env("USER", "ann");
    let (ann, ben) = (token(&home, "ann", "user"), token(&home, "ben", "user"));
    let service = ServiceProgram::start(&home);
    let call = format!("/v1/tools/{CLOCK}/call");
    service.post(&ben, &call, &json!({})).has(200);
    let users = |token: &str| -> Vec<Value> {
        let page = service.get(token, "/v1/audit");
        let records = page["records"].as_array().unwrap().clone();
        records.into_iter().map(|entry| entry["record"]["user"].clone()).collect()
    };
    assert_eq!(users(&ann), Vec::<Value>::new());
    let own = users(&ben);
    assert!(!own.is_empty() && own.iter().all(|user| user == "ben"), "{own:?}");
}
