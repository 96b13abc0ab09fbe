//! Components of an interface of their own, which nobody wrote for this host: their functions are
//! tools, with every type, every way to end and every limit.

use std::fs;

use serde_json::{Value, json};

use crate::support::{
    Home, Tools,
    home::{guest, manifest},
    registry::{data, told},
};

/// The guest as a single file, without a manifest.
fn bare() -> Home {
    Home::new().file("plugins/typed.wasm", guest("typed"))
}

/// A component from text as the single file `odd.wasm`.
fn odd(text: &str) -> Home {
    Home::new().file("plugins/odd.wasm", wat::parse_str(text).unwrap())
}

/// A component whose function `alone` returns 7, with further fields that can use `$seven`.
fn seven(before: &str, after: &str) -> String {
    format!(
        r#"(component {before}
            (core module $module
                (memory (export "memory") 1)
                (func (export "realloc") (param i32 i32 i32 i32) (result i32) i32.const 16)
                (func (export "take") (param i32 i32))
                (func (export "seven") (result i32) i32.const 7))
            (core instance $core (instantiate $module))
            (func $seven (result u32) (canon lift (core func $core "seven")))
            (export "alone" (func $seven))
            {after})"#
    )
}

#[test]
fn the_schemas_are_exact() {
    let definitions = bare().run(&["tool", "list", "--output", "json"]).ended(0).json();
    let all = definitions.as_array().unwrap().iter();
    let of_typed: Vec<&Value> = all.filter(|tool| tool.to_string().contains("\"typed__")).collect();
    assert_eq!(of_typed.len(), 20);
    let lines: Vec<String> = of_typed.iter().map(ToString::to_string).collect();
    insta::assert_snapshot!(lines.join("\n"));
}

#[test]
fn values_of_every_type_come_back() {
    let tools = Tools::of(&bare());
    for (tool, arguments) in [
        (
            "integers",
            json!({ "a": -128, "b": 255, "c": -32768, "d": 65535, "e": i32::MIN, "f": u32::MAX,
                    "g": i64::MIN.to_string(), "h": u64::MAX.to_string() }),
        ),
        ("floats", json!({ "narrow": "NaN", "wide": "-Infinity" })),
        ("floats", json!({ "narrow": 0.1, "wide": -0.0 })),
        ("texts", json!({ "letter": "\u{1f600}", "text": "\u{0}\n\"", "truth": true })),
        ("choices", json!({ "colour": "deep-blue", "days": ["monday", "wednesday"] })),
        ("options", json!({ "plain": 7, "nested": { "some": null } })),
        ("options", json!({ "plain": null, "nested": { "some": "x" } })),
        ("results", json!({ "outcome": { "ok": 7 }, "empty": { "err": null } })),
        ("results", json!({ "outcome": { "err": "no" }, "empty": { "ok": null } })),
    ] {
        let report = tools.call(&format!("typed.echo.{tool}"), &arguments);
        let given: Value = ["a", "b", "c", "d", "e", "f", "g", "h", "narrow", "wide", "letter"]
            .into_iter()
            .chain(["text", "truth", "colour", "days", "plain", "nested", "outcome", "empty"])
            .filter_map(|name| arguments.get(name).cloned())
            .collect();
        assert_eq!(data(&report).to_string(), given.to_string(), "{tool}");
    }
    let place = json!({ "name": "Ulm", "height-in-metres": null, "at": [48.4, 10.0] });
    let shapes = json!([
        { "tag": "circle", "val": 1.5 }, { "tag": "polygon", "val": [place] },
        { "tag": "nothing" }, { "tag": "named", "val": null }
    ]);
    for (tool, name, value) in [
        ("bytes", "bytes", json!("AP+A")),
        ("places", "places", json!([place])),
        ("shapes", "shapes", shapes),
    ] {
        let report = tools.call(&format!("typed.echo.{tool}"), &json!({ name: value }));
        assert_eq!(data(&report), &value, "{tool}");
    }
    let none = tools.call("typed.echo.options", &json!({}));
    assert_eq!(data(&none), &json!([null, null]));
    let number = json!({ "dividend": i64::MIN, "divisor": 1 });
    assert_eq!(data(&tools.call("typed.acts.divide", &number)), &json!(i64::MIN.to_string()));
    assert_eq!(data(&tools.call("typed.greet", &json!({ "name": "Ada" }))), "Hello, Ada!");
}

