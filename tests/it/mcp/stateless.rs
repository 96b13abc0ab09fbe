//! The version of the protocol without a handshake: each request says who asks.

use serde_json::{Value, json};

use super::{NET, asking_home, reason, recorded};
use crate::support::{Home, McpClient, mcp::STATELESS, patience::until_so};

/// Parameters with all that this version wants in each request.
pub(super) fn with_meta(mut params: Value, capabilities: &Value) -> Value {
    params["_meta"] = json!({
        "io.modelcontextprotocol/protocolVersion": STATELESS,
        "io.modelcontextprotocol/clientInfo": { "name": "test", "version": "1" },
        "io.modelcontextprotocol/clientCapabilities": capabilities,
    });
    params
}

fn echo(text: &str, capabilities: &Value) -> Value {
    with_meta(json!({ "name": "hostile__echo", "arguments": { "text": text } }), capabilities)
}

/// The same call, with the answer to a question.
fn answered(text: &str, question: &Value, choice: &str) -> Value {
    let mut params = echo(text, &forms());
    params["requestState"] = question["requestState"].clone();
    params["inputResponses"] =
        json!({ "approval": { "action": "accept", "content": { "approve": choice } } });
    params
}

fn forms() -> Value {
    json!({ "elicitation": { "form": {} } })
}

#[test]
fn a_client_that_discovers_lists_and_calls() {
    let home = Home::new().plugins(&["clock"]);
    let mut client = McpClient::start(&home, &[]);
    let none = json!({});
    let about = client.ask("server/discover", &with_meta(json!({}), &none));
    let versions = about["result"]["supportedVersions"].as_array().unwrap().clone();
    assert!(versions.contains(&json!(STATELESS)), "{about}");
    assert!(versions.contains(&json!("2025-11-25")), "{about}");
    let listed = client.ask("tools/list", &with_meta(json!({}), &none));
    assert_eq!(listed["result"]["resultType"], "complete", "{listed}");
    let call = with_meta(json!({ "name": "clock__get_time", "arguments": {} }), &none);
    let result = client.ask("tools/call", &call)["result"].clone();
    assert!(result["structuredContent"]["weekday"].is_string(), "{result}");
    let mut wrong = with_meta(json!({}), &none);
    wrong["_meta"]["io.modelcontextprotocol/protocolVersion"] = json!("2031-01-01");
    let answer = client.ask("tools/list", &wrong);
    assert!(answer["error"]["data"].to_string().contains(STATELESS), "{answer}");
    let answer = client.ask("tools/list", &json!({}));
    assert_eq!(answer["error"]["code"], -32602, "a request that does not say who asks: {answer}");
    assert_eq!(client.close(), 0);
}

#[test]
fn an_approval_takes_two_requests_and_runs_the_call_once() {
    let home = asking_home();
    let mut client = McpClient::start(&home, &[]);
    let question = client.ask("tools/call", &echo("hi", &forms()))["result"].clone();
    assert_eq!(question["resultType"], "input_required", "{question}");
    let form = &question["inputRequests"]["approval"];
    assert_eq!(form["method"], "elicitation/create", "{question}");
    assert!(form["params"]["message"].as_str().unwrap().contains("hostile.echo"), "{form}");
    let result = client.ask("tools/call", &answered("hi", &question, "once"))["result"].clone();
    assert_eq!(result["isError"], false, "{result}");
    let again = client.ask("tools/call", &answered("hi", &question, "once"));
    assert_eq!(again["error"]["code"], -32602, "an answer counts once: {again}");
    assert_eq!(recorded(&home), [("echo".to_owned(), "completed".to_owned())]);
    assert_eq!(client.close(), 0);
}

#[test]
fn an_answer_counts_for_its_own_call_only() {
    let home = asking_home();
    let mut client = McpClient::start(&home, &[]);
    let question = client.ask("tools/call", &echo("hi", &forms()))["result"].clone();
    let other = client.ask("tools/call", &answered("other words", &question, "once"));
    assert_eq!(other["error"]["code"], -32602, "{other}");
    let late = client.ask("tools/call", &answered("hi", &question, "once"));
    assert_eq!(late["error"]["code"], -32602, "{late}");
    let mut made_up = question.clone();
    made_up["requestState"] = json!("1-2");
    let made_up = client.ask("tools/call", &answered("hi", &made_up, "once"));
    assert_eq!(made_up["error"]["code"], -32602, "{made_up}");
    let question = client.ask("tools/call", &echo("hi", &forms()))["result"].clone();
    let refused = client.ask("tools/call", &answered("hi", &question, "perhaps"));
    assert_eq!(reason(&refused["result"])["kind"], "denied", "{refused}");
    let unasked = client.ask("tools/call", &echo("hi", &json!({})))["result"].clone();
    assert_eq!(reason(&unasked)["kind"], "needs-approval", "{unasked}");
    assert_eq!(client.close(), 0);
    assert_eq!(recorded(&home), []);
}

#[test]
fn a_subscriber_hears_of_changes() {
    let home = Home::new().plugins(&["clock"]);
    let mut client = McpClient::start(&home, &[]);
    let wanted = json!({ "notifications": { "toolsListChanged": true } });
    client.request("subscriptions/listen", &with_meta(wanted, &json!({})));
    client.of_method("notifications/subscriptions/acknowledged");
    let _home = home.guest("hostile", NET);
    client.signal(rustix::process::Signal::HUP);
    let changed = client.of_method("notifications/tools/list_changed");
    assert!(changed["params"]["_meta"].is_object(), "{changed}");
    until_so("the log says so", || client.log().contains("Plugins reloaded"));
    assert_eq!(client.close(), 0);
}
