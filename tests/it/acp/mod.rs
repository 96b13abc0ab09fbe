//! `sallyport acp`: what a client gets, and what happens to one that misbehaves.

mod hostile;
mod permissions;
mod sessions;

use serde_json::{Value, json};

use crate::support::{AcpClient, Home, OpenAi, Reply, warden::requests};

/// Allows every tool of the guests.
const ALLOW: &str = "[[rule]]\ntool = \"*\"\ndecision = \"allow\"\n";

/// A home with a model that follows a script.
fn home(model: &OpenAi) -> Home {
    Home::new().env("OPENAI_BASE_URL", model.base_url()).env("SALLYPORT_MODEL", "m")
}

/// The same with a guest whose calls have to be approved, because it may send requests.
fn asking_home(model: &OpenAi) -> Home {
    home(model)
        .guest("hostile", &requests(&["GET https://hostile.example/"]))
        .policy("[plugin.hostile]\nnet = [\"GET https://hostile.example/\"]\n")
}

/// A call of the guest that returns its text.
fn echo(id: &'static str, text: &str) -> Reply {
    Reply::call(id, "hostile__echo", &json!({ "text": text }))
}

#[test]
fn an_agent_says_what_it_can_do() {
    let home = home(&OpenAi::start(vec![Reply::Text("hi")]));
    let mut client = AcpClient::start(&home);
    let about = client.greet(&json!({ "fs": { "readTextFile": true } }));
    assert_eq!(about["agentInfo"]["name"], "sallyport");
    assert_eq!(about["authMethods"], json!([]), "a model is configured");
    let can = &about["agentCapabilities"];
    assert_eq!(can["loadSession"], true);
    for method in ["list", "resume", "close", "delete"] {
        assert!(can["sessionCapabilities"][method].is_object(), "{method}: {about}");
    }
    assert_eq!(client.ask("authenticate", &json!({ "methodId": "setup" }))["result"], json!({}));
    assert_eq!(client.close(), 0);
}

#[test]
fn without_a_model_a_client_is_pointed_at_the_setup() {
    let home = Home::new();
    for (capabilities, kind) in
        [(json!({}), Value::Null), (json!({ "auth": { "terminal": true } }), json!("terminal"))]
    {
        let mut client = AcpClient::start(&home);
        let about = client.greet(&capabilities);
        assert_eq!(about["authMethods"][0]["id"], "setup", "{about}");
        assert_eq!(about["authMethods"][0]["type"], kind, "{about}");
        let asked = [
            ("session/new", json!({ "cwd": "/", "mcpServers": [] })),
            ("authenticate", json!({ "methodId": "setup" })),
        ];
        for (method, params) in asked {
            let error = client.ask(method, &params)["error"].clone();
            assert_eq!(error["code"], -32000, "{method}: {error}");
            assert!(error["message"].as_str().unwrap().contains("sallyport setup"), "{error}");
        }
        // A model that is set up meanwhile is seen without a restart.
        let config = "default_model = \"offline\"\n";
        std::fs::write(home.path("sallyport.toml"), config).unwrap();
        assert_eq!(
            client.ask("authenticate", &json!({ "methodId": "setup" }))["result"],
            json!({})
        );
        client.new_session("/");
        assert_eq!(client.close(), 0);
        std::fs::remove_file(home.path("sallyport.toml")).unwrap();
    }
}

#[test]
fn a_turn_is_told_as_it_happens() {
    let model = OpenAi::start(vec![
        Reply::Thoughts("I could call a tool", "Let me see."),
        echo("c1", "hello"),
        Reply::Text("It says hello."),
    ]);
    let home = home(&model).guest("hostile", crate::limits::NET).policy(ALLOW);
    let mut client = AcpClient::greeted(&home);
    let session = client.new_session("/");
    assert_eq!(client.turn(&session, "think"), "end_turn");
    assert_eq!(client.texts("agent_thought_chunk"), "I could call a tool");
    assert_eq!(client.said(), "Let me see.");
    assert_eq!(client.turn(&session, "call it"), "end_turn");
    assert_eq!(client.said(), "Let me see.It says hello.");
    let begun = client.updates("tool_call");
    assert_eq!(begun.len(), 1, "{begun:?}");
    assert_eq!(begun[0]["title"], "hostile.echo");
    assert_eq!(begun[0]["rawInput"], json!({ "text": "hello" }));
    let id = begun[0]["toolCallId"].as_str().unwrap();
    let ended = client.finished_call(id);
    assert_eq!(ended["status"], "completed", "{ended}");
    assert!(ended["content"].to_string().contains("hello"), "{ended}");
    assert_eq!(client.close(), 0);
}

