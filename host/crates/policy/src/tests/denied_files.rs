//! Files that a granted folder hides, and its quota.

use std::path::Path;

use super::{check_error, decide, grant, manifest, parse_policy, policy};
use crate::FsAccess::{self, Read, ReadWrite};

const ANY: &str = "[[request.fs]]\naccess = 'read-write'\nwhy = 'w'";

const NOTES: &str = "[plugin.weather]\nfs = [{ path = '~/notes', access = 'read-write', \
                     deny = ['**/.git/**', '**/.env*'], quota = '100MiB' }]";

/// Whether the mount seen as `guest` denies a path below it.
fn denies(policy: &str, requests: &str, guest: &str, below: &str) -> bool {
    let grant = grant(policy, requests);
    let mount = grant.fs().iter().find(|mount| mount.guest == guest).unwrap();
    mount.deny.find_denying_pattern(Path::new(below)).is_some()
}

#[test]
fn a_mount_carries_what_it_denies_and_its_quota() {
    let grant = grant(NOTES, ANY);
    let mount = &grant.fs()[0];
    assert_eq!(mount.quota_bytes, Some(100 << 20));
    assert_eq!(mount.deny.find_denying_pattern(Path::new("x/.env.local")), Some("**/.env*"));
    assert_eq!(mount.deny.find_denying_pattern(Path::new("x/env")), None);
    let power = "read-write /home/me/notes, seen as /notes, without \
                 [\"**/.git/**\", \"**/.env*\"], up to 100MiB";
    assert_eq!(grant.permission_lines(), [power]);
}

#[test]
fn a_manifest_that_asks_for_less_does_not_lift_what_is_denied() {
    let reads = "[[request.fs]]\naccess = 'read'\nwhy = 'w'";
    let outer = "[[request.fs]]\naccess = 'read-write'\npath = '/home'\nwhy = 'w'";
    for requests in [ANY, reads, outer] {
        assert!(denies(NOTES, requests, "/notes", "a/.git/config"), "{requests}");
        assert!(!denies(NOTES, requests, "/notes", "a/git"), "{requests}");
    }
    assert_eq!(grant(NOTES, reads).fs()[0].access, Read);
}

/// Two entries with overlapping folders: a file that one of them denies cannot be reached through
/// the other.
#[test]
fn what_one_entry_denies_is_denied_through_every_other() {
    let table = |outer: &str, inner: &str| {
        format!(
            "[plugin.weather]\nfs = [{{ path = '/w', access = 'read', deny = [{outer}] }},
             {{ path = '/w/a/b', access = 'read', mount = '/b', deny = [{inner}] }}]"
        )
    };
    let rows = [
        ("'**/.env'", "", "/b", ".env", true),
        ("'**/.env'", "", "/b", "x/.env", true),
        ("'a/b/secret'", "", "/b", "secret/x", true),
        ("'a/b/secret'", "", "/b", "x/secret", false),
        ("'secret'", "", "/b", "secret", false),
        ("'a'", "", "/b", "x", true),
        ("", "'secret'", "/w", "a/b/secret", true),
        ("", "'secret'", "/w", "a/b/secret/x", true),
        ("", "'secret'", "/w", "secret", false),
        ("", "'secret'", "/w", "a/b", false),
        ("", "'**/.env'", "/w", "a/b/c/.env", true),
        ("", "'**/.env'", "/w", ".env", false),
        ("", "'**/.env'", "/w", "a/.env", false),
    ];
    for (outer, inner, guest, below, want) in rows {
        let text = table(outer, inner);
        assert_eq!(denies(&text, ANY, guest, below), want, "{outer} {inner} {guest} {below}");
    }
}

#[test]
fn a_folder_around_another_ones_patterns_cannot_be_moved() {
    let text = "[plugin.weather]\nfs = [{ path = '/w', access = 'read-write' },
                { path = '/w/a', access = 'read-write', mount = '/a', deny = ['x'] }]";
    let grant = grant(text, ANY);
    let deny = &grant.fs()[0].deny;
    let moves =
        |from: &str, to: &str| deny.pattern_lost_by_move(Path::new(from), deny, Path::new(to));
    assert_eq!(moves("a", "c"), Some("x"));
    assert_eq!(moves("b", "c"), None);
    assert_eq!(moves("a/y", "a/z"), None);
}

