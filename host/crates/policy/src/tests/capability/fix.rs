//! Fixes for capabilities: each is a policy, lifts its refusal, and grants no more than the
//! manifest requests.

use proptest::{prelude::*, sample::subsequence};
use sallyport_contract::Denial;
use serde_json::Map;
use url::Url;

use super::{
    super::{GREEDY, grant, manifest, policy},
    held, request,
};
use crate::{Capability, Grant, Policy, PolicyTier};

/// The grant under the policy that a refusal proposes, which replaces the previous one.
fn fixed(denial: &Denial, asks: &str) -> Grant {
    let fix = denial.fix_toml().unwrap_or_else(|| panic!("{denial:?}"));
    policy(fix).effective_grant(&manifest(asks), &Map::new())
}

/// Checks the refusal of a capability: its reason, and the lines of its fix, if there is one.
#[track_caller]
fn check(before: &str, asks: &str, of: Capability, why: &str, fix: Option<&str>) {
    let denial = grant(before, asks).deny_capability(of, "do it");
    assert_eq!(denial.subject.to_string(), "weather may not do it");
    assert_eq!(denial.reason.to_string(), why);
    assert_eq!(denial.fix_toml(), fix, "{before}");
    assert!(!denial.nobody_to_ask);
}

const RULE: &str = "\n[[rule]]\ntool = \"weather.*\"\ndecision = \"allow\"\n";

#[test]
fn a_refusal_says_why_and_what_to_write() {
    let ask = |of| request(of);
    let table = |lines: &str| format!("[plugin.weather]\n{lines}\n");
    let ruled = |lines: &str| table(lines) + RULE;
    use Capability::*;
    check("", "", State, "its manifest does not request \"state\"", None);
    let missing = "its policy does not grant \"state\"";
    check("", &ask(State), State, missing, Some(&table("state = true")));
    check(
        "[plugin.weather]\nenv = ['TZ']\nlimits = { time = '1s' }",
        &ask(State),
        State,
        missing,
        Some(&table("env = [\"TZ\"]\nstate = true\nlimits = { time = \"1s\" }")),
    );
    let net = "net = [\"GET https://a.io/\"]";
    let asks = "[[request.net]]\nallow = 'GET https://a.io'\nwhy = 'w'\n".to_owned() + &ask(State);
    check(&table(net), &asks, State, missing, Some(&ruled(&format!("{net}\nstate = true"))));
    let taken = "the policy takes \"state\" away at policy.toml:2";
    check("[plugin.weather]\nstate = false", &ask(State), State, taken, None);
    let missing = "its policy does not grant \"notify\"";
    check("", &ask(Notify), Notify, missing, Some(&ruled("notify = true")));
    let missing = "its policy does not grant \"open-url\"";
    check("", &ask(OpenUrl), OpenUrl, missing, Some(&table("open-url = true")));
    let missing = "its policy does not grant \"scratch\"";
    let scratch = "scratch = [{ name = \"sandbox\", mount = \"/sandbox\" }]";
    check("", &ask(Scratch), Scratch, missing, Some(&table(scratch)));
    let folder = "fs = [{ path = \"/x/sandbox\", mount = \"/sandbox\", access = \"read\" }]";
    let beside = "scratch = [{ name = \"sandbox\", mount = \"/scratch-sandbox\" }]";
    let want = table(&format!("{folder}\n{beside}"));
    check(&table(folder), &ask(Scratch), Scratch, missing, Some(&want));
    let missing = "its policy does not grant \"listen\"";
    let asks = "[[request.listen]]\nkind = 'http'\nwhy = 'w'\n".to_owned() + &ask(Listen);
    let both = "listen = [\"http://127.0.0.1:0/\", \"stdin\"]";
    check("", &asks, Listen, missing, Some(&ruled(both)));
    let half = "[plugin.weather]\nlisten = ['stdin']";
    check(
        half,
        &asks,
        Listen,
        missing,
        Some(&ruled("listen = [\"stdin\", \"http://127.0.0.1:0/\"]")),
    );
    let missing = "its policy does not grant \"packages\"";
    check("", &ask(Packages), Packages, missing, None);
}

#[test]
fn a_ui_that_may_only_watch_is_told_what_lets_it_answer() {
    let asks = "[[request.ui]]\nconfirm = true\nwhy = 'w'";
    let watches = "its policy lets it watch, but not answer questions";
    let fix = "[plugin.weather]\nui = { confirm = true }\n".to_owned() + RULE;
    check("[plugin.weather]\nui = true", asks, Capability::Ui, watches, Some(&fix));
    check("[plugin.weather]\nui = { confirm = false }", asks, Capability::Ui, watches, None);
    let only = "its manifest does not request to answer questions";
    check("[plugin.weather]\nui = true", &request(Capability::Ui), Capability::Ui, only, None);
    let held = "its policy grants no such thing";
    check("[plugin.weather]\nui = { confirm = true }", asks, Capability::Ui, held, None);
}

