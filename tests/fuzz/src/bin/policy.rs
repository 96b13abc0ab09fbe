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
use sallyport_contract::{Decision, ToolId};
use sallyport_fuzz::{
    parts,
    situation::{DIGEST, FILE, HOME, Situation, user_policy},
    toml_string,
};
use sallyport_policy::{
    Capability, FsAccess, Grant, MachineFacts, PluginLimits, Policy, PolicyFile, PolicyTier,
    PolicyVerdict,
    edit::{self, GrantAddition, RuleRemovalTarget},
    learn::{PluginRefusals, RefusedAccess},
};
use serde_json::Map;
use url::Url;

/// Packages that are asked for.
const PACKAGES: [(&str, &str); 3] = [("six", "1.17.0"), ("Tabulate", "0.9.0"), ("..", "1")];

fuzz_target!(|input: &str| {
    let [user, project, request, arguments] = parts(input);
    let situation = Situation::read(request, arguments);
    let file = read(PolicyTier::User, user);
    assert_eq!(
        read(PolicyTier::Admin, user).is_some(),
        file.is_some(),
        "admin and user say the same"
    );
    let strict = read(PolicyTier::Project, user);
    assert!(strict.is_none() || file.is_some(), "what a project may say, anybody may");
    let Some(file) = file else { return };
    let Ok(policy) = Policy::from_files(vec![file.clone()]) else { return };
    check_guard(&policy, user, &situation);
    check_explanations(&policy, &situation);
    check_denials(&file, &situation);
    check_taken_away(&file, &situation);
    if let Some(project) = read(PolicyTier::Project, project) {
        check_tightening(&policy, &file, project, &situation);
    }
    check_always(&policy, user, &situation);
    check_learning(&policy, user, request, &situation);
});

fn read(tier: PolicyTier, text: &str) -> Option<PolicyFile> {
    Policy::parse_file(tier, FILE, text, Some(Path::new(HOME))).ok()
}

/// What a guard lets through holds no keys, unless the policy says so twice.
fn check_guard(policy: &Policy, text: &str, situation: &Situation) {
    let (own, home) = ([Path::new(HOME).join(".config/sallyport")], Path::new(HOME));
    let real = |path: &Path| path.to_owned();
    let around = MachineFacts {
        host_paths: &own,
        home: Some(home),
        resolve_links: &real,
        find_links: &|_| Vec::new(),
    };
    if policy.check_guarded_folders(&around).is_ok() && !text.contains("sensitive") {
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
        let found = policy.explain_net(&question, &grant, method, url.as_str());
        assert_eq!(found.decision, decision, "{}", found.reason);
        policy.explain_path(&grant, url.path(), FsAccess::ReadWrite);
        grant.deny_path(url.path(), FsAccess::Read);
    }
    for (run, verdict) in situation.runs().zip(situation.of_runs(policy)) {
        let found = policy.explain_call(&run, &grant);
        assert_eq!(found.decision, verdict.decision, "{}", found.reason);
    }
    for (page, verdict) in situation.pages().iter().zip(situation.of_pages(policy)) {
        let found = policy.explain_page(&question, &grant, page);
        assert_eq!(found.decision, verdict.decision, "{}", found.reason);
    }
    for capability in Capability::ALL {
        let found = policy.explain_capability(&grant, capability);
        let holds = found.decision == Decision::Allow;
        assert_eq!(holds, grant.has_capability(capability), "{capability}: {}", found.reason);
    }
    let outlook = policy.expected_verdict(situation.tool(), DIGEST, &grant);
    let is_settled = outlook.matched.iter().all(|matched| matched.is_counted);
    assert!(!is_settled || outlook.decision == call.decision, "{}", outlook.reason);
    let tools = BTreeSet::from([situation.tool().tool.clone()]);
    policy.find_remarks(&BTreeMap::from([(situation.tool().plugin.clone(), tools)]));
    assert!(policy.example_results().all(|example| example.actual == example.expected));
}

