//! The timers in SQLite.

mod claim;
mod rows;

use rusqlite::params;
use sallyport_contract::{
    async_trait,
    services::{DataOwner, StoredTimer, TimerError, TimerRequest, TimerStore},
};

use super::SqliteStore;
use crate::{
    error::StoreError,
    sql_integer::to_sql_integer,
    timers::{PersistentTimerStore, TimerClaim, row},
};

/// The table of timers. A number is never reused, because a conversation may refer to a timer that
/// ended long ago. `claims` counts how often a timer was claimed, and identifies the last claim;
/// while that is unsettled, `process` is its holder. `again` is set if an earlier claim for the
/// same time was never settled.
pub(super) const TABLE: &str = "
    CREATE TABLE timer (
        key INTEGER PRIMARY KEY AUTOINCREMENT,
        plugin TEXT NOT NULL,
        user TEXT NOT NULL,
        session_id TEXT NOT NULL,
        label TEXT,
        payload TEXT NOT NULL,
        moment TEXT NOT NULL,
        repeats INTEGER NOT NULL,
        set_ms INTEGER NOT NULL,
        due_ms INTEGER NOT NULL,
        claims INTEGER NOT NULL DEFAULT 0,
        process TEXT,
        lease_ms INTEGER,
        again INTEGER NOT NULL DEFAULT 0
    ) STRICT;
    CREATE INDEX timer_due ON timer (due_ms);
    CREATE INDEX timer_owner ON timer (plugin, user);
";

#[async_trait]
impl PersistentTimerStore for SqliteStore {
    async fn list_due(&self, now_ms: u64) -> Result<Vec<StoredTimer>, StoreError> {
        self.read(move |connection| claim::list_due_timers(connection, now_ms)).await
    }

    async fn next_due_ms(&self, after_ms: u64) -> Result<Option<u64>, StoreError> {
        self.read(move |connection| rows::next_due_ms(connection, after_ms)).await
    }

    async fn claim(
        &self,
        id: &str,
        now_ms: u64,
        lease_ms: u64,
    ) -> Result<Option<TimerClaim>, StoreError> {
        let id = id.to_owned();
        self.write(move |connection| claim::claim_timer(connection, &id, now_ms, lease_ms)).await
    }

    async fn renew_claim(
        &self,
        claim: &TimerClaim,
        now_ms: u64,
        lease_ms: u64,
    ) -> Result<bool, StoreError> {
        let until_ms = to_sql_integer(now_ms.saturating_add(lease_ms));
        change_claimed(self, claim, "UPDATE timer SET lease_ms = ?3", until_ms).await
    }

    async fn complete_claim(&self, claim: &TimerClaim) -> Result<bool, StoreError> {
        match claim.next_ms.map(to_sql_integer) {
            // The third value is not used.
            None => change_claimed(self, claim, "DELETE FROM timer", 0).await,
            Some(next_ms) => {
                let sql =
                    "UPDATE timer SET due_ms = ?3, process = NULL, lease_ms = NULL, again = 0";
                change_claimed(self, claim, sql, next_ms).await
            }
        }
    }

    async fn release_claim(&self, claim: &TimerClaim) -> Result<bool, StoreError> {
        change_claimed(self, claim, RELEASE_SQL, 0).await
    }

    async fn release_started_claim(&self, claim: &TimerClaim) -> Result<bool, StoreError> {
        change_claimed(self, claim, RELEASE_SQL, 1).await
    }

    async fn all(&self) -> Result<Vec<StoredTimer>, StoreError> {
        self.read(|connection| rows::list_timers(connection, None)).await
    }

    async fn cancel_for_any_owner(&self, id: &str) -> Result<Option<StoredTimer>, StoreError> {
        let id = id.to_owned();
        self.write(move |connection| rows::cancel_timer(connection, &id, None)).await
    }
}

/// Gives a claim back. The third value says whether the firing had begun.
const RELEASE_SQL: &str = "UPDATE timer SET process = NULL, lease_ms = NULL, again = again OR ?3";

/// Changes the row of a timer if the claim still holds, and returns whether it does.
async fn change_claimed(
    store: &SqliteStore,
    claim: &TimerClaim,
    change: &str,
    value: i64,
) -> Result<bool, StoreError> {
    // The third value is named once more because a statement may not leave one out.
    let sql = format!(
        "{change} WHERE key = ?1 AND claims = ?2 AND process IS NOT NULL AND ?3 IS NOT NULL"
    );
    let (key, number) = (row::parse_timer_key(&claim.firing.timer.id), claim.number);
    store
        .write(move |connection| {
            Ok::<_, rusqlite::Error>(connection.execute(&sql, params![key, number, value])? > 0)
        })
        .await
}

#[async_trait]
impl TimerStore for SqliteStore {
    async fn add_timer(
        &self,
        owner: &DataOwner,
        plan: TimerRequest,
    ) -> Result<StoredTimer, TimerError> {
        let set_ms = self.now_ms();
        let due_ms = row::check_plan(&plan, set_ms)?;
        let (owner, max) = (owner.clone(), plan.timers_max);
        let added = self.write(move |connection| {
            if rows::count_timers(connection, &owner)? >= u64::from(max) {
                return Ok(None);
            }
            rows::insert_timer(connection, &owner, plan, set_ms, due_ms).map(Some)
        });
        added.await?.ok_or(TimerError::TooMany { max })
    }

    async fn cancel_timer(&self, owner: &DataOwner, id: &str) -> Result<bool, TimerError> {
        let (owner, id) = (owner.clone(), id.to_owned());
        let cancelled =
            self.write(move |connection| rows::cancel_timer(connection, &id, Some(&owner)));
        Ok(cancelled.await?.is_some())
    }

    async fn list_timers(&self, owner: &DataOwner) -> Result<Vec<StoredTimer>, TimerError> {
        let owner = owner.clone();
        Ok(self.read(move |connection| rows::list_timers(connection, Some(&owner))).await?)
    }
}
