//! `ui`: a plugin as the user interface of a session.

use sallyport_contract::{DenialReason, GrantedScope, RequestedScope};

use super::{
    CapabilityKind, HeldCapability, RequestedCapability,
    kind::{CapabilityEntry, GrantedEntries},
    settings::{CapabilitySettings, SettingSpec},
};
use crate::{
    document::{TomlItem, TomlSection},
    grant_note::GrantNote,
    source::SourceError,
};

/// The key of a request, and of a grant, that is about answering questions.
const CONFIRM: &str = "confirm";

/// What a plugin may do as the user interface of a session.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct UiGrant {
    /// Whether it may answer questions on the user's behalf.
    pub confirm: bool,
}

/// The capability.
pub(crate) struct Ui;

static SETTINGS: [SettingSpec; 1] = [SettingSpec::flag(CONFIRM)];

fn requests_confirm(requests: &[&RequestedCapability]) -> bool {
    requests.iter().any(|request| request.detail.as_deref() == Some(CONFIRM))
}

impl CapabilityKind for Ui {
    fn word(&self) -> &'static str {
        "ui"
    }

    fn settings(&self) -> &'static [SettingSpec] {
        &SETTINGS
    }

    fn danger(&self) -> Option<&'static str> {
        Some("drive the session")
    }

    fn action_phrase(&self, detail: Option<&str>) -> String {
        match detail {
            None => "watch the session and give it input".to_owned(),
            Some(_) => "watch the session, give it input and answer its questions".to_owned(),
        }
    }

    fn read_request_detail(
        &self,
        section: &mut TomlSection<'_>,
    ) -> Result<Option<String>, SourceError> {
        let confirm = section.read_optional(CONFIRM, TomlItem::read_bool)?.unwrap_or(false);
        Ok(confirm.then(|| CONFIRM.to_owned()))
    }

    fn hold(&self, granted: &GrantedEntries<'_>) -> Option<HeldCapability> {
        let settings = granted.settings()?;
        let confirm = requests_confirm(granted.requests) && settings.is_flag_set(CONFIRM);
        let line = self.action_phrase(confirm.then_some(CONFIRM));
        Some(HeldCapability::new(UiGrant { confirm }, vec![line], self.danger()))
    }

    fn satisfies(&self, held: &HeldCapability, detail: Option<&str>) -> bool {
        detail.is_none() || held.value().is_some_and(|ui: &UiGrant| ui.confirm)
    }

    fn note_unrequested_parts(
        &self,
        entries: &[&CapabilityEntry],
        requests: &[&RequestedCapability],
        notes: &mut Vec<GrantNote>,
    ) {
        let settings = CapabilitySettings::of(entries.iter().copied());
        let settings = settings.filter(|ui| ui.is_flag_set(CONFIRM) && !requests_confirm(requests));
        if let Some(place) = settings.and_then(|ui| ui.setting_place(CONFIRM)) {
            notes.push(GrantNote::for_unrequested_entry(place, "grants confirm".to_owned()));
        }
    }

    fn refusal_when_held(
        &self,
        held: &HeldCapability,
        requests: &[&RequestedCapability],
    ) -> Option<(DenialReason, Option<&'static str>)> {
        Some(match requests_confirm(requests) {
            false => (DenialReason::RequestedLess(RequestedScope::Watching), None),
            true if self.satisfies(held, Some(CONFIRM)) => {
                (DenialReason::GrantedLess(GrantedScope::Everything), None)
            }
            true => (DenialReason::GrantedLess(GrantedScope::Watching), Some(CONFIRM)),
        })
    }

    fn requested_setting(&self, requests: &[&RequestedCapability]) -> Option<&'static str> {
        requests_confirm(requests).then_some(CONFIRM)
    }

    fn grant_flags(&self, detail: Option<&str>) -> String {
        match detail {
            None => "--capability ui".to_owned(),
            Some(_) => "--capability ui --set confirm=true".to_owned(),
        }
    }
}
