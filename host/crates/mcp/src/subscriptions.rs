//! Subscriptions to resources.
//!
//! A plugin cannot say that a resource has changed. So the server reads what its clients have
//! subscribed to now and then, and at once when plugins were loaded anew, and compares. Like a list,
//! that asks nobody: a resource that needs an approval counts as one that cannot be read.

use std::{
    collections::BTreeMap,
    hash::{DefaultHasher, Hash, Hasher},
    pin::pin,
    sync::{Arc, Mutex, MutexGuard, PoisonError, Weak},
    time::Duration,
};

use futures::StreamExt;
use rmcp::{ErrorData, RoleServer, model::ResourceUpdatedNotificationParam, service::Peer};
use sallyport_contract::{Outcome, ResourceQuery};
use sallyport_runtime::roles::offers::OfferQuery;
use tokio::time::{MissedTickBehavior, interval};

use crate::{connection_session::ConnectionSession, offers};

/// Most resources to which a connection, or a listener, subscribes. Each is read again and again.
pub(crate) const SUBSCRIPTIONS_MAX: usize = 16;

/// How often a resource is read. Each reading is a call on record.
const LOOK_EVERY: Duration = Duration::from_secs(30);

/// What a resource was when it was last read.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum SeenResource {
    /// It has these contents, as a hash. Whoever makes two contents with the same one hides a change
    /// of their own resource.
    Contents(u64),
    /// It cannot be read.
    Unreadable,
}

/// The resources that somebody wants to hear about, with what each was.
#[derive(Debug, Default)]
struct WatchedResources {
    /// `None` before the first reading.
    seen: BTreeMap<String, Option<SeenResource>>,
    /// Whether a task reads them.
    is_watched: bool,
}

/// The subscriptions of one connection.
#[derive(Default)]
pub(crate) struct Subscriptions {
    watched: Mutex<WatchedResources>,
}

impl SeenResource {
    /// What contents are.
    pub(crate) fn of_contents(contents: &str) -> Self {
        let mut hasher = DefaultHasher::new();
        contents.hash(&mut hasher);
        Self::Contents(hasher.finish())
    }
}

impl WatchedResources {
    /// Notes what a resource is. Returns whether it was something else before.
    fn note(&mut self, uri: &str, now: SeenResource) -> bool {
        // It may have been unsubscribed while it was read.
        let Some(seen) = self.seen.get_mut(uri) else { return false };
        seen.replace(now).is_some_and(|before| before != now)
    }
}

impl Subscriptions {
    /// Subscriptions to these addresses, as many as may be.
    pub(crate) fn of(uris: &[String]) -> Self {
        let uris = uris.iter().take(SUBSCRIPTIONS_MAX);
        let seen = uris.map(|uri| (uri.clone(), None)).collect();
        Self { watched: Mutex::new(WatchedResources { seen, is_watched: true }) }
    }

    /// Whether there are none.
    pub(crate) fn is_empty(&self) -> bool {
        self.lock().seen.is_empty()
    }

    /// Adds an address. Returns whether nobody watches yet, so that the caller has to.
    ///
    /// # Errors
    ///
    /// There are too many.
    pub(crate) fn add(&self, uri: String) -> Result<bool, ErrorData> {
        let mut watched = self.lock();
        if watched.seen.len() >= SUBSCRIPTIONS_MAX && !watched.seen.contains_key(&uri) {
            let text = format!("a connection subscribes to {SUBSCRIPTIONS_MAX} resources at most");
            return Err(ErrorData::invalid_params(text, None));
        }
        watched.seen.entry(uri).or_default();
        Ok(!std::mem::replace(&mut watched.is_watched, true))
    }

    /// Removes an address. One that is not there is none, too.
    pub(crate) fn remove(&self, uri: &str) {
        self.lock().seen.remove(uri);
    }

    /// Whether there is nothing left to watch. If so, nobody watches from now on.
    fn ends(&self) -> bool {
        let mut watched = self.lock();
        watched.is_watched = !watched.seen.is_empty();
        !watched.is_watched
    }

