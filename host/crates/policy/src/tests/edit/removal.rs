//! Removals take their own lines and commas, and nothing else.

use super::*;
use crate::edit::{RuleRemovalTarget, add_rule, remove_rule};

fn var(name: &str) -> RemovalTarget {
    RemovalTarget::Env(name.into())
}

#[test]
fn a_list_keeps_its_style_and_its_other_comments() {
    let rows = [
        ("['A', 'B']", "['A']"),
        ("['B', 'A']", "['A']"),
        ("['A', 'B', 'C']", "['A', 'C']"),
        ("['A', 'B',]", "['A',]"),
        ("[ 'A', 'B', ]", "[ 'A', ]"),
        ("['B', 'A', \"B\", 'B']", "['A']"),
        ("[\n  'A',\n  'B',\n]", "[\n  'A',\n]"),
        ("[\n  'A',\n  'B' # b\n]", "[\n  'A'\n]"),
        ("[\n  'B', # b\n  'A', # a\n]", "[\n  'A', # a\n]"),
        ("[\n  # a, b\n  'B',\n\n  # c\n  'A'\n]", "[\n  # a, b\n\n  # c\n  'A'\n]"),
        ("[\n  'A', 'B', # both\n  'C'\n]", "[\n  'A', # both\n  'C'\n]"),
        ("[\n  'B', 'A', # both\n]", "[\n  'A', # both\n]"),
        ("['A', 'B',\n  'C']", "['A',\n  'C']"),
        ("['A', # a\n  'B']", "['A' # a\n]"),
        ("[\n  'A'\n  , 'B'\n]", "[\n  'A'\n  \n]"),
        ("[\n  'B' # b\n  # more\n  , 'A'\n]", "[\n   # b\n  # more\n   'A'\n]"),
        ("[\r\n  'A',\r\n  'B',\r\n]", "[\r\n  'A',\r\n]"),
    ];
    for (list, want) in rows {
        for (front, back) in [("[plugin.w]\nenv = ", " # e\n"), ("plugin = { w.env = ", "}\n")] {
            let text = |list| format!("{front}{list}{back}");
            check_revoke(&text(list), &var("B"), &text(want));
        }
    }
}

#[test]
fn what_is_left_empty_goes_too() {
    let rows = [
        ("[plugin.w]\nenv = ['B']\n", ""),
        ("# w\n[plugin.w]\nenv = ['B']", "# w\n"),
        ("[plugin.w]\nenv = ['B'] # b\nnet = [] # n\n", "[plugin.w]\nnet = [] # n\n"),
        ("[plugin.w]\nenv = [\n  # b\n  'B',\n]\nnet = []", "[plugin.w]\nnet = []"),
        ("[plugin.w]\nenv = ['B']\n\n[plugin.w.limits]\nlog = 7", "[plugin.w.limits]\nlog = 7"),
        ("[plugin.v]\n\n[plugin.w]\nenv = ['B']\n\n[plugin.x]\n", "[plugin.v]\n\n[plugin.x]\n"),
        ("plugin.w.env = ['B']\nplugin.v.env = ['B']\n", "plugin.v.env = ['B']\n"),
        ("plugin.w.env = ['B']\nplugin.w.net = []\n", "plugin.w.net = []\n"),
        ("[plugin]\nw.env = ['B']\n\n[plugin.v]\n", "[plugin.v]\n"),
        ("[plugin]\n\n[plugin.v]\n\n[plugin.w]\nenv = ['B']\n", "[plugin]\n\n[plugin.v]\n"),
        ("plugin = { w = { env = ['B'] } }\n", ""),
        ("plugin = { w = { env = ['B'] }, v = {} }\n", "plugin = { v = {} }\n"),
        ("plugin = { v = {}, w.env = ['B'] }\n", "plugin = { v = {} }\n"),
        ("\u{feff}[plugin.w]\nenv = ['B']\n", "\u{feff}"),
    ];
    for (before, want) in rows {
        check_revoke(before, &var("B"), want);
    }
}

