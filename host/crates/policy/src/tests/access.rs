//! Rules about the requests of a running call.

use sallyport_contract::{
    ApprovalSubject, Decision,
    Decision::{Allow, Ask, Deny},
    ToolCallContext,
};
use serde_json::{Value, json};
use url::Url;

use super::{DIGEST, GREEDY, grant, policy, question_about, tool};
use crate::PolicyVerdict;

const ENTRIES: &str = "[plugin.weather]\nnet = ['GET https://api.example.com/**', \
                       { allow = 'PUT https://api.example.com/**', decision = 'ask' }]\n";

/// The verdict on `METHOD URL` of a call of `weather.get`.
fn access(text: &str, request: &str, arguments: &Value) -> PolicyVerdict {
    let (policy, grant) = (policy(text), grant(text, GREEDY));
    let (method, url) = request.split_once(' ').unwrap();
    let url = Url::parse(url).unwrap();
    let permit =
        grant.net().check_request(method, &url).unwrap_or_else(|denial| panic!("{denial:?}"));
    let (id, context) = (tool("weather.get"), ToolCallContext::default());
    let question = question_about(&id, arguments, &context);
    policy.decide_access(&question, &grant, method, &url, &permit)
}

fn rule(tool: &str, net: &str, decision: &str) -> String {
    format!("[[rule]]\ntool = '{tool}'\nnet = '{net}'\ndecision = '{decision}'\n")
}

