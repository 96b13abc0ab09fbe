//! Questions of a server to the user: asked by every front end, checked, bounded, and never silent.

use std::{
    fs,
    os::unix::fs::PermissionsExt,
    path::{Path, PathBuf},
};

use serde_json::{Value, json};

use super::{GRANTED, home};
use crate::support::{
    AcpClient, Home, McpClient, OpenAi, Person, Reply,
    acp::{choices, shown},
    patience::until,
    person::CARD_KEYS,
};

/// A policy with a secret, which one of the questions has.
const WITH_SECRET: &str = "\n[secret.token]\nenv = \"TOKEN\"\n";

/// Calls the tool as an MCP client whose user answers the question. Returns the question and what the
/// server was told.
#[track_caller]
fn answered(home: &Home, answer: &Value) -> (Value, String) {
    let mut client = McpClient::greeted(home, &[], &json!({ "elicitation": {} }));
    let call = client.request("tools/call", &json!({ "name": "fake__echo", "arguments": {} }));
    let question = client.of_method("elicitation/create");
    client.send(&json!({ "jsonrpc": "2.0", "id": question["id"], "result": answer }));
    let result = client.answer(call)["result"].clone();
    assert_eq!(client.close(), 0);
    (question, result["content"][0]["text"].as_str().unwrap_or_default().to_owned())
}

fn accepted(values: &Value) -> Value {
    json!({ "action": "accept", "content": values })
}

#[test]
fn only_values_that_fit_reach_the_server() {
    let declined = json!({ "action": "decline" });
    let filled = |values: Value| json!({ "action": "accept", "content": values });
    let rows = [
        (
            accepted(&json!({ "city": "Graz", "count": 9, "colour": "red" })),
            filled(json!({ "city": "Graz", "count": 9, "colour": "red" })),
        ),
        (accepted(&json!({ "city": "Graz" })), filled(json!({ "city": "Graz", "count": 3 }))),
        (accepted(&json!({ "city": "G" })), declined.clone()),
        (accepted(&json!({ "city": 5 })), declined.clone()),
        (accepted(&json!({ "city": "Graz", "count": 10 })), declined.clone()),
        (accepted(&json!({ "city": "Graz", "colour": "green" })), declined.clone()),
        (accepted(&json!({ "city": "Graz", "more": 1 })), declined.clone()),
        (accepted(&json!({})), declined.clone()),
        (accepted(&Value::Null), declined.clone()),
        (json!({ "action": "decline", "content": { "city": "Graz" } }), declined.clone()),
        (json!({ "action": "cancel" }), declined),
    ];
    for mode in ["form", "input"] {
        let home = home(mode, "");
        for (answer, want) in &rows {
            let (question, told) = answered(&home, answer);
            let message = question["params"]["message"].as_str().unwrap();
            assert!(message.starts_with("The MCP server of fake asks you."), "{message}");
            for line in ["| Where to?", "| asked because: you know me", "tool: fake.echo"] {
                assert!(message.lines().any(|one| one == line), "no {line:?} in {message}");
            }
            let fields = &question["params"]["requestedSchema"]["properties"];
            assert_eq!(fields["count"]["maximum"], 9, "{question}");
            let told: Value = serde_json::from_str(&told).unwrap();
            let told = if mode == "input" { &told["where"] } else { &told };
            assert_eq!(told, want, "{mode} {answer}");
        }
    }
}

#[test]
fn a_page_is_opened_after_a_yes_to_its_address() {
    for (mode, answer, action) in [
        ("page", json!({ "action": "accept", "content": {} }), "accept"),
        ("page", json!({ "action": "decline" }), "decline"),
        ("input-page", json!({ "action": "accept", "content": {} }), "accept"),
    ] {
        let home = home(mode, "").env("SALLYPORT_BROWSER", "none");
        let (question, told) = answered(&home, &answer);
        let message = question["params"]["message"].as_str().unwrap();
        let has = |line: &str| message.lines().any(|one| one == line);
        assert!(has("page: https://pay.example/x?y=1") && has("| Pay here."), "{message}");
        let told: Value = serde_json::from_str(&told).unwrap();
        let told = if mode == "page" { &told } else { &told["where"] };
        assert_eq!(told, &json!({ "action": action }), "{mode}");
    }
}

