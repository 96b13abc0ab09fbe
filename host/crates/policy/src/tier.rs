//! Tiers of policy files: who keeps a file decides what it may say.
//!
//! The machine's administrator and its user grant. A project's file often comes from somebody else,
//! along with the files it lies among, so it can only take away.

use crate::{document::Item, source::SourceError};

/// Who keeps a policy file.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum Tier {
    /// The administrator of the machine.
    Admin,
    /// The user.
    User,
    /// Whoever wrote the project that the user works in.
    Project,
}

impl Tier {
    /// The word for it in messages.
    pub fn word(self) -> &'static str {
        match self {
            Self::Admin => "admin",
            Self::User => "user",
            Self::Project => "project",
        }
    }

    /// Returns the value of a key that grants something.
    ///
    /// # Errors
    ///
    /// The value stands in a project's file.
    pub(crate) fn granting<'d>(self, item: Item<'d>) -> Result<Item<'d>, SourceError> {
        match self {
            Self::Admin | Self::User => Ok(item),
            Self::Project => {
                let message =
                    format!("{} grants, and a project's policy can only tighten", item.label());
                let error = item.place().error(message);
                Err(error.with_hint("move it to your own policy, or leave it out"))
            }
        }
    }
}
