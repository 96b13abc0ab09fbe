//! Questions that are answered over HTTP: by whom, with which hash, and once.

use std::thread;

use serde_json::{Value, json};

use super::{ECHO, HttpReply, ServiceProgram, asking_model, home, talking_model, token};
use crate::{mcp_servers, support::Home};

/// The users of a test.
struct Team {
    ann: String,
    amy: String,
    otto: String,
}

impl Team {
    fn new(home: &Home) -> Self {
        let ann = token(home, "ann", "user");
        let (amy, otto) = (token(home, "amy", "approver"), token(home, "otto", "operator"));
        Self { ann, amy, otto }
    }
}

fn answer(service: &ServiceProgram, token: &str, card: &Value, answer: Value) -> HttpReply {
    let id = card["id"].as_str().unwrap();
    service.post(token, &format!("/v1/approvals/{id}/answer"), &answer)
}

#[test]
fn a_call_waits_for_its_approval() {
    let model = talking_model();
    let home = home(&model);
    let Team { ann, amy, otto } = Team::new(&home);
    let service = ServiceProgram::start(&home);
    let call = || {
        let body = json!({ "arguments": { "text": "hello" } });
        service.post(&ann, &format!("/v1/tools/{ECHO}/call"), &body).has(200).json()
    };
    thread::scope(|scope| {
        let calling = scope.spawn(call);
        let card = service.only_question(&ann);
        assert_eq!(card, service.only_question(&amy), "an approver reads the same");
        assert_eq!((&card["user"], &card["question"]["tool"]), (&json!("ann"), &json!(ECHO)));
        assert!(card["text"].as_str().unwrap().contains("hello"), "{card}");
        let hash = card["hash"].clone();
        let yes = |hash: &Value, word: &str| json!({ "answer": word, "hash": hash });
        let (most, last) = hash.as_str().unwrap().split_at(hash.as_str().unwrap().len() - 1);
        let other_hash = json!(format!("{most}{}", if last == "0" { "1" } else { "0" }));
        let rows = [
            (&ann, yes(&hash, "once"), 403, "role-missing"),
            (&ann, yes(&hash, "session"), 403, "role-missing"),
            (&amy, yes(&hash, "always"), 403, "role-missing"),
            (&amy, yes(&other_hash, "once"), 400, "bad-request"),
            (&amy, yes(&json!(""), "once"), 400, "bad-request"),
            (&amy, json!({ "answer": "once" }), 400, "bad-request"),
            (&amy, json!({ "answer": "yes", "hash": hash }), 400, "bad-request"),
            (&amy, json!({ "answer": "once", "hash": hash, "folder": "/" }), 400, "bad-request"),
            (&otto, json!({ "answer": "once", "hash": hash, "user": "x" }), 400, "bad-request"),
        ];
        for (token, given, status, kind) in rows {
            let reply = answer(&service, token, &card, given.clone());
            assert_eq!(reply.has(status).problem(), kind, "{given}");
        }
        answer(&service, &amy, &card, yes(&hash, "once")).has(200);
        assert_eq!(calling.join().unwrap()["outcome"], "completed");
        let again = answer(&service, &amy, &card, yes(&hash, "once"));
        assert!([404, 409].contains(&again.status), "{again:#?}");
    });
    let listed = service.get(&amy, "/v1/approvals");
    assert_eq!(listed["approvals"], json!([]), "nothing waits");
}

