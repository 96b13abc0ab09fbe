//! Additions go where their table is, in the notation of that table.

use super::*;
use crate::edit::add_rule;

const A: &str = "GET https://a.io/**";
const B: &str = "GET https://b.io/**";

#[test]
fn a_plugin_without_a_table_gets_one() {
    let table = "[plugin.w]\nenv = [\"TZ\"]\n";
    let rows = [
        ("", table.to_owned()),
        ("\u{feff}", format!("\u{feff}{table}")),
        ("# mine", format!("# mine\n\n{table}")),
        ("# mine\n", format!("# mine\n\n{table}")),
        ("# mine\n\n", format!("# mine\n\n{table}")),
        ("[plugin]\n", format!("[plugin]\n\n{table}")),
        ("[plugin.v]\nenv = ['A']\n", format!("[plugin.v]\nenv = ['A']\n\n{table}")),
        ("plugin.v.env = ['A']\n", format!("plugin.v.env = ['A']\n\n{table}")),
        ("# é 漢\r\n", "# é 漢\r\n\r\n[plugin.w]\r\nenv = [\"TZ\"]\r\n".to_owned()),
        ("[plugin]\nv = {}\n", "[plugin]\nv = {}\nw = { env = [\"TZ\"] }\n".to_owned()),
        ("plugin = {}", "plugin = { w = { env = [\"TZ\"] } }".to_owned()),
        ("plugin = { v = { } }", "plugin = { v = { }, w = { env = [\"TZ\"] } }".to_owned()),
        (
            "plugin = { v.env = ['A'] } # one line\n",
            "plugin = { v.env = ['A'], w = { env = [\"TZ\"] } } # one line\n".to_owned(),
        ),
    ];
    for (before, want) in rows {
        check_grant(before, &env("TZ"), &want);
    }
}

#[test]
fn a_table_without_the_key_gets_it_in_its_own_way() {
    let rows = [
        ("[plugin.w]", "[plugin.w]\nenv = [\"TZ\"]\n"),
        ("[plugin.w] # w\n\n[plugin.v]\n", "[plugin.w] # w\nenv = [\"TZ\"]\n\n[plugin.v]\n"),
        ("[plugin.'w']\n", "[plugin.'w']\nenv = [\"TZ\"]\n"),
        (
            "[plugin.w]\n  net = [] # none\n# below\n",
            "[plugin.w]\n  net = [] # none\n  env = [\"TZ\"]\n# below\n",
        ),
        (
            "[plugin.w]\nnet = [\n  'GET https://a.io/**',\n]\nlimits.time = '1s'",
            "[plugin.w]\nnet = [\n  'GET https://a.io/**',\n]\nlimits.time = '1s'\nenv = [\"TZ\"]\n",
        ),
        (
            "plugin.w.net = []\n\n[[rule]]\ntool = 'w.*'\ndecision = 'ask'\n",
            "plugin.w.net = []\nplugin.w.env = [\"TZ\"]\n\n[[rule]]\ntool = 'w.*'\ndecision = 'ask'\n",
        ),
        (
            "[plugin]\nw.limits.time = '1s'\nv.net = []\n",
            "[plugin]\nw.limits.time = '1s'\nw.env = [\"TZ\"]\nv.net = []\n",
        ),
        (
            "[plugin]\r\n\tw = { net = [] }\r\n",
            "[plugin]\r\n\tw = { net = [], env = [\"TZ\"] }\r\n",
        ),
        ("[plugin]\nw = {}\n", "[plugin]\nw = { env = [\"TZ\"] }\n"),
        ("plugin = { w.net = [] }", "plugin = { w.net = [], w.env = [\"TZ\"] }"),
        ("plugin.w = { net = [] }", "plugin.w = { net = [], env = [\"TZ\"] }"),
        (
            "plugin.w = {\n  net = [], # none\n}\n",
            "plugin.w = {\n  net = [], # none\n  env = [\"TZ\"],\n}\n",
        ),
        (
            "[plugin.w.limits]\ntime = '1s'\n[[plugin.w.fs]]\npath = '/a'\naccess = 'read'\n",
            "[plugin.w.limits]\ntime = '1s'\n[[plugin.w.fs]]\npath = '/a'\naccess = 'read'\n\n\
             [plugin.w]\nenv = [\"TZ\"]\n",
        ),
    ];
    for (before, want) in rows {
        check_grant(before, &env("TZ"), want);
    }
}

