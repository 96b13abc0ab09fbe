//! Models at the command line: which one is used and why, which a server has, and whether one
//! works.

use serde_json::json;

use crate::support::{Home, Response, Server};

const JSON: &[(&str, &str)] = &[("content-type", "application/json")];

/// A server that has two models, answers, and calls the tool of a check where it is given that.
fn server() -> Server {
    Server::start(|request| {
        if request.method == "GET" {
            let models =
                json!({ "data": [{ "id": "small", "context_length": 4096 }, { "id": "large" }] });
            return Response::with(200, JSON, &models.to_string());
        }
        let call = json!({ "id": "1", "type": "function",
            "function": { "name": "repeat", "arguments": "{\"text\":\"ready\"}" } });
        let message = match request.body.contains("\"repeat\"") {
            true => json!({ "role": "assistant", "content": null, "tool_calls": [call] }),
            false => json!({ "role": "assistant", "content": "ready" }),
        };
        let choice = json!({ "index": 0, "message": message, "finish_reason": "stop" });
        Response::with(200, JSON, &json!({ "choices": [choice] }).to_string())
    })
}

fn home(url: &str) -> Home {
    Home::new().config(format!(
        "default_model = 'work'\n[model.work]\nprovider = 'openai'\nmodel = 'small'\n\
         base_url = '{url}/v1'\nstream = false\n[model.other]\nprovider = 'ollama'\nmodel = 'q'\n"
    ))
}

#[test]
fn the_list_says_which_one_is_used_and_why() {
    let work = home("http://127.0.0.1:1");
    let list = ["model", "list"];
    work.run(&list).ended(0).answers(&["other", "ollama q", "(used: default_model of the"]);
    let json = work.run(&["model", "list", "--output", "json"]).ended(0).json();
    assert_eq!(json["models"][0]["name"], "other");
    assert_eq!(json["models"][1]["used"], true);
    let ollama = Home::new().env("OLLAMA_MODEL", "qwen3:4b");
    ollama.run(&list).ended(0).answers(&["ollama/qwen3:4b", "the variable OLLAMA_MODEL names it"]);
    let key = Home::new().env("ANTHROPIC_API_KEY", "k");
    key.run(&list)
        .ended(0)
        .answers(&["offline", "(used: nothing else is chosen)"])
        .remarks(&["ANTHROPIC_API_KEY is set", "--model anthropic/NAME"]);
    key.run(&["run", "hi"]).remarks(&["No model is configured", "--model anthropic/NAME"]);
}

#[test]
fn a_server_tells_which_models_it_has() {
    let server = server();
    let home = home(&server.url());
    let list = ["model", "list", "--remote"];
    home.run(&list).ended(0).answers(&["large", "small", "context 4096"]);
    let env = Home::new().env("OPENAI_BASE_URL", format!("{}/v1", server.url()));
    env.run(&["model", "list", "--remote", "--provider", "openai"]).ended(0).answers(&["large"]);
    env.run(&list).ended(3).remarks(&["no model is configured", "OPENAI_BASE_URL is set"]);
    let nobody = ["model", "list", "--remote", "--provider", "nobody"];
    env.run(&nobody).ended(3).remarks(&["there is no provider", "the providers are openai"]);
    env.run(&["model", "list", "--provider", "openai"]).ended(2).remarks(&["--remote"]);
}

#[test]
fn a_model_is_checked_step_by_step() {
    let server = server();
    let home = home(&server.url());
    home.run(&["model", "check"]).ended(0).answers(&["the server answers", "it calls a tool"]);
    let told = home.run(&["model", "check", "work", "--output", "json"]).ended(0).json();
    assert_eq!(told["steps"][4]["id"], "tool-call");
    assert_eq!(told["steps"][4]["status"], "ok");
    home.run(&["model", "check", "offline"]).ended(0);
}

#[test]
fn a_check_that_fails_ends_with_the_code_of_its_reason() {
    let refuses = Server::start(|_| Response::with(401, JSON, "{\"error\":{\"message\":\"no\"}}"));
    let check = ["model", "check"];
    home(&refuses.url()).run(&check).ended(4).answers(&["failed", "set OPENAI_API_KEY, or `key`"]);
    home("http://127.0.0.1:1").run(&check).ended(5).answers(&["comes from the configuration file"]);
    home("ftp://x").run(&check).ended(3).answers(&["neither http nor https"]);
    let broken = Server::start(|_| Response::with(400, JSON, "{\"error\":{\"message\":\"no\"}}"));
    home(&broken.url()).run(&check).ended(1);
    Home::new().run(&check).ended(3).remarks(&["no model is configured"]);
    let several = Home::new().env("ANTHROPIC_API_KEY", "k").env("GEMINI_API_KEY", "k");
    several.run(&["model", "check", "x"]).ended(3).remarks(&["anthropic/x or gemini/x"]);
}

#[test]
fn the_doctor_misses_a_key_that_will_be_asked_for() {
    let home = Home::new().env("SALLYPORT_MODEL", "mistral/small");
    let remedy = "set MISTRAL_API_KEY, or run `sallyport setup`";
    home.run(&["doctor"]).ended(0).answers(&["warning", "mistral/small needs a key", remedy]);
    home.env("MISTRAL_API_KEY", "k")
        .run(&["doctor"])
        .ended(0)
        .answers(&["with a key"])
        .hides(&[remedy]);
}

#[test]
fn flags_name_a_provider_and_a_model() {
    let server = server();
    let home = Home::new().env("OPENAI_BASE_URL", format!("{}/v1", server.url()));
    let home = home.config("[internal]\nreminder = false\n");
    for flags in
        [&["--provider", "openai", "--model", "vendor/small"][..], &["-m", "openai/vendor/small"]]
    {
        home.run(&[&["run", "--no-stream"], flags, &["hi"]].concat()).ended(0).answers(&["ready"]);
    }
    let seen = server.seen();
    assert!(seen.iter().all(|request| request.body.contains("\"vendor/small\"")));
    assert_eq!(seen.len(), 2);
}
