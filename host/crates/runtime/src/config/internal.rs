//! `[internal]`: which of the built-in tools are enabled.

use sallyport_policy::{
    SourceError,
    document::{TomlItem, TomlSection},
};
use serde_json::{Map, Value, json};

/// `[internal]`, as written in a file.
#[derive(Debug, Default, Clone, Copy)]
pub struct InternalKeys {
    reminder: Option<bool>,
}

/// Which built-in tools are enabled.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct InternalToolSettings {
    /// Reminders.
    pub reminder: bool,
}

impl InternalToolSettings {
    /// All of them.
    pub const ALL: Self = Self { reminder: true };

    /// Its values, under the keys of the file.
    pub fn display_values(self) -> Map<String, Value> {
        Map::from_iter([("reminder".to_owned(), json!(self.reminder))])
    }
}

impl InternalKeys {
    pub(super) fn read_section(table: &mut TomlSection<'_>) -> Result<Self, SourceError> {
        Ok(Self { reminder: table.read_optional("reminder", TomlItem::read_bool)? })
    }

    pub(super) fn merge_over(self, base: Self) -> Self {
        Self { reminder: self.reminder.or(base.reminder) }
    }

    pub(super) fn with_defaults(self) -> InternalToolSettings {
        InternalToolSettings {
            reminder: self.reminder.unwrap_or(InternalToolSettings::ALL.reminder),
        }
    }
}
