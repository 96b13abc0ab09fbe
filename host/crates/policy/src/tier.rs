//! Tiers of policy files: the owner of a file determines what the file may contain.
//!
//! The machine's administrator and its user can grant. A project's file often comes from another
//! author, together with the project's other files, so it can only take away.

use crate::{document::TomlItem, source::SourceError};

/// The owner of a policy file.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum PolicyTier {
    /// The administrator of the machine.
    Admin,
    /// The user.
    User,
    /// The author of the project that the user works in.
    Project,
}

impl PolicyTier {
    /// The word for the tier in messages.
    pub fn as_str(self) -> &'static str {
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
    /// The value is in a project's file.
    pub(crate) fn check_may_grant<'d>(
        self,
        item: TomlItem<'d>,
    ) -> Result<TomlItem<'d>, SourceError> {
        match self {
            Self::Admin | Self::User => Ok(item),
            Self::Project => {
                let message =
                    format!("{} grants, and a project's policy can only tighten", item.label());
                let error = item.place().into_error(message);
                Err(error.with_hint("move it to your own policy, or leave it out"))
            }
        }
    }
}
