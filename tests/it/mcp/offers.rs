//! Resources and prompts of plugins.

use serde_json::{Value, json};

use super::{ALLOW, recorded, records, stateless::with_meta};
use crate::support::{
    Home, McpClient,
    home::{page_component, page_file},
    patience::until_so,
};

/// Requests the whole of a host, so that each question to the plugin needs an approval.
const NET: &str = "\n[[request.net]]\nallow = \"GET https://almanac.example/\"\nwhy = \"test\"\n";

/// A home with the plugin that `docs/roles/offers.md` shows, beside one with tools.
fn home(more: &str, policy: &str) -> Home {
    let manifest = page_file("almanac", "plugin.toml") + more;
    let home = Home::new().plugins(&["clock"]).policy(policy);
    home.component("almanac", &manifest, &page_component("almanac"))
}

fn texts(list: &Value, key: &str) -> Vec<String> {
    let items = list.as_array().unwrap().iter();
    items.map(|item| item[key].as_str().unwrap().to_owned()).collect()
}

#[test]
fn resources_and_prompts_of_a_plugin_reach_a_client() {
    let home = home("", "");
    let mut client = McpClient::start(&home, &[]);
    let about = client.greet("2025-11-25", &json!({}));
    assert_eq!(
        about["capabilities"]["resources"],
        json!({ "subscribe": true, "listChanged": true })
    );
    assert_eq!(about["capabilities"]["prompts"], json!({ "listChanged": true }));
    let listed = client.ask("resources/list", &json!({}))["result"]["resources"].take();
    assert_eq!(texts(&listed, "uri"), ["almanac://monday", "almanac://friday"]);
    let templates = client.ask("resources/templates/list", &json!({}));
    let templates = &templates["result"]["resourceTemplates"];
    assert_eq!(texts(templates, "uriTemplate"), ["almanac://{day}"]);
    let read = client.ask("resources/read", &json!({ "uri": "almanac://friday" }));
    let want = json!([{
        "uri": "almanac://friday",
        "mimeType": "text/plain",
        "text": "All is well that ends well.",
    }]);
    assert_eq!(read["result"]["contents"], want);
    let prompts = client.ask("prompts/list", &json!({}))["result"]["prompts"].take();
    assert_eq!(texts(&prompts, "name"), ["almanac__plan"]);
    assert_eq!(prompts[0]["arguments"][0]["required"], true);
    let arguments = json!({ "name": "almanac__plan", "arguments": { "day": "monday" } });
    let prompt = client.ask("prompts/get", &arguments);
    let message = &prompt["result"]["messages"][0];
    assert_eq!(message["role"], "user");
    assert_eq!(message["content"]["text"], "Plan my monday. Its saying: Well begun is half done.");
    assert_eq!(client.close(), 0);
    let read = recorded(&home).into_iter().filter(|(tool, _)| tool == "role:resources");
    assert_eq!(read.count(), 3, "two lists and one read");
}

#[test]
fn what_is_not_offered_or_does_not_fit_is_an_error_that_says_so() {
    let home = home("", "");
    let mut client = McpClient::greeted(&home, &[], &json!({}));
    let rows = [
        ("resources/read", json!({ "uri": "almanac://someday" }), -32002, "almanac://someday"),
        ("resources/read", json!({}), -32602, "parameters"),
        ("resources/list", json!({ "cursor": "x" }), -32602, "one page"),
        ("prompts/get", json!({ "name": "plan" }), -32602, "Unknown prompt: plan"),
        ("prompts/get", json!({ "name": "almanac__plan" }), -32602, "day is missing"),
        (
            "prompts/get",
            json!({ "name": "almanac__plan", "arguments": { "day": 7 } }),
            -32602,
            "texts",
        ),
    ];
    for (method, params, code, words) in rows {
        let error = client.ask(method, &params)["error"].take();
        assert_eq!(error["code"], code, "{method} {params} {error}");
        assert!(error["message"].as_str().unwrap().contains(words), "{error}");
    }
    let arguments = json!({ "name": "almanac__plan", "arguments": { "day": "someday" } });
    let failed = client.ask("prompts/get", &arguments)["error"].take();
    assert_eq!(failed["data"]["sallyport/reason"]["failure"], "not-found", "{failed}");
    assert_eq!(client.close(), 0);
}

#[test]
fn a_list_asks_nobody_and_reading_asks_the_user() {
    let granted = "[plugin.almanac]\nnet = [\"GET https://almanac.example/\"]\n";
    let home = home(NET, granted);
    let mut client = McpClient::greeted(&home, &[], &json!({ "elicitation": {} }));
    let listed = client.ask("resources/list", &json!({}));
    assert_eq!(listed["result"]["resources"], json!([]), "{listed}");
    let left_out = "the resources of almanac are left out";
    until_so("the log says so", || client.log().contains(left_out));
    let id = client.request("resources/read", &json!({ "uri": "almanac://friday" }));
    let asked = client.of_method("elicitation/create");
    assert!(asked.to_string().contains("role:resources"), "{asked}");
    let answer = json!({ "action": "decline" });
    client.send(&json!({ "jsonrpc": "2.0", "id": asked["id"], "result": answer }));
    let refused = client.answer(id)["error"].take();
    assert_eq!(refused["data"]["sallyport/reason"]["kind"], "denied", "{refused}");
    assert_eq!(client.close(), 0);
    let decisions = records(&home, "decision");
    let refused = decisions.iter().filter(|one| one["tool"] == "role:resources");
    assert!(refused.clone().count() == 2, "{decisions:?}");
}

