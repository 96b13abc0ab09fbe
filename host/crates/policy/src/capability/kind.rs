//! What one capability is to a policy: how it is requested, granted, held and explained.
//!
//! Each capability implements [`CapabilityKind`] in a module of its own. All other code walks
//! [`Capability::ALL`](super::Capability::ALL) and asks the kind, so a new capability is a new module
//! and its line in the list of [`super`].

use std::{any::Any, fmt, sync::Arc};

use sallyport_contract::{Denial, DenialReason, GrantedScope, PluginName};
use url::Url;

use super::{
    Capability, CapabilityContext, EffectiveCapabilities, RequestedCapability,
    settings::{CapabilitySettings, SettingSpec},
    table::CapabilityTable,
};
use crate::{
    document::{TomlItem, TomlSection},
    folder::FsEntry,
    grant_note::GrantNote,
    source::{SourceError, SourceLocation},
    tier::PolicyTier,
};

/// The form of a capability's value in a policy.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum ValueShape {
    /// `true`, or a table of settings. Files are combined setting by setting.
    Switch,
    /// `true`, or a table with a list of items under this key. Without the list, every item is
    /// granted.
    Table(&'static str),
    /// A list of entries, at most so many in one file. Entries of several files are joined without
    /// repeats.
    List(usize),
}

/// One capability, as the policy sees it.
pub(crate) trait CapabilityKind: Sync {
    /// The word for it in manifests, policies, interfaces and records.
    fn word(&self) -> &'static str;

    /// The form of its value.
    fn shape(&self) -> ValueShape {
        ValueShape::Switch
    }

