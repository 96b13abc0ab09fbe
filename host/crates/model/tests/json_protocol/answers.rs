//! The handling of a model's answers.

use std::time::Duration;

use proptest::prelude::*;
use sallyport_model::{
    ChatMessage, ChatModel, FinishReason, JsonProtocolModel, ModelCallRequest, ModelError,
    ReplyDelta, TokenUsage,
};
use std::sync::Arc;

use crate::scripted::{PRICE, Said, Scripted, USAGE};
use crate::{Outcome, answer, ask, call, get_time, read_aloud};

/// The joined deltas are the text, and nothing of the model's own form is passed on.
#[track_caller]
fn check_shown(outcome: &Outcome, text: &str, calls: &[ModelCallRequest]) {
    let message = &outcome.reply.message;
    assert_eq!(message.text, text);
    assert_eq!(message.calls, calls);
    assert_eq!(message.opaque, None);
    assert_eq!(read_aloud(&outcome.deltas), text);
    let begun = outcome.deltas.iter().filter_map(|delta| match delta {
        ReplyDelta::CallBegun { name } => Some(name.as_str()),
        _ => None,
    });
    assert!(begun.eq(calls.iter().map(|call| call.name.as_str())), "{:?}", outcome.deltas);
}

async fn check(said: &str, text: &str, calls: &[ModelCallRequest]) {
    let outcome = answer(vec![Said::text(said)]).await;
    check_shown(&outcome, text, calls);
    assert_eq!(outcome.asked.len(), 1, "{said}");
    assert_eq!(outcome.reply.usage, Some(USAGE));
    let finish = if calls.is_empty() { FinishReason::Stop } else { FinishReason::ToolCalls };
    assert_eq!(outcome.reply.finish, finish, "{said}");
}

