//! Capabilities in several files: a grant in one file is enough, and so is a denial.

use std::time::Duration;

use proptest::{prelude::*, sample::select};
use sallyport_contract::Decision::*;
use serde_json::Map;

use super::super::{GREEDY, check_error, decide, manifest};
use crate::{Capability, Grant, Policy, PolicyTier, SourceError};

fn parse(texts: [&str; 3]) -> Result<Policy, SourceError> {
    let tiers = [PolicyTier::Admin, PolicyTier::User, PolicyTier::Project].into_iter().zip(texts);
    let files = tiers.map(|(tier, line)| {
        let text = format!("[plugin.weather]\n{line}");
        Policy::parse_file(tier, &format!("{}.toml", tier.as_str()), &text, None)
    });
    Policy::from_files(files.collect::<Result<_, _>>()?)
}

fn together(texts: [&str; 3]) -> Grant {
    parse(texts)
        .unwrap_or_else(|error| panic!("{error}"))
        .effective_grant(&manifest(GREEDY), &Map::new())
}

#[test]
fn of_several_files_the_strictest_setting_counts() {
    let quota = |grant: &Grant| grant.state().map(|state| state.quota_bytes);
    let rows = [
        (["state = true", "", ""], Some(1 << 20)),
        (["state = true", "state = { quota = 7 }", ""], Some(7)),
        (["state = { quota = 7 }", "state = { quota = 9 }", ""], Some(7)),
        (["state = { quota = 9 }", "state = { quota = 7 }", ""], Some(7)),
        (["", "state = { quota = 9 }", "state = { quota = 7 }"], Some(7)),
        (["", "state = { quota = 9 }", "state = { quota = 10 }"], Some(9)),
        // A project grants nothing, and takes away from the effective grant.
        (["", "state = true", "state = { quota = 7 }"], Some(7)),
        (["", "state = true", "state = { quota = '2MiB' }"], Some(1 << 20)),
        (["", "", "state = { quota = 7 }"], None),
        (["state = false", "state = true", ""], None),
        (["", "state = true", "state = false"], None),
        (["state = true", "state = false", ""], None),
    ];
    for (texts, want) in rows {
        assert_eq!(quota(&together(texts)), want, "{texts:?}");
    }
    let interval = |texts| together(texts).schedule().unwrap().interval_min;
    let rows = [
        (["schedule = { interval = '5s' }", "schedule = { interval = '9s' }", ""], 9),
        (["", "schedule = { interval = '5s' }", "schedule = { interval = '9s' }"], 9),
        (["", "schedule = { interval = '5s' }", "schedule = { interval = '2s' }"], 5),
        // An interval below the default minute has to be stated by a file that grants.
        (["", "schedule = true", "schedule = { interval = '2s' }"], 60),
    ];
    for (texts, want) in rows {
        assert_eq!(interval(texts), Duration::from_secs(want), "{texts:?}");
    }
}

#[test]
fn a_no_to_a_flag_is_not_overruled() {
    let confirm = |texts| together(texts).ui().unwrap().confirm;
    assert!(confirm(["ui = true", "ui = { confirm = true }", ""]));
    assert!(!confirm(["ui = { confirm = false }", "ui = { confirm = true }", ""]));
    assert!(!confirm(["", "ui = { confirm = true }", "ui = { confirm = false }"]));
}

#[test]
fn every_capability_can_be_taken_away_by_a_project_and_granted_by_none() {
    for of in Capability::ALL {
        let grant = match of {
            Capability::Packages => "['six']",
            Capability::Scratch => "[{ name = 'sandbox' }]",
            Capability::Listen => "['stdin']",
            Capability::State
            | Capability::Schedule
            | Capability::Notify
            | Capability::Progress
            | Capability::OpenUrl
            | Capability::Ui
            | Capability::Process => "true",
        };
        let (grant, deny) = (format!("{of} = {grant}"), format!("{of} = false"));
        assert!(
            together(["", &grant, ""]).has_capability(of)
                && together([&grant, "", ""]).has_capability(of)
        );
        assert!(!together(["", &grant, &deny]).has_capability(of));
        assert!(!together([&deny, &grant, ""]).has_capability(of));
        let column = of.as_str().len() + 4;
        let want = format!(
            "project.toml:2:{column}: \"{of}\" grants, and a project's policy can only tighten"
        );
        check_error(parse(["", "", &grant]), &want, "move it to your own policy, or leave it out");
    }
    let want = "project.toml:2:18: \"confirm\" grants, and a project's policy can only tighten";
    let hint = "move it to your own policy, or leave it out";
    check_error(parse(["", "", "ui = { confirm = true }"]), want, hint);
}

