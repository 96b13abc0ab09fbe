//! Mistakes in policies, each with its place and its hint. Hostile case 63.

use super::{check_error, parse_policy};

/// Checks that a `net` list of one entry is refused. The entry begins at line 2, column 8.
#[track_caller]
fn check_net(entry: &str, message: &str, hint: &str) {
    let text = format!("[plugin.weather]\nnet = [{entry}]");
    check_error(parse_policy(&text), &format!("policy.toml:2:8: {message}"), hint);
}

/// Checks patterns that are refused for the same reason, each with the part that the message
/// quotes.
#[track_caller]
fn check_patterns(rows: &[(&str, &str)], message: &str, hint: &str) {
    for (pattern, part) in rows {
        check_net(&format!("'{pattern}'"), &message.replace('_', part), hint);
    }
}

#[test]
fn mistakes_in_methods_and_schemes() {
    let message = "\"_\" does not say which methods it allows";
    let hint = "write \"GET https://api.example.com/v1/**\"";
    check_patterns(&[("a.io", "a.io"), ("", "")], message, hint);
    let url = "https://a.io/x";
    check_patterns(&[(url, url)], message, "write \"GET https://a.io/x\"");

    let message = "\"_\" is not a method that can be allowed";
    let rows = [("get https://a.io/x", "get"), ("GTE https://a.io/x", "GTE")];
    check_patterns(&rows, message, "did you mean GET?");
    let rows = [
        ("GET, https://a.io/x", ""),
        ("CONNECT https://a.io/x", "CONNECT"),
        ("TRACE,GET https://a.io/x", "TRACE"),
        ("*,GET https://a.io/x", "*"),
    ];
    check_patterns(&rows, message, "name methods such as GET,POST, or write * for all");

    let rows = [
        ("GET ftp://a.io/x", "ftp://a.io/x"),
        ("GET HTTPS://a.io/x", "HTTPS://a.io/x"),
        ("GET  https://a.io/x", " https://a.io/x"),
        ("GET a.io", "a.io"),
        ("GET *", "*"),
    ];
    let message = "\"_\" begins with neither https:// nor http://";
    check_patterns(&rows, message, "begin with https://, in small letters");
}

#[test]
fn parts_of_a_url_that_patterns_do_not_have() {
    let rows = [
        ("https://u@a.io/x", "a user name"),
        ("https://u:p@a.io/x", "a user name"),
        ("https://a.io/x?q=1", "a query"),
        ("https://a.io#/x", "a fragment"),
        ("https://a.io/x y", "white space"),
        ("https://a.io\\x", "a backslash"),
    ];
    for (url, part) in rows {
        let message = format!("\"{url}\" holds {part}, which a network pattern does not have");
        check_net(&format!("'GET {url}'"), &message, &format!("leave out {part}"));
    }
}

#[test]
fn mistakes_in_hosts_and_ports() {
    let rows = [
        ("GET https://*/x", "*"),
        ("GET https://*:8080/x", "*"),
        ("GET https://*.com/x", "*.com"),
        ("GET https://*.localhost/x", "*.localhost"),
    ];
    let message = "the host \"_\" would allow nearly the whole internet";
    check_patterns(&rows, message, "name the host, or one level below a domain: *.example.com");

    let rows = [
        ("GET https://*.*.io/x", "*.io"),
        ("GET https://a*.io/x", "a*.io"),
        ("GET https://a.*/x", "a.*"),
        ("GET https://*.127.0.0.1/x", "*.127.0.0.1"),
        ("GET https:///x", ""),
        ("GET https://a.io./x", "a.io."),
        ("GET https://a..io/x", "a..io"),
        ("GET https://%61.io/x", "%61.io"),
        ("GET https://::1/x", ":"),
        ("GET https://[::1%25lo]/x", "[::1%25lo]"),
        ("GET https://[::1/x", "[:"),
    ];
    let hint = "write a name, an IPv4 address, or an IPv6 address in brackets";
    check_patterns(&rows, "\"_\" is not a host", hint);

    let rows = [
        ("GET http://0x7f.1/x", "0x7f.1"),
        ("GET http://*.2130706433/x", "2130706433"),
        ("GET http://127.0.0.01/x", "127.0.0.01"),
    ];
    let message = "\"_\" is an odd way to write the address 127.0.0.1";
    check_patterns(&rows, message, "write 127.0.0.1");

    let ports = ["0", "", "+80", "080", "65536", "*", "80a", "-1"];
    let ranges = ["80-", "80-80", "90-80", "0-80", "80-65536", "80-90-100", "80-+90", "1-*"];
    for port in ports.into_iter().chain(ranges) {
        let hint = "write a number from 1 to 65535, a range such as 8000-8100, or leave it out";
        check_net(
            &format!("'GET https://a.io:{port}/x'"),
            &format!("\"{port}\" is not a port"),
            hint,
        );
    }
}

