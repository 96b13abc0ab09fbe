//! Grants as text: what they say is granted, and nothing else.

use super::*;

#[test]
fn a_table_is_granted_with_all_that_it_says() {
    let net = "allow = 'GET https://a.io/**'";
    let range = "to-private = true, range";
    let rows = [
        (
            format!("net={{ {net}, decision = 'ask' }}"),
            "[{ allow = \"GET https://a.io/**\", decision = \"ask\" }]",
        ),
        (
            format!("net={{ {net}, decision = 'allow' }}"),
            "[{ allow = \"GET https://a.io/**\", decision = \"allow\" }]",
        ),
        (
            format!("net={{ {net}, {range} = '10.0.0.0/8' }}"),
            "[{ allow = \"GET https://a.io/**\", to-private = true, range = \"10.0.0.0/8\" }]",
        ),
        (
            format!("net={{ {net}, {range} = ['10.0.0.0/8', 'fd00::/8'] }}"),
            "[{ allow = \"GET https://a.io/**\", to-private = true, range = [\"10.0.0.0/8\", \"fd00::/8\"] }]",
        ),
        (
            "fs={ path = '/srv', access = 'read', deny = ['**/.env'], sensitive = true }".into(),
            "[{ path = \"/srv\", access = \"read\", deny = [\"**/.env\"], sensitive = true }]",
        ),
        (
            "fs={ path = '/srv', mount = '/n', access = 'read-write', quota = '1MiB' }".into(),
            "[{ path = \"/srv\", mount = \"/n\", access = \"read-write\", quota = \"1MiB\" }]",
        ),
        (
            "secrets={ name = 's', to = 'https://a.io', header = 'X-Key', format = 'k {}' }".into(),
            "[{ name = \"s\", to = \"https://a.io\", header = \"X-Key\", format = \"k {}\" }]",
        ),
        ("secrets={ name = 's', reveal = true }".into(), "[{ name = \"s\", reveal = true }]"),
        ("env=\"TZ\"".into(), "[\"TZ\"]"),
        ("packages='true'".into(), "[\"true\"]"),
    ];
    let source = "[secret.s]\nenv = 'S'\n\n";
    for (text, want) in rows {
        let key = text.split_once('=').unwrap().0.to_owned();
        let addition: GrantAddition = text.parse().unwrap_or_else(|error| panic!("{error}"));
        check_grant(source, &addition, &format!("{source}[plugin.w]\n{key} = {want}\n"));
    }
}

/// Each of these was a grant, and without the part that was not understood a wider one.
#[test]
fn what_a_policy_would_not_understand_is_not_a_grant() {
    let net = "net={ allow = 'GET https://a.io/**'";
    let rows = [
        ("fs={ path = '/srv', access = 'read-only' }".into(), "read-write"),
        ("fs={ path = '/srv', access = 'Read' }".into(), "did you mean \"read\"?"),
        ("fs={ path = '/srv', access = 'none' }".into(), "read-write"),
        ("fs={ path = '/srv' }".into(), "access"),
        ("fs={ path = '/srv', access = 'read-write', quota = true }".into(), "quota"),
        ("fs={ path = '/srv', access = 'read', sensitive = 'true' }".into(), "sensitive"),
        ("fs={ path = '/srv', access = 'read', deny = '**/.env' }".into(), "deny"),
        ("fs={ path = '/srv', access = 'read', denies = ['x'] }".into(), "denies"),
        (format!("{net}, decision = 'Ask' }}"), "ask"),
        (format!("{net}, decision = 'deny' }}"), "ask"),
        (format!("{net}, decision = true }}"), "decision"),
        (format!("{net}, range = '10.0.0.0/8' }}"), "to-private"),
        (format!("{net}, to-private = 'true' }}"), "to-private"),
        ("net={ deny = 'GET https://a.io/**' }".into(), "KEY=VALUE"),
        ("secrets={ name = 's', to = 'https://a.io', header = 'X', format = 1 }".into(), "format"),
        ("secrets={ name = 's', reveal = true, to = 'https://a.io' }".into(), "sent and revealed"),
        ("listen={ at = 'http://127.0.0.1:80', public = 'no' }".into(), "public"),
        ("state={ quota = '1MiB' }".into(), "state.SETTING=VALUE with one of"),
        ("open-url={ allow = ['https://a.io/**'] }".into(), "write open-url=VALUE"),
        ("open-url.allow=https://a.io/**".into(), "\"allow\" is not a setting"),
        ("packages.six=1.0".into(), "write packages=VALUE"),
        ("state.qouta=1MiB".into(), "quota"),
        ("state=false".into(), "takes state away"),
        ("packages=false".into(), "takes packages away"),
        ("env=false".into(), "KEY=VALUE"),
    ];
    for (text, words) in rows {
        let text: String = text;
        let refused = text.parse::<GrantAddition>();
        let error = refused.expect_err(&text).to_string();
        assert!(error.contains("is not a grant: ") && error.contains(words), "{text}: {error}");
    }
}