/// Neither the words nor the answer take a secret along.
#[test]
fn no_secret_is_shown_or_sent() {
    let secret =
        |home: Home| home.env("TOKEN", "s3cret-token-77").policy(format!("{GRANTED}{WITH_SECRET}"));
    let home = secret(home("secret-form", ""));
    let (question, told) = answered(&home, &accepted(&json!({ "sure": true })));
    assert!(!question.to_string().contains("s3cret-token-77"), "{question}");
    assert!(told.contains("accept"), "{told}");
    let home = secret(super::home("form", ""));
    let (_, told) = answered(&home, &accepted(&json!({ "city": "s3cret-token-77" })));
    assert!(told.contains("decline"), "{told}");
    let audit = home.run(&["audit", "show", "--output", "json"]).ended(0).stdout;
    assert!(audit.contains("has a secret, which stays here"), "{audit}");
}

#[test]
fn what_was_filled_in_is_not_on_record() {
    let home = home("form", "");
    answered(&home, &accepted(&json!({ "city": "Gramatneusiedl" })));
    let audit = home.run(&["audit", "show", "--output", "json"]).ended(0).stdout;
    assert!(audit.contains("filled in city, count"), "{audit}");
    assert!(!audit.contains("Gramatneusiedl"), "{audit}");
    let holder = holder_of(&home.path(""), "Gramatneusiedl");
    assert_eq!(holder, None);
}

/// The first file below a folder that has a text.
fn holder_of(folder: &Path, text: &str) -> Option<PathBuf> {
    fs::read_dir(folder).ok()?.flatten().map(|entry| entry.path()).find_map(|path| {
        if path.is_dir() {
            return holder_of(&path, text);
        }
        let bytes = fs::read(&path).ok()?;
        bytes.windows(text.len()).any(|part| part == text.as_bytes()).then_some(path)
    })
}

