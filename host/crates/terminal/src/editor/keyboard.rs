//! The thread that reads the terminal.

use std::{
    io::{self, IsTerminal},
    sync::{
        Arc, Mutex, PoisonError,
        atomic::{AtomicBool, AtomicU64, Ordering},
        mpsc::{self, Receiver, Sender},
    },
    thread,
    time::Duration,
};

use super::{
    card_prompt::{CardAnswer, ask_card},
    completion::CompletionNames,
    line::{
        EditorSettings, InitialInput, LineEditor, LineInput, MessagePrinter, SharedEditorState,
        interrupt_reading,
    },
    mode::TerminalModes,
    prompt::InputPrompt,
    type_ahead::TypedAheadInput,
};
use crate::{card::ApprovalCard, style::StyledLine, typed_ahead::TypedAhead};

/// Longest wait for the thread at the end. It checks for withdrawal ten times a second, unless the
/// external editor has the terminal.
const END_WAIT: Duration = Duration::from_millis(500);

/// Shows lines to the user below the current output. It is called on the keyboard's thread.
pub type LineSink = Box<dyn FnMut(&[StyledLine]) + Send>;

/// Shows what the user types ahead. It is called on the keyboard's thread.
type TypedAheadSink = Box<dyn FnMut(&TypedAhead) + Send>;

/// Identifies a question so that it can be withdrawn.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub struct PromptTicket(u64);

/// Why the keyboard cannot be used.
#[derive(Debug, thiserror::Error)]
pub enum KeyboardError {
    /// A standard stream is not a terminal.
    #[error("standard input, output and error must be a terminal")]
    NoTerminal,
    /// The terminal or its thread cannot be set up.
    #[error("the terminal cannot be used: {0}")]
    Terminal(#[from] io::Error),
}

/// The thread that reads the terminal. It handles questions one after another.
pub struct Keyboard {
    jobs: Sender<KeyboardJob>,
    ended: Receiver<()>,
    last_ticket: AtomicU64,
    withdrawn: Arc<AtomicU64>,
    break_flag: Arc<AtomicBool>,
    completion_names: Arc<Mutex<CompletionNames>>,
    printer: MessagePrinter,
    original: TerminalModes,
}

enum KeyboardJob {
    Read {
        ticket: u64,
        prompt: InputPrompt,
        initial_input: InitialInput,
        reply: Reply<LineInput>,
    },
    Ask {
        ticket: u64,
        card: Box<ApprovalCard>,
        reply: Reply<CardAnswer>,
    },
    ReadAhead {
        ticket: u64,
        typed: TypedAhead,
        on_change: TypedAheadSink,
        reply: Reply<TypedAheadInput>,
    },
}

type Reply<T> = Box<dyn FnOnce(T) + Send>;

impl Keyboard {
    /// Takes over the terminal. Also returns notices, such as a history that cannot be used.
    ///
    /// # Errors
    ///
    /// A standard stream is not a terminal, or the terminal's modes cannot be set.
    pub fn start(
        settings: EditorSettings,
        line_sink: LineSink,
    ) -> Result<(Self, Vec<StyledLine>), KeyboardError> {
        let all =
            io::stdin().is_terminal() && io::stdout().is_terminal() && io::stderr().is_terminal();
        if !all {
            return Err(KeyboardError::NoTerminal);
        }
        let original = TerminalModes::read_modes()?;
        let shared = SharedEditorState::new();
        let (jobs, job_receiver) = mpsc::channel();
        let (end, ended) = mpsc::channel();
        let withdrawn = Arc::new(AtomicU64::new(0));
        let keyboard = Self {
            jobs,
            ended,
            last_ticket: AtomicU64::new(0),
            withdrawn: Arc::clone(&withdrawn),
            break_flag: Arc::clone(&shared.break_flag),
            completion_names: Arc::clone(&shared.completion_names),
            printer: shared.create_printer(settings.colour),
            original: original.clone(),
        };
        let break_flag = Arc::clone(&shared.break_flag);
        let (editor, notices) = LineEditor::new(settings, shared, original.clone());
        original.disable_echo()?;
        let worker =
            KeyboardWorker { editor, original, withdrawn, break_flag, line_sink, _end: end };
        thread::Builder::new().name("keyboard".into()).spawn(|| worker.run_jobs(job_receiver))?;
        Ok((keyboard, notices))
    }

    /// Reads a line and passes the result to `reply`, on the keyboard's thread.
    pub fn read_line(
        &self,
        prompt: InputPrompt,
        initial_input: InitialInput,
        reply: impl FnOnce(LineInput) + Send + 'static,
    ) -> PromptTicket {
        let ticket = self.next_ticket();
        self.send_job(KeyboardJob::Read {
            ticket: ticket.0,
            prompt,
            initial_input,
            reply: Box::new(reply),
        });
        ticket
    }

