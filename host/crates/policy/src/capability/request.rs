//! What a manifest asks for of the capabilities.

use std::fmt;

use super::{Capability, ListenKind, scratch, table::bounded};
use crate::{
    document::{Item, Section},
    request::read_why,
    source::SourceError,
};

/// Most requests for one capability: a few scratches; of most others a second one says nothing new.
const REQUESTS_MAX: usize = 16;

/// A request for a capability.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct CapabilityRequest {
    /// What is wanted.
    pub wish: Wish,
    /// What for, in the author's words.
    pub why: String,
}

/// What a plugin wants of a capability.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Wish {
    /// To keep keys and values.
    State,
    /// To set timers.
    Schedule,
    /// To send messages to the person.
    Notify,
    /// To show how far a call has come.
    Progress,
    /// To open pages in the user's browser.
    OpenUrl,
    /// To have packages of a language fetched.
    Packages,
    /// To use the scratch of this name.
    Scratch(String),
    /// To get signals of this kind from outside.
    Listen(ListenKind),
    /// To be the user's side of a session.
    Ui {
        /// Whether it wants to answer questions in the person's place.
        confirm: bool,
    },
    /// To run as a program of this machine.
    Process,
}

impl Wish {
    /// The capability that it is about.
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

    /// The name of the scratch that it is about, if it is about one.
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

    /// The kind of signals that it is about, if it is about such.
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
    /// What is wanted, in the words in which the person who decides reads of a power.
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

/// Takes every request for a capability out of the table of requests.
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
