//! Requests from arguments: encoding, and what cannot be in an address.

use serde_json::{Value, json};

use super::{parse, with_action};
use crate::definition::RequestTemplate;

fn template(request: &str) -> RequestTemplate {
    parse(&with_action(&format!("\"request\": {request}"))).actions[0].request.clone().unwrap()
}

/// A request as text: method, address, headers, body.
fn built(request: &str, arguments: &Value) -> String {
    match template(request).build(arguments) {
        Ok(request) => {
            let headers: Vec<_> =
                request.headers.iter().map(|(name, value)| format!("{name}: {value}")).collect();
            let body = String::from_utf8(request.body).unwrap();
            format!("{} {} [{}] {body}", request.method, request.url, headers.join(", "))
        }
        Err(error) => format!("error: {error}"),
    }
}

#[test]
fn each_argument_is_encoded_for_its_place() {
    let arguments =
        &json!({"id": "a/b?c#d e", "place": "Zürich & Genf", "tags": ["x", "y z"], "n": 3});
    for (request, want) in [
        (
            r#"{"url": "https://a.example/v1/{id}/x"}"#,
            "GET https://a.example/v1/a%2Fb%3Fc%23d%20e/x [] ",
        ),
        (
            r#"{"url": "https://a.example/s?q={place}"}"#,
            "GET https://a.example/s?q=Z%C3%BCrich%20%26%20Genf [] ",
        ),
        (
            r#"{"url": "https://a.example", "query": {"q": "{place}", "t": "{tags}", "s": "{size}", "z": "n={n}"}}"#,
            "GET https://a.example/?q=Z%C3%BCrich+%26+Genf&s=7&t=x&t=y+z&z=n%3D3 [] ",
        ),
        (
            r#"{"method": "post", "url": "https://a.example/", "json": {"n": "{n}", "all": ["{tags}", 1], "text": "{n} of {place}", "size": "{size}", "fixed": null}}"#,
            r#"POST https://a.example/ [Content-Type: application/json] {"all":[["x","y z"],1],"fixed":null,"n":3,"size":7,"text":"3 of Zürich & Genf"}"#,
        ),
        (
            r#"{"method": "PUT", "url": "https://a.example/", "form": {"a": "{place}", "t": "{tags}"}}"#,
            "PUT https://a.example/ [Content-Type: application/x-www-form-urlencoded] a=Z%C3%BCrich+%26+Genf&t=x&t=y+z",
        ),
        (
            r#"{"url": "${SERVICE_URL}/{n_or}"}"#.replace("{n_or}", "{size}").as_str(),
            "GET https://service.example:8443/base/7 [] ",
        ),
        (
            r#"{"url": "https://a.example/?f={{{id}}}"}"#,
            "GET https://a.example/?f={a%2Fb%3Fc%23d%20e} [] ",
        ),
        (
            r#"{"url": "https://a.example/", "headers": {"X-N": "n-{n}"}}"#,
            "GET https://a.example/ [X-N: n-3] ",
        ),
    ] {
        assert_eq!(built(request, arguments), want);
    }
    let few = &json!({"id": "1", "place": "b"});
    for (request, want) in [
        (
            r#"{"url": "https://a.example/", "query": {"n": "{n}"}, "headers": {"X-N": "{n}"}}"#,
            "GET https://a.example/ [] ",
        ),
        (
            r#"{"method": "PATCH", "url": "https://a.example/", "json": {"n": "{n}", "id": "{id}"}}"#,
            r#"PATCH https://a.example/ [Content-Type: application/json] {"id":"1"}"#,
        ),
    ] {
        assert_eq!(built(request, few), want);
    }
}

#[test]
fn an_argument_that_leads_out_of_its_path_is_refused() {
    let request = r#"{"url": "https://a.example/v1/{id}/items"}"#;
    for id in ["..", ".", "", "%2e%2e", "../..", "a\nb", "@b.example", "//b.example"] {
        let found = built(request, &json!({"id": id, "place": "b"}));
        let is_inside =
            found.starts_with("GET https://a.example/v1/") && found.ends_with("/items [] ");
        assert!(
            is_inside || found.starts_with("error: an argument cannot be part"),
            "{id}: {found}"
        );
        assert_eq!(found.starts_with("error"), ["..", ".", ""].contains(&id), "{id}: {found}");
    }
    for id in ["..", "."] {
        let last =
            built(r#"{"url": "https://a.example/v1/{id}"}"#, &json!({"id": id, "place": "b"}));
        assert!(last.starts_with("error: an argument cannot be part"), "{id}: {last}");
    }
    let header = r#"{"url": "https://a.example/", "headers": {"X-Id": "{id}"}}"#;
    for id in ["a\r\nX-Evil: 1", "a\0", "ü"] {
        let found = built(header, &json!({"id": id, "place": "b"}));
        assert!(found.starts_with("error: an argument has a line break"), "{found}");
    }
}

#[test]
fn the_addresses_are_the_request_of_the_plugin() {
    for (request, want) in [
        (r#"{"url": "https://a.example/v1/{id}/x?q={place}"}"#, "GET https://a.example/v1/*/x"),
        (r#"{"method": "DELETE", "url": "https://a.example"}"#, "DELETE https://a.example"),
        (r#"{"url": "${SERVICE_URL}/api"}"#, "GET https://service.example:8443/base/api"),
    ] {
        assert_eq!(template(request).address_pattern(), want);
    }
}
