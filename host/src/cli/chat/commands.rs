//! Handling of a line: text goes to the model, slash commands run here.

use std::{io, path::PathBuf};

use sallyport_contract::{LOCAL_USER, text};
use sallyport_model::TokenCost;
use sallyport_runtime::{atomic_file, session::ModelHandle};
use sallyport_session::{
    FrontEndCommand as Order, JournalRecord, MemoryMode, TurnUsage, history, restore_session,
};
use sallyport_terminal::{
    editor::{InitialInput, KEYS},
    listing::{self, ListRow, list_lines},
    screen::ContextFill,
    slash::{self, ParsedInput as Meaning, SlashCommand},
    style::StyledLine,
};

use super::{
    activity_tracker::total_tokens,
    interactive::{ChatActivity, InteractiveChat, NextAction},
    lists,
    view::{self, note_lines, pair_line},
};
use crate::cli::{exit::CommandFailure, file_attachments, output::format_count, setup};

/// Most characters of a pinned input that are shown.
const PINNED_CHARS_MAX: usize = 60;

/// Width of the bars of `/cost`, in columns.
const BAR_COLUMNS: u32 = 20;

impl InteractiveChat<'_> {
    pub(super) async fn handle_line(&mut self, line: String) {
        match slash::parse_line(&line) {
            Ok(Meaning::Blank) => {}
            Ok(Meaning::Text(text)) => self.submit_message(&text, &line, false).await,
            Ok(Meaning::Command(command)) => self.run_slash_command(command, &line).await,
            Err(error) => {
                self.show_lines(&[
                    view::error_line(&error.to_string()),
                    view::hint_line(&error.hint()),
                ]);
            }
        }
    }

    /// Sends a message with the files that it mentions. If that fails, the line is in the editor
    /// again.
    async fn submit_message(&mut self, text: &str, line: &str, is_pinned: bool) {
        match file_attachments::parse_message(text, &self.local_files) {
            Ok((mut input, notes)) => {
                notes.iter().for_each(|notes| self.show_lines(&note_lines(notes)));
                input.attachments.append(&mut self.files);
                let names = input.attachments.iter().map(|file| file.name.as_str());
                let names: Vec<&str> = names.collect();
                if !names.is_empty() {
                    self.show_lines(&note_lines(&format!("attached: {}", names.join(", "))));
                }
                self.activity = ChatActivity::Turn { is_pinned };
                self.send(Order::SubmitInput { input }).await;
            }
            Err(error) => {
                self.show_lines(&[
                    view::error_line(&error.to_string()),
                    view::hint_line(error.hint()),
                ]);
                self.read_next_line(InitialInput::Text(line.to_owned()));
            }
        }
    }

    async fn run_slash_command(&mut self, command: SlashCommand, line: &str) {
        match command {
            SlashCommand::Help(entry) => self.show_lines(&help_lines(entry)),
            SlashCommand::Tools(words) => {
                let words = words.as_deref();
                let lines = lists::tool_lines(&self.roles.registry(), words, self.view.columns());
                self.show_lines(&lines)
            }
            SlashCommand::Plugins(name) => {
                let (registry, width) = (self.roles.registry(), self.view.columns());
                self.show_lines(&lists::plugin_lines(&registry, name.as_ref(), width))
            }
            SlashCommand::Grants(name) => {
                let (registry, width) = (self.roles.registry(), self.view.columns());
                self.show_lines(&lists::grant_lines(&registry, name.as_ref(), width))
            }
            SlashCommand::Connect(plugin) => self.connect_account(plugin).await,
            SlashCommand::Model(None) => {
                self.show_lines(&lists::model_lines(&self.model_names(), &self.model_name));
            }
            SlashCommand::Model(Some(name)) => self.switch_model(name).await,
            SlashCommand::Last(number) => self.show_call_details(number),
            SlashCommand::Session => self.show_record_lines(Self::session_lines).await,
            SlashCommand::New => self.next_action = Some(NextAction::NewSession),
            SlashCommand::Undo => self.run_session_operation(Order::Undo).await,
            SlashCommand::UndoFiles => self.propose_undo().await,
            SlashCommand::Retry => {
                self.activity = ChatActivity::Turn { is_pinned: false };
                self.send(Order::Retry).await;
            }
            SlashCommand::Save(path) => self.save_session(path).await,
            SlashCommand::Cost => self.show_record_lines(Self::cost_lines).await,
            SlashCommand::Memory => self.show_record_lines(Self::memory_lines).await,
            SlashCommand::Guide => self.show_lines(&self.guide_lines()),
            SlashCommand::Pin(None) => self.run_session_operation(Order::Pin).await,
            SlashCommand::Pin(Some(text)) => self.submit_message(&text, line, true).await,
            SlashCommand::Compact => self.run_session_operation(Order::Summarize).await,
            SlashCommand::Quit => self.next_action = Some(NextAction::Leave),
            SlashCommand::Edit(text) => self.read_next_line(InitialInput::ExternalEditor(text)),
        }
    }

    /// Shows lines that are made from the records of the session.
    async fn show_record_lines(
        &self,
        to_lines: impl FnOnce(&Self, Vec<JournalRecord>) -> Vec<StyledLine>,
    ) {
        if let Some(records) = self.read_records().await {
            self.show_lines(&to_lines(self, records));
        }
    }

    /// Returns the records of the session. Shows why there are none.
    async fn read_records(&self) -> Option<Vec<JournalRecord>> {
        match self.chat_session.session.handle.snapshot().await {
            Ok(snapshot) => return Some(snapshot.records),
            Err(_) if self.chat_session.is_resumable && !self.is_stored().await => {
                self.show_lines(&note_lines("This session was removed."));
            }
            Err(error) => self.show_lines(&[view::error_line(&error.to_string())]),
        }
        None
    }

    async fn run_session_operation(&mut self, session_command: Order) {
        self.activity = ChatActivity::SessionOperation;
        self.send(session_command).await;
    }

    async fn switch_model(&mut self, name: String) {
        let chosen = self.settings.choose_model(&name).map_err(CommandFailure::from);
        let context_window = chosen.as_ref().ok().and_then(|chosen| chosen.context_tokens);
        let model_handle = chosen.and_then(|chosen| Ok(ModelHandle::from_choice(&chosen)?));
        let model = model_handle.and_then(|model_handle| {
            let model = model_handle.model_for_session(
                &self.roles,
                LOCAL_USER,
                &self.chat_session.session.session_id,
            )?;
            Ok((model_handle, model))
        });
        match model {
            Ok((model_handle, model)) => {
                self.model_handle = model_handle;
                self.model = model.clone();
                self.model_name = name;
                self.context_window = context_window;
                self.activity = ChatActivity::SessionOperation;
                // The end of the events reports the end of the session.
                let _ = self.chat_session.session.handle.use_model(model).await;
            }
            Err(failure) => self.show_failure(&failure),
        }
    }

    fn session_lines(&self, records: Vec<JournalRecord>) -> Vec<StyledLine> {
        let past = restore_session(records);
        let spent = past.spending();
        let mut lines = vec![
            pair_line("session", 8, &self.chat_session.session.session_id),
            pair_line("model", 8, self.model.name()),
            pair_line("turns", 8, &past.turn_count().to_string()),
            pair_line("tokens", 8, &spent.tokens.to_string()),
        ];
        lines.extend(match past.turn_count() {
            _ if !self.chat_session.is_resumable => note_lines("This session is not saved."),
            0 => note_lines("This session is saved from its first message on."),
            _ => note_lines(&format!("Resume with: {}", self.resume_command())),
        });
        lines
    }

    /// Whether the session is still stored. Another process may have removed it.
    pub(super) async fn is_stored(&self) -> bool {
        let id = &self.chat_session.session.session_id;
        setup::find_stored_session(self.settings, id).await.is_some()
    }

    /// The command that resumes the session.
    pub(super) fn resume_command(&self) -> String {
        format!("sallyport chat --session {}", self.chat_session.session.session_id)
    }

    /// Writes the session with its kept results to a new file.
    async fn save_session(&self, path: Option<PathBuf>) {
        let Some(records) = self.read_records().await else { return };
        let lines = match self.chat_session.session.handle.kept_texts(&records).await {
            Ok(kept_texts) => self.write_session(path, &records, &kept_texts),
            Err(error) => vec![view::error_line(&error.to_string())],
        };
        self.show_lines(&lines);
    }

    /// Writes the session to a new file and never overwrites one.
    fn write_session(
        &self,
        path: Option<PathBuf>,
        records: &[JournalRecord],
        kept_texts: &history::KeptTexts,
    ) -> Vec<StyledLine> {
        if history::past_turns(records).is_empty() {
            return note_lines("Nothing to save yet: this session has no messages.");
        }
        let named =
            path.unwrap_or_else(|| format!("{}.md", self.chat_session.session.session_id).into());
        let path = self.local_files.resolve_path(&named);
        let is_json = path.extension().is_some_and(|extension| extension == "json");
        let text = match is_json {
            true => format!("{:#}\n", history::export_json(records, kept_texts)),
            false => history::export_markdown(records, kept_texts),
        };
        match atomic_file::create_file(&path, text.as_bytes()) {
            Ok(()) => note_lines(&format!("written to {}", path.display())),
            Err(error) => {
                let message = format!("cannot write {}: {error}", path.display());
                let hint = match error.kind() {
                    io::ErrorKind::AlreadyExists => "nothing is overwritten: name another file",
                    _ => "choose a folder that you can write to",
                };
                vec![view::error_line(&message), view::hint_line(hint)]
            }
        }
    }

    fn cost_lines(&self, records: Vec<JournalRecord>) -> Vec<StyledLine> {
        let spent = restore_session(records).spending();
        let known = self.model.price().is_some() || spent.cost != TokenCost::default();
        let cost = if known { format_dollars(spent.cost) } else { "price not known".to_owned() };
        let last = self.last_turn.as_ref().map(|usage| {
            let bar = listing::bar_text(total_tokens(&usage.tokens), spent.tokens, BAR_COLUMNS);
            ListRow::new(["turn", &bar, &format_usage(usage)])
        });
        let bar = listing::bar_text(spent.tokens, spent.tokens, BAR_COLUMNS);
        let session = ListRow::new(["session", &bar, &format!("{} tokens, {cost}", spent.tokens)]);
        let fill = self.activity_tracker.context_fill(self.context_window).map(|fill| {
            let ContextFill { used_tokens, window_tokens } = fill;
            let bar = listing::bar_text(used_tokens, window_tokens, BAR_COLUMNS);
            let percent = fill.percent();
            ListRow::new(["context", &bar, &format!("{percent} % of {window_tokens} tokens")])
        });
        let rows: Vec<ListRow> = last.into_iter().chain([session]).chain(fill).collect();
        list_lines(&rows, Some(self.view.columns()))
    }

    /// Describes the assistant.
    fn guide_lines(&self) -> Vec<StyledLine> {
        let Some(guide) = &self.session_config.guide else {
            return note_lines("No guide is set. Start with --guide NAME to set one.");
        };
        let temperature =
            guide.temperature.map(|number| pair_line("temperature", 11, &number.to_string()));
        let memory = guide.memory.map(|kind| pair_line("memory", 11, kind.as_str()));
        let known =
            guide.memories.iter().map(|text| pair_line("knows", 11, &text::escape_line(text)));
        let prompt = text::escape_multiline(&guide.system_prompt);
        let lines = std::iter::once(pair_line("guide", 11, guide.plugin.as_str()));
        let lines = lines.chain(temperature).chain(memory).chain(known);
        lines.chain(prompt.lines().map(StyledLine::plain)).collect()
    }

    fn memory_lines(&self, records: Vec<JournalRecord>) -> Vec<StyledLine> {
        let memory = match self.session_config.memory() {
            MemoryMode::None => "The model gets the whole session.".to_owned(),
            MemoryMode::SlidingWindow { tokens_max } => {
                format!("the newest turns are sent, up to {tokens_max} tokens")
            }
            MemoryMode::Summary { tokens_max } => format!(
                "The model gets the newest turns, up to {tokens_max} tokens, and a summary of the others."
            ),
            MemoryMode::ByMeaning { tokens_max, .. } => format!(
                "the newest turns are sent, up to {tokens_max} tokens, and what bears on your words \
                 of the others"
            ),
        };
        let mut lines = vec![StyledLine::plain(memory)];
        if matches!(self.session_config.memory(), MemoryMode::ByMeaning { .. }) {
            lines.extend(note_lines(
                "`sallyport memory list` shows the memories; `sallyport memory forget` deletes them.",
            ));
        }
        if let count @ 1.. = self.session_config.initial_memories().len() {
            lines.push(StyledLine::plain(format!("initial memories: {count}")));
        }
        let turns = history::past_turns(&records);
        lines.extend(turns.iter().filter(|turn| turn.is_pinned).map(|turn| {
            let input = text::escape_excerpt(&turn.input.text, PINNED_CHARS_MAX);
            pair_line(&format!("pinned {}", turn.number), 0, &input)
        }));
        lines
    }
}

