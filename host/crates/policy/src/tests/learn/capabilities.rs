//! Refused capabilities: those that are proposed, and those that are left to the operator.

use super::*;
use crate::{Capability, Grant, tests::GREEDY};

fn page(url: &str) -> RefusedAccess {
    RefusedAccess::Capability { capability: Capability::OpenUrl, item: Some(url.into()) }
}

fn package(name: &str, version: &str) -> RefusedAccess {
    let item = Some(format!("{name}=={version}"));
    RefusedAccess::Capability { capability: Capability::Packages, item }
}

/// Checks the policy with a proposal applied, and the needs that the proposal leaves open.
#[track_caller]
fn check_all(
    requests: &str,
    before: &str,
    needs: &[RefusedAccess],
    after: &str,
    open: &[&str],
) -> Grant {
    let proposal = propose(requests, before, needs);
    assert_eq!(proposal.unresolved, open);
    let text = proposal.apply_to(before).unwrap();
    assert_eq!(text, after);
    policy(&text).effective_grant(&manifest(requests), &Map::new())
}

#[test]
fn every_capability_that_is_missed_is_proposed() {
    let mut needs: Vec<_> = Capability::ALL.map(whole).into();
    needs.retain(|need| *need != whole(Capability::Packages));
    needs.push(package("Six", "1.17.0"));
    let after = "[plugin.weather]\nstate = true\nschedule = true\nnotify = true\nprogress = true\n\
                 open-url = true\npackages = [\"Six==1.17.0\"]\nscratch = [{ name = \"sandbox\", mount = \"/sandbox\" }]\n\
                 listen = [\"http://127.0.0.1:0/\", \"ws://127.0.0.1:0/\", \"stdin\"]\nui = true\n\
                 process = true\n";
    let grant = check_all(GREEDY, "", &needs, after, &[]);
    assert!(Capability::ALL.into_iter().all(|of| grant.has_capability(of)));
    // A capability that is granted by now needs nothing, except a UI that cannot answer yet.
    let answers = after.replace("ui = true", "ui = { confirm = true }");
    check_all(GREEDY, after, &needs, &answers, &[]);
    check_all(GREEDY, &answers, &needs, &answers, &[]);
}

#[test]
fn pages_and_packages_are_proposed_one_by_one() {
    let needs = [
        page("https://a.io/x?secret#y"),
        page("https://b.io/"),
        page("ftp://c.io/"),
        package("six", "1.0"),
        package("../six", "1"),
    ];
    let open = [
        "weather may not open ftp://c.io/: only http and https are possible",
        "weather may not fetch the package ../six==1: it is not the name and version of a package",
    ];
    let before =
        "[plugin.weather]\nopen-url = { allow = ['https://b.io/**'], decision = 'allow' }\n";
    let after = "[plugin.weather]\nopen-url = { allow = ['https://b.io/**', \"https://a.io/x\"], \
                 decision = 'allow' }\npackages = [\"six==1.0\"]\n";
    check_all(GREEDY, before, &needs, after, &open);
}

/// A plugin lists the versions of a package first. That refusal was taken for one of a version with
/// an empty name, so the plugin could not be learned.
#[test]
fn a_package_of_any_version_is_proposed_by_its_name() {
    let any = || {
        let denial = crate::tests::grant("", GREEDY).packages().check_name("Six").unwrap_err();
        RefusedAccess::from_denial(&"weather".parse().unwrap(), &denial).unwrap()
    };
    let after = "[plugin.weather]\npackages = [\"Six\"]\n";
    check_all(GREEDY, "", &[any()], after, &[]);
    check_all(GREEDY, after, &[any()], after, &[]);
    let pinned = "[plugin.weather]\npackages = [\"six==1.0\"]\n";
    check_all(GREEDY, pinned, &[any()], pinned, &[]);
}

#[test]
fn what_is_not_requested_or_taken_away_is_left_open() {
    let before = "[plugin.weather]\nstate = false\nopen-url = true\n";
    let needs = [whole(Capability::State), page("https://a.io/")];
    let open = [
        "weather may not keep state: the policy takes \"state\" away at policy.toml:2",
        "weather may not open https://a.io/: the entry at policy.toml:3 asks a person",
    ];
    check_all(GREEDY, before, &needs, before, &open);
    let open = [
        "weather may not use \"state\": its manifest does not request \"state\"",
        "weather may not open https://a.io/: its manifest does not request \"open-url\"",
    ];
    check_all("", "", &needs, "", &open);
}

#[test]
fn every_refusal_of_a_capability_says_what_it_was_about() {
    let watches = "[plugin.weather]\nui = true";
    for text in ["", "[plugin.weather]\nstate = false", watches] {
        for requests in [GREEDY, ""] {
            let grant = policy(text).effective_grant(&manifest(requests), &Map::new());
            for of in Capability::ALL
                .into_iter()
                .filter(|of| *of == Capability::Ui || !grant.has_capability(*of))
            {
                let denial = grant.deny_capability(of, "read standard input");
                let need = RefusedAccess::from_denial(grant.plugin(), &denial);
                assert_eq!(need, Some(whole(of)), "{denial:?}");
            }
            let denial = grant.packages().check_version("six", "1.0").unwrap_err();
            assert_eq!(
                RefusedAccess::from_denial(grant.plugin(), &denial),
                Some(package("six", "1.0"))
            );
            let denial = grant.check_page(&"https://a.io/".parse().unwrap()).unwrap_err();
            assert_eq!(
                RefusedAccess::from_denial(grant.plugin(), &denial),
                Some(page("https://a.io/"))
            );
        }
    }
}

fn whole(capability: Capability) -> RefusedAccess {
    RefusedAccess::Capability { capability, item: None }
}