#[test]
fn a_list_grows_in_its_own_style() {
    let rows = [
        ("[]", "[\"B\"]"),
        ("[ ]", "[\"B\"]"),
        ("['A']", "['A', \"B\"]"),
        ("['A',]", "['A', \"B\",]"),
        ("[ 'A' , ]", "[ 'A' , \"B\", ]"),
        ("[\n]", "[\n    \"B\",\n]"),
        ("[\n  # none yet\n]", "[\n  # none yet\n    \"B\",\n]"),
        ("[\n  'A',\n]", "[\n  'A',\n  \"B\",\n]"),
        ("[\n  'A'\n]", "[\n  'A',\n  \"B\"\n]"),
        ("[\n\t'A', 'C' # , two\n\t# 'D',\n]", "[\n\t'A', 'C', # , two\n\t# 'D',\n\t\"B\"\n]"),
        ("['A',\n  'C']", "['A',\n  'C', \"B\"]"),
        ("['A', # a\n]", "['A', # a\n    \"B\",\n]"),
        ("[\n  'A' # a, b\n  , 'C'\n]", "[\n  'A' # a, b\n  , 'C',\n  \"B\"\n]"),
        ("[\r\n  'A',\r\n]", "[\r\n  'A',\r\n  \"B\",\r\n]"),
        ("['''\nA''']", "['''\nA''', \"B\"]"),
    ];
    for (list, want) in rows {
        for (front, back) in [("[plugin.w]\nenv = ", " # e\n"), ("plugin = { w.env = ", "}\n")] {
            let text = |list| format!("{front}{list}{back}");
            check_grant(&text(list), &env("B"), &text(want));
        }
    }
}

#[test]
fn a_list_of_tables_gets_one_more() {
    let first = "[[plugin.w.net]]\nallow = 'GET https://a.io/**'\n";
    let want = format!("{first}\n[[plugin.w.net]]\nallow = \"{B}\"\n\n[plugin.v]\n");
    check_grant(&format!("{first}\n[plugin.v]\n"), &net(B), &want);
    let first = "[[plugin.w.fs]]\npath = '/a'\naccess = 'read'";
    let second = "[[plugin.w.fs]]\npath = \"/b\"\naccess = \"read\"\n";
    check_grant(first, &fs("/b"), &format!("{first}\n\n{second}"));
    let misplaced = "[plugin.w]\n[[plugin.w.env]]\nname = 'A'\n";
    let hint = "correct the file by hand first";
    check_refused(grant(misplaced, &env("B")), "2:1: \"env\" must be a list of texts", hint);
}