#[test]
fn every_kind_of_grant_can_be_taken_away() {
    let text = "[secret.s]
env = 'S'

[plugin.w]
net = [
  'GET https://a.io/**',
  { allow = 'PUT https://a.io', decision = 'ask' },
  { deny = 'GET https://a.io/**' },
]
fs = [{ path = '~/notes', access = 'read' }, { path = '/b', mount = '/c', access = 'read' }]
secrets = [{ name = 's', reveal = true }]
limits = { time = '1s', log = 7 }
";
    let line = |line: &str| text.replace(&format!("{line}\n"), "");
    let notes = "{ path = '~/notes', access = 'read' }";
    let other = "{ path = '/b', mount = '/c', access = 'read' }";
    let rows = [
        (RemovalTarget::Net("GET https://a.io:443/**".into()), line("  'GET https://a.io/**',")),
        (
            RemovalTarget::Net("PUT https://a.io/".into()),
            line("  { allow = 'PUT https://a.io', decision = 'ask' },"),
        ),
        (
            RemovalTarget::Deny("GET https://a.io/**".into()),
            line("  { deny = 'GET https://a.io/**' },"),
        ),
        (RemovalTarget::Fs("~/notes/".into()), text.replace(&format!("{notes}, "), "")),
        (RemovalTarget::Fs("/notes".into()), text.replace(&format!("{notes}, "), "")),
        (RemovalTarget::Fs("/c".into()), text.replace(&format!(", {other}"), "")),
        (RemovalTarget::Secret("s".into()), line("secrets = [{ name = 's', reveal = true }]")),
        (RemovalTarget::Limit("time".into()), text.replace("time = '1s', ", "")),
        (RemovalTarget::Plugin, "[secret.s]\nenv = 'S'\n".into()),
    ];
    for (target, want) in rows {
        check_revoke(text, &target, &want);
    }
}

#[test]
fn a_whole_plugin_goes_wherever_its_tables_are() {
    let rows = [
        (
            "# top\n\n[plugin.w] # w\n# in w\nenv = ['A']\n\n[plugin.v]\nenv = ['A']\n\n\
             # limits\n[plugin.w.limits]\ntime = '1s'\n\n[[rule]]\ntool = 'w.*'\ndecision = 'ask'\n",
            "# top\n\n[plugin.v]\nenv = ['A']\n\n# limits\n\n[[rule]]\ntool = 'w.*'\ndecision = 'ask'\n",
        ),
        (
            "[plugin.v]\n[[plugin.w.fs]]\npath = '/a'\naccess = 'read'\n\n[[plugin.w.fs]]\n\
             path = '/b'\naccess = 'read'\n[plugin.x]\n",
            "[plugin.v]\n\n[plugin.x]\n",
        ),
        (
            "[plugin]\nw.env = ['A'] # a\nv.env = ['A']\nw.limits.time = '1s'\n",
            "[plugin]\nv.env = ['A']\n",
        ),
        ("plugin = { w.env = ['A'], v = {}, w.limits.time = '1s' }", "plugin = { v = {} }"),
        ("plugin = { w.env = ['A'], w.limits.time = '1s' }\n[proxy]\n", "[proxy]\n"),
        ("[plugin]\nw = {}\n", ""),
        ("[plugin]\n\n[plugin.w]\n", ""),
    ];
    for (before, want) in rows {
        let after = revoke(before, &RemovalTarget::Plugin).unwrap();
        assert_eq!(after, want, "\n{after}");
    }
}

#[test]
fn entries_that_are_tables_of_their_own_go_with_their_lines() {
    let table =
        |path: &str| format!("[[plugin.w.fs]] # {path}\npath = '{path}'\naccess = 'read'\n");
    let text = [table("/a"), table("/b"), table("/c")].join("\n");
    let want = [table("/a"), table("/c")].join("\n");
    check_revoke(&text, &RemovalTarget::Fs("/b".into()), &want);
    check_revoke(&table("/a"), &RemovalTarget::Fs("/a".into()), "");
    check_revoke(&format!("[plugin.w]\n{}", table("/a")), &RemovalTarget::Fs("/a".into()), "");
    let limits = "[plugin.w.limits]\n# short\ntime = '1s'\n\nlog = 7\n";
    check_revoke(
        limits,
        &RemovalTarget::Limit("log".into()),
        "[plugin.w.limits]\n# short\ntime = '1s'\n",
    );
    let dotted = "plugin.w.limits.time = '1s'\nplugin.w.limits.log = 7";
    check_revoke(dotted, &RemovalTarget::Limit("time".into()), "plugin.w.limits.log = 7");
}

#[test]
fn what_was_granted_can_be_taken_back_without_a_trace() {
    let texts = [
        "",
        "# mine\n",
        "[plugin.w]\nenv = [\n  'TZ',\n]\n",
        "[plugin.w]\nenv = ['TZ']\nfs = [{ path = '/a', access = 'read' }]\r\n",
        "plugin = { w = { net = ['GET https://b.io'] } }\n",
        "plugin.w.limits.log = 7\n",
        "[plugin.w.limits]\nlog = 7\n\n[[rule]]\ntool = 'w.*'\ndecision = 'ask'\n",
        "[[plugin.w.fs]]\npath = '/a'\naccess = 'read'\n\n[plugin.v]\n",
    ];
    let rows = [
        (env("NEW"), var("NEW")),
        (net("GET https://a.io/**"), RemovalTarget::Net("GET https://a.io/**".into())),
        (fs("/new"), RemovalTarget::Fs("/new".into())),
        (limit("time", "1s"), RemovalTarget::Limit("time".into())),
    ];
    for before in texts {
        for (addition, target) in &rows {
            check_revoke(&grant(before, addition).unwrap(), target, before);
        }
    }
}

