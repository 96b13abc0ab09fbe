//! The capabilities that a plugin holds: those that its manifest requests and its policy grants.

use std::{sync::Arc, time::Duration};

use super::{
    Capability, CapabilityRequest, ListenGrant, OpenUrlGrant, PackagesGrant, RequestedCapability,
    ScratchGrant,
    scratch::{SCRATCH_QUOTA_DEFAULT_BYTES, ScratchEntry},
    settings::{CapabilitySettingKey, CapabilitySettings},
    table::CapabilityTable,
};
use crate::{
    fix::PolicyContext,
    grant_note::GrantNote,
    unit::{ByteSize, TimeSpan},
};

/// The state that a plugin may keep.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct StateGrant {
    /// Total size of all keys and values for one user, in bytes.
    pub quota_bytes: u64,
    /// Size of the largest single value, in bytes.
    pub value_bytes_max: u64,
}

/// The timers that a plugin may set.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct ScheduleGrant {
    /// The number of timers for one user.
    pub timers_max: u32,
    /// The shortest time between two firings of a repeated timer.
    pub interval_min: Duration,
}

/// How often a plugin may send the user a message.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct NotifyGrant {
    /// Messages per minute.
    pub per_minute: u32,
}

/// What a plugin may do as the user interface of a session.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct UiGrant {
    /// Whether it may answer questions on the user's behalf.
    pub confirm: bool,
}

/// How a plugin runs as a native program.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct ProcessGrant {
    /// Whether it has network access.
    pub network: bool,
    /// Whether it may run if the kernel cannot sandbox it.
    pub unsandboxed: bool,
}

/// The capabilities of one plugin.
#[derive(Debug, Clone)]
pub(crate) struct EffectiveCapabilities {
    pub(crate) state: Option<StateGrant>,
    pub(crate) schedule: Option<ScheduleGrant>,
    pub(crate) notify: Option<NotifyGrant>,
    pub(crate) progress: bool,
    pub(crate) open_url: Option<OpenUrlGrant>,
    pub(crate) packages: PackagesGrant,
    pub(crate) scratch: Vec<ScratchGrant>,
    pub(crate) listen: Vec<ListenGrant>,
    pub(crate) ui: Option<UiGrant>,
    pub(crate) process: Option<ProcessGrant>,
    /// The capabilities that only a project's policy takes away, each with its danger, if any, as a
    /// verb phrase.
    pub(crate) denied_by_project: Vec<(Capability, Option<&'static str>)>,
}

impl EffectiveCapabilities {
    /// No capability.
    pub(crate) fn empty(policy_context: &Arc<PolicyContext>) -> Self {
        Self {
            state: None,
            schedule: None,
            notify: None,
            progress: false,
            open_url: None,
            packages: PackagesGrant::new(Arc::clone(policy_context), false, Vec::new()),
            scratch: Vec::new(),
            listen: Vec::new(),
            ui: None,
            process: None,
            denied_by_project: Vec::new(),
        }
    }

    /// Returns the capabilities that are both requested and granted. Notes repeated requests, and
    /// entries that nothing requests.
    pub(crate) fn new(
        policy_context: &Arc<PolicyContext>,
        requests: &[CapabilityRequest],
        notes: &mut Vec<GrantNote>,
    ) -> Self {
        note_repeated_requests(requests, notes);
        let table = &policy_context.effective_table().capabilities;
        note_unrequested_entries(table, requests, notes);
        let is_asked =
            requests.iter().any(|request| request.requested == RequestedCapability::Packages);
        let packages = PackagesGrant::new(Arc::clone(policy_context), is_asked, Vec::new());
        let mut effective = Self { packages, ..Self::empty(policy_context) };
        for capability in Capability::ALL {
            let is_requested = requests.iter().any(|r| r.requested.capability() == capability);
            if is_requested && table.denied_at(capability).is_none() {
                effective.add_capability(capability, policy_context, requests);
            }
            if is_requested && table.is_denied_only_by_project(capability) {
                let mut without = Self::empty(policy_context);
                without.add_capability(capability, policy_context, requests);
                let would_hold = without.has_capability(capability);
                effective
                    .denied_by_project
                    .extend(would_hold.then(|| (capability, without.danger_phrase(capability))));
            }
        }
        effective
    }

