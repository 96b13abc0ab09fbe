//! Providers: a conversation goes in, words and an answer come out, and none of them without end.

use std::time::Duration;

use sallyport_sandbox::roles::{
    GenerationRequest, GenerationSettings, MediaBlob, ProviderAnswer, ProviderAnswerMessage,
    ProviderDelta, ProviderFailure, ProviderMessage, ProviderRunResult, ProviderToolCall,
    ProviderToolDefinition, ProviderToolResult, ProviderUserMessage,
};
use tokio::sync::mpsc;

use super::{LIMITS, admitted, warden};
use crate::support::{Guarded, registry::told};

fn user(text: &str) -> ProviderMessage {
    ProviderMessage::User(ProviderUserMessage { text: text.to_owned(), attachments: Vec::new() })
}

fn asking(text: &str) -> GenerationRequest {
    let settings = GenerationSettings::default();
    GenerationRequest { history: vec![user(text)], tools: Vec::new(), settings }
}

/// What comes of a question, and what was heard before.
fn ask(player: &Guarded, generation: GenerationRequest) -> (ProviderRunResult, Vec<ProviderDelta>) {
    let (to, mut pieces) = mpsc::unbounded_channel();
    let call = admitted(player, "provider");
    let answered = player.wait(player.plugin.generate_answer(call, generation, to));
    let heard = std::iter::from_fn(|| pieces.try_recv().ok()).collect();
    (answered, heard)
}

fn answer(player: &Guarded, text: &str) -> ProviderAnswer {
    ask(player, asking(text)).0.answer.unwrap()
}

fn failure(player: &Guarded, text: &str) -> ProviderFailure {
    ask(player, asking(text)).0.answer.unwrap_err()
}

fn text(heard: &[ProviderDelta]) -> String {
    let text = heard.iter().filter_map(|piece| match piece {
        ProviderDelta::Text(text) => Some(text.as_str()),
        ProviderDelta::Reasoning(_) => None,
    });
    text.collect()
}

#[test]
fn a_provider_is_told_everything() {
    let blob = MediaBlob {
        media_type: "image/png".to_owned(),
        data: vec![1],
        name: Some("cat.png".to_owned()),
    };
    let call =
        ProviderToolCall { id: "a".to_owned(), name: "t".to_owned(), arguments: "{}".to_owned() };
    let opaque = Some("{\"x\":1}".to_owned());
    let generation = GenerationRequest {
        history: vec![
            ProviderMessage::System("be kind".to_owned()),
            ProviderMessage::User(ProviderUserMessage {
                text: "look".to_owned(),
                attachments: vec![blob],
            }),
            ProviderMessage::Assistant(ProviderAnswerMessage {
                text: "so".to_owned(),
                calls: vec![call],
                opaque,
            }),
            ProviderMessage::Tool(ProviderToolResult {
                call_id: "a".to_owned(),
                name: "t".to_owned(),
                content: "7".to_owned(),
                failed: false,
            }),
            user("tell"),
        ],
        tools: vec![ProviderToolDefinition {
            name: "t".to_owned(),
            description: "d".to_owned(),
            parameters: "{}".to_owned(),
        }],
        settings: GenerationSettings {
            model: Some("m".to_owned()),
            temperature: Some(0.5),
            tokens_max: Some(9),
        },
    };
    let (answered, _) = ask(&Guarded::by(warden("")), generation);
    let answer = answered.answer.unwrap();
    assert_eq!(
        answer.message.text,
        "system be kind | user look 1 cat.png | assistant so a {\"x\":1} | tool a 7 false | user tell 0  \
         | tool t {} | Some(\"m\") Some(0.5) Some(9)"
    );
    assert!(answer.is_final && answer.usage.unwrap().output_tokens < u64::MAX);
    assert_eq!(answered.report.outcome.as_str(), "completed");
}

#[test]
fn who_heard_the_pieces_has_heard_the_answer() {
    let player = Guarded::by(warden(""));
    for (told, want) in [
        ("say all at once", "all at once"),
        ("stream one two three", "one two three"),
        ("forget words", "words"),
        ("contradict", "one thing\n\nanother"),
    ] {
        let (answered, heard) = ask(&player, asking(told));
        assert_eq!(answered.answer.unwrap().message.text, want);
        assert_eq!(text(&heard), want);
    }
    let (_, heard) = ask(&player, asking("stream one two three"));
    assert_eq!(heard[0], ProviderDelta::Text("one ".to_owned()));
    assert!(heard.contains(&ProviderDelta::Reasoning("hm".to_owned())));
}