#[test]
fn the_choice_of_tools_is_one_of_resources_and_prompts_too() {
    let rows: [(&[&str], bool, bool); 4] = [
        (&["--only", "almanac.*"], true, true),
        (&["--only", "clock.*"], false, false),
        (&["--deny", "*.role:prompts"], true, false),
        (&["--deny", "almanac.*"], false, false),
    ];
    let home = home("", ALLOW);
    for (args, resources, prompts) in rows {
        let mut client = McpClient::start(&home, args);
        let about = client.greet("2025-11-25", &json!({}));
        assert_eq!(about["capabilities"]["resources"].is_object(), resources, "{args:?}");
        assert_eq!(about["capabilities"]["prompts"].is_object(), prompts, "{args:?}");
        let read = client.ask("resources/read", &json!({ "uri": "almanac://friday" }));
        assert_eq!(read["result"].is_object(), resources, "{args:?} {read}");
        assert_eq!(client.close(), 0);
    }
}

#[test]
fn tools_are_named_without_their_plugin_if_the_names_differ() {
    let home = home("", ALLOW).guest("hostile", crate::limits::NET);
    let mut client = McpClient::greeted(&home, &["--names", "tool"], &json!({}));
    let tools = client.ask("tools/list", &json!({}))["result"]["tools"].take();
    assert!(texts(&tools, "name").contains(&"get_time".to_owned()), "{tools}");
    let time = client.call("get_time", &json!({ "timezone": "Asia/Tokyo" }));
    assert_eq!(time["structuredContent"]["utc_offset"], "+09:00");
    let unknown = client.ask("tools/call", &json!({ "name": "clock__get_time" }));
    assert_eq!(unknown["error"]["code"], -32602);
    let prompt = json!({ "name": "plan", "arguments": { "day": "monday" } });
    assert!(client.ask("prompts/get", &prompt)["result"].is_object());
    assert_eq!(client.close(), 0);
}

/// A guest that makes the list of plugins another one.
const MORE: &str = "hostile";

/// Waits until a resource was read for the first time.
fn is_watched(home: &Home) {
    until_so("the resource was read", || {
        recorded(home)
            .iter()
            .any(|(tool, outcome)| tool == "role:resources" && outcome == "completed")
    });
}

/// Takes the plugin its right to answer, and has the plugins loaded anew.
fn change(home: Home, client: &McpClient) -> Home {
    let deny = "[[rule]]\ntool = \"almanac.role:resources\"\ndecision = \"deny\"\n";
    let home = home.policy(deny).guest(MORE, NET);
    client.signal(rustix::process::Signal::HUP);
    home
}

#[test]
fn a_client_hears_of_the_resources_that_it_has_subscribed_to() {
    let home = home("", "");
    let mut client = McpClient::greeted(&home, &[], &json!({}));
    let friday = json!({ "uri": "almanac://friday" });
    for _ in 0..2 {
        assert_eq!(client.ask("resources/subscribe", &friday)["result"], json!({}));
    }
    let monday = json!({ "uri": "almanac://monday" });
    assert_eq!(client.ask("resources/subscribe", &monday)["result"], json!({}));
    assert_eq!(client.ask("resources/unsubscribe", &monday)["result"], json!({}));
    assert_eq!(
        client.ask("resources/unsubscribe", &json!({ "uri": "x://y" }))["result"],
        json!({})
    );
    is_watched(&home);
    let _home = change(home, &client);
    let updated = client.of_method("notifications/resources/updated");
    assert_eq!(updated["params"], friday, "{updated}");
    for number in 0..15 {
        let uri = json!({ "uri": format!("almanac://{number}") });
        assert_eq!(client.ask("resources/subscribe", &uri)["result"], json!({}), "{number}");
    }
    let refused = client.ask("resources/subscribe", &json!({ "uri": "almanac://16" }));
    assert!(refused["error"]["message"].as_str().unwrap().contains("16 resources"), "{refused}");
    let without = client.ask("resources/subscribe", &json!({}));
    assert_eq!(without["error"]["code"], -32602, "{without}");
    assert_eq!(client.close(), 0);
}

#[test]
fn a_listener_hears_of_resources() {
    let home = home("", "");
    let mut client = McpClient::start(&home, &[]);
    let uris = ["almanac://friday", "almanac://never"];
    let wanted = json!({ "notifications": { "resourceSubscriptions": uris } });
    client.request("subscriptions/listen", &with_meta(wanted, &json!({})));
    let taken = client.of_method("notifications/subscriptions/acknowledged");
    assert!(taken.to_string().contains("almanac://friday"), "{taken}");
    is_watched(&home);
    let _home = change(home, &client);
    let updated = client.of_method("notifications/resources/updated");
    assert_eq!(updated["params"]["uri"], "almanac://friday", "{updated}");
    // This version has no other way to subscribe.
    for params in [json!({}), json!({ "uri": "almanac://friday" })] {
        let refused = client.ask("resources/subscribe", &with_meta(params, &json!({})));
        assert_eq!(refused["error"]["code"], -32601, "{refused}");
    }
    assert_eq!(client.close(), 0);
}

#[test]
fn without_resources_nobody_subscribes() {
    let home = Home::new().plugins(&["clock"]);
    let mut client = McpClient::greeted(&home, &[], &json!({}));
    let refused = client.ask("resources/subscribe", &json!({ "uri": "almanac://friday" }));
    assert_eq!(refused["error"]["code"], -32601, "{refused}");
    assert_eq!(client.close(), 0);
}
