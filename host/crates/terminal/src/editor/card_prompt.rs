//! Shows a card and waits for the key that answers it.

use std::{io, time::Duration};

use anstyle::Style;
use crossterm::{
    event::{self, DisableBracketedPaste, EnableBracketedPaste, Event, KeyEvent},
    execute, terminal,
};
use rustix::termios::{QueueSelector, tcflush};

use super::mode::TerminalModes;
use crate::{
    card::{self, ApprovalCard, ApprovalChoice},
    style::StyledLine,
};

/// Time without input before a key counts as an answer. A user who is still typing or holds a key
/// down has not read the card.
const TYPING_PAUSE: Duration = Duration::from_millis(300);

/// A key followed by another within this time was pasted or held down.
const PASTE_INTERVAL: Duration = Duration::from_millis(30);

/// Interval of checks whether the question was withdrawn.
const WITHDRAWAL_POLL_INTERVAL: Duration = Duration::from_millis(100);

/// Lines of a page reserved for the keys and the lines above them.
const KEY_LINES: usize = 5;

const BOLD: Style = Style::new().bold();

/// The result of showing a card.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum CardAnswer {
    /// A key that answers it: neither [`ApprovalChoice::More`] nor [`ApprovalChoice::Ignored`].
    Key(ApprovalChoice),
    /// The question was withdrawn.
    Withdrawn,
    /// The terminal is gone, so there is no answer.
    TerminalGone,
}

/// Shows a card and waits for the key that answers it.
pub(super) fn ask_card(
    card: &ApprovalCard,
    original: &TerminalModes,
    withdrawn: &dyn Fn() -> bool,
    line_sink: &mut dyn FnMut(&[StyledLine]),
) -> CardAnswer {
    let Ok(_keys) = SingleKeyMode::enable(original) else { return CardAnswer::TerminalGone };
    let answered = CardPrompt { card, withdrawn, line_sink }.wait_for_answer();
    answered.unwrap_or(CardAnswer::TerminalGone)
}

struct CardPrompt<'a> {
    card: &'a ApprovalCard,
    withdrawn: &'a dyn Fn() -> bool,
    line_sink: &'a mut dyn FnMut(&[StyledLine]),
}

impl CardPrompt<'_> {
    fn wait_for_answer(mut self) -> io::Result<CardAnswer> {
        // The flush discards the kernel's input buffer. `rest` reads and drops what arrives after
        // it.
        tcflush(io::stdin(), QueueSelector::IFlush)?;
        let (width, height) = terminal_size();
        (self.line_sink)(&self.card.summary_lines(width));
        if let Some(answer) = self.wait_for_pause()? {
            return Ok(answer);
        }
        let pages = self.card.pages(width, height.saturating_sub(KEY_LINES));
        let mut pages_seen = 0;
        loop {
            let is_unread = self.card.needs_full_view() && pages_seen < pages.len();
            let keys = self.key_lines(width, if is_unread { pages.len() - pages_seen } else { 0 });
            (self.line_sink)(&keys);
            match self.next_answer()? {
                CardAnswer::Key(ApprovalChoice::Ignored) => {}
                CardAnswer::Key(choice)
                    if choice == ApprovalChoice::More || (is_unread && choice.is_approval()) =>
                {
                    (self.line_sink)(&pages[pages_seen % pages.len()]);
                    pages_seen += 1;
                }
                answer => return Ok(answer),
            }
        }
    }

    /// The lines above the cursor: the subject, the number of unread pages, and the keys.
    fn key_lines(&self, width: usize, pages_unread: usize) -> Vec<StyledLine> {
        let unread = match pages_unread {
            0 => None,
            1 => Some("not all of it was shown: a yes counts after one more page".to_owned()),
            count => Some(format!(
                "Not everything was shown. Press ? for {count} more pages before you approve."
            )),
        };
        let unread = unread.map(|words| StyledLine::styled(words, BOLD));
        let above = self.card.reminder_line(width).into_iter().chain(unread);
        above.chain(self.card.key_lines(width)).collect()
    }

    /// Waits until the user stops typing. A key that cancels ends the wait.
    fn wait_for_pause(&mut self) -> io::Result<Option<CardAnswer>> {
        while !(self.withdrawn)() {
            if !event::poll(TYPING_PAUSE)? {
                return Ok(None);
            }
            if let Event::Key(key) = event::read()?
                && self.choice_for_key(key) == ApprovalChoice::Cancel
            {
                return Ok(Some(CardAnswer::Key(ApprovalChoice::Cancel)));
            }
        }
        Ok(Some(CardAnswer::Withdrawn))
    }

    /// Waits for the next key. Keys in quick succession are not answers.
    fn next_answer(&mut self) -> io::Result<CardAnswer> {
        while !(self.withdrawn)() {
            if !event::poll(WITHDRAWAL_POLL_INTERVAL)? {
                continue;
            }
            let choice = match event::read()? {
                Event::Key(key) => self.choice_for_key(key),
                Event::Paste(_) => ApprovalChoice::Ignored,
                _ => continue,
            };
            if choice == ApprovalChoice::Cancel || !event::poll(PASTE_INTERVAL)? {
                return Ok(CardAnswer::Key(choice));
            }
            return Ok(self.wait_for_pause()?.unwrap_or(CardAnswer::Key(ApprovalChoice::Ignored)));
        }
        Ok(CardAnswer::Withdrawn)
    }

    fn choice_for_key(&self, key: KeyEvent) -> ApprovalChoice {
        card::choice_for_key(key, &self.card.options())
    }
}

/// Columns and rows of the terminal.
fn terminal_size() -> (usize, usize) {
    let (width, height) = terminal::size().unwrap_or((80, 24));
    (width.into(), height.into())
}

/// Guard that puts the terminal into single-key mode with bracketed paste.
struct SingleKeyMode<'a>(&'a TerminalModes);

impl<'a> SingleKeyMode<'a> {
    fn enable(original: &'a TerminalModes) -> io::Result<Self> {
        original.enable_single_keys()?;
        execute!(io::stderr(), EnableBracketedPaste)?;
        Ok(Self(original))
    }
}

impl Drop for SingleKeyMode<'_> {
    fn drop(&mut self) {
        let _ = execute!(io::stderr(), DisableBracketedPaste);
        // The next read reports a terminal that is gone.
        let _ = self.0.disable_echo();
    }
}
