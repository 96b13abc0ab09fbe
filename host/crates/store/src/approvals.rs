//! Approvals for the rest of a session, so that the user is not asked the same question twice.
//!
//! An approval is looked up by its whole key. The key contains everything that the user was shown:
//! a different session, plugin, component, tool, subject or rule is a different question.

use rusqlite::{Connection, params};

use crate::{
    database::{self, to_sql_integer},
    error::StoreError,
    store::HostStore,
};

/// Longest time that an approval is valid. To the user who answered, a session that is resumed
/// after a month is a new one.
const AGE_MS_MAX: u64 = 30 * 24 * 60 * 60 * 1000;

/// Longest text of an approval. No user reads a longer subject.
const TEXT_BYTES_MAX: usize = 64 * 1024;

/// The table of approvals.
pub(crate) const TABLE: &str = "
    CREATE TABLE approval (
        session_id TEXT NOT NULL,
        plugin TEXT NOT NULL,
        digest TEXT NOT NULL,
        tool TEXT NOT NULL,
        subject TEXT NOT NULL,
        rule TEXT NOT NULL,
        at_ms INTEGER NOT NULL,
        PRIMARY KEY (session_id, plugin, digest, tool, subject, rule)
    ) STRICT, WITHOUT ROWID;
";

/// Something that the user allowed for the rest of a session, or that is being asked for.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct SessionApproval {
    /// The session.
    pub session_id: String,
    /// The plugin's name.
    pub plugin: String,
    /// Digest of the component, in hexadecimal.
    pub digest: String,
    /// The tool's name within its plugin.
    pub tool: String,
    /// The subject of the question: the call itself, or one access that it makes.
    pub subject: String,
    /// Identifies the rule that asks.
    pub rule: String,
    /// When it was allowed or is asked for, in milliseconds since 1970. Not part of the key.
    pub at_ms: u64,
}

/// The approvals of all sessions.
#[derive(Debug, Clone, Copy)]
pub struct ApprovalStore<'s> {
    store: &'s HostStore,
}

impl<'s> ApprovalStore<'s> {
    pub(crate) fn new(store: &'s HostStore) -> Self {
        Self { store }
    }

    /// Stores an approval and replaces an older one with the same key.
    ///
    /// Also removes the approvals that are older than 30 days at `approval.at_ms`.
    ///
    /// # Errors
    ///
    /// The database cannot be written, or a text is too long.
    pub fn store_approval(self, approval: &SessionApproval) -> Result<(), StoreError> {
        approval.check_lengths()?;
        let sql = "INSERT OR REPLACE INTO approval
            (session_id, plugin, digest, tool, subject, rule, at_ms)
            VALUES (?1, ?2, ?3, ?4, ?5, ?6, ?7)";
        let SessionApproval { session_id, plugin, digest, tool, subject, rule, at_ms } = approval;
        self.run_query(|connection| {
            remove_expired_approvals(connection, *at_ms)?;
            connection.execute(
                sql,
                params![session_id, plugin, digest, tool, subject, rule, to_sql_integer(*at_ms)],
            )
        })
        .map(drop)
    }

    /// Returns whether exactly this was allowed at `wanted.at_ms`, or at most 30 days before it.
    ///
    /// # Errors
    ///
    /// The database cannot be read.
    pub fn is_approved(self, wanted: &SessionApproval) -> Result<bool, StoreError> {
        let sql = "SELECT count(*) FROM approval
            WHERE session_id = ?1 AND plugin = ?2 AND digest = ?3 AND tool = ?4
            AND subject = ?5 AND rule = ?6 AND at_ms BETWEEN ?7 AND ?8";
        let SessionApproval { session_id, plugin, digest, tool, subject, rule, at_ms } = wanted;
        let oldest = to_sql_integer(oldest_valid_ms(*at_ms));
        self.run_query(|connection| {
            let key = params![
                session_id,
                plugin,
                digest,
                tool,
                subject,
                rule,
                oldest,
                to_sql_integer(*at_ms)
            ];
            connection.query_row(sql, key, |row| Ok(row.get::<_, i64>(0)? > 0))
        })
    }

    /// Removes every approval of a session, and returns their number.
    ///
    /// # Errors
    ///
    /// The database cannot be written.
    pub fn forget_session(self, session_id: &str) -> Result<usize, StoreError> {
        self.run_query(|connection| forget_session_approvals(connection, session_id))
    }

    /// Removes the approvals that are older than 30 days at a time, and returns their number. The
    /// time is in milliseconds since 1970.
    ///
    /// # Errors
    ///
    /// The database cannot be written.
    pub fn prune(self, now_ms: u64) -> Result<usize, StoreError> {
        self.run_query(|connection| remove_expired_approvals(connection, now_ms))
    }

    fn run_query<T>(
        self,
        work: impl FnOnce(&Connection) -> rusqlite::Result<T>,
    ) -> Result<T, StoreError> {
        let failed = database::map_database_error(self.store.folder());
        self.store.with_connection(|connection| work(connection).map_err(failed))
    }
}

impl SessionApproval {
    fn check_lengths(&self) -> Result<(), StoreError> {
        let texts = [
            ("a session", &self.session_id),
            ("a plugin's name", &self.plugin),
            ("a digest", &self.digest),
            ("a tool's name", &self.tool),
            ("a subject", &self.subject),
            ("a rule", &self.rule),
        ];
        match texts.into_iter().find(|(_, text)| text.len() > TEXT_BYTES_MAX) {
            Some((what, text)) => {
                let (bytes, bytes_max) = (text.len(), TEXT_BYTES_MAX);
                Err(StoreError::TooLong { what, bytes, bytes_max })
            }
            None => Ok(()),
        }
    }
}

/// Removes every approval of a session, and returns their number.
pub(crate) fn forget_session_approvals(
    connection: &Connection,
    session_id: &str,
) -> rusqlite::Result<usize> {
    connection.execute("DELETE FROM approval WHERE session_id = ?1", [session_id])
}

fn remove_expired_approvals(connection: &Connection, now_ms: u64) -> rusqlite::Result<usize> {
    connection
        .execute("DELETE FROM approval WHERE at_ms < ?1", [to_sql_integer(oldest_valid_ms(now_ms))])
}

fn oldest_valid_ms(now_ms: u64) -> u64 {
    now_ms.saturating_sub(AGE_MS_MAX)
}