/// A rule that denies and an entry that denies do so, whatever else there is.
fn check_denials(file: &PolicyFile, situation: &Situation) {
    let with = |text: &str| {
        let denying = read(PolicyTier::Project, text)?;
        Some(
            Policy::from_files(vec![file.clone(), denying])
                .expect("a file that denies fits to any"),
        )
    };
    let denied = with("[[rule]]\ntool = 'weather.*'\ndecision = 'deny'").expect("a rule");
    assert_eq!(situation.of_call(&denied).decision, Decision::Deny);
    let mut runs = situation.of_runs(&denied).into_iter();
    assert!(runs.all(|verdict| verdict.decision == Decision::Deny));
    let net = "[plugin.weather]\nnet = [{ deny = '* https://**' }, { deny = '* http://**' }]";
    let closed = with(net).expect("entries");
    assert!(situation.decisions(&closed)[1..].iter().all(|decision| *decision == Decision::Deny));
    for (index, page) in situation.pages().iter().enumerate() {
        let pattern = toml_string(&around(page));
        let rule = "[[rule]]\ntool = 'weather.*'\ndecision = 'deny'";
        // What no pattern can name is denied by none.
        let closed = with(&format!("{rule}\nopen-url = {pattern}"));
        let decision = closed.map(|policy| situation.of_pages(&policy)[index].decision);
        assert!(decision.is_none_or(|decision| decision == Decision::Deny), "{page}");
    }
    for (index, (_, url)) in situation.requests().iter().enumerate() {
        let entry = toml_string(&format!("* {}", around(url)));
        // What no entry can name is not reached by one either.
        let closed = with(&format!("[plugin.weather]\nnet = [{{ deny = {entry} }}]"));
        let decision = closed.map(|policy| situation.decisions(&policy)[index + 1]);
        assert!(decision.is_none_or(|decision| decision == Decision::Deny), "{url}");
    }
}

/// The pattern of all that lies at the place of a URL.
fn around(url: &Url) -> String {
    let port = url.port_or_known_default().unwrap_or(443);
    format!("{}://{}:{port}/**", url.scheme(), url.host_str().unwrap_or_default())
}

/// What a project's file takes away is not there, whatever the others say.
fn check_taken_away(file: &PolicyFile, situation: &Situation) {
    for capability in Capability::ALL {
        let text = format!("[plugin.weather]\n{capability} = false");
        let taking = read(PolicyTier::Project, &text).expect("a project may take away");
        let Ok(policy) = Policy::from_files(vec![file.clone(), taking]) else { continue };
        let grant = situation.grant(&policy);
        assert!(!grant.has_capability(capability), "{capability}");
        assert_eq!(grant.deny_capability(capability, "w").fix, None, "{capability}");
    }
}

/// A project's file never allows more, and never gives more.
fn check_tightening(
    policy: &Policy,
    file: &PolicyFile,
    project: PolicyFile,
    situation: &Situation,
) {
    let Ok(tight) = Policy::from_files(vec![file.clone(), project]) else { return };
    let pairs = situation.decisions(&tight).into_iter().zip(situation.decisions(policy));
    for (index, (strict, lax)) in pairs.enumerate() {
        assert!(strict >= lax, "{strict:?} after {lax:?}, of {index}");
    }
    let decided = |policy: &Policy| {
        let verdicts = [situation.of_runs(policy), situation.of_pages(policy)].concat();
        verdicts.into_iter().map(|verdict| verdict.decision).collect::<Vec<_>>()
    };
    for (index, (strict, lax)) in decided(&tight).into_iter().zip(decided(policy)).enumerate() {
        assert!(strict >= lax, "{strict:?} after {lax:?}, of run or page {index}");
    }
    let (strict, lax) = (situation.grant(&tight), situation.grant(policy));
    check_capabilities(&strict, &lax);
    assert_eq!((strict.fs(), strict.env(), strict.secrets()), (lax.fs(), lax.env(), lax.secrets()));
    let pairs = amounts(strict.limits()).into_iter().zip(amounts(lax.limits()));
    for (index, (strict, lax)) in pairs.enumerate() {
        assert!(strict <= lax, "limit {index}: {strict} after {lax}");
    }
}

/// The grant of a policy that a project tightens holds no capability that the other has not, and no
/// more of one.
fn check_capabilities(strict: &Grant, lax: &Grant) {
    for capability in Capability::ALL {
        assert!(
            !strict.has_capability(capability) || lax.has_capability(capability),
            "{capability}"
        );
    }
    let pairs = capability_amounts(strict).into_iter().zip(capability_amounts(lax));
    for (index, (strict, lax)) in pairs.enumerate() {
        assert!(strict <= lax, "amount {index}: {strict} after {lax}");
    }
    assert!(strict.listen().iter().all(|entry| lax.listen().contains(entry)));
    for scratch in strict.scratch() {
        let is_there = |held: &_| {
            let held: &sallyport_policy::ScratchGrant = held;
            held.name == scratch.name && held.quota_bytes >= scratch.quota_bytes
        };
        assert!(lax.scratch().iter().any(is_there), "{scratch:?}");
    }
    for (name, version) in PACKAGES {
        let (strict, lax) = (strict.packages(), lax.packages());
        assert!(
            strict.check_version(name, version).is_err()
                || lax.check_version(name, version).is_ok()
        );
    }
}

