//! The capability requests of a manifest.

use std::fmt;

use super::{Capability, ListenKind, scratch, table::read_bounded_list};
use crate::{
    document::{TomlItem, TomlSection},
    request::read_reason,
    source::SourceError,
};

/// Most requests for one capability: a plugin may need a few scratches, but most capabilities only
/// once.
const REQUESTS_MAX: usize = 16;

/// A request for a capability.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct CapabilityRequest {
    /// The requested action.
    pub requested: RequestedCapability,
    /// The author's reason.
    pub why: String,
}

/// The actions that a plugin can request from a capability.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum RequestedCapability {
    /// To keep keys and values.
    State,
    /// To set timers.
    Schedule,
    /// To send messages to the user.
    Notify,
    /// To show the progress of a call.
    Progress,
    /// To open pages in the user's browser.
    OpenUrl,
    /// To fetch packages of a programming language.
    Packages,
    /// To use the scratch of this name.
    Scratch(String),
    /// To receive external signals of this kind.
    Listen(ListenKind),
    /// To be the user interface of a session.
    Ui {
        /// Whether it wants to answer questions on the user's behalf.
        confirm: bool,
    },
    /// To run as a native program.
    Process,
}

impl RequestedCapability {
    /// The capability that it requires.
    pub fn capability(&self) -> Capability {
        match self {
            Self::State => Capability::State,
            Self::Schedule => Capability::Schedule,
            Self::Notify => Capability::Notify,
            Self::Progress => Capability::Progress,
            Self::OpenUrl => Capability::OpenUrl,
            Self::Packages => Capability::Packages,
            Self::Scratch(_) => Capability::Scratch,
            Self::Listen(_) => Capability::Listen,
            Self::Ui { .. } => Capability::Ui,
            Self::Process => Capability::Process,
        }
    }

    /// The name of the requested scratch, if it requests one.
    pub(super) fn scratch_name(&self) -> Option<&str> {
        match self {
            Self::Scratch(name) => Some(name),
            Self::State
            | Self::Schedule
            | Self::Notify
            | Self::Progress
            | Self::OpenUrl
            | Self::Packages
            | Self::Listen(_)
            | Self::Ui { .. }
            | Self::Process => None,
        }
    }

    /// The kind of the requested signals, if it requests some.
    pub(super) fn listen_kind(&self) -> Option<ListenKind> {
        match self {
            Self::Listen(kind) => Some(*kind),
            Self::State
            | Self::Schedule
            | Self::Notify
            | Self::Progress
            | Self::OpenUrl
            | Self::Packages
            | Self::Scratch(_)
            | Self::Ui { .. }
            | Self::Process => None,
        }
    }

    fn from_toml(
        capability: Capability,
        section: &mut TomlSection<'_>,
    ) -> Result<Self, SourceError> {
        Ok(match capability {
            Capability::State => Self::State,
            Capability::Schedule => Self::Schedule,
            Capability::Notify => Self::Notify,
            Capability::Progress => Self::Progress,
            Capability::OpenUrl => Self::OpenUrl,
            Capability::Packages => Self::Packages,
            Capability::Scratch => {
                Self::Scratch(section.read_required("name", scratch::read_scratch_name)?)
            }
            Capability::Listen => {
                Self::Listen(section.read_required("kind", ListenKind::from_toml)?)
            }
            Capability::Ui => Self::Ui {
                confirm: section.read_optional("confirm", TomlItem::read_bool)?.unwrap_or(false),
            },
            Capability::Process => Self::Process,
        })
    }
}

impl fmt::Display for RequestedCapability {
    /// The requested action, in the same words as a power in the output for the user who decides.
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::State => f.write_str("keep state"),
            Self::Schedule => f.write_str("set timers"),
            Self::Notify => f.write_str("send messages"),
            Self::Progress => f.write_str("show its progress"),
            Self::OpenUrl => f.write_str("open pages in the browser"),
            Self::Packages => f.write_str("fetch packages"),
            Self::Scratch(name) => write!(f, "use the scratch {name}"),
            Self::Listen(kind) => f.write_str(kind.action_phrase()),
            Self::Ui { confirm: false } => f.write_str("watch the session and give it input"),
            Self::Ui { confirm: true } => {
                f.write_str("watch the session, give it input and answer its questions")
            }
            Self::Process => f.write_str("run as a program of this machine"),
        }
    }
}

/// Takes all capability requests out of the table of requests.
pub(crate) fn read_capability_requests(
    section: &mut TomlSection<'_>,
) -> Result<Vec<CapabilityRequest>, SourceError> {
    let mut requests = Vec::new();
    for capability in Capability::ALL {
        let list = |item: TomlItem<'_>| {
            read_bounded_list(item, REQUESTS_MAX, |item| read_capability_request(capability, item))
        };
        requests.extend(section.read_optional(capability.as_str(), list)?.unwrap_or_else(Vec::new));
    }
    Ok(requests)
}

fn read_capability_request(
    capability: Capability,
    item: TomlItem<'_>,
) -> Result<CapabilityRequest, SourceError> {
    item.read_section(|section| {
        let requested = RequestedCapability::from_toml(capability, section)?;
        Ok(CapabilityRequest { requested, why: read_reason(section)? })
    })
}