#[test]
fn mistakes_in_paths() {
    let dots = "dot segments and encoded dots, slashes or control characters are refused";
    let digits = "`%` takes two hexadecimal digits";
    let ascii = "write other than plain characters percent-encoded";
    let stars = "`**` can only be the whole last segment";
    let rows = [
        ("/../x", dots),
        ("/.", dots),
        ("/a/..;x/b", dots),
        ("/%2e%2E/x", dots),
        ("/a%2fb", dots),
        ("/a%5Cb", dots),
        ("/a%252eb", dots),
        ("/a%0a", dots),
        ("/a%", digits),
        ("/a%4", digits),
        ("/a%4*", digits),
        ("/é", ascii),
        ("/{x}", "braces are not part of a path"),
        ("/**/x", stars),
        ("/x**", stars),
        ("/**/**", stars),
        ("/***", stars),
    ];
    for (path, reason) in rows {
        let message = format!("the path \"{path}\" cannot match: {reason}");
        let hint = "use * within one segment, and /** for everything below";
        check_net(&format!("'GET https://a.io{path}'"), &message, hint);
    }
    let long = format!("'GET https://a.io/{}'", "x".repeat(3000));
    check_net(&long, "a network pattern of 3017 bytes is longer than 2048", "");
}

#[test]
fn mistakes_in_network_entries() {
    let rows = [
        ("1", "an entry of \"net\" must be a table, not an integer", ""),
        ("{ }", "an entry has to say \"allow\" or \"deny\"", ""),
        ("{ to-private = true }", "an entry has to say \"allow\" or \"deny\"", ""),
        (
            "{ allow = 'GET https://a.io', deny = 'GET https://a.io' }",
            "an entry cannot allow and deny at once",
            "write two entries; the one that denies wins",
        ),
        (
            "{ allow = 'GET https://a.io/x', range = '10.0.0.0/8' }",
            "\"range\" has no effect without \"to-private\"",
            "add to-private = true",
        ),
        (
            "{ allow = 'GET https://a.io/x', to-private = false, range = '10.0.0.0/8' }",
            "\"range\" has no effect without \"to-private\"",
            "add to-private = true",
        ),
        (
            "{ allow = 'GET https://a.io/x', to-private = true }",
            "\"to-private\" for a.io needs a range of addresses",
            "add the range that the name is meant to resolve to: range = \"10.0.0.0/8\"",
        ),
        (
            "{ allow = 'GET https://*.a.io/x', to-private = true }",
            "\"to-private\" for *.a.io needs a range of addresses",
            "add the range that the name is meant to resolve to: range = \"10.0.0.0/8\"",
        ),
    ];
    for (entry, message, hint) in rows {
        check_net(entry, message, hint);
    }
}