#[test]
fn a_written_file_is_shown_as_a_diff_before_and_after() {
    let write = |id, mode: &str, text: &str| {
        let arguments = json!({ "path": "/notes/a.md", "text": text, "mode": mode });
        Reply::call(id, "files__write", &arguments)
    };
    let model = OpenAi::start(vec![
        write("c1", "create", "one\n"),
        write("c2", "append", "two\n"),
        write("c3", "overwrite", "three\n"),
        Reply::Text("done"),
    ]);
    let home = home(&model).plugins(&["files"]).user_file("notes/other.md", "");
    let folder = home.user_path("notes");
    let home = home.policy(format!(
        "[plugin.files]\nfs = [{{ path = {folder:?}, mount = \"/notes\", access = \"read-write\" }}]\n"
    ));
    let file = folder.join("a.md");
    let file = file.to_str().unwrap();
    let mut client = AcpClient::greeted(&home);
    let session = client.new_session(folder.to_str().unwrap());
    let turn = client.prompt(&session, "write");
    let wanted =
        [(Value::Null, "one\n"), (json!("one\n"), "one\ntwo\n"), (json!("one\ntwo\n"), "three\n")];
    for (number, (old, new)) in wanted.iter().enumerate() {
        let question = client.question(number);
        let diff = json!({ "type": "diff", "path": file, "oldText": old, "newText": new });
        let content = &question["params"]["toolCall"]["content"];
        assert_eq!(content[1], diff, "{question}");
        client.choose(&question, "once");
        let call = question["params"]["toolCall"]["toolCallId"].as_str().unwrap();
        let ended = client.finished_call(call);
        assert!(ended["content"].as_array().unwrap().contains(&diff), "{ended}");
        assert_eq!(ended["locations"], json!([{ "path": file }]), "{ended}");
    }
    assert_eq!(client.stop_reason(turn), "end_turn");
    assert_eq!(std::fs::read_to_string(file).unwrap(), "three\n");
    let begun = client.updates("tool_call");
    assert!(begun.iter().all(|one| one["kind"] == "edit"), "{begun:?}");
    assert_eq!(client.close(), 0);
}

#[test]
fn the_client_chooses_mode_and_model() {
    let model = OpenAi::start(vec![echo("c1", "x"), Reply::Text("refused"), Reply::Text("hi")]);
    let home = asking_home(&model);
    let mut client = AcpClient::greeted(&home);
    let opened = client.ask("session/new", &json!({ "cwd": "/", "mcpServers": [] }));
    let opened = &opened["result"];
    assert_eq!(opened["modes"]["currentModeId"], "ask", "{opened}");
    let session = opened["sessionId"].as_str().unwrap().to_owned();
    let mode = |id: &str| json!({ "sessionId": session, "modeId": id });
    assert_eq!(client.ask("session/set_mode", &mode("yolo"))["error"]["code"], -32602);
    assert_eq!(client.ask("session/set_mode", &mode("deny-all"))["result"], json!({}));
    assert_eq!(client.turn(&session, "go"), "end_turn");
    assert_eq!(client.updates("tool_call_update")[0]["status"], "failed");
    let asked = client.messages().iter().any(|one| one["method"] == "session/request_permission");
    assert!(!asked, "nobody is asked in this mode");
    let option = &opened["configOptions"][0];
    assert_eq!((&option["id"], &option["type"]), (&json!("model"), &json!("select")));
    let set = |config: &str, value: &str| json!({ "sessionId": session, "configId": config, "value": value });
    for (config, value) in [("model", "openai/other"), ("mood", "good"), ("model", "")] {
        let answer = client.ask("session/set_config_option", &set(config, value));
        assert_eq!(answer["error"]["code"], -32602, "{answer}");
    }
    let answer = client.ask("session/set_config_option", &set("model", "offline"));
    assert_eq!(answer["result"]["configOptions"][0]["currentValue"], "offline", "{answer}");
    let asked = model.bodies().len();
    assert_eq!(client.turn(&session, "hello"), "end_turn");
    assert_eq!(model.bodies().len(), asked, "another model answered");
    assert_eq!(client.close(), 0);
}