#[test]
fn what_another_file_takes_away_is_not_offered() {
    let parse =
        |tier: PolicyTier, text: &str| Policy::parse_file(tier, tier.as_str(), text, None).unwrap();
    let files = |texts: [&str; 2]| {
        let tiers = [PolicyTier::Admin, PolicyTier::User].into_iter().zip(texts);
        let policy =
            Policy::from_files(tiers.map(|(tier, text)| parse(tier, text)).collect()).unwrap();
        policy.effective_grant(&manifest(GREEDY), &Map::new())
    };
    let denial = files(["[plugin.weather]\nprocess = false", ""])
        .deny_capability(Capability::Process, "run");
    assert_eq!(denial.reason.to_string(), "the policy takes \"process\" away at admin:2");
    assert_eq!(denial.fix, None);
    let grant = files(["[plugin.weather]\nprocess = { unwalled = false }", ""]);
    assert_eq!(grant.deny_unsandboxed("run").fix, None);
    // The administrator's grants stay in the administrator's file.
    let grant = files(["[plugin.weather]\nstate = { quota = 7 }", ""]);
    let fix = grant.deny_capability(Capability::Schedule, "set a timer").fix.unwrap().toml;
    assert_eq!(fix, "[plugin.weather]\nschedule = true\n");
}

#[test]
fn a_program_without_walls_is_told_what_lets_it_run() {
    let asks = request(Capability::Process);
    let denial =
        grant("[plugin.weather]\nprocess = { network = true }", &asks).deny_unsandboxed("run");
    assert_eq!(denial.subject.to_string(), "weather may not run");
    let fix = denial.fix_toml().unwrap();
    assert!(fix.contains("process = { network = true, unwalled = true }"), "{fix}");
    assert!(fixed(&denial, &asks).process().unwrap().unsandboxed);
    let denial = grant("", &asks).deny_unsandboxed("run");
    assert_eq!(denial.reason.to_string(), "its policy does not grant \"process\"");
}

#[test]
fn a_refused_package_carries_the_entry_that_allows_it() {
    let asks = request(Capability::Packages);
    let refused = |policy: &str, asks: &str, name: &str, version: &str| {
        grant(policy, asks).packages().check_version(name, version).unwrap_err()
    };
    let denial = refused("[plugin.weather]\npackages = ['six']", &asks, "A_b", "1.0");
    assert_eq!(denial.subject.to_string(), "weather may not fetch the package A_b==1.0");
    assert_eq!(denial.reason.to_string(), "no grant covers it");
    assert!(denial.fix_toml().unwrap().contains("packages = [\"six\", \"a-b==1.0\"]"));
    assert!(fixed(&denial, &asks).packages().check_version("A_b", "1.0").is_ok());
    assert!(fixed(&denial, &asks).packages().check_version("a-b", "1.1").is_err());
    let rows = [
        (refused("", "", "six", "1"), "its manifest does not request \"packages\""),
        (
            refused("[plugin.weather]\npackages = ['*']", "", "six", "1"),
            "its manifest does not request \"packages\"",
        ),
        (
            refused("[plugin.weather]\npackages = false", &asks, "six", "1"),
            "the policy takes \"packages\" away at policy.toml:2",
        ),
        (refused("", &asks, "../six", "1\n[x]"), "it is not the name and version of a package"),
    ];
    for (denial, why) in rows {
        assert_eq!((denial.reason.to_string().as_str(), denial.fix), (why, None));
        assert!(!denial.subject.to_string().contains('\n'));
    }
}

#[test]
fn a_refused_page_carries_the_entry_that_allows_it() {
    let asks = request(Capability::OpenUrl);
    let url = Url::parse("https://a.io/x*?q=secret").unwrap();
    let before = "[plugin.weather]\nopen-url = { allow = ['https://b.io/**'], decision = 'allow' }";
    let denial = grant(before, &asks).open_url().unwrap().check_url(&url).unwrap_err();
    assert_eq!(denial.subject.to_string(), "weather may not open https://a.io/x*");
    let want = "[plugin.weather]\nopen-url = { allow = [\"https://b.io/**\", \"https://a.io/x%2A\"], decision = \"allow\" }\n";
    assert_eq!(denial.fix_toml(), Some(want));
    assert!(fixed(&denial, &asks).open_url().unwrap().check_url(&url).is_ok());
    for odd in ["https://me@a.io/", "file:///x", "https://a.io/a%2fb"] {
        let denial = grant(before, &asks).open_url().unwrap().check_url(&Url::parse(odd).unwrap());
        assert_eq!(denial.unwrap_err().fix, None, "{odd}");
    }
}

