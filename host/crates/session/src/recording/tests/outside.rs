//! Data other than inputs that reaches a session: plugin messages and recalled memories.

use std::future;

use sallyport_contract::{
    BoxFuture, Secret,
    services::{InputOrigin, NoticeAudience, PluginNotice},
};

use super::{cast::Line::Says, *};
use crate::{RecallError, RecallQuery, RecalledMemory, history::PastTurn};

/// The result of a recall for an input.
#[derive(Clone, Copy)]
enum Memo {
    Finds(&'static str),
    Fails,
    Hangs,
}

/// Recalls by script, one line per input.
struct Prompter(Mutex<Vec<Memo>>);

impl SessionMemory for Prompter {
    fn find_memories<'a>(
        &'a self,
        _: RecallQuery<'a>,
    ) -> BoxFuture<'a, Result<Vec<RecalledMemory>, RecallError>> {
        let memo = self.0.lock().unwrap().remove(0);
        let found = |text: &str| {
            vec![RecalledMemory {
                id: "x".into(),
                text: text.into(),
                similarity: f32::NAN,
                turn: None,
            }]
        };
        match memo {
            Memo::Finds(text) => Box::pin(future::ready(Ok(found(text)))),
            Memo::Fails => {
                let message = "the shelf is empty".into();
                Box::pin(future::ready(Err(RecallError { message })))
            }
            Memo::Hangs => Box::pin(future::pending()),
        }
    }

    fn remember_turn<'a>(&'a self, _: &'a PastTurn) -> BoxFuture<'a, Result<(), RecallError>> {
        Box::pin(future::ready(Ok(())))
    }

    fn forget_turn(&self, _: usize) -> BoxFuture<'_, Result<(), RecallError>> {
        Box::pin(future::ready(Ok(())))
    }
}

fn by_meaning() -> SessionOptions {
    let memory = MemoryMode::ByMeaning { tokens_max: 10_000, recalled_tokens_max: 100 };
    SessionOptions {
        memory,
        temperature: Some(0.7),
        memories: vec!["Bob is tall.".into()],
        ..options()
    }
}

/// Records a session with recall; with `cancels`, every turn is cancelled after one second.
async fn record_recalling(
    memos: &[Memo],
    cancels: bool,
    redactor: Redactor,
) -> (String, Vec<String>) {
    let shelf = Shelf::default();
    let (model, stage) =
        (Arc::new(Actor::new((0..9).map(|_| Says("Well.")))), Arc::new(Stage::new()));
    let recording =
        SessionRecorder::start(shelf.clone(), redactor, &by_meaning(), &*model, &*stage);
    let recall = recording.wrap_recall(Arc::new(Prompter(Mutex::new(memos.to_vec()))));
    let (model, toolbox) = (recording.wrap_model(model), recording.wrap_toolbox(stage));
    let mut talk = Talk::recalling(model, toolbox, Some(recall), by_meaning());
    for number in 0..8 {
        let input = UserInputMessage::from(format!("input {number}"));
        let pause = std::time::Duration::from_secs(if cancels { 1 } else { 60 });
        record_turn(&recording, &mut talk, input, tokio::time::sleep(pause)).await;
    }
    recording.finish().unwrap();
    (shelf.text(), talk.heard)
}

async fn play_recalling(tape: &str) -> (Vec<String>, Option<ReplayError>) {
    let tape = read(tape);
    let (inputs, options) = (tape.inputs().to_vec(), tape.options());
    let replay = SessionReplay::new(tape, Redactor::empty());
    let recall = replay.to_session_memory();
    assert!(recall.is_some());
    let mut talk = Talk::recalling(replay.to_chat_model(), replay.to_toolbox(), recall, options);
    for input in inputs {
        talk.turn_seen(input, replay.wait_for_cancellation(), |event| replay.adjust_event(event))
            .await;
    }
    (talk.heard, replay.first_problem())
}

/// The events, without the reason why nothing was recalled.
fn heard(lines: &[String]) -> Vec<&String> {
    lines.iter().filter(|line| !line.contains("RecallFailed")).collect()
}