#[test]
fn a_denied_file_is_named_with_its_pattern_and_cannot_be_had() {
    let two = "[plugin.weather]\nfs = [{ path = '/w', access = 'read' },
               { path = '/w/a', access = 'read', mount = '/a', deny = ['.env'] }]";
    let rows = [
        (NOTES, "/notes/.git/config", Read, "denied by \"**/.git/**\" at policy.toml:2"),
        (NOTES, "notes/x/.env", ReadWrite, "denied by \"**/.env*\" at policy.toml:2"),
        (two, "/a/.env", Read, "denied by \".env\" at policy.toml:3"),
        (two, "/w/a/.env/x", Read, "denied by \".env\" at policy.toml:3"),
    ];
    for (text, path, wanted, why) in rows {
        let denial = grant(text, ANY).deny_path(path, wanted);
        assert_eq!((denial.reason.to_string().as_str(), denial.fix), (why, None), "{path}");
    }
    // A file that is not denied is refused as usual.
    let denial = grant(two, ANY).deny_path("/w/.env", ReadWrite);
    assert!(
        denial.reason.to_string().contains("for reading only"),
        "{}",
        denial.reason.to_string()
    );
}

/// A plugin that could write a project's folder could change the policy that applies to it.
#[test]
fn a_projects_own_policy_is_denied_in_every_folder_around_it() {
    let text = "[plugin.weather]\nfs = [{ path = '/w', access = 'read-write' },
                { path = '/w/a', access = 'read-write', mount = '/a', deny = ['x'] }]";
    let rows = [
        ("/w", ".sallyport/policy.toml", true),
        ("/w", "b/c/.sallyport", true),
        ("/w", ".SallyPort/policy.toml", true),
        ("/a", ".sallyport/sallyport.toml", true),
        ("/w", "sallyport/policy.toml", false),
        ("/w", ".sallyport2/x", false),
    ];
    for (guest, below, want) in rows {
        assert_eq!(denies(text, ANY, guest, below), want, "{guest} {below}");
    }
    let grant = grant(text, ANY);
    let denial = grant.deny_path("/w/.sallyport/policy.toml", ReadWrite);
    assert!(denial.reason.to_string().contains("no plugin may use that folder"), "{denial:?}");
    assert_eq!(denial.fix, None);
    let deny = &grant.fs()[0].deny;
    let moved = deny.pattern_lost_by_move(Path::new("b"), deny, Path::new("c"));
    assert_eq!(moved, None, "it stays denied under any name");
    let moved = deny.pattern_lost_by_move(Path::new("b"), deny, Path::new(".sallyport"));
    assert_eq!(moved, None, "the new name itself is denied");
    let stated = grant.permission_lines();
    assert!(!stated[0].contains(".sallyport"), "it is no choice of the policy: {stated:?}");
}

#[test]
fn a_fix_keeps_what_is_denied_and_the_quota() {
    let text = "[plugin.weather]\nfs = [{ path = '~/n', access = 'read', deny = ['**/.git'] },
                { path = '/w', access = 'read-write', quota = 1024, sensitive = true }]";
    let want = "fs = [{ path = \"~/n\", mount = \"/n\", access = \"read-write\", \
                deny = [\"**/.git\"] }, { path = \"/w\", mount = \"/w\", access = \"read-write\", \
                quota = \"1KiB\", sensitive = true }]";
    let denial = grant(text, ANY).deny_path("/n/x", ReadWrite);
    let fix = denial.fix.unwrap().toml;
    assert_eq!(fix.lines().nth(1), Some(want));
    let fixed = policy(&fix).effective_grant(&manifest(ANY), &serde_json::Map::new());
    assert_eq!(fixed.fs()[0].access, FsAccess::ReadWrite);
    assert!(fixed.fs()[0].deny.find_denying_pattern(Path::new(".git/x")).is_some());
    assert_eq!(fixed.fs()[1].quota_bytes, Some(1024));
    assert_eq!(decide(&policy(&fix), &fixed, "weather.get").0, sallyport_contract::Decision::Allow);
}

#[test]
fn mistakes_in_quotas() {
    let size = "write a whole number and a unit: 512B, 64KiB, 128MiB, 1GiB";
    let rows = [
        (
            "access = 'read', quota = '1MiB'",
            "49: \"quota\" has no effect on a folder for reading only",
            "leave it out, or write access = \"read-write\"",
        ),
        ("access = 'read-write', quota = 0", "55: 0B is not from 1B to 1048576GiB", ""),
        (
            "access = 'read-write', quota = '2097152GiB'",
            "55: 2097152GiB is not from 1B to 1048576GiB",
            "",
        ),
        ("access = 'read-write', quota = '1TB'", "55: \"1TB\" is not a size", size),
        ("access = 'read-write', quota = -1", "55: \"quota\" must not be negative", ""),
    ];
    for (keys, want, hint) in rows {
        let text = format!("[plugin.weather]\nfs = [{{ path = '/srv', {keys} }}]");
        check_error(parse_policy(&text), &format!("policy.toml:2:{want}"), hint);
    }
}