#[test]
fn a_list_that_is_full_is_not_offered_to_grow() {
    let listens: Vec<_> = (1..17).map(|port| format!("'http://127.0.0.1:{port}'")).collect();
    let text = format!("[plugin.weather]\nlisten = [{}]", listens.join(", "));
    let grant = grant(&text, GREEDY);
    assert_eq!(
        (grant.listen().len(), grant.deny_capability(Capability::Listen, "listen").fix),
        (16, None)
    );
    let packages: Vec<_> = (0..1000).map(|index| format!("'p{index}'")).collect();
    let text = format!("[plugin.weather]\npackages = [{}]", packages.join(", "));
    let denial = super::grant(&text, GREEDY).packages().check_version("six", "1").unwrap_err();
    assert_eq!((denial.reason.to_string().as_str(), denial.fix), ("no grant covers it", None));
}

/// Lines of a plugin's table that never conflict.
const LINES: [&str; 9] = [
    "state = { quota = '1KiB' }",
    "notify = true",
    "ui = true",
    "scratch = [{ name = 'other', mount = '/sandbox' }]",
    "listen = ['http://127.0.0.1:8077/']",
    "packages = ['six']",
    "open-url = { allow = ['https://b.io/**'] }",
    "schedule = false",
    "env = ['TZ']",
];

proptest! {
    #![proptest_config(ProptestConfig { cases: 400, failure_persistence: None, ..Default::default() })]

    #[test]
    fn a_fix_always_parses_and_lifts_the_refusal_and_no_more(
        lines in subsequence(&LINES[..], 0..=LINES.len()),
        asked in subsequence(&Capability::ALL[..], 0..=10), is_ruled in any::<bool>(),
    ) {
        let asks: String = asked.iter().map(|of| request(*of)).collect();
        let rule = if is_ruled { RULE } else { "" };
        let before = grant(&format!("[plugin.weather]\n{}\n{rule}", lines.join("\n")), &asks);
        for of in Capability::ALL {
            let denial = before.deny_capability(of, of.as_str());
            let Some(fix) = denial.fix_toml() else { continue };
            let after = fixed(&denial, &asks);
            let added: Vec<_> =
                held(&after).into_iter().filter(|other| !before.has_capability(*other)).collect();
            prop_assert_eq!(added, [of], "{}", fix);
            prop_assert!(asked.contains(&of), "{}", fix);
            // A plugin that can change or leak something needs a rule to run without a user to ask.
            prop_assert!(!after.can_change_or_leak() || is_ruled || fix.contains("[[rule]]"), "{}", fix);
            // The fix keeps all entries.
            prop_assert_eq!(before.env(), after.env());
            prop_assert!(held(&before).iter().all(|of| after.has_capability(*of)), "{}", fix);
        }
    }

    #[test]
    fn no_text_makes_a_reader_panic(text in "\\PC{0,40}", soup in "[a-z0-9.:/\\[\\]{}'\"=, *%@-]{0,40}") {
        for value in [&text, &soup] {
            for of in Capability::ALL {
                let _ = super::super::parse_policy(&format!("[plugin.weather]\n{of} = {value}"));
                let entry = crate::toml_text::toml_string(value);
                let _ = super::super::parse_policy(&format!("[plugin.weather]\n{of} = [{entry}]"));
            }
            for front in ["http://", "http://127.0.0.1:80", "ws://[::1]:1/"] {
                let entry = crate::toml_text::toml_string(&format!("{front}{value}"));
                let text = format!("[plugin.weather]\nlisten = [{entry}]");
                if let Ok(policy) = super::super::parse_policy(&text) {
                    let grant = policy.effective_grant(&manifest(GREEDY), &Map::new());
                    // A parsed address is written in a form that parses to the same one.
                    let again = crate::toml_text::toml_string(&grant.listen()[0].to_string());
                    let again = format!("[plugin.weather]\nlisten = [{again}]");
                    let again = super::super::grant(&again, GREEDY);
                    prop_assert_eq!(&again.listen()[0].address, &grant.listen()[0].address);
                }
            }
            let grant = super::super::grant("[plugin.weather]\npackages = ['six']", GREEDY);
            let _ = grant.packages().check_version(value, &text);
            let _ = grant.deny_capability(Capability::State, value);
        }
    }
}
