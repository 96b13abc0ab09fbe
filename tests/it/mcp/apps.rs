//! Pages of tools: who gets them, and what they may load.

use serde_json::{Value, json};

use super::{ALLOW, stateless::with_meta};
use crate::support::{Home, McpClient};

/// A client that shows pages.
fn shows_pages() -> Value {
    json!({
        "extensions": { "io.modelcontextprotocol/ui": { "mimeTypes": ["text/html;profile=mcp-app"] } }
    })
}

/// A home with the guest that offers pages, beside one of whose tools it offers a page.
fn home() -> Home {
    let roles = "roles = [\"tools\", \"resources\", \"prompts\"]\n";
    let progress = "[[request.progress]]\nwhy = \"test\"\n";
    Home::new().plugins(&["clock"]).guest("reference", &format!("{roles}{progress}")).policy(ALLOW)
}

/// The tools that have a page, with its address.
fn pages(listed: &Value) -> Vec<(String, String)> {
    let tools = listed["result"]["tools"].as_array().unwrap().iter();
    let page = |tool: &Value| {
        let page = tool["_meta"]["ui"]["resourceUri"].as_str()?.to_owned();
        Some((tool["name"].as_str()?.to_owned(), page))
    };
    tools.filter_map(page).collect()
}

#[test]
fn a_tool_has_the_page_that_its_own_plugin_offers() {
    let home = home();
    let own = [
        ("reference__echo".to_owned(), "ui://reference/echo".to_owned()),
        ("reference__greet".to_owned(), "ui://reference/greet".to_owned()),
    ];
    for (capabilities, want) in [(shows_pages(), &own[..]), (json!({}), &[])] {
        let mut client = McpClient::greeted(&home, &[], &capabilities);
        assert_eq!(pages(&client.ask("tools/list", &json!({}))), want);
        assert_eq!(client.close(), 0);
    }
    let mut client = McpClient::start(&home, &[]);
    let listed = client.ask("tools/list", &with_meta(json!({}), &shows_pages()));
    assert_eq!(pages(&listed), own);
    assert_eq!(client.close(), 0);
    // What is not served has no page either.
    let mut client = McpClient::greeted(&home, &["--deny", "*.role:resources"], &shows_pages());
    assert_eq!(pages(&client.ask("tools/list", &json!({}))), []);
    assert_eq!(client.close(), 0);
}

#[test]
fn a_page_may_load_nothing() {
    let home = home();
    let mut client = McpClient::greeted(&home, &[], &shows_pages());
    let listed = client.ask("resources/list", &json!({})).to_string();
    assert!(listed.contains("ui://reference/echo") && !listed.contains("ui://clock"), "{listed}");
    let read = client.ask("resources/read", &json!({ "uri": "ui://reference/echo" }));
    let page = &read["result"]["contents"][0];
    assert_eq!(page["mimeType"], "text/html;profile=mcp-app", "{read}");
    let none: [Value; 0] = [];
    let csp = json!({
        "connectDomains": none, "resourceDomains": none, "frameDomains": none,
        "baseUriDomains": none,
    });
    assert_eq!(page["_meta"], json!({ "ui": { "csp": csp, "permissions": {} } }));
    for uri in ["ui://reference/greet", "ui://clock/get_time", "ui://reference/never"] {
        let refused = client.ask("resources/read", &json!({ "uri": uri }));
        assert_eq!(refused["error"]["code"], -32002, "{uri}: {refused}");
    }
    let text = client.ask("resources/read", &json!({ "uri": "test://static-text" }));
    assert!(text["result"]["contents"][0].get("_meta").is_none(), "{text}");
    assert_eq!(client.close(), 0);
}
