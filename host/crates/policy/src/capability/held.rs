//! The capabilities that a plugin holds: those that its manifest requests and its policy grants.

use std::{sync::Arc, time::Duration};

use super::{
    Capability, CapabilityRequest, ListenGrant, OpenUrlGrant, PackagesGrant, ScratchGrant, Wish,
    scratch::{SCRATCH_QUOTA_STANDARD_BYTES, ScratchEntry},
    switch::{Setting, Switch},
    table::Capabilities,
};
use crate::{
    fix::Ground,
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
    pub unwalled: bool,
}

/// The capabilities of one plugin.
#[derive(Debug, Clone)]
pub(crate) struct Held {
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
    pub(crate) withheld: Vec<(Capability, Option<&'static str>)>,
}

impl Held {
    /// No capability.
    pub(crate) fn none(ground: &Arc<Ground>) -> Self {
        Self {
            state: None,
            schedule: None,
            notify: None,
            progress: false,
            open_url: None,
            packages: PackagesGrant::new(Arc::clone(ground), false, Vec::new()),
            scratch: Vec::new(),
            listen: Vec::new(),
            ui: None,
            process: None,
            withheld: Vec::new(),
        }
    }

    /// Returns the capabilities that are both requested and granted. Notes repeated requests, and
    /// entries that nothing requests.
    pub(crate) fn new(
        ground: &Arc<Ground>,
        requests: &[CapabilityRequest],
        notes: &mut Vec<GrantNote>,
    ) -> Self {
        note_repeated(requests, notes);
        let table = &ground.table().capabilities;
        note_unrequested(table, requests, notes);
        let is_asked = requests.iter().any(|request| request.wish == Wish::Packages);
        let packages = PackagesGrant::new(Arc::clone(ground), is_asked, Vec::new());
        let mut held = Self { packages, ..Self::none(ground) };
        for capability in Capability::ALL {
            let is_requested = requests.iter().any(|r| r.wish.capability() == capability);
            if is_requested && table.denied_at(capability).is_none() {
                held.take(capability, ground, requests);
            }
            if is_requested && table.is_withheld(capability) {
                let mut without = Self::none(ground);
                without.take(capability, ground, requests);
                let would_hold = without.holds(capability);
                held.withheld.extend(would_hold.then(|| (capability, without.danger(capability))));
            }
        }
        held
    }

    fn take(&mut self, of: Capability, ground: &Arc<Ground>, requests: &[CapabilityRequest]) {
        let table = &ground.table().capabilities;
        let switch = table.switched_on(of);
        let wishes = |wish: &Wish| requests.iter().any(|request| request.wish == *wish);
        match of {
            Capability::State => self.state = switch.map(StateGrant::of),
            Capability::Schedule => self.schedule = switch.map(ScheduleGrant::of),
            Capability::Notify => self.notify = switch.map(NotifyGrant::of),
            Capability::Progress => self.progress = switch.is_some(),
            Capability::OpenUrl => {
                let entries = Some(table.open_url.clone()).filter(|entries| !entries.is_empty());
                self.open_url =
                    entries.map(|entries| OpenUrlGrant::new(Arc::clone(ground), entries));
            }
            Capability::Packages => {
                let (ground, entries) = (Arc::clone(ground), table.packages.clone());
                self.packages = PackagesGrant::new(ground, true, entries);
            }
            Capability::Scratch => {
                let entries = table.scratch.iter();
                let both = entries.filter(|entry| wishes(&Wish::Scratch(entry.name.clone())));
                self.scratch = both.map(|entry| ScratchGrant::of(entry, ground)).collect();
            }
            Capability::Listen => {
                let entries = table.listen.iter();
                let both = entries.filter(|entry| wishes(&Wish::Listen(entry.kind)));
                self.listen = both.cloned().collect();
            }
            Capability::Ui => {
                let confirm = wishes(&Wish::Ui { confirm: true });
                self.ui =
                    switch.map(|ui| UiGrant { confirm: confirm && ui.is_set(Setting::Confirm) });
            }
            Capability::Process => self.process = switch.map(ProcessGrant::of),
        }
    }

    /// The plugin's powers, one line each, for the user who decides.
    pub(crate) fn powers(&self) -> Vec<String> {
        let powers = Capability::ALL.into_iter().flat_map(|capability| self.powers_of(capability));
        powers.collect()
    }

    fn powers_of(&self, capability: Capability) -> Vec<String> {
        let one = |power: Option<String>| power.into_iter().collect();
        match capability {
            Capability::State => one(self.state.map(StateGrant::power)),
            Capability::Schedule => one(self.schedule.map(ScheduleGrant::power)),
            Capability::Notify => one(self.notify.map(NotifyGrant::power)),
            Capability::Progress => one(self.progress.then(|| Wish::Progress.to_string())),
            Capability::OpenUrl => {
                self.open_url.as_ref().map(OpenUrlGrant::powers).unwrap_or_default()
            }
            Capability::Packages => one(self.packages.power()),
            Capability::Scratch => self.scratch.iter().map(ScratchGrant::power).collect(),
            Capability::Listen => self.listen.iter().map(ListenGrant::power).collect(),
            Capability::Ui => one(self.ui.map(UiGrant::power)),
            Capability::Process => one(self.process.map(ProcessGrant::power)),
        }
    }