#[test]
fn mistakes_inside_network_entries() {
    let inside = [
        ("{ alow = 'GET https://a.io' }", "10: unknown key \"alow\"", "did you mean \"allow\"?"),
        (
            "{ allow = 'GET https://a.io', decision = 'deny' }",
            "49: \"decision\" cannot be \"deny\"",
            "write one of allow, ask",
        ),
        (
            "{ deny = 'GET https://a.io', decision = 'ask' }",
            "37: unknown key \"decision\"",
            "the keys known here are allow, deny",
        ),
        (
            "{ deny = 'GET https://a.io', to-private = true }",
            "37: unknown key \"to-private\"",
            "the keys known here are allow, deny",
        ),
        (
            "{ allow = 'GET https://*' }",
            "18: the host \"*\" would allow nearly the whole internet",
            "name the host, or one level below a domain: *.example.com",
        ),
        (
            "{ allow = 'GET https://a.io', to-private = 'yes' }",
            "51: \"to-private\" must be true or false, not a string",
            "",
        ),
        (
            "{ allow = 'GET https://a.io', to-private = true, range = 'lan' }",
            "65: \"lan\" is not a range of addresses",
            "write it as 10.0.0.0/8 or fd00::/8",
        ),
        (
            "{ allow = 'GET https://a.io', to-private = true, range = '10.0.0.0/33' }",
            "65: \"10.0.0.0/33\" is not a range of addresses",
            "write it as 10.0.0.0/8 or fd00::/8",
        ),
        (
            "{ allow = 'GET https://a.io', to-private = true, range = ['10.1.0.0/8'] }",
            "66: \"10.1.0.0/8\" names an address inside the range 10.0.0.0/8",
            "write 10.0.0.0/8",
        ),
        (
            "{ allow = 'GET https://a.io', to-private = true, range = [] }",
            "65: \"range\" holds no range of addresses",
            "",
        ),
    ];
    for (entry, want, hint) in inside {
        let text = format!("[plugin.weather]\nnet = [{entry}]");
        check_error(parse_policy(&text), &format!("policy.toml:2:{want}"), hint);
    }
}

/// Checks that a `fs` list is refused at a column of line 2.
#[track_caller]
fn check_folders(rows: &[(&str, &str, &str)]) {
    for (entries, want, hint) in rows {
        let text = format!("[plugin.weather]\nfs = [{entries}]");
        check_error(parse_policy(&text), &format!("policy.toml:2:{want}"), hint);
    }
}

#[test]
fn mistakes_in_folders() {
    let hint = "begin it with / (or, in a policy, with ~/)";
    check_folders(&[
        ("'/srv'", "7: an entry of \"fs\" must be a table, not a string", ""),
        ("{ access = 'read' }", "7: key \"path\" is missing", ""),
        ("{ path = '/srv' }", "7: key \"access\" is missing", ""),
        (
            "{ path = '/srv', access = 'write' }",
            "33: \"access\" cannot be \"write\"",
            "write one of read, read-write",
        ),
        (
            "{ path = '/srv', access = 'raed' }",
            "33: \"access\" cannot be \"raed\"",
            "did you mean \"read\"?",
        ),
        (
            "{ path = '/srv', access = 'read', denny = ['x'] }",
            "41: unknown key \"denny\"",
            "did you mean \"deny\"?",
        ),
        (
            "{ path = '/srv', access = 'read', only = ['x'] }",
            "41: unknown key \"only\"",
            "the keys known here are path, access, mount, deny, quota, sensitive",
        ),
        ("{ path = 'notes', access = 'read' }", "16: \"notes\" is not an absolute path", hint),
        (
            "{ path = '~me/notes', access = 'read' }",
            "16: \"~me/notes\" is not an absolute path",
            hint,
        ),
        (
            "{ path = '/srv/../etc', access = 'read' }",
            "16: \"/srv/../etc\" goes upwards with `..`",
            "write the path without detours",
        ),
        (
            "{ path = '~/../you', access = 'read' }",
            "16: \"~/../you\" goes upwards with `..`",
            "write the path without detours",
        ),
        (
            "{ path = \"/a\\u0000\", access = 'read' }",
            "16: \"/a\\u{0}\" holds a control character",
            "",
        ),
        (
            "{ path = '/', access = 'read' }",
            "7: a folder without a name needs a \"mount\"",
            "add the path at which the plugin sees it: mount = \"/data\"",
        ),
        (
            "{ path = '/srv', access = 'read', mount = 'srv' }",
            "49: \"srv\" is not an absolute path",
            hint,
        ),
        (
            "{ path = '/srv', access = 'read', mount = '/a/..' }",
            "49: \"/a/..\" goes upwards with `..`",
            "write the path without detours",
        ),
    ]);
}

