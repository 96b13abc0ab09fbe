//! Policies: whatever their text, reading and deciding does not panic, and what tightens them never
//! allows more.
//!
//! Parts: a user's file, a project's file, a request as `METHOD URL`, arguments as JSON.
#![no_main]

use std::{
    collections::{BTreeMap, BTreeSet},
    path::Path,
};

use libfuzzer_sys::fuzz_target;
use sallyport_contract::Decision;
use sallyport_fuzz::{
    parts,
    situation::{DIGEST, FILE, HOME, Situation, user_policy},
    toml_string,
};
use sallyport_policy::{
    Access, Limits, Policy, PolicyFile, Surroundings, Tier,
    edit::{self, RuleTarget},
    learn::{Learned, Need},
};
use serde_json::Map;

fuzz_target!(|input: &str| {
    let [user, project, request, arguments] = parts(input);
    let situation = Situation::read(request, arguments);
    let file = read(Tier::User, user);
    assert_eq!(read(Tier::Admin, user).is_some(), file.is_some(), "admin and user say the same");
    let strict = read(Tier::Project, user);
    assert!(strict.is_none() || file.is_some(), "what a project may say, anybody may");
    let Some(file) = file else { return };
    let Ok(policy) = Policy::of(vec![file.clone()]) else { return };
    check_guard(&policy, user, &situation);
    check_explanations(&policy, &situation);
    check_denials(&file, &situation);
    if let Some(project) = read(Tier::Project, project) {
        check_tightening(&policy, &file, project, &situation);
    }
    check_always(&policy, user, &situation);
    check_learning(&policy, user, request, &situation);
});

fn read(tier: Tier, text: &str) -> Option<PolicyFile> {
    Policy::parse(tier, FILE, text, Some(Path::new(HOME))).ok()
}

/// What a guard lets through holds no keys, unless the policy says so twice.
fn check_guard(policy: &Policy, text: &str, situation: &Situation) {
    let (own, home) = ([Path::new(HOME).join(".config/sallyport")], Path::new(HOME));
    let real = |path: &Path| path.to_owned();
    let around = Surroundings { own: &own, home: Some(home), real: &real };
    if policy.guard(&around).is_ok() && !text.contains("sensitive") {
        for mount in situation.grant(policy).fs() {
            for closed in [home.join(".ssh"), own[0].clone()] {
                assert!(!mount.host.starts_with(&closed), "{mount:?}");
                assert!(!closed.starts_with(&mount.host), "{mount:?}");
            }
        }
    }
}

/// The explanation of a decision is of that decision.
fn check_explanations(policy: &Policy, situation: &Situation) {
    let (grant, question) = (situation.grant(policy), situation.question());
    let mut decisions = situation.decisions(policy).into_iter();
    let call = policy.explain_call(&question, &grant);
    assert_eq!(Some(call.decision), decisions.next(), "{}", call.reason);
    for ((method, url), decision) in situation.requests().iter().zip(decisions) {
        let found = policy.explain_net(&question, &grant, method, url);
        assert_eq!(found.decision, decision, "{}", found.reason);
        policy.explain_path(&grant, url.path(), Access::ReadWrite);
        grant.deny_path(url.path(), Access::Read);
    }
    let outlook = policy.outlook(situation.tool(), DIGEST, &grant);
    let is_settled = outlook.matched.iter().all(|matched| matched.counted);
    assert!(!is_settled || outlook.decision == call.decision, "{}", outlook.reason);
    let tools = BTreeSet::from([situation.tool().tool.clone()]);
    policy.remarks(&BTreeMap::from([(situation.tool().plugin.clone(), tools)]));
    assert!(policy.examples().all(|example| example.got == example.expected));
}