    fn lock(&self) -> MutexGuard<'_, WatchedResources> {
        self.watched.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Reads all, and returns the addresses of those that have changed.
    pub(crate) async fn look(&self, session: &ConnectionSession) -> Vec<String> {
        let uris: Vec<String> = self.lock().seen.keys().cloned().collect();
        let mut changed = Vec::new();
        for uri in uris {
            let now = look_at_resource(session, &uri).await;
            if self.lock().note(&uri, now) {
                changed.push(uri);
            }
        }
        changed
    }
}

/// Reads a resource to compare it with what it was. That asks nobody.
async fn look_at_resource(session: &ConnectionSession, uri: &str) -> SeenResource {
    let Some(plugin) = offers::plugin_of_uri(session, uri).await else {
        return SeenResource::Unreadable;
    };
    let query = OfferQuery::Resources(ResourceQuery::Read { uri: uri.to_owned() });
    let requested = offers::requested_query(session, &plugin, &query);
    match offers::ask_plugin(session, requested, query).await.outcome {
        Outcome::Completed(output) if !output.content.is_empty() => {
            SeenResource::of_contents(&format!("{:?}", output.content))
        }
        _ => SeenResource::Unreadable,
    }
}

/// Ticks when resources are to be read, first at once.
pub(crate) fn look_interval() -> tokio::time::Interval {
    let mut ticks = interval(LOOK_EVERY);
    ticks.set_missed_tick_behavior(MissedTickBehavior::Delay);
    ticks
}

/// Watches the subscriptions of a connection until it ends or has none any more.
pub(crate) async fn watch(
    session: Weak<ConnectionSession>,
    subscriptions: Weak<Subscriptions>,
    peer: Peer<RoleServer>,
) {
    let Some(server) = session.upgrade().map(|session| Arc::clone(session.server())) else {
        return;
    };
    let mut changes = pin!(server.host().changes());
    let mut ticks = look_interval();
    loop {
        tokio::select! {
            _ = ticks.tick() => {}
            Some(_) = changes.next() => {}
        }
        let (Some(session), Some(subscriptions)) = (session.upgrade(), subscriptions.upgrade())
        else {
            return;
        };
        if peer.is_transport_closed() || subscriptions.ends() {
            return;
        }
        for uri in subscriptions.look(&session).await {
            let told = peer.notify_resource_updated(ResourceUpdatedNotificationParam::new(uri));
            if told.await.is_err() {
                return;
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_change_is_told_once_and_not_the_first_sight() {
        use SeenResource::{Contents, Unreadable};
        let mut watched = WatchedResources::default();
        watched.seen.insert("a".to_owned(), None);
        let rows = [
            ("a", Contents(1), false),
            ("a", Contents(1), false),
            ("a", Contents(2), true),
            ("a", Contents(2), false),
            ("a", Unreadable, true),
            ("a", Unreadable, false),
            ("a", Contents(2), true),
            ("b", Contents(1), false),
            ("b", Contents(2), false),
        ];
        for (uri, now, is_told) in rows {
            assert_eq!(watched.note(uri, now), is_told, "{uri} {now:?}");
        }
        assert_ne!(SeenResource::of_contents("x"), SeenResource::of_contents("y"));
    }

    #[test]
    fn subscriptions_are_bounded_and_counted_once() {
        let subscriptions = Subscriptions::default();
        assert!(subscriptions.add("0".to_owned()).unwrap(), "somebody has to watch now");
        for number in 0..SUBSCRIPTIONS_MAX {
            assert!(!subscriptions.add(number.to_string()).unwrap());
        }
        assert!(subscriptions.add("one more".to_owned()).is_err());
        subscriptions.remove("0");
        subscriptions.remove("never there");
        assert!(!subscriptions.add("one more".to_owned()).unwrap());
        assert!(!subscriptions.ends());
        for uri in (0..SUBSCRIPTIONS_MAX).map(|number| number.to_string()) {
            subscriptions.remove(&uri);
        }
        subscriptions.remove("one more");
        assert!(subscriptions.ends() && subscriptions.add("a".to_owned()).unwrap());
        let many: Vec<String> = (0..100).map(|number| number.to_string()).collect();
        assert_eq!(Subscriptions::of(&many).lock().seen.len(), SUBSCRIPTIONS_MAX);
    }
}
