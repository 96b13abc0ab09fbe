//! Additions of capabilities to a plugin's table, as policy text.

use toml_edit::Value;

use super::{
    Capability,
    kind::{CapabilityEntry, ValueShape},
};
use crate::toml_text::{toml_inline_table, toml_key, toml_setting_value, toml_string};

/// A capability, or one item of it.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord)]
pub struct CapabilityAddition {
    /// The capability.
    pub capability: Capability,
    /// What is granted of it.
    pub part: CapabilityPart,
}

/// What is granted of a capability.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord)]
pub enum CapabilityPart {
    /// The capability, switched on.
    Whole,
    /// The capability with a setting, which replaces the current one.
    Setting {
        /// Its key.
        key: String,
        /// Its value, as for a limit.
        value: String,
    },
    /// One entry of its list: a page, a package, a scratch, an address. It is a TOML value, such as
    /// `"six==1.17.0"` or `{ name = "sandbox" }`.
    Entry(String),
}

impl CapabilityAddition {
    /// Switches a capability on.
    pub(crate) fn whole(capability: Capability) -> Self {
        Self { capability, part: CapabilityPart::Whole }
    }

    /// Switches a capability on, and states a setting of it.
    pub(crate) fn setting(
        capability: Capability,
        key: impl Into<String>,
        value: impl Into<String>,
    ) -> Self {
        let part = CapabilityPart::Setting { key: key.into(), value: value.into() };
        Self { capability, part }
    }

    /// Grants one entry of a capability's list that is plain text.
    pub(crate) fn item(capability: Capability, item: &str) -> Self {
        Self::entry(capability, toml_string(item))
    }

    /// Grants one entry of a capability's list, written as TOML.
    pub(crate) fn entry(capability: Capability, toml: String) -> Self {
        Self { capability, part: CapabilityPart::Entry(toml) }
    }

    /// The name of the entry, if one is granted: a page, a package, a scratch, an address.
    pub(crate) fn item_name(&self) -> Option<String> {
        let CapabilityPart::Entry(entry) = &self.part else { return None };
        let value = entry.parse::<Value>().ok()?;
        let key = self.capability.kind().item_key();
        let in_table = || value.as_inline_table()?.get(key)?.as_str();
        value.as_str().or_else(in_table).map(str::to_owned)
    }

    pub(crate) fn value_alone(&self) -> String {
        match (&self.part, self.capability.kind().shape()) {
            (CapabilityPart::Entry(entry), ValueShape::List(_)) => format!("[{entry}]"),
            (CapabilityPart::Entry(entry), ValueShape::Table(list)) => {
                toml_inline_table(&[(list, format!("[{entry}]"))])
            }
            (_, _) => self.entry_toml(),
        }
    }

    pub(crate) fn entry_toml(&self) -> String {
        match &self.part {
            CapabilityPart::Whole => "true".to_owned(),
            CapabilityPart::Setting { key, value } => {
                toml_inline_table(&[(&toml_key(key), toml_setting_value(value))])
            }
            CapabilityPart::Entry(entry) => entry.clone(),
        }
    }

    pub(crate) fn entry_pairs(&self) -> Vec<(String, String)> {
        let CapabilityPart::Entry(entry) = &self.part else { return Vec::new() };
        let value = entry.parse::<Value>().ok();
        let table = value.as_ref().and_then(Value::as_inline_table);
        let pairs = table.into_iter().flatten();
        pairs.map(|(key, value)| (toml_key(key), value.to_string().trim().to_owned())).collect()
    }
}

impl Capability {
    /// The additions that grant these entries of it.
    pub(crate) fn additions_for(self, entries: &[CapabilityEntry]) -> Vec<CapabilityAddition> {
        match self.kind().shape() {
            ValueShape::Switch | ValueShape::Table(_) => vec![CapabilityAddition::whole(self)],
            ValueShape::List(_) => {
                let addition =
                    |entry: &CapabilityEntry| CapabilityAddition::entry(self, entry.to_toml());
                entries.iter().map(addition).collect()
            }
        }
    }
}
