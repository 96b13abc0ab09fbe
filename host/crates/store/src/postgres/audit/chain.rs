//! Appending to the log, under the lock of its writers.
//!
//! A log that does not end as it should is not continued silently: a record of the damage comes
//! first, in a commit of its own. The head is not written before that commit, so if the process is
//! killed in between, the next one finds the damage again.

use std::{
    path::PathBuf,
    sync::{Mutex, PoisonError},
};

use super::rows;
use crate::{
    audit::{
        AuditProblem,
        chain::{
            AuditRow, REPAIRS_MAX, RESTLESS,
            head::{AuditHead, HeadFileContent, LogView},
            key::{self, AuditKey},
            link::ChainLink,
            remark::{AuditRemark, ChainStart},
        },
    },
    error::StoreError,
    postgres::{PostgresStore, database::Access, error::PgError, transaction::Tx, values::Columns},
};

/// The result of appending to the log.
#[derive(Debug)]
pub(super) struct Appended {
    /// The last record that was added, or the last record of the log if none was added.
    pub(super) end: ChainLink,
    /// What was wrong with the log before.
    pub(super) problems: Vec<AuditProblem>,
}

/// The log while its lock is held.
pub(super) struct LockedLog {
    pub(super) key: AuditKey,
    pub(super) end: ChainLink,
    head: HeadFileContent,
    problems: Vec<AuditProblem>,
}

/// What a write needs besides the lines.
pub(super) struct WriteArgs {
    store: PostgresStore,
    lines: Vec<String>,
    is_durable: bool,
    /// The end that the write is about to have, to be looked for if its outcome is unknown.
    expected: Mutex<Option<ChainLink>>,
}

/// Writes all lines or none, after what the log has by then. Does not write the head; see
/// [`advance_head`].
///
/// # Errors
///
/// The database, the key or the head cannot be read or written. Either nothing was added, or it is
/// unknown whether anything was.
pub(super) async fn append_records(
    store: &PostgresStore,
    lines: Vec<String>,
    is_durable: bool,
) -> Result<Appended, StoreError> {
    let args = WriteArgs { store: store.clone(), lines, is_durable, expected: Mutex::new(None) };
    let mut problems = Vec::new();
    for _ in 0..=REPAIRS_MAX {
        if let Some(end) = append_once(&args).await? {
            return Ok(Appended { end, problems });
        }
        problems.extend(mend_end(store).await?);
    }
    Err(restless_error(store))
}

/// Returns the end of the log with the lines; `None` if the log has to be mended first.
async fn append_once(args: &WriteArgs) -> Result<Option<ChainLink>, StoreError> {
    let database = &args.store.database;
    match database.run(Access::Write, args, |tx, args| Box::pin(append_in(tx, args))).await {
        Err(StoreError::OutcomeUnknown { database }) => {
            let expected = *args.expected.lock().unwrap_or_else(PoisonError::into_inner);
            let found = find_written(&args.store, expected).await?;
            found.map(Some).ok_or(StoreError::OutcomeUnknown { database })
        }
        written => written,
    }
}

async fn append_in(tx: &Tx<'_>, args: &WriteArgs) -> Result<Option<ChainLink>, PgError> {
    set_durability(tx, args.is_durable).await?;
    let log = LockedLog::open(tx, &args.store).await?;
    if !log.problems.is_empty() {
        return Ok(None);
    }
    let records = log.link_lines(&args.lines)?;
    rows::insert_records(tx, &records).await?;
    let end = records.last().map_or(log.end, |(link, _)| *link);
    *args.expected.lock().unwrap_or_else(PoisonError::into_inner) = Some(end);
    Ok(Some(end))
}

/// Looks for a record whose commit was not confirmed. Waits for the lock, so the transaction in
/// question has ended by then.
async fn find_written(
    store: &PostgresStore,
    expected: Option<ChainLink>,
) -> Result<Option<ChainLink>, StoreError> {
    store
        .database
        .run(Access::Write, &expected, |tx, expected| {
            Box::pin(async move {
                lock(tx).await?;
                let Some(link) = expected else { return Ok(None) };
                Ok(rows::read_link(tx, link.seq).await?.filter(|found| found == link))
            })
        })
        .await
}

/// Advances the head of this machine to a record that is on the disk of the server.
///
/// # Errors
///
/// The database, the key or the head cannot be read or written.
pub(super) async fn advance_head(store: &PostgresStore, last: ChainLink) -> Result<(), StoreError> {
    let args = (store.clone(), last);
    store
        .database
        .run(Access::Write, &args, |tx, (store, last)| {
            Box::pin(async move {
                lock(tx).await?;
                let key = AuditKey::load(&store.folder)?;
                let path = head_path(store).await?;
                Ok(AuditHead { last: *last }.advance_file(&path, key.as_ref())?)
            })
        })
        .await
}

