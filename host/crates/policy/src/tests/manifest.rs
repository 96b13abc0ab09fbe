//! Manifests: valid and invalid content, and settings.

use serde_json::{Map, Value, json};

use super::{check_error, manifest, policy, send, settings};
use crate::{FsAccess, Manifest, SettingsSchema};

const HEAD: &str = "name = 'weather'\nversion = '1.0.0'\ndescription = 'd'\n";

#[test]
fn a_full_manifest_is_read() {
    let manifest = manifest(
        "[settings.base]\ntype = 'string'\ndefault = 'https://a.io/'
         [[request.net]]\nallow = 'GET {base}/v1'\nwhy = 'to ask'
         [[request.fs]]\naccess = 'read'\npath = '/proc/meminfo'\nwhy = 'to count'
         [[request.fs]]\naccess = 'read-write'\nwhy = 'to write'
         [[request.env]]\nname = 'TZ'\nwhy = 'to tell the time'",
    );
    assert_eq!((manifest.name.as_str(), manifest.version.as_str()), ("weather", "1.0.0"));
    let request = &manifest.request;
    assert_eq!(request.net[0].allow.to_string(), "GET {base}/v1");
    assert_eq!(request.net[0].why, "to ask");
    assert_eq!(request.fs[0].path.as_deref(), Some("/proc/meminfo".as_ref()));
    assert_eq!((request.fs[1].path.as_deref(), request.fs[1].access), (None, FsAccess::ReadWrite));
    assert_eq!(request.env[0].name, "TZ");
}

#[test]
fn mistakes_in_manifests() {
    let plugin = "is not a plugin name: use up to 64 lower-case letters, digits, '-' and '_', \
                  starting with a letter";
    let version = "write it like 1.2.3 or 1.2.3-beta.1 (https://semver.org)";
    let rows = [
        ("", "1:1: key \"name\" is missing".into(), ""),
        ("name = '../x'", format!("1:8: \"../x\" {plugin}"), ""),
        ("name = 'a'\nversion = 'new'", "2:11: \"new\" is not a version".into(), version),
        ("name = 'a'\nversion = '1\n'", "2:13: invalid literal string, expected `'`".into(), ""),
        (
            "name = 'a'\nversion = '1.0'",
            "2:11: \"1.0\" is not a version".into(),
            "write three numbers: 1.0.0",
        ),
        ("name = 'a'\nversion = '01.2.3'", "2:11: \"01.2.3\" is not a version".into(), version),
        ("name = 'a'\nversion = '1.0.0'", "1:1: key \"description\" is missing".into(), ""),
        (
            "name = 'a'\nversion = '1.0.0'\ndescription = ''",
            "3:15: \"description\" is empty".into(),
            "",
        ),
        (
            "name = 'a'\nversion = '1.0.0'\ndescription = 'd'\nsetings = 1",
            "4:1: unknown key \"setings\"".into(),
            "did you mean \"settings\"?",
        ),
    ];
    for (text, want, hint) in rows {
        check_error(Manifest::parse("plugin.toml", text), &format!("plugin.toml:{want}"), hint);
    }
}

