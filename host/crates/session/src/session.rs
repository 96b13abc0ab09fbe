//! A session's state, and its work between turns.

use std::sync::Arc;

use sallyport_contract::{Toolbox, mangle::Collision};
use sallyport_model::{ChatModel, ToolDefinition, UserMessage};

use super::{
    Options, Parts,
    book::Book,
    budget::Ledger,
    command::Speaker,
    event::{Event, Notice},
    front::{Front, Line, Task},
    history::Restored,
    journal::{self, Record},
    memory::{Memory, Meter, json_bytes},
    recall::{Attention, Recall},
    toolset::Toolset,
};

/// Bytes of a tool's definition that count as a token.
const TOKEN_BYTES: u64 = 4;

/// The state of a session. Owned by one task.
pub(super) struct Session {
    pub(super) model: Arc<dyn ChatModel>,
    pub(super) toolbox: Arc<dyn Toolbox>,
    pub(super) toolset: Toolset,
    /// Estimated tokens of the tool definitions in every request.
    pub(super) toolset_tokens: u64,
    /// Finds earlier turns by meaning, if the session uses that.
    pub(super) recall: Option<Arc<dyn Recall>>,
    /// Facts that the model knows from the start.
    pub(super) memories: Vec<String>,
    pub(super) attention: Attention,
    pub(super) options: Options,
    pub(super) book: Book,
    pub(super) ledger: Ledger,
    pub(super) meter: Meter,
    pub(super) front: Front,
    /// No summary could be made in the current turn, so none is requested again.
    pub(super) lost_summary: bool,
    /// Partial text of an answer that was stopped or broke off; it is kept.
    pub(super) unfinished: String,
}

impl Session {
    pub(super) fn new(parts: Parts, line: Line) -> Result<Self, Collision> {
        let Parts { model, toolbox, approvals, journal, recall, past, options } = parts;
        let toolset = Toolset::new(toolbox.tools(), options.tool_tokens_max)?;
        let toolset_tokens = toolset.definitions().iter().map(tokens).sum();
        let ledger = Ledger::new(options.limits, options.session_limits, past.spent);
        let by_meaning = recall.is_some() && matches!(options.memory, Memory::ByMeaning { .. });
        let began = Began::of(&past, &options, by_meaning);
        let memories = began.memories.clone();
        let opening = opening(&past, began, model.name());
        let mut book = Book::new(past.transcript, journal, by_meaning);
        opening.into_iter().for_each(|record| book.prepare(record));
        Ok(Self {
            model,
            toolbox,
            toolset,
            toolset_tokens,
            recall: recall.filter(|_| by_meaning),
            memories,
            attention: Attention::default(),
            options,
            book,
            ledger,
            meter: Meter::new(),
            front: Front::new(line, approvals),
            lost_summary: false,
            unfinished: String::new(),
        })
    }

    /// Runs one task after another until no more can come.
    pub(super) async fn run(mut self) {
        while let Some(task) = self.front.next_task(self.book.pages_mut()).await {
            match task {
                Task::Ask(input) => self.turn(input).await,
                Task::Undo => self.undo().await,
                Task::Retry => self.retry().await,
                Task::UseModel(Speaker(model)) => self.use_model(model).await,
                Task::Summarize => self.summarize().await,
                Task::Pin => self.pin().await,
            }
        }
        self.settle_errands().await;
    }

    async fn undo(&mut self) {
        if let Some(input) = self.last_input().await {
            let turn = self.book.transcript().turns();
            self.book.write(vec![Record::Undone], &self.front).await;
            self.front.emit(Event::Undone { text: input.text }).await;
            self.forget_turn(turn).await;
        }
    }

    async fn retry(&mut self) {
        if let Some(input) = self.last_input().await {
            if self.check_input(&input).is_ok() {
                // Written together with the repeated input, so that the input cannot get lost.
                self.book.prepare(Record::Undone);
                self.front.emit(Event::Undone { text: input.text.clone() }).await;
            }
            self.turn(input).await;
        }
    }

    async fn pin(&mut self) {
        if self.last_input().await.is_some() {
            let turn = self.book.transcript().turns();
            self.book.write(vec![Record::Pinned { turn }], &self.front).await;
            self.front.emit(Event::Pinned { turn }).await;
        }
    }

    async fn use_model(&mut self, model: Arc<dyn ChatModel>) {
        let name = model.name().to_owned();
        self.model = model;
        // Every model counts tokens differently.
        self.meter = Meter::new();
        self.book.prepare(Record::Model { name: name.clone() });
        self.front.emit(Event::ModelChanged { name }).await;
    }

    /// Returns the input of the last turn, or notifies the user that there is none.
    async fn last_input(&mut self) -> Option<UserMessage> {
        let input = self.book.transcript().last_input().cloned();
        if input.is_none() {
            self.front.emit(Event::Notice(Notice::NoTurn)).await;
        }
        input
    }
}

fn tokens(tool: &ToolDefinition) -> u64 {
    let bytes = tool.name.len() + tool.description.len() + json_bytes(&tool.parameters);
    bytes as u64 / TOKEN_BYTES
}

/// The instructions that a model receives at the start.
#[derive(PartialEq)]
struct Began {
    system_prompt: Option<String>,
    memories: Vec<String>,
    by_meaning: bool,
}

impl Began {
    /// Returns the instructions in effect: a continued session keeps its own unless it gets new
    /// ones.
    fn of(past: &Restored, options: &Options, by_meaning: bool) -> Self {
        let system_prompt = options.system_prompt.clone().or_else(|| past.system_prompt.clone());
        let memories = match &options.memories {
            none if none.is_empty() => past.memories.clone(),
            memories => memories.clone(),
        };
        Self { system_prompt, memories, by_meaning }
    }

    fn before(past: &Restored) -> Self {
        let (system_prompt, memories) = (past.system_prompt.clone(), past.memories.clone());
        Self { system_prompt, memories, by_meaning: past.by_meaning }
    }
}

/// The records that a new or continued session writes first.
fn opening(past: &Restored, began: Began, model: &str) -> Vec<Record> {
    let mut records = Vec::new();
    let is_new = past.turns() == 0 && past.model.is_none();
    if is_new || began != Began::before(past) {
        let Began { system_prompt, memories, by_meaning } = began;
        let version = journal::VERSION;
        records.push(Record::Began { version, system_prompt, memories, by_meaning });
    }
    if past.model.as_deref() != Some(model) {
        records.push(Record::Model { name: model.to_owned() });
    }
    records
}