#[test]
fn folders_that_cannot_stand_together() {
    let links = "a link could carry a file from one to the other: give both the same access";
    check_folders(&[
        (
            "{ path = '/a/x', access = 'read' }, { path = '/b/x', access = 'read' }",
            "43: the mount \"/x\" lies in or around the mount \"/x\" of policy.toml:2",
            "give each its own folder under /",
        ),
        (
            "{ path = '/a', access = 'read', mount = '/m' }, { path = '/b', access = 'read', mount = '/m/n' }",
            "55: the mount \"/m/n\" lies in or around the mount \"/m\" of policy.toml:2",
            "give each its own folder under /",
        ),
        (
            "{ path = '/a', access = 'read' }, { path = '/a/b', access = 'read-write' }",
            "41: the path \"/a/b\" lies in or around \"/a\" of policy.toml:2, which has another access",
            links,
        ),
        (
            "{ path = '/a/b', access = 'read' }, { path = '/a', access = 'read-write' }",
            "43: the path \"/a\" lies in or around \"/a/b\" of policy.toml:2, which has another access",
            links,
        ),
        (
            "{ path = '/a', access = 'read-write', quota = 1 }, { path = '/a', access = 'read-write', mount = '/b' }",
            "58: the path \"/a\" lies in or around \"/a\" of policy.toml:2, which has another quota",
            "a file counts in both: give both the same quota",
        ),
    ]);
}

#[test]
fn a_home_folder_has_to_be_known() {
    let text = "[plugin.weather]\nfs = [{ path = '~/x', access = 'read' }]";
    let homeless = crate::Policy::from_user_file("policy.toml", text, None);
    let message = "policy.toml:2:16: \"~/x\" cannot be used here, as there is no home folder";
    check_error(homeless, message, "write the path from / on");
}

#[test]
fn mistakes_in_variables_and_limits() {
    let name = "use letters, digits and '_', not beginning with a digit";
    let time = "write a whole number and a unit: 1500ms, 10s, 2m, 1h";
    let size = "write a whole number and a unit: 512B, 64KiB, 128MiB, 1GiB";
    let keys = "the keys known here are time, cpu, memory, output, log, host-call, handles, files, \
                concurrent-calls, queue-time, calls-per-minute, http-requests, http-body, \
                http-total, http-redirects, http-time, approval-time, idle, prepared-instances";
    let rows = [
        ("env = ['A=B']", "8: \"A=B\" is not the name of an environment variable", name),
        ("env = ['']", "8: \"\" is not the name of an environment variable", name),
        ("env = ['1A']", "8: \"1A\" is not the name of an environment variable", name),
        ("env = ['*']", "8: \"*\" is not the name of an environment variable", name),
        ("env = 'TZ'", "7: \"env\" must be a list, not a string", ""),
        ("limits = { tme = '1s' }", "12: unknown key \"tme\"", "did you mean \"time\"?"),
        ("limits = { fuel = 7 }", "12: unknown key \"fuel\"", keys),
        ("limits = { time = 10 }", "19: \"time\" must be a string, not an integer", ""),
        ("limits = { time = '10' }", "19: \"10\" is not a length of time", time),
        ("limits = { time = '0s' }", "19: 0ms is not from 1ms to 24h", ""),
        ("limits = { time = '25h' }", "19: 25h is not from 1ms to 24h", ""),
        ("limits = { memory = '128MB' }", "21: \"128MB\" is not a size", size),
        ("limits = { memory = 1 }", "21: 1B is not from 64KiB to 4GiB", ""),
        ("limits = { memory = '5GiB' }", "21: 5GiB is not from 64KiB to 4GiB", ""),
        ("limits = { output = 0 }", "21: 0B is not from 1B to 4GiB", ""),
        ("limits = { log = -1 }", "18: \"log\" must not be negative", ""),
        (
            "limits = { calls-per-minute = 0 }",
            "31: \"calls-per-minute\" must be from 1 to 4294967295",
            "",
        ),
        (
            "limits = { concurrent-calls = 0 }",
            "31: \"concurrent-calls\" must be from 1 to 1024",
            "",
        ),
        (
            "limits = { http-requests = '5' }",
            "28: \"http-requests\" must be an integer, not a string",
            "",
        ),
        ("limits = { http-redirects = 21 }", "29: \"http-redirects\" must be from 0 to 20", ""),
        ("limits = { handles = 1 }", "22: \"handles\" must be from 16 to 65536", ""),
        ("limits = { host-call = 1 }", "24: 1B is not from 4KiB to 4GiB", ""),
        ("limits = []", "10: \"limits\" must be a table, not an array", ""),
        ("nett = []", "1: unknown key \"nett\"", "did you mean \"net\"?"),
        (
            "gpu = []",
            "1: unknown key \"gpu\"",
            "the keys known here are net, fs, env, secrets, state, schedule, notify, progress, open-url, packages, scratch, listen, ui, process, limits",
        ),
    ];
    for (line, want, hint) in rows {
        let text = format!("[plugin.weather]\n{line}");
        check_error(parse_policy(&text), &format!("policy.toml:2:{want}"), hint);
    }
}