#[test]
fn what_is_not_there_is_named_with_what_is() {
    let text = "[plugin.weather]\nenv = ['A']\n[plugin.w]\nenv = ['HOME', 'HOST', 'TZ', 'PORT']\n\
                net = ['GET https://api.a.io/v1/**', { deny = 'GET https://b.io' }]\n\
                limits = { time = '1s' }";
    let rows = [
        (var("HOTS"), "environment variable \"HOTS\"", "there is \"HOST\", \"HOME\", \"PORT\""),
        (
            RemovalTarget::Net("GET https://api.a.io/v1".into()),
            "entry that allows \"GET https://api.a.io/v1\"",
            "there is \"GET https://api.a.io/v1/**\"",
        ),
        (
            RemovalTarget::Net("GET https://b.io".into()),
            "entry that allows \"GET https://b.io/\"",
            "there is \"GET https://api.a.io/v1/**\"",
        ),
        (RemovalTarget::Limit("tim".into()), "limit \"tim\"", "there is \"time\""),
        (RemovalTarget::Fs("/a".into()), "folder or file \"/a\"", ""),
        (RemovalTarget::Secret("a\nb".into()), "secret \"a\\nb\"", ""),
    ];
    for (target, want, hint) in rows {
        check_refused(revoke(text, &target), &format!("there is no {want}"), hint);
    }
    let no_plugin = edit::revoke_grant(text, &plugin("wether"), &RemovalTarget::Plugin);
    let want = "there is no table for the plugin \"wether\"";
    check_refused(no_plugin, want, "there is \"weather\", \"w\"");
    check_refused(revoke("", &var("A")), "there is no table for the plugin \"w\"", "");
    check_refused(
        revoke("plugin = 1", &var("A")),
        "1:10: \"plugin\" must be a table",
        "correct the file by hand first",
    );
}

#[test]
fn rules_are_removed_by_what_they_are_about() {
    let about = |tool: &str, net: Option<&str>, decision| RuleRemovalTarget {
        tool: tool.into(),
        net: net.map(str::to_owned),
        page: None,
        decision,
    };
    let rule = |keys: &str| format!("[[rule]]\ntool = 'w.get'\n{keys}\n");
    let allow = rule("decision = 'allow' # always");
    let access = rule("net = 'GET https://a.io'\ndecision = 'allow'");
    let deny = rule("decision = 'deny'");
    let text = [&*allow, &access, &deny].join("\n");
    let rows = [
        (about("w.get", None, Some(Decision::Allow)), [&*access, &deny].join("\n")),
        (about("w.get", None, Some(Decision::Deny)), [&*allow, &access].join("\n")),
        (about("w.get", Some("GET https://a.io/"), None), [&*allow, &deny].join("\n")),
    ];
    for (target, want) in rows {
        assert_eq!(remove_rule(&text, &target), Ok(want));
    }
    let get = about("w.get", None, None);
    let twice = format!("{allow}\n{}", rule("digest = '16ee56a487a0'\ndecision = 'allow'"));
    assert_eq!(remove_rule(&twice, &get).as_deref(), Ok(""));
    let braces =
        "rule = [{ tool = 'w.get', decision = 'ask' }, { tool = 'w.put', decision = 'ask' }]";
    let left = "rule = [{ tool = 'w.put', decision = 'ask' }]";
    assert_eq!(remove_rule(braces, &get).as_deref(), Ok(left));
    let added = add_rule(&text, &super::rule("w.new", Decision::Ask)).unwrap();
    assert_eq!(remove_rule(&added, &about("w.new", None, None)), Ok(text.clone()));

    let differ = "the rules for \"w.get\" decide differently";
    check_refused(remove_rule(&text, &get), differ, "name the decision; they are at lines 1, 10");
    let absent = "there is no rule for \"w.gte\"";
    let near = "there is \"w.get\", \"w.get GET https://a.io/\"";
    check_refused(remove_rule(&text, &about("w.gte", None, None)), absent, near);
    check_refused(remove_rule("", &get), "there is no rule for \"w.get\"", "");
}