    /// Shows a card and passes the key that answers it to `reply`, on the keyboard's thread.
    ///
    /// Earlier input is discarded. The line with the keys appears after a short time without input,
    /// and only keys pressed after that are answers.
    pub fn ask_card(
        &self,
        card: ApprovalCard,
        reply: impl FnOnce(CardAnswer) + Send + 'static,
    ) -> PromptTicket {
        let ticket = self.next_ticket();
        self.send_job(KeyboardJob::Ask {
            ticket: ticket.0,
            card: Box::new(card),
            reply: Box::new(reply),
        });
        ticket
    }

    /// Reads what the user types while the program is busy, until it is withdrawn or Ctrl-D ends it.
    ///
    /// The thread shows nothing itself: `on_change` receives every new state, and an empty one at
    /// the end. What was typed is passed to `reply`, on the keyboard's thread.
    pub fn read_ahead(
        &self,
        typed: TypedAhead,
        on_change: impl FnMut(&TypedAhead) + Send + 'static,
        reply: impl FnOnce(TypedAheadInput) + Send + 'static,
    ) -> PromptTicket {
        let ticket = self.next_ticket();
        self.send_job(KeyboardJob::ReadAhead {
            ticket: ticket.0,
            typed,
            on_change: Box::new(on_change),
            reply: Box::new(reply),
        });
        ticket
    }

    /// Withdraws a question and all earlier ones. Those without an answer are answered as
    /// withdrawn.
    pub fn withdraw_prompt(&self, ticket: PromptTicket) {
        self.withdrawn.fetch_max(ticket.0, Ordering::SeqCst);
        interrupt_reading(&self.break_flag);
    }

    /// Replaces the names that Tab completes.
    pub fn set_completion_names(&self, completion_names: CompletionNames) {
        *self.completion_names.lock().unwrap_or_else(PoisonError::into_inner) = completion_names;
    }

    /// Returns a printer for messages above the line that is being typed.
    pub fn printer(&self) -> MessagePrinter {
        self.printer.clone()
    }

    /// Returns the modes that the terminal had at the start.
    pub fn original_modes(&self) -> TerminalModes {
        self.original.clone()
    }

    fn next_ticket(&self) -> PromptTicket {
        PromptTicket(self.last_ticket.fetch_add(1, Ordering::SeqCst) + 1)
    }

    fn send_job(&self, job: KeyboardJob) {
        // The thread ends only when this is dropped, or by a panic. Then the answer is that the
        // terminal is gone.
        if let Err(mpsc::SendError(job)) = self.jobs.send(job) {
            job.reply_closed();
        }
    }
}

impl Drop for Keyboard {
    fn drop(&mut self) {
        // Waiting questions are withdrawn, and the closed channel then ends the thread.
        self.withdrawn.store(u64::MAX, Ordering::SeqCst);
        interrupt_reading(&self.break_flag);
        (self.jobs, _) = mpsc::channel();
        let _ = self.ended.recv_timeout(END_WAIT);
        self.original.restore();
    }
}

impl KeyboardJob {
    fn reply_closed(self) {
        match self {
            Self::Read { reply, .. } => reply(LineInput::End),
            Self::Ask { reply, .. } => reply(CardAnswer::TerminalGone),
            Self::ReadAhead { typed, reply, .. } => reply(TypedAheadInput { typed, is_end: true }),
        }
    }
}

/// The state of the thread.
struct KeyboardWorker {
    editor: LineEditor,
    original: TerminalModes,
    withdrawn: Arc<AtomicU64>,
    break_flag: Arc<AtomicBool>,
    line_sink: LineSink,
    /// Dropped with the thread, which signals its end.
    _end: Sender<()>,
}

impl KeyboardWorker {
    fn run_jobs(mut self, jobs: Receiver<KeyboardJob>) {
        for job in jobs {
            match job {
                KeyboardJob::Read { ticket, prompt, initial_input, reply } => {
                    reply(self.read_line(ticket, &prompt, &initial_input));
                }
                KeyboardJob::Ask { ticket, card, reply } => reply(self.ask_card(ticket, &card)),
                KeyboardJob::ReadAhead { ticket, typed, mut on_change, reply } => {
                    let withdrawn = || self.withdrawn.load(Ordering::SeqCst) >= ticket;
                    reply(self.editor.read_ahead(typed, &withdrawn, &mut on_change));
                }
            }
        }
    }

    fn read_line(
        &mut self,
        ticket: u64,
        prompt: &InputPrompt,
        initial_input: &InitialInput,
    ) -> LineInput {
        // Reset the flag before checking for withdrawal, because a withdrawal in between would
        // otherwise be lost.
        self.break_flag.store(false, Ordering::SeqCst);
        let withdrawn = || self.withdrawn.load(Ordering::SeqCst) >= ticket;
        let input = self.editor.read_line(prompt, initial_input, &withdrawn, &mut self.line_sink);
        let _ = self.original.disable_echo();
        input.unwrap_or(LineInput::End)
    }

    fn ask_card(&mut self, ticket: u64, card: &ApprovalCard) -> CardAnswer {
        let withdrawn = || self.withdrawn.load(Ordering::SeqCst) >= ticket;
        ask_card(card, &self.original, &withdrawn, &mut self.line_sink)
    }
}
