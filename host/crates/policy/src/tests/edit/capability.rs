//! Capabilities, granted and taken away in the notation of the file.

use super::*;

#[test]
fn a_capability_is_granted_beside_what_is_there() {
    let head = "[plugin.w] # mine\n";
    let state = capability(Capability::State, None);
    let quota = capability(Capability::State, Some(("quota", "2MiB")));
    let confirm = capability(Capability::Ui, Some(("confirm", "true")));
    let timers = capability(Capability::Schedule, Some(("timers", "7")));
    let rows = [
        ("", &state, "state = true\n"),
        ("state = true # keep\n", &state, "state = true # keep\n"),
        ("state = false # no\n", &state, "state = true # no\n"),
        ("state = {} # e\n", &state, "state = {} # e\n"),
        ("", &quota, "state = { quota = \"2MiB\" }\n"),
        ("state = true # keep\n", &quota, "state = { quota = \"2MiB\" } # keep\n"),
        ("state = { value = 9 } # v\n", &quota, "state = { value = 9, quota = \"2MiB\" } # v\n"),
        ("state = { quota = 9 } # q\n", &quota, "state = { quota = \"2MiB\" } # q\n"),
        ("state.value = 9 # v\n", &quota, "state.value = 9 # v\nstate.quota = \"2MiB\"\n"),
        ("ui = { confirm = false }\n", &confirm, "ui = { confirm = true }\n"),
        ("schedule = true\n", &timers, "schedule = { timers = 7 }\n"),
    ];
    for (before, addition, after) in rows {
        check_grant(&format!("{head}{before}"), addition, &format!("{head}{after}"));
    }
    let table = "[plugin.w.state] # keys\nvalue = 9 # v\n";
    check_grant(table, &quota, "[plugin.w.state] # keys\nvalue = 9 # v\nquota = \"2MiB\"\n");
    check_grant("", &state, "[plugin.w]\nstate = true\n");
}

#[test]
fn a_page_is_added_to_those_that_are_listed() {
    let (a, b) = ("https://a.io/**", page("https://b.io/x"));
    let rows = [
        (String::new(), "open-url = { allow = [\"https://b.io/x\"] }\n".to_owned()),
        // Every page may be opened already.
        ("open-url = true # all\n".to_owned(), "open-url = true # all\n".to_owned()),
        (
            "open-url = { decision = 'allow' }\n".into(),
            "open-url = { decision = 'allow' }\n".into(),
        ),
        ("open-url = false\n".into(), "open-url = { allow = [\"https://b.io/x\"] }\n".into()),
        (
            format!("open-url = {{ allow = ['{a}'] }} # one\n"),
            format!("open-url = {{ allow = ['{a}', \"https://b.io/x\"] }} # one\n"),
        ),
        (
            "open-url = { allow = ['https://b.io:443/x'] }\n".into(),
            "open-url = { allow = ['https://b.io:443/x'] }\n".into(),
        ),
    ];
    for (before, after) in rows {
        check_grant(&format!("[plugin.w]\n{before}"), &b, &format!("[plugin.w]\n{after}"));
    }
    let every_page = capability(Capability::OpenUrl, None);
    check_refused(
        grant(&format!("[plugin.w]\nopen-url = {{ allow = ['{a}'] }}\n"), &every_page),
        "open-url is granted for some pages only, and this is every page",
        "to grant every one, revoke --capability open-url first",
    );
    let unfit = grant("", &page("https://*"));
    assert!(matches!(unfit, Err(EditError::InvalidAddition { .. })), "{unfit:?}");
}

#[test]
fn entries_of_lists_are_added_once() {
    let public = GrantAddition::capability_table(
        Capability::Listen,
        &[("at", "http://0.0.0.0:80"), ("public", "true")],
    );
    let full = GrantAddition::capability_table(
        Capability::Scratch,
        &[("name", "s"), ("mount", "/work"), ("quota", "1MiB")],
    );
    let rows = [
        ("", package("six"), "packages = [\"six\"]\n"),
        ("packages = ['Six'] # p\n", package("six"), "packages = ['Six'] # p\n"),
        ("packages = ['six'] # p\n", package("six==1.0"), "packages = ['six', \"six==1.0\"] # p\n"),
        ("packages = false # p\n", package("six"), "packages = [\"six\"] # p\n"),
        ("", listen("stdin"), "listen = [\"stdin\"]\n"),
        (
            "listen = ['stdin']\n",
            public.clone(),
            "listen = ['stdin', { at = \"http://0.0.0.0:80\", public = true }]\n",
        ),
        (
            "listen = ['http://localhost:80/']\n",
            listen("http://127.0.0.1:80"),
            "listen = ['http://localhost:80/']\n",
        ),
        ("", full.clone(), "scratch = [{ name = \"s\", mount = \"/work\", quota = \"1MiB\" }]\n"),
        (
            "scratch = [{ name = 's', mount = '/s/' }]\n",
            scratch("s"),
            "scratch = [{ name = 's', mount = '/s/' }]\n",
        ),
    ];
    for (before, addition, after) in rows {
        check_grant(&format!("[plugin.w]\n{before}"), &addition, &format!("[plugin.w]\n{after}"));
    }
    let tables = "[[plugin.w.scratch]]\nname = 't' # t\n";
    check_grant(tables, &scratch("s"), &format!("{tables}\n[[plugin.w.scratch]]\nname = \"s\"\n"));
    for unfit in
        [package("six>1"), listen("http://a.io:80"), listen("http://0.0.0.0:80"), scratch("A")]
    {
        assert!(matches!(grant("", &unfit), Err(EditError::InvalidAddition { .. })), "{unfit:?}");
    }
    let unfit = [("quota", "0"), ("qouta", "1"), ("quota", "a\"b")];
    for setting in unfit {
        let addition = capability(Capability::State, Some(setting));
        assert!(
            matches!(grant("", &addition), Err(EditError::InvalidAddition { .. })),
            "{setting:?}"
        );
    }
}

