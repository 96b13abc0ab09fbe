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
    ask::{Answer, ask},
    complete::Vocabulary,
    line::{Begin, Editor, Input, Printer, Settings, Shared, break_off},
    mode::Original,
    prompt::Prompt,
};
use crate::{card::Card, style::Line};

/// Longest wait for the thread at the end. It checks for withdrawal ten times a second, unless the
/// external editor has the terminal.
const END_WAIT: Duration = Duration::from_millis(500);

/// Shows lines to the user below the current output. It is called on the keyboard's thread.
pub type Show = Box<dyn FnMut(&[Line]) + Send>;

/// Identifies a question so that it can be withdrawn.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub struct Ticket(u64);

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
    jobs: Sender<Job>,
    ended: Receiver<()>,
    last: AtomicU64,
    withdrawn: Arc<AtomicU64>,
    broken: Arc<AtomicBool>,
    words: Arc<Mutex<Vocabulary>>,
    printer: Printer,
    original: Original,
}

enum Job {
    Read { ticket: u64, prompt: Prompt, begin: Begin, reply: Reply<Input> },
    Ask { ticket: u64, card: Box<Card>, reply: Reply<Answer> },
}

type Reply<T> = Box<dyn FnOnce(T) + Send>;

impl Keyboard {
    /// Takes over the terminal. Also returns notices, such as a history that cannot be used.
    ///
    /// # Errors
    ///
    /// A standard stream is not a terminal, or the terminal's modes cannot be set.
    pub fn start(settings: Settings, show: Show) -> Result<(Self, Vec<Line>), KeyboardError> {
        let all =
            io::stdin().is_terminal() && io::stdout().is_terminal() && io::stderr().is_terminal();
        if !all {
            return Err(KeyboardError::NoTerminal);
        }
        let original = Original::read()?;
        let shared = Shared::new();
        let (jobs, waiting) = mpsc::channel();
        let (end, ended) = mpsc::channel();
        let withdrawn = Arc::new(AtomicU64::new(0));
        let keyboard = Self {
            jobs,
            ended,
            last: AtomicU64::new(0),
            withdrawn: Arc::clone(&withdrawn),
            broken: Arc::clone(&shared.broken),
            words: Arc::clone(&shared.words),
            printer: shared.printer(settings.colour),
            original: original.clone(),
        };
        let broken = Arc::clone(&shared.broken);
        let (editor, notices) = Editor::new(settings, shared, original.clone());
        original.quiet()?;
        let thread = Thread { editor, original, withdrawn, broken, show, _end: end };
        thread::Builder::new().name("keyboard".into()).spawn(|| thread.serve(waiting))?;
        Ok((keyboard, notices))
    }

    /// Reads a line and passes the result to `reply`, on the keyboard's thread.
    pub fn read(
        &self,
        prompt: Prompt,
        begin: Begin,
        reply: impl FnOnce(Input) + Send + 'static,
    ) -> Ticket {
        let ticket = self.ticket();
        self.give(Job::Read { ticket: ticket.0, prompt, begin, reply: Box::new(reply) });
        ticket
    }

    /// Shows a card and passes the key that answers it to `reply`, on the keyboard's thread.
    ///
    /// Earlier input is discarded. The line with the keys appears after a short time without input,
    /// and only keys pressed after that are answers.
    pub fn ask(&self, card: Card, reply: impl FnOnce(Answer) + Send + 'static) -> Ticket {
        let ticket = self.ticket();
        self.give(Job::Ask { ticket: ticket.0, card: Box::new(card), reply: Box::new(reply) });
        ticket
    }

    /// Withdraws a question and all earlier ones. Those without an answer are answered as
    /// withdrawn.
    pub fn withdraw(&self, ticket: Ticket) {
        self.withdrawn.fetch_max(ticket.0, Ordering::SeqCst);
        break_off(&self.broken);
    }

    /// Replaces the names that Tab completes.
    pub fn know(&self, words: Vocabulary) {
        *self.words.lock().unwrap_or_else(PoisonError::into_inner) = words;
    }

    /// Returns a printer for messages above the line that is being typed.
    pub fn printer(&self) -> Printer {
        self.printer.clone()
    }

    /// Returns the modes that the terminal had at the start.
    pub fn original(&self) -> Original {
        self.original.clone()
    }

    fn ticket(&self) -> Ticket {
        Ticket(self.last.fetch_add(1, Ordering::SeqCst) + 1)
    }

    fn give(&self, job: Job) {
        // The thread ends only when this is dropped, or by a panic. Then the answer is that the
        // terminal is gone.
        if let Err(mpsc::SendError(job)) = self.jobs.send(job) {
            job.nobody();
        }
    }
}

impl Drop for Keyboard {
    fn drop(&mut self) {
        // Waiting questions are withdrawn, and the closed channel then ends the thread.
        self.withdrawn.store(u64::MAX, Ordering::SeqCst);
        break_off(&self.broken);
        (self.jobs, _) = mpsc::channel();
        let _ = self.ended.recv_timeout(END_WAIT);
        self.original.restore();
    }
}

impl Job {
    fn nobody(self) {
        match self {
            Self::Read { reply, .. } => reply(Input::End),
            Self::Ask { reply, .. } => reply(Answer::Gone),
        }
    }
}

/// The state of the thread.
struct Thread {
    editor: Editor,
    original: Original,
    withdrawn: Arc<AtomicU64>,
    broken: Arc<AtomicBool>,
    show: Show,
    /// Dropped with the thread, which signals its end.
    _end: Sender<()>,
}

impl Thread {
    fn serve(mut self, jobs: Receiver<Job>) {
        for job in jobs {
            match job {
                Job::Read { ticket, prompt, begin, reply } => {
                    reply(self.read(ticket, &prompt, &begin));
                }
                Job::Ask { ticket, card, reply } => reply(self.ask(ticket, &card)),
            }
        }
    }

    fn read(&mut self, ticket: u64, prompt: &Prompt, begin: &Begin) -> Input {
        // Reset the flag before checking for withdrawal, because a withdrawal in between would
        // otherwise be lost.
        self.broken.store(false, Ordering::SeqCst);
        let withdrawn = || self.withdrawn.load(Ordering::SeqCst) >= ticket;
        let input = self.editor.read(prompt, begin, &withdrawn, &mut self.show);
        let _ = self.original.quiet();
        input.unwrap_or(Input::End)
    }

    fn ask(&mut self, ticket: u64, card: &Card) -> Answer {
        let withdrawn = || self.withdrawn.load(Ordering::SeqCst) >= ticket;
        ask(card, &self.original, &withdrawn, &mut self.show)
    }
}
