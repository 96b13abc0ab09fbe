//! A session's state, and its work between turns.

use std::sync::Arc;

use sallyport_contract::{ToolDescriptor, Toolbox, mangle::ToolNameCollision};
use sallyport_model::{ChatModel, KeptMessages, ModelToolDefinition, UserInputMessage};

use super::{
    SessionOptions, SessionParts,
    account::UserAccount,
    budget::UsageTracker,
    client_port::{ClientPort, SessionChannels, SessionTask},
    event::{SessionEvent, SessionNotice},
    history::RestoredSession,
    journal::{self, JournalRecord},
    memory::{MemoryMode, TokenMeter, json_bytes},
    recall_backlog::RecallBacklog,
    results::RESULT_BYTES_LEAST,
    session_log::SessionLog,
    session_memory::SessionMemory,
    toolset::Toolset,
};

/// Bytes of a tool's definition that count as a token.
const TOKEN_BYTES: u64 = 4;

/// The state of a session. Owned by one task.
pub(super) struct Session {
    pub(super) model: Arc<dyn ChatModel>,
    pub(super) toolbox: Arc<dyn Toolbox>,
    /// The tools of the current turn.
    tools: Arc<[ToolDescriptor]>,
    pub(super) toolset: Toolset,
    /// Estimated tokens of the tool definitions in every request.
    pub(super) toolset_tokens: u64,
    /// Finds earlier turns by meaning, if the session uses that.
    pub(super) recall: Option<Arc<dyn SessionMemory>>,
    /// Facts that the model knows from the start.
    pub(super) memories: Vec<String>,
    pub(super) recall_backlog: RecallBacklog,
    pub(super) options: SessionOptions,
    pub(super) log: SessionLog,
    pub(super) usage_tracker: UsageTracker,
    /// What the user spends over all sessions.
    pub(super) account: UserAccount,
    pub(super) meter: TokenMeter,
    /// The conversation as it was written for the last request.
    pub(super) kept_messages: KeptMessages,
    pub(super) client: ClientPort,
    /// No summary could be made in the current turn, so none is requested again.
    pub(super) summary_failed: bool,
    /// Partial text of an answer that was stopped or broke off; it is kept.
    pub(super) partial_reply: String,
}

impl Session {
    pub(super) fn new(
        parts: SessionParts,
        channels: SessionChannels,
    ) -> Result<Self, ToolNameCollision> {
        let SessionParts { model, toolbox, approvals, journal, recall, past, account, mut options } =
            parts;
        options.result_bytes_max = options.result_bytes_max.map(|max| max.max(RESULT_BYTES_LEAST));
        let tools = toolbox.tools();
        let toolset = Toolset::new(&tools, options.tool_tokens_max)?;
        let toolset_tokens = toolset_tokens(&toolset);
        let usage_tracker = UsageTracker::new(options.limits, options.session_limits, past.spent);
        let by_meaning = recall.is_some() && matches!(options.memory, MemoryMode::ByMeaning { .. });
        let initial = InitialInstructions::from_options(&past, &options, by_meaning);
        let memories = initial.memories.clone();
        let opening = opening_records(&past, initial, model.name());
        let mut log =
            SessionLog::new(past.transcript, journal, by_meaning, channels.outbox.clone());
        opening.into_iter().for_each(|record| log.defer_record(record));
        Ok(Self {
            model,
            toolbox,
            tools,
            toolset,
            toolset_tokens,
            recall: recall.filter(|_| by_meaning),
            memories,
            recall_backlog: RecallBacklog::default(),
            options,
            log,
            usage_tracker,
            account: UserAccount::new(account),
            meter: TokenMeter::new(),
            kept_messages: KeptMessages::default(),
            client: ClientPort::new(channels, approvals),
            summary_failed: false,
            partial_reply: String::new(),
        })
    }

    /// Runs one task after another until no more can come.
    pub(super) async fn run(mut self) {
        while let Some(task) = self.client.next_task(self.log.journal_mut()).await {
            match task {
                SessionTask::Ask(input, caller) => self.turn(input, caller).await,
                SessionTask::Undo => self.undo_turn().await,
                SessionTask::Retry => self.retry_turn().await,
                SessionTask::UseModel(model) => self.use_model(model).await,
                SessionTask::Summarize => self.summarize_on_request().await,
                SessionTask::Pin => self.pin_turn().await,
            }
        }
        self.finish_recall_jobs().await;
        // The last turn may have ended while nothing could be written.
        self.log.journal_mut().retry().await;
    }