/// A rule that denies and an entry that denies do so, whatever else there is.
fn check_denials(file: &PolicyFile, situation: &Situation) {
    let with = |text: &str| {
        let denying = read(Tier::Project, text)?;
        Some(Policy::of(vec![file.clone(), denying]).expect("a file that denies fits to any"))
    };
    let denied = with("[[rule]]\ntool = 'weather.*'\ndecision = 'deny'").expect("a rule");
    assert_eq!(situation.of_call(&denied).decision, Decision::Deny);
    let net = "[plugin.weather]\nnet = [{ deny = '* https://**' }, { deny = '* http://**' }]";
    let closed = with(net).expect("entries");
    assert!(situation.decisions(&closed)[1..].iter().all(|decision| *decision == Decision::Deny));
    for (index, (_, url)) in situation.requests().iter().enumerate() {
        let port = url.port_or_known_default().unwrap_or(443);
        let host = url.host_str().unwrap_or_default();
        let entry = toml_string(&format!("* {}://{host}:{port}/**", url.scheme()));
        // What no entry can name is not reached by one either.
        let closed = with(&format!("[plugin.weather]\nnet = [{{ deny = {entry} }}]"));
        let decision = closed.map(|policy| situation.decisions(&policy)[index + 1]);
        assert!(decision.is_none_or(|decision| decision == Decision::Deny), "{url}");
    }
}

/// A project's file never allows more, and never gives more.
fn check_tightening(
    policy: &Policy,
    file: &PolicyFile,
    project: PolicyFile,
    situation: &Situation,
) {
    let Ok(tight) = Policy::of(vec![file.clone(), project]) else { return };
    let pairs = situation.decisions(&tight).into_iter().zip(situation.decisions(policy));
    for (index, (strict, lax)) in pairs.enumerate() {
        assert!(strict >= lax, "{strict:?} after {lax:?}, of {index}");
    }
    let (strict, lax) = (situation.grant(&tight), situation.grant(policy));
    assert_eq!((strict.fs(), strict.env(), strict.secrets()), (lax.fs(), lax.env(), lax.secrets()));
    let pairs = amounts(strict.limits()).into_iter().zip(amounts(lax.limits()));
    for (index, (strict, lax)) in pairs.enumerate() {
        assert!(strict <= lax, "limit {index}: {strict} after {lax}");
    }
}

/// All limits, as numbers.
fn amounts(limits: &Limits) -> [u128; 17] {
    [
        limits.time.as_nanos(),
        limits.cpu.map_or(u128::MAX, |cpu| cpu.as_nanos()),
        limits.memory_bytes.into(),
        limits.output_bytes.into(),
        limits.log_bytes.into(),
        limits.host_call_bytes.into(),
        limits.handles.into(),
        limits.files.into(),
        limits.concurrent_calls.into(),
        limits.queue_time.as_nanos(),
        limits.calls_per_minute.map_or(u128::MAX, Into::into),
        limits.http_requests.into(),
        limits.http_body_bytes.into(),
        limits.http_total_bytes.into(),
        limits.http_redirects.into(),
        limits.http_time.as_nanos(),
        limits.approval_time.as_nanos(),
    ]
}

/// What the answer "always" writes is read back, and holds.
fn check_always(policy: &Policy, user: &str, situation: &Situation) {
    let Some(rule) = situation.of_call(policy).remedy(situation.tool(), Some(DIGEST)) else {
        return;
    };
    let Ok(text) = edit::add_rule(user, &rule) else { return };
    let policy = user_policy(&text).expect("a rule can be added");
    assert_eq!(situation.of_call(&policy).decision, Decision::Allow, "{text}");
    let decision = Some(rule.decision);
    let target = RuleTarget { tool: rule.tool, net: None, open_url: None, decision };
    if let Ok(text) = edit::remove_rule(&text, &target) {
        user_policy(&text).expect("a rule can be removed");
    }
    edit::diff(user, &text);
}

/// What a plugin was refused makes a proposal, whatever the policy is.
fn check_learning(policy: &Policy, user: &str, request: &str, situation: &Situation) {
    let mut learned = Learned::nothing();
    for (method, url) in situation.requests() {
        let (method, url) = (method.clone(), url.clone());
        learned.note(Need::Net { method, url, to_private: None });
    }
    learned.note(Need::Path { guest_path: request.to_owned(), access: Access::ReadWrite });
    learned.note(Need::Env("TZ".to_owned()));
    learned.note(Need::Call(situation.tool().clone()));
    let manifest = situation.manifest();
    let proposal = learned.proposal(manifest, &Map::new(), policy, Some(DIGEST));
    if let Ok(text) = proposal.apply(user) {
        let _ = user_policy(&text);
    }
}