fn help_lines(entry: Option<&'static slash::SlashCommandEntry>) -> Vec<StyledLine> {
    if let Some(entry) = entry {
        return slash::command_help_lines(entry);
    }
    let width = KEYS.iter().map(|(key, _)| key.len()).max().unwrap_or(0);
    let keys = KEYS.iter().map(|(key, words)| pair_line(key, width, words));
    slash::help_lines().into_iter().chain([StyledLine::default()]).chain(keys).collect()
}

fn format_usage(usage: &TurnUsage) -> String {
    let cost = usage.cost.map_or_else(|| "price not known".to_owned(), format_dollars);
    let (answers, calls) =
        (format_count(usage.answers, "answer"), format_count(usage.calls, "call"));
    format!("{} tokens, {cost}, {answers}, {calls}", total_tokens(&usage.tokens))
}

/// Formats an amount with at least two decimals, and with as many as it needs.
fn format_dollars(cost: TokenCost) -> String {
    let part = format!("{:06}", cost.micro_usd % 1_000_000);
    let (cents, rest) = part.split_at(2);
    format!("${}.{cents}{}", cost.micro_usd / 1_000_000, rest.trim_end_matches('0'))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn money_has_at_least_cents() {
        let rows = [(0, "$0.00"), (1_500_000, "$1.50"), (42, "$0.000042"), (12_340_000, "$12.34")];
        for (micro_usd, want) in rows {
            assert_eq!(format_dollars(TokenCost { micro_usd }), want);
        }
    }
}
