//! Mistakes about capabilities in manifests and policies, each with its place.

use super::super::{check_error, parse_policy};
use crate::Manifest;

/// A key, a function that makes an entry of its list, and the maximum number of entries.
type Bounded<'t> = (&'static str, &'t dyn Fn(usize) -> String, usize);

/// A line of a plugin's table, the column and message of its refusal, and the hint.
#[rustfmt::skip]
const ROWS: &[(&str, &str, &str)] = &[
    ("state = 1", "9: \"state\" must be true, false or a table, not an integer", ""),
    ("state = ['a']", "9: \"state\" must be true, false or a table, not an array", ""),
    ("state = { qouta = 1 }", "11: unknown key \"qouta\"", "did you mean \"quota\"?"),
    ("state = { quota = 0 }", "19: 0B is not from 1B to 1GiB", ""),
    ("state = { value = '65MiB' }", "19: 65MiB is not from 1B to 64MiB", ""),
    ("stat = true", "1: unknown key \"stat\"", "did you mean \"state\"?"),
    ("schedule = { timers = 0 }", "23: \"timers\" must be from 1 to 10000", ""),
    ("schedule = { interval = '999ms' }", "25: 999ms is not from 1s to 24h", ""),
    ("schedule = { interval = 5 }", "25: \"interval\" must be a string, not an integer", ""),
    ("notify = { per_minute = 5 }", "12: unknown key \"per_minute\"", "did you mean \"per-minute\"?"),
    ("notify = { per-minute = 601 }", "25: \"per-minute\" must be from 1 to 600", ""),
    ("progress = 'yes'", "12: \"progress\" must be true, false or a table, not a string", ""),
    ("open_url = true", "1: unknown key \"open_url\"", "did you mean \"open-url\"?"),
    ("open-url = ['https://a.io']", "12: \"open-url\" must be true, false or a table, not an array", ""),
    ("open-url = { allow = [] }", "22: \"allow\" holds no address", "leave it out to allow every page, or write false for none"),
    ("open-url = { allow = ['https://*'] }", "23: the host \"*\" would allow nearly the whole internet", "name the host, or one level below a domain: *.example.com"),
    ("open-url = { allow = ['ftp://a.io'] }", "23: \"ftp://a.io\" begins with neither https:// nor http://", "begin with https://, in small letters"),
    ("open-url = { decision = 'deny' }", "25: \"decision\" cannot be \"deny\"", "write one of allow, ask"),
    ("packages = 'six'", "12: \"packages\" must be a list, not a string", ""),
    ("packages = ['six>=1']", "13: \"six>=1\" is not a package", "write \"six\", or one version of it: \"six==1.2.3\""),
    ("packages = ['==1']", "13: \"==1\" is not a package", "write \"six\", \"six==1.17.0\", or \"*\" for every package"),
    ("scratch = ['a']", "12: an entry of \"scratch\" must be a table, not a string", ""),
    ("scratch = [{ mount = '/a' }]", "12: key \"name\" is missing", ""),
    ("scratch = [{ name = '../a' }]", "21: \"../a\" is not the name of a scratch", "use lower-case letters, digits, '-' and '_', like \"sandbox\""),
    ("scratch = [{ name = 'a', mount = 'a' }]", "34: \"a\" is not an absolute path", "begin it with / (or, in a policy, with ~/)"),
    ("scratch = [{ name = 'a', mount = '/' }]", "34: a scratch cannot be the root of all folders", ""),
    ("scratch = [{ name = 'a', mount = '/../a' }]", "34: \"/../a\" goes upwards with `..`", "write the path without detours"),
    ("scratch = [{ name = 'a', quota = '65GiB' }]", "34: 65GiB is not from 1B to 64GiB", ""),
    ("scratch = [{ name = 'a' }, { name = 'a', mount = '/b' }]", "28: the scratch \"a\" is granted at policy.toml:2 already", "leave out one of the two"),
    ("scratch = [{ name = 'a' }, { name = 'b', mount = '/a/b' }]", "28: the mount \"/a/b\" lies in or around the mount \"/a\" of policy.toml:2", "give each its own folder under /"),
    ("fs = [{ path = '/x/a', access = 'read' }]\nscratch = [{ name = 'a' }]", "12: the mount \"/a\" lies in or around the mount \"/a\" of policy.toml:2", "give each its own folder under /"),
    ("listen = 'stdin'", "10: \"listen\" must be a list, not a string", ""),
    ("listen = ['http://127.0.0.1']", "11: \"http://127.0.0.1\" says no port", "add a port, such as :8077, or :0 for any"),
    ("listen = ['http://a.io:80']", "11: \"a.io\" is not the address of a machine", "write 127.0.0.1, [::1] or localhost"),
    ("listen = ['wss://127.0.0.1:80']", "11: \"wss://127.0.0.1:80\" begins with neither http:// nor ws://", "what listens here is not encrypted: write http:// or ws://"),
    ("listen = ['127.0.0.1:80']", "11: \"127.0.0.1:80\" begins with neither http:// nor ws://", "write it like http://127.0.0.1:8077/hooks, ws://127.0.0.1:8078/chat, or stdin"),
    ("listen = ['http://127.0.0.1:70000']", "11: \"70000\" is not a port", "write a number from 1 to 65535, or 0 for any"),
    ("listen = ['http://127.0.0.1:80/a/..']", "11: the path \"/a/..\" is not one that is asked for as it stands", "write plain segments, without dots, stars or %"),
    ("listen = ['http://0.0.0.0:80']", "11: other machines could reach this address", "write 127.0.0.1 or [::1], or add public = true to say that you mean it"),
    ("listen = [{ at = 'stdin', public = true }]", "11: \"public\" has no effect on what only this machine reaches", "leave it out"),
    ("listen = ['stdin', 'stdin']", "20: the entry at policy.toml:2 says the same", "leave out one of the two, or change its port or path"),
    ("listen = ['http://[::1]:8/a', 'ws://[::1]:8/a']", "31: the entry at policy.toml:2 serves the same", "leave out one of the two, or change its port or path"),
    ("ui = { confrim = true }", "8: unknown key \"confrim\"", "did you mean \"confirm\"?"),
    ("ui = { confirm = 1 }", "18: \"confirm\" must be true or false, not an integer", ""),
    ("process = { net = true }", "13: unknown key \"net\"", "the keys known here are network, unwalled"),
    ("process = true\nfs = [{ path = '/a', mount = '/b', access = 'read' }]", "7: \"mount\" cannot be kept beside \"process\"", "a program of this machine sees the folder as it is: leave the key out"),
    ("process = true\nfs = [{ path = '/a', access = 'read', deny = ['x'] }]", "7: \"deny\" cannot be kept beside \"process\"", "a program of this machine sees the folder as it is: leave the key out"),
    ("process = true\nfs = [{ path = '/a', access = 'read-write', quota = 1 }]", "7: \"quota\" cannot be kept beside \"process\"", "a program of this machine sees the folder as it is: leave the key out"),
];

