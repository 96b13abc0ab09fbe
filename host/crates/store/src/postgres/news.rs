//! News of messages: a machine that stores one for a user announces it, and the machines on which
//! the user has a session look at once (`LISTEN` and `NOTIFY`). Without a connection, they look from
//! time to time.

use std::{
    sync::atomic::{AtomicBool, Ordering},
    time::Duration,
};

use sallyport_contract::async_trait;
use tokio::sync::broadcast;

use super::{
    connector::{Connector, Heard},
    database::Database,
    error::PgError,
    transaction::Tx,
    values::hash_key,
};
use crate::notices::NoticeListener;

/// The channel, below the name of the schema: tests share a database.
const CHANNEL: &str = "notice";

/// News that a slow listener may miss one by one; beyond, it looks anyway.
const NEWS_WAITING_MAX: usize = 64;

/// Pause before a connection is made again that was lost.
const RECONNECT_PAUSE: Duration = Duration::from_secs(2);

/// What this machine hears.
pub(super) struct News {
    heard: broadcast::Sender<Heard>,
    has_begun: AtomicBool,
}

impl Default for News {
    fn default() -> Self {
        Self { heard: broadcast::Sender::new(NEWS_WAITING_MAX), has_begun: AtomicBool::new(false) }
    }
}

impl News {
    /// Listens for messages that are stored for a user. The first listener makes the connection.
    pub(super) fn listen(&self, database: &Database, user: &str) -> UserNews {
        let heard = self.heard.subscribe();
        self.begin(database);
        UserNews { heard, own: Heard::Word(user_word(user)) }
    }

    fn begin(&self, database: &Database) {
        if self.has_begun.swap(true, Ordering::Relaxed) {
            return;
        }
        let listening = listen_for_ever(
            database.connector().clone(),
            channel(database.schema()),
            self.heard.clone(),
        );
        // It ends with the threads of the database.
        if let Some(handle) = database.handle() {
            handle.spawn(listening);
        }
    }
}

/// What one user's listener hears, from its creation on.
pub(super) struct UserNews {
    heard: broadcast::Receiver<Heard>,
    /// The news that are meant.
    own: Heard,
}

#[async_trait]
impl NoticeListener for UserNews {
    async fn wait_for_news(&mut self) {
        loop {
            match self.heard.recv().await {
                Ok(Heard::Begun) | Err(broadcast::error::RecvError::Lagged(_)) => return,
                Ok(news) if news == self.own => return,
                Ok(Heard::Word(_)) => {}
                Err(broadcast::error::RecvError::Closed) => std::future::pending().await,
            }
        }
    }
}

async fn listen_for_ever(connector: Connector, channel: String, heard: broadcast::Sender<Heard>) {
    loop {
        // Nobody listens while no session is open.
        let hear = |news| drop(heard.send(news));
        // Why it was lost does not matter: what uses the database fails for the same reason.
        let _ = connector.listen(&channel, hear).await;
        tokio::time::sleep(RECONNECT_PAUSE).await;
    }
}

/// Announces that a message for a user is stored, as soon as the transaction is committed.
pub(super) async fn tell(tx: &Tx<'_>, user: &str) -> Result<(), PgError> {
    let sql = "SELECT pg_notify(current_schema() || $1, $2)";
    tx.execute(sql, &[&format!("_{CHANNEL}"), &user_word(user)]).await.map(drop)
}

fn channel(schema: &str) -> String {
    format!("{schema}_{CHANNEL}")
}

/// Stands for a user, whose name may be longer than the server takes.
fn user_word(user: &str) -> String {
    let hash = hash_key(&[user]);
    hash.iter().take(16).map(|byte| format!("{byte:02x}")).collect()
}