#[test]
fn every_end_of_a_function_is_an_outcome() {
    let tools = Tools::of(&bare());
    for (tool, arguments, words) in [
        ("greet", json!({}), "invalid-arguments: the arguments do not fit typed.greet: \"name\""),
        (
            "echo.bytes",
            json!({ "bytes": "AP" }),
            "invalid-arguments: /bytes: expected bytes in Base64",
        ),
        (
            "acts.divide",
            json!({ "dividend": 1, "divisor": "0x1" }),
            "/divisor: expected an integer",
        ),
        ("acts.divide", json!({ "dividend": 1, "divisor": 0 }), "failed: 1 cannot be divided by 0"),
        ("acts.find", json!({ "count": 0 }), "failed: {\"tag\":\"not-found\"}"),
        ("acts.find", json!({ "count": 3 }), "failed: {\"tag\":\"too-many\",\"val\":3}"),
        ("acts.refuse", json!({}), "failed: the function returned an error without a reason"),
        ("acts.trap", json!({}), "failed: the plugin panicked"),
        ("acts.read-file", json!({ "path": "/etc/passwd" }), "failed: "),
    ] {
        let text = told(&tools.call(&format!("typed.{tool}"), &arguments));
        assert!(text.contains(words), "{tool}: {words:?} is not in {text:?}");
    }
    assert_eq!(data(&tools.call("typed.acts.nothing", &json!({}))), &Value::Null);
    assert_eq!(data(&tools.call("typed.acts.find", &json!({ "count": 1 }))), "found");
}

/// Bytes in Base64, as an argument of `echo.bytes`.
fn bytes(count: usize) -> Value {
    json!({ "bytes": data_encoding::BASE64.encode(&vec![7; count]) })
}

#[test]
fn a_byte_counts_as_one_although_it_takes_more_in_the_host() {
    let policy = "[plugin.typed]\nlimits = { host-call = \"256KiB\" }\n";
    let tools = Tools::of(&bare().policy(policy));
    let small = bytes(200_000);
    assert_eq!(data(&tools.call("typed.echo.bytes", &small)), &small["bytes"]);
    let text = told(&tools.call("typed.echo.bytes", &bytes(300_000)));
    assert!(text.contains("limits.host-call"), "{text}");
    // A text takes no more in the host, so it has no multiple of the limit.
    let text = told(&tools.call("typed.acts.long", &json!({ "bytes": 300_000 })));
    assert!(text.contains("limits.host-call"), "{text}");
}

#[test]
fn the_limits_hold() {
    let policy =
        "[plugin.typed]\nlimits = { time = \"2s\", memory = \"32MiB\", output = \"1KiB\" }\n";
    let tools = Tools::of(&bare().policy(policy));
    for (tool, arguments, words) in [
        ("acts.spin", json!({}), "timed-out: stopped after 2s"),
        ("acts.grow", json!({}), "limits.memory"),
        ("acts.long", json!({ "bytes": 2000 }), "its limit of 1024 bytes (limits.output)"),
    ] {
        let text = told(&tools.call(&format!("typed.{tool}"), &arguments));
        assert!(text.contains(words), "{tool}: {words:?} is not in {text:?}");
    }
    assert_eq!(data(&tools.call("typed.acts.long", &json!({ "bytes": 3 }))), "xxx");
}

#[test]
fn two_calls_run_at_once_and_share_nothing() {
    let tools = Tools::of(&bare());
    let calls: Vec<_> =
        (0..2).map(|_| tools.spawn("typed.counters.count-once", &json!({}))).collect();
    for call in calls {
        assert_eq!(data(&tools.wait(call).unwrap()), &json!(1));
    }
}

#[test]
fn a_manifest_beside_it_is_that_of_any_plugin() {
    let tools = Tools::of(&Home::new().guest("typed", "instance = \"session\"\n"));
    for count in [1, 2] {
        assert_eq!(data(&tools.call("typed.counters.count-once", &json!({}))), &json!(count));
    }
    let missing = Home::new().guest("typed", "roles = [\"listener\"]\n");
    missing.run(&["plugin", "list"]).ended(0).answers(&["exports no listener"]);
}

#[test]
fn a_file_is_shown_before_it_is_installed() {
    let home = Home::new().user_file("typed.wasm", guest("typed"));
    let shown = home.run(&["plugin", "show", "./typed.wasm"]).ended(0);
    let size = fs::metadata(home.user_path("typed.wasm")).unwrap().len();
    shown.answers(&[
        "typed 0.0.0",
        &format!("({size} bytes)"),
        "acts.divide  divide: func(dividend: s64, divisor: s64) -> result<s64, string>",
        "echo.places  places: func(places: list<place>) -> list<place>",
        "wasi:filesystem/preopens@0.2",
        "the function counters.open-counter is not a tool: it uses a resource",
        "\"deep-blue\"",
    ]);
    let json = home.run(&["plugin", "show", "./typed.wasm", "--output", "json"]).ended(0).json();
    assert_eq!(json["size_bytes"], json!(size));
    assert_eq!(json["digest"], blake3::hash(&guest("typed")).to_hex().to_string());
    assert!(json["imports"].to_string().contains("wasi:io/poll@0.2"), "{json}");
    home.run(&["plugin", "list"]).ended(0).hides(&["typed"]);
    home.run(&["plugin", "show", "./missing.wasm"]).ended(9).remarks(&["missing.wasm"]);
    let folder = home.component("typed", &manifest("other", ""), &guest("typed"));
    let path = folder.path("plugins/typed/typed.wasm");
    for path in [&path, path.parent().unwrap()] {
        folder.run(&["plugin", "show", path.to_str().unwrap()]).ended(0).answers(&["other 1.0.0"]);
    }
}

