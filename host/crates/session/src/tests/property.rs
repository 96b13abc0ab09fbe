//! The conversation can continue, whatever the user does at any moment, and whenever the host dies.

use std::time::Duration;

use proptest::prelude::*;

use super::{
    model::{Line, broken, calling, calls, refused, says},
    *,
};
use crate::{
    MemoryMode, RecallError, RecallQuery, RecalledMemory, history::PastTurn, restore_session,
    transcript::check_messages,
};

/// Ends turns in which something hangs.
const TIME_MAX: Duration = Duration::from_secs(10);

/// How often other tasks may run after each action of the user.
const YIELDS_MAX: usize = 12;

#[derive(Debug, Clone)]
enum Action {
    Submit,
    Cancel,
    Undo,
    Retry,
    Pin,
    Summarize,
    Yes,
    No,
    Edit,
    Notice,
    Progress,
}

fn actions() -> impl Strategy<Value = Vec<(Action, usize)>> {
    let action = prop_oneof![
        4 => Just(Action::Submit),
        2 => Just(Action::Cancel),
        1 => Just(Action::Undo),
        1 => Just(Action::Retry),
        1 => Just(Action::Pin),
        1 => Just(Action::Summarize),
        3 => Just(Action::Yes),
        1 => Just(Action::No),
        2 => Just(Action::Edit),
        2 => Just(Action::Notice),
        1 => Just(Action::Progress),
    ];
    prop::collection::vec((action, 0..YIELDS_MAX), 1..14)
}

/// One answer for each number.
fn line_for(number: u8) -> Line {
    let asks = ("a", "t__asks", "1");
    match number {
        0 => calls(&[("a", "t__echo", "1")]),
        1 => calls(&[asks, ("b", "t__echo", "2"), ("", "nope", "{")]),
        2 => calls(&[("x", "t__echo", "1"), ("x", "t__hangs", ""), ("y", "t__denied", "")]),
        3 => calls(&[asks, ("b", "t__asks_late", "2")]),
        4 => calls(&[("a", "t__hangs_at_gate", ""), ("b", "t__fails", "")]),
        5 => {
            Line::Answers(calling(&[("a", "t__echo", "{")], sallyport_model::FinishReason::Length))
        }
        6 => Line::Hangs,
        7 => Line::Fails(broken("x")),
        8 => Line::Fails(refused(400)),
        9 => says(""),
        _ => says("some words of an answer"),
    }
}

fn memory_for(number: u8) -> MemoryMode {
    match number {
        0 => MemoryMode::None,
        1 => MemoryMode::SlidingWindow { tokens_max: 60 },
        2 => MemoryMode::Summary { tokens_max: 60 },
        _ => MemoryMode::ByMeaning { tokens_max: 60, recalled_tokens_max: 60 },
    }
}

fn hurried(memory: MemoryMode) -> SessionOptions {
    let limits = TurnLimits { time_max: Some(TIME_MAX), repeats_max: 99, ..TurnLimits::default() };
    SessionOptions { limits, memory, ..options() }
}

/// Recalls the query, and something from the first turn.
struct Parrot;

impl SessionMemory for Parrot {
    fn find_memories<'a>(
        &'a self,
        wanted: RecallQuery<'a>,
    ) -> BoxFuture<'a, Result<Vec<RecalledMemory>, RecallError>> {
        let recalled = |id: &str, text: &str, turn| RecalledMemory {
            id: id.into(),
            text: text.into(),
            similarity: 1.0,
            turn,
        };
        let found = vec![recalled("a", wanted.query, None), recalled("b", "the first", Some(1))];
        Box::pin(std::future::ready(Ok(found)))
    }

    fn remember_turn<'a>(&'a self, _: &'a PastTurn) -> BoxFuture<'a, Result<(), RecallError>> {
        Box::pin(std::future::ready(Ok(())))
    }

    fn forget_turn(&self, _: usize) -> BoxFuture<'_, Result<(), RecallError>> {
        Box::pin(std::future::ready(Ok(())))
    }
}

fn parroted(
    past: RestoredSession,
    memory: MemoryMode,
    script: impl Fn(usize) -> Line + Send + Sync + 'static,
) -> Talk {
    let probe = Arc::new(Probe::default());
    let model = Model::new(script, Arc::default(), Arc::clone(&probe));
    Talk::recalling(past, hurried(memory), model, probe, Some(Arc::new(Parrot)))
}

fn half_way() -> sallyport_contract::services::CallProgress {
    sallyport_contract::services::CallProgress { fraction: Some(0.5), message: None }
}

/// A session that runs to its end.
struct Play {
    talk: Talk,
    is_over: Arc<AtomicBool>,
    question: u64,
}

impl Play {
    fn new(answers: Vec<u8>, memory: MemoryMode) -> Self {
        let is_over = Arc::new(AtomicBool::new(false));
        let over = Arc::clone(&is_over);
        let talk = parroted(RestoredSession::default(), memory, move |index| {
            if over.load(Ordering::SeqCst) {
                says("fin")
            } else {
                line_for(answers[index % answers.len()])
            }
        });
        Self { talk, is_over, question: 0 }
    }