#[test]
fn mistakes_in_requests_and_settings() {
    let rows = [
        ("[[request.net]]\nallow = 'GET https://a.io'", "4:1: key \"why\" is missing", ""),
        ("[[request.net]]\nwhy = 'w'", "4:1: key \"allow\" is missing", ""),
        ("[[request.net]]\nallow = 'GET https://a.io'\nwhy = ''", "6:7: \"why\" is empty", ""),
        ("[[request.nett]]\nwhy = 'w'", "4:11: unknown key \"nett\"", "did you mean \"net\"?"),
        (
            "[[request.gpu]]\nname = 'x'",
            "4:11: unknown key \"gpu\"",
            "the keys known here are net, fs, env, secrets, state, schedule, notify, progress, open-url, packages, scratch, listen, ui, process",
        ),
        (
            "[request]\nnet = ['GET https://a.io']",
            "5:8: an entry of \"net\" must be a table, not a string",
            "",
        ),
        (
            "[[request.net]]\nallow = 'GET https://*'\nwhy = 'w'",
            "5:9: the host \"*\" would allow nearly the whole internet",
            "name the host, or one level below a domain: *.example.com",
        ),
        (
            "[[request.net]]\nallow = '{base}/v1'\nwhy = 'w'",
            "5:9: \"{base}/v1\" does not say which methods it allows",
            "write \"GET https://api.example.com/v1/**\"",
        ),
        (
            "[[request.net]]\nallow = '{m} https://a.io'\nwhy = 'w'",
            "5:9: \"{m}\" is not a method that can be allowed",
            "name methods such as GET,POST, or write * for all",
        ),
        (
            "[[request.net]]\nallow = 'GET {base}/v1'\nwhy = 'w'",
            "5:9: there is no setting \"base\"",
            "add [settings.base] with type = \"string\"",
        ),
        (
            "[[request.net]]\nallow = 'GET {bse}/v1'\nwhy = 'w'\n[settings.base]\ntype = 'string'",
            "5:9: there is no setting \"bse\"",
            "did you mean {base}?",
        ),
        (
            "[[request.net]]\nallow = 'GET https://a.io/{n}'\nwhy = 'w'\n[settings.n]\ntype = 'integer'",
            "5:9: the setting \"n\" is not of the type \"string\"",
            "add [settings.n] with type = \"string\"",
        ),
        (
            "[[request.net]]\nallow = 'GET {b}/v1'\nwhy = 'w'\n[settings.b]\ntype = 'string'\ndefault = 'a.io'",
            "5:9: \"a.io/v1\" begins with neither https:// nor http://",
            "begin with https://, in small letters",
        ),
        (
            "[[request.net]]\nallow = 'GET {b}/v1'\nwhy = 'w'\n[settings.b]\ntype = 'string'\ndefault = 'https://*.a.io'",
            "5:9: the setting \"b\" is not a URL or a part of one",
            "write it like https://api.example.com",
        ),
        (
            "[[request.net]]\nallow = 'GET https://a.io/{x'\nwhy = 'w'",
            "5:9: the path \"/{x\" cannot match: braces are not part of a path",
            "use * within one segment, and /** for everything below",
        ),
        (
            "[[request.fs]]\naccess = 'read'\npath = '~/x'\nwhy = 'w'",
            "6:8: \"~/x\" is not an absolute path",
            "begin it with / (or, in a policy, with ~/)",
        ),
        ("[[request.fs]]\npath = '/x'\nwhy = 'w'", "4:1: key \"access\" is missing", ""),
        (
            "[[request.env]]\nname = 'A B'\nwhy = 'w'",
            "5:8: \"A B\" is not the name of an environment variable",
            "use letters, digits and '_', not beginning with a digit",
        ),
        (
            "[settings.\"a b\"]",
            "4:11: \"a b\" is not a setting's name",
            "use up to 64 letters, digits, '_' and '-'",
        ),
        (
            "[settings.a]\ntype = 'text'",
            "5:8: \"type\" cannot be \"text\"",
            "write one of string, integer, number, boolean, array, object",
        ),
        ("[settings.a]\nminimun = 1", "5:1: unknown key \"minimun\"", "did you mean \"minimum\"?"),
        (
            "[settings.a]\n\"$ref\" = 'http://x'",
            "5:1: unknown key \"$ref\"",
            "the keys known here are required, properties, items, type, title, description, default, const, enum, pattern, format, minimum, maximum, exclusiveMinimum, exclusiveMaximum, multipleOf, minLength, maxLength, minItems, maxItems, uniqueItems, additionalProperties",
        ),
        (
            "[settings.a]\nrequired = 'yes'",
            "5:12: \"required\" must be true or false, not a string",
            "",
        ),
        (
            "[settings.a]\ntype = 'integer'\ndefault = 'x'",
            "6:11: the default is not a value that the setting may have",
            "",
        ),
        ("[settings.a]\nminimum = 'x'", "5:11: this keyword takes a number", ""),
        ("[settings.a]\nmaxLength = -1", "5:13: \"maxLength\" must be from 0 to 4294967295", ""),
        ("[settings.a.items]\nmaxx = 1", "5:1: unknown key \"maxx\"", "did you mean \"maximum\"?"),
    ];
    for (body, want, hint) in rows {
        let parsed = Manifest::parse("plugin.toml", &format!("{HEAD}{body}"));
        let want = format!("plugin.toml:{want}");
        match hint {
            "did you mean \"maximum\"?" => assert_eq!(parsed.unwrap_err().to_string(), want),
            _ => check_error(parsed, &want, hint),
        }
    }
}