#[test]
fn every_kind_of_addition_reads_as_it_was_meant() {
    let ask = |reach| NetAddition { pattern: A.into(), decision: Some(Decision::Ask), reach };
    let local = NetAddition {
        pattern: "GET http://localhost:80/".into(),
        decision: None,
        reach: NetReachText::HostAddresses,
    };
    let ranges =
        |ranges: &[&str]| NetReachText::Ranges(ranges.iter().map(|r| (*r).into()).collect());
    let notes = FsAddition {
        mount: Some("/n".into()),
        deny: vec!["**/.git/**".into(), "**/.env*".into()],
        quota: Some("100MiB".into()),
        sensitive: true,
        ..folder("~/notes", FsAccess::ReadWrite)
    };
    let secret = |way| GrantAddition::Secret(SecretAddition { name: "s".into(), usage: way });
    let inject = |format: Option<&str>| SecretUseText::Inject {
        to: "https://a.io".into(),
        header: "Authorization".into(),
        format: format.map(str::to_owned),
    };
    let rows = [
        (net(A), format!("net = [\"{A}\"]")),
        (GrantAddition::Net(ask(NetReachText::Public)), format!("net = [{{ allow = \"{A}\", decision = \"ask\" }}]")),
        (
            GrantAddition::Net(local),
            "net = [{ allow = \"GET http://localhost:80/\", to-private = true }]".into(),
        ),
        (
            GrantAddition::Net(ask(ranges(&["10.0.0.0/8"]))),
            format!("net = [{{ allow = \"{A}\", to-private = true, range = \"10.0.0.0/8\", decision = \"ask\" }}]"),
        ),
        (
            GrantAddition::Net(ask(ranges(&["10.0.0.0/8", "fd00::/8"]))),
            format!("net = [{{ allow = \"{A}\", to-private = true, range = [\"10.0.0.0/8\", \"fd00::/8\"], decision = \"ask\" }}]"),
        ),
        (fs("/a \"b\" \\ é"), "fs = [{ path = \"/a \\\"b\\\" \\\\ é\", access = \"read\" }]".into()),
        (
            GrantAddition::Fs(notes),
            "fs = [{ path = \"~/notes\", mount = \"/n\", access = \"read-write\", \
             deny = [\"**/.git/**\", \"**/.env*\"], quota = \"100MiB\", sensitive = true }]"
                .into(),
        ),
        (secret(SecretUseText::Reveal), "secrets = [{ name = \"s\", reveal = true }]".into()),
        (
            secret(inject(None)),
            "secrets = [{ name = \"s\", to = \"https://a.io\", header = \"Authorization\" }]".into(),
        ),
        (
            secret(inject(Some("Bearer {}"))),
            "secrets = [{ name = \"s\", to = \"https://a.io\", header = \"Authorization\", format = \"Bearer {}\" }]".into(),
        ),
        (limit("time", "10s"), "limits = { time = \"10s\" }".into()),
        (limit("http-requests", "5"), "limits = { http-requests = 5 }".into()),
    ];
    let source = "[secret.s]\nenv = 'S'\n\n";
    for (addition, want) in rows {
        check_grant(source, &addition, &format!("{source}[plugin.w]\n{want}\n"));
    }
}

#[test]
fn what_is_there_already_is_not_added_again() {
    let rows = [
        ("net = [{ allow = 'GET https://a.io:443/**' }]", net(A)),
        ("net = [{ allow = 'GET https://a.io/**', decision = 'allow' }]", net(A)),
        ("fs = [{ access = 'read', path = '/a', mount = '/a' }]", fs("/a")),
        ("env = ['''\nB''']", env("B")),
        ("limits = { http-requests = 5 }", limit("http-requests", "5")),
    ];
    for (table, addition) in rows {
        let text = format!("[plugin.w]\n{table} # as it is");
        check_grant(&text, &addition, &text);
    }
    let tables = "[[plugin.w.net]]\nallow = 'GET https://a.io/**' # a\n";
    check_grant(tables, &net(A), tables);
    let wider = "[plugin.w]\nnet = [\"* https://a.io/**\"]\n";
    check_grant(
        wider,
        &net(A),
        "[plugin.w]\nnet = [\"* https://a.io/**\", \"GET https://a.io/**\"]\n",
    );
}

/// The command reported success, and the user was never asked, because the least strict entry counts.
#[test]
fn a_question_about_what_is_allowed_without_one_is_refused() {
    let ask = |pattern: &str, reach| {
        let (pattern, decision) = (pattern.to_owned(), Some(Decision::Ask));
        GrantAddition::Net(NetAddition { pattern, decision, reach })
    };
    let own = "GET http://localhost:80/";
    let rows = [
        ("'GET https://a.io/**'", ask(A, NetReachText::Public), false),
        (
            "{ allow = '* https://a.io/**', decision = 'allow' }",
            ask(A, NetReachText::Public),
            false,
        ),
        ("{ allow = '* https://a.io/**', decision = 'ask' }", ask(A, NetReachText::Public), true),
        ("'GET https://a.io/x'", ask(A, NetReachText::Public), true),
        ("{ deny = 'GET https://a.io/**' }", ask(A, NetReachText::Public), true),
        ("'GET http://localhost:80/'", ask(own, NetReachText::HostAddresses), true),
        (
            "{ allow = 'GET http://localhost:80/', to-private = true }",
            ask(own, NetReachText::HostAddresses),
            false,
        ),
    ];
    for (entry, addition, is_added) in rows {
        let edited = grant(&format!("[plugin.w]\nnet = [{entry}]\n"), &addition);
        assert_eq!(edited.is_ok(), is_added, "{entry}: {edited:?}");
        let is_expected = |error: &EditError| matches!(error, EditError::NeverAsked { .. });
        assert!(edited.as_ref().err().is_none_or(is_expected), "{entry}: {edited:?}");
    }
}