    /// Its settings, in output order.
    fn settings(&self) -> &'static [SettingSpec] {
        &[]
    }

    /// The keys in a table of it that are settings, not its list of items.
    fn setting_keys(&self) -> Vec<&'static str> {
        self.settings().iter().map(|setting| setting.key).collect()
    }

    /// What it lets a plugin change or leak, as a verb phrase; `None` if it is harmless. State,
    /// timers and scratches are the plugin's own.
    fn danger(&self) -> Option<&'static str> {
        None
    }

    /// Whether a call that uses it fails without it.
    fn is_needed(&self) -> bool {
        true
    }

    /// The requested action, in the words that the user reads.
    fn action_phrase(&self, detail: Option<&str>) -> String;

    /// Reads what a request says besides its reason.
    fn read_request_detail(
        &self,
        _section: &mut TomlSection<'_>,
    ) -> Result<Option<String>, SourceError> {
        Ok(None)
    }

    /// Reads an entry of the list, or the value of a switch or table.
    fn read_entry(
        &self,
        item: TomlItem<'_>,
        tier: PolicyTier,
    ) -> Result<CapabilityEntry, SourceError> {
        CapabilitySettings::read_entry(self.settings(), item, tier)
    }

    /// Adds the entries of another file. A grant in one file is enough.
    fn merge_entries(
        &self,
        own: &mut Vec<CapabilityEntry>,
        theirs: Vec<CapabilityEntry>,
        tier: PolicyTier,
    ) {
        match self.shape() {
            ValueShape::Switch => CapabilitySettings::merge_entries(own, theirs, tier),
            ValueShape::Table(_) => own.extend(theirs),
            ValueShape::List(_) => {
                let known: Vec<String> = own.iter().map(CapabilityEntry::to_toml).collect();
                own.extend(theirs.into_iter().filter(|entry| !known.contains(&entry.to_toml())));
            }
        }
    }

    /// Whether a request is about an entry.
    fn is_about(&self, _entry: &CapabilityEntry, _detail: Option<&str>) -> bool {
        true
    }

    /// Whether the entries of one file are within the limits for reading.
    fn is_within_limits(&self, entries: &[CapabilityEntry]) -> bool {
        match self.shape() {
            ValueShape::Switch | ValueShape::Table(_) => true,
            ValueShape::List(most) => entries.len() <= most,
        }
    }

    /// Refuses entries that conflict with each other or with `fs` entries.
    fn check_conflicts(
        &self,
        _table: &CapabilityTable,
        _folders: &[FsEntry],
    ) -> Result<(), SourceError> {
        Ok(())
    }

    /// What a plugin holds. `None` if nothing.
    fn hold(&self, granted: &GrantedEntries<'_>) -> Option<HeldCapability>;

    /// Whether what is held includes what a request asks for.
    fn satisfies(&self, _held: &HeldCapability, _detail: Option<&str>) -> bool {
        true
    }

    /// Notes parts of entries that no request asks for.
    fn note_unrequested_parts(
        &self,
        _entries: &[&CapabilityEntry],
        _requests: &[&RequestedCapability],
        _notes: &mut Vec<GrantNote>,
    ) {
    }

    /// The entries that grant what the requests ask for and the table lacks. They do not conflict
    /// with the plugin's folders.
    fn missing_entries(
        &self,
        _table: &CapabilityTable,
        _folders: &[FsEntry],
        _requests: &[&RequestedCapability],
    ) -> Vec<CapabilityEntry> {
        vec![CapabilityEntry::proposed(CapabilitySettings::new(self.settings()))]
    }

    /// Why an action is refused although the capability is held, and the setting that would allow
    /// it. `None` if a further entry can be granted.
    fn refusal_when_held(
        &self,
        _held: &HeldCapability,
        _requests: &[&RequestedCapability],
    ) -> Option<(DenialReason, Option<&'static str>)> {
        match self.shape() {
            ValueShape::Switch | ValueShape::Table(_) => {
                Some((DenialReason::GrantedLess(GrantedScope::Everything), None))
            }
            ValueShape::List(_) => None,
        }
    }

    /// The setting that grants what the requests ask for besides the capability itself.
    fn requested_setting(&self, _requests: &[&RequestedCapability]) -> Option<&'static str> {
        None
    }

    /// The parts of entries that another part covers, each with a note.
    fn redundant_parts(&self, _entries: &[&CapabilityEntry]) -> Vec<(SourceLocation, String)> {
        Vec::new()
    }

    /// Whether only the operator can choose the entry that grants a request.
    fn is_operators_choice(&self) -> bool {
        false
    }

    /// The item that has to be granted for a refused action on it; `None` if it is granted by now.
    ///
    /// # Errors
    ///
    /// The refusal that leaves it to the operator.
    fn missing_item(
        &self,
        _holder: &CapabilityHolder<'_, '_>,
        _item: &str,
    ) -> Result<Option<String>, Denial> {
        Ok(None)
    }

    /// Whether what is held covers an item of an action.
    fn covers_item(&self, _holder: &CapabilityHolder<'_, '_>, _item: &str) -> bool {
        true
    }

    /// The page that an item is. `None` if no rule can be about it.
    fn page_of_item(&self, _item: &str) -> Option<Url> {
        None
    }

    /// The word for an item of the list in messages.
    fn item_noun(&self) -> &'static str {
        "entry"
    }

    /// An item of the list in a sentence: `the package six`.
    fn item_phrase(&self, item: &str) -> String {
        format!("the {} {item}", self.item_noun())
    }

    /// The key that names an item, in an entry that is a table.
    fn item_key(&self) -> &'static str {
        "name"
    }

    /// An item in canonical form: equal items have equal forms.
    fn canonical_item(&self, item: &str) -> String {
        item.to_owned()
    }

    /// The flags of `policy grant` that grant a request.
    fn grant_flags(&self, _detail: Option<&str>) -> String {
        format!("--capability {}", self.word())
    }
}

/// What a plugin requests of a capability, and the entries about it that grant something.
pub(crate) struct GrantedEntries<'g> {
    pub(crate) context: &'g Arc<dyn CapabilityContext>,
    pub(crate) requests: &'g [&'g RequestedCapability],
    pub(crate) entries: &'g [&'g CapabilityEntry],
}

