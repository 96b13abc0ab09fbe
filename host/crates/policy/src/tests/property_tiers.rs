//! Properties of any policy of several files, of any entry that asks, and of any folder that denies
//! some of its files.

use std::path::{Path, PathBuf};

use proptest::prelude::*;
use sallyport_contract::Decision;
use serde_json::Map;
use url::Url;

use super::manifest;
use crate::{FsAccess, GlobSet, Grant, PluginLimits, Policy, PolicyTier};

const ASKS: &str = "[[request.net]]\nallow = '* https://*.a.example:1-65535/**'\nwhy = 'w'
                    [[request.fs]]\naccess = 'read-write'\nwhy = 'w'
                    [[request.env]]\nname = 'TZ'\nwhy = 'w'
                    [[request.secrets]]\nname = 'key'\nreveal = true\nwhy = 'w'";

fn pick(words: &'static [&'static str]) -> impl Strategy<Value = &'static str> {
    prop::sample::select(words)
}

fn allow() -> impl Strategy<Value = String> {
    let urls = pick(&["x.a.example", "*.a.example", "x.a.example:80-443"]);
    let paths = pick(&["/**", "/b", "/b/**", "/*"]);
    (pick(&["GET", "*"]), urls, paths, pick(&["allow", "ask"])).prop_map(
        |(methods, url, path, decision)| {
            format!("{{ allow = '{methods} https://{url}{path}', decision = '{decision}' }}")
        },
    )
}

fn deny() -> impl Strategy<Value = String> {
    let urls = pick(&["x.a.example", "*.a.example", "*", "*:443", "*.example"]);
    let paths = pick(&["/**", "/b", "/c/**", "/*"]);
    (pick(&["GET", "*", "POST"]), urls, paths)
        .prop_map(|(methods, url, path)| format!("{{ deny = '{methods} https://{url}{path}' }}"))
}

fn folder() -> impl Strategy<Value = String> {
    let paths = pick(&["/w", "/w/a", "/w/a/b", "/v"]);
    (paths, pick(&["read", "read-write"]), pick(&["", "'b'", "'**/b'", "'a/b'"])).prop_map(
        |(path, access, deny)| {
            let mount = path.replace('/', "-");
            format!(
                "{{ path = '{path}', mount = '/{mount}', access = '{access}', deny = [{deny}] }}"
            )
        },
    )
}

fn limits() -> impl Strategy<Value = String> {
    let limit = pick(&[
        "time = '1s'",
        "time = '10m'",
        "cpu = '2s'",
        "memory = '1MiB'",
        "files = 1",
        "log = 0",
        "http-redirects = 3",
        "calls-per-minute = 2",
        "output = '8MiB'",
        "host-call = '4KiB'",
    ]);
    prop::collection::vec(limit, 0..4).prop_map(|mut limits| {
        // A key can occur only once.
        limits.sort_unstable();
        limits.dedup_by_key(|limit| limit.split(' ').next());
        limits.join(", ")
    })
}

/// The table of a file that may grant.
fn granting() -> impl Strategy<Value = String> {
    let net = prop::collection::vec(prop_oneof![3 => allow(), 1 => deny()], 0..4);
    let fs = prop::collection::vec(folder(), 0..3);
    let rest = pick(&["", "env = ['TZ']", "secrets = [{ name = 'key', reveal = true }]"]);
    (net, fs, limits(), rest).prop_map(|(net, fs, limits, rest)| {
        let (net, fs) = (net.join(", "), fs.join(", "));
        format!("[plugin.weather]\nnet = [{net}]\nfs = [{fs}]\nlimits = {{ {limits} }}\n{rest}\n")
    })
}

/// The table of a project's file.
fn tightening() -> impl Strategy<Value = String> {
    (prop::collection::vec(deny(), 0..3), limits()).prop_map(|(net, limits)| {
        format!("[plugin.weather]\nnet = [{}]\nlimits = {{ {limits} }}\n", net.join(", "))
    })
}

fn request() -> impl Strategy<Value = String> {
    let hosts = pick(&["x.a.example", "y.a.example", "x.a.example:80", "a.example"]);
    let paths = pick(&["/", "/b", "/b/c", "/c/d"]);
    (pick(&["GET", "POST"]), hosts, paths)
        .prop_map(|(method, host, path)| format!("{method} https://{host}{path}"))
}

const SOURCE: (PolicyTier, &str) = (PolicyTier::Admin, "[secret.key]\nenv = 'KEY'\n");

/// The grant under some files; `None` if they conflict.
fn granted(files: &[(PolicyTier, &str)]) -> Option<Grant> {
    let parse = |(tier, text): &(PolicyTier, &str)| {
        Policy::parse_file(*tier, tier.as_str(), text, None).ok()
    };
    let files = files.iter().map(parse).collect::<Option<Vec<_>>>()?;
    let policy = Policy::from_files(files).ok()?;
    Some(policy.effective_grant(&manifest(ASKS), &Map::new()))
}