    /// Whether the plugin holds a capability, or any part of it.
    pub(crate) fn holds(&self, capability: Capability) -> bool {
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
    pub(crate) fn danger(&self, capability: Capability) -> Option<&'static str> {
        let words =
            danger(capability, self.open_url.as_ref().is_some_and(OpenUrlGrant::is_unasked))?;
        self.holds(capability).then_some(words)
    }

    /// Every such danger.
    pub(crate) fn dangers(&self) -> impl Iterator<Item = (Capability, &'static str)> {
        Capability::ALL.into_iter().filter_map(|of| Some((of, self.danger(of)?)))
    }
}

/// What a capability lets a plugin change or leak. `is_unasked` states whether it opens pages
/// without a question. State, timers and scratches are the plugin's own.
pub(super) fn danger(capability: Capability, is_unasked: bool) -> Option<&'static str> {
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

fn note_repeated(requests: &[CapabilityRequest], notes: &mut Vec<GrantNote>) {
    for (index, request) in requests.iter().enumerate() {
        let same = |other: &&CapabilityRequest| other.wish == request.wish;
        if requests[..index].iter().filter(same).count() == 1 {
            notes.push(format!("the manifest requests twice to {}", request.wish).into());
        }
    }
}

fn note_unrequested(
    table: &Capabilities,
    requests: &[CapabilityRequest],
    notes: &mut Vec<GrantNote>,
) {
    let wishes = |wish: &Wish| requests.iter().any(|request| request.wish == *wish);
    let confirms = wishes(&Wish::Ui { confirm: true });
    for capability in Capability::ALL {
        let is_wished = requests.iter().any(|r| r.wish.capability() == capability);
        let unused = table.entries(capability).into_iter().enumerate();
        let unused = unused.filter(|(index, _)| match capability {
            Capability::Scratch => !wishes(&Wish::Scratch(table.scratch[*index].name.clone())),
            Capability::Listen => !wishes(&Wish::Listen(table.listen[*index].kind)),
            Capability::State
            | Capability::Schedule
            | Capability::Notify
            | Capability::Progress
            | Capability::OpenUrl
            | Capability::Packages
            | Capability::Ui
            | Capability::Process => !is_wished,
        });
        notes.extend(unused.map(|(_, (place, text))| {
            GrantNote::unrequested(place, format!("grants {capability} = {text}"))
        }));
    }
    let ui = table.granted(Capability::Ui).filter(|ui| ui.is_set(Setting::Confirm) && !confirms);
    if let Some(place) = ui.and_then(|ui| ui.place_of(Setting::Confirm)) {
        notes.push(GrantNote::unrequested(place, "grants confirm".to_owned()));
    }
}

impl StateGrant {
    fn of(switch: &Switch) -> Self {
        let quota_bytes = switch.value(Setting::Quota);
        Self { quota_bytes, value_bytes_max: switch.value(Setting::Value).min(quota_bytes) }
    }

    fn power(self) -> String {
        format!("keep up to {} of state", ByteSize(self.quota_bytes))
    }
}

impl ScheduleGrant {
    fn of(switch: &Switch) -> Self {
        let interval_min = Duration::from_millis(switch.value(Setting::Interval));
        Self { timers_max: count(switch.value(Setting::Timers)), interval_min }
    }

    fn power(self) -> String {
        let Self { timers_max, interval_min } = self;
        format!("set up to {timers_max} timers, each at most every {}", TimeSpan(interval_min))
    }
}

impl NotifyGrant {
    fn of(switch: &Switch) -> Self {
        Self { per_minute: count(switch.value(Setting::PerMinute)) }
    }

    fn power(self) -> String {
        format!("send you up to {} messages a minute", self.per_minute)
    }
}

impl UiGrant {
    fn power(self) -> String {
        Wish::Ui { confirm: self.confirm }.to_string()
    }
}

impl ProcessGrant {
    fn of(switch: &Switch) -> Self {
        Self {
            network: switch.is_set(Setting::Network),
            unwalled: switch.is_set(Setting::Unwalled),
        }
    }

    fn power(self) -> String {
        let network = if self.network { "with" } else { "without" };
        let walls = match self.unwalled {
            true => ", without walls where the kernel has none",
            false => "",
        };
        format!("{}, {network} network{walls}", Wish::Process)
    }
}

impl ScratchGrant {
    /// The scratch of an entry. All plugins that share it get the lowest quota that any of them
    /// states.
    fn of(entry: &ScratchEntry, ground: &Ground) -> Self {
        let quota_bytes = ground.scratch_quotas.get(&entry.name).copied();
        Self {
            name: entry.name.clone(),
            mount: entry.mount.clone(),
            quota_bytes: quota_bytes.unwrap_or(SCRATCH_QUOTA_STANDARD_BYTES),
        }
    }

    fn power(&self) -> String {
        let Self { name, mount, quota_bytes } = self;
        format!("use the scratch {name}, seen as {mount}, up to {}", ByteSize(*quota_bytes))
    }
}

fn count(value: u64) -> u32 {
    u32::try_from(value).unwrap_or(u32::MAX)
}