/// Waits until every record in the log is on the disk, and advances the head to the last one. Costs
/// little if the head names the last record already.
///
/// # Errors
///
/// As [`append_records`] and [`advance_head`].
pub(super) async fn sync_and_advance_head(
    store: &PostgresStore,
) -> Result<Vec<AuditProblem>, StoreError> {
    let mut problems = Vec::new();
    for _ in 0..=REPAIRS_MAX {
        let synced = store
            .database
            .run(Access::Write, store, |tx, store| Box::pin(sync_in(tx, store)))
            .await?;
        match synced {
            Synced::Head => return Ok(problems),
            Synced::Log(end) => return advance_head(store, end).await.map(|()| problems),
            Synced::Broken => problems.extend(mend_end(store).await?),
        }
    }
    Err(restless_error(store))
}

/// What is known after a wait for the disk.
enum Synced {
    /// The head names the last record already.
    Head,
    /// The log is on the disk up to this record.
    Log(ChainLink),
    /// The log has to be mended first.
    Broken,
}

async fn sync_in(tx: &Tx<'_>, store: &PostgresStore) -> Result<Synced, PgError> {
    let log = LockedLog::open(tx, store).await?;
    if !log.problems.is_empty() {
        return Ok(Synced::Broken);
    }
    if log.head.last_link() == log.end {
        return Ok(Synced::Head);
    }
    // Only a commit that writes something makes the earlier ones durable.
    let seq = i64::try_from(log.end.seq).unwrap_or(i64::MAX);
    tx.execute("UPDATE audit_key SET synced = $1", &[&seq]).await?;
    Ok(Synced::Log(log.end))
}

/// Checks the end of the log, and adds a record of what is wrong with it.
async fn mend_end(store: &PostgresStore) -> Result<Vec<AuditProblem>, StoreError> {
    let mended = store
        .database
        .run(Access::Write, store, |tx, store| Box::pin(mend_once(tx, store)))
        .await?;
    let Some((problems, last)) = mended else { return Ok(Vec::new()) };
    replace_head(store, last).await?;
    Ok(problems)
}

fn restless_error(store: &PostgresStore) -> StoreError {
    StoreError::Damaged { path: store.database.shown().into(), message: RESTLESS.to_owned() }
}

async fn mend_once(
    tx: &Tx<'_>,
    store: &PostgresStore,
) -> Result<Option<(Vec<AuditProblem>, ChainLink)>, PgError> {
    let log = LockedLog::open(tx, store).await?;
    if log.problems.is_empty() {
        return Ok(None);
    }
    let remark = AuditRemark::Broken { problems: log.problems.clone() };
    let records = log.link_lines(&[remark.render_line()])?;
    rows::insert_records(tx, &records).await?;
    let last = records.last().map_or(log.end, |(link, _)| *link);
    Ok(Some((log.problems, last)))
}

/// Overwrites any head: the record that was just written states what was wrong with it.
async fn replace_head(store: &PostgresStore, last: ChainLink) -> Result<(), StoreError> {
    let args = (store.clone(), last);
    store
        .database
        .run(Access::Write, &args, |tx, (store, last)| {
            Box::pin(async move {
                lock(tx).await?;
                let key = AuditKey::load_or_create(&store.folder)?;
                Ok(AuditHead { last: *last }.write_file(&head_path(store).await?, &key)?)
            })
        })
        .await
}

impl LockedLog {
    /// Locks the log for its writers, and reads its end.
    ///
    /// # Errors
    ///
    /// The log was begun with another key, or something cannot be read.
    pub(super) async fn open(tx: &Tx<'_>, store: &PostgresStore) -> Result<Self, PgError> {
        lock(tx).await?;
        let key = load_key(tx, store).await?;
        let last = rows::read_last_rows(tx, 2).await?;
        let end = last.first().map_or(ChainLink::GENESIS, |row| row.link);
        let path = head_path(store).await?;
        let head = AuditHead::read_file(&path, Some(&key))?;
        let mut problems = Vec::new();
        problems.extend(compare_head(tx, head, end).await?);
        problems.extend(check_last_record(tx, &key, &last).await?);
        Ok(Self { key, end, head, problems })
    }

