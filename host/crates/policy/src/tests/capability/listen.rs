//! Listen addresses, packages and pages: valid texts and their coverage.

use url::Url;

use super::super::{GREEDY, grant, parse_policy};

/// Checks the canonical form of an address, or that it is refused.
#[track_caller]
fn check(entry: &str, want: Option<&str>) {
    let text = format!("[plugin.weather]\nlisten = [{entry}]");
    let read = parse_policy(&text);
    assert_eq!(read.is_ok(), want.is_some(), "{entry}: {read:?}");
    if let Some(want) = want {
        assert_eq!(grant(&text, GREEDY).listen()[0].to_string(), want, "{entry}");
    }
}

#[test]
fn addresses_are_read_in_one_way_or_refused() {
    let rows = [
        ("'stdin'", Some("stdin")),
        ("'http://127.0.0.1:8077/hooks'", Some("http://127.0.0.1:8077/hooks")),
        ("'http://127.0.0.1:8077/hooks/'", Some("http://127.0.0.1:8077/hooks")),
        ("'http://127.9.9.9:0'", Some("http://127.9.9.9:0/")),
        ("'ws://[::1]:65535/a/b-c_d.e~f'", Some("ws://[::1]:65535/a/b-c_d.e~f")),
        ("'http://localhost:1/'", Some("http://127.0.0.1:1/")),
        ("{ at = 'http://[::ffff:127.0.0.1]:1/' }", Some("http://127.0.0.1:1/")),
        ("{ at = 'http://10.0.0.1:80', public = true }", Some("http://10.0.0.1:80/")),
        ("{ at = 'http://127.0.0.1:80', public = false }", Some("http://127.0.0.1:80/")),
    ];
    for (entry, want) in rows {
        check(entry, want);
    }
    let refused = [
        "''",
        "'STDIN'",
        "' stdin'",
        "'http://'",
        "'http://:80'",
        "'http://127.0.0.1'",
        "'http://127.0.0.1:'",
        "'http://127.0.0.1:65536'",
        "'http://127.0.0.1:080'",
        "'http://127.0.0.1:80-90'",
        "'http://127.0.0.1:-1'",
        "'HTTP://127.0.0.1:80'",
        "'https://127.0.0.1:80'",
        "'wss://127.0.0.1:80'",
        "'tcp://127.0.0.1:80'",
        "'127.0.0.1:80'",
        "'http://127.1:80'",
        "'http://2130706433:80'",
        "'http://0x7f.1:80'",
        "'http://0.0.0.0:80'",
        "'http://[::]:80'",
        "'http://example.com:80'",
        "'http://localhost.:80'",
        "'http://*:80'",
        "'http://u@127.0.0.1:80'",
        "'http://127.0.0.1:80/?q'",
        "'http://127.0.0.1:80/#f'",
        "'http://127.0.0.1:80/..'",
        "'http://127.0.0.1:80/a/../b'",
        "'http://127.0.0.1:80/./a'",
        "'http://127.0.0.1:80/%2e%2e'",
        "'http://127.0.0.1:80/a b'",
        "'http://127.0.0.1:80//a'",
        "'http://127.0.0.1:80/*'",
        "'http://127.0.0.1:80/é'",
        "'http://127.0.0.1:80\\a'",
        "{ at = 'http://127.0.0.1:80', public = true }",
        "{ at = 'stdin', public = true }",
        "{ at = 'http://10.0.0.1:80' }",
        "{ public = true }",
        "1",
        "true",
    ];
    for entry in refused {
        check(entry, None);
    }
}

#[test]
fn entries_of_one_plugin_do_not_get_in_each_others_way() {
    let public = |at: &str| format!("{{ at = '{at}', public = true }}");
    let (any4, any6) = (public("http://0.0.0.0:80"), public("http://[::]:80"));
    let http = "'http://127.0.0.1:80/'";
    let rows = [
        ("'stdin'", "'stdin'", false),
        (http, "'http://localhost:80'", false),
        (http, "'ws://127.0.0.1:80/'", false),
        (http, "'ws://[::ffff:127.0.0.1]:80/'", false),
        (http, "'ws://127.0.0.1:80/chat'", true),
        (http, "'http://127.0.0.1:81/'", true),
        (http, "'http://127.0.0.2:80/'", true),
        (http, "'http://[::1]:80/'", true),
        (http, &any4, false),
        (http, &any6, false),
        ("'http://[::1]:80/'", &any4, true),
        ("'http://[::1]:80/'", &any6, false),
        ("'http://127.0.0.1:0'", "'http://127.0.0.1:0'", false),
        ("'http://127.0.0.1:0'", "'ws://127.0.0.1:0'", true),
    ];
    for (one, other, stands) in rows {
        for (one, other) in [(one, other), (other, one)] {
            let text = format!("[plugin.weather]\nlisten = [{one}, {other}]");
            assert_eq!(parse_policy(&text).is_ok(), stands, "{text}");
        }
    }
}