    async fn act(&mut self, action: &Action) {
        let id = self.question;
        let command = match action {
            Action::Submit => FrontEndCommand::SubmitInput { input: "do something".into() },
            Action::Cancel => FrontEndCommand::Cancel,
            Action::Undo => FrontEndCommand::Undo,
            Action::Retry => FrontEndCommand::Retry,
            Action::Pin => FrontEndCommand::Pin,
            Action::Summarize => FrontEndCommand::Summarize,
            Action::Yes => {
                FrontEndCommand::ProvideConfirmation { id, answer: ApprovalAnswer::Once }
            }
            Action::No => FrontEndCommand::ProvideConfirmation {
                id,
                answer: ApprovalAnswer::No { reason: None },
            },
            Action::Edit => FrontEndCommand::EditArguments { id, arguments: "7".into() },
            Action::Notice => FrontEndCommand::Notice(said_by("timer", "ding")),
            Action::Progress => {
                FrontEndCommand::Progress { call_id: "a".into(), progress: half_way() }
            }
        };
        self.talk.send(command).await;
    }

    async fn go_on(&mut self, yields: usize) {
        for _ in 0..yields {
            tokio::task::yield_now().await;
            while let Ok(event) = self.talk.events.try_recv() {
                if let SessionEvent::ApprovalNeeded { confirmation_id, .. } = event {
                    self.question = confirmation_id;
                }
            }
        }
    }

    /// Runs a last turn and returns what the model received in it, and the records before it.
    async fn end(mut self) -> (Vec<String>, Vec<JournalRecord>) {
        self.is_over.store(true, Ordering::SeqCst);
        self.talk.submit("the end").await;
        let last = "the end";
        let is_last = |event: &SessionEvent| matches!(event, SessionEvent::InputAccepted { text, .. } if text == last);
        self.talk.until(is_last).await;
        self.talk.until_end().await;
        let mut records = self.talk.records.all();
        let last = records.iter().rposition(|record| matches!(record, JournalRecord::Input { .. }));
        records.truncate(last.unwrap());
        (self.talk.shown(), records)
    }
}

/// Runs one turn after the records, and returns what the model received and the new records.
async fn resume(
    records: &[JournalRecord],
    memory: MemoryMode,
) -> (Vec<String>, Vec<JournalRecord>) {
    let past = restore_session(records.to_vec());
    let mut talk = parroted(past, memory, |_| says("fin"));
    assert_eq!(talk.turn("the end").await.pop().unwrap(), "end answered fin");
    (talk.shown(), talk.records.all())
}

/// Restores every prefix of the records and checks that another turn works.
fn check_every_beginning(records: &[JournalRecord]) {
    for length in 0..=records.len() {
        let mut restored = restore_session(records[..length].to_vec());
        restored.transcript.apply_record(JournalRecord::Input { message: "more".into() });
        let checked = check_messages(restored.transcript.messages());
        assert_eq!(checked, Ok(()), "{:#?}", record_lines(&records[..length]));
    }
}

/// Runs a session and checks that, whatever the host was doing when it died, another turn works,
/// and another one after that.
async fn play(actions: Vec<(Action, usize)>, answers: Vec<u8>, memory: MemoryMode) {
    let mut play = Play::new(answers, memory);
    for (action, yields) in &actions {
        play.act(action).await;
        play.go_on(*yields).await;
    }
    let (live, records) = play.end().await;
    check_every_beginning(&records);
    for length in (0..records.len()).step_by(5) {
        let (shown, more) = resume(&records[..length], memory).await;
        let twice = [&records[..length], &more].concat();
        check_every_beginning(&twice);
        let is_whole = memory == MemoryMode::None
            && !twice.iter().any(|record| matches!(record, JournalRecord::Summary { .. }));
        if is_whole {
            let restored = restore_session(twice.clone());
            let mut messages: Vec<String> =
                restored.transcript.messages().iter().map(message_line).collect();
            assert_eq!(messages.pop().as_deref(), Some("assistant fin"));
            assert_eq!(messages, shown, "{:#?}", record_lines(&twice));
        }
    }
    // A restored session shows the model the same as the live one.
    let (shown, _) = resume(&records, memory).await;
    assert_eq!(shown, live, "{:#?}", record_lines(&records));
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 200, ..ProptestConfig::default() })]

    #[test]
    fn any_interleaving_leaves_a_conversation_that_can_go_on(
        actions in actions(),
        answers in prop::collection::vec(0_u8..14, 1..10),
        memory in 0_u8..4,
    ) {
        let mut runtime = tokio::runtime::Builder::new_current_thread();
        let runtime = runtime.enable_time().start_paused(true).build().unwrap();
        runtime.block_on(play(actions, answers, memory_for(memory)));
    }

    #[test]
    fn any_records_in_any_order_make_a_conversation(
        words in prop::collection::vec("s|i|a|a12|a3|a1|r1|r2|r3|n|e|u|f|p1|p2|m1|m3|m9|o|c0|c1|c9|x", 0..40),
        memory in 0_u8..4,
    ) {
        let mut restored = restore_session(super::histories::records(&words.join(" ")));
        restored.transcript.apply_record(JournalRecord::Input { message: "more".into() });
        let meter = crate::memory::TokenMeter::new();
        prop_assert_eq!(check_messages(restored.transcript.messages()), Ok(()));
        let view = restored.transcript.conversation_view(memory_for(memory), &meter);
        prop_assert_eq!(check_messages(&view.messages), Ok(()));
    }
}