#[test]
fn a_capability_and_its_parts_are_taken_away() {
    let head = "[plugin.w]\nenv = ['TZ'] # e\n";
    let rows = [
        ("state = { quota = 9 } # s\n", RemovalTarget::Capability(Capability::State), ""),
        ("listen = ['stdin']\n", RemovalTarget::Capability(Capability::Listen), ""),
        (
            "packages = ['Six', 'a'] # p\n",
            RemovalTarget::CapabilityItem(Capability::Packages, "six".into()),
            "packages = ['a'] # p\n",
        ),
        (
            "packages = ['six'] # p\n",
            RemovalTarget::CapabilityItem(Capability::Packages, "SIX".into()),
            "",
        ),
        (
            "listen = ['http://localhost:80']\n",
            RemovalTarget::CapabilityItem(Capability::Listen, "http://127.0.0.1:80/".into()),
            "",
        ),
        (
            "listen = ['stdin', { at = 'ws://0.0.0.0:80', public = true }] # l\n",
            RemovalTarget::CapabilityItem(Capability::Listen, "ws://0.0.0.0:80/".into()),
            "listen = ['stdin'] # l\n",
        ),
        (
            "scratch = [{ name = 's' }]\n",
            RemovalTarget::CapabilityItem(Capability::Scratch, "s".into()),
            "",
        ),
        (
            "open-url = { allow = ['https://a.io', 'https://b.io'] } # o\n",
            RemovalTarget::CapabilityItem(Capability::OpenUrl, "https://b.io/".into()),
            "open-url = { allow = ['https://a.io'] } # o\n",
        ),
        // Without an address the table would allow every page.
        (
            "open-url = { allow = ['https://a.io'], decision = 'ask' } # o\n",
            RemovalTarget::CapabilityItem(Capability::OpenUrl, "https://a.io/".into()),
            "",
        ),
    ];
    for (line, target, left) in rows {
        check_revoke(&format!("{head}{line}"), &target, &format!("{head}{left}"));
    }
    // Neither would the table without its list, which the command removed with the setting.
    let list = RemovalTarget::CapabilitySetting(Capability::OpenUrl, "allow".into());
    for rest in ["", ", decision = 'allow'"] {
        let line = format!("open-url = {{ allow = ['https://a.io']{rest} }} # o\n");
        check_revoke(&format!("{head}{line}"), &list, head);
    }
    check_revoke(
        &format!("{head}\n[plugin.w.open-url]\nallow = ['https://a.io']\n"),
        &RemovalTarget::CapabilityItem(Capability::OpenUrl, "https://a.io".into()),
        head,
    );
}

/// Without the `false`, the administrator's file would grant it.
#[test]
fn what_the_policy_takes_away_is_not_granted_by_a_removal() {
    let text = "[plugin.w]\nstate = false\npackages = false\nui = true\n";
    let targets = [
        (RemovalTarget::Capability(Capability::State), "state", 2),
        (RemovalTarget::of_addition(&capability(Capability::State, None)), "state", 2),
        (RemovalTarget::CapabilitySetting(Capability::State, "quota".into()), "state", 2),
        (RemovalTarget::CapabilityItem(Capability::Packages, "six".into()), "packages", 3),
    ];
    for (target, key, line) in targets {
        let want = format!("\"{key}\" is not granted: line {line} takes it away");
        let hint = "to take the denial back, delete that line, or grant it";
        check_refused(revoke(text, &target), &want, hint);
    }
    let absent = revoke(text, &RemovalTarget::Capability(Capability::Notify));
    check_refused(absent, "there is no capability \"notify\"", "there is \"ui\"");
}

