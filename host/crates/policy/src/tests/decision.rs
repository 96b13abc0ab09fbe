//! Decisions about tools.

use sallyport_contract::{
    Decision,
    Decision::{Allow, Ask, Deny},
    ToolCallContext,
};
use serde_json::{Map, json};

use super::{
    DIGEST, GREEDY, decide, grant, manifest, policy, question_about, tool, verdict, verdict_with,
};
use crate::PolicyQuestion;

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
    let grant = policy.effective_grant(&manifest(GREEDY), &Map::new());
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
    let denial = verdict(&policy(text), &grant, "weather.get").to_denial(&id);
    assert!(denial.nobody_to_ask);
    assert_eq!(denial.subject.to_string(), "weather.get may not be called");
    assert_eq!(denial.reason.to_string(), "no rule for it, and weather can reach the network");
    let fix = denial.fix.unwrap().toml;
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
        let denial = verdict(&policy, &grant("", ""), "weather.get").to_denial(&id);
        assert_eq!(denial.reason.to_string(), "rule at policy.toml:1");
        assert_eq!((denial.fix, denial.nobody_to_ask), (None, nobody_to_ask));
    }
}

/// Checks the decision about a call of `weather.get` with `{"n": …}`, and the line that decided it.
#[track_caller]
fn check_call(rules: &str, n: Option<i64>, decision: Decision, line: Option<usize>) {
    let (policy, grant) = (policy(rules), grant(rules, GREEDY));
    let arguments = n.map_or_else(|| json!({}), |n| json!({ "n": n }));
    let verdict = verdict_with(&policy, &grant, "weather.get", &arguments);
    let found = (verdict.decision, verdict.rule.map(|place| place.line));
    assert_eq!(found, (decision, line), "{n:?}\n{rules}");
}

fn rule(decision: &str, more: &str) -> String {
    format!("[[rule]]\ntool = 'weather.get'\ndecision = '{decision}'\n{more}\n")
}

#[test]
fn a_condition_that_cannot_be_evaluated_counts_for_the_stricter_side() {
    let when = "when = 'args.n > 5'";
    let net = "[plugin.weather]\nnet = ['GET https://api.example.com/**']\n";
    for (decision, holds) in [("deny", Deny), ("ask", Ask)] {
        let rules = rule(decision, when);
        check_call(&rules, Some(6), holds, Some(1));
        check_call(&rules, Some(5), Allow, None);
        check_call(&rules, None, holds, Some(1));
    }
    let rules = net.to_owned() + &rule("allow", when);
    check_call(&rules, Some(6), Allow, Some(3));
    check_call(&rules, Some(5), Ask, None);
    check_call(&rules, None, Ask, None);
    // The strictest of the rules whose conditions hold.
    let rules = rule("allow", "") + &rule("deny", when) + &rule("ask", "when = 'args.n > 3'");
    check_call(&rules, Some(6), Deny, Some(5));
    check_call(&rules, Some(4), Ask, Some(9));
    check_call(&rules, Some(3), Allow, Some(1));
    check_call(&rules, None, Deny, Some(5));
}

#[test]
fn a_verdict_names_every_rule_that_spoke() {
    let rules = rule("allow", "when = 'args.n > 5'")
        + &rule("deny", "when = 'args.m > 5'")
        + &rule("ask", "when = 'args.n == 5'")
        + &rule("allow", "");
    let (policy, grant) = (policy(&rules), grant(&rules, GREEDY));
    let verdict = verdict_with(&policy, &grant, "weather.get", &json!({ "n": 7 }));
    let absent = Some("its condition cannot be evaluated: there is no \"m\"");
    let spoke =
        verdict.matched.iter().map(|m| (m.place.line, m.decision, m.is_counted, m.note.as_deref()));
    let want = [(1, Allow, true, None), (5, Deny, true, absent), (13, Allow, true, None)];
    assert_eq!(spoke.collect::<Vec<_>>(), want);
    let reason = "rule at policy.toml:5; its condition cannot be evaluated: there is no \"m\"";
    assert_eq!(verdict.reason, reason);
    let verdict = verdict_with(&policy, &grant, "weather.get", &json!({ "m": 1 }));
    let absent = Some("its condition cannot be evaluated: there is no \"n\"");
    let spoke =
        verdict.matched.iter().map(|m| (m.place.line, m.decision, m.is_counted, m.note.as_deref()));
    let want = [(1, Allow, false, absent), (9, Ask, true, absent), (13, Allow, true, None)];
    assert_eq!(spoke.collect::<Vec<_>>(), want);
}