/// The widened entry has to restrict the folder as the addition does: the rest of the addition was
/// dropped, and the plugin could write what was to be left out.
#[test]
fn a_folder_is_not_widened_without_the_restrictions_of_the_addition() {
    let entry = |keys: &str| format!("[plugin.w]\nfs = [{{ path = '/w', {keys} }}] # w\n");
    let write = || folder("/w", FsAccess::ReadWrite);
    let denying = || FsAddition { deny: vec!["**/.env".into()], ..write() };
    let read = "access = 'read'";
    let denied = "access = 'read', deny = ['x', '**/.env']";
    let rows = [
        (read, write(), Some("access = \"read-write\"")),
        (denied, write(), Some("access = \"read-write\", deny = ['x', '**/.env']")),
        (denied, denying(), Some("access = \"read-write\", deny = ['x', '**/.env']")),
        (
            "access = 'read', sensitive = true",
            FsAddition { sensitive: true, ..write() },
            Some("access = \"read-write\", sensitive = true"),
        ),
        (read, denying(), None),
        ("access = 'read', deny = ['x']", denying(), None),
        (read, FsAddition { quota: Some("10MiB".into()), ..write() }, None),
        (read, FsAddition { sensitive: true, ..write() }, None),
    ];
    for (before, addition, after) in rows {
        let edited = grant(&entry(before), &GrantAddition::Fs(addition));
        match after {
            Some(after) => assert_eq!(edited, Ok(entry(after))),
            None => {
                let want = "\"/w\" is granted for reading already, and its entry has no such deny, \
                            quota or sensitive";
                check_refused(edited, want, "revoke --path /w first");
            }
        }
    }
}

#[test]
fn a_limit_takes_the_place_of_the_one_before() {
    let rows = [
        ("[plugin.w]\nlimits = {}\n", "[plugin.w]\nlimits = { time = \"9s\" }\n"),
        (
            "[plugin.w]\nlimits = { time = '1s', log = 7 } # l\n",
            "[plugin.w]\nlimits = { time = \"9s\", log = 7 } # l\n",
        ),
        ("[plugin.w.limits]\nlog = 7 # l\n", "[plugin.w.limits]\nlog = 7 # l\ntime = \"9s\"\n"),
        ("[plugin.w.limits]\n", "[plugin.w.limits]\ntime = \"9s\"\n"),
        ("plugin.w.limits.log = 7\n", "plugin.w.limits.log = 7\nplugin.w.limits.time = \"9s\"\n"),
        ("[plugin.w]\nlimits.time = '1s' # l", "[plugin.w]\nlimits.time = \"9s\" # l"),
    ];
    for (before, want) in rows {
        check_grant(before, &limit("time", "9s"), want);
    }
}

#[test]
fn rules_are_added_at_the_end_and_once() {
    let always = RuleText {
        net: Some("GET https://a.io/".into()),
        digest: Some("16ee56a487a0".into()),
        message: Some("say \"why\"".into()),
        ..rule("w.get", Decision::Allow)
    };
    let keys = "tool = \"w.get\"\nnet = \"GET https://a.io/\"\ndigest = \"16ee56a487a0\"\n\
                decision = \"allow\"\nmessage = \"say \\\"why\\\"\"\n";
    let inline = keys.trim_end().replace('\n', ", ");
    let ask = "[[rule]]\ntool = 'w.get'\ndecision = 'ask'\n";
    let rows = [
        (String::new(), format!("[[rule]]\n{keys}")),
        (ask.to_owned(), format!("{ask}\n[[rule]]\n{keys}")),
        (format!("{ask}[plugin.w]"), format!("{ask}[plugin.w]\n\n[[rule]]\n{keys}")),
        ("rule = []".into(), format!("rule = [{{ {inline} }}]")),
        (
            "rule = [\n  { tool = 'w.*', decision = 'ask' },\n]\n".into(),
            format!("rule = [\n  {{ tool = 'w.*', decision = 'ask' }},\n  {{ {inline} }},\n]\n"),
        ),
    ];
    for (before, want) in rows {
        let after = add_rule(&before, &always).unwrap();
        assert_eq!(after, want);
        assert!(reads(&after), "{after}");
        assert_eq!(add_rule(&after, &always), Ok(after));
    }
    for near in ["when = 'true'", "message = 'no'", "digest = '16ee56a487a0'"] {
        let text = format!("{ask}{near}\n");
        let added = add_rule(&text, &rule("w.get", Decision::Ask)).unwrap();
        assert!(added.len() > text.len(), "{near}");
    }
    assert_eq!(add_rule(ask, &rule("w.get", Decision::Ask)).as_deref(), Ok(ask));
}