/// Otherwise an untrusted file could let calls run without asking, or disable a rule.
#[test]
fn what_a_project_takes_away_is_decided_about_as_before() {
    let of_call = |texts: [&str; 3]| {
        let policy = parse(texts).unwrap();
        decide(&policy, &policy.effective_grant(&manifest(GREEDY), &Map::new()), "weather.get")
    };
    for (line, want) in [
        ("state = true", Allow),
        ("notify = true", Ask),
        ("open-url = { decision = 'allow' }", Ask),
        ("listen = ['stdin']", Ask),
        ("ui = true", Ask),
    ] {
        let none = format!("{} = false", line.split_once(' ').unwrap().0);
        let rule = "[[rule]]\ntool = 'weather.*'\ndecision = 'deny'\n\
                    when = \"grants.capabilities.size() > 0\"";
        let ruled = format!("{line}\n{rule}");
        for (user, want) in [(line, want), (ruled.as_str(), Deny)] {
            let (decision, reason) = of_call(["", user, &none]);
            assert_eq!((decision, of_call(["", user, ""]).0), (want, want), "{user}: {reason}");
            let is_told = want != Ask || reason.contains(" without the project's policy");
            assert!(is_told, "{reason}");
            assert_eq!(of_call([&none, user, ""]).0, Allow, "the operator's own word: {user}");
        }
    }
}

#[test]
fn lists_of_several_files_are_one_and_what_both_say_stands_once() {
    let both = "listen = ['stdin']\nscratch = [{ name = 'sandbox' }]\npackages = ['six']";
    let grant = together([both, both, ""]);
    assert_eq!((grant.listen().len(), grant.scratch().len()), (1, 1));
    let grant = together(["packages = ['a']", "packages = ['b']", ""]);
    assert!(
        grant.packages().check_version("a", "1").is_ok()
            && grant.packages().check_version("b", "1").is_ok()
    );
    let error =
        parse(["scratch = [{ name = 'a' }]", "scratch = [{ name = 'b', mount = '/a' }]", ""]);
    assert!(error.unwrap_err().to_string().starts_with("user.toml:2:12: the mount"));
    let process =
        parse(["process = true", "fs = [{ path = '/a', mount = '/b', access = 'read' }]", ""]);
    assert!(process.unwrap_err().to_string().starts_with("user.toml:2:7: \"mount\""));
}

/// The possible content of a file.
const LINES: [&str; 12] = [
    "",
    "state = true",
    "state = { quota = '1KiB', value = 7 }",
    "state = false",
    "schedule = { timers = 3, interval = '5s' }",
    "schedule = { timers = 100 }",
    "notify = { per-minute = 20 }",
    "notify = { per-minute = 2 }",
    "ui = { confirm = true }",
    "ui = { confirm = false }",
    "process = { network = true }",
    "process = { network = false }",
];

/// The amounts of a grant, as numbers where more is more.
fn amounts(grant: &Grant) -> [u64; 8] {
    let state = grant.state();
    let schedule = grant.schedule();
    let a_day_ms = 24 * 60 * 60 * 1000;
    let often = |ms: u128| a_day_ms - u64::try_from(ms).unwrap();
    [
        state.map_or(0, |state| state.quota_bytes),
        state.map_or(0, |state| state.value_bytes_max),
        schedule.map_or(0, |schedule| schedule.timers_max.into()),
        schedule.map_or(0, |schedule| often(schedule.interval_min.as_millis())),
        grant.notify().map_or(0, |notify| notify.per_minute.into()),
        grant.ui().map_or(0, |ui| 1 + u64::from(ui.confirm)),
        grant.process().map_or(0, |process| 1 + u64::from(process.network)),
        grant.permission_lines().len() as u64,
    ]
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 400, failure_persistence: None, ..Default::default() })]

    #[test]
    fn a_project_never_adds_anything(
        admin in select(&LINES[..]), user in select(&LINES[..]), project in select(&LINES[..]),
    ) {
        let without = amounts(&together([admin, user, ""]));
        if let Ok(policy) = parse([admin, user, project]) {
            let with = amounts(&policy.effective_grant(&manifest(GREEDY), &Map::new()));
            let is_less = with.iter().zip(&without).all(|(with, without)| with <= without);
            prop_assert!(is_less, "{:?} {:?}", with, without);
        }
    }
}
