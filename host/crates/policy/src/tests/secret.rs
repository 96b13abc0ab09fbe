//! Secrets: their sources, their use, and the plugins that get them.

use serde_json::Map;
use url::Url;

use super::{check_error, grant, manifest, parse_policy, policy};
use crate::{SecretName, SecretSource, SecretUse};

const SOURCES: &str = "[secret.key]\nenv = 'KEY'\n[secret.pin]\nkeyring = 'phone/me'\n";
const SENT: &str = "{ name = 'key', to = 'https://api.example.com', header = 'Authorization', \
                    format = 'Bearer {}' }";
const READ: &str = "{ name = 'pin', reveal = true }";
const ASKS: &str = "[[request.secrets]]\nname = 'key'\nwhy = 'w'
                    [[request.secrets]]\nname = 'pin'\nreveal = true\nwhy = 'w'
                    [[request.net]]\nallow = 'GET https://api.example.com/**'\nwhy = 'w'";

/// A policy that grants these secrets, and the network that one of them is sent over.
fn text(secrets: &str) -> String {
    let net = "net = ['GET https://api.example.com/**']";
    format!("[plugin.weather]\n{net}\nsecrets = [{secrets}]\n{SOURCES}")
}

#[test]
fn a_value_comes_from_one_place() {
    let rows = [
        ("env = 'KEY'", SecretSource::Env("KEY".into())),
        ("file = '~/.config/key'", SecretSource::File("/home/me/.config/key".into())),
        ("file = '/run/keys//x'", SecretSource::File("/run/keys/x".into())),
        (
            "keyring = 'phone/me@a.example/x'",
            SecretSource::Keyring { service: "phone".into(), account: "me@a.example/x".into() },
        ),
    ];
    for (line, want) in rows {
        let policy = policy(&format!("[secret.key]\n{line}"));
        let name: SecretName = "key".parse().unwrap();
        assert_eq!(policy.secret_source(&name), Some(&want), "{line}");
    }
}

#[test]
fn mistakes_in_sources() {
    let keep = "keep one of \"env\", \"file\" and \"keyring\"";
    let write = "write it as SERVICE/ACCOUNT";
    let place = "name the place of the value, never the value itself";
    let rows = [
        ("", "1:1: a secret has to say \"env\", \"file\" or \"keyring\"", place),
        ("value = 'x'", "1:1: a secret has to say \"env\", \"file\" or \"keyring\"", place),
        (
            "env = 'X'\nvalue = 'x'",
            "3:1: unknown key \"value\"",
            "the keys known here are env, file, keyring",
        ),
        ("evn = 'X'", "2:1: unknown key \"evn\"", "did you mean \"env\"?"),
        ("env = 'X'\nfile = '/x'", "1:1: a secret cannot have two sources", keep),
        (
            "env = 'A B'",
            "2:7: \"A B\" is not the name of an environment variable",
            "use letters, digits and '_', not beginning with a digit",
        ),
        (
            "file = 'x'",
            "2:8: \"x\" is not an absolute path",
            "begin it with / (or, in a policy, with ~/)",
        ),
        (
            "file = '/x/../y'",
            "2:8: \"/x/../y\" goes upwards with `..`",
            "write the path without detours",
        ),
        ("keyring = 'phone'", "2:11: \"phone\" does not name a service and an account", write),
        ("keyring = '/me'", "2:11: \"/me\" does not name a service and an account", write),
        ("keyring = 'phone/ '", "2:11: \"phone/ \" does not name a service and an account", write),
    ];
    for (line, want, hint) in rows {
        let text = format!("[secret.key]\n{line}");
        check_error(parse_policy(&text), &format!("policy.toml:{want}"), hint);
    }
    let name = "use up to 64 lower-case letters, digits, '-' and '_', starting with a letter";
    for bad in ["Key", "1key", "a.b", "", "../x"] {
        let text = format!("[secret.\"{bad}\"]\nenv = 'X'");
        let want = format!("policy.toml:1:9: \"{bad}\" is not the name of a secret");
        check_error(parse_policy(&text), &want, name);
    }
}