/// The hook gets the fields, and its values are checked like any others.
#[test]
fn another_program_fills_in_the_form() {
    // What the hook answers wrongly is no answer, so the question expires.
    let short = "[plugin.fake]\nprocess = true\nlimits = { approval-time = \"1s\" }\n\n\
        [[rule]]\ntool = \"fake.*\"\ndecision = \"allow\"\n";
    let rows = [
        (r#"{"city":"Graz"}"#, GRANTED, r#""city": "Graz""#),
        (r#"{"city":"G"}"#, short, "decline"),
        (r#"{"city":"Graz","x":1}"#, short, "decline"),
    ];
    for (values, policy, told) in rows {
        let script = format!(
            "#!/usr/bin/env python3\nimport json, sys\nasked = json.loads(sys.stdin.readline())\n\
             assert asked['form']['fields'][0]['name'] == 'city'\n\
             answer = {{'hash': asked['hash'], 'answer': 'once', 'values': {values}}}\n\
             print(json.dumps(answer))\n"
        );
        let home = home("form", "").policy(policy).file("hook.py", script);
        let hook = home.path("hook.py");
        fs::set_permissions(&hook, fs::Permissions::from_mode(0o700)).unwrap();
        let config = fs::read_to_string(home.path("sallyport.toml")).unwrap();
        let home = home.config(format!("{config}\n[approvals]\nhook = [{hook:?}]\n"));
        let (report, _) = home.call("fake.echo", &json!({}));
        assert_eq!(report["outcome"], "completed", "{report}");
        assert!(report["result"].as_str().unwrap().contains(told), "{report}");
    }
}

#[test]
fn the_question_waits_for_another_terminal() {
    let home = home("form", "");
    let mut client = McpClient::greeted(&home, &[], &json!({ "elicitation": {} }));
    let call = client.request("tools/call", &json!({ "name": "fake__echo", "arguments": {} }));
    client.of_method("elicitation/create");
    let question = until("a question in the list", || {
        let listed = home.run(&["approval", "list", "--output", "json"]).ended(0).json();
        listed["questions"].as_array()?.first().cloned()
    });
    let (id, hash) = (question["id"].as_str().unwrap(), question["hash"].as_str().unwrap());
    let answer = |more: &[&str]| {
        home.run(&[&["approval", "answer", id, "once", "--hash", hash], more].concat())
    };
    answer(&[]).ended(2).remarks(&["needs values for its fields, --values JSON"]);
    answer(&["--values", "["]).ended(2).remarks(&["not a JSON object"]);
    answer(&["--values", "{\"city\": \"G\"}"]).ended(2).remarks(&["the values do not fit: /city"]);
    let word = ["approval", "answer", id, "session", "--hash", hash];
    home.run(&word).ended(2).remarks(&["needs values"]);
    answer(&["--values", "{\"city\": \"Graz\"}"]).ended(0).answers(&["Allowed: filled in"]);
    let result = client.answer(call)["result"].clone();
    assert!(result.to_string().contains("Graz"), "{result}");
    answer(&["--values", "{\"city\": \"Wien\"}"]).ended(1).remarks(&["was answered before"]);
    assert_eq!(client.close(), 0);
}

fn with_model(home: Home, model: &OpenAi) -> Home {
    home.env("OPENAI_BASE_URL", model.base_url()).env("SALLYPORT_MODEL", "m")
}

fn one_call() -> OpenAi {
    OpenAi::start(vec![Reply::call("c1", "fake__echo", &json!({})), Reply::Text("All done.")])
}

#[test]
fn an_editor_asks_field_by_field_what_can_be_chosen() {
    let rows: [(&[&str], &str); 3] =
        [(&["v1", "v0"], "blue"), (&["skip", "v1"], "false"), (&["v0", "no"], "decline")];
    for (chosen, told) in rows {
        let model = one_call();
        let home = with_model(home("choices", ""), &model);
        let mut client = AcpClient::greeted(&home);
        let session = client.new_session("/");
        let turn = client.prompt(&session, "go");
        for (number, choice) in chosen.iter().enumerate() {
            let question = client.question(number);
            let words = shown(&question);
            assert!(words.contains("| Where to?"), "{words}");
            assert_eq!(choices(&question).last().unwrap().0, "no", "{question}");
            client.choose(&question, choice);
        }
        assert_eq!(client.stop_reason(turn), "end_turn");
        let results = model.bodies().last().unwrap().to_string();
        assert!(results.contains(told), "{chosen:?}: {results}");
        assert_eq!(client.close(), 0);
    }
    // A text cannot be typed there, so the form is declined.
    let model = one_call();
    let home = with_model(home("form", ""), &model);
    let mut client = AcpClient::greeted(&home);
    let session = client.new_session("/");
    assert_eq!(client.turn(&session, "go"), "end_turn");
    assert!(model.bodies().last().unwrap().to_string().contains("decline"));
    assert_eq!(client.close(), 0);
}

#[test]
fn a_chat_reads_the_fields_below_the_card() {
    let model = one_call();
    let home = with_model(home("form", ""), &model);
    let person = Person::start(&home, &["chat", "--model", "m"]);
    person.sees_last("openai/m>");
    let mut person = person.asked();
    person.sees("question: the MCP server of fake asks you");
    person.sees("│ asked because: you know me");
    person.sees("[f] fill in");
    // There is nothing to allow yet.
    person.types("y");
    person.sees_count(CARD_KEYS, 2);
    person.types("f");
    person.sees_last("city>");
    person.types("G\r");
    person.sees("shorter than 2 characters");
    person.sees_last("city> G");
    person.types("raz\r");
    person.sees_last("count>");
    person.types("\r");
    person.sees_last("colour>");
    person.types("2\r");
    person.sees("[f] filled in: fake.echo");
    person.sees("All done.");
    let results = model.bodies().last().unwrap().to_string();
    assert!(results.contains("Graz") && results.contains("blue"), "{results}");
}