#[test]
fn every_patch_version_of_wasi_is_linked() {
    for patch in 0..=12 {
        let import = format!(
            r#"(import "wasi:random/random@0.2.{patch}"
                (instance (export "get-random-u64" (func (result u64)))))"#
        );
        odd(&seven(&import, "")).run(&["call", "odd.alone"]).ended(0).answers(&["7"]);
    }
}

#[test]
fn what_a_compiler_or_wasi_exports_is_not_a_tool() {
    for name in ["exports", "wasi:cli/environment@0.2.0"] {
        let interface = r#"(instance $other (export "init" (func $seven)))"#;
        let home = odd(&seven("", &format!(r#"{interface} (export "{name}" (instance $other))"#)));
        home.run(&["tool", "list"]).ended(0).answers(&["odd.alone"]).hides(&["init"]);
    }
}

#[test]
fn a_function_that_cannot_be_called_leaves_the_others() {
    let deep = format!("{}bool{}", "(list ".repeat(60), ")".repeat(60));
    let take = |ty: &str| {
        format!(
            r#"(func $take (param "value" {ty}) (canon lift (core func $core "take")
                (memory $core "memory") (realloc (func $core "realloc"))))
               (export "take" (func $take))"#
        )
    };
    let ops = |package: &str| format!(r#"(export "{package}/ops@1.0.0" (instance $ops))"#);
    let twice = format!(
        r#"(instance $ops (export "get" (func $seven))) {} {}"#,
        ops("acme:a"),
        ops("acme:b")
    );
    let long = "x".repeat(200);
    for (before, after, words) in [
        ("", take(&deep), "the function take is not a tool: its types have more than 60 levels"),
        ("", twice, "the function ops.get is not a tool: its name is that of another function"),
        ("", format!(r#"(export "{long}" (func $seven))"#), "is not a tool name"),
        (
            r#"(import "wasi:http/types@0.2.3"
                (instance (export "fields" (type (sub resource)))))"#,
            String::new(),
            "it imports wasi:http/types@0.2.3, which reaches nothing: its manifest does not request net",
        ),
    ] {
        let home = odd(&seven(before, &after));
        home.run(&["call", "odd.alone"]).ended(0).answers(&["7"]);
        home.run(&["plugin", "show", "odd"]).ended(0).answers(&[words]);
    }
}

/// One export of any kind made a handler of requests look like a component of no host in
/// particular, which may import HTTP without a request.
#[test]
fn a_handler_of_requests_is_not_of_its_own_interface() {
    let import = r#"(import "wasi:http/outgoing-handler@0.2.3" (instance))"#;
    let handler =
        r#"(instance $handler) (export "wasi:http/incoming-handler@0.2.3" (instance $handler))"#;
    let listens = manifest("odd", "[[request.listen]]\nkind = \"http\"\nwhy = \"answers\"\n");
    let home =
        Home::new().component("odd", &listens, &wat::parse_str(seven(import, handler)).unwrap());
    let words = "imports wasi:http/outgoing-handler@0.2.3, but plugin.toml does not request net";
    home.run(&["plugin", "list"]).ended(0).answers(&[words]);
}

#[test]
fn a_component_without_a_function_to_call_says_why() {
    let alone = r#"(component
        (type $thing' (resource (rep i32)))
        (export $thing "thing" (type $thing'))
        (core module $module (func (export "take") (param i32)))
        (core instance $core (instantiate $module))
        (func $take (param "thing" (own $thing)) (canon lift (core func $core "take")))
        (export "take" (func $take)))"#;
    for (text, words) in [
        ("(component)", "exports no tools: it has no exports at all"),
        (alone, "has no function that can be called: the function take is not a tool: it uses"),
        (
            r#"(component (import "wasi:cli/run@0.2.0" (instance $run (export "run" (func (result (result))))))
                (export "wasi:cli/run@0.2.0" (instance $run)))"#,
            "exports no tools: it has wasi:cli/run@0.2.0",
        ),
        (
            r#"(component (type $bytes (list u8)) (export "bytes" (type $bytes)))"#,
            "exports no tools: it has bytes",
        ),
        (
            r#"(component (import "f" (func $f (param "s" (stream u8)))) (export "g" (func $f)))"#,
            "does not compile",
        ),
    ] {
        let home = odd(text);
        home.run(&["plugin", "list"]).ended(0).answers(&["rejected", words]);
        let path = home.path("plugins/odd.wasm");
        home.run(&["plugin", "show", path.to_str().unwrap()]).ended(9).remarks(&[words]);
    }
}

#[test]
fn what_its_author_wrote_is_the_description() {
    let docs = r#"{"worlds":{"w":{"func_exports":{"alone":{"docs":"Always returns seven."}}}}}"#;
    let section = format!(r#"(@custom "package-docs" "\01{}")"#, docs.replace('"', "\\\""));
    let home = odd(&seven("", &section));
    home.run(&["tool", "show", "odd.alone"]).ended(0).answers(&["Always returns seven."]);
    let broken = odd(&seven("", r#"(@custom "package-docs" "\01{")"#));
    broken.run(&["tool", "show", "odd.alone"]).ended(0).answers(&["alone: func() -> u32"]);
}
