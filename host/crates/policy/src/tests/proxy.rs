//! The proxy: its requests, and its notation.

use url::Url;

use super::{check_error, parse_policy, policy};

/// Checks the proxy of the requests to some URLs.
#[track_caller]
fn check(table: &str, rows: &[(&str, Option<(&str, u16)>)]) {
    let policy = policy(&format!("[proxy]\n{table}"));
    for (url, want) in rows {
        let proxy = policy.proxy().unwrap().address_for_url(&Url::parse(url).unwrap());
        let found = proxy.map(|address| (address.host.to_string(), address.port));
        assert_eq!(found, want.map(|(host, port)| (host.to_owned(), port)), "{url}");
    }
}

#[test]
fn each_scheme_has_its_own_proxy() {
    let (web, tls) = (Some(("proxy.example", 3128)), Some(("10.0.0.1", 80)));
    let both = "http = 'http://proxy.example:3128'\nhttps = 'http://10.0.0.1/'";
    check(both, &[("http://a.io/", web), ("https://a.io/", tls), ("http://a.io:443/", web)]);
    check("http = 'http://proxy.example:3128'", &[("http://a.io/", web), ("https://a.io/", None)]);
    check("https = 'http://[fd00::1]:8080'", &[("https://a.io/", Some(("[fd00::1]", 8080)))]);
}

#[test]
fn what_is_bypassed_and_what_is_meant_for_this_machine_is_sent_directly() {
    let web = Some(("proxy.example", 3128));
    let table = "http = 'http://proxy.example:3128'\nbypass = ['*.intern.example', '10.1.2.3']";
    check(
        table,
        &[
            ("http://a.io/", web),
            ("http://x.intern.example:8080/", None),
            ("http://intern.example/", web),
            ("http://x.y.intern.example/", web),
            ("http://10.1.2.3/", None),
            ("http://10.1.2.4/", web),
            ("http://localhost:8080/", None),
            ("http://127.0.0.1/", None),
            ("http://127.9.9.9/", None),
            ("http://[::1]/", None),
            ("ftp://a.io/", None),
        ],
    );
}

#[test]
fn without_a_table_there_is_no_proxy() {
    assert!(policy("").proxy().is_none());
}

#[test]
fn mistakes_in_proxies() {
    let write = "write it like http://proxy.example.com:3128";
    let http = |url: &str| format!("http = '{url}'");
    let rows = [
        (http("https://p.io:1"), "2:8: \"https://p.io:1\" does not begin with http://", write),
        (http("socks5://p.io:1"), "2:8: \"socks5://p.io:1\" does not begin with http://", write),
        (http("p.io:3128"), "2:8: \"p.io:3128\" does not begin with http://", write),
        (
            http("http://p.io/x"),
            "2:8: \"http://p.io/x\" is more than the address of a proxy",
            write,
        ),
        (http("http://*.p.io"), "2:8: \"http://*.p.io\" names more than one host", write),
        (
            http("http://me:pw@p.io:1"),
            "2:8: the address of a proxy cannot hold a user name or a password",
            write,
        ),
        (
            http("http://p.io:0"),
            "2:8: \"0\" is not a port",
            "write a number from 1 to 65535, a range such as 8000-8100, or leave it out",
        ),
        ("bypass = ['a.io']".into(), "1:1: a proxy has to say \"http\" or \"https\"", ""),
        ("htp = 'x'".into(), "2:1: unknown key \"htp\"", "did you mean \"http\"?"),
        (
            "http = 'http://p.io'\nbypass = ['*']".into(),
            "3:11: the host \"*\" would allow nearly the whole internet",
            "name the host, or one level below a domain: *.example.com",
        ),
        (
            "http = 'http://p.io'\nno-proxy = ['a.io']".into(),
            "3:1: unknown key \"no-proxy\"",
            "the keys known here are http, https, bypass",
        ),
    ];
    for (table, want, hint) in rows {
        check_error(
            parse_policy(&format!("[proxy]\n{table}")),
            &format!("policy.toml:{want}"),
            hint,
        );
    }
}
