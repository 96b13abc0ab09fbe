//! Long calls as tasks: kept across connections and restarts, of one user, and never made twice.

use serde_json::{Value, json};

use super::{recorded, stateless::with_meta};
use crate::{
    mcp_servers,
    support::{Home, McpClient, mcp::WITH_HANDSHAKE, patience::until},
};

/// What a client says that knows tasks and asks its user.
fn knows_tasks() -> Value {
    json!({
        "elicitation": { "form": {} },
        "extensions": { "io.modelcontextprotocol/tasks": {} }
    })
}

fn call(client: &mut McpClient, capabilities: &Value) -> Value {
    let params = json!({ "name": "fake__echo", "arguments": { "a": 1 } });
    client.ask("tools/call", &with_meta(params, capabilities))["result"].clone()
}

/// A task method about a task.
fn ask(client: &mut McpClient, method: &str, id: &Value) -> Value {
    client.ask(method, &with_meta(json!({ "taskId": id }), &knows_tasks()))
}

/// Waits until a task has this status.
#[track_caller]
fn reached(client: &mut McpClient, id: &Value, status: &str) -> Value {
    until(status, || {
        let task = ask(client, "tasks/get", id)["result"].clone();
        (task["status"] == status).then_some(task)
    })
}

fn started(home: &Home) -> (McpClient, Value) {
    let mut client = McpClient::start(home, &[]);
    let task = call(&mut client, &knows_tasks());
    assert_eq!(task["resultType"], "task", "{task}");
    (client, task)
}

#[test]
fn a_long_call_becomes_a_task_for_a_client_that_knows_them() {
    let home = mcp_servers::home("slow", "");
    let (mut client, task) = started(&home);
    assert_eq!((&task["status"], &task["ttlMs"]), (&json!("working"), &json!(3_600_000)));
    assert!(task["pollIntervalMs"].is_u64() && task["taskId"].as_str().unwrap().len() > 40);
    for key in ["result", "error", "inputRequests", "requestState", "task", "ttl"] {
        assert!(task.get(key).is_none(), "{key} in {task}");
    }
    // It is kept before the client hears of it.
    let seen = ask(&mut client, "tasks/get", &task["taskId"])["result"].clone();
    assert_eq!((&seen["taskId"], &seen["resultType"]), (&task["taskId"], &json!("complete")));
    let done = reached(&mut client, &task["taskId"], "completed");
    assert!(done["result"]["content"].to_string().contains("{\\\"a\\\": 1}"), "{done}");
    assert_eq!(done["createdAt"], task["createdAt"]);
    // To cancel what has ended changes nothing.
    let cancelled = ask(&mut client, "tasks/cancel", &task["taskId"]);
    assert_eq!(cancelled["result"], json!({ "resultType": "complete" }));
    reached(&mut client, &task["taskId"], "completed");
    // Another client of the same user waits.
    let none = json!({});
    let result = call(&mut client, &none);
    assert_eq!(result["resultType"], "complete", "{result}");
    assert_eq!(client.close(), 0);
    let mut client = McpClient::start(&home, &[]);
    client.greet(WITH_HANDSHAKE, &knows_tasks());
    let result = client.call("fake__echo", &json!({}));
    assert!(result["content"].is_array(), "the version with a handshake has no tasks: {result}");
    assert_eq!(client.close(), 0);
    assert_eq!(recorded(&home).len(), 3);
}

#[test]
fn a_short_call_is_no_task() {
    let home = mcp_servers::home("good", "");
    let mut client = McpClient::start(&home, &[]);
    // The first call starts the server.
    until("a short call", || {
        (call(&mut client, &knows_tasks())["resultType"] == "complete").then_some(())
    });
    assert_eq!(client.close(), 0);
}

#[test]
fn only_who_has_the_id_gets_a_task() {
    let home = mcp_servers::home("slow", "");
    let (mut client, task) = started(&home);
    let id = task["taskId"].as_str().unwrap();
    for other in ["", "task-1", &id[1..], &format!("{id}0")] {
        for method in ["tasks/get", "tasks/cancel", "tasks/update"] {
            let params = json!({ "taskId": other, "inputResponses": {} });
            let answer = client.ask(method, &with_meta(params, &knows_tasks()));
            assert_eq!(answer["error"]["code"], -32602, "{method} {other}: {answer}");
        }
    }
    let params = json!({ "taskId": id });
    let answer = client.ask("tasks/get", &with_meta(params, &json!({})));
    assert_eq!(answer["error"]["code"], -32021, "a client that does not know tasks: {answer}");
    for method in ["tasks/list", "tasks/result"] {
        let answer = ask(&mut client, method, &json!(id));
        assert_eq!(answer["error"]["code"], -32601, "{method}: {answer}");
    }
    reached(&mut client, &json!(id), "completed");
    assert_eq!(client.close(), 0);
}

