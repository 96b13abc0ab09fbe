//! Shows a card and waits for the key that answers it.

use std::{io, time::Duration};

use anstyle::Style;
use crossterm::{
    event::{self, DisableBracketedPaste, EnableBracketedPaste, Event, KeyEvent},
    execute, terminal,
};
use rustix::termios::{QueueSelector, tcflush};

use super::mode::Original;
use crate::{
    card::{self, Card, Choice},
    style::Line,
};

/// Time without input before a key counts as an answer. A user who is still typing or holds a key
/// down has not read the card.
const REST: Duration = Duration::from_millis(300);

/// A key followed by another within this time was pasted or held down.
const ALONE: Duration = Duration::from_millis(30);

/// Interval of checks whether the question was withdrawn.
const LOOK: Duration = Duration::from_millis(100);

/// Lines of a page reserved for the keys and the lines above them.
const KEY_LINES: usize = 5;

const BOLD: Style = Style::new().bold();

/// The result of showing a card.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Answer {
    /// A key that answers it: neither [`Choice::More`] nor [`Choice::Other`].
    Key(Choice),
    /// The question was withdrawn.
    Withdrawn,
    /// The terminal is gone, so there is no answer.
    Gone,
}

/// Shows a card and waits for the key that answers it.
pub(super) fn ask(
    card: &Card,
    original: &Original,
    withdrawn: &dyn Fn() -> bool,
    show: &mut dyn FnMut(&[Line]),
) -> Answer {
    let Ok(_keys) = SingleKeys::begin(original) else { return Answer::Gone };
    let answered = Asking { card, withdrawn, show }.until_answered();
    answered.unwrap_or(Answer::Gone)
}

struct Asking<'a> {
    card: &'a Card,
    withdrawn: &'a dyn Fn() -> bool,
    show: &'a mut dyn FnMut(&[Line]),
}

impl Asking<'_> {
    fn until_answered(mut self) -> io::Result<Answer> {
        // The flush discards the kernel's input buffer. `rest` reads and drops what arrives after
        // it.
        tcflush(io::stdin(), QueueSelector::IFlush)?;
        let (width, height) = size();
        (self.show)(&self.card.lines(width));
        if let Some(answer) = self.rest()? {
            return Ok(answer);
        }
        let pages = self.card.pages(width, height.saturating_sub(KEY_LINES));
        let mut seen = 0;
        loop {
            let is_unread = self.card.has_to_be_read() && seen < pages.len();
            let keys = self.keys(width, if is_unread { pages.len() - seen } else { 0 });
            (self.show)(&keys);
            match self.next()? {
                Answer::Key(Choice::Other) => {}
                Answer::Key(choice) if choice == Choice::More || (is_unread && choice.is_yes()) => {
                    (self.show)(&pages[seen % pages.len()]);
                    seen += 1;
                }
                answer => return Ok(answer),
            }
        }
    }

    /// The lines above the cursor: the subject, the number of unread pages, and the keys.
    fn keys(&self, width: usize, pages_unread: usize) -> Vec<Line> {
        let unread = match pages_unread {
            0 => None,
            1 => Some("not all of it was shown: a yes counts after one more page".to_owned()),
            count => Some(format!(
                "Not everything was shown. Press ? for {count} more pages before you approve."
            )),
        };
        let unread = unread.map(|words| Line::styled(words, BOLD));
        let above = self.card.reminder(width).into_iter().chain(unread);
        above.chain(self.card.keys(width)).collect()
    }

    /// Waits until the user stops typing. A key that cancels ends the wait.
    fn rest(&mut self) -> io::Result<Option<Answer>> {
        while !(self.withdrawn)() {
            if !event::poll(REST)? {
                return Ok(None);
            }
            if let Event::Key(key) = event::read()?
                && self.means(key) == Choice::Cancel
            {
                return Ok(Some(Answer::Key(Choice::Cancel)));
            }
        }
        Ok(Some(Answer::Withdrawn))
    }

    /// Waits for the next key. Keys in quick succession are not answers.
    fn next(&mut self) -> io::Result<Answer> {
        while !(self.withdrawn)() {
            if !event::poll(LOOK)? {
                continue;
            }
            let choice = match event::read()? {
                Event::Key(key) => self.means(key),
                Event::Paste(_) => Choice::Other,
                _ => continue,
            };
            if choice == Choice::Cancel || !event::poll(ALONE)? {
                return Ok(Answer::Key(choice));
            }
            return Ok(self.rest()?.unwrap_or(Answer::Key(Choice::Other)));
        }
        Ok(Answer::Withdrawn)
    }

    fn means(&self, key: KeyEvent) -> Choice {
        card::key(key, &self.card.offers())
    }
}

/// Columns and rows of the terminal.
fn size() -> (usize, usize) {
    let (width, height) = terminal::size().unwrap_or((80, 24));
    (width.into(), height.into())
}

/// Guard that puts the terminal into single-key mode with bracketed paste.
struct SingleKeys<'a>(&'a Original);

impl<'a> SingleKeys<'a> {
    fn begin(original: &'a Original) -> io::Result<Self> {
        original.single_keys()?;
        execute!(io::stderr(), EnableBracketedPaste)?;
        Ok(Self(original))
    }
}

impl Drop for SingleKeys<'_> {
    fn drop(&mut self) {
        let _ = execute!(io::stderr(), DisableBracketedPaste);
        // The next read reports a terminal that is gone.
        let _ = self.0.quiet();
    }
}
