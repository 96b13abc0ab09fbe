//! `sallyport mcp`: what a client gets, and what happens to one that misbehaves.

mod approvals;
mod apps;
mod calls;
mod hostile;
pub(crate) mod http;
mod offers;
mod stateless;
mod tasks;

use serde_json::{Value, json};

use crate::{
    limits::NET,
    support::{Home, McpClient, warden::requests},
};

/// Allows every tool of the guests.
const ALLOW: &str = "[[rule]]\ntool = \"*\"\ndecision = \"allow\"\n";

/// A home with a guest whose calls have to be approved, because it may send requests.
fn asking_home() -> Home {
    Home::new()
        .guest("hostile", &requests(&["GET https://hostile.example/"]))
        .policy("[plugin.hostile]\nnet = [\"GET https://hostile.example/\"]\n")
}

/// A home with a guest that may run and nothing else.
fn hostile_home() -> Home {
    Home::new().guest("hostile", NET).policy(ALLOW)
}

/// The records of calls: tool and outcome, the oldest first.
fn recorded(home: &Home) -> Vec<(String, String)> {
    home.run(&["audit", "verify"]).ended(0);
    let text = |record: &Value, key: &str| record[key].as_str().unwrap_or_default().to_owned();
    records(home, "call").iter().map(|one| (text(one, "tool"), text(one, "outcome"))).collect()
}

/// The records of one kind, the oldest first.
fn records(home: &Home, kind: &str) -> Vec<Value> {
    let shown = home.run(&["audit", "show", "--kind", kind, "--output", "json"]).ended(0).stdout;
    let record = |line: &str| serde_json::from_str::<Value>(line).unwrap()["record"].take();
    shown.lines().map(record).collect()
}

fn reason(result: &Value) -> &Value {
    &result["_meta"]["sallyport/reason"]
}

#[test]
fn a_client_sees_the_tools_as_their_authors_describe_them() {
    let home = Home::new().plugins(&["clock"]);
    let mut client = McpClient::start(&home, &[]);
    let about = client.greet("2025-11-25", &json!({}));
    assert_eq!(about["protocolVersion"], "2025-11-25");
    assert_eq!(about["serverInfo"]["name"], "sallyport");
    assert_eq!(
        about["capabilities"],
        json!({
            "logging": {},
            "tools": { "listChanged": true },
            "extensions": { "io.modelcontextprotocol/tasks": {} },
        })
    );
    assert_eq!(client.ask("ping", &json!({}))["result"], json!({}));
    let tools = client.ask("tools/list", &json!({}))["result"]["tools"].clone();
    let clock = tools.as_array().unwrap().iter().find(|one| one["name"] == "clock__get_time");
    let clock = clock.unwrap();
    assert!(clock["description"].as_str().unwrap().contains("time"), "{clock}");
    assert!(clock["inputSchema"]["properties"]["timezone"].is_object(), "{clock}");
    assert!(clock["outputSchema"]["properties"]["utc_offset"].is_object(), "{clock}");
    let hints = json!({ "readOnlyHint": true, "idempotentHint": false, "openWorldHint": false });
    assert_eq!(clock["annotations"], hints);
    assert_eq!(client.close(), 0);
}

#[test]
fn an_older_or_unknown_version_is_answered_with_one_that_the_server_speaks() {
    let home = Home::new().plugins(&["clock"]);
    for (asked, given) in [
        ("2024-11-05", "2024-11-05"),
        ("2025-06-18", "2025-06-18"),
        ("2025-11-25", "2025-11-25"),
        ("1999-01-01", "2025-11-25"),
        ("2026-07-28", "2025-11-25"),
    ] {
        let mut client = McpClient::start(&home, &[]);
        assert_eq!(client.greet(asked, &json!({}))["protocolVersion"], given, "{asked}");
        assert_eq!(client.close(), 0);
    }
}

#[test]
fn only_chosen_tools_exist_for_a_client() {
    let home = Home::new().plugins(&["clock"]).guest("hostile", NET).policy(ALLOW);
    let rows: [(&[&str], &[&str]); 3] = [
        (&["--only", "clock.*"], &["clock__get_time"]),
        (
            &["--only", "hostile.e*", "--deny", "*.endless*", "--deny", "*.exits"],
            &["hostile__echo", "hostile__eats_memory"],
        ),
        (&["--only", "clock.get_time", "--deny", "*"], &[]),
    ];
    for (args, want) in rows {
        let mut client = McpClient::greeted(&home, args, &json!({}));
        let listed = client.ask("tools/list", &json!({}));
        let names: Vec<&Value> =
            listed["result"]["tools"].as_array().unwrap().iter().map(|one| &one["name"]).collect();
        assert_eq!(names, want, "{args:?}");
        for hidden in ["hostile__traps", "hostile.traps"] {
            let answer = client.ask("tools/call", &json!({ "name": hidden, "arguments": {} }));
            assert_eq!(answer["error"]["code"], -32602, "{answer}");
        }
        assert_eq!(client.close(), 0);
        assert!(!client.log().contains("matches no tool"), "{}", client.log());
    }
    assert_eq!(recorded(&home), []);
    let slips = ["mcp", "--only", "clok.*", "--deny", "clock.get_tim", "--deny", "*.role:prompts"];
    home.run(&slips)
        .ended(0)
        .remarks(&["--only clok.* matches no tool", "--deny clock.get_tim matches no tool"]);
    for glob in ["clock", "a b.*", ""] {
        home.run(&["mcp", "--only", glob]).ended(2).remarks(&["--only"]);
    }
}

#[test]
fn a_client_hears_of_plugins_that_come_and_go() {
    let home = Home::new().plugins(&["clock"]);
    let mut client = McpClient::greeted(&home, &[], &json!({}));
    let has = |client: &mut McpClient, name: &str| {
        let listed = client.ask("tools/list", &json!({}));
        listed["result"]["tools"].as_array().unwrap().iter().any(|one| one["name"] == name)
    };
    assert!(has(&mut client, "clock__get_time"));
    let count = |client: &McpClient| {
        let changed = |one: &&Value| one["method"] == "notifications/tools/list_changed";
        client.messages().iter().filter(changed).count()
    };
    let home = home.guest("hostile", NET);
    client.signal(rustix::process::Signal::HUP);
    crate::support::patience::until_so("a change after the signal", || count(&client) >= 1);
    assert!(has(&mut client, "hostile__echo"));
    let seen = count(&client);
    std::fs::remove_dir_all(home.path("plugins/hostile")).unwrap();
    crate::support::patience::until_so("a change after the removal", || count(&client) > seen);
    assert!(!has(&mut client, "hostile__echo"));
    assert!(has(&mut client, "clock__get_time"));
    assert_eq!(client.close(), 0);
}