    /// Takes the tools of this moment, which stay the same for a whole turn.
    pub(super) fn refresh_tools(&mut self) {
        let tools = self.toolbox.tools();
        if tools == self.tools {
            return;
        }
        // No toolbox of the host contains names that collide. The session would keep its tools.
        if let Ok(toolset) = Toolset::new(&tools, self.options.tool_tokens_max) {
            self.toolset_tokens = toolset_tokens(&toolset);
            (self.tools, self.toolset) = (tools, toolset);
        }
    }

    /// Offers the tool that reads kept results, from the first one on and then for good. Not from
    /// the start, because most sessions keep none and every request would carry its definition; and
    /// a list of tools that changes costs the provider's cache, so it changes once.
    pub(super) fn offer_kept_results(&mut self) {
        if self.log.transcript().has_kept_results() && self.toolset.offer_results() {
            self.toolset_tokens = toolset_tokens(&self.toolset);
        }
    }

    async fn undo_turn(&mut self) {
        if let Some(input) = self.last_input().await {
            let turn = self.log.transcript().turn_count();
            self.log.write_records(vec![JournalRecord::Undone]).await;
            self.client.emit(SessionEvent::Undone { text: input.text }).await;
            self.forget_turn(turn).await;
        }
    }

    async fn retry_turn(&mut self) {
        if let Some(input) = self.last_input().await {
            if self.check_input(&input).is_ok() {
                // Written together with the repeated input, so that the input cannot get lost.
                self.log.defer_record(JournalRecord::Undone);
                self.client.emit(SessionEvent::Undone { text: input.text.clone() }).await;
            }
            self.turn(input, None).await;
        }
    }

    async fn pin_turn(&mut self) {
        if self.last_input().await.is_some() {
            let turn = self.log.transcript().turn_count();
            self.log.write_records(vec![JournalRecord::Pinned { turn }]).await;
            self.client.emit(SessionEvent::Pinned { turn }).await;
        }
    }

    async fn use_model(&mut self, model: Arc<dyn ChatModel>) {
        let name = model.name().to_owned();
        self.model = model;
        // Every model counts tokens differently.
        self.meter = TokenMeter::new();
        self.log.defer_record(JournalRecord::Model { name: name.clone() });
        self.client.emit(SessionEvent::ModelChanged { name }).await;
    }

    /// Returns the input of the last turn, or notifies the user that there is none.
    async fn last_input(&mut self) -> Option<UserInputMessage> {
        let input = self.log.transcript().last_input().cloned();
        if input.is_none() {
            self.client.emit(SessionEvent::Notice(SessionNotice::NoTurn)).await;
        }
        input
    }
}

/// Estimates the tokens of the tool definitions in a request.
fn toolset_tokens(toolset: &Toolset) -> u64 {
    toolset.definitions().iter().map(definition_tokens).sum()
}

fn definition_tokens(tool: &ModelToolDefinition) -> u64 {
    let bytes = tool.name.len() + tool.description.len() + json_bytes(&tool.parameters);
    bytes as u64 / TOKEN_BYTES
}

/// The instructions that a model receives at the start.
#[derive(PartialEq)]
struct InitialInstructions {
    system_prompt: Option<String>,
    memories: Vec<String>,
    accounts: Option<String>,
    by_meaning: bool,
}

impl InitialInstructions {
    /// Returns the instructions in effect: a continued session keeps its own unless it gets new
    /// ones.
    fn from_options(past: &RestoredSession, options: &SessionOptions, by_meaning: bool) -> Self {
        let system_prompt = options.system_prompt.clone().or_else(|| past.system_prompt.clone());
        let memories = match &options.memories {
            unset if unset.is_empty() => past.memories.clone(),
            memories => memories.clone(),
        };
        Self { system_prompt, memories, accounts: options.accounts.clone(), by_meaning }
    }

    fn from_restored(past: &RestoredSession) -> Self {
        let (system_prompt, memories) = (past.system_prompt.clone(), past.memories.clone());
        let accounts = past.accounts.clone();
        Self { system_prompt, memories, accounts, by_meaning: past.by_meaning }
    }
}

/// The records that a new or continued session writes first.
fn opening_records(
    past: &RestoredSession,
    initial: InitialInstructions,
    model: &str,
) -> Vec<JournalRecord> {
    let mut records = Vec::new();
    let is_new = past.turn_count() == 0 && past.model.is_none();
    if is_new || initial != InitialInstructions::from_restored(past) {
        let InitialInstructions { system_prompt, memories, accounts, by_meaning } = initial;
        let version = journal::VERSION;
        records.push(JournalRecord::Began {
            version,
            system_prompt,
            memories,
            accounts,
            by_meaning,
        });
    }
    if past.model.as_deref() != Some(model) {
        records.push(JournalRecord::Model { name: model.to_owned() });
    }
    records
}
