//! The courier of one conversation: takes the messages that are kept for it and brings them.

use std::{sync::OnceLock, time::Duration};

use sallyport_contract::services::Notice;
use sallyport_session::{Command, Handle};
use sallyport_store::{Store, StoreError, Taken, presence::BEAT_MS};
use tokio::{
    sync::mpsc,
    time::{Instant, sleep, sleep_until},
};

use super::{USER, apart, conversations::Word};
use crate::gate::{Tell, now_ms};

/// How often a courier looks for what other processes have kept.
const LOOK_EVERY: Duration = Duration::from_secs(2);

/// How long a session has to write down what was brought. Only then is it kept no longer.
const WRITING_TIME: Duration = Duration::from_millis(250);

pub(super) struct Courier {
    pub(super) session_id: String,
    pub(super) store: Store,
    pub(super) handle: Handle,
    pub(super) tell: Tell,
    /// Set when it was told that the store cannot be used: once is enough.
    pub(super) told: OnceLock<()>,
}

/// Why a courier stops.
struct Ended;

impl Courier {
    /// Brings what there is until nobody is left who could tell it of more.
    pub(super) async fn carry(self, mut words: mpsc::Receiver<Word>) {
        let entered = self.enter().await;
        let (mut look, mut beat) = (Instant::now() + LOOK_EVERY, Instant::now() + beat_every());
        // What waited for the session to go on comes later than it should have.
        let mut last = self.bring(true).await;
        while last.is_ok() {
            last = tokio::select! {
                word = words.recv() => match word {
                    Some(Word::Look) => self.bring(false).await,
                    Some(Word::Progress { call_id, progress }) => {
                        self.say(Command::Progress { call_id, progress }).await
                    }
                    None => Err(Ended),
                },
                () = sleep_until(look) => {
                    look = Instant::now() + LOOK_EVERY;
                    self.bring(false).await
                }
                () = sleep_until(beat) => {
                    beat = Instant::now() + beat_every();
                    self.with_store(|store, _| store.presence().beat(now_ms())).await;
                    Ok(())
                }
            };
        }
        if entered {
            self.with_store(|store, session_id| store.presence().leave(session_id)).await;
        }
    }

    async fn enter(&self) -> bool {
        let enter = |store: &Store, id: &str| store.presence().enter(USER, id, now_ms());
        self.with_store(enter).await.is_some()
    }

    /// Takes what is there and hands it over.
    async fn bring(&self, is_late: bool) -> Result<(), Ended> {
        let take = |store: &Store, id: &str| store.notices().take(USER, id, now_ms());
        let Some(mut taken) = self.with_store(take).await.filter(|taken| !taken.is_empty()) else {
            return Ok(());
        };
        if taken.more > 0 {
            (self.tell)(&format!("{} older messages were kept no longer", taken.more));
        }
        for notice in std::mem::take(&mut taken.notices) {
            let notice = Notice { late: notice.late || is_late, ..notice };
            if self.say(Command::Notice(notice)).await.is_err() {
                self.give_back(taken).await;
                return Err(Ended);
            }
        }
        sleep(WRITING_TIME).await;
        self.with_store(move |store, _| store.notices().confirm(&taken)).await;
        Ok(())
    }

    async fn give_back(&self, taken: Taken) {
        self.with_store(move |store, _| store.notices().give_back(&taken)).await;
    }

    async fn say(&self, command: Command) -> Result<(), Ended> {
        self.handle.send(command).await.map_err(|_| Ended)
    }

    fn complain(&self, error: &StoreError) {
        if self.told.set(()).is_ok() {
            (self.tell)(&format!("messages of plugins cannot be read: {error}"));
        }
    }

    /// Does something with the store. What goes wrong is told, and tried again in time.
    async fn with_store<T: Send + 'static>(
        &self,
        work: impl FnOnce(&Store, &str) -> Result<T, StoreError> + Send + 'static,
    ) -> Option<T> {
        let (store, session_id) = (self.store.clone(), self.session_id.clone());
        let done = apart(move || work(&store, &session_id)).await?;
        done.map_err(|error| self.complain(&error)).ok()
    }
}

fn beat_every() -> Duration {
    Duration::from_millis(BEAT_MS)
}
