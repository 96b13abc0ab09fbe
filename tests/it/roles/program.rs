//! Programs: a WASI command as one tool, with JSON on both sides.

use sallyport_contract::{CallReport, ToolDescriptor, ToolHints};
use sallyport_sandbox::LoadError;
use serde_json::{Value, json};

use crate::support::{
    Guarded, Scripted,
    home::guest,
    registry::{data, log, told},
};

fn spec() -> ToolDescriptor {
    ToolDescriptor {
        id: "program.run".parse().unwrap(),
        title: None,
        description: "Acts.".to_owned(),
        parameters: json!({ "type": "object" }),
        output: None,
        hints: ToolHints::default(),
    }
}

fn program(policy: &str) -> Guarded {
    let warden = Scripted::new("program", "", policy);
    Guarded::program(warden, guest("program"), spec()).unwrap()
}

fn act(program: &Guarded, act: &str) -> CallReport {
    program.call("run", &json!({ "act": act }))
}

#[test]
fn arguments_go_in_and_what_is_printed_is_the_result() {
    let program = program("");
    for (told, want) in [
        ("echo", json!({ "act": "echo" })),
        ("exits_well", json!([true])),
        ("warns", json!({})),
        ("reads_on", json!(0)),
        ("lists_root", json!(false)),
        // Its own name is its one argument, and there are no variables.
        ("shows_environment", json!([1, 0])),
    ] {
        assert_eq!(data(&act(&program, told)), &want, "{told}");
    }
    assert_eq!(log(&act(&program, "warns")), ["a warning"]);
    let long = json!({ "act": "echo", "text": "x".repeat(500_000) });
    assert_eq!(data(&program.call("run", &long)), &long);
}

#[test]
fn what_goes_wrong_is_told_in_the_words_of_the_program() {
    let program = program("[plugin.program]\nlimits = { time = \"300ms\", output = \"64KiB\" }\n");
    for (told_it, want) in [
        ("fails", "failed: no such project"),
        ("fails_silently", "failed: the program failed without a message"),
        ("nothing", "failed: the program did not print a result as JSON"),
        ("no_json", "failed: the program did not print a result as JSON"),
        ("panics", "failed: thread 'main'"),
        ("traps", "failed: the plugin trapped"),
        ("prints_for_ever", "failed: the program printed more than 64KiB (limits.output)"),
        ("eats_memory", "failed: the plugin was stopped: its limit of 256MiB of memory"),
        ("loops", "timed-out"),
        ("complains_for_ever", "timed-out"),
    ] {
        let told = told(&act(&program, told_it));
        assert!(told.starts_with(want), "{told_it}: {told}");
    }
    assert_eq!(data(&act(&program, "reads_on")), &Value::from(0), "the next run works");
}

#[test]
fn what_is_no_program_is_told() {
    let load = |bytes| Guarded::program(Scripted::new("program", "", ""), bytes, spec()).err();
    let error = load(guest("raw")).unwrap();
    assert!(matches!(error, LoadError::MissingExport { .. }), "{error}");
    let text = error.to_string();
    assert!(text.contains("exports no program: it has sallyport:plugin/"), "{text}");
    assert!(text.contains("and wasi:cli/run@0.2"), "{text}");
    let error = load(b"\0asm\x01\0\0\0".to_vec()).unwrap().to_string();
    assert!(error.contains("a core WebAssembly module"), "{error}");
}
