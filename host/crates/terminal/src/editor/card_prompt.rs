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
    card::{self, ApprovalCard, ApprovalChoice, count_rows},
    style::StyledLine,
};

/// Time without input before a key counts as an answer. A user who is still typing or holds a key
/// down has not read the card.
const TYPING_PAUSE: Duration = Duration::from_millis(300);

/// A key followed by another within this time was pasted or held down.
const PASTE_INTERVAL: Duration = Duration::from_millis(30);

/// Interval of checks whether the question was withdrawn.
const WITHDRAWAL_POLL_INTERVAL: Duration = Duration::from_millis(100);

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
        // The cursor takes a row, too.
        let room = |keys: &[StyledLine]| height.saturating_sub(count_rows(keys, width) + 1);
        let pages_noted = if self.card.needs_full_view() { 2 } else { 0 };
        let rows_max = room(&self.key_lines(width, pages_noted, 0, false));
        let (parts, pages) =
            (self.card.summary_parts(width, rows_max), self.card.pages(width, rows_max));
        (self.line_sink)(&parts[0]);
        if let Some(answer) = self.wait_for_pause()? {
            return Ok(answer);
        }
        // `?` shows the other parts of the summary, and then the whole card, again and again.
        let (other_parts, mut views_seen) = (&parts[1..], 0_usize);
        let mut above = count_rows(&parts[0], width);
        loop {
            let pages_seen = views_seen.saturating_sub(other_parts.len());
            let is_unread = self.card.needs_full_view() && pages_seen < pages.len();
            let unread = if is_unread { pages.len() - pages_seen } else { 0 };
            let mut keys = self.key_lines(width, unread, 0, views_seen == 0);
            if above > room(&keys) {
                keys = self.key_lines(width, unread, 2, false);
                keys = self.key_lines(width, unread, above.saturating_sub(room(&keys)), false);
            }
            (self.line_sink)(&keys);
            match self.next_answer()? {
                CardAnswer::Key(ApprovalChoice::Ignored) => {}
                CardAnswer::Key(choice)
                    if choice == ApprovalChoice::More || (is_unread && choice.is_approval()) =>
                {
                    let page = other_parts.get(views_seen);
                    let page = page.unwrap_or_else(|| &pages[pages_seen % pages.len()]);
                    (self.line_sink)(page);
                    above = count_rows(page, width);
                    views_seen += 1;
                }
                answer => return Ok(answer),
            }
        }
    }

    /// The lines above the cursor: the subject, the number of lines above the window, the number of
    /// unread pages, and the keys.
    fn key_lines(
        &self,
        width: usize,
        pages_unread: usize,
        rows_hidden: usize,
        is_title_visible: bool,
    ) -> Vec<StyledLine> {
        let hidden = match rows_hidden {
            0 => None,
            1 => Some("… 1 line above: scroll up or press ?".to_owned()),
            count => Some(format!("… {count} lines above: scroll up or press ?")),
        };
        let unread = match pages_unread {
            0 => None,
            1 => Some("Not everything was shown. Press ? for one more page before you approve."),
            _ => Some("Not everything was shown. Press ? for the other pages before you approve."),
        };
        let notes = hidden.into_iter().chain(unread.map(str::to_owned));
        let notes = notes.flat_map(|words| StyledLine::styled(words, BOLD).fold_to_width(width, 0));
        let above = self.card.reminder_line(width, is_title_visible).into_iter().chain(notes);
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
