//! JSON lists whose items are made while they are written.

use serde::{Serialize, Serializer};
use serde_json::Value;

/// The values of a long conversation take several times the memory of its text, so they must not
/// all exist at the same time. The function starts the list whenever it is written.
pub(crate) struct LazySequence<F>(pub(crate) F);

impl<F, I> Serialize for LazySequence<F>
where
    F: Fn() -> I,
    I: Iterator<Item: Serialize>,
{
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        serializer.collect_seq((self.0)())
    }
}

/// Joins the content of consecutive messages of one role, for providers whose roles alternate. Each
/// message is its role and its content; those without content are left out.
pub(crate) fn join_turns(
    messages: impl Iterator<Item = (&'static str, Vec<Value>)>,
) -> impl Iterator<Item = (&'static str, Vec<Value>)> {
    let mut messages = messages.filter(|(_, content)| !content.is_empty()).peekable();
    std::iter::from_fn(move || {
        let (role, mut content) = messages.next()?;
        while let Some((_, mut more)) = messages.next_if(|(next, _)| *next == role) {
            content.append(&mut more);
        }
        Some((role, content))
    })
}
