//! Every kind of line can be read back, and every text of it can be cleaned.

use std::time::Duration;

use sallyport_contract::{
    CallFailure, CallReport, ContentPart, Denial, Effect, FailureKind, FixRule, LogLevel, Outcome,
    PolicyFix, ResourceContents, ResourceData, Secret, ToolOutput,
    services::{InputOrigin, NoticeAudience, PluginNotice},
};
use sallyport_model::{
    AssistantMessage, ChatMessage, FileAttachment, FinishReason, ModelCallRequest, ModelError,
    ModelReply, OmittedContent, OpaqueMessage, ReplyDelta, TokenUsage, ToolResultMessage,
};
use serde_json::json;

use super::*;
use crate::RecalledMemory;
use crate::recording::{
    clean,
    line::{
        AnswerOutcome, DecisionOutcome, RecallOutcome, RecordedAnswer, RecordedDecision,
        RecordedReport, RecordingLine, RunOutcome,
    },
};

const SECRET: &str = "correct-horse";

fn secret() -> String {
    SECRET.to_owned()
}

fn failure() -> CallFailure {
    CallFailure::new(FailureKind::AuthRequired, secret()).with_detail(secret())
}

fn denial() -> Denial {
    Denial { nobody_to_ask: true, ..Denial::new(secret(), secret()).with_fix(Some(fix(&secret()))) }
}

fn embedded(data: ResourceData) -> ContentPart {
    ContentPart::Embedded(ResourceContents { uri: secret(), media_type: Some(secret()), data })
}

fn outcomes() -> Vec<Outcome> {
    let content = vec![
        ContentPart::Text { text: secret() },
        ContentPart::Image { media_type: secret(), data: SECRET.into() },
        ContentPart::Audio { media_type: secret(), data: SECRET.into() },
        ContentPart::Resource { uri: secret(), media_type: Some(secret()), title: Some(secret()) },
        embedded(ResourceData::Text(secret())),
        embedded(ResourceData::Binary(SECRET.into())),
    ];
    let data = json!({ "n": -1.5, SECRET: [SECRET] });
    vec![
        Outcome::Completed(ToolOutput { data, content, speech: Some(secret()) }),
        Outcome::Failed(failure()),
        Outcome::Denied(denial()),
        Outcome::InvalidArguments(failure()),
        Outcome::TimedOut { limit: Duration::from_millis(1500) },
        Outcome::Cancelled,
    ]
}

fn effects() -> Vec<Effect> {
    let (sent_bytes, received_bytes) = (1, u64::MAX);
    vec![
        Effect::Logged { level: LogLevel::Warn, text: secret() },
        Effect::Requested { what: secret(), status: Some(200), sent_bytes, received_bytes },
        Effect::Requested { what: secret(), status: None, sent_bytes, received_bytes },
        Effect::Changed { path: secret() },
        Effect::SecretUsed { name: secret(), to: Some(secret()) },
        Effect::Used { capability: secret(), what: secret() },
        Effect::Asked { what: secret(), answer: secret() },
        Effect::Refused(denial()),
    ]
}

fn reports() -> impl Iterator<Item = CallReport> {
    outcomes().into_iter().map(|outcome| CallReport {
        outcome,
        effects: effects(),
        elapsed: Duration::from_millis(3_999),
        memory_bytes_peak: 65_536,
    })
}

fn errors() -> Vec<ModelError> {
    let (provider, message, retry_after) = (secret(), secret(), Some(Duration::from_secs(2)));
    let (p, m) = (|| provider.clone(), || message.clone());
    vec![
        ModelError::Credentials { provider: p(), message: m() },
        ModelError::Unreachable { provider: p(), message: m() },
        ModelError::RateLimited { provider: p(), message: m(), retry_after },
        ModelError::Refused { provider: p(), status: 500, message: m(), retry_after: None },
        ModelError::Broken { provider: p(), message: m() },
        ModelError::TimedOut { provider: p(), time: Duration::from_secs(1) },
        ModelError::TooLong { provider: p(), message: m() },
        ModelError::Spent { provider: p(), message: m() },
    ]
}

fn replies() -> impl Iterator<Item = ModelReply> {
    let finishes = [
        FinishReason::Stop,
        FinishReason::ToolCalls,
        FinishReason::Length,
        FinishReason::ContentFilter,
        FinishReason::Other(secret()),
    ];
    finishes.into_iter().map(|finish| {
        let call = ModelCallRequest { id: secret(), name: secret(), arguments: secret() };
        let opaque = OpaqueMessage { origin: secret(), body: json!([SECRET, { SECRET: 1 }]) };
        let (calls, opaque) = (vec![call], Some(opaque));
        let message = AssistantMessage { text: secret(), calls, opaque };
        let usage =
            Some(TokenUsage { input_tokens: 7, reasoning_tokens: 1, ..TokenUsage::default() });
        ModelReply { message, finish, usage }
    })
}