#[test]
fn mistakes_in_names_and_rules() {
    let plugin = "is not a plugin name: use up to 64 lower-case letters, digits, '-' and '_', \
                  starting with a letter";
    let tool = "is not a tool name: use up to 128 letters, digits, '_', '-', '.' and ':', \
                starting with a letter, a digit or '_'";
    let write = "write PLUGIN.TOOL, PLUGIN.* for all tools of a plugin, *.TOOL for a tool of any \
                 plugin, or * for all tools";
    let rows = [
        ("[plugin.\"../evil\"]", format!("1:9: \"../evil\" {plugin}"), ""),
        ("[plugin.Weather]", format!("1:9: \"Weather\" {plugin}"), ""),
        ("[plugin.\"a.b\"]", format!("1:9: \"a.b\" {plugin}"), ""),
        ("[plugin.\"*\"]", format!("1:9: \"*\" {plugin}"), ""),
        ("plugin = 1", "1:10: \"plugin\" must be a table, not an integer".into(), ""),
        ("[plugin]\nweather = 1", "2:11: \"weather\" must be a table, not an integer".into(), ""),
        ("[plugin.a]\n[plugin.a]", "2:9: duplicate key".into(), ""),
        ("[plugins.weather]", "1:2: unknown key \"plugins\"".into(), "did you mean \"plugin\"?"),
        ("[rule]", "1:1: \"rule\" must be a list, not a table".into(), ""),
        ("[[rule]]\ntool = 'a.b'", "1:1: key \"decision\" is missing".into(), ""),
        ("[[rule]]\ndecision = 'deny'", "1:1: key \"tool\" is missing".into(), ""),
        (
            "[[rule]]\ntool = 'a.b'\ndecision = 'never'",
            "3:12: \"decision\" cannot be \"never\"".into(),
            "write one of allow, ask, deny",
        ),
        (
            "[[rule]]\ntool = 'a.b'\ndecision = 'alow'",
            "3:12: \"decision\" cannot be \"alow\"".into(),
            "did you mean \"allow\"?",
        ),
        (
            "[[rule]]\ntool = 'weather'",
            "2:8: \"weather\" is not a tool id: write it as PLUGIN.TOOL".into(),
            "write \"weather.*\" for all tools of the plugin",
        ),
        (
            "[[rule]]\ntool = 'weather*'",
            "2:8: \"weather*\" is not a tool id: write it as PLUGIN.TOOL".into(),
            write,
        ),
        ("[[rule]]\ntool = 'W*.*'", format!("2:8: \"W*\" {plugin}"), write),
        ("[[rule]]\ntool = '*.get/*'", format!("2:8: \"get/*\" {tool}"), write),
        (
            "[[rule]]\ntool = 'weather__get'",
            "2:8: \"weather__get\" is not a tool id: write it as PLUGIN.TOOL".into(),
            "write \"weather__get.*\" for all tools of the plugin",
        ),
    ];
    for (text, want, hint) in rows {
        check_error(parse_policy(text), &format!("policy.toml:{want}"), hint);
    }
}