/// The decision about a request; stricter is greater.
fn outcome(grant: &Grant, request: &str) -> Decision {
    let (method, url) = request.split_once(' ').unwrap();
    let permit = grant.net().check_request(method, &Url::parse(url).unwrap());
    permit.map_or(Decision::Deny, |permit| permit.decision())
}

/// Whether no limit of one exceeds the other's.
fn within(one: &PluginLimits, other: &PluginLimits) -> bool {
    let cpu = |limits: &PluginLimits| limits.cpu.unwrap_or(std::time::Duration::MAX);
    let calls = |limits: &PluginLimits| limits.calls_per_minute.unwrap_or(u32::MAX);
    one.time <= other.time
        && cpu(one) <= cpu(other)
        && one.memory_bytes <= other.memory_bytes
        && one.output_bytes <= other.output_bytes
        && one.log_bytes <= other.log_bytes
        && one.host_call_bytes <= other.host_call_bytes
        && one.handles <= other.handles
        && one.files <= other.files
        && one.http_redirects <= other.http_redirects
        && calls(one) <= calls(other)
}

/// Whether any mount shows a file of the host.
fn shows(grant: &Grant, file: &Path) -> bool {
    grant.fs().iter().any(|mount| {
        file.strip_prefix(&mount.host)
            .is_ok_and(|below| mount.deny.find_denying_pattern(below).is_none())
    })
}

fn path() -> impl Strategy<Value = PathBuf> {
    prop::collection::vec(pick(&["a", "b", "ab", "c"]), 0..5).prop_map(PathBuf::from_iter)
}

fn glob() -> impl Strategy<Value = String> {
    let segment = pick(&["a", "b", "*", "**", "a*", "?", "[ab]", "[!a]", "*b"]);
    prop::collection::vec(segment, 1..4).prop_map(|segments| segments.join("/"))
}

fn globs() -> impl Strategy<Value = Vec<String>> {
    prop::collection::vec(glob(), 0..3)
}

fn parsed(globs: &[String]) -> GlobSet {
    GlobSet::parse(globs.iter().map(String::as_str)).unwrap()
}

/// Whether segments of a pattern match all of some names, in the simplest implementation.
fn matches(pattern: &[&str], names: &[&str]) -> bool {
    match (pattern, names) {
        ([], []) => true,
        (["**", rest @ ..], _) => {
            matches(rest, names) || names.split_first().is_some_and(|(_, n)| matches(pattern, n))
        }
        ([first, rest @ ..], [name, names @ ..]) => is_like(first, name) && matches(rest, names),
        ([], _) | (_, []) => false,
    }
}

