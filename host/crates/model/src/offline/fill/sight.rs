//! Values that can be told by their look: addresses, paths, mail addresses, quotations.

use super::clues::Clues;
use crate::offline::tokens::Kind;

/// Returns an address; a bare domain becomes one.
pub(super) fn url(clues: &mut Clues<'_, '_>) -> Option<String> {
    let at = clues.first(&[Kind::Url]).or_else(|| clues.first(&[Kind::Dotted]))?;
    let text = clues.take(at..at + 1);
    Some(if text.contains("://") { text.to_owned() } else { format!("https://{text}") })
}

/// Returns a path, or what can be one: a file name, a quotation, the word after "in".
pub(super) fn path(clues: &mut Clues<'_, '_>, required: bool) -> Option<String> {
    let seen = clues.first(&[Kind::Path]).or_else(|| clues.first(&[Kind::Dotted]));
    let at = match seen {
        None if required => path_in_words(clues)?,
        seen => seen?,
    };
    Some(clues.take(at..at + 1).to_owned())
}

fn path_in_words(clues: &Clues<'_, '_>) -> Option<usize> {
    let words = clues.words();
    let slashed = |at: &usize| words[*at].text.contains('/') && clues.is_free(*at);
    let quoted = (0..words.len()).filter(|&at| words[at].kind == Kind::Quoted).find(slashed);
    quoted.or_else(|| {
        let leads = ["in", "from", "of", "called", "named", "inside", "under"];
        let leading = (1..words.len()).filter(|&at| leads.contains(&words[at - 1].lower.as_str()));
        leading.filter(|&at| words[at].kind == Kind::Word).find(|&at| clues.is_telling(at))
    })
}

/// Returns a mail address.
pub(super) fn email(clues: &mut Clues<'_, '_>) -> Option<String> {
    let at = clues.first(&[Kind::Email])?;
    Some(clues.take(at..at + 1).to_owned())
}

/// Returns what stands in quotation marks.
pub(super) fn quoted(clues: &mut Clues<'_, '_>) -> Option<String> {
    let at = clues.first(&[Kind::Quoted])?;
    Some(clues.take(at..at + 1).to_owned())
}