    fn add_capability(
        &mut self,
        of: Capability,
        policy_context: &Arc<PolicyContext>,
        requests: &[CapabilityRequest],
    ) {
        let table = &policy_context.effective_table().capabilities;
        let settings = table.settings_even_if_denied(of);
        let has_request_for = |wanted: &RequestedCapability| {
            requests.iter().any(|request| request.requested == *wanted)
        };
        match of {
            Capability::State => self.state = settings.map(StateGrant::from_settings),
            Capability::Schedule => self.schedule = settings.map(ScheduleGrant::from_settings),
            Capability::Notify => self.notify = settings.map(NotifyGrant::from_settings),
            Capability::Progress => self.progress = settings.is_some(),
            Capability::OpenUrl => {
                let entries = Some(table.open_url.clone()).filter(|entries| !entries.is_empty());
                self.open_url =
                    entries.map(|entries| OpenUrlGrant::new(Arc::clone(policy_context), entries));
            }
            Capability::Packages => {
                let (policy_context, entries) =
                    (Arc::clone(policy_context), table.packages.clone());
                self.packages = PackagesGrant::new(policy_context, true, entries);
            }
            Capability::Scratch => {
                let entries = table.scratch.iter();
                let both = entries.filter(|entry| {
                    has_request_for(&RequestedCapability::Scratch(entry.name.clone()))
                });
                self.scratch =
                    both.map(|entry| ScratchGrant::from_entry(entry, policy_context)).collect();
            }
            Capability::Listen => {
                let entries = table.listen.iter();
                let both = entries
                    .filter(|entry| has_request_for(&RequestedCapability::Listen(entry.kind)));
                self.listen = both.cloned().collect();
            }
            Capability::Ui => {
                let confirm = has_request_for(&RequestedCapability::Ui { confirm: true });
                self.ui = settings.map(|ui| UiGrant {
                    confirm: confirm && ui.is_flag_set(CapabilitySettingKey::Confirm),
                });
            }
            Capability::Process => self.process = settings.map(ProcessGrant::from_settings),
        }
    }

    /// The plugin's powers, one line each, for the user who decides.
    pub(crate) fn permission_lines(&self) -> Vec<String> {
        let lines = Capability::ALL
            .into_iter()
            .flat_map(|capability| self.permission_lines_for(capability));
        lines.collect()
    }

    fn permission_lines_for(&self, capability: Capability) -> Vec<String> {
        let one = |line: Option<String>| line.into_iter().collect();
        match capability {
            Capability::State => one(self.state.map(StateGrant::permission_line)),
            Capability::Schedule => one(self.schedule.map(ScheduleGrant::permission_line)),
            Capability::Notify => one(self.notify.map(NotifyGrant::permission_line)),
            Capability::Progress => {
                one(self.progress.then(|| RequestedCapability::Progress.to_string()))
            }
            Capability::OpenUrl => {
                self.open_url.as_ref().map(OpenUrlGrant::permission_lines).unwrap_or_default()
            }
            Capability::Packages => one(self.packages.permission_line()),
            Capability::Scratch => self.scratch.iter().map(ScratchGrant::permission_line).collect(),
            Capability::Listen => self.listen.iter().map(ListenGrant::permission_line).collect(),
            Capability::Ui => one(self.ui.map(UiGrant::permission_line)),
            Capability::Process => one(self.process.map(ProcessGrant::permission_line)),
        }
    }

    /// Whether the plugin holds a capability, or any part of it.
    pub(crate) fn has_capability(&self, capability: Capability) -> bool {
        match capability {
            Capability::State => self.state.is_some(),
            Capability::Schedule => self.schedule.is_some(),
            Capability::Notify => self.notify.is_some(),
            Capability::Progress => self.progress,
            Capability::OpenUrl => self.open_url.is_some(),
            Capability::Packages => !self.packages.is_empty(),
            Capability::Scratch => !self.scratch.is_empty(),
            Capability::Listen => !self.listen.is_empty(),
            Capability::Ui => self.ui.is_some(),
            Capability::Process => self.process.is_some(),
        }
    }

    /// What a capability lets the plugin change or leak, as a verb phrase. `None` if it does not
    /// hold the capability, or the capability is harmless.
    pub(crate) fn danger_phrase(&self, capability: Capability) -> Option<&'static str> {
        let words = capability_danger(
            capability,
            self.open_url.as_ref().is_some_and(OpenUrlGrant::can_open_unasked),
        )?;
        self.has_capability(capability).then_some(words)
    }

    /// Every such danger.
    pub(crate) fn danger_phrases(&self) -> impl Iterator<Item = (Capability, &'static str)> {
        Capability::ALL.into_iter().filter_map(|of| Some((of, self.danger_phrase(of)?)))
    }
}

/// What a capability lets a plugin change or leak. `is_unasked` states whether it opens pages
/// without a question. State, timers and scratches are the plugin's own.
pub(super) fn capability_danger(capability: Capability, is_unasked: bool) -> Option<&'static str> {
    match capability {
        Capability::State | Capability::Schedule | Capability::Progress | Capability::Scratch => {
            None
        }
        Capability::Notify => Some("send messages"),
        Capability::OpenUrl => is_unasked.then_some("open pages unasked"),
        Capability::Packages => Some("have packages fetched"),
        Capability::Listen => Some("be reached from outside"),
        Capability::Ui => Some("drive the session"),
        Capability::Process => Some("run as a program of this machine"),
    }
}