/// How much there is of each capability, as numbers of which the larger is the more.
fn capability_amounts(grant: &Grant) -> [u128; 8] {
    let timers = grant.schedule();
    [
        grant.state().map_or(0, |state| state.quota_bytes.into()),
        grant.state().map_or(0, |state| state.value_bytes_max.into()),
        timers.map_or(0, |schedule| schedule.timers_max.into()),
        timers.map_or(0, |schedule| u128::MAX - schedule.interval_min.as_nanos()),
        grant.notify().map_or(0, |notify| notify.per_minute.into()),
        grant.ui().map_or(0, |ui| ui.confirm.into()),
        grant.process().map_or(0, |process| process.network.into()),
        grant.process().map_or(0, |process| process.unsandboxed.into()),
    ]
}

/// All limits, as numbers.
fn amounts(limits: &PluginLimits) -> [u128; 19] {
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
        limits.idle.as_nanos(),
        limits.prepared_instances.into(),
    ]
}

/// What the answer "always" writes is read back, and holds.
fn check_always(policy: &Policy, user: &str, situation: &Situation) {
    let call = |policy: &Policy| situation.of_call(policy);
    check_always_about(policy, user, situation.tool(), call);
    for index in 0..situation.pages().len() {
        let page = |policy: &Policy| situation.of_pages(policy).swap_remove(index);
        check_always_about(policy, user, situation.tool(), page);
    }
}

fn check_always_about(
    policy: &Policy,
    user: &str,
    tool: &ToolId,
    judge: impl Fn(&Policy) -> PolicyVerdict,
) {
    let Some(rule) = judge(policy).allowing_rule(tool, Some(DIGEST)) else { return };
    let Ok(text) = edit::add_rule(user, &rule) else { return };
    let policy = user_policy(&text).expect("a rule can be added");
    assert_eq!(judge(&policy).decision, Decision::Allow, "{text}");
    let decision = Some(rule.decision);
    let target = RuleRemovalTarget { tool: rule.tool, net: None, page: rule.page, decision };
    if let Ok(text) = edit::remove_rule(&text, &target) {
        user_policy(&text).expect("a rule can be removed");
    }
    edit::diff_lines(user, &text);
}

fn record_capability(learned: &mut PluginRefusals, capability: Capability, item: Option<String>) {
    learned.record_refusal(RefusedAccess::Capability { capability, item });
}

/// What a plugin was refused makes a proposal, whatever the policy is.
fn check_learning(policy: &Policy, user: &str, request: &str, situation: &Situation) {
    let mut learned = PluginRefusals::empty();
    for (method, url) in situation.requests() {
        let (method, url) = (method.clone(), url.clone());
        learned.record_refusal(RefusedAccess::Net { method, url, to_private: None });
    }
    learned.record_refusal(RefusedAccess::Path {
        guest_path: request.to_owned(),
        access: FsAccess::ReadWrite,
    });
    learned.record_refusal(RefusedAccess::Env("TZ".to_owned()));
    learned.record_refusal(RefusedAccess::Call(situation.tool().clone()));
    situation.pages().iter().for_each(|page| {
        record_capability(&mut learned, Capability::OpenUrl, Some(page.to_string()))
    });
    Capability::ALL.into_iter().for_each(|of| record_capability(&mut learned, of, None));
    for (name, version) in PACKAGES {
        let item = Some(format!("{name}=={version}"));
        record_capability(&mut learned, Capability::Packages, item);
    }
    let manifest = situation.manifest();
    let proposal = learned.build_proposal(manifest, &Map::new(), policy, Some(DIGEST));
    let Ok(text) = proposal.apply_to(user) else { return };
    let Some(policy) = user_policy(&text) else { return };
    let grant = situation.grant(&policy);
    for addition in &proposal.additions {
        if let GrantAddition::Capability(added) = addition {
            assert!(grant.has_capability(added.capability), "{} in {text}", added.capability);
        }
    }
}