#[test]
fn a_rule_that_does_not_count_is_named_beside_the_default() {
    let text = format!(
        "[plugin.weather]\nnet = ['GET https://api.example.com/**']\n{}",
        rule("allow", "when = 'args.n > 5'")
    );
    let verdict = verdict(&policy(&text), &grant(&text, GREEDY), "weather.get");
    let reason = "no rule for it, and weather can reach the network; the rule at policy.toml:3 does \
                  not count; its condition cannot be evaluated: there is no \"n\"";
    assert_eq!((verdict.reason.as_str(), verdict.rule), (reason, None));
}

#[test]
fn a_rule_with_a_digest_is_about_that_component_only() {
    for (digest, decision) in
        [(&DIGEST[..12], Deny), (DIGEST, Deny), ("16ee56a487a1", Allow), ("6ee56a487a0c", Allow)]
    {
        let line = (decision == Deny).then_some(1);
        check_call(&rule("deny", &format!("digest = '{digest}'")), None, decision, line);
    }
    // A truncated digest of the component proves nothing.
    let rules = policy(&rule("allow", &format!("digest = '{DIGEST}'")));
    let (id, context, arguments) = (tool("weather.get"), ToolCallContext::default(), json!({}));
    let cut = &DIGEST[..12];
    let question = PolicyQuestion { digest: cut, ..question_about(&id, &arguments, &context) };
    assert_eq!(rules.decide_call(&question, &grant("", "")).rule, None);
}

#[test]
fn the_outlook_says_what_the_arguments_may_change() {
    let net = "[plugin.weather]\nnet = ['GET https://api.example.com/**']\n";
    let when = "when = 'args.n > 5'";
    let (asks, safe) = (
        "no rule for it, and weather can reach the network",
        "no rule for it, and weather can neither change nor leak anything",
    );
    let rows = [
        (String::new(), Allow, safe.to_owned()),
        (rule("deny", when), Allow, format!("{safe}; the rule at policy.toml:1 may deny it")),
        (rule("allow", when), Allow, safe.to_owned()),
        (net.to_owned(), Ask, asks.to_owned()),
        (
            net.to_owned() + &rule("allow", when),
            Ask,
            format!("{asks}; the rule at policy.toml:3 may allow it"),
        ),
        (net.to_owned() + &rule("ask", when), Ask, asks.to_owned()),
        (rule("ask", "") + &rule("allow", when), Ask, "rule at policy.toml:1".to_owned()),
        (
            rule("ask", "") + &rule("deny", when),
            Ask,
            "rule at policy.toml:1; the rule at policy.toml:5 may deny it".to_owned(),
        ),
        (rule("deny", "") + &rule("ask", when), Deny, "rule at policy.toml:1".to_owned()),
        (rule("deny", "net = 'GET https://api.example.com/**'"), Allow, safe.to_owned()),
        (rule("deny", "digest = '000000000000'"), Allow, safe.to_owned()),
    ];
    for (text, decision, reason) in rows {
        let verdict =
            policy(&text).expected_verdict(&tool("weather.get"), DIGEST, &grant(&text, GREEDY));
        assert_eq!((verdict.decision, verdict.reason), (decision, reason), "{text}");
    }
}

#[test]
fn always_writes_a_rule_for_this_component_unless_a_rule_decided() {
    let net = "[plugin.weather]\nnet = ['GET https://api.example.com/**']\n";
    let id = tool("weather.get");
    let grant = grant(net, GREEDY);
    let asked = verdict(&policy(net), &grant, "weather.get");
    let remedy = asked.allowing_rule(&id, Some(DIGEST)).unwrap().to_string();
    let want =
        format!("[[rule]]\ntool = \"weather.get\"\ndigest = \"{DIGEST}\"\ndecision = \"allow\"\n");
    assert_eq!(remedy, want);
    let fixed = verdict(&policy(&(net.to_owned() + &remedy)), &grant, "weather.get");
    assert_eq!((fixed.decision, fixed.rule.map(|place| place.line)), (Allow, Some(3)));
    for decision in ["ask", "deny", "allow"] {
        let ruled = policy(&(net.to_owned() + &rule(decision, "")));
        assert_eq!(verdict(&ruled, &grant, "weather.get").allowing_rule(&id, None), None);
    }
}