#[test]
fn mistakes_in_policies_are_told_with_their_place() {
    for (lines, want, hint) in ROWS {
        let text = format!("[plugin.weather]\n{lines}");
        let line = 1 + lines.lines().count();
        check_error(parse_policy(&text), &format!("policy.toml:{line}:{want}"), hint);
    }
    parse_policy(
        "[plugin.w]\nprocess = true\nfs = [{ path = '/a/b', mount = '/a/b', access = 'read' }]",
    )
    .unwrap();
}

#[test]
fn mistakes_in_manifests_are_told_with_their_place() {
    let rows = [
        (
            "roles = ['tool']",
            "4:10: an entry of \"roles\" cannot be \"tool\"",
            "did you mean \"tools\"?",
        ),
        (
            "roles = ['judge']",
            "4:10: an entry of \"roles\" cannot be \"judge\"",
            "write one of tools, provider, listener, guide, ui, resources, prompts",
        ),
        (
            "instance = 'sesion'",
            "4:12: \"instance\" cannot be \"sesion\"",
            "did you mean \"session\"?",
        ),
        ("instance = true", "4:12: \"instance\" must be a string, not a boolean", ""),
        ("[[request.state]]", "4:1: key \"why\" is missing", ""),
        ("[[request.state]]\nwhy = ' '", "5:7: \"why\" is empty", ""),
        (
            "[[request.state]]\nwhy = 'w'\nquota = 1",
            "6:1: unknown key \"quota\"",
            "the keys known here are why",
        ),
        (
            "[[request.states]]\nwhy = 'w'",
            "4:11: unknown key \"states\"",
            "did you mean \"state\"?",
        ),
        (
            "[[request.open_url]]\nwhy = 'w'",
            "4:11: unknown key \"open_url\"",
            "did you mean \"open-url\"?",
        ),
        ("[[request.scratch]]\nwhy = 'w'", "4:1: key \"name\" is missing", ""),
        (
            "[[request.scratch]]\nname = 'A'\nwhy = 'w'",
            "5:8: \"A\" is not the name of a scratch",
            "use lower-case letters, digits, '-' and '_', like \"sandbox\"",
        ),
        ("[[request.listen]]\nwhy = 'w'", "4:1: key \"kind\" is missing", ""),
        (
            "[[request.listen]]\nkind = 'ws'\nwhy = 'w'",
            "5:8: \"kind\" cannot be \"ws\"",
            "write one of http, websocket, stdin",
        ),
        (
            "[[request.ui]]\nconfirm = 'yes'\nwhy = 'w'",
            "5:11: \"confirm\" must be true or false, not a string",
            "",
        ),
        ("[request]\nui = true", "5:6: \"ui\" must be a list, not a boolean", ""),
    ];
    for (body, want, hint) in rows {
        let head = "name = 'w'\nversion = '1.0.0'\ndescription = 'd'\n";
        let parsed = Manifest::parse("plugin.toml", &format!("{head}{body}"));
        check_error(parsed, &format!("plugin.toml:{want}"), hint);
    }
}

