//! A JSON list whose items are made while it is written.

use serde::{Serialize, Serializer};

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