#[test]
fn an_address_serves_its_path_and_what_lies_below() {
    let text = "[plugin.weather]\nlisten = ['http://127.0.0.1:80/a', 'http://127.0.0.1:81']";
    let grant = grant(text, GREEDY);
    let serves = |index: usize, path: &str| {
        grant.listen()[index].address.as_ref().unwrap().serves_path(path)
    };
    for (path, own, root) in
        [("/a", true, true), ("/a/b", true, true), ("/ab", false, true), ("/", false, true)]
    {
        assert_eq!((serves(0, path), serves(1, path)), (own, root), "{path}");
    }
    assert!(!serves(0, "") && !serves(0, "a"));
}

#[test]
fn a_package_is_granted_by_name_and_version() {
    let rows = [
        ("'*'", "six", "1.0", true),
        ("'six'", "six", "1.17.0", true),
        ("'six'", "SIX", "1.17.0", true),
        ("'Zope.Interface'", "zope-interface", "7.0", true),
        ("'zope__interface'", "zope.interface", "7.0", true),
        ("'six'", "sixx", "1", false),
        ("'tabulate==0.9.0'", "tabulate", "0.9.0", true),
        ("'tabulate==0.9.0'", "tabulate", "0.9", true),
        ("'tabulate==0.9'", "tabulate", "0.9.0", true),
        ("'tabulate==0.9.0'", "tabulate", "0.9.1", false),
        ("'tabulate==1'", "tabulate", "10", false),
        ("'tabulate==1.0rc1.0'", "tabulate", "1.0rc1", false),
        ("'*'", "../six", "1", false),
        ("'*'", "six", "1/../2", false),
        ("'*'", "six", "", false),
        ("'*'", "", "1", false),
        ("'*'", "six-", "1", false),
    ];
    for (entry, name, version, passes) in rows {
        let grant = grant(&format!("[plugin.weather]\npackages = [{entry}]"), GREEDY);
        let checked = grant.packages().check_version(name, version);
        assert_eq!(checked.is_ok(), passes, "{entry} {name} {version}");
    }
    for entry in ["six>=1", "six ~= 1", "", "-six", "six==", "six==*", "six[a]", "a b", "six==1 "] {
        let text = format!("[plugin.weather]\npackages = ['{entry}']");
        assert!(parse_policy(&text).is_err(), "{entry}");
    }
}

#[test]
fn a_page_is_opened_where_its_address_is_granted() {
    let some = "{ allow = ['https://*.example.com/**', 'http://localhost:8080/a'] }";
    let rows = [
        ("true", "https://anything.example/x?y=1#z", true),
        ("true", "http://10.0.0.1/%2e%2e/a%2Fb", true),
        ("true", "file:///etc/passwd", false),
        ("true", "javascript:alert(1)", false),
        ("true", "https://allowed@evil.example/", false),
        ("true", "https://u:p@evil.example/", false),
        ("true", "ftp://example.com/", false),
        (some, "https://www.example.com/a/b?c", true),
        (some, "https://example.com/", false),
        (some, "https://www.example.com.evil.io/", false),
        (some, "https://www.example.com/a/%2e%2e/b%2f", false),
        (some, "http://localhost:8080/a?token", true),
        (some, "http://localhost:8080/b", false),
        (some, "http://www.example.com/", false),
    ];
    for (value, url, passes) in rows {
        let grant = grant(&format!("[plugin.weather]\nopen-url = {value}"), GREEDY);
        let url = Url::parse(url).unwrap();
        assert_eq!(grant.open_url().unwrap().check_url(&url).is_ok(), passes, "{value} {url}");
    }
    let long = Url::parse(&format!("https://a.io/{}", "a".repeat(20_000))).unwrap();
    assert!(
        grant("[plugin.weather]\nopen-url = true", GREEDY)
            .open_url()
            .unwrap()
            .check_url(&long)
            .is_err()
    );
}