#[test]
fn a_task_is_cancelled_once() {
    let home = mcp_servers::home("mute", "");
    let (mut client, task) = started(&home);
    let cancel = ask(&mut client, "tasks/cancel", &task["taskId"]);
    assert_eq!(cancel["result"], json!({ "resultType": "complete" }));
    let ended = reached(&mut client, &task["taskId"], "cancelled");
    assert!(ended.get("result").is_none() && ended.get("error").is_none(), "{ended}");
    ask(&mut client, "tasks/cancel", &task["taskId"]);
    reached(&mut client, &task["taskId"], "cancelled");
    assert_eq!(client.close(), 0);
    assert_eq!(recorded(&home), [("echo".to_owned(), "cancelled".to_owned())]);
}

#[test]
fn a_result_waits_for_a_client_that_comes_back() {
    let home = mcp_servers::home("slow", "");
    let (mut client, task) = started(&home);
    reached(&mut client, &task["taskId"], "completed");
    assert_eq!(client.close(), 0);
    let mut client = McpClient::start(&home, &[]);
    let kept = ask(&mut client, "tasks/get", &task["taskId"])["result"].clone();
    assert_eq!(kept["status"], "completed", "{kept}");
    assert!(kept["result"]["content"].to_string().contains("{\\\"a\\\": 1}"), "{kept}");
    assert_eq!(client.close(), 0);
    assert_eq!(recorded(&home).len(), 1);
}

#[test]
fn a_task_that_was_cut_off_says_so_and_is_not_made_again() {
    for is_killed in [true, false] {
        let home = mcp_servers::home("mute", "");
        let (mut client, task) = started(&home);
        let mut other = McpClient::start(&home, &[]);
        let elsewhere = ask(&mut other, "tasks/get", &task["taskId"])["result"].clone();
        assert_eq!(elsewhere["status"], "working", "{elsewhere}");
        let cancel = ask(&mut other, "tasks/cancel", &task["taskId"]);
        assert!(cancel["error"]["message"].as_str().unwrap().contains("another process"));
        if is_killed {
            client.signal(rustix::process::Signal::KILL);
        }
        client.close();
        let ended = reached(&mut other, &task["taskId"], "failed");
        let message = ended["error"]["message"].as_str().unwrap();
        assert!(message.contains("was not made again"), "{ended}");
        // The end of a program that was not killed is stored, and not only concluded.
        assert_eq!(ended["lastUpdatedAt"] == ended["createdAt"], is_killed, "{ended}");
        assert_eq!(other.close(), 0);
        let cancelled = ("echo".to_owned(), "cancelled".to_owned());
        // A killed program leaves no record of the end.
        let records = if is_killed { Vec::new() } else { vec![cancelled] };
        assert_eq!(recorded(&home), records);
    }
}

#[test]
fn a_task_waits_for_the_answer_to_its_question() {
    let rows = [
        (json!({ "action": "accept", "content": { "city": "Graz" } }), "Graz"),
        (json!({ "action": "accept", "content": { "city": 5 } }), "decline"),
        (json!("nonsense"), "decline"),
    ];
    for (answer, told) in rows {
        let home = mcp_servers::home("slow-form", "");
        let (mut client, task) = started(&home);
        let asked = reached(&mut client, &task["taskId"], "input_required");
        let questions = asked["inputRequests"].as_object().unwrap();
        let (key, question) = questions.iter().next().unwrap();
        assert_eq!((questions.len(), &question["method"]), (1, &json!("elicitation/create")));
        let update = |client: &mut McpClient, key: &str| {
            let responses = Value::from_iter([(key.to_owned(), answer.clone())]);
            let params = json!({ "taskId": task["taskId"], "inputResponses": responses });
            client.ask("tasks/update", &with_meta(params, &knows_tasks()))["result"].clone()
        };
        assert_eq!(update(&mut client, "other"), json!({ "resultType": "complete" }));
        reached(&mut client, &task["taskId"], "input_required");
        update(&mut client, key);
        let done = reached(&mut client, &task["taskId"], "completed");
        assert!(done["result"].to_string().contains(told), "{done}");
        // The same answer again is for no question.
        update(&mut client, key);
        assert_eq!(client.close(), 0);
    }
}
