//! Folders: requests, grants, and the resulting mounts.

use super::grant;
use crate::{FsAccess, Grant};

const ANY: &str = "[[request.fs]]\naccess = 'read-write'\nwhy = 'w'";

fn mounts(grant: &Grant) -> Vec<(&str, &str, FsAccess)> {
    grant.fs().iter().map(|m| (m.host.to_str().unwrap(), m.guest.as_str(), m.access)).collect()
}

#[test]
fn paths_are_made_plain() {
    use FsAccess::{Read, ReadWrite};
    let rows = [
        ("path = '/srv/data', access = 'read'", ("/srv/data", "/data", Read)),
        ("path = '/srv//./data/', access = 'read-write'", ("/srv/data", "/data", ReadWrite)),
        ("path = '~/notes', access = 'read'", ("/home/me/notes", "/notes", Read)),
        ("path = '~', access = 'read'", ("/home/me", "/me", Read)),
        ("path = '~/', access = 'read', mount = '/h'", ("/home/me", "/h", Read)),
        ("path = '/', access = 'read', mount = '/host'", ("/", "/host", Read)),
        ("path = '/a/~', access = 'read', mount = '/x//y/./z/'", ("/a/~", "/x/y/z", Read)),
        ("path = '/a..b', access = 'read', mount = '/'", ("/a..b", "/", Read)),
    ];
    for (entry, want) in rows {
        let grant = grant(&format!("[plugin.weather]\nfs = [{{ {entry} }}]"), ANY);
        assert_eq!(mounts(&grant), [want]);
    }
}

#[test]
fn mounts_stand_beside_each_other_when_they_do_not_overlap() {
    let fs = "[{ path = '/a', access = 'read', mount = '/m/a' },
               { path = '/a', access = 'read', mount = '/m/ab' },
               { path = '/ab', access = 'read-write', mount = '/n' }]";
    assert_eq!(grant(&format!("[plugin.weather]\nfs = {fs}"), ANY).fs().len(), 3);
}

/// A requested path and access, a granted path and access, and the resulting access.
#[test]
fn the_lesser_of_request_and_grant_holds() {
    use FsAccess::{Read, ReadWrite};
    let rows = [
        ("access = 'read'", "/x/y", "read", Some(Read)),
        ("access = 'read'", "/x/y", "read-write", Some(Read)),
        ("access = 'read-write'", "/x/y", "read", Some(Read)),
        ("access = 'read-write'", "/x/y", "read-write", Some(ReadWrite)),
        ("access = 'read'\npath = '/x/y'", "/x/y", "read", Some(Read)),
        ("access = 'read'\npath = '/x'", "/x/y", "read", Some(Read)),
        ("access = 'read'\npath = '/x/y/z'", "/x/y", "read", None),
        ("access = 'read'\npath = '/x/yy'", "/x/y", "read", None),
    ];
    for (request, path, access, want) in rows {
        let policy = format!("[plugin.weather]\nfs = [{{ path = '{path}', access = '{access}' }}]");
        let grant = grant(&policy, &format!("[[request.fs]]\n{request}\nwhy = 'w'"));
        let got = grant.fs().first().map(|mount| mount.access);
        assert_eq!(got, want, "{request} {access}");
        assert_eq!(grant.can_change_or_leak(), want == Some(ReadWrite));
        let note = "policy.toml:2 grants /x/y, which the manifest does not request";
        assert_eq!(grant.notes().iter().any(|n| n == note), want.is_none());
    }
}

#[test]
fn of_several_requests_the_widest_one_counts() {
    let requests = "[[request.fs]]\naccess = 'read'\nwhy = 'w'
                    [[request.fs]]\naccess = 'read-write'\npath = '/w'\nwhy = 'w'";
    let policy = "[plugin.weather]\nfs = [{ path = '/w/x', access = 'read-write' },
                                          { path = '/r', access = 'read-write' }]";
    let grant = grant(policy, requests);
    assert_eq!(grant.fs()[0].access, FsAccess::ReadWrite);
    assert_eq!(grant.fs()[1].access, FsAccess::Read);
    let want = ["read-write /w/x, seen as /x", "read /r, seen as /r"];
    assert_eq!(grant.permission_lines(), want);
}

/// The policy gives both the same access; the request makes it differ.
#[test]
fn overlapping_folders_never_differ_in_what_may_be_done() {
    let requests = "[[request.fs]]\naccess = 'read'\nwhy = 'w'
                    [[request.fs]]\naccess = 'read-write'\npath = '/a/b'\nwhy = 'w'";
    let policy = "[plugin.weather]
        fs = [{ path = '/a', access = 'read-write', mount = '/m' },
              { path = '/a/b', access = 'read-write', mount = '/n' },
              { path = '/a/b/c', access = 'read-write', mount = '/o' }]";
    let grant = grant(policy, requests);
    assert!(grant.fs().iter().all(|mount| mount.access == FsAccess::Read), "{:?}", grant.fs());
    assert!(!grant.can_change_or_leak());
    let note = "/n is for reading only, as it overlaps a folder that is";
    assert_eq!(grant.notes()[0], note);
}

#[test]
fn variables_need_both_keys() {
    let policy = "[plugin.weather]\nenv = ['TZ', 'HOME', 'TZ']";
    let requests =
        "[[request.env]]\nname = 'TZ'\nwhy = 'w'\n[[request.env]]\nname = 'A'\nwhy = 'w'";
    let grant = grant(policy, requests);
    assert_eq!(grant.env(), ["TZ"]);
    assert_eq!(grant.permission_lines(), ["see the environment variable TZ"]);
    let note = "policy.toml:2 grants the variable HOME, which the manifest does not request";
    assert_eq!(grant.notes(), [note]);
    assert!(!grant.can_change_or_leak());
}