#[test]
fn settings_become_one_schema() {
    let manifest = manifest(
        "[settings.zone]\ntype = 'string'\ndescription = 'Zone'\ndefault = 'UTC'\nformat = 'x'
         [settings.days]\ntype = 'integer'\nminimum = 1\nmaximum = 16\nrequired = true
         [settings.mode]\nenum = ['a', 'b']\nrequired = true\ndefault = 'a'
         [settings.tags]\ntype = 'array'\nitems = { type = 'string', maxLength = 9 }
         [settings.place]\nproperties.lat = { type = 'number', required = true }
         properties.name = { type = 'string' }\nadditionalProperties = false",
    );
    let want = json!({
        "type": "object",
        "properties": {
            "zone": {"type": "string", "description": "Zone", "default": "UTC", "format": "x"},
            "days": {"type": "integer", "minimum": 1, "maximum": 16},
            "mode": {"enum": ["a", "b"], "default": "a"},
            "tags": {"type": "array", "items": {"type": "string", "maxLength": 9}},
            "place": {
                "type": "object",
                "properties": {"lat": {"type": "number"}, "name": {"type": "string"}},
                "required": ["lat"],
                "additionalProperties": false,
            },
        },
        "required": ["days", "mode"],
        "additionalProperties": false,
    });
    assert_eq!(manifest.settings.json_schema(), &want);
    let given = settings(&[("zone", "CET")]);
    assert_eq!(manifest.settings.missing_settings(&given), ["days"]);
    let all = manifest.settings.with_defaults(&given);
    assert_eq!(Value::Object(all), json!({"zone": "CET", "mode": "a"}));
}

#[test]
fn without_settings_none_may_be_given() {
    let empty = json!({
        "type": "object", "properties": {}, "required": [], "additionalProperties": false,
    });
    assert_eq!(SettingsSchema::empty().json_schema(), &empty);
    let bare = Manifest::for_bare_component("x".parse().unwrap());
    assert_eq!((bare.version.as_str(), bare.settings.json_schema()), ("0.0.0", &empty));
    assert!(bare.settings.missing_settings(&Map::new()).is_empty());
}

#[test]
fn settings_fill_in_requests() {
    let manifest = manifest(
        "[settings.base]\ntype = 'string'\ndefault = 'https://api.example.com'
         [settings.user]\ntype = 'string'
         [[request.net]]\nallow = 'GET {base}/v1/*'\nwhy = 'w'
         [[request.net]]\nallow = 'GET https://{user}.example.com/{user}/**'\nwhy = 'w'",
    );
    let policy = policy(
        "[plugin.weather]
         net = ['* https://*.example.com/**',
                { allow = '* http://127.0.0.1:7/**', to-private = true }]",
    );
    let void = "the request for GET https://{user}.example.com/{user}/** has no effect: ";
    let base = "the request for GET {base}/v1/* has no effect: ";
    let unused =
        "policy.toml:3 grants * http://127.0.0.1:7/**, which the manifest does not request";
    let rows = [
        (
            vec![],
            "https://api.example.com/v1/a",
            vec![format!("{void}the setting \"user\" is not given"), unused.into()],
        ),
        (vec![("user", "me")], "https://me.example.com/me/x", vec![unused.into()]),
        (vec![("user", "me"), ("base", "http://127.0.0.1:7/")], "http://127.0.0.1:7/v1/a", vec![]),
        (
            vec![("user", "me"), ("base", "https://x.example.com/sub/")],
            "https://x.example.com/sub/v1/a",
            vec![unused.into()],
        ),
        (
            vec![("user", "me"), ("base", "https://*.example.com")],
            "https://me.example.com/me/x",
            vec![
                format!("{base}the setting \"base\" is not a URL or a part of one"),
                unused.into(),
            ],
        ),
        (
            vec![("user", "me"), ("base", "")],
            "https://me.example.com/me/x",
            vec![
                format!("{base}the setting \"base\" is not a URL or a part of one"),
                unused.into(),
            ],
        ),
        (
            vec![("user", "me"), ("base", "https://a@b.example.com")],
            "https://me.example.com/me/x",
            vec![
                format!(
                    "{base}\"https://a@b.example.com/v1/*\" holds a user name, which a network pattern does not have"
                ),
                unused.into(),
            ],
        ),
    ];
    for (given, url, notes) in rows {
        let grant = policy.effective_grant(&manifest, &settings(&given));
        assert_eq!(send(&grant, &format!("GET {url}")), Ok(()), "{given:?}");
        assert_eq!(grant.notes(), notes, "{given:?}");
    }
    let mut number = settings(&[("user", "me")]);
    number.insert("base".into(), json!(7));
    assert!(policy.effective_grant(&manifest, &number).notes()[0].contains("is not a URL"));
}