fn is_like(pattern: &str, name: &str) -> bool {
    match pattern {
        "*" => true,
        "a*" => name.starts_with('a'),
        "*b" => name.ends_with('b'),
        "?" => name.len() == 1,
        "[ab]" => name == "a" || name == "b",
        "[!a]" => name.len() == 1 && name != "a",
        literal => literal == name,
    }
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 800, failure_persistence: None, ..Default::default() })]

    #[test]
    fn a_projects_file_never_allows_more(
        admin in granting(), user in granting(), project in tightening(), request in request(),
        file in path(),
    ) {
        let without = [SOURCE, (PolicyTier::Admin, &admin), (PolicyTier::User, &user)];
        let Some(before) = granted(&without) else { return Ok(()) };
        let with = [without.as_slice(), &[(PolicyTier::Project, &project)]].concat();
        let after = granted(&with).expect("a project's file that only tightens fits any other");
        prop_assert!(outcome(&after, &request) >= outcome(&before, &request));
        prop_assert!(within(after.limits(), before.limits()));
        prop_assert_eq!(after.fs(), before.fs());
        prop_assert_eq!((after.env(), after.secrets().len()), (before.env(), before.secrets().len()));
        let file = Path::new("/w").join(file);
        prop_assert!(!shows(&after, &file) || shows(&before, &file));
    }

    #[test]
    fn whatever_grants_in_a_projects_file_is_refused(
        entry in allow(), tightened in tightening(), folder in folder(),
    ) {
        let more = [
            format!("net = [{entry}]"),
            format!("fs = [{folder}]"),
            "env = ['TZ']".to_owned(),
            "secrets = [{ name = 'key', reveal = true }]".to_owned(),
        ];
        prop_assert!(Policy::parse_file(PolicyTier::Project, "f.toml", &tightened, None).is_ok());
        for more in more {
            let table = tightened.replace("net = []", "");
            let table = if more.starts_with("net") { "[plugin.weather]\n" } else { &table };
            let found = Policy::parse_file(PolicyTier::Project, "f.toml", &format!("{table}{more}"), None);
            prop_assert!(found.is_err(), "{}", more);
        }
    }

    #[test]
    fn of_two_files_either_may_grant(
        admin in granting(), user in granting(), request in request(),
    ) {
        let (admin, user) = ((PolicyTier::Admin, admin.as_str()), (PolicyTier::User, user.as_str()));
        let each = [granted(&[SOURCE, admin]), granted(&[SOURCE, user])];
        let Some(both) = granted(&[SOURCE, admin, user]) else { return Ok(()) };
        let least = each.iter().flatten().map(|grant| outcome(grant, &request)).min();
        // A denial in one file may take away a grant of the other. Together they never permit more
        // than the laxer one.
        prop_assert!(Some(outcome(&both, &request)) >= least);
    }

    #[test]
    fn the_fix_of_a_refusal_is_for_the_users_file_and_lifts_it(
        admin in granting(), user in granting(), project in tightening(), request in request(),
        file in path(),
    ) {
        let others = [SOURCE, (PolicyTier::Admin, &admin), (PolicyTier::Project, &project)];
        let of_user = |user: &str| granted(&[others.as_slice(), &[(PolicyTier::User, user)]].concat());
        let Some(before) = of_user(&user) else { return Ok(()) };
        let (method, url) = request.split_once(' ').unwrap();
        let refused = before.net().check_request(method, &Url::parse(url).unwrap()).err();
        if let Some(fix) = refused.and_then(|denial| denial.fix_toml().map(str::to_owned)) {
            let after = of_user(&fix);
            prop_assert!(after.is_some_and(|g| outcome(&g, &request) < Decision::Deny), "{}", fix);
        }
        let guest = format!("/-w/{}", file.display());
        if let Some(fix) = before.deny_path(&guest, FsAccess::ReadWrite).fix_toml().map(str::to_owned) {
            prop_assert!(of_user(&fix).is_some(), "{}", fix);
        }
    }

    #[test]
    fn the_least_strict_entry_decides(
        entries in prop::collection::vec(allow(), 1..5), request in request(),
    ) {
        let alone = |entry: &String| {
            let text = format!("[plugin.weather]\nnet = [{entry}]");
            outcome(&granted(&[(PolicyTier::User, &text)]).unwrap(), &request)
        };
        let text = format!("[plugin.weather]\nnet = [{}]", entries.join(", "));
        let together = outcome(&granted(&[(PolicyTier::User, &text)]).unwrap(), &request);
        prop_assert_eq!(Some(together), entries.iter().map(alone).min());
    }

    #[test]
    fn a_pattern_denies_what_it_matches_and_all_below(glob in glob(), path in path()) {
        let names: Vec<&str> = path.iter().map(|name| name.to_str().unwrap()).collect();
        let pattern: Vec<&str> = glob.split('/').collect();
        // `x/**` also means `x`, and a match denies everything below it.
        let whole = (0..=names.len()).any(|most| matches(&pattern, &names[..most]));
        let found = parsed(std::slice::from_ref(&glob)).find_denying_pattern(&path).is_some();
        prop_assert_eq!(found, whole, "{} {:?}", glob, path);
    }

    #[test]
    fn a_further_pattern_never_shows_more(some in globs(), more in glob(), path in path()) {
        let all: Vec<_> = some.iter().cloned().chain([more]).collect();
        prop_assert!(parsed(&some).find_denying_pattern(&path).is_none() || parsed(&all).find_denying_pattern(&path).is_some());
    }

    #[test]
    fn a_move_that_passes_lays_nothing_open(
        here in globs(), there in globs(), from in path(), to in path(), below in path(),
    ) {
        let (here, there) = (parsed(&here), parsed(&there));
        let hidden = here.find_denying_pattern(&from.join(&below)).is_some();
        let stays = there.find_denying_pattern(&to.join(&below)).is_some();
        prop_assert!(here.pattern_lost_by_move(&from, &there, &to).is_some() || !hidden || stays);
        prop_assert_eq!(here.pattern_lost_by_move(&from, &here, &from), None);
    }

    /// Two overlapping folders: neither shows a file that either of them denies.
    #[test]
    fn a_file_that_one_entry_denies_is_shown_by_none(
        outer in globs(), inner in globs(), file in path(),
    ) {
        let list = |globs: &[String]| {
            globs.iter().map(|glob| format!("'{glob}'")).collect::<Vec<_>>().join(", ")
        };
        let text = format!(
            "[plugin.weather]\nfs = [{{ path = '/w', access = 'read', deny = [{}] }},
             {{ path = '/w/a', access = 'read', mount = '/n', deny = [{}] }}]",
            list(&outer), list(&inner)
        );
        let grant = granted(&[(PolicyTier::User, &text)]).unwrap();
        let hidden = parsed(&outer).find_denying_pattern(&file).is_some()
            || file.strip_prefix("a").is_ok_and(|f| parsed(&inner).find_denying_pattern(f).is_some());
        prop_assert_eq!(shows(&grant, &Path::new("/w").join(&file)), !hidden);
        let guest = Path::new("/w").join(&file);
        let denial = grant.deny_path(guest.to_str().unwrap(), FsAccess::Read);
        prop_assert_eq!(denial.reason.to_string().starts_with("denied by"), hidden);
    }
}
