//! Approvals by the client's user.

use serde_json::{Value, json};

use super::{asking_home, reason, records};
use crate::support::{McpClient, patience::until};

fn forms() -> Value {
    json!({ "elicitation": {} })
}

/// Calls a tool and answers its question. Returns the question and the result.
#[track_caller]
fn answered(client: &mut McpClient, text: &str, answer: &Value) -> (Value, Value) {
    let params = json!({ "name": "hostile__echo", "arguments": { "text": text } });
    let id = client.request("tools/call", &params);
    let is_it = |one: &Value| {
        one["method"] == "elicitation/create"
            && one["params"]["message"].as_str().unwrap().contains(&format!("\"{text}\""))
    };
    let question = client.message(is_it);
    client.send(&json!({ "jsonrpc": "2.0", "id": question["id"], "result": answer }));
    (question, client.answer(id)["result"].clone())
}

fn accepted(choice: &str) -> Value {
    json!({ "action": "accept", "content": { "approve": choice } })
}

#[test]
fn only_a_clear_yes_lets_a_call_run() {
    let home = asking_home();
    let mut client = McpClient::greeted(&home, &[], &forms());
    let rows = [
        (accepted("once"), true),
        (accepted("yes"), false),
        (json!({ "action": "accept", "content": {} }), false),
        (json!({ "action": "accept" }), false),
        (json!({ "action": "decline" }), false),
        (json!({ "action": "cancel" }), false),
        (json!({ "action": "decline", "content": { "approve": "once" } }), false),
        (json!({ "nonsense": true }), false),
    ];
    for (number, (answer, is_yes)) in rows.iter().enumerate() {
        let (question, result) = answered(&mut client, &format!("words {number}"), answer);
        let message = question["params"]["message"].as_str().unwrap();
        for line in ["Allow hostile.echo to run?", "can: GET https://hostile.example/"] {
            assert!(message.contains(line), "no {line:?} in {message}");
        }
        assert_eq!(result["isError"], !is_yes, "{answer}: {result}");
    }
    assert_eq!(client.close(), 0);
}

#[test]
fn a_yes_holds_as_long_as_it_says() {
    let home = asking_home();
    let echo = |client: &mut McpClient| client.call("hostile__echo", &json!({ "text": "again" }));
    let mut client = McpClient::greeted(&home, &[], &forms());
    assert_eq!(answered(&mut client, "first", &accepted("session")).1["isError"], false);
    assert_eq!(echo(&mut client)["isError"], false, "the connection is the same");
    assert_eq!(client.close(), 0);
    let mut client = McpClient::greeted(&home, &[], &forms());
    assert_eq!(answered(&mut client, "second", &accepted("always")).1["isError"], false);
    assert_eq!(client.close(), 0);
    let mut client = McpClient::greeted(&home, &[], &json!({}));
    assert_eq!(echo(&mut client)["isError"], false, "the policy has the rule");
    assert_eq!(client.close(), 0);
    home.run(&["audit", "show"]).ended(0).answers(&["the user agreed always"]);
}

#[test]
fn questions_come_one_after_another() {
    let home = asking_home();
    let mut client = McpClient::greeted(&home, &[], &forms());
    let calls: Vec<u64> = (0..3)
        .map(|number| {
            let arguments = json!({ "text": format!("call {number}") });
            client
                .request("tools/call", &json!({ "name": "hostile__echo", "arguments": arguments }))
        })
        .collect();
    for asked in 1..=calls.len() {
        let questions = until("a question", || {
            let is_question = |one: &&Value| one["method"] == "elicitation/create";
            let all: Vec<Value> = client.messages().iter().filter(is_question).cloned().collect();
            (all.len() >= asked).then_some(all)
        });
        assert_eq!(questions.len(), asked, "the next one waits for the answer");
        let id = &questions[asked - 1]["id"];
        client.send(&json!({ "jsonrpc": "2.0", "id": id, "result": accepted("once") }));
    }
    for id in calls {
        assert_eq!(client.answer(id)["result"]["isError"], false);
    }
    assert_eq!(client.close(), 0);
}

#[test]
fn a_client_gave_up_because_it_heard_nothing_while_its_user_was_asked() {
    let home = asking_home();
    let mut client = McpClient::greeted(&home, &[], &forms());
    let arguments = json!({ "text": "hi" });
    let meta = json!({ "progressToken": "p" });
    let params = json!({ "name": "hostile__echo", "arguments": arguments, "_meta": meta });
    let id = client.request("tools/call", &params);
    let question = client.of_method("elicitation/create");
    client.message(|one| {
        let text = one["params"]["message"].as_str().unwrap_or_default();
        one["method"] == "notifications/progress" && text.contains("an approval, running for")
    });
    client.send(&json!({ "jsonrpc": "2.0", "id": question["id"], "result": accepted("once") }));
    assert_eq!(client.answer(id)["result"]["isError"], false);
    assert_eq!(client.close(), 0);
}

#[test]
fn a_question_ends_with_its_call() {
    let home = asking_home();
    let mut client = McpClient::greeted(&home, &[], &forms());
    let params = json!({ "name": "hostile__echo", "arguments": { "text": "hi" } });
    let id = client.request("tools/call", &params);
    let question = client.of_method("elicitation/create");
    client.cancel(id);
    // A late answer finds nobody, and the next question is asked.
    client.send(&json!({ "jsonrpc": "2.0", "id": question["id"], "result": accepted("always") }));
    let (_, result) = answered(&mut client, "other", &json!({ "action": "decline" }));
    assert_eq!(reason(&result)["kind"], "denied", "{result}");
    assert!(result["content"][0]["text"].as_str().unwrap().contains("the user said no"));
    assert_eq!(client.close(), 0);
    home.run(&["audit", "show"]).ended(0).answers(&["cancelled while waiting for an approval"]);
}

/// The question was dropped before its call, which then went on as if no user were connected.
#[test]
fn a_call_that_was_cancelled_during_its_question_was_recorded_as_denied() {
    let home = asking_home();
    let mut client = McpClient::greeted(&home, &[], &forms());
    let params = json!({ "name": "hostile__echo", "arguments": { "text": "hi" } });
    let mut asked = Vec::new();
    for _ in 0..12 {
        let id = client.request("tools/call", &params);
        let question = client
            .message(|one| one["method"] == "elicitation/create" && !asked.contains(&one["id"]));
        asked.push(question["id"].clone());
        client.cancel(id);
    }
    // One more is open when the client leaves.
    client.request("tools/call", &params);
    client.message(|one| one["method"] == "elicitation/create" && !asked.contains(&one["id"]));
    assert_eq!(client.close(), 0);
    let decisions = records(&home, "decision");
    let decided: Vec<_> = decisions.iter().map(|one| (&one["decision"], &one["outcome"])).collect();
    assert_eq!(decided, vec![(&json!("ask"), &json!("cancelled")); 13]);
}
