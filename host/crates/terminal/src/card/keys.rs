//! The keys that answer a card.

use anstyle::{AnsiColor, Style};
use crossterm::event::{KeyCode, KeyEvent, KeyEventKind, KeyModifiers};
use sallyport_contract::{ApprovalRequest, ApprovalSubject, FormQuestion};

use crate::style::StyledLine;

const KEY: Style = AnsiColor::Cyan.on_default().bold();

/// What a key means while a card is open.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum ApprovalChoice {
    /// Yes, for this question only.
    Once,
    /// Yes, and to the same question for the rest of the session.
    Session,
    /// Yes, and write the rule that the card shows into the policy.
    Always,
    /// Edit the arguments first.
    Edit,
    /// Show the next of several grants. It is not an answer yet.
    Wider,
    /// Name the folder that is granted. It is not an answer yet.
    NameFolder,
    /// Fill in the form. It is not an answer yet.
    FillIn,
    /// No.
    No,
    /// No, with a reason that the user types next.
    NoWithReason,
    /// End the whole turn.
    Cancel,
    /// Show the next page of the whole card.
    More,
    /// Not an answer. The keys are shown again.
    Ignored,
}

impl ApprovalChoice {
    /// Whether it approves, for any duration.
    pub fn is_approval(self) -> bool {
        matches!(self, Self::Once | Self::Session | Self::Always)
    }
}

/// Prefix of the tool name in a run that no model requested, such as `role:timer`. No model wrote
/// its arguments, so they cannot be edited.
const ROLE_PREFIX: &str = "role:";

/// Answers that a card offers in addition to those that every card has.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct ApprovalOptions {
    /// A rule would allow the call permanently, and the card shows its text.
    pub always: bool,
    /// The arguments can still be changed: the call is not running yet.
    pub edit: bool,
    /// There are several grants to choose from.
    pub wider: bool,
    /// The grant is of a folder that the user chooses.
    pub folder: bool,
    /// There is a form to fill in.
    pub form: bool,
    /// An approval holds for this question only.
    pub is_single: bool,
    /// The folder is not named yet, or the form not filled in, so there is nothing to approve.
    pub is_incomplete: bool,
}

impl ApprovalOptions {
    /// Returns the additional answers for a request.
    pub fn from_request(request: &ApprovalRequest) -> Self {
        let is_role = request.call.tool.tool.as_str().starts_with(ROLE_PREFIX);
        let edit = request.subject == ApprovalSubject::Call && !is_role;
        let (always, wider, folder) = (request.rule.is_some(), false, false);
        let form_question = request.form_question();
        let form = form_question.is_some_and(FormQuestion::needs_values);
        let is_single = form_question.is_some();
        Self { always, edit, wider, folder, form, is_single, is_incomplete: form }
    }

    /// The lines that list the keys. They wrap only between keys.
    pub(super) fn key_lines(&self, width: usize) -> Vec<StyledLine> {
        let mut lines = vec![StyledLine::default()];
        for (key, words) in self.key_labels() {
            let columns = key.len() + words.len() + " · [] ".len();
            let last = lines.len() - 1;
            match lines[last].width() {
                0 => {}
                used if used + columns > width => lines.push(StyledLine::default()),
                _ => lines[last].push(" · ", Style::new()),
            }
            let last = lines.len() - 1;
            lines[last].push(&format!("[{key}]"), KEY);
            lines[last].push(&format!(" {words}"), Style::new());
        }
        lines
    }

    fn offers_session(&self) -> bool {
        !self.is_incomplete && !self.is_single
    }

    fn offers_always(&self) -> bool {
        self.always && self.offers_session()
    }

    fn key_labels(&self) -> impl Iterator<Item = (&'static str, &'static str)> {
        let keys = [
            (self.folder, "f", "name the folder"),
            (self.form, "f", "fill in"),
            (!self.is_incomplete, "y", "once"),
            (self.offers_session(), "s", "this session"),
            (self.offers_always(), "a", "always"),
            (self.wider, "w", "next grant"),
            (self.edit, "e", "edit arguments"),
            (true, "n", "no"),
            (true, "r", "no, with a reason"),
            (true, "c", "cancel the turn"),
            (true, "?", "more"),
        ];
        keys.into_iter().filter(|(offered, ..)| *offered).map(|(_, key, words)| (key, words))
    }
}

/// Returns the meaning of a key. Keys with Alt or Control have none, except Ctrl-C.
pub fn choice_for_key(event: KeyEvent, options: &ApprovalOptions) -> ApprovalChoice {
    if event.kind != KeyEventKind::Press {
        return ApprovalChoice::Ignored;
    }
    let plain = event.modifiers.difference(KeyModifiers::SHIFT).is_empty();
    match event.code {
        KeyCode::Char('c') if event.modifiers == KeyModifiers::CONTROL => ApprovalChoice::Cancel,
        KeyCode::Esc => ApprovalChoice::Cancel,
        KeyCode::Char(letter) if plain => choice_for_letter(letter.to_ascii_lowercase(), options),
        _ => ApprovalChoice::Ignored,
    }
}

fn choice_for_letter(letter: char, options: &ApprovalOptions) -> ApprovalChoice {
    match letter {
        'y' if !options.is_incomplete => ApprovalChoice::Once,
        's' if options.offers_session() => ApprovalChoice::Session,
        'a' if options.offers_always() => ApprovalChoice::Always,
        'w' if options.wider => ApprovalChoice::Wider,
        'f' if options.folder => ApprovalChoice::NameFolder,
        'f' if options.form => ApprovalChoice::FillIn,
        'e' if options.edit => ApprovalChoice::Edit,
        'n' => ApprovalChoice::No,
        'r' => ApprovalChoice::NoWithReason,
        'c' => ApprovalChoice::Cancel,
        '?' => ApprovalChoice::More,
        _ => ApprovalChoice::Ignored,
    }
}
