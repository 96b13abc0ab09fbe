//! The courier of one conversation: takes its stored messages and delivers them.

use std::{
    sync::{
        OnceLock,
        atomic::{AtomicU64, Ordering},
    },
    time::Duration,
};

use sallyport_contract::services::PluginNotice;
use sallyport_session::{FrontEndCommand, SessionHandle};
use sallyport_store::{HostStore, NoticeBatch, StoreError, presence::HEARTBEAT_MS};
use tokio::{
    sync::mpsc,
    time::{Instant, sleep_until, timeout},
};

use super::notification_hub::DeliveryEvent;
use crate::{clock::now_ms, gate::MessageSink};

/// How often a courier looks for messages that other processes stored.
const POLL_INTERVAL: Duration = Duration::from_secs(2);

/// How long the session may take to record its last messages.
const LAST_RECORD_TIME_MAX: Duration = Duration::from_secs(1);

pub(super) struct NotificationDelivery {
    /// The user whose messages it delivers.
    pub(super) user: String,
    pub(super) session_id: String,
    pub(super) store: HostStore,
    pub(super) handle: SessionHandle,
    pub(super) message_sink: MessageSink,
    /// The number of messages that were handed to the session.
    pub(super) delivered_count: AtomicU64,
    /// Set once an unusable store was reported, so that it is reported only once.
    pub(super) error_reported: OnceLock<()>,
}

/// The session or the sender is gone, so the courier stops.
struct DeliveryStop;

/// Messages that the session has, but not its journal yet. The store keeps them until then.
struct UnrecordedBatch {
    batch: NoticeBatch,
    /// The number of messages that the session must have recorded.
    delivered_count: u64,
}

impl NotificationDelivery {
    /// Delivers messages until the sender is dropped or the session ends.
    pub(super) async fn run_delivery(self, mut delivery_events: mpsc::Receiver<DeliveryEvent>) {
        self.note_error(
            self.store.presence.mark_open(&self.user, &self.session_id, now_ms()).await,
        );
        let (mut next_poll, mut next_heartbeat) =
            (Instant::now() + POLL_INTERVAL, Instant::now() + heartbeat_interval());
        // It hears also of what is stored while something else is handled.
        let mut news = self.store.notices.listen(&self.user);
        let mut unrecorded = None;
        // Messages that waited for the session to be resumed are late.
        let mut result = self.deliver_waiting(&mut unrecorded, true).await;
        while result.is_ok() {
            result = tokio::select! {
                word = delivery_events.recv() => match word {
                    Some(DeliveryEvent::CheckStore) => {
                        self.deliver_waiting(&mut unrecorded, false).await
                    }
                    Some(DeliveryEvent::Progress { call_id, progress }) => {
                        self.send_command(FrontEndCommand::Progress { call_id, progress }).await
                    }
                    None => Err(DeliveryStop),
                },
                recorded = self.wait_until_recorded(&unrecorded) => match recorded {
                    Ok(()) => {
                        self.settle_batch(unrecorded.take()).await;
                        self.deliver_waiting(&mut unrecorded, false).await
                    }
                    Err(DeliveryStop) => Err(DeliveryStop),
                },
                () = news.wait_for_news() => self.deliver_waiting(&mut unrecorded, false).await,
                () = sleep_until(next_poll) => {
                    next_poll = Instant::now() + POLL_INTERVAL;
                    self.deliver_waiting(&mut unrecorded, false).await
                }
                () = sleep_until(next_heartbeat) => {
                    next_heartbeat = Instant::now() + heartbeat_interval();
                    self.send_heartbeat().await;
                    Ok(())
                }
            };
        }
        self.settle_batch(unrecorded).await;
        self.note_error(self.store.presence.mark_closed(&self.session_id).await);
    }

    /// Shows that the session is open. If another process has opened it, its next record tells this
    /// session so.
    async fn send_heartbeat(&self) {
        let presence = &self.store.presence;
        self.note_error(presence.send_heartbeat(&self.user, &self.session_id, now_ms()).await);
    }

