//! Python for a conversation: what lives from call to call, what other sessions see of it, and what
//! comes of code that goes too far.

mod hostile;
mod wheels;

use sallyport_contract::CallReport;
use serde_json::{Value, json};

use crate::support::{Home, OpenAi, Reply, Tools, registry::data};

/// What both plugins of the scratch are granted. The quota is one that a test can fill.
const SCRATCH: &str = r#"scratch = [{ name = "sandbox", mount = "/sandbox", quota = "4MiB" }]"#;

/// A host with the interpreter and the plugin that reaches its files. `more` follows in its table.
fn host(more: &str) -> Tools {
    let policy = format!("[plugin.python]\n{SCRATCH}\n{more}\n[plugin.sandbox-fs]\n{SCRATCH}\n");
    Tools::of(&Home::new().plugins(&["python", "sandbox-fs"]).policy(policy))
}

/// Runs code in a session.
fn run_in(tools: &Tools, session: &str, code: &str) -> CallReport {
    tools.wait(tools.begin_in(session, "python.execute", &json!({ "code": code })))
}

fn run(tools: &Tools, code: &str) -> CallReport {
    run_in(tools, "s", code)
}

/// Fails unless the value of the last line is this one.
#[track_caller]
fn check(tools: &Tools, code: &str, want: &Value) {
    let report = run(tools, code);
    assert_eq!(data(&report)["result"], *want, "{code}: {report:?}");
}

#[test]
fn a_table_is_put_in_computed_on_and_taken_out() {
    let tools = host("");
    let table = "name,amount\nbread,3\nmilk,4\napples,5\n";
    tools.call("sandbox-fs.write", &json!({ "path": "data.csv", "content": table }));
    let load = "import csv\nrows = list(csv.DictReader(open('data.csv')))\nlen(rows)";
    check(&tools, load, &json!(3));
    check(&tools, "total = sum(int(row['amount']) for row in rows)\ntotal", &json!(12));
    let write = "with open('out/total.txt', 'w') as file:\n    file.write(f'{total} in all')";
    tools.call("sandbox-fs.mkdir", &json!({ "path": "out" }));
    check(&tools, write, &Value::Null);
    let report = tools.call("sandbox-fs.read", &json!({ "path": "out/total.txt" }));
    assert_eq!(data(&report)["content"], "12 in all", "{report:?}");
}

#[test]
fn each_session_has_an_interpreter_and_files_of_its_own() {
    let tools = host("");
    run(&tools, "secret = 7\nopen('secret.txt', 'w').write('7')");
    let report =
        run_in(&tools, "other", "'secret' in globals() or __import__('os').listdir('/sandbox')");
    assert_eq!(data(&report)["result"], json!([]), "{report:?}");
    assert_eq!(data(&report)["fresh"], true);
    check(&tools, "secret", &json!(7));
}

#[test]
fn a_first_call_finds_nothing_of_the_build() {
    let tools = host("");
    let names = "[name for name in globals() if not name.startswith('__')]";
    let modules = "import sys\nroots = {name.partition('.')[0] for name in sys.modules}\n\
                   sorted(roots & {'app', 'plugin', 'interpreter', 'wit_world', \
                   'componentize_py_types'})";
    let lines = "import linecache\nlist(linecache.cache)";
    for (code, want) in [(names, json!([])), (modules, json!([])), (lines, json!(["<call 3>"]))] {
        let report = run(&tools, code);
        assert_eq!(data(&report)["result"], want, "{code}: {report:?}");
        tools.call("python.reset", &json!({}));
    }
}

#[test]
fn each_session_has_a_chance_of_its_own() {
    let tools = host("");
    let code = "import random\nrandom.random()";
    let (one, other) = (run(&tools, code), run_in(&tools, "other", code));
    assert!(data(&one)["result"].is_f64(), "{one:?}");
    assert_ne!(data(&one)["result"], data(&other)["result"]);
}

#[test]
fn a_reset_forgets_variables_and_keeps_files() {
    let tools = host("");
    run(&tools, "import json\nx = 1\njson.dumps = None\nopen('kept.txt', 'w').write('x')");
    tools.call("python.reset", &json!({}));
    let report = run(&tools, "'x' in globals()");
    assert_eq!((&data(&report)["result"], &data(&report)["fresh"]), (&json!(false), &json!(true)));
    check(&tools, "import json\njson.dumps([open('kept.txt').read()])", &json!("[\"x\"]"));
}

#[test]
fn a_module_of_the_conversation_may_be_called_like_one_of_the_plugin() {
    let tools = host("");
    for name in ["app", "plugin", "interpreter", "wit_world", "tools", "session"] {
        let module = json!({ "path": format!("{name}.py"), "content": "x = 7\n" });
        tools.call("sandbox-fs.write", &module);
        check(&tools, &format!("import {name}\n{name}.x"), &json!(7));
        check(&tools, &format!("{name}.x += 1\nimport {name}\n{name}.x"), &json!(8));
        tools.call("python.reset", &json!({}));
        check(&tools, &format!("import {name}\n{name}.x"), &json!(7));
    }
}

/// The calls of a model that puts a table in, computes on it in three calls, and reads what came
/// out.
fn calls() -> Vec<Reply> {
    let code = |id, code: &str| Reply::call(id, "python__execute", &json!({ "code": code }));
    let table = json!({ "path": "data.csv", "content": "name,amount\nbread,3\nmilk,4\n" });
    vec![
        Reply::call("a", "sandbox-fs__write", &table),
        code("b", "import csv\nrows = list(csv.DictReader(open('data.csv')))\nlen(rows)"),
        code("c", "amounts = [int(row['amount']) for row in rows]\nsum(amounts)"),
        code("d", "open('out.txt', 'w').write(f'at most {max(amounts)}')\nmax(amounts)"),
        Reply::call("e", "sandbox-fs__read", &json!({ "path": "out.txt" })),
        Reply::Text("There you are."),
    ]
}

#[test]
fn a_conversation_computes_on_what_was_put_in() {
    let model = OpenAi::start(calls());
    let policy = format!("[plugin.python]\n{SCRATCH}\n[plugin.sandbox-fs]\n{SCRATCH}\n");
    let home = Home::new()
        .plugins(&["python", "sandbox-fs"])
        .policy(policy)
        .env("OPENAI_BASE_URL", model.base_url())
        .env("OPENAI_API_KEY", "k");
    home.run(&["run", "--model", "m", "go"]).ended(0).answers(&["There you are."]);
    let last = model.bodies().pop().unwrap();
    let results = last["messages"].as_array().unwrap().iter().filter(|said| said["role"] == "tool");
    let told: Vec<String> = results.map(|said| said["content"].to_string()).collect();
    for (result, want) in told[1..].iter().zip(["2", "7", "4", "at most 4"]) {
        assert!(result.contains(want), "no {want:?} in {told:#?}");
    }
    assert!(told[1].contains("fresh") && !told[2].contains("fresh"), "{told:#?}");
}