impl GrantedEntries<'_> {
    /// The settings of a capability that is switched on.
    pub(crate) fn settings(&self) -> Option<&CapabilitySettings> {
        CapabilitySettings::of(self.entries.iter().copied())
    }

    /// Copies of the entries.
    pub(crate) fn values<T: EntryValue + Clone>(&self) -> Vec<T> {
        entry_values(self.entries.iter().copied()).cloned().collect()
    }
}

/// A plugin with what it holds, for a question about an item of one capability.
pub(crate) struct CapabilityHolder<'g, 'd> {
    pub(crate) plugin: &'g PluginName,
    pub(crate) capabilities: &'g EffectiveCapabilities,
    /// Returns the refusal of an action that requires a capability. It is `Grant::deny_capability` in
    /// `denial`, which stands above this module because it tells refusals of every kind.
    pub(crate) deny: &'d dyn Fn(Capability, &str) -> Denial,
}

/// The content of an entry.
pub(crate) trait EntryValue: Any + fmt::Debug + Send + Sync {
    /// The entry as TOML. Entries with equal values have equal texts.
    fn to_toml(&self) -> String;
}

/// What one file declares about a capability: an entry of a list, or the value of a switch.
#[derive(Debug, Clone)]
pub(crate) struct CapabilityEntry {
    pub(crate) place: SourceLocation,
    /// False for the settings of a project, which grant nothing.
    pub(crate) is_grant: bool,
    pub(super) value: Arc<dyn EntryValue>,
}

impl CapabilityEntry {
    pub(crate) fn new(value: impl EntryValue, place: SourceLocation) -> Self {
        Self { place, is_grant: true, value: Arc::new(value) }
    }

    /// An entry that no file has yet.
    pub(crate) fn proposed(value: impl EntryValue) -> Self {
        Self::new(value, SourceLocation::unwritten())
    }

    /// The content, if it has this type.
    pub(crate) fn value<T: EntryValue>(&self) -> Option<&T> {
        (&*self.value as &dyn Any).downcast_ref()
    }

    pub(crate) fn to_toml(&self) -> String {
        self.value.to_toml()
    }
}

impl PartialEq for CapabilityEntry {
    fn eq(&self, other: &Self) -> bool {
        (&self.place, self.is_grant) == (&other.place, other.is_grant)
            && self.to_toml() == other.to_toml()
    }
}

impl Eq for CapabilityEntry {}

/// The contents of entries.
pub(crate) fn entry_values<'e, T: EntryValue>(
    entries: impl IntoIterator<Item = &'e CapabilityEntry>,
) -> impl Iterator<Item = &'e T> {
    entries.into_iter().filter_map(CapabilityEntry::value)
}

/// The parts of entries that another part covers, each with a note.
pub(crate) fn find_redundant_parts<T: ToString>(
    parts: &[(&T, &SourceLocation)],
    covers: impl Fn(&T, &T) -> bool,
) -> Vec<(SourceLocation, String)> {
    let mut found = Vec::new();
    for (index, (part, place)) in parts.iter().enumerate() {
        let mut others = parts.iter().enumerate();
        let covering = others.find(|(at, (other, _))| {
            *at != index && covers(other, part) && (!covers(part, other) || *at < index)
        });
        if let Some((_, (other, at))) = covering {
            let note =
                format!("{} adds nothing to {} of {at}", part.to_string(), other.to_string());
            found.push(((*place).clone(), note));
        }
    }
    found
}

/// What a plugin holds of one capability.
#[derive(Debug, Clone)]
pub(crate) struct HeldCapability {
    /// The plugin's powers, one line each, for the user who decides. Empty if it holds nothing.
    pub(crate) lines: Vec<String>,
    /// What it lets the plugin change or leak.
    pub(crate) danger: Option<&'static str>,
    value: Arc<dyn Any + Send + Sync>,
}

impl HeldCapability {
    pub(crate) fn new(
        value: impl Any + Send + Sync,
        lines: Vec<String>,
        danger: Option<&'static str>,
    ) -> Self {
        Self { lines, danger, value: Arc::new(value) }
    }

    /// The grant, if it has this type.
    pub(crate) fn value<T: 'static>(&self) -> Option<&T> {
        self.value.downcast_ref()
    }
}