    /// Takes the waiting messages and hands them over, unless the last ones are not recorded yet.
    async fn deliver_waiting(
        &self,
        unrecorded: &mut Option<UnrecordedBatch>,
        is_late: bool,
    ) -> Result<(), DeliveryStop> {
        if unrecorded.is_some() {
            return Ok(());
        }
        let taken = self.store.notices.take_batch(&self.user, &self.session_id, now_ms()).await;
        let Some(mut batch) = self.note_error(taken).filter(|batch| !batch.is_empty()) else {
            return Ok(());
        };
        if batch.discarded_count > 0 {
            (self.message_sink)(&format!("{} older messages were dropped", batch.discarded_count));
        }
        let notices = std::mem::take(&mut batch.notices);
        let count = notices.len() as u64;
        let delivered_count = self.delivered_count.fetch_add(count, Ordering::Relaxed) + count;
        *unrecorded = Some(UnrecordedBatch { batch, delivered_count });
        for notice in notices {
            let notice = PluginNotice { late: notice.late || is_late, ..notice };
            self.send_command(FrontEndCommand::Notice(notice)).await?;
        }
        Ok(())
    }

    /// Waits until the session has recorded messages; for ever if it has all.
    async fn wait_until_recorded(
        &self,
        unrecorded: &Option<UnrecordedBatch>,
    ) -> Result<(), DeliveryStop> {
        match unrecorded {
            Some(UnrecordedBatch { delivered_count, .. }) => {
                self.handle.wait_for_notices(*delivered_count).await.map_err(|_| DeliveryStop)
            }
            None => std::future::pending().await,
        }
    }

    /// Gives messages back that the session does not record in time.
    async fn settle_batch(&self, unrecorded: Option<UnrecordedBatch>) {
        let Some(UnrecordedBatch { batch, delivered_count }) = unrecorded else { return };
        let recorded = self.handle.wait_for_notices(delivered_count);
        let settled = match timeout(LAST_RECORD_TIME_MAX, recorded).await {
            Ok(Ok(())) => self.store.notices.confirm_shown(&batch).await,
            Ok(Err(_)) | Err(_) => self.store.notices.release_batch(&batch).await,
        };
        self.note_error(settled);
    }

    async fn send_command(&self, command: FrontEndCommand) -> Result<(), DeliveryStop> {
        self.handle.send(command).await.map_err(|_| DeliveryStop)
    }

    /// Returns the result of the store. The first error is reported; the next look tries again.
    fn note_error<T>(&self, result: Result<T, StoreError>) -> Option<T> {
        result
            .inspect_err(|error| {
                if self.error_reported.set(()).is_ok() {
                    (self.message_sink)(&format!("messages of plugins cannot be read: {error}"));
                }
            })
            .ok()
    }
}

fn heartbeat_interval() -> Duration {
    Duration::from_millis(HEARTBEAT_MS)
}

#[cfg(test)]
mod tests {
    use std::{
        future,
        sync::{Arc, atomic::AtomicUsize},
    };

    use sallyport_contract::{
        Admission, BoxFuture, CallReport, LOCAL_USER, RequestedCall, ToolDescriptor, Toolbox,
        services::{DeliveryTime, NoticeAudience},
    };
    use sallyport_model::OfflineMatcher;
    use sallyport_session::{
        self as session, Journal, JournalError, JournalRecord, RestoredSession, ResultLookup,
        SessionOptions, SessionParts,
    };
    use tokio::time::sleep;

    use super::*;
    use crate::{services::NotificationHub, session::Events};

    const ID: &str = "s-1";

    /// More messages than a session and its channels can buffer.
    const MANY: usize = 480;

    struct NoTools;

    impl Toolbox for NoTools {
        fn tools(&self) -> Arc<[ToolDescriptor]> {
            Arc::new([])
        }