#[test]
fn what_no_policy_can_hold_is_not_added() {
    let by_hand = "correct the file by hand first";
    let env_hint = "use letters, digits and '_', not beginning with a digit";
    let rows = [
        ("a = [1,\n2", env("B"), "2:2: unclosed array, expected `]`", by_hand),
        (
            "é = 1",
            env("B"),
            "1:1: invalid unquoted key, expected letters, numbers, `-`, `_`",
            by_hand,
        ),
        ("\u{feff}a = 1\na = 2", env("B"), "2:1: duplicate key", by_hand),
        ("plugin = 1", env("B"), "1:10: \"plugin\" must be a table", by_hand),
        ("[plugin]\n w = []", env("B"), "2:6: \"w\" must be a table", by_hand),
        ("[plugin.w]\nenv = 'A'", env("B"), "2:7: \"env\" must be a list", by_hand),
        (
            "[plugin.w]\nlimits = 1",
            limit("time", "1s"),
            "2:10: \"limits\" must be a table",
            by_hand,
        ),
        (
            "plugin.w.limits.time.x = 1",
            limit("time", "1s"),
            "1:17: \"time\" must be a limit",
            by_hand,
        ),
        (
            "plugin.w.limits.time = {}",
            limit("time", "1s"),
            "1:24: \"time\" must be a limit",
            by_hand,
        ),
        ("", env("A B"), "\"A B\" is not the name of an environment variable", env_hint),
        ("", limit("tme", "1s"), "unknown key \"tme\"", "did you mean \"time\"?"),
        ("", limit("time = '1s', cpu", "1s"), "unknown key \"time = '1s', cpu\"", ""),
        ("", limit("time", "0s"), "0ms is not from 1ms to 24h", ""),
        (
            "",
            net("GET a.io"),
            "\"a.io\" begins with neither https:// nor http://",
            "begin with https://, in small letters",
        ),
    ];
    for (text, addition, want, hint) in rows {
        match hint {
            "" => assert_eq!(grant(text, &addition).unwrap_err().to_string(), want),
            _ => check_refused(grant(text, &addition), want, hint),
        }
    }
    let deep = format!("a = {}", "[".repeat(99));
    check_refused(grant(&deep, &env("B")), "1:68: the file nests too deeply", by_hand);
    let long = " ".repeat(crate::document::DOCUMENT_BYTES_MAX + 1);
    check_refused(grant(&long, &env("B")), "1:1: the file is longer than 1MiB", by_hand);
    let no_tool = add_rule("", &rule("w*", Decision::Ask)).unwrap_err();
    assert_eq!(no_tool.to_string(), "\"w*\" is not a tool id: write it as PLUGIN.TOOL");
    let no_list = add_rule("rule = 1", &rule("w.*", Decision::Ask)).unwrap_err();
    assert_eq!(no_list.to_string(), "1:8: \"rule\" must be a list");
}

/// Requests a file by its path and little else.
const NARROW: &str = "[[request.fs]]\npath = '/etc/os-release'\naccess = 'read'\nwhy = 'w'
                      [[request.net]]\nallow = 'GET http://127.0.0.1:8080/**'\nwhy = 'w'
                      [[request.env]]\nname = 'TZ'\nwhy = 'w'
                      [[request.state]]\nwhy = 'w'";