#[test]
fn a_flood_of_pieces_ends() {
    let player = Guarded::by(warden("limits = { output = \"64KiB\" }"));
    let (answered, heard) = ask(&player, asking("flood"));
    assert!(text(&heard).len() < 64 << 10, "{} bytes", text(&heard).len());
    let said = answered.answer.unwrap().message.text;
    assert!(said.ends_with("\n\nenough"), "the answer is not lost");
}

#[test]
fn a_provider_that_never_ends_is_stopped_and_what_it_said_stays_said() {
    let player = Guarded::by(warden(LIMITS));
    for told in ["loop", "stop_half_way"] {
        let (answered, heard) = ask(&player, asking(told));
        let failure = answered.answer.unwrap_err().to_string();
        assert_eq!(failure, "it did not answer within 300ms (limits.time)");
        assert_eq!(answered.report.outcome.as_str(), "timed-out");
        assert_eq!(text(&heard).is_empty(), told == "loop");
    }
    assert_eq!(answer(&player, "say again").message.text, "again");
}

#[test]
fn an_answer_that_cannot_be_is_refused_with_its_reason() {
    let player = Guarded::by(warden(""));
    for (told, words) in [
        ("trap", "trapped"),
        ("call_with 1500000", "limits.output"),
        ("call_with 10000000", "limits.host-call"),
        ("call_often 300", "wants 300 calls"),
        ("opaque {", "its own form"),
    ] {
        let failure = failure(&player, told).to_string();
        assert!(failure.contains(words), "{told}: {failure}");
    }
}

#[test]
fn h52_calls_are_passed_on_as_the_model_wrote_them() {
    let player = Guarded::by(warden(""));
    let answer = answer(&player, "call_twice");
    let ids: Vec<&str> = answer.message.calls.iter().map(|call| call.id.as_str()).collect();
    assert_eq!((ids, answer.is_final), (vec!["same", "same"], false));
    let calls = self::answer(&player, "call {not even JSON").message.calls;
    assert_eq!(calls[0].arguments, "{not even JSON");
}

fn busy(message: &str, retry_after: Option<Duration>) -> ProviderFailure {
    ProviderFailure::Busy { message: message.to_owned(), retry_after }
}

#[test]
fn every_failure_of_the_contract_is_told_with_its_words() {
    let player = Guarded::by(warden(""));
    for (told, want) in [
        ("credentials no key", ProviderFailure::Credentials("no key".to_owned())),
        ("unreachable no line", ProviderFailure::Unreachable("no line".to_owned())),
        ("busy later", busy("later", None)),
        ("busy 1500", busy("1500", Some(Duration::from_millis(1500)))),
        ("refused no", ProviderFailure::Refused("no".to_owned())),
        ("other {\"message\":\"new\"}", ProviderFailure::Refused("new".to_owned())),
    ] {
        assert_eq!(failure(&player, told), want);
    }
    let long = failure(&player, &format!("busy {}", "x".repeat(100_000))).to_string();
    assert!(long.len() < 5000, "{} bytes", long.len());
    let (answered, _) = ask(&player, asking("busy later"));
    assert!(told(&answered.report).starts_with("failed: the service is busy: later"));
}

#[test]
fn no_secret_comes_out_in_pieces_or_whole() {
    let secret = "hunter2-hunter2-hunter2";
    let player = Guarded::by(warden("").secret("key", Ok(secret)));
    for told in ["stream it is hunter2-hunter2-hunter2 here", "say hunter2-hunter2-hunter2"] {
        let (answered, heard) = ask(&player, asking(told));
        let text = format!("{:?} {heard:?}", answered.answer.unwrap());
        assert!(!text.contains("hunter2"), "{text}");
    }
    let call = answer(&player, "call hunter2-hunter2-hunter2").message.calls.remove(0);
    assert!(!call.arguments.contains("hunter2"));
    assert!(!failure(&player, "busy hunter2-hunter2-hunter2").to_string().contains("hunter2"));
}