#[test]
fn a_secret_needs_both_keys_and_revealing_it_needs_both_to_say_so() {
    let key = "[[request.secrets]]\nname = 'key'\nwhy = 'w'";
    let read_key = "[[request.secrets]]\nname = 'key'\nreveal = true\nwhy = 'w'";
    let revealed = "{ name = 'key', reveal = true }";
    let sends = "have the secret key sent to https://api.example.com";
    let reads = "read the secret key";
    let rows = [
        (SENT, key, Some(sends)),
        (SENT, read_key, Some(sends)),
        (revealed, read_key, Some(reads)),
        (revealed, key, None),
        (SENT, "[[request.secrets]]\nname = 'pin'\nreveal = true\nwhy = 'w'", None),
        (SENT, "", None),
        ("", key, None),
    ];
    for (entry, asks, want) in rows {
        let grant = grant(&format!("[plugin.weather]\nsecrets = [{entry}]\n{SOURCES}"), asks);
        let powers: Vec<String> = want.map(str::to_owned).into_iter().collect();
        assert_eq!(grant.permission_lines(), powers, "{entry} {asks}");
        assert_eq!(grant.can_change_or_leak(), want.is_some());
        assert_eq!(grant.secrets().len(), powers.len());
        let unrequested = grant.notes().iter().any(|note| note.contains("does not request"));
        assert_eq!(unrequested, want.is_none() && !entry.is_empty(), "{:?}", grant.notes());
    }
}

#[test]
fn a_grant_without_power_has_no_secrets() {
    let whole = grant(&text(&format!("{SENT}, {READ}")), ASKS);
    assert_eq!(whole.secrets().len(), 2);
    assert!(whole.without_permissions().secrets().is_empty());
    assert!(!whole.without_permissions().can_change_or_leak());
}

/// URLs to which a secret for `to` is sent, and others to which it is not.
#[test]
fn a_secret_is_sent_to_one_origin_only() {
    let rows = [
        (
            "https://api.example.com",
            "https://api.example.com/ https://API.example.com:443/v1?q#f https://api.example.com",
            "http://api.example.com/ https://api.example.com:8443/ https://example.com/ \
             https://x.api.example.com/ https://api.example.com.evil.example/ \
             https://u@api.example.com/ https://api.example.com./",
        ),
        (
            "https://API.Example.com:8443",
            "https://api.example.com:8443/x",
            "https://api.example.com/x",
        ),
        (
            "http://localhost:8080",
            "http://localhost:8080/",
            "https://localhost:8080/ http://localhost/",
        ),
        ("http://127.0.0.1", "http://127.0.0.1/ http://0x7f.1/", "http://127.0.0.2/"),
        ("https://[::1]:9", "https://[::1]:9/ https://[0::1]:9/", "https://[::2]:9/"),
    ];
    for (to, sent, kept) in rows {
        let entry = format!("{{ name = 'key', to = '{to}', header = 'X-Key' }}");
        let grant = grant(&text(&entry), ASKS);
        let SecretUse::Inject(injection) = &grant.secrets()[0].usage else { panic!("{to}") };
        for url in sent.split_whitespace() {
            assert!(injection.applies_to_url(&Url::parse(url).unwrap()), "{to} {url}");
        }
        for url in kept.split_whitespace() {
            assert!(!injection.applies_to_url(&Url::parse(url).unwrap()), "{to} {url}");
        }
    }
}

#[test]
fn a_header_is_filled_as_the_entry_says() {
    let rows = [
        ("header = 'Authorization', format = 'Bearer {}'", "authorization", "Bearer s3"),
        ("header = 'X-Api-Key'", "x-api-key", "s3"),
        (
            "header = 'Cookie', format = 'a=1; session={}; b={ }'",
            "cookie",
            "a=1; session=s3; b={ }",
        ),
    ];
    for (keys, header, value) in rows {
        let entry = format!("{{ name = 'key', to = 'https://api.example.com', {keys} }}");
        let grant = grant(&text(&entry), ASKS);
        let SecretUse::Inject(injection) = &grant.secrets()[0].usage else { panic!("{keys}") };
        assert_eq!(
            (injection.header_name(), injection.header_value("s3").as_str()),
            (header, value)
        );
        assert_eq!(injection.origin().to_string(), "https://api.example.com");
    }
}

/// Checks entries that are refused: their keys besides `name`, the message and the hint.
#[track_caller]
fn check_entries(rows: &[(&str, &str, &str)]) {
    for (keys, message, hint) in rows {
        let text = format!("[plugin.weather]\nsecrets = [{{ name = 'key', {keys} }}]\n{SOURCES}");
        let error = parse_policy(&text).expect_err(keys);
        assert_eq!((error.line, error.message.as_str()), (2, *message), "{keys}");
        assert_eq!(error.hint.as_deref().unwrap_or_default(), *hint, "{keys}");
    }
}

