//! The plugin provider-gemini against a server of the loopback that speaks as the service does: in
//! pieces, with signatures, and with the key where the host puts it.

use std::sync::atomic::{AtomicUsize, Ordering};

use data_encoding::BASE64;
use serde_json::{Value, json};

use crate::support::{
    Home, Response, Server,
    events::{events, of_kind},
};

const KEY: &str = "AIza-not-a-real-key-4711";

/// Pieces of an answer, as the service streams them.
fn pieces(pieces: &[Value]) -> Response {
    let events: Vec<String> = pieces.iter().map(|piece| format!("data: {piece}\r\n\r\n")).collect();
    Response::with(200, &[("content-type", "text/event-stream")], &events.concat())
}

fn piece(parts: &Value, finish: Option<&str>) -> Value {
    let mut candidate = json!({ "content": { "role": "model", "parts": parts }, "index": 0 });
    if let Some(finish) = finish {
        candidate["finishReason"] = json!(finish);
    }
    let usage = json!({ "promptTokenCount": 30, "candidatesTokenCount": 5, "totalTokenCount": 35 });
    json!({ "candidates": [candidate], "usageMetadata": usage, "modelVersion": "gemini-2.5-flash" })
}

/// Calls the clock, and then says what it was told.
fn service() -> Server {
    let asked = AtomicUsize::new(0);
    Server::start(move |_| match asked.fetch_add(1, Ordering::SeqCst) {
        0 => {
            let call = json!({ "name": "clock__get_time", "args": { "timezone": "UTC" } });
            pieces(&[piece(
                &json!([{ "functionCall": call, "thoughtSignature": "c2ln" }]),
                Some("STOP"),
            )])
        }
        _ => pieces(&[
            piece(&json!([{ "text": "It is " }]), None),
            piece(&json!([{ "text": "noon." }]), Some("STOP")),
        ]),
    })
}

fn policy(url: &str) -> String {
    format!(
        "[plugin.provider-gemini]\nnet = [{{ allow = \"POST {url}/v1beta/**\", to-private = true }}]\n\
         secrets = [{{ name = \"gemini\", to = \"{url}\", header = \"x-goog-api-key\" }}]\n\
         [secret.gemini]\nenv = \"GEMINI_KEY\"\n\
         [[rule]]\ntool = \"provider-gemini.*\"\ndecision = \"allow\"\n"
    )
}

fn home(server: &Server) -> Home {
    let home = Home::new().plugins(&["provider-gemini", "clock"]).env("GEMINI_KEY", KEY);
    home.config(format!("[settings.provider-gemini]\nbase_url = '{}'", server.url()))
}

const GEMINI: [&str; 3] = ["run", "--provider", "plugin:provider-gemini"];

#[test]
fn a_conversation_goes_through_the_plugin_with_the_key_of_the_host() {
    let server = service();
    let home = home(&server).policy(policy(&server.url()));
    let flags = ["--output", "jsonl", "--system", "Be brief.", "What time is it?"];
    let ran = home.run(&[&GEMINI[..], &flags].concat()).ended(0);
    let all = events(&ran);
    let texts =
        of_kind(&all, "text-delta").into_iter().map(|delta| delta["text"].as_str().unwrap());
    assert_eq!(texts.collect::<Vec<_>>(), ["It is ", "noon."]);
    let calls = of_kind(&all, "call-finished");
    assert_eq!(
        (calls[0]["tool"].as_str(), calls[0]["outcome"].as_str()),
        (Some("clock.get_time"), Some("completed"))
    );
    let seen = server.seen();
    assert!(seen.iter().all(|request| request.header("x-goog-api-key") == Some(KEY)));
    assert!(seen[0].target.starts_with("/v1beta/models/gemini-2.5-flash:streamGenerateContent"));
    let bodies: Vec<Value> =
        seen.iter().map(|request| serde_json::from_str(&request.body).unwrap()).collect();
    assert_eq!(bodies[0]["systemInstruction"]["parts"][0]["text"], "Be brief.");
    assert!(bodies[0]["tools"].to_string().contains("clock__get_time"));
    assert!(bodies[1]["contents"].to_string().contains("c2ln"), "the signature goes back");
    assert!(bodies[1]["contents"].to_string().contains("functionResponse"));
    assert!(!seen.iter().any(|request| request.body.contains(KEY)));
    ran.hides(&[KEY]);
}