    /// Links lines to the end of the log.
    pub(super) fn link_lines(&self, lines: &[String]) -> Result<Vec<(ChainLink, String)>, PgError> {
        // A log whose end was cut off continues after the cut, so that the gap stays visible.
        let mut seq = self.end.seq.max(self.head.last_link().seq);
        let mut previous = self.end.hash;
        let mut records = Vec::with_capacity(lines.len());
        for line in lines {
            seq = seq.saturating_add(1);
            if i64::try_from(seq).is_err() {
                let message = "there is no number after its last one";
                return Err(PgError::Foreign(message.to_owned()));
            }
            let link = self.key.link_record(&previous, seq, line.as_bytes());
            previous = link.hash;
            records.push((link, line.clone()));
        }
        Ok(records)
    }
}

/// Compares the head of this machine with the log, which ends with `end`. A machine without a head has
/// not seen the log yet; the others have.
pub(super) async fn compare_head(
    tx: &Tx<'_>,
    head: HeadFileContent,
    end: ChainLink,
) -> Result<Option<AuditProblem>, PgError> {
    if head == HeadFileContent::Nothing {
        return Ok(None);
    }
    let mut log = ReadLog::default();
    loop {
        match head.compare_with_log(&log, end) {
            Ok(problem) => return Ok(problem),
            Err(Unread::Link(seq)) => log.at_head = Some(rows::read_link(tx, seq).await?),
            Err(Unread::Start) => log.start = Some(rows::find_start(tx).await?),
        }
    }
}

/// What a head is compared with, as far as it was read. Most comparisons need little of it, and all
/// machines wait meanwhile.
#[derive(Default)]
struct ReadLog {
    start: Option<ChainStart>,
    at_head: Option<Option<ChainLink>>,
}

/// What a comparison needs that was not read yet.
enum Unread {
    Link(u64),
    Start,
}

impl LogView for ReadLog {
    type Error = Unread;

    fn read_link(&self, seq: u64) -> Result<Option<ChainLink>, Unread> {
        self.at_head.ok_or(Unread::Link(seq))
    }

    fn find_start(&self) -> Result<ChainStart, Unread> {
        self.start.ok_or(Unread::Start)
    }
}

/// Checks the last of the last two records.
async fn check_last_record(
    tx: &Tx<'_>,
    key: &AuditKey,
    rows: &[AuditRow],
) -> Result<Option<AuditProblem>, PgError> {
    let Some(last) = rows.first() else { return Ok(None) };
    let previous = match rows.get(1) {
        Some(row) => row.link,
        None => rows::find_start(tx).await?.link,
    };
    Ok(last.check_as_last(key, &previous))
}

/// Waits for the lock of the log's writers.
pub(super) async fn lock(tx: &Tx<'_>) -> Result<(), PgError> {
    tx.lock("audit", "").await
}

/// Loads the key, or makes one for a log that has not begun.
///
/// # Errors
///
/// The log was begun with another key.
async fn load_key(tx: &Tx<'_>, store: &PostgresStore) -> Result<AuditKey, PgError> {
    let own = AuditKey::load(&store.folder)?;
    match (read_key_id(tx).await?, own) {
        (Some(known), Some(own)) if known == own.id() => Ok(own),
        (Some(_), _) => Err(other_key_error(store).into()),
        (None, own) => {
            let key = own.map_or_else(|| AuditKey::load_or_create(&store.folder), Ok)?;
            tx.execute("INSERT INTO audit_key (id) VALUES ($1)", &[&key.id()]).await?;
            Ok(key)
        }
    }
}

/// The ID of the key with which the log was begun, if it was.
pub(super) async fn read_key_id(tx: &Tx<'_>) -> Result<Option<String>, PgError> {
    let known = tx.row("SELECT id FROM audit_key", &[]).await?;
    known.map(|row| row.value("id")).transpose()
}

pub(super) fn other_key_error(store: &PostgresStore) -> StoreError {
    let (database, path) = (store.database.shown().to_owned(), store.folder.join(key::FILE));
    StoreError::OtherAuditKey { database, path }
}

/// The head of this machine for this database.
pub(super) async fn head_path(store: &PostgresStore) -> Result<PathBuf, PgError> {
    let id = store.database.id().await?;
    Ok(store.folder.join(format!("audit-{id}.head")))
}

/// Sets whether the commit waits for the disk of the server.
async fn set_durability(tx: &Tx<'_>, is_durable: bool) -> Result<(), PgError> {
    match is_durable {
        true => Ok(()),
        false => tx.batch("SET LOCAL synchronous_commit = off").await,
    }
}
