//! Decisions about tools.

use sallyport_contract::Decision::{Allow, Ask, Deny};

use super::{GREEDY, decide, grant, manifest, policy, tool};
use serde_json::Map;

#[test]
fn the_strictest_of_all_matching_rules_wins_wherever_it_stands() {
    let rules = "
[[rule]]
tool = 'weather.*'
decision = 'ask'
[[rule]]
tool = 'weather.get'
decision = 'allow'
[[rule]]
tool = 'weather.send'
decision = 'deny'
message = 'nothing leaves'
[[rule]]
tool = 'weather.send'
decision = 'ask'
[[rule]]
tool = 'weather2.get'
decision = 'allow'
[[rule]]
tool = 'weather.twice'
decision = 'ask'
";
    let policy = policy(rules);
    let grant = policy.grant(&manifest(GREEDY), &Map::new());
    let rows = [
        ("weather.get", Ask, "rule at policy.toml:2"),
        ("weather.other", Ask, "rule at policy.toml:2"),
        ("weather.twice", Ask, "rule at policy.toml:2"),
        ("weather.send", Deny, "nothing leaves (rule at policy.toml:8)"),
        ("weather2.get", Allow, "rule at policy.toml:15"),
    ];
    for (id, decision, reason) in rows {
        assert_eq!(decide(&policy, &grant, id), (decision, reason.to_owned()), "{id}");
    }
}

#[test]
fn without_a_rule_the_effective_grant_decides() {
    let net = "net = ['GET https://api.example.com/**']";
    let write = "fs = [{ path = '/x', access = 'read-write' }]";
    let both = format!("{net}\n{write}");
    let safe = "no rule for it, and weather can neither change nor leak anything";
    let rows = [
        ("", GREEDY, Allow, safe),
        ("env = ['TZ']\nfs = [{ path = '/x', access = 'read' }]", GREEDY, Allow, safe),
        (net, "", Allow, safe),
        (write, "[[request.fs]]\naccess = 'read'\nwhy = 'w'", Allow, safe),
        (net, GREEDY, Ask, "no rule for it, and weather can reach the network"),
        (write, GREEDY, Ask, "no rule for it, and weather can change files"),
        (&both, GREEDY, Ask, "no rule for it, and weather can reach the network and change files"),
    ];
    for (table, requests, decision, reason) in rows {
        let text = format!("[plugin.weather]\n{table}");
        let (policy, grant) = (policy(&text), grant(&text, requests));
        assert_eq!(decide(&policy, &grant, "weather.get"), (decision, reason.to_owned()), "{text}");
    }
}

#[test]
fn a_refused_call_says_which_rule_would_allow_it() {
    let text = "[plugin.weather]\nnet = ['GET https://api.example.com/**']";
    let grant = grant(text, GREEDY);
    let id = tool("weather.get");
    let denial = policy(text).decide(&id, &grant).denial(&id);
    assert!(denial.nobody_to_ask);
    assert_eq!(denial.what, "weather.get may not be called");
    assert_eq!(denial.why, "no rule for it, and weather can reach the network");
    let fix = denial.fix.unwrap();
    assert_eq!(fix, "[[rule]]\ntool = \"weather.get\"\ndecision = \"allow\"\n");
    let fixed = policy(&format!("{text}\n{fix}"));
    assert_eq!(decide(&fixed, &grant, "weather.get").0, Allow);
    assert_eq!(decide(&fixed, &grant, "weather.other").0, Ask);
}

#[test]
fn a_call_that_a_rule_refused_has_no_other_fix_than_that_rule() {
    for (decision, nobody_to_ask) in [("deny", false), ("ask", true)] {
        let policy = policy(&format!("[[rule]]\ntool = 'weather.get'\ndecision = '{decision}'"));
        let id = tool("weather.get");
        let denial = policy.decide(&id, &grant("", "")).denial(&id);
        assert_eq!(denial.why, "rule at policy.toml:1");
        assert_eq!((denial.fix, denial.nobody_to_ask), (None, nobody_to_ask));
    }
}
