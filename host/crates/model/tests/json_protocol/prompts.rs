//! The messages that the model receives.

use sallyport_contract::services::InputOrigin;
use sallyport_model::{
    AssistantMessage, ChatMessage, FileAttachment, ModelCallRequest, ModelToolDefinition,
    ToolResultMessage, UserInputMessage,
};
use serde_json::{Value, json};

use crate::scripted::Said;
use crate::{ask, call, get_time};

/// Returns the messages that reached the model.
async fn told(messages: &[ChatMessage], tools: &[ModelToolDefinition]) -> Vec<ChatMessage> {
    let script = vec![Said::text(r#"{"reply":"ok"}"#)];
    ask(script, messages, tools).await.unwrap().asked.remove(0)
}

async fn instructions(tools: &[ModelToolDefinition]) -> String {
    match told(&[ChatMessage::user("x")], tools).await.remove(0) {
        ChatMessage::System { text } => text,
        other => panic!("{other:?}"),
    }
}

fn said(text: &str, calls: Vec<ModelCallRequest>) -> ChatMessage {
    ChatMessage::Assistant(AssistantMessage {
        text: text.to_owned(),
        calls,
        opaque: Some(sallyport_model::OpaqueMessage { origin: "x".to_owned(), body: json!(1) }),
    })
}

fn plain(text: &str) -> ChatMessage {
    ChatMessage::Assistant(AssistantMessage {
        text: text.to_owned(),
        ..AssistantMessage::default()
    })
}

fn result(name: &str, content: &str, failed: bool) -> ChatMessage {
    ChatMessage::Tool(ToolResultMessage {
        call_id: "id".to_owned(),
        name: name.to_owned(),
        content: content.to_owned(),
        failed,
    })
}

/// Compares the messages after the system message.
async fn check(messages: &[ChatMessage], want: &[ChatMessage]) {
    let told = told(messages, &[get_time()]).await;
    assert!(matches!(told[0], ChatMessage::System { .. }));
    assert_eq!(&told[1..], want);
}

#[tokio::test]
async fn earlier_answers_stand_in_the_form_that_is_wanted() {
    let time = |id: &str, arguments: &str| call(id, "get_time", arguments);
    let rows = [
        (said("hi \"you\"", vec![]), r#"{"reply":"hi \"you\""}"#),
        (said("", vec![]), r#"{"reply":""}"#),
        (
            said("look", vec![time("a", r#"{"zone": "UTC"}"#)]),
            r#"{"tool":"get_time","args":{"zone": "UTC"},"reply":"look"}"#,
        ),
        (said("", vec![time("a", "")]), r#"{"tool":"get_time","args":{},"reply":""}"#),
        (said("", vec![time("a", "{\"zo")]), r#"{"tool":"get_time","args":"{\"zo","reply":""}"#),
        (
            said("", vec![time("a", "{}"), time("b", "{\n}")]),
            r#"{"tools":[{"tool":"get_time","args":{}},{"tool":"get_time","args":{ }}],"reply":""}"#,
        ),
    ];
    for (message, want) in rows {
        let messages = [ChatMessage::user("x"), message, ChatMessage::user("y")];
        check(&messages, &[ChatMessage::user("x"), plain(want), ChatMessage::user("y")]).await;
    }
}

#[tokio::test]
async fn results_are_lines_of_the_users_and_roles_alternate() {
    let calls = said("", vec![call("a", "f", ""), call("b", "g", "")]);
    let asked = r#"{"tools":[{"tool":"f","args":{}},{"tool":"g","args":{}}],"reply":""}"#;
    let one = "Results of the tools, one on each line:\n{\"tool\":\"f\",\"result\":{\"n\": 1}}";
    let both = format!("{one}\n{{\"tool\":\"g\",\"failed\":true,\"result\":\"no\\n{{\"}}");
    let results = [result("f", "{\"n\":\n1}", false), result("g", "no\n{", true)];
    check(
        &[&[ChatMessage::user("x"), calls.clone()], &results[..]].concat(),
        &[ChatMessage::user("x"), plain(asked), ChatMessage::user(both.clone())],
    )
    .await;
    check(
        &[&[ChatMessage::user("x"), calls], &results[..], &[ChatMessage::user("stop")]].concat(),
        &[ChatMessage::user("x"), plain(asked), ChatMessage::user(format!("{both}\n\nstop"))],
    )
    .await;
}

#[tokio::test]
async fn files_stay_with_the_words_that_they_came_with() {
    let file = FileAttachment {
        name: "a.png".to_owned(),
        media_type: "image/png".to_owned(),
        data: [1_u8, 2].as_slice().into(),
    };
    let with = |text: &str, attachments: Vec<FileAttachment>| {
        ChatMessage::User(UserInputMessage {
            text: text.to_owned(),
            attachments,
            ..UserInputMessage::default()
        })
    };
    check(
        &[with("x", vec![file.clone()]), with("y", vec![file.clone()])],
        &[with("x\n\ny", vec![file.clone(), file])],
    )
    .await;
}

#[tokio::test]
async fn what_follows_words_of_others_is_not_theirs() {
    let plugin = "webhook".parse().unwrap();
    let origin = Some(InputOrigin { plugin, label: None, connection: None });
    let quoted = ChatMessage::User(UserInputMessage { origin, ..UserInputMessage::from("x") });
    check(
        &[quoted.clone(), ChatMessage::user("y")],
        &[ChatMessage::user("[from webhook]\n| x\n\ny")],
    )
    .await;
    check(&[ChatMessage::user("y"), quoted], &[ChatMessage::user("y\n\n[from webhook]\n| x")])
        .await;
}

#[tokio::test]
async fn the_instructions_stand_behind_the_first_system_message() {
    let system = |text: &str| ChatMessage::System { text: text.to_owned() };
    let alone = instructions(&[get_time()]).await;
    let messages = [system("Be kind."), ChatMessage::user("x"), system("Be brief.")];
    let told = told(&messages, &[get_time()]).await;
    let want =
        [system(&format!("Be kind.\n\n{alone}")), ChatMessage::user("x"), system("Be brief.")];
    assert_eq!(told, want);
    let empty = [system(""), ChatMessage::user("x")];
    assert_eq!(self::told(&empty, &[get_time()]).await[0], system(&alone));
}

#[tokio::test]
async fn every_tool_is_one_line_of_json_and_the_text_is_stable() {
    let strange = ModelToolDefinition {
        name: "f".to_owned(),
        description: "two\nlines \"}".to_owned(),
        parameters: json!({ "type": "object" }),
    };
    let text = instructions(&[get_time(), strange]).await;
    let lines: Vec<Value> =
        text.lines().rev().take(2).map(|line| serde_json::from_str(line).unwrap()).collect();
    assert_eq!(lines[1]["tool"], "get_time");
    assert_eq!(lines[1]["description"], "Tells the time");
    assert_eq!(lines[1]["parameters"], get_time().parameters);
    assert_eq!(lines[0]["description"], "two\nlines \"}");
    assert_eq!(instructions(&[get_time()]).await, instructions(&[get_time()]).await);
    assert!(instructions(&[]).await.contains("There are no tools now."));
}

#[tokio::test]
async fn what_the_model_is_told_is_bounded() {
    let many = |count: usize, description: &str, parameters: Value| {
        let tool = |n| ModelToolDefinition {
            name: format!("tool_{n}"),
            description: description.to_owned(),
            parameters: parameters.clone(),
        };
        (0..count).map(tool).collect::<Vec<_>>()
    };
    let text = instructions(&many(10_000, "x", json!({}))).await;
    assert!(text.len() < 200_000 && text.contains("more do not fit here"), "{}", text.len());
    let text = instructions(&many(1, &"é".repeat(100_000), json!({}))).await;
    assert!(text.len() < 20_000 && text.contains(r#""tool":"tool_0""#), "{}", text.len());
    let properties: serde_json::Map<String, Value> =
        (0..9_000).map(|n| (format!("p{n}"), json!({}))).collect();
    let text = instructions(&many(1, "x", json!({ "properties": properties }))).await;
    assert!(text.len() < 20_000 && text.contains("the names are: p0, p1"), "{}", text.len());
    let long = Said::text(&"x".repeat(100_000));
    let script = vec![long, Said::text("{\"reply\":\"\"}")];
    let asked = ask(script, &[ChatMessage::user("x")], &[]).await.unwrap().asked;
    assert!(serde_json::to_string(&asked[1]).unwrap().len() < 20_000);
}
