//! The grants that a user is offered for a refusal: narrow first, and none that could not help.

use sallyport_contract::{Denial, ToolCallContext};
use serde_json::{Map, json};
use url::Url;

use super::{grant, manifest, policy, question_about, tool};
use crate::{Capability, FsAccess, Grant, PolicyQuestion, edit};

const NET: &str = "[[request.net]]\nallow = 'GET https://api.example.com/v1/**'\nwhy = 'w'
    [[request.net]]\nallow = 'GET https://geo.example.com/**'\nwhy = 'w'
    [[request.state]]\nwhy = 'w'";

fn refused(grant: &Grant, url: &str) -> Denial {
    grant.check_request("GET", &Url::parse(url).unwrap()).unwrap_err()
}

/// The choices for a refusal, one text each.
fn choices(grant: &Grant, denial: &Denial) -> Vec<String> {
    let line = |addition: &edit::GrantAddition| {
        let grant = addition.to_fix_grant();
        format!("{} = {}", grant.key, grant.entry)
    };
    let choices = grant.additions_for_denial(denial);
    choices.iter().map(|one| one.iter().map(line).collect::<Vec<_>>().join("; ")).collect()
}

#[test]
fn a_refused_request_is_offered_alone_first() {
    let grant = grant("", NET);
    let denial = refused(&grant, "https://api.example.com/v1/a?key=b#c");
    let (api, geo) = ("GET https://api.example.com/v1/**", "GET https://geo.example.com/**");
    assert_eq!(
        choices(&grant, &denial),
        [
            "net = \"GET https://api.example.com/v1/a\"".to_owned(),
            format!("net = \"{api}\""),
            format!("net = \"{api}\"; net = \"{geo}\""),
            format!("net = \"{api}\"; net = \"{geo}\"; state = true"),
        ]
    );
}

/// It was a pattern for all requests.
#[test]
fn a_star_in_the_address_of_a_request_was_offered_as_a_wildcard() {
    let grant = grant("", NET);
    let denial = refused(&grant, "https://api.example.com/v1/**");
    assert_eq!(choices(&grant, &denial)[0], "net = \"GET https://api.example.com/v1/%2A%2A\"");
}

#[test]
fn a_secret_comes_with_the_requests_of_its_origin_only() {
    let secret = "[[request.secrets]]\nname = 'key'\nheader = 'x-key'\nwhy = 'w'";
    let grant = grant("", &format!("{NET}\n{secret}"));
    let names_secret = |url: &str| {
        let choices = choices(&grant, &refused(&grant, url));
        choices[0].contains("to = \"https://api.example.com\", header = \"x-key\"")
    };
    assert!(names_secret("https://api.example.com/v1/a"));
    assert!(!names_secret("https://geo.example.com/a"));
}

#[test]
fn what_no_grant_can_lift_is_not_offered() {
    let private = "[[request.net]]\nallow = 'GET http://localhost:1-65535/**'\nwhy = 'w'";
    let denies = "[plugin.weather]\nnet = [{ deny = 'GET https://api.example.com/**' }]";
    let rows = [
        ("", NET, "https://other.example.com/"),
        (denies, NET, "https://api.example.com/v1/a"),
        ("", private, "http://localhost:1/a"),
    ];
    for (text, requests, url) in rows {
        let grant = grant(text, requests);
        let denial = refused(&grant, url);
        let lifts = |additions: &Vec<edit::GrantAddition>| {
            let plugin = grant.plugin();
            let text = edit::add_grants(text, plugin, additions).unwrap();
            let extended = policy(&text).effective_grant(&manifest(requests), &Map::new());
            extended.check_request("GET", &Url::parse(url).unwrap()).is_ok()
        };
        assert!(!grant.additions_for_denial(&denial).iter().any(lifts), "{url}");
    }
    let denied = grant("[plugin.weather]\nstate = false", NET);
    assert_eq!(choices(&denied, &denied.deny_capability(Capability::State, "keep")), [""; 0]);
    let unrequested = grant("", NET);
    let denial = unrequested.deny_capability(Capability::Notify, "send");
    assert_eq!(choices(&unrequested, &denial), [""; 0]);
}

#[test]
fn a_rule_that_denies_is_not_lifted_by_a_grant() {
    let text =
        |rule: &str| format!("[plugin.weather]\nnet = ['GET https://api.example.com/**']\n{rule}");
    let rule =
        "[[rule]]\ntool = 'weather.*'\nnet = 'GET https://api.example.com/**'\ndecision = 'deny'";
    let denial = refused(&grant("", NET), "https://api.example.com/v1/a");
    for (rule, want) in [("", true), (rule, false)] {
        let policy = policy(&text(rule));
        let grant = policy.effective_grant(&manifest(NET), &Map::new());
        let (tool, arguments) = (tool("weather.get"), json!({}));
        let context = ToolCallContext::default();
        let question =
            PolicyQuestion { digest: "d", ..question_about(&tool, &arguments, &context) };
        assert_eq!(policy.has_lifted(&denial, &question, &grant), want, "{rule}");
    }
}

#[test]
fn a_plugin_without_a_folder_is_offered_one_to_read_and_one_to_change() {
    let any = "[[request.fs]]\naccess = 'read-write'\nwhy = 'w'";
    let grant_any = grant("", any);
    let denial = grant_any.deny_missing_files(Some("/notes/a.txt")).unwrap();
    assert_eq!(
        choices(&grant_any, &denial),
        [
            "fs = { path = \"FOLDER\", mount = \"/notes\", access = \"read\" }",
            "fs = { path = \"FOLDER\", mount = \"/notes\", access = \"read-write\" }",
        ]
    );
    let named = "[[request.fs]]\naccess = 'read'\npath = '/etc/hostname'\nwhy = 'w'";
    let grant_named = grant("", named);
    let denial = grant_named.deny_missing_files(None).unwrap();
    let want = "fs = { path = \"/etc/hostname\", mount = \"/etc/hostname\", access = \"read\" }";
    assert_eq!(choices(&grant_named, &denial), [want]);
    assert_eq!(grant("", NET).deny_missing_files(None), None);
    let has = grant("[plugin.weather]\nfs = [{ path = '/srv', access = 'read' }]", any);
    assert_eq!(has.deny_missing_files(None), None);
    let denial = has.deny_path("/srv/a", FsAccess::ReadWrite);
    assert_eq!(
        choices(&has, &denial),
        ["fs = { path = \"/srv\", mount = \"/srv\", access = \"read-write\" }"]
    );
}
