//! Explanations and remarks about capabilities.

use sallyport_contract::{Decision, Decision::*, ToolCallContext};
use serde_json::{Map, json};
use url::Url;

use super::super::{GREEDY, manifest, policy, question_about, tool};
use crate::{Capability, DecisionExplanation};

const POLICY: &str = "[plugin.weather]
state = { quota = '1KiB' }
notify = false
open-url = { allow = ['https://a.io/**'] }
listen = [
  'stdin',
  'ws://127.0.0.1:80',
]
[[rule]]
tool = 'weather.*'
open-url = 'https://a.io/secret/**'
decision = 'deny'
";

/// Checks the decision, the lines of all steps, and the line of the step that won.
#[track_caller]
fn check(
    found: &DecisionExplanation,
    decision: Decision,
    lines: &[usize],
    won: &[usize],
    reason: &str,
) {
    assert_eq!((found.decision, found.reason.as_str()), (decision, reason));
    let steps = found.steps.iter();
    assert_eq!(steps.clone().map(|step| step.place.line).collect::<Vec<_>>(), lines, "{found:?}");
    let winners = steps.filter(|step| step.is_decisive).map(|step| step.place.line);
    assert_eq!(winners.collect::<Vec<_>>(), won, "{found:?}");
}

#[test]
fn a_capability_is_explained_by_its_entries() {
    let policy = policy(POLICY);
    let grant = policy.effective_grant(&manifest(GREEDY), &Map::new());
    let explain = |of| policy.explain_capability(&grant, of);
    let state = explain(Capability::State);
    check(&state, Allow, &[2], &[2], "the entry at policy.toml:2 grants it");
    assert_eq!(state.steps[0].text, "state entry { quota = \"1KiB\" }");
    let taken = "the policy takes \"notify\" away at policy.toml:3";
    check(&explain(Capability::Notify), Deny, &[3], &[3], taken);
    let listen = explain(Capability::Listen);
    check(&listen, Allow, &[6, 7], &[6], "the entry at policy.toml:6 grants it");
    let ui = explain(Capability::Ui);
    check(&ui, Deny, &[], &[], "its policy does not grant \"ui\"");
    assert!(ui.fix.unwrap().toml.contains("ui = true"));
    let bare = policy.effective_grant(&manifest(""), &Map::new());
    let unasked = policy.explain_capability(&bare, Capability::State);
    check(&unasked, Deny, &[2], &[], "its manifest does not request \"state\"");
}

#[test]
fn a_page_and_a_call_are_explained_by_what_decided() {
    let policy = policy(POLICY);
    let grant = policy.effective_grant(&manifest(GREEDY), &Map::new());
    let (id, arguments, context) = (tool("weather.get"), json!({}), ToolCallContext::default());
    let question = question_about(&id, &arguments, &context);
    let page = |url: &str| policy.explain_page(&question, &grant, &Url::parse(url).unwrap());
    let asks = page("https://a.io/x");
    check(&asks, Ask, &[4], &[4], "no rule for it; entry at policy.toml:4");
    assert!(asks.fix.unwrap().toml.contains("open-url = \"https://a.io/x\""));
    let denied = page("https://a.io/secret/x");
    check(&denied, Deny, &[4, 9], &[9], "rule at policy.toml:9");
    assert_eq!(denied.steps[1].text, "rule deny weather.* for opening https://a.io/secret/**");
    check(&page("https://b.io/"), Deny, &[4], &[], "no grant covers it");
    let call = policy.explain_call(&question, &grant);
    let reason = "no rule for it, and weather can be reached from outside";
    check(&call, Ask, &[6, 7], &[6, 7], reason);
}

/// Checks the remarks on a policy for the plugin `weather` with the tool `get`.
#[track_caller]
fn check_remarks(text: &str, want: &[&str]) {
    let installed = [("weather".parse().unwrap(), [("get".parse().unwrap())].into())].into();
    let remarks = policy(text).find_remarks(&installed).into_iter();
    let shown = remarks.map(|remark| format!("{}: {}", remark.place.line, remark.message));
    assert_eq!(shown.collect::<Vec<_>>(), want, "{text}");
}

#[test]
fn what_is_useless_is_remarked_on() {
    let head = "[plugin.weather]\n";
    let rows: [(&str, &[&str]); 6] = [
        ("packages = [\n'six',\n'a']", &[]),
        (
            "packages = [\n'six==1.0',\n'six',\n'a',\n'A']",
            &[
                "3: six==1.0 adds nothing to six of policy.toml:4",
                "6: a adds nothing to a of policy.toml:5",
            ],
        ),
        (
            "open-url = { allow = ['https://a.io/**', 'https://a.io/x'] }",
            &["2: https://a.io/x adds nothing to https://a.io/** of policy.toml:2"],
        ),
        (
            "open-url = { allow = ['https://a.io/**'] }\n[[rule]]\ntool = 'weather.get'\n\
             open-url = 'https://b.io/**'\ndecision = 'deny'",
            &["3: has no effect: no entry of weather allows opening https://b.io/**"],
        ),
        (
            "open-url = true\n[[rule]]\ntool = 'weather.get'\nopen-url = 'https://b.io/**'\n\
             decision = 'deny'\n[[rule]]\ntool = 'weather.get'\nopen-url = 'https://b.io/x'\n\
             decision = 'allow'",
            &[
                "7: never decides: policy.toml:3 says deny to the opening of https://b.io/** by weather.get",
            ],
        ),
        (
            "[[rule]]\ntool = 'weather.*'\ndecision = 'deny'\n[[rule]]\ntool = 'weather.get'\n\
             open-url = 'https://b.io/x'\ndecision = 'allow'",
            &["5: never decides: policy.toml:2 says deny to every call of weather.*"],
        ),
    ];
    for (lines, want) in rows {
        check_remarks(&format!("{head}{lines}"), want);
    }
    let rule = |role: &str| format!("[[rule]]\ntool = 'weather.role:{role}'\ndecision = 'deny'");
    check_remarks(&rule("timer"), &[]);
    check_remarks(&rule("timr"), &["1: there is no role timr; did you mean timer?"]);
    check_remarks(
        "[plugin.wether]\nstate = true",
        &["2: no plugin wether is installed; did you mean weather?"],
    );
    check_remarks(
        "[plugin.wether]\nstate = false",
        &["2: no plugin wether is installed; did you mean weather?"],
    );
}

#[test]
fn what_one_file_grants_and_another_takes_away_is_remarked_on() {
    use crate::{Policy, PolicyTier};
    let file = |tier: PolicyTier, line: &str| {
        let text = format!("[plugin.weather]\n{line}");
        Policy::parse_file(tier, tier.as_str(), &text, None).unwrap()
    };
    let policy =
        [file(PolicyTier::User, "listen = ['stdin']"), file(PolicyTier::Project, "listen = false")];
    let installed = [("weather".parse().unwrap(), [].into())].into();
    let remarks = Policy::from_files(policy.into()).unwrap().find_remarks(&installed);
    assert_eq!(remarks[0].message, "grants nothing: project:2 takes \"listen\" away");
}