/// Rules (tool, pattern, decision), the expected decision, and the line that decides it.
type Row<'r> = (&'r [(&'r str, &'r str, &'r str)], Decision, Option<usize>);

#[track_caller]
fn check_rows(request: &str, rows: &[Row<'_>]) {
    for (rules, decision, line) in rows {
        let rules = rules.iter().map(|(tool, net, decision)| rule(tool, net, decision));
        let text = ENTRIES.to_owned() + &rules.collect::<String>();
        let verdict = access(&text, request, &json!({}));
        let found = (verdict.decision, verdict.rule.map(|place| place.line));
        assert_eq!(found, (*decision, *line), "{text}");
    }
}

#[test]
fn rules_about_a_request_replace_what_its_entry_says() {
    let all = "* https://api.example.com/**";
    check_rows(
        "PUT https://api.example.com/v1/a?q=1",
        &[
            (&[], Ask, None),
            (&[("weather.get", all, "allow")], Allow, Some(3)),
            (&[("weather.*", all, "allow")], Allow, Some(3)),
            (&[("weather.get", all, "ask")], Ask, Some(3)),
            (&[("weather.get", all, "deny")], Deny, Some(3)),
            (&[("weather.get", all, "allow"), ("weather.get", all, "ask")], Ask, Some(7)),
            (&[("weather.get", all, "deny"), ("weather.*", all, "allow")], Deny, Some(3)),
            (&[("weather.other", all, "allow")], Ask, None),
            (&[("weather.get", "GET https://api.example.com/**", "allow")], Ask, None),
            (&[("weather.get", "PUT https://api.example.com/v2/**", "allow")], Ask, None),
            (&[("weather.get", "PUT https://*.example.com/v1/*", "allow")], Allow, Some(3)),
        ],
    );
    check_rows(
        "GET https://api.example.com/v1/a",
        &[
            (&[], Allow, None),
            (&[("weather.get", all, "ask")], Ask, Some(3)),
            (&[("weather.get", all, "deny")], Deny, Some(3)),
        ],
    );
    // A rule that stops matches as generously as an entry that denies; a rule that allows does not.
    let path = "* https://api.example.com/v1/Admin";
    check_rows(
        "PUT https://api.example.com/v1//admin;x",
        &[
            (&[("weather.get", path, "deny")], Deny, Some(3)),
            (&[("weather.get", path, "allow")], Ask, None),
        ],
    );
}

/// A method in other letters passed a rule that asks or denies.
#[test]
fn a_rule_that_stops_a_method_stops_it_in_any_letters() {
    let entries = "[plugin.weather]\nnet = ['* https://api.example.com/**']\n";
    let rows = [("ask", (Ask, Some(3))), ("deny", (Deny, Some(3))), ("allow", (Allow, None))];
    for (decision, want) in rows {
        let rule = rule("weather.get", "PUT,DELETE https://api.example.com/**", decision);
        for method in ["delete", "Delete", "put"] {
            let request = format!("{method} https://api.example.com/v1/a");
            let verdict = access(&format!("{entries}{rule}"), &request, &json!({}));
            let found = (verdict.decision, verdict.rule.map(|place| place.line));
            assert_eq!(found, want, "{decision} {method}");
        }
    }
}

#[test]
fn rules_about_calls_and_rules_about_requests_do_not_mix() {
    let call = "[[rule]]\ntool = 'weather.get'\ndecision = 'deny'\n";
    let verdict = access(&(ENTRIES.to_owned() + call), "PUT https://api.example.com/", &json!({}));
    assert_eq!((verdict.decision, verdict.rule), (Ask, None));
    let net = rule("weather.get", "* https://api.example.com/**", "deny");
    let text = ENTRIES.to_owned() + &net;
    let verdict = super::verdict(&policy(&text), &grant(&text, GREEDY), "weather.get");
    assert_eq!((verdict.decision, verdict.rule), (Ask, None));
}

#[test]
fn conditions_hold_for_requests_too() {
    let rule = rule("weather.get", "PUT https://api.example.com/**", "allow");
    let text = format!("{ENTRIES}{rule}when = 'args.n < 5'\ndigest = '{}'\n", &DIGEST[..12]);
    let request = "PUT https://api.example.com/v1/a";
    for (arguments, decision) in
        [(json!({ "n": 4 }), Allow), (json!({ "n": 5 }), Ask), (json!({}), Ask)]
    {
        assert_eq!(access(&text, request, &arguments).decision, decision, "{arguments}");
    }
}

#[test]
fn a_verdict_about_a_request_says_what_it_is_about() {
    let request = "PUT https://api.example.com/v1/a?token=secret#x";
    let verdict = access(ENTRIES, request, &json!({}));
    let what = "PUT https://api.example.com/v1/a".to_owned();
    assert_eq!(verdict.subject(), ApprovalSubject::Access { what });
    assert_eq!(verdict.reason, "no rule for it; entry at policy.toml:2");
    let denial = verdict.to_denial(&tool("weather.get"));
    assert_eq!(denial.subject.to_string(), "weather may not PUT https://api.example.com/v1/a");
    assert!(denial.nobody_to_ask);
    let fix = "[[rule]]\ntool = \"weather.get\"\nnet = \"PUT https://api.example.com/v1/a\"\n\
               decision = \"allow\"\n";
    assert_eq!(denial.fix_toml(), Some(fix));
}

#[test]
fn always_writes_exactly_the_request_that_was_asked_about() {
    let id = tool("weather.get");
    let rows = [
        ("PUT https://api.example.com/v1/a?q=1", "PUT https://api.example.com/v1/a"),
        ("PUT https://api.example.com/", "PUT https://api.example.com/"),
        ("PUT https://api.example.com:443/a", "PUT https://api.example.com/a"),
        // A star in the plugin's URL is literal, not a wildcard.
        ("PUT https://api.example.com/v1/*", "PUT https://api.example.com/v1/%2A"),
        ("PUT https://api.example.com/**", "PUT https://api.example.com/%2A%2A"),
        ("PUT https://api.example.com/a%20b/%C3%A9", "PUT https://api.example.com/a%20b/%C3%A9"),
    ];
    for (request, net) in rows {
        let remedy = access(ENTRIES, request, &json!({})).allowing_rule(&id, Some(DIGEST)).unwrap();
        assert_eq!(remedy.net.as_deref(), Some(net), "{request}");
        let text = format!("{ENTRIES}{remedy}");
        assert_eq!(access(&text, request, &json!({})).decision, Allow, "{text}");
        for other in ["PUT https://api.example.com/v1/b", "PUT https://api.example.com/x/y"] {
            assert_eq!(access(&text, other, &json!({})).decision, Ask, "{text}");
        }
    }
    let long = format!("PUT https://api.example.com/{}", "x".repeat(3000));
    assert_eq!(access(ENTRIES, &long, &json!({})).allowing_rule(&id, None), None);
    let ruled = ENTRIES.to_owned() + &rule("weather.get", "PUT https://api.example.com/**", "ask");
    let verdict = access(&ruled, "PUT https://api.example.com/a", &json!({}));
    assert_eq!((verdict.decision, verdict.allowing_rule(&id, None)), (Ask, None));
}