fn deltas() -> Vec<ReplyDelta> {
    vec![
        ReplyDelta::Text { text: secret() },
        ReplyDelta::Reasoning { text: secret() },
        ReplyDelta::CallBegun { name: secret() },
        ReplyDelta::Retry { attempt: 2, wait: Duration::from_secs(1), reason: secret() },
        ReplyDelta::LeftOut(OmittedContent::Tool { name: secret(), why: secret() }),
        ReplyDelta::LeftOut(OmittedContent::File {
            name: secret(),
            media_type: secret(),
            bytes: 1,
        }),
    ]
}

fn input() -> UserInputMessage {
    let file =
        FileAttachment { name: secret(), media_type: secret(), data: Arc::from(SECRET.as_bytes()) };
    let origin = InputOrigin {
        plugin: "webhook".parse().unwrap(),
        label: Some(secret()),
        connection: Some(secret()),
    };
    let (text, aside) = (secret(), Some(secret()));
    UserInputMessage { text, attachments: vec![file], origin: Some(origin), aside }
}

fn notice() -> PluginNotice {
    PluginNotice {
        plugin: "timer".parse().unwrap(),
        session_id: secret(),
        text: secret(),
        speech: Some(secret()),
        audience: NoticeAudience::User,
        late: true,
    }
}

fn recalled() -> RecalledMemory {
    RecalledMemory { id: secret(), text: secret(), similarity: 0.25, turn: Some(3) }
}

fn lines() -> Vec<RecordingLine> {
    let answered =
        |end| RecordingLine::Answer(RecordedAnswer { request: 3, deltas: deltas(), end });
    let tool = "t.echo".parse::<sallyport_contract::ToolId>().unwrap();
    let decided = |end| {
        let (call, tool, arguments) = ("c1".to_owned(), tool.clone(), "{".to_owned());
        RecordingLine::Decision(RecordedDecision { call, tool, arguments, end })
    };
    let reported = |end| RecordingLine::Report(RecordedReport { call: "c1".to_owned(), end });
    let admitted =
        DecisionOutcome::Admitted { arguments: json!({ "x": 1 }), grounds: "rule".into() };
    let mut lines = vec![
        RecordingLine::Input { message: input() },
        RecordingLine::Cancel,
        RecordingLine::Noticed { notice: notice() },
        RecordingLine::Recalls,
        RecordingLine::Recalled { end: RecallOutcome::Dropped },
        RecordingLine::Recalled { end: RecallOutcome::Failed(secret()) },
        RecordingLine::Recalled { end: RecallOutcome::Found(vec![recalled()]) },
        RecordingLine::Turn { elapsed: Duration::from_millis(20) },
        answered(AnswerOutcome::Dropped),
        decided(admitted),
        decided(DecisionOutcome::Dropped),
        reported(RunOutcome::Dropped),
    ];
    lines.extend(replies().map(|reply| answered(AnswerOutcome::Reply(reply))));
    lines.extend(errors().into_iter().map(|error| answered(AnswerOutcome::Failed(error))));
    lines.extend(reports().map(|report| decided(DecisionOutcome::Refused(report))));
    lines.extend(reports().map(|report| reported(RunOutcome::Finished(report))));
    lines
}

#[test]
fn lines_come_back_as_they_were() {
    for line in lines() {
        let text = serde_json::to_string(&line).unwrap();
        let again: RecordingLine = serde_json::from_str(&text).unwrap();
        assert_eq!(format!("{again:?}"), format!("{line:?}"));
        assert_eq!(serde_json::to_string(&again).unwrap(), text);
    }
}

#[test]
fn no_field_lets_a_secret_through() {
    let redactor = Redactor::new([("s", &Secret::new(SECRET))]);
    let check = |text: String| assert!(!text.contains("horse"), "{text}");
    for mut reply in replies() {
        clean::clean_reply(&redactor, &mut reply);
        check(format!("{reply:?}"));
    }
    let mut said = notice();
    clean::clean_notice(&redactor, &mut said);
    check(format!("{said:?}"));
    for mut end in [RecallOutcome::Failed(secret()), RecallOutcome::Found(vec![recalled()])] {
        clean::clean_recall(&redactor, &mut end);
        check(format!("{end:?}"));
    }
    for mut error in errors() {
        clean::clean_error(&redactor, &mut error);
        check(format!("{error:?}"));
    }
    let mut all = deltas();
    clean::clean_deltas(&redactor, &mut all);
    check(format!("{all:?}"));
    let (call_id, name, content) = (secret(), secret(), secret());
    let result = ToolResultMessage { call_id, name, content, failed: true };
    let messages = [
        ChatMessage::System { text: secret() },
        ChatMessage::User(input()),
        ChatMessage::Tool(result),
    ];
    for mut message in messages {
        clean::clean_message(&redactor, &mut message);
        check(serde_json::to_string(&message).unwrap());
    }
    let mut said = input();
    clean::clean_input(&redactor, &mut said);
    assert_eq!(&*said.attachments[0].data, b"[secret s]");
}

/// A fix with this policy text.
fn fix(toml: &str) -> PolicyFix {
    let rule = FixRule { tool: "*".to_owned(), net: None, page: None };
    PolicyFix::from_rule("t".parse().unwrap(), rule, toml)
}