        fn admit_call(
            self: Arc<Self>,
            _: RequestedCall,
        ) -> BoxFuture<'static, Result<Admission, Box<CallReport>>> {
            Box::pin(future::pending())
        }
    }

    /// Counts recorded messages.
    struct Counting(Arc<AtomicUsize>);

    impl Journal for Counting {
        fn write_records(
            &mut self,
            records: Vec<JournalRecord>,
        ) -> BoxFuture<'_, Result<(), JournalError>> {
            let is_notice =
                |record: &&JournalRecord| matches!(record, JournalRecord::Noticed { .. });
            self.0.fetch_add(records.iter().filter(is_notice).count(), Ordering::Relaxed);
            Box::pin(future::ready(Ok(())))
        }

        fn read_records(&mut self) -> BoxFuture<'_, Result<Vec<JournalRecord>, JournalError>> {
            Box::pin(future::ready(Ok(Vec::new())))
        }

        fn keep_result(&mut self, _: String) -> BoxFuture<'_, Result<u64, JournalError>> {
            Box::pin(future::ready(Ok(1)))
        }

        fn find_result(&mut self, _: u64) -> BoxFuture<'_, Result<ResultLookup, JournalError>> {
            Box::pin(future::ready(Ok(ResultLookup::Unknown)))
        }
    }

    fn notice() -> PluginNotice {
        PluginNotice {
            plugin: "timer".parse().unwrap(),
            session_id: ID.to_owned(),
            text: "ding".to_owned(),
            speech: None,
            audience: NoticeAudience::User,
            late: false,
        }
    }

    /// A session that counts in `written` what it records.
    fn counting_session(written: &Arc<AtomicUsize>) -> (SessionHandle, Events) {
        let (_, approvals) = session::approval::approval_channel();
        let parts = SessionParts {
            model: Arc::new(OfflineMatcher::default()),
            toolbox: Arc::new(NoTools),
            approvals,
            journal: Box::new(Counting(Arc::clone(written))),
            recall: None,
            past: RestoredSession::default(),
            account: None,
            options: SessionOptions::new(ID),
        };
        session::spawn_session(parts).unwrap()
    }

    #[tokio::test]
    async fn a_session_that_ends_takes_no_messages_from_one_that_was_opened_again() {
        let folder = tempfile::tempdir().unwrap();
        let store = HostStore::open(&folder.path().join("state")).unwrap();
        let conversations = Arc::new(NotificationHub::new(store, Arc::new(|_: &str| {})));
        let written = [(); 2].map(|()| Arc::new(AtomicUsize::new(0)));
        let [(earlier, _), (later, _events)] = written.each_ref().map(counting_session);
        let ending = conversations.subscribe(LOCAL_USER, ID, earlier);
        let _attendance = conversations.subscribe(LOCAL_USER, ID, later);
        ending.unsubscribe().await;
        conversations.post_notice(LOCAL_USER, &notice(), DeliveryTime::Immediate).await.unwrap();
        let is_written = async {
            while written[1].load(Ordering::Relaxed) == 0 {
                sleep(Duration::from_millis(10)).await;
            }
        };
        tokio::time::timeout(Duration::from_secs(60), is_written).await.unwrap();
        assert_eq!(written[0].load(Ordering::Relaxed), 0);
    }

    /// A session whose front end does not read its events accepts messages, but stops recording
    /// them.
    #[tokio::test]
    async fn what_a_session_did_not_write_down_waits_for_the_next() {
        let folder = tempfile::tempdir().unwrap();
        let store = HostStore::open(&folder.path().join("state")).unwrap();
        let conversations = Arc::new(NotificationHub::new(store.clone(), Arc::new(|_: &str| {})));
        let written = Arc::new(AtomicUsize::new(0));
        let (handle, events) = counting_session(&written);
        let attendance = conversations.subscribe(LOCAL_USER, ID, handle);
        for _ in 0..MANY / 40 {
            for _ in 0..40 {
                conversations
                    .post_notice(LOCAL_USER, &notice(), DeliveryTime::Immediate)
                    .await
                    .unwrap();
            }
            // Time to take the messages, and to treat them as shown.
            sleep(Duration::from_millis(400)).await;
        }
        drop(events);
        attendance.unsubscribe().await;
        let mut kept = 0;
        loop {
            let batch = store.notices.take_batch(LOCAL_USER, ID, now_ms()).await.unwrap();
            if batch.is_empty() {
                break;
            }
            // Messages that wait for long are gathered, one per line; none is dropped.
            assert_eq!(batch.discarded_count, 0);
            kept += batch.notices.iter().map(|notice| notice.text.lines().count()).sum::<usize>();
        }
        let written = written.load(Ordering::Relaxed);
        assert!(written < MANY && written + kept >= MANY, "{written} written, {kept} kept");
    }
}