#[test]
fn what_could_not_have_the_effect_that_is_meant_is_objected_to() {
    let manifest = crate::tests::manifest(NARROW);
    let private = "GET http://127.0.0.1:8080/** has a private address";
    let own = |pattern: &str| {
        let (pattern, reach) = (pattern.to_owned(), NetReachText::HostAddresses);
        GrantAddition::Net(NetAddition { pattern, decision: None, reach })
    };
    let at = |path: &str, access, mount: Option<&str>| {
        GrantAddition::Fs(FsAddition { mount: mount.map(str::to_owned), ..folder(path, access) })
    };
    let rows: [(GrantAddition, &[&str]); 13] = [
        (net("GET https://a.io/"), &["grants GET https://a.io/, which the plugin does not"]),
        (net("GET http://127.0.0.1:8080/**"), &[private]),
        (own("GET http://127.0.0.1:8080/**"), &[]),
        (own("GET http://127.0.0.1:8081/**"), &["does not request"]),
        (env("TZ"), &[]),
        (env("HOME"), &["grants the variable HOME, which the plugin does not request"]),
        (capability(Capability::State, None), &[]),
        (capability(Capability::Notify, None), &["does not request"]),
        (limit("time", "5s"), &[]),
        (at("/etc/os-release", FsAccess::Read, None), &[]),
        (
            at("/etc/os-release", FsAccess::Read, Some("/o")),
            &["looks for /etc/os-release, but would"],
        ),
        (at("/etc/os-release", FsAccess::ReadWrite, None), &["requests only read access"]),
        (at("/etc/passwd", FsAccess::Read, None), &["grants /etc/passwd, which the plugin"]),
    ];
    for (addition, want) in rows {
        let shown = format!("{addition:?}");
        let (_, found) =
            addition.check_against_manifest(&manifest, &serde_json::Map::new(), None).unwrap();
        let words: Vec<String> = found.iter().map(ToString::to_string).collect();
        assert_eq!(words.len(), want.len(), "{shown}: {words:?}");
        assert!(words.iter().zip(want).all(|(word, want)| word.contains(want)), "{words:?}");
    }
}

#[test]
fn a_file_that_is_requested_by_its_path_is_seen_under_that_path() {
    let manifest = crate::tests::manifest(NARROW);
    let read = |path: &str| {
        fs(path).check_against_manifest(&manifest, &serde_json::Map::new(), None).unwrap().0
    };
    let GrantAddition::Fs(found) = read("/etc/./os-release") else { panic!("a folder stays one") };
    assert_eq!(found.mount.as_deref(), Some("/etc/os-release"));
    let any = crate::tests::manifest("[[request.fs]]\naccess = 'read'\nwhy = 'w'");
    let (found, _) =
        fs("/srv/n").check_against_manifest(&any, &serde_json::Map::new(), None).unwrap();
    assert_eq!(found, fs("/srv/n"), "the operator chooses where it is seen");
}

#[test]
fn limits_for_all_plugins_are_stated_and_taken_away() {
    let text = "# mine\n[plugin.w]\nenv = [\"TZ\"]\n";
    let one = edit::set_shared_limit(text, "calls-per-minute", "10").unwrap();
    assert!(reads(&one) && one.starts_with(text) && one.contains("[limits]\n"), "{one}");
    let two = edit::set_shared_limit(&one, "time", "5s").unwrap();
    assert!(reads(&two) && two.contains("time = \"5s\""), "{two}");
    let less = edit::set_shared_limit(&two, "calls-per-minute", "9").unwrap();
    assert!(less.contains("calls-per-minute = 9") && !less.contains("10"), "{less}");
    let back = edit::revoke_shared_limit(&less, "time").unwrap();
    let back = edit::revoke_shared_limit(&back, "calls-per-minute").unwrap();
    assert_eq!(back.trim_end(), text.trim_end());
    for (key, value) in [("tim", "5s"), ("time", "soon")] {
        assert!(edit::set_shared_limit(text, key, value).is_err(), "{key} {value}");
    }
    assert!(edit::revoke_shared_limit(text, "time").is_err());
}

#[test]
fn rules_over_plugins_are_added_once_however_they_are_written() {
    let text = edit::add_rule("", &rule("*.*", Decision::Deny)).unwrap();
    assert_eq!(edit::add_rule(&text, &rule("*", Decision::Deny)).as_deref(), Ok(text.as_str()));
    let (tool, net, page, decision) = ("*".to_owned(), None, None, None);
    let target = edit::RuleRemovalTarget { tool, net, page, decision };
    assert_eq!(edit::remove_rule(&text, &target).as_deref(), Ok(""));
}
