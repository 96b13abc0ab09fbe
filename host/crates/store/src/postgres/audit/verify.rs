//! Checking that the log still contains exactly what was written.

use super::{chain, rows};
use crate::{
    audit::{
        AuditProblem, AuditVerification,
        chain::{
            head::AuditHead,
            key::AuditKey,
            link::ChainLink,
            walk::{self, ChainWalk},
        },
    },
    error::StoreError,
    postgres::{PostgresStore, error::PgError, transaction::Tx},
};

/// Checks the whole log. Other machines may write meanwhile: only the comparison of the head with
/// the log takes their lock, for a moment.
///
/// # Errors
///
/// The database, the key or the head cannot be read, or the key is not that of the log.
pub(super) async fn verify_log(
    store: &PostgresStore,
    expected: Option<ChainLink>,
) -> Result<AuditVerification, StoreError> {
    let head_problem =
        store.write(store.clone(), |tx, store| Box::pin(check_head(tx, store))).await?;
    let args = (store.clone(), expected);
    let checked = store.read(args, |tx, (store, expected)| {
        Box::pin(async move {
            match AuditKey::load(&store.folder)? {
                Some(key) => verify_with_key(tx, &key, *expected).await,
                None => verify_without_key(tx, *expected).await,
            }
        })
    });
    let mut verification = checked.await?;
    verification.problems.extend(head_problem);
    verification.problems.sort_by_key(|problem| problem.seq);
    Ok(verification)
}

/// Checks whether the log still contains the record that the head of this machine names.
async fn check_head(tx: &Tx<'_>, store: &PostgresStore) -> Result<Option<AuditProblem>, PgError> {
    chain::lock(tx).await?;
    let key = AuditKey::load(&store.folder)?;
    if let (Some(key), Some(known)) = (&key, chain::read_key_id(tx).await?)
        && key.id() != known
    {
        return Err(chain::other_key_error(store).into());
    }
    let end = rows::read_last_rows(tx, 1).await?.pop().map_or(ChainLink::GENESIS, |row| row.link);
    let head = AuditHead::read_file(&chain::head_path(store).await?, key.as_ref())?;
    chain::compare_head(tx, head, end).await
}

async fn verify_with_key(
    tx: &Tx<'_>,
    key: &AuditKey,
    expected: Option<ChainLink>,
) -> Result<AuditVerification, PgError> {
    let mut walk = ChainWalk::new(rows::find_start(tx).await?, key, expected);
    rows::walk_through(&mut walk, tx, u64::MAX).await?;
    walk.check_expected_link();
    Ok(walk.into_verification())
}

/// Without a key, neither the records nor an expected head can be checked.
async fn verify_without_key(
    tx: &Tx<'_>,
    expected: Option<ChainLink>,
) -> Result<AuditVerification, PgError> {
    let records = tx.count("SELECT count(*) FROM audit", &[]).await?;
    let end = rows::read_last_rows(tx, 1).await?.pop().map_or(ChainLink::GENESIS, |row| row.link);
    Ok(walk::unchecked_verification(records, end, expected))
}