#[test]
fn files_as_large_as_the_documents_allow_reach_the_service() {
    for (bytes, name, head, kind) in [
        (9_090_000, "cat.png", &b"\x89PNG\r\n\x1a\n"[..], "image/png"),
        (10 << 20, "large.png", b"\x89PNG\r\n\x1a\n", "image/png"),
        (15 << 20, "large.wav", b"RIFF\0\0\0\0WAVEfmt ", "audio/"),
    ] {
        let server = Server::start(|_| pieces(&[piece(&json!([{ "text": "yes" }]), Some("STOP"))]));
        let limits = "limits = { time = \"60s\", http-body = \"32MiB\", http-total = \"96MiB\" }\n\
                      [secret.gemini]";
        let policy = policy(&server.url()).replace("[secret.gemini]", limits);
        let mut file = head.to_vec();
        file.resize(bytes, b'x');
        let home = home(&server).policy(policy).user_file(name, &file);
        let path = home.user_path(name);
        let flags = ["--attach", path.to_str().unwrap(), "What is it?"];
        home.run(&[&GEMINI[..], &flags].concat()).ended(0).answers(&["yes"]);
        let body: Value = serde_json::from_str(&server.seen()[0].body).unwrap();
        let sent = &body["contents"][0]["parts"][0]["inlineData"];
        assert!(sent["mimeType"].as_str().unwrap().starts_with(kind), "{name}");
        let data = BASE64.decode(sent["data"].as_str().unwrap().as_bytes()).unwrap();
        assert!(data == file, "{name}: every byte arrives");
    }
}

#[test]
fn what_the_plugin_lacks_is_told_with_the_text_of_the_policy() {
    let server = service();
    let home = home(&server);
    let ask = |flags: &[&str]| home.run(&[&GEMINI[..], flags, &["hi"]].concat());
    ask(&[]).ended(3).remarks(&[
        "its policy grants no network access",
        "policy grant provider-gemini --requested",
    ]);
    let printed = ask(&["--emit-needed-grants"]).ended(3);
    printed.answers(&["[plugin.provider-gemini]", "/v1beta/**"]);
    assert!(server.seen().is_empty());
    ask(&["--output", "json"]).ended(3).answers(&["[plugin.provider-gemini]"]);
}

#[test]
fn what_the_service_refuses_keeps_its_meaning() {
    for (status, message, code, words) in [
        (403, "permission denied", 4, "refused the credentials"),
        (400, "API key not valid", 4, "API key not valid"),
        (404, "no such model", 1, "no such model"),
    ] {
        let body = json!({ "error": { "code": status, "message": message } }).to_string();
        let server = Server::start(move |_| Response::with(status, &[], &body));
        let home = home(&server).policy(policy(&server.url()));
        home.run(&[&GEMINI[..], &["hi"]].concat()).ended(code).remarks(&[words]);
        let check = home.run(&["model", "check", "plugin:provider-gemini"]).ended(code);
        check.answers(&["provider-gemini is a provider", words]);
    }
    let server = Server::start(|_| pieces(&[piece(&json!([{ "text": "yes" }]), Some("STOP"))]));
    let home = home(&server).policy(policy(&server.url()));
    home.run(&["model", "check", "plugin:provider-gemini"]).ended(0).answers(&["it says \"yes\""]);
}

#[test]
fn an_answer_that_ended_for_a_reason_of_the_service_says_so_and_is_none() {
    let reason = "MALFORMED_FUNCTION_CALL";
    let server = Server::start(move |_| pieces(&[piece(&json!([]), Some(reason))]));
    let home = home(&server).policy(policy(&server.url()));
    home.run(&[&GEMINI[..], &["hi"]].concat()).ended(1).remarks(&[reason]);
}
