//! The capability requests of a manifest.

use std::fmt;

use super::{Capability, ListenKind, scratch, table::bounded};
use crate::{
    document::{Item, Section},
    request::read_why,
    source::SourceError,
};

/// Most requests for one capability: a plugin may need a few scratches, but most capabilities only
/// once.
const REQUESTS_MAX: usize = 16;

/// A request for a capability.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct CapabilityRequest {
    /// The requested action.
    pub wish: Wish,
    /// The author's reason.
    pub why: String,
}

/// The actions that a plugin can request from a capability.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Wish {
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

impl Wish {
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
    pub(super) fn scratch(&self) -> Option<&str> {
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
    pub(super) fn listen(&self) -> Option<ListenKind> {
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

    fn read(capability: Capability, section: &mut Section<'_>) -> Result<Self, SourceError> {
        Ok(match capability {
            Capability::State => Self::State,
            Capability::Schedule => Self::Schedule,
            Capability::Notify => Self::Notify,
            Capability::Progress => Self::Progress,
            Capability::OpenUrl => Self::OpenUrl,
            Capability::Packages => Self::Packages,
            Capability::Scratch => Self::Scratch(section.required("name", scratch::read_name)?),
            Capability::Listen => Self::Listen(section.required("kind", ListenKind::read)?),
            Capability::Ui => {
                Self::Ui { confirm: section.optional("confirm", Item::boolean)?.unwrap_or(false) }
            }
            Capability::Process => Self::Process,
        })
    }
}

impl fmt::Display for Wish {
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
            Self::Listen(kind) => f.write_str(kind.act()),
            Self::Ui { confirm: false } => f.write_str("watch the session and give it input"),
            Self::Ui { confirm: true } => {
                f.write_str("watch the session, give it input and answer its questions")
            }
            Self::Process => f.write_str("run as a program of this machine"),
        }
    }
}

/// Takes all capability requests out of the table of requests.
pub(crate) fn read_all(section: &mut Section<'_>) -> Result<Vec<CapabilityRequest>, SourceError> {
    let mut requests = Vec::new();
    for capability in Capability::ALL {
        let list = |item: Item<'_>| bounded(item, REQUESTS_MAX, |item| read(capability, item));
        requests.extend(section.optional(capability.word(), list)?.unwrap_or_else(Vec::new));
    }
    Ok(requests)
}

fn read(capability: Capability, item: Item<'_>) -> Result<CapabilityRequest, SourceError> {
    item.section(|section| {
        let wish = Wish::read(capability, section)?;
        Ok(CapabilityRequest { wish, why: read_why(section)? })
    })
}
