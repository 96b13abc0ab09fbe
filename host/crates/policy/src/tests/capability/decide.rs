//! Pages and roles: decisions with rules, and defaults without them.

use sallyport_contract::{Decision, Decision::*, ToolCallContext};
use serde_json::{Map, json};
use url::Url;

use super::super::{
    DIGEST, GREEDY, check_error, manifest, parse_policy, policy, question_about, tool,
};
use crate::{Grant, Policy, PolicyQuestion, PolicyVerdict};

const OPENS: &str = "[plugin.weather]\nopen-url = true\n";

fn question<T>(id: &str, ask: impl FnOnce(&PolicyQuestion<'_>) -> T) -> T {
    let (id, context) = (tool(id), ToolCallContext::default());
    ask(&question_about(&id, &json!({}), &context))
}

fn of(text: &str) -> (Policy, Grant) {
    let policy = policy(text);
    let grant = policy.effective_grant(&manifest(GREEDY), &Map::new());
    (policy, grant)
}

fn open(text: &str, url: &str) -> PolicyVerdict {
    let ((policy, grant), url) = (of(text), Url::parse(url).unwrap());
    question("weather.get", |question| policy.decide_page(question, &grant, &url))
}

fn rule(tool: &str, page: &str, decision: &str) -> String {
    format!("[[rule]]\ntool = '{tool}'\nopen-url = '{page}'\ndecision = '{decision}'\n")
}

#[test]
fn a_page_is_asked_about_unless_the_policy_says_otherwise() {
    let page = "https://a.io/x";
    let (allow, deny) =
        (rule("weather.*", "https://a.io/**", "allow"), rule("weather.get", page, "deny"));
    let other = rule("weather.put", page, "deny");
    let about_net =
        "[[rule]]\ntool = 'weather.*'\nnet = 'GET https://a.io/**'\ndecision = 'deny'\n";
    let about_calls = "[[rule]]\ntool = 'weather.*'\ndecision = 'deny'\n";
    let rows = [
        (OPENS.to_owned(), Ask, "no rule for it; entry at policy.toml:2"),
        (
            "[plugin.weather]\nopen-url = { decision = 'allow' }".to_owned(),
            Allow,
            "no rule for it; entry at policy.toml:2",
        ),
        (format!("{OPENS}{allow}"), Allow, "rule at policy.toml:3"),
        (format!("{OPENS}{allow}{deny}"), Deny, "rule at policy.toml:7"),
        (
            format!("{OPENS}{other}{about_net}{about_calls}"),
            Ask,
            "no rule for it; entry at policy.toml:2",
        ),
        (allow.clone(), Deny, "its policy does not grant \"open-url\""),
        (
            format!("[plugin.weather]\nopen-url = {{ allow = ['https://b.io'] }}\n{allow}"),
            Deny,
            "no grant covers it",
        ),
    ];
    for (text, decision, reason) in rows {
        let verdict = open(&text, page);
        assert_eq!((verdict.decision, verdict.reason.as_str()), (decision, reason), "{text}");
    }
    let missing = open(&allow, page);
    let fix = missing.to_denial(&tool("weather.get")).fix.unwrap().toml;
    assert!(fix.starts_with("[plugin.weather]\nopen-url = true\n"), "{fix}");
    assert_eq!(missing.allowing_rule(&tool("weather.get"), None), None);
    let odd = open(&format!("{OPENS}{allow}"), "javascript:alert(1)");
    assert_eq!((odd.decision, odd.reason.as_str()), (Deny, "only http and https are possible"));
}

#[test]
fn always_writes_the_rule_for_that_page_and_no_other() {
    let verdict = open(OPENS, "https://a.io/x*?token=s3cret");
    assert_eq!(
        verdict.to_denial(&tool("weather.get")).subject.to_string(),
        "weather may not open https://a.io/x*"
    );
    let rule = verdict.allowing_rule(&tool("weather.get"), Some(DIGEST)).unwrap();
    assert_eq!((rule.page.as_deref(), rule.net.as_deref()), (Some("https://a.io/x%2A"), None));
    let text = format!("{OPENS}{rule}");
    assert_eq!(open(&text, "https://a.io/x*?other").decision, Allow);
    assert_eq!(open(&text, "https://a.io/xy").decision, Ask);
    assert_eq!(open(&text, "https://a.io:8443/x*").decision, Ask);
    assert_eq!(
        verdict.to_denial(&tool("weather.get")).fix.unwrap().toml.matches("open-url").count(),
        1
    );
}

#[test]
fn a_rule_is_about_one_thing() {
    let text = "[[rule]]\ntool = 'w.*'\nnet = 'GET https://a.io'\nopen-url = 'https://a.io'\ndecision = 'deny'";
    let want = "policy.toml:1:1: a rule cannot be about \"net\" and \"open-url\" at once";
    check_error(parse_policy(text), want, "write two rules");
    let text = "[[rule]]\ntool = 'w.*'\nopen-url = 'GET https://a.io'\ndecision = 'deny'";
    assert!(parse_policy(text).is_err());
    // A rule about pages never matches a call.
    let (policy, grant) = of(&(OPENS.to_owned() + &rule("weather.*", "https://a.io", "deny")));
    let call = question("weather.get", |question| policy.decide_call(question, &grant));
    assert_eq!((call.decision, call.matched.len()), (Allow, 0));
}

#[test]
fn a_role_runs_unless_a_rule_speaks_about_it() {
    let rule = |tool: &str, decision: &str| {
        format!("[[rule]]\ntool = '{tool}'\ndecision = '{decision}'\n")
    };
    let granted = "[plugin.weather]\nnet = ['GET https://api.example.com/']\n";
    let rows: [(&str, &[String], Decision, &str); 9] = [
        ("role:timer", &[], Allow, "no rule for it, and the timer is its own"),
        ("role:provider", &[], Allow, "no rule for it, and you chose it as provider"),
        ("role:http", &[], Allow, "no rule for it, and you chose it to answer requests"),
        ("role:timer", &[rule("weather.*", "ask")], Ask, "rule at policy.toml:3"),
        ("role:timer", &[rule("weather.role:timer", "deny")], Deny, "rule at policy.toml:3"),
        (
            "role:ui",
            &[rule("weather.role:timer", "deny")],
            Allow,
            "no rule for it, and you chose it as ui",
        ),
        ("role:ui", &[rule("other.*", "deny")], Allow, "no rule for it, and you chose it as ui"),
        ("role:resources", &[], Ask, "no rule for it, and weather can reach the network"),
        ("role:prompts", &[rule("weather.role:prompts", "allow")], Allow, "rule at policy.toml:3"),
    ];
    for (role, rules, decision, reason) in rows {
        let (policy, grant) = of(&(granted.to_owned() + &rules.concat()));
        let verdict = question(&format!("weather.{role}"), |q| policy.decide_role(q, &grant));
        assert_eq!((verdict.decision, verdict.reason.as_str()), (decision, reason), "{role}");
        // A call with the same name is asked about.
        let call = question("weather.get", |question| policy.decide_call(question, &of(granted).1));
        assert_ne!(call.decision, Allow, "{role}");
    }
}

#[test]
fn what_it_can_do_is_why_somebody_is_asked() {
    let rows = [
        (
            "ui = true\nlisten = ['stdin']",
            "weather can be reached from outside and drive the session",
        ),
        ("notify = true", "weather can send messages"),
        (
            "process = true\npackages = ['*']",
            "weather can have packages fetched and run as a program of this machine",
        ),
        ("open-url = { decision = 'allow' }", "weather can open pages unasked"),
    ];
    for (lines, want) in rows {
        let (policy, grant) = of(&format!("[plugin.weather]\n{lines}"));
        let verdict = question("weather.get", |question| policy.decide_call(question, &grant));
        assert_eq!(
            (verdict.decision, verdict.reason),
            (Ask, format!("no rule for it, and {want}"))
        );
    }
}

#[test]
fn conditions_see_which_capabilities_are_held() {
    let rule = "[[rule]]\ntool = 'weather.*'\nwhen = \"'process' in grants.capabilities\"\ndecision = 'deny'\n";
    for (line, decision) in [("process = true", Deny), ("state = true", Allow), ("", Allow)] {
        let (policy, grant) = of(&format!("[plugin.weather]\n{line}\n{rule}"));
        let verdict = question("weather.get", |question| policy.decide_call(question, &grant));
        assert_eq!(verdict.decision, decision, "{line}");
    }
}
