//! The kept form is what would be written anew, and only new messages are written.

use std::cell::Cell;

use serde_json::{json, value::RawValue};

use super::{KEPT_BYTES_MAX, KeptMessages, SingleMessageWriter};
use crate::{
    chat::{
        AssistantMessage, ChatMessage, ModelCallRequest, ModelToolDefinition, OpaqueMessage,
        ToolResultMessage,
    },
    chat_model::ModelRequest,
    endpoint::ModelEndpoint,
    fit::{FittedTools, SchemaDialect},
    openai::ChatCompletionsFormat,
    protocol::ProviderProtocol,
    wire::WireFormat,
};

/// Counts the messages that are written.
struct CountingWriter<'a> {
    inner: &'a dyn SingleMessageWriter,
    count: Cell<usize>,
}

impl SingleMessageWriter for CountingWriter<'_> {
    fn message_json(&self, message: &ChatMessage) -> Box<RawValue> {
        self.count.set(self.count.get() + 1);
        self.inner.message_json(message)
    }

    fn body_with(&self, messages: &[Box<RawValue>]) -> Vec<u8> {
        self.inner.body_with(messages)
    }
}

fn endpoint(model: &str) -> ModelEndpoint {
    ModelEndpoint::new(ProviderProtocol::OpenAiChat, "http://localhost:8080/v1", model)
}

/// Writes a request from what is kept. Returns its body and how many messages were written.
fn write(
    kept: &KeptMessages,
    messages: &[ChatMessage],
    fit: &FittedTools,
    model: &str,
) -> (Vec<u8>, usize) {
    let endpoint = endpoint(model);
    let inner = ChatCompletionsFormat.message_writer(&endpoint, None).unwrap();
    let writer = CountingWriter { inner: &*inner, count: Cell::new(0) };
    let body = kept.write_body(messages, fit, &endpoint.origin(), &writer);
    (body, writer.count.get())
}

/// Checks such a request against one that is written whole.
fn check(kept: &KeptMessages, messages: &[ChatMessage], fit: &FittedTools, model: &str) {
    let (body, _) = write(kept, messages, fit, model);
    let endpoint = endpoint(model);
    let fitted = fit.fit_history(messages, &endpoint.origin());
    let request = ModelRequest { messages: &fitted, ..ModelRequest::default() };
    let whole = ChatCompletionsFormat.request_body(&endpoint, request, None);
    assert_eq!(String::from_utf8(body).unwrap(), String::from_utf8(whole).unwrap());
}

/// A turn with one call. Some ids repeat, some arguments are broken, some answers have a form of
/// their provider.
fn turn(n: usize) -> [ChatMessage; 4] {
    let arguments = ["{\"a b\":1}", "", "{\"cut", "[1]", "{\"k\":{\"a b\":\"é\"}}"][n % 5];
    let (id, name) = (format!("id {}", n % 7), ["t", "t t", "other"][n % 3].to_owned());
    let call = ModelCallRequest { id: id.clone(), name: name.clone(), arguments: arguments.into() };
    let body = json!({
        "role": "assistant", "z": n, "content": null,
        "tool_calls": [{ "id": id, "function": { "name": name, "arguments": arguments } }],
    });
    let opaque = OpaqueMessage { origin: ["openai/m", "openai/n"][n % 2].to_owned(), body };
    let answer = AssistantMessage {
        calls: vec![call],
        opaque: (!n.is_multiple_of(4)).then_some(opaque),
        ..AssistantMessage::default()
    };
    let content = format!("{{\"n\":{n}}}");
    let result = ToolResultMessage { call_id: id, name, content, failed: false };
    let text = AssistantMessage { text: format!("answer {n}"), ..AssistantMessage::default() };
    [
        ChatMessage::user(format!("input {n}")),
        ChatMessage::Assistant(answer),
        ChatMessage::Tool(result),
        ChatMessage::Assistant(text),
    ]
}

/// Tools of which one has a property that is renamed.
fn renaming_tools() -> FittedTools {
    let parameters = json!({ "type": "object", "properties": { "a b": {} } });
    let tool = ModelToolDefinition { name: "t".to_owned(), description: String::new(), parameters };
    FittedTools::new(&[tool], SchemaDialect::STRICTEST)
}

/// A small generator: the same numbers in every run.
fn next(state: &mut u64) -> usize {
    *state = state.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1);
    usize::try_from(*state >> 40).unwrap()
}

#[test]
fn the_kept_form_is_the_form_made_anew_over_random_histories() {
    let fits = [FittedTools::default(), renaming_tools()];
    for seed in 0..8 {
        let (mut state, kept) = (seed, KeptMessages::default());
        let (mut messages, mut fit, mut model) = (Vec::new(), 0, "m");
        for n in 0..40 {
            match next(&mut state) % 12 {
                0 => messages.truncate(next(&mut state) % (messages.len() + 1)),
                1 => drop(messages.drain(..next(&mut state) % (messages.len() + 1))),
                2 => fit = 1 - fit,
                3 => model = ["m", "n"][next(&mut state) % 2],
                4 => {
                    messages.splice(0..0, [ChatMessage::System { text: "s".into() }]).for_each(drop)
                }
                5 => messages.iter_mut().for_each(redact),
                _ => messages.extend(turn(next(&mut state) + n)),
            }
            check(&kept, &messages, &fits[fit], model);
        }
    }
}

fn redact(message: &mut ChatMessage) {
    if let ChatMessage::Tool(result) = message {
        result.content = result.content.replace('7', "[secret]");
    }
}

#[test]
fn an_answer_writes_its_own_messages_alone_however_long_the_history_is() {
    let (kept, fit) = (KeptMessages::default(), FittedTools::default());
    let mut messages = Vec::new();
    for n in 0..500 {
        let [input, call, result, answer] = turn(n);
        messages.push(input);
        let (_, first) = write(&kept, &messages, &fit, "m");
        messages.extend([call, result]);
        let (_, second) = write(&kept, &messages, &fit, "m");
        assert_eq!((first, second), (1 + usize::from(n > 0), 2), "{n}");
        messages.push(answer);
    }
}

#[test]
fn a_conversation_that_is_too_long_is_not_kept() {
    let (kept, fit) = (KeptMessages::default(), FittedTools::default());
    let messages = [ChatMessage::user("x".repeat(KEPT_BYTES_MAX))];
    for _ in 0..2 {
        assert_eq!(write(&kept, &messages, &fit, "m").1, 1);
    }
    assert!(kept.0.lock().unwrap().sources.is_empty());
}
