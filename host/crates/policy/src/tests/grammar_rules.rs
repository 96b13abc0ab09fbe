//! The keys of a rule: each has the effect that it states, in both directions.
//!
//! The test of all other tables checks that every key has its rows.

use sallyport_contract::{Decision, ToolCallContext};
use serde_json::{Map, json};
use url::Url;

use super::{GREEDY, manifest, parse_policy, question_about, tool};

/// A key, lines of a rule with it, and whether a call of `weather.get` with `{"n": 6}`, its request
/// for `https://api.example.com/a`, or its page `https://www.example.com/a` passes under that rule.
pub(super) type Row = (&'static str, &'static str, bool);

pub(super) const ROWS: [Row; 24] = [
    ("tool", "tool = 'weather.get'\ndecision = 'deny'", false),
    ("tool", "tool = 'weather.*'\ndecision = 'deny'", false),
    ("tool", "tool = 'weather.put'\ndecision = 'deny'", true),
    ("tool", "tool = '*'\ndecision = 'deny'", false),
    ("tool", "tool = '*.*ET'\ndecision = 'deny'", false),
    ("tool", "tool = '*.get'\nwhen = 'args.n > 5'\ndecision = 'ask'", false),
    ("tool", "tool = '*.*put*'\ndecision = 'deny'", true),
    ("tool", "tool = 'm*.*'\ndecision = 'deny'", true),
    ("tool", "tool = '*'\nwhen = 'args.n > 6'\ndecision = 'deny'", true),
    (
        "net",
        "tool = 'weather.get'\nnet = 'GET https://api.example.com/*'\ndecision = 'deny'",
        false,
    ),
    ("net", "tool = 'weather.get'\nnet = 'PUT https://api.example.com/*'\ndecision = 'deny'", true),
    (
        "open-url",
        "tool = 'weather.get'\nopen-url = 'https://www.example.com/*'\ndecision = 'deny'",
        false,
    ),
    (
        "open-url",
        "tool = 'weather.get'\nopen-url = 'https://www.example.com/b'\ndecision = 'deny'",
        true,
    ),
    ("digest", "tool = 'weather.get'\ndigest = '16ee56a487a0'\ndecision = 'deny'", false),
    ("digest", "tool = 'weather.get'\ndigest = '16ee56a487a1'\ndecision = 'deny'", true),
    ("when", "tool = 'weather.get'\nwhen = 'args.n > 5'\ndecision = 'deny'", false),
    ("when", "tool = 'weather.get'\nwhen = 'args.n > 6'\ndecision = 'deny'", true),
    ("decision", "tool = 'weather.get'\ndecision = 'ask'", false),
    ("decision", "tool = 'weather.get'\ndecision = 'allow'", true),
    ("message", "tool = 'weather.get'\nmessage = 'no {args.n}'\ndecision = 'deny'", false),
    ("message", "tool = 'weather.get'\nmessage = 'yes {args.n}'\ndecision = 'allow'", true),
    // A file with a failing example grants nothing.
    ("match", "tool = 'weather.get'\nmatch = [{ decision = 'ask' }]\ndecision = 'allow'", false),
    ("match", "tool = 'weather.get'\nmatch = [{ decision = 'allow' }]\ndecision = 'allow'", true),
    ("match", "tool = 'weather.put'\nmatch = [{ decision = 'deny' }]\ndecision = 'deny'", true),
];

/// Whether the call and its request pass. A question does not count as passing.
fn passes(rule: &str) -> bool {
    let table = "[plugin.weather]\nnet = ['GET https://api.example.com/**']\n\
                 open-url = { decision = 'allow' }\n";
    let allow = "[[rule]]\ntool = 'weather.*'\ndecision = 'allow'\n";
    let Ok(policy) = parse_policy(&format!("{table}{allow}[[rule]]\n{rule}")) else {
        return false;
    };
    let grant = policy.effective_grant(&manifest(GREEDY), &Map::new());
    let (id, context, arguments) =
        (tool("weather.get"), ToolCallContext::default(), json!({ "n": 6 }));
    let question = question_about(&id, &arguments, &context);
    let url = Url::parse("https://api.example.com/a").unwrap();
    let permit = grant.net().check_request("GET", &url).unwrap();
    let call = policy.decide_call(&question, &grant).decision;
    let access = policy.decide_access(&question, &grant, "GET", &url, &permit).decision;
    let page = Url::parse("https://www.example.com/a").unwrap();
    let page = policy.decide_page(&question, &grant, &page).decision;
    call.max(access).max(page) == Decision::Allow
}

#[test]
fn every_key_of_a_rule_allows_and_denies_as_it_says() {
    for (key, rule, passing) in ROWS {
        assert!(rule.lines().any(|line| line.starts_with(&format!("{key} = "))), "{rule}");
        assert_eq!(passes(rule), passing, "{rule}");
    }
}