#[test]
fn mistakes_in_origins() {
    let path =
        |url| format!("\"{url}\" holds a path, and what is sent to a host is sent to all of it");
    let plain = |url| format!("\"{url}\" is neither encrypted nor this machine");
    let ports = "write a number from 1 to 65535, a range such as 8000-8100, or leave it out";
    let host = "name the host, or one level below a domain: *.example.com";
    let rows = [
        ("https://a.io/v1", path("https://a.io/v1"), "write \"https://a.io\""),
        ("https://a.io/", path("https://a.io/"), "write \"https://a.io\""),
        (
            "https://*.a.io",
            "\"https://*.a.io\" names more than one host".into(),
            "write an entry for each host",
        ),
        ("https://*", "the host \"*\" would allow nearly the whole internet".into(), host),
        ("http://a.io", plain("http://a.io"), "write https://"),
        ("http://10.0.0.1", plain("http://10.0.0.1"), "write https://"),
        (
            "a.io",
            "\"a.io\" begins with neither https:// nor http://".into(),
            "begin with https://, in small letters",
        ),
        (
            "https://u:p@a.io",
            "\"https://u:p@a.io\" holds a user name, which a network pattern does not have".into(),
            "leave out a user name",
        ),
        ("https://a.io:80-90", "\"80-90\" is not a port".into(), ports),
        (
            "https://0x7f.1",
            "\"0x7f.1\" is an odd way to write the address 127.0.0.1".into(),
            "write 127.0.0.1",
        ),
    ];
    for (to, message, hint) in rows {
        check_entries(&[(&format!("to = '{to}', header = 'X'"), &message, hint)]);
    }
}

#[test]
fn mistakes_in_headers_and_formats() {
    let header = "write a header that carries credentials, such as \"Authorization\"";
    let names = [
        ("Host", "the header \"host\" belongs to the connection"),
        ("content-LENGTH", "the header \"content-length\" belongs to the connection"),
        ("Transfer-Encoding", "the header \"transfer-encoding\" belongs to the connection"),
        ("Proxy-Authorization", "the header \"proxy-authorization\" belongs to the connection"),
        ("X Y", "\"X Y\" is not the name of a header"),
        ("", "\"\" is not the name of a header"),
        (":path", "\":path\" is not the name of a header"),
        ("é", "\"é\" is not the name of a header"),
    ];
    for (name, message) in names {
        check_entries(&[(&format!("to = 'https://a.io', header = '{name}'"), message, header)]);
    }
    let format = "write it like \"Bearer {}\": {} stands for the secret";
    let formats = [
        ("Bearer", "the format \"Bearer\" does not say {} exactly once"),
        ("{} {}", "the format \"{} {}\" does not say {} exactly once"),
        ("{}\\r\\nA: b", "the format \"{}\\r\\nA: b\" holds what a header cannot hold"),
        (" {}", "the format \" {}\" holds what a header cannot hold"),
        ("é{}", "the format \"é{}\" holds what a header cannot hold"),
    ];
    for (text, message) in formats {
        let keys = format!("to = 'https://a.io', header = 'X', format = \"{text}\"");
        check_entries(&[(&keys, message, format)]);
    }
}

#[test]
fn mistakes_in_what_becomes_of_a_secret() {
    let to = "an entry has to say where the secret is sent \"to\"";
    let add = "add to = \"https://api.example.com\" and a \"header\"";
    check_entries(&[
        ("to = 'https://a.io', format = '{}'", "key \"header\" is missing", ""),
        ("header = 'X'", to, add),
        ("reveal = false", to, add),
        ("reaveal = true", "unknown key \"reaveal\"", "did you mean \"reveal\"?"),
        (
            "to = 'https://a.io', reveal = true",
            "a secret cannot be sent and revealed at once",
            "write two entries if the plugin is to read it as well",
        ),
        (
            "reveal = true, header = 'X'",
            "\"header\" has no effect on a secret that is revealed",
            "leave it out",
        ),
        (
            "reveal = true, format = '{}'",
            "\"format\" has no effect on a secret that is revealed",
            "leave it out",
        ),
    ]);
}

#[test]
fn a_header_has_one_value() {
    let other = SENT.replace("key", "pin");
    let basic = SENT.replace("Bearer", "Basic");
    let elsewhere = SENT.replace("api", "www");
    let hint = "a header has one value: leave out one of the two";
    for second in [&other, &basic] {
        let text = text(&format!("{SENT},\n{second}"));
        let want = "policy.toml:4:1: the entry at policy.toml:3 fills the same header";
        check_error(parse_policy(&text), want, hint);
    }
    // A duplicate entry is odd but harmless; the plugin holds the secret once.
    assert_eq!(grant(&text(&format!("{SENT}, {SENT}, {elsewhere}")), ASKS).secrets().len(), 2);
}