#[test]
fn lists_are_bounded() {
    let list = |key: &str, entry: &dyn Fn(usize) -> String, count: usize| {
        let entries: Vec<_> = (0..count).map(entry).collect();
        parse_policy(&format!("[plugin.weather]\n{key} = [{}]", entries.join(", ")))
    };
    let package = |index: usize| format!("'p{index}'");
    let scratch = |index: usize| format!("{{ name = 's{index}' }}");
    let listen = |index: usize| format!("'http://127.0.0.1:{}'", index + 1);
    let rows: [Bounded<'_>; 3] =
        [("packages", &package, 1000), ("scratch", &scratch, 16), ("listen", &listen, 16)];
    for (key, entry, most) in rows {
        list(key, entry, most).unwrap();
        let column = key.len() + 4;
        let want = format!("policy.toml:2:{column}: \"{key}\" holds more than {most} entries");
        check_error(list(key, entry, most + 1), &want, "");
    }
}

#[test]
fn requests_are_bounded() {
    let scratches = |count: usize| {
        let entry = |index| format!("[[request.scratch]]\nname = 's{index}'\nwhy = 'w'\n");
        let head = "name = 'w'\nversion = '1.0.0'\ndescription = 'd'\n".to_owned();
        Manifest::parse("plugin.toml", &(head + &(0..count).map(entry).collect::<String>()))
    };
    assert_eq!(scratches(16).unwrap().request.capabilities.len(), 16);
    assert!(scratches(17).unwrap_err().message.ends_with("holds more than 16 entries"));
}