#[test]
fn a_user_may_refuse_and_not_allow_what_the_model_asks_for() {
    let model = asking_model();
    let home = home(&model);
    let Team { ann, amy, .. } = Team::new(&home);
    let service = ServiceProgram::start(&home);
    let session = service.open_session(&ann);
    let commands = format!("/v1/sessions/{session}/commands");
    let mut events = service.stream(&ann, &session, "");
    service.say(&ann, &session, "echo");
    events.until("approval-needed");
    let once = json!({ "type": "provide-confirmation", "id": 1, "answer": "once" });
    let reply = service.post(&ann, &commands, &once);
    assert_eq!(reply.has(403).problem(), "role-missing", "the same over the session");
    service.post(&amy, &commands, &once).has(404);
    let card = service.only_question(&amy);
    let no = json!({ "answer": "no", "reason": "not now" });
    answer(&service, &ann, &card, no).has(200);
    let text = events.until("call-finished").to_owned();
    assert!(text.contains("denied") && text.contains("approval-closed"), "{text}");
    let second = service.only_question(&amy);
    assert_ne!(second["id"], card["id"], "the model asks again");
    let hash = second["hash"].clone();
    answer(&service, &amy, &second, json!({ "answer": "once", "hash": hash })).has(200);
    events.until("\"outcome\":\"completed\"");
}

#[test]
fn an_always_of_an_operator_is_a_rule_of_the_policy() {
    let model = talking_model();
    let home = home(&model);
    let Team { ann, otto, .. } = Team::new(&home);
    let service = ServiceProgram::start(&home);
    let path = format!("/v1/tools/{ECHO}/call");
    let call = || service.post(&ann, &path, &json!({ "arguments": { "text": "a" } })).has(200);
    thread::scope(|scope| {
        let calling = scope.spawn(call);
        let card = service.only_question(&otto);
        let hash = card["hash"].clone();
        answer(&service, &otto, &card, json!({ "answer": "always", "hash": hash })).has(200);
        assert_eq!(calling.join().unwrap().json()["outcome"], "completed");
    });
    assert_eq!(call().json()["outcome"], "completed", "without a question");
    let policy = std::fs::read_to_string(home.path("policy.toml")).unwrap();
    assert!(policy.contains("hostile.echo"), "{policy}");
    let grants = service.get(&otto, "/v1/grants");
    let plugins = grants["plugins"].as_array().unwrap();
    let hostile = plugins.iter().find(|plugin| plugin["plugin"] == "hostile").unwrap();
    assert!(hostile["tools"]["allow"].as_array().unwrap().contains(&json!("echo")), "{hostile}");
}

/// What a server asks is not an approval, so that its user answers in any role, with values that fit.
#[test]
fn a_user_answers_the_question_of_an_mcp_server() {
    let model = talking_model();
    let home = mcp_servers::home("form", "")
        .env("OPENAI_BASE_URL", model.base_url())
        .env("SALLYPORT_MODEL", "m");
    let Team { ann, amy, .. } = Team::new(&home);
    let service = ServiceProgram::start(&home);
    let call = || {
        let body = json!({ "arguments": {} });
        service.post(&ann, "/v1/tools/fake.echo/call", &body).has(200).json()
    };
    thread::scope(|scope| {
        let calling = scope.spawn(call);
        let card = service.only_question(&ann);
        assert_eq!(card["answers"], json!(["once", "no"]), "{card}");
        assert_eq!(card["question"]["fields"][0]["name"], "city", "{card}");
        assert!(card["text"].as_str().unwrap().contains("\n| Where to?\n"), "{card}");
        let yes =
            |values: Value| json!({ "answer": "once", "hash": card["hash"], "values": values });
        let rows = [
            (&ann, json!({ "answer": "once", "hash": card["hash"] }), 403),
            (&amy, json!({ "answer": "once", "hash": card["hash"] }), 400),
            (&ann, yes(json!({ "city": "G" })), 400),
            (&ann, yes(json!({ "city": "Graz", "more": 1 })), 400),
            (&ann, yes(json!("Graz")), 400),
            (&ann, json!({ "answer": "once", "values": { "city": "Graz" } }), 400),
            (&ann, yes(json!({ "city": "Graz" })), 200),
        ];
        for (token, given, status) in rows {
            answer(&service, token, &card, given).has(status);
        }
        let report = calling.join().unwrap();
        assert!(report.to_string().contains("Graz"), "{report}");
    });
}