#[test]
fn a_secret_from_nowhere_is_a_mistake() {
    let text = "[plugin.weather]\nsecrets = [{ name = 'kye', reveal = true }]";
    let want = "policy.toml:2:12: no file says where the secret kye is";
    check_error(parse_policy(text), want, "add [secret.kye] with \"env\", \"file\" or \"keyring\"");
    let near = format!("{text}\n[secret.key]\nenv = 'KEY'");
    check_error(parse_policy(&near), want, "did you mean \"key\"?");
}

#[test]
fn a_secret_that_no_request_can_carry_is_noted() {
    let note =
        "policy.toml:3 sends a secret to https://api.example.com, which no entry of \"net\" allows";
    let rows = [
        ("'GET https://api.example.com/v1/**'", None),
        ("'POST https://*.example.com/**'", None),
        ("{ allow = 'GET https://api.example.com:400-500/x', decision = 'ask' }", None),
        ("'GET http://api.example.com/**'", Some(note)),
        ("'GET https://api.example.com:8443/**'", Some(note)),
        ("{ deny = '* https://**' }", Some(note)),
    ];
    for (net, want) in rows {
        let asks = "[[request.secrets]]\nname = 'key'\nwhy = 'w'
                    [[request.net]]\nallow = '* https://api.example.com:1-65535/**'\nwhy = 'w'
                    [[request.net]]\nallow = '* http://api.example.com/**'\nwhy = 'w'";
        let text = format!("[plugin.weather]\nnet = [{net}]\nsecrets = [{SENT}]\n{SOURCES}");
        let notes = grant(&text, asks).notes().to_vec();
        assert_eq!(notes.first().map(String::as_str), want, "{net}");
    }
}

#[test]
fn a_refused_secret_carries_the_text_that_reveals_it() {
    let reveal = "{ name = \"pin\", reveal = true }";
    let source = "[secret.pin]\nkeyring = \"sallyport/pin\"\n";
    let sent = SENT.replace("key", "pin").replace('\'', "\"").replace("Auth", "auth");
    let rows = [
        (SOURCES.to_owned(), "its policy does not grant it", vec![reveal], false),
        (String::new(), "its policy does not grant it", vec![reveal], true),
        (
            format!("[plugin.weather]\nsecrets = [{sent}]\n{SOURCES}"),
            "its policy has it sent with requests only",
            vec![sent.as_str(), reveal],
            false,
        ),
    ];
    for (text, why, entries, needs_source) in rows {
        let denial = grant(&text, ASKS).deny_secret("pin");
        assert_eq!(denial.subject.to_string(), "weather may not read the secret \"pin\"");
        assert_eq!(denial.reason.to_string(), why);
        let fix = denial.fix.unwrap().toml;
        assert!(fix.contains(&format!("secrets = [{}]\n", entries.join(", "))), "{fix}");
        assert_eq!(fix.ends_with(source), needs_source, "{fix}");
        let rest = if needs_source { "" } else { SOURCES };
        let fixed = policy(&format!("{fix}\n{rest}")).effective_grant(&manifest(ASKS), &Map::new());
        assert!(fixed.permission_lines().contains(&"read the secret pin".to_owned()), "{fix}");
    }
}

#[test]
fn what_the_manifest_does_not_ask_to_read_cannot_be_fixed() {
    let rows = [
        ("key", "its manifest requests it for use in requests only"),
        ("other", "its manifest does not request it"),
        ("a\u{1b}[2J\nb", "its manifest does not request it"),
    ];
    for (name, why) in rows {
        let denial = grant(&text(SENT), ASKS).deny_secret(name);
        assert_eq!((denial.reason.to_string().as_str(), denial.fix), (why, None), "{name}");
        assert!(
            !denial.subject.to_string().contains(char::is_control),
            "{}",
            denial.subject.to_string()
        );
    }
}

#[test]
fn a_fix_of_something_else_keeps_the_secrets() {
    let denial =
        grant(&text(&format!("{SENT}, {READ}")), ASKS).deny_path("/x", crate::FsAccess::Read);
    assert_eq!(denial.fix, None);
    let asks = format!("{ASKS}\n[[request.fs]]\naccess = 'read'\nwhy = 'w'");
    let denial =
        grant(&text(&format!("{SENT}, {READ}")), &asks).deny_path("/x", crate::FsAccess::Read);
    let fix = denial.fix.unwrap().toml;
    let fixed = policy(&format!("{fix}\n{SOURCES}")).effective_grant(&manifest(&asks), &Map::new());
    assert_eq!(fixed.secrets().len(), 2, "{fix}");
    // With a secret, calls of the plugin are asked about, so the fix contains a rule.
    assert!(fix.contains("[[rule]]"), "{fix}");
}