#[tokio::test(start_paused = true)]
async fn what_was_recalled_is_recalled_again() {
    let memos = [
        Memo::Finds("one"),
        Memo::Finds("two"),
        Memo::Hangs,
        Memo::Fails,
        Memo::Finds("three"),
        Memo::Finds("four"),
        Memo::Finds("five"),
        Memo::Finds("six"),
    ];
    for cancels in [false, true] {
        let (tape, recorded) = record_recalling(&memos, cancels, Redactor::empty()).await;
        assert_eq!(tape.matches("\"end\":\"dropped\"").count(), 1, "{tape}");
        let (played, problem) = play_recalling(&tape).await;
        assert_eq!(problem, None);
        assert_eq!(heard(&played), heard(&recorded));
        assert!(tape.contains("\"temperature\":0.7"));
    }
}

#[tokio::test(start_paused = true)]
async fn a_tape_without_anything_that_recalls_plays_without() {
    let (tape, _) = record(Actor::new([Says("Hi.")]), &["a"], Redactor::empty()).await;
    assert!(SessionReplay::new(read(&tape), Redactor::empty()).to_session_memory().is_none());
}

#[tokio::test(start_paused = true)]
async fn no_secret_of_a_memory_gets_on_a_tape() {
    let redactor = Redactor::new([("s", &Secret::new("correct-horse"))]);
    let memos = [Memo::Finds("it is correct-horse"); 8];
    let (tape, _) = record_recalling(&memos, false, redactor).await;
    assert!(!tape.contains("horse"), "{tape}");
    assert_eq!(play_recalling(&tape).await.1, None);
}

fn notice(text: &str) -> PluginNotice {
    PluginNotice {
        plugin: "timer".parse().unwrap(),
        session_id: "s1".into(),
        text: text.into(),
        speech: Some(text.into()),
        audience: NoticeAudience::User,
        late: false,
    }
}

#[tokio::test(start_paused = true)]
async fn what_plugins_said_is_said_again_before_the_same_input() {
    let shelf = Shelf::default();
    let (model, stage) =
        (Arc::new(Actor::new([Says("One."), Says("Two.")])), Arc::new(Stage::new()));
    let redactor = Redactor::new([("s", &Secret::new("correct-horse"))]);
    let recording = SessionRecorder::start(shelf.clone(), redactor, &options(), &*model, &*stage);
    let mut talk = Talk::new(recording.wrap_model(model), recording.wrap_toolbox(stage), options());
    let origin = InputOrigin {
        plugin: "webhook".parse().unwrap(),
        label: Some("correct-horse bot".into()),
        connection: Some("correct-horse".into()),
    };
    let inputs = [
        UserInputMessage { origin: Some(origin), ..UserInputMessage::from("first") },
        UserInputMessage::from("second"),
    ];
    for (input, said) in inputs.into_iter().zip(["ding correct-horse", "dong"]) {
        recording.record_notice(&notice(said));
        talk.handle.send(FrontEndCommand::Notice(notice(said))).await.unwrap();
        recording.record_input(&input);
        talk.turn(input, future::pending()).await;
    }
    recording.record_notice(&notice("later"));
    recording.finish().unwrap();
    let text = shelf.text();
    assert!(!text.contains("horse"), "{text}");
    let tape = read(&text);
    let texts = |input| tape.notices_before(input).map(|one| one.text.clone()).collect::<Vec<_>>();
    assert_eq!(
        (texts(0).len(), texts(1), texts(2)),
        (1, vec!["dong".to_owned()], vec!["later".to_owned()])
    );
    let replay = SessionReplay::new(tape.clone(), Redactor::empty());
    let mut talk = Talk::new(replay.to_chat_model(), replay.to_toolbox(), tape.options());
    for (number, input) in tape.inputs().iter().enumerate() {
        for notice in tape.notices_before(number) {
            talk.handle.send(FrontEndCommand::Notice(notice.clone())).await.unwrap();
        }
        talk.turn(input.clone(), future::pending()).await;
    }
    assert_eq!(replay.first_problem(), None);
}