#[tokio::test]
async fn replies_and_calls_come_out_as_a_native_models() {
    check(r#"{"reply":"It is noon."}"#, "It is noon.", &[]).await;
    check("```json\n{\"reply\":\"It is noon.\"}\n```", "It is noon.", &[]).await;
    check(r#"{"tool":" ","reply":"It is noon."}"#, "It is noon.", &[]).await;
    check("Well: {\"reply\":\"It is noon.\"}", "It is noon.", &[]).await;
    let utc = call("call_1", "get_time", r#"{"zone":"UTC"}"#);
    check(
        r#"{"tool":"get_time","args":{"zone":"UTC"},"reply":"Let me check that for you"}"#,
        "Let me check that for you",
        std::slice::from_ref(&utc),
    )
    .await;
    check(
        r#"{"reply":"Both.","tools":[{"tool":"get_time","args":{"zone":"UTC"}},{"tool":"get_time"}]}"#,
        "Both.",
        &[utc, call("call_2", "get_time", "{}")],
    )
    .await;
}

#[tokio::test]
async fn only_the_reply_is_seen_and_as_it_arrives() {
    let pieces = [
        "{\"to",
        "ol\":\"get_time\",\"args\":{\"reply\":\"no\"},\"reply\":\"Gr\\u00",
        "fc",
        "\\u00dfe \\ud83d",
        "\\ude00",
        "!\"",
        "}",
    ];
    let outcome = answer(vec![Said::pieces(&pieces)]).await;
    let text = |text: &str| ReplyDelta::Text { text: text.to_owned() };
    let begun = ReplyDelta::CallBegun { name: "get_time".to_owned() };
    assert_eq!(outcome.deltas, [begun, text("Gr"), text("ü"), text("ße "), text("😀"), text("!")]);
}

#[tokio::test]
async fn a_reply_that_was_seen_is_not_told_twice() {
    let broken = r#"{"reply":"It is noon.", oops}"#;
    for second in [broken, r#"{"reply":" It is noon. "}"#, "It is noon."] {
        let outcome = answer(vec![Said::text(broken), Said::text(second)]).await;
        check_shown(&outcome, "It is noon.", &[]);
    }
}

#[tokio::test]
async fn a_call_that_is_quoted_as_an_example_is_not_made() {
    let example = r#"To ask for the time, write {"tool":"get_time","args":{}}."#;
    let outcome = answer(vec![Said::text(example), Said::text(example)]).await;
    check_shown(&outcome, example, &[]);
    let told = format!("{:?}", outcome.asked[1]);
    assert!(told.contains("has to stand alone"), "{told}");
}

#[tokio::test]
async fn thinking_and_waits_pass_through() {
    let thinking = ReplyDelta::Reasoning { text: "hm".to_owned() };
    let retry =
        ReplyDelta::Retry { attempt: 2, wait: Duration::from_secs(1), reason: "busy".to_owned() };
    let text = |text: &str| ReplyDelta::Text { text: text.to_owned() };
    let pieces = vec![
        thinking.clone(),
        text("{\"tool\":\"x"),
        retry.clone(),
        text("{\"reply\":\"a"),
        text("b\"}"),
    ];
    let said = Said { pieces, ..Said::text("") };
    assert_eq!(answer(vec![said]).await.deltas, [thinking, retry, text("a"), text("b")]);
}

#[tokio::test]
async fn thinking_in_the_text_is_thinking() {
    let pieces = ["<thi", "nk>say ", "{\"reply\":1}</", "think>\n{\"reply\":\"a\"}"];
    let thinking = |text: &str| ReplyDelta::Reasoning { text: text.to_owned() };
    let outcome = answer(vec![Said::pieces(&pieces)]).await;
    let want =
        [thinking("say "), thinking("{\"reply\":1}"), ReplyDelta::Text { text: "a".to_owned() }];
    assert_eq!(outcome.deltas, want);
    assert_eq!(outcome.reply.message.text, "a");
    let script = vec![Said::text("<think>x</think>"), Said::text("<think>x</think> It is noon.")];
    let outcome = answer(script).await;
    assert_eq!(outcome.reply.message.text, "It is noon.");
    assert!(!format!("{:?}", outcome.asked[1]).contains("think>"));
}

#[tokio::test]
async fn a_malformed_answer_is_asked_for_once_more_with_what_was_wrong() {
    let rows = [
        ("It is noon.", "no JSON object"),
        (" ", "the answer was empty"),
        (r#"{"reply":"a"}{"reply":"b"}"#, "there were 2 JSON objects"),
        (r#"{"tool":"get_time","args":7}"#, "\"args\" was not a JSON object"),
        (r#"{"tool":"get_time","zone":"UTC"}"#, "\"zone\" has no meaning here"),
        (r#"{"reply":"It is "noon"."}"#, "not valid JSON"),
    ];
    for (said, wrong) in rows {
        let script = vec![Said::text(said), Said::text(r#"{"reply":"It is noon."}"#)];
        let outcome = answer(script).await;
        let [_, second] = outcome.asked.as_slice() else { panic!("{said}") };
        let Some(ChatMessage::User(last)) = second.last() else { panic!("{said}") };
        assert!(last.text.contains(wrong), "{}", last.text);
        let repeats =
            |m: &ChatMessage| matches!(m, ChatMessage::Assistant(own) if own.text == said);
        assert_eq!(second.iter().any(repeats), said != " ", "{said}");
        assert!(outcome.reply.message.text.ends_with("It is noon."));
        assert_eq!(read_aloud(&outcome.deltas), outcome.reply.message.text);
        let twice = TokenUsage {
            input_tokens: 20,
            output_tokens: 10,
            cached_input_tokens: 8,
            cache_write_tokens: 6,
            reasoning_tokens: 4,
        };
        assert_eq!(outcome.reply.usage, Some(twice));
    }
}

#[tokio::test]
async fn the_second_answer_is_seen_as_it_arrives_too() {
    let script = vec![Said::text("?"), Said::pieces(&["{\"reply\":\"a", "b\"}"])];
    let text = |text: &str| ReplyDelta::Text { text: text.to_owned() };
    assert_eq!(answer(script).await.deltas, [text("a"), text("b")]);
}

#[tokio::test]
async fn what_was_shown_before_the_repair_is_not_said_twice() {
    let broken = Said::text(r#"{"reply":"He said "hi" to me."}"#);
    let rows = [
        (r#"{"reply":"He said \"hi\" to me."}"#, "He said \"hi\" to me."),
        (r#"{"reply":"Hello."}"#, "He said \n\nHello."),
        (r#"{"reply":""}"#, "He said "),
    ];
    for (second, want) in rows {
        check_shown(&answer(vec![broken.clone(), Said::text(second)]).await, want, &[]);
    }
    let broken = Said::text(r#"{"tool":"get_time","reply":"Let me see","args":{]}"#);
    let second = Said::text(r#"{"tool":"get_time","reply":"Let me see"}"#);
    let calls = [call("call_1", "get_time", "{}")];
    check_shown(&answer(vec![broken, second]).await, "Let me see", &calls);
}

#[tokio::test]
async fn an_answer_that_stays_malformed_is_a_plain_reply() {
    for (said, want) in [
        ("It is noon.", "It is noon."),
        (" It is\nnoon. ", "It is\nnoon."),
        (r#"{"tool":"get_time","args":7}"#, r#"{"tool":"get_time","args":7}"#),
        ("", ""),
    ] {
        let outcome = answer(vec![Said::text("?"), Said::text(said)]).await;
        assert_eq!(outcome.reply.message.text, want);
        assert_eq!(outcome.reply.message.calls, []);
        assert_eq!(outcome.reply.finish, FinishReason::Stop);
        assert_eq!(read_aloud(&outcome.deltas), want);
        assert_eq!(outcome.asked.len(), 2);
    }
}

#[tokio::test]
async fn an_answer_that_was_cut_is_not_asked_for_again() {
    let rows = [
        (r#"{"reply":"It is no"#, "It is no"),
        (r#"{"tool":"get_time","args":{"zone":"U"#, ""),
        ("It is no", "It is no"),
        (r#"{"reply":"It is noon."}"#, "It is noon."),
    ];
    for finish in [FinishReason::Length, FinishReason::ContentFilter] {
        for (said, want) in rows {
            let outcome = answer(vec![Said::text(said).cut(finish.clone())]).await;
            assert_eq!(outcome.reply.message.text, want);
            assert_eq!(outcome.reply.message.calls, []);
            assert_eq!(outcome.reply.finish, finish);
            assert_eq!(read_aloud(&outcome.deltas), want);
        }
    }
}

#[tokio::test]
async fn native_calls_are_taken_with_ids_that_the_conversation_has_not() {
    let earlier = vec![call("call_1", "get_time", "{}")];
    let messages = [
        ChatMessage::user("What time is it?"),
        ChatMessage::Assistant(sallyport_model::AssistantMessage {
            calls: earlier,
            ..sallyport_model::AssistantMessage::default()
        }),
        ChatMessage::Tool(sallyport_model::ToolResultMessage {
            call_id: "call_1".to_owned(),
            name: "get_time".to_owned(),
            content: "{}".to_owned(),
            failed: false,
        }),
    ];
    let rows = [
        ("Again.", "Again."),
        (r#"{"reply":"Again."}"#, "Again."),
        (r#"{"tools":[{"tool":"x"}],"reply":"Again."}"#, "Again."),
        ("", ""),
    ];
    for (text, want) in rows {
        let said = Said {
            pieces: vec![
                ReplyDelta::Text { text: text.to_owned() },
                ReplyDelta::CallBegun { name: "get_time".to_owned() },
            ],
            calls: vec![call("call_1", "get_time", "{\"broken")],
            finish: FinishReason::ToolCalls,
        };
        let outcome = ask(vec![said], &messages, &[get_time()]).await.unwrap();
        check_shown(&outcome, want, &[call("call_2", "get_time", "{\"broken")]);
        assert_eq!(outcome.reply.finish, FinishReason::ToolCalls);
    }
}

#[tokio::test]
async fn a_lost_provider_is_told_and_nothing_is_asked_twice() {
    for script in [vec![], vec![Said::text("?")]] {
        let got = ask(script, &[ChatMessage::user("x")], &[]).await;
        assert!(matches!(got, Err(ModelError::Unreachable { .. })));
    }
}

#[test]
fn name_and_price_are_the_models() {
    let protocol = JsonProtocolModel::new(Arc::new(Scripted::new(Vec::new())));
    assert_eq!((protocol.name(), protocol.price()), ("scripted", Some(PRICE)));
}

proptest! {
    #[test]
    fn whatever_a_model_writes_the_deltas_are_the_text(
        first in proptest::collection::vec(r#"[{}":, a]|"reply":"|"tool":"x"|\\ud83d|é|```"#, 0..12),
        second in r#"([{}":, a]|"reply":"|"tool":"x"|"args":\{\}){0,9}"#,
    ) {
        let pieces: Vec<&str> = first.iter().map(String::as_str).collect();
        let runtime = tokio::runtime::Builder::new_current_thread().build().unwrap();
        let outcome =
            runtime.block_on(answer(vec![Said::pieces(&pieces), Said::text(&second)]));
        prop_assert_eq!(read_aloud(&outcome.deltas), outcome.reply.message.text);
        prop_assert!(outcome.asked.len() <= 2);
    }
}
