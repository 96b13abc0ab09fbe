//! Replays recordings of the live service, if they are available next to the repository.

use std::{
    io::Write as _,
    path::{Path, PathBuf},
};

use sallyport_sdk::{
    prelude::Value,
    provider::{Answer, Message, Request, ToolResult},
    testing,
};
use saphyr::{LoadableYamlNode, Yaml};

use crate::{
    generate,
    tests::{sent, service},
};

/// One recorded exchange.
struct Exchange {
    path: String,
    request: Value,
    status: u16,
    body: String,
}

#[test]
fn every_recorded_answer_is_understood_and_goes_back_as_it_came() {
    let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../../shared/cassettes/gemini");
    if !folder.is_dir() {
        // Written to stderr directly; the test harness would hide it.
        writeln!(std::io::stderr(), "SKIPPED: there are no recordings beside the repository")
            .unwrap();
        return;
    }
    let mut files = Vec::new();
    collect(&folder, &mut files);
    let mut played = 0;
    for file in &files {
        let text = std::fs::read_to_string(file).unwrap();
        let documents = Yaml::load_from_str(&text).unwrap();
        let exchanges: Vec<_> = documents.iter().filter_map(exchange).collect();
        played += exchanges.len();
        exchanges.iter().for_each(|exchange| play(exchange, file));
    }
    assert!(played > 0, "no recording is of a streamed answer");
}

fn play(exchange: &Exchange, file: &Path) {
    service(exchange.status, exchange.body.as_str());
    let history = vec![Message::user("x")];
    let answer = generate(Request { history: history.clone(), ..Request::default() });
    sent();
    testing::deltas();
    if exchange.status != 200 {
        assert!(answer.is_err(), "{}", file.display());
        return;
    }
    let answer = answer.unwrap_or_else(|error| panic!("{}: {error}", file.display()));
    assert!(answer.usage.is_some(), "{}", file.display());
    check_way_back(history, &answer, &exchange.body, file);
}

/// Every received signature must be sent back, on an otherwise identical answer.
fn check_way_back(mut history: Vec<Message>, answer: &Answer, body: &str, file: &Path) {
    history.push(Message::Assistant(answer.message.clone()));
    history.extend(answer.message.calls.iter().map(|call| {
        let (call_id, name) = (call.id.clone(), call.name.clone());
        let attachments = Vec::new();
        Message::Tool(ToolResult {
            call_id,
            name,
            content: Value::Null,
            attachments,
            failed: false,
        })
    }));
    let _ = generate(Request { history, ..Request::default() });
    testing::deltas();
    let again = sent().1["contents"].to_string();
    let signatures = |text: &str| text.matches("thoughtSignature").count();
    assert_eq!(signatures(&again), signatures(body), "{}", file.display());
    let calls = again.matches("functionCall\"").count();
    assert_eq!(calls, body.matches("functionCall\"").count(), "{}", file.display());
}

fn collect(folder: &Path, files: &mut Vec<PathBuf>) {
    for entry in std::fs::read_dir(folder).unwrap() {
        let path = entry.unwrap().path();
        if path.is_dir() {
            collect(&path, files);
        } else if path.extension().is_some_and(|extension| extension == "yaml") {
            files.push(path);
        }
    }
}

/// Parses an exchange; `None` if it used another method of the service.
fn exchange(document: &Yaml<'_>) -> Option<Exchange> {
    let (when, then) = (document.as_mapping_get("when")?, document.as_mapping_get("then")?);
    let path = when.as_mapping_get("path")?.as_str()?.to_owned();
    let request = serde_json::from_str(when.as_mapping_get("body")?.as_str()?).ok()?;
    let status = then.as_mapping_get("status")?.as_integer()?.try_into().ok()?;
    let body = then.as_mapping_get("body")?.as_str()?.to_owned();
    let exchange = Exchange { path, request, status, body };
    let is_streamed = exchange.path.ends_with(":streamGenerateContent");
    (is_streamed && exchange.request.is_object()).then_some(exchange)
}