#[test]
fn what_is_not_there_is_named() {
    let text = "[plugin.w]\nstate = true\nopen-url = true\npackages = ['six']\n";
    let rows = [
        (
            RemovalTarget::Capability(Capability::Ui),
            "capability \"ui\"",
            "there is \"open-url\", \"packages\", \"state\"",
        ),
        (
            RemovalTarget::CapabilityItem(Capability::Packages, "sixx".into()),
            "package \"sixx\"",
            "there is \"six\"",
        ),
        (
            RemovalTarget::CapabilityItem(Capability::OpenUrl, "https://a.io/".into()),
            "page \"https://a.io/\"",
            "",
        ),
        (
            RemovalTarget::CapabilityItem(Capability::Listen, "stdin".into()),
            "address to listen to \"stdin\"",
            "",
        ),
        (RemovalTarget::CapabilityItem(Capability::Scratch, "s".into()), "scratch \"s\"", ""),
    ];
    for (target, want, hint) in rows {
        check_refused(revoke(text, &target), &format!("there is no {want}"), hint);
    }
    let listed = "[plugin.w]\nopen-url = { allow = ['https://b.io/x'] }";
    let want = "there is no page \"https://b.io/\"";
    check_refused(
        revoke(listed, &RemovalTarget::CapabilityItem(Capability::OpenUrl, "https://b.io".into())),
        want,
        "there is \"https://b.io/x\"",
    );
}

#[test]
fn a_grant_is_written_as_key_and_value() {
    let rows = [
        ("state=true", "state = true\n"),
        ("state.quota=1MiB", "state = { quota = \"1MiB\" }\n"),
        ("ui.confirm=true", "ui = { confirm = true }\n"),
        ("open-url=https://a.io/**", "open-url = { allow = [\"https://a.io/**\"] }\n"),
        ("packages = six==1.0", "packages = [\"six==1.0\"]\n"),
        ("scratch={ name = 's', quota = '1MiB' }", "scratch = [{ name = 's', quota = '1MiB' }]\n"),
        ("listen=stdin", "listen = [\"stdin\"]\n"),
        ("net=GET https://a.io/?", "net = [\"GET https://a.io/?\"]\n"),
        ("fs=/data", "fs = [{ path = \"/data\", access = \"read\" }]\n"),
        ("env=TZ", "env = [\"TZ\"]\n"),
        ("limits.time=9s", "limits = { time = \"9s\" }\n"),
    ];
    for (text, after) in rows {
        let addition: GrantAddition = text.parse().unwrap();
        let before = "[plugin.w]\n";
        match text.contains('?') {
            true => assert!(grant(before, &addition).is_err(), "{text}"),
            false => check_grant(before, &addition, &format!("{before}{after}")),
        }
    }
    let secret = "secrets=pin".parse::<GrantAddition>().unwrap();
    let after = grant("[plugin.w]\n", &secret).unwrap();
    assert_eq!(after, "[plugin.w]\nsecrets = [{ name = \"pin\", reveal = true }]\n");
    for of in Capability::ALL {
        let text = format!("{of}=true");
        assert!(matches!(text.parse(), Ok(GrantAddition::Capability(_))), "{text}");
    }
    for odd in ["", "state", "=true", "state=", "stat=true", "net.a=b", "a.b=c"] {
        let error = odd.parse::<GrantAddition>().unwrap_err().to_string();
        assert!(error.contains("KEY=VALUE"), "{error}");
    }
    let two = "scratch={ name = 's' }], env = ['TZ'".parse::<GrantAddition>().unwrap();
    assert!(grant("[plugin.w]\n", &two).is_err());
}

/// A plugin kept a capability until the session ended, because the grant of the session was written
/// over the `false`.
#[test]
fn a_grant_of_a_session_does_not_override_a_false_that_is_written_later() {
    let notify = capability(Capability::Notify, None);
    let network = capability(Capability::Process, Some(("network", "true")));
    let (package, variable) = (package("six"), env("TZ"));
    let all = [&notify, &network, &package, &variable];
    let rows: [(&str, &[&GrantAddition]); 8] = [
        ("", &all),
        ("[plugin.w]\nnotify = false\npackages = false\n", &[&network, &variable]),
        ("plugin.w.notify = false\n", &[&network, &package, &variable]),
        ("[plugin.w]\nprocess = false\n", &[&notify, &package, &variable]),
        ("plugin = { w = { process = { network = false } } }\n", &[&notify, &package, &variable]),
        ("[plugin.w.process]\nnetwork = false\n", &[&notify, &package, &variable]),
        ("[plugin.y]\nnotify = false\n", &all),
        ("[plugin.w]\nnotify = true\nprocess = true\n", &all),
    ];
    let additions = all.map(Clone::clone);
    for (text, want) in rows {
        let kept: Vec<GrantAddition> = want.iter().copied().cloned().collect();
        let granted = edit::add_grants_unless_denied(text, &plugin("w"), &additions).unwrap();
        assert_eq!(edit::add_grants(text, &plugin("w"), &kept).as_ref(), Ok(&granted), "{text}");
        assert_eq!(granted.matches("false").count(), text.matches("false").count(), "{granted}");
    }
    let denied = "[plugin.w]\nnotify = false\n";
    let granted = edit::add_grants_unless_denied(denied, &plugin("w"), &[notify]);
    assert_eq!(granted.as_deref(), Ok(denied));
    assert!(edit::add_grants_unless_denied("[plugin.w", &plugin("w"), &additions).is_err());
}