fn note_repeated_requests(requests: &[CapabilityRequest], notes: &mut Vec<GrantNote>) {
    for (index, request) in requests.iter().enumerate() {
        let same = |other: &&CapabilityRequest| other.requested == request.requested;
        if requests[..index].iter().filter(same).count() == 1 {
            notes.push(format!("the manifest requests twice to {}", request.requested).into());
        }
    }
}

fn note_unrequested_entries(
    table: &CapabilityTable,
    requests: &[CapabilityRequest],
    notes: &mut Vec<GrantNote>,
) {
    let has_request_for =
        |wanted: &RequestedCapability| requests.iter().any(|request| request.requested == *wanted);
    let confirms = has_request_for(&RequestedCapability::Ui { confirm: true });
    for capability in Capability::ALL {
        let is_capability_requested =
            requests.iter().any(|r| r.requested.capability() == capability);
        let unused = table.entries_with_text(capability).into_iter().enumerate();
        let unused = unused.filter(|(index, _)| match capability {
            Capability::Scratch => {
                !has_request_for(&RequestedCapability::Scratch(table.scratch[*index].name.clone()))
            }
            Capability::Listen => {
                !has_request_for(&RequestedCapability::Listen(table.listen[*index].kind))
            }
            Capability::State
            | Capability::Schedule
            | Capability::Notify
            | Capability::Progress
            | Capability::OpenUrl
            | Capability::Packages
            | Capability::Ui
            | Capability::Process => !is_capability_requested,
        });
        notes.extend(unused.map(|(_, (place, text))| {
            GrantNote::for_unrequested_entry(place, format!("grants {capability} = {text}"))
        }));
    }
    let ui = table
        .granted_settings(Capability::Ui)
        .filter(|ui| ui.is_flag_set(CapabilitySettingKey::Confirm) && !confirms);
    if let Some(place) = ui.and_then(|ui| ui.setting_place(CapabilitySettingKey::Confirm)) {
        notes.push(GrantNote::for_unrequested_entry(place, "grants confirm".to_owned()));
    }
}

impl StateGrant {
    fn from_settings(settings: &CapabilitySettings) -> Self {
        let quota_bytes = settings.effective_value(CapabilitySettingKey::Quota);
        Self {
            quota_bytes,
            value_bytes_max: settings.effective_value(CapabilitySettingKey::Value).min(quota_bytes),
        }
    }

    fn permission_line(self) -> String {
        format!("keep up to {} of state", ByteSize(self.quota_bytes))
    }
}

impl ScheduleGrant {
    fn from_settings(settings: &CapabilitySettings) -> Self {
        let interval_min =
            Duration::from_millis(settings.effective_value(CapabilitySettingKey::Interval));
        Self {
            timers_max: saturate_to_u32(settings.effective_value(CapabilitySettingKey::Timers)),
            interval_min,
        }
    }

    fn permission_line(self) -> String {
        let Self { timers_max, interval_min } = self;
        format!("set up to {timers_max} timers, each at most every {}", TimeSpan(interval_min))
    }
}

impl NotifyGrant {
    fn from_settings(settings: &CapabilitySettings) -> Self {
        Self {
            per_minute: saturate_to_u32(settings.effective_value(CapabilitySettingKey::PerMinute)),
        }
    }

    fn permission_line(self) -> String {
        format!("send you up to {} messages a minute", self.per_minute)
    }
}

impl UiGrant {
    fn permission_line(self) -> String {
        RequestedCapability::Ui { confirm: self.confirm }.to_string()
    }
}

impl ProcessGrant {
    fn from_settings(settings: &CapabilitySettings) -> Self {
        Self {
            network: settings.is_flag_set(CapabilitySettingKey::Network),
            unsandboxed: settings.is_flag_set(CapabilitySettingKey::Unsandboxed),
        }
    }

    fn permission_line(self) -> String {
        let network = if self.network { "with" } else { "without" };
        let sandbox_text = match self.unsandboxed {
            true => ", without walls where the kernel has none",
            false => "",
        };
        format!("{}, {network} network{sandbox_text}", RequestedCapability::Process)
    }
}

impl ScratchGrant {
    /// The scratch of an entry. All plugins that share it get the lowest quota that any of them
    /// states.
    fn from_entry(entry: &ScratchEntry, policy_context: &PolicyContext) -> Self {
        let quota_bytes = policy_context.scratch_quotas.get(&entry.name).copied();
        Self {
            name: entry.name.clone(),
            mount: entry.mount.clone(),
            quota_bytes: quota_bytes.unwrap_or(SCRATCH_QUOTA_DEFAULT_BYTES),
        }
    }

    fn permission_line(&self) -> String {
        let Self { name, mount, quota_bytes } = self;
        format!("use the scratch {name}, seen as {mount}, up to {}", ByteSize(*quota_bytes))
    }
}

fn saturate_to_u32(value: u64) -> u32 {
    u32::try_from(value).unwrap_or(u32::MAX)
}
