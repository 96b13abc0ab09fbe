//! The open conversations of this program, and the delivery of plugin messages to them.
//!
//! Every message is stored first, and then taken by a conversation that shows it, in this process
//! or in another one. So no message is lost when a process ends, and a message for a closed
//! conversation waits until that is resumed. Each open conversation has a courier, a task that
//! takes its messages when it is notified, and polls for those that other processes stored.

use std::{
    sync::{
        Arc, Mutex, MutexGuard, OnceLock, PoisonError,
        atomic::{AtomicU64, Ordering},
    },
    time::Duration,
};

use sallyport_contract::{
    ToolCallContext, ToolId, async_trait,
    services::{
        CallProgress, DeliveryTime, NoticeAudience, NoticeError, NoticeService, PluginNotice,
    },
};
use sallyport_session::SessionHandle;
use sallyport_store::{HostStore, StoreError};
use tokio::{sync::mpsc, task::JoinHandle, time::timeout};

use super::delivery::NotificationDelivery;
use crate::{clock::now_ms, gate::MessageSink};

/// Maximum number of events that wait for a courier. Further progress is dropped; only the latest
/// counts.
const EVENTS_WAITING_MAX: usize = 64;

/// Maximum wait for a courier to end. Its session may have stopped listening.
const UNSUBSCRIBE_TIME_MAX: Duration = Duration::from_secs(2);

/// The open conversations of this program.
pub struct NotificationHub {
    store: HostStore,
    message_sink: MessageSink,
    progress_sink: OnceLock<ProgressSink>,
    conversations: Mutex<Vec<OpenConversation>>,
    /// How many subscriptions there were.
    subscription_count: AtomicU64,
}

/// Receives the progress of calls that belong to no open session, such as those of MCP clients. It
/// must not wait.
pub type ProgressSink = Box<dyn Fn(&ToolCallContext, CallProgress) + Send + Sync>;

struct OpenConversation {
    session_id: String,
    /// The number of its subscription: a session may be opened again while an earlier one ends.
    subscription: u64,
    events: mpsc::Sender<DeliveryEvent>,
}

/// An event for a courier.
pub(super) enum DeliveryEvent {
    /// There may be messages for its conversation.
    CheckStore,
    /// A call of its conversation has made progress.
    Progress { call_id: String, progress: CallProgress },
}

impl NotificationHub {
    pub(super) fn new(store: HostStore, message_sink: MessageSink) -> Self {
        Self {
            store,
            message_sink,
            progress_sink: OnceLock::new(),
            conversations: Mutex::default(),
            subscription_count: AtomicU64::new(0),
        }
    }

    /// Sets what receives the progress of calls without a session. Only the first one counts.
    pub(crate) fn set_progress_sink(&self, sink: ProgressSink) {
        let _ = self.progress_sink.set(sink);
    }

    /// Starts to deliver messages to a session, stored ones first. Must be called within a tokio
    /// runtime.
    pub fn subscribe(
        self: &Arc<Self>,
        user: &str,
        session_id: &str,
        handle: SessionHandle,
    ) -> Subscription {
        let (event_sender, inbox) = mpsc::channel(EVENTS_WAITING_MAX);
        let (store, message_sink) = (self.store.clone(), Arc::clone(&self.message_sink));
        let session_id = session_id.to_owned();
        let delivery_session_id = session_id.clone();
        let (delivered_count, error_reported) = (AtomicU64::new(0), OnceLock::new());
        let delivery_task = NotificationDelivery {
            user: user.to_owned(),
            session_id: delivery_session_id,
            store,
            handle,
            message_sink,
            delivered_count,
            error_reported,
        };
        let delivery_task = tokio::spawn(delivery_task.run_delivery(inbox));
        let number = self.subscription_count.fetch_add(1, Ordering::Relaxed);
        self.open_conversations().push(OpenConversation {
            session_id,
            subscription: number,
            events: event_sender,
        });
        Subscription { notification_hub: Arc::clone(self), number, delivery_task }
    }

    /// Stores a message for a user and wakes the couriers.
    ///
    /// # Errors
    ///
    /// The message cannot be stored, or too many messages are gathered already.
    pub async fn post_notice(
        &self,
        user: &str,
        notice: &PluginNotice,
        delivery: DeliveryTime,
    ) -> Result<(), NoticeError> {
        let unavailable = |error: StoreError| NoticeError::Unavailable(error.to_string());
        let notice = PluginNotice {
            audience: self.effective_audience(user, notice).await.map_err(unavailable)?,
            ..notice.clone()
        };
        let notice_store = &self.store.notices;
        match delivery {
            DeliveryTime::Immediate => {
                notice_store.store_notice(user, &notice).await.map_err(unavailable)?
            }
            DeliveryTime::Batched(after) => {
                let is_stored = notice_store
                    .store_or_merge(user, &notice, now_ms(), after)
                    .await
                    .map_err(unavailable)?;
                // The couriers look when its time has come.
                return if is_stored { Ok(()) } else { Err(NoticeError::Full) };
            }
        }
        for open in self.open_conversations().iter() {
            // A full queue does no harm: that courier looks soon anyway.
            let _ = open.events.try_send(DeliveryEvent::CheckStore);
        }
        Ok(())
    }

    /// Returns the audience of a message. A conversation that is closed and not stored can never be
    /// resumed to show it, so it then goes to the user.
    async fn effective_audience(
        &self,
        user: &str,
        notice: &PluginNotice,
    ) -> Result<NoticeAudience, StoreError> {
        let id = &notice.session_id;
        if self.store.presence.is_open(id, now_ms()).await? {
            return Ok(notice.audience);
        }
        match self.store.sessions.get(user, id).await {
            Ok(_) => Ok(notice.audience),
            Err(StoreError::SessionNotFound { .. }) => Ok(NoticeAudience::User),
            Err(error) => Err(error),
        }
    }

    fn open_conversations(&self) -> MutexGuard<'_, Vec<OpenConversation>> {
        self.conversations.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

#[async_trait]
impl NoticeService for NotificationHub {
    async fn notify(
        &self,
        user: &str,
        notice: PluginNotice,
        delivery: DeliveryTime,
    ) -> Result<(), NoticeError> {
        self.post_notice(user, &notice, delivery).await
    }

    fn report_progress(&self, call: &ToolCallContext, _: &ToolId, progress: CallProgress) {
        let open = self.open_conversations();
        let conversation = open.iter().find(|open| open.session_id == call.session_id);
        if let Some(open) = conversation {
            let event = DeliveryEvent::Progress { call_id: call.call_id.clone(), progress };
            // A dropped update is followed by a newer one.
            let _ = open.events.try_send(event);
        } else if let Some(sink) = self.progress_sink.get() {
            sink(call, progress);
        }
    }
}

/// A session that receives messages.
pub struct Subscription {
    notification_hub: Arc<NotificationHub>,
    number: u64,
    delivery_task: JoinHandle<()>,
}

impl Subscription {
    /// Stops delivery. Later messages wait until the session is resumed. Call this before the
    /// session is closed, so that it still records the delivered messages.
    pub async fn unsubscribe(mut self) {
        self.leave_hub();
        let _ = timeout(UNSUBSCRIBE_TIME_MAX, &mut self.delivery_task).await;
    }

    /// Drops the sender of this subscription, which ends its courier.
    fn leave_hub(&self) {
        let mut open = self.notification_hub.open_conversations();
        open.retain(|open| open.subscription != self.number);
    }
}

impl Drop for Subscription {
    fn drop(&mut self) {
        self.leave_hub();
        self.delivery_task.abort();
    }
}
