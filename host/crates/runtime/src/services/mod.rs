//! What plugins keep, plan and say beyond a call, as the host offers it.
//!
//! Each trait of [`sallyport_contract::services`] has its answer here: the store keeps state and
//! timers, open conversations show messages, the user's browser opens pages, and the index that the
//! configuration names has packages. Nothing of it is opened before a plugin asks for it: the store
//! opens its database at its first use, and an index is a line of text until then.

mod alarm;
mod apart;
pub mod browser;
mod conversations;
mod courier;
mod packages;

use std::{path::PathBuf, sync::Arc};

use sallyport_contract::{CallContext, Services};
use sallyport_store::Store;

pub use alarm::Alarm;
pub(crate) use apart::apart;
pub use browser::Browser;
pub use conversations::{Attendance, Conversations};

use crate::gate::Tell;
use alarm::RungTimers;
use packages::Shelf;

/// The one user of a machine of one's own.
pub const USER: &str = "local";

/// Where a call of this program comes from. A session is one conversation, so its calls belong to it.
pub(crate) fn call_context(call_id: String, session_id: &str) -> CallContext {
    let conversation_id = Some(session_id.to_owned());
    CallContext { conversation_id, ..single_call_context(call_id, session_id) }
}

/// Where a call comes from that belongs to no conversation.
pub fn single_call_context(call_id: String, session_id: &str) -> CallContext {
    CallContext {
        call_id,
        session_id: session_id.to_owned(),
        user_id: Some(USER.to_owned()),
        conversation_id: None,
    }
}

/// What the services are made of.
pub struct OfferParts {
    /// Where everything is kept.
    pub store: Store,
    /// How pages are opened.
    pub browser: Browser,
    /// Address of the index of packages, if there is one.
    pub index: Option<String>,
    /// The folder that keeps packages once they were fetched.
    pub packages: PathBuf,
    /// Who is told what does not go as it should.
    pub tell: Tell,
}

/// What a program offers to its plugins, and the ways in to the parts that live on.
pub struct Offer {
    /// What the sandbox asks.
    pub services: Services,
    /// The open conversations.
    pub conversations: Arc<Conversations>,
    /// Rings when timers are set.
    pub alarm: Arc<Alarm>,
}

impl Offer {
    /// Puts the services together. Nothing is opened yet.
    pub fn new(parts: OfferParts) -> Self {
        let OfferParts { store, browser, index, packages, tell } = parts;
        let alarm = Arc::new(Alarm::default());
        let conversations = Arc::new(Conversations::new(store.clone(), tell));
        let services = Services {
            state: Some(Arc::new(store.state())),
            timers: Some(Arc::new(RungTimers { kept: store.timers(), alarm: Arc::clone(&alarm) })),
            notices: Some(Arc::clone(&conversations) as Arc<_>),
            opener: Some(Arc::new(browser)),
            packages: Some(Arc::new(Shelf::new(index, packages))),
        };
        Self { services, conversations, alarm }
    }
}
