//! Fixes for a policy of several files: each is for the user's own file and considers the others.

use serde_json::Map;

use super::{deny_address, manifest, reaches, send};
use crate::{
    FsAccess::{Read, ReadWrite},
    Grant, Policy, PolicyTier,
};

const ASKS: &str = "[[request.net]]\nallow = 'GET https://api.example.com/a/**'\nwhy = 'w'
                    [[request.net]]\nallow = 'GET https://api.example.com/b/**'\nwhy = 'w'
                    [[request.net]]\nallow = 'GET http://localhost:8080/**'\nwhy = 'w'
                    [[request.fs]]\naccess = 'read-write'\nwhy = 'w'
                    [[request.secrets]]\nname = 'key'\nreveal = true\nwhy = 'w'";

/// The plugin's grant under lines of its table in an administrator's and a user's file.
fn table_grant(admin: &str, user: &str) -> Grant {
    grant(&format!("[plugin.weather]\n{admin}"), &format!("[plugin.weather]\n{user}"))
}

fn grant(admin: &str, user: &str) -> Grant {
    let files = [(PolicyTier::Admin, admin), (PolicyTier::User, user)];
    let files =
        files.map(|(tier, text)| Policy::parse_file(tier, tier.as_str(), text, None).unwrap());
    Policy::from_files(files.into()).unwrap().effective_grant(&manifest(ASKS), &Map::new())
}

const A: &str = "net = ['GET https://api.example.com/a/**']\nlimits = { time = '5s' }";

#[test]
fn a_fix_repeats_what_the_user_granted_and_nothing_else() {
    let user = "env = ['TZ']\nlimits = { memory = '1MiB' }";
    let denial = send(&table_grant(A, user), "GET https://api.example.com/b/x").unwrap_err();
    let want = "[plugin.weather]\nnet = [\"GET https://api.example.com/b/**\", \
                { allow = \"GET http://localhost:8080/**\", to-private = true }]\nenv = [\"TZ\"]\n\
                limits = { memory = \"1MiB\" }\n\n\
                [[rule]]\ntool = \"weather.*\"\ndecision = \"allow\"\n";
    let fix = denial.fix.unwrap().toml;
    assert_eq!(fix, want);
    let after = grant(&format!("[plugin.weather]\n{A}"), &fix);
    for path in ["a/x", "b/x"] {
        assert_eq!(send(&after, &format!("GET https://api.example.com/{path}")), Ok(()));
    }
}

#[test]
fn what_another_file_denies_has_no_fix() {
    let admin = "net = [{ deny = '* https://*/b/**' }]";
    let user = "net = ['GET https://api.example.com/**']";
    let denial = send(&table_grant(admin, user), "GET https://api.example.com/b/x").unwrap_err();
    assert_eq!((denial.reason.to_string().as_str(), denial.fix), ("denied by admin:2", None));
    let admin = "fs = [{ path = '/w', access = 'read', deny = ['**/.env'] }]";
    let denial = table_grant(admin, "").deny_path("/w/.env", Read);
    assert_eq!(
        (denial.reason.to_string().as_str(), denial.fix),
        ("denied by \"**/.env\" at admin:2", None)
    );
}

#[test]
fn a_folder_of_another_file_cannot_be_widened() {
    let (reads, elsewhere) =
        ("fs = [{ path = '/w', access = 'read' }]", "fs = [{ path = '/v', access = 'read' }]");
    let why = |file: &str| format!("the grant at {file}:2 is for reading only");
    let rows = [(reads, elsewhere, "admin", false), (elsewhere, reads, "user", true)];
    for (admin, user, file, fixed) in rows {
        let denial = table_grant(admin, user).deny_path("/w/x", ReadWrite);
        assert_eq!(
            (denial.reason.to_string().as_str(), denial.fix.is_some()),
            (why(file).as_str(), fixed)
        );
    }
    // If both files have the same entry, the administrator's counts.
    let denial = table_grant(reads, reads).deny_path("/w/x", ReadWrite);
    assert_eq!((denial.reason.to_string().as_str(), denial.fix), (why("admin").as_str(), None));
}

/// The administrator's mount conflicts with the one that is usually proposed.
#[test]
fn a_new_folder_finds_its_place_beside_those_of_another_file() {
    let admin = "fs = [{ path = '/srv', access = 'read', mount = '/data/a' }]";
    let fix = table_grant(admin, "").deny_path("/data/b/x", Read).fix.unwrap().toml;
    assert!(fix.contains("mount = \"/data/b/x\""), "{fix}");
    grant(&format!("[plugin.weather]\n{admin}"), &fix);
}

#[test]
fn an_address_behind_another_files_entry_is_granted_by_an_entry_beside_it() {
    let admin = "net = ['GET http://localhost:8080/**']";
    let entry = "{ allow = \"GET http://localhost:8080/**\", to-private = true }";
    let rows = [
        (admin, "net = ['GET https://api.example.com/']", "\"GET https://api.example.com/\", "),
        ("", admin, ""),
    ];
    for (admin, user, before) in rows {
        let request = "GET http://localhost:8080/x";
        let denial = deny_address(&table_grant(admin, user), request, "127.0.0.1".parse().unwrap());
        let fix = denial.fix.unwrap().toml;
        assert!(fix.contains(&format!("net = [{before}{entry}]\n")), "{fix}");
        let after = grant(&format!("[plugin.weather]\n{admin}"), &fix);
        assert!(reaches(&after, request, "127.0.0.1"));
    }
}

#[test]
fn a_secret_of_another_file_is_not_repeated() {
    let admin = "[plugin.weather]\nsecrets = [{ name = 'key', to = 'https://a.io', header = 'X' }]
                 [secret.key]\nenv = 'KEY'";
    let denial = grant(admin, "").deny_secret("key");
    assert_eq!(denial.reason.to_string(), "its policy has it sent with requests only");
    let fix = denial.fix.unwrap().toml;
    assert!(fix.starts_with("[plugin.weather]\nsecrets = [{ name = \"key\", reveal = true }]\n"));
    assert!(!fix.contains("[secret."), "{fix}");
    assert_eq!(grant(admin, &fix).secrets().len(), 2);
}
