//! The checks of what is stored: sessions and connected accounts.

use sallyport_contract::LOCAL_USER;
use sallyport_runtime::{config::HostSettings, connections::KEY_FILE};
use sallyport_store::{
    StoreError,
    database::{self, DatabaseStatus, SchemaState},
    sessions::SessionFilter,
};

use super::{
    super::{output::format_count, setup},
    DoctorCheck, folder_bytes,
};

/// What the check of the database found.
pub(super) struct DatabaseFinding {
    pub(super) check: DoctorCheck,
    /// The tables are there, so what they have can be checked without changing them.
    pub(super) has_tables: bool,
}

/// Checks the database that the configuration names, if it names one: whether it can be reached and
/// written to, has tables of a version that this program knows, and keeps what it acknowledges.
/// Changes nothing in it.
pub(super) async fn check_database(settings: &HostSettings) -> Option<DatabaseFinding> {
    let status = match settings.database_address() {
        Ok(None) => return None,
        Ok(Some(address)) => database::check_database(&address).await,
        Err(error) => Err(error),
    };
    let has_tables =
        status.as_ref().is_ok_and(|status| matches!(status.schema, SchemaState::Current { .. }));
    Some(DatabaseFinding { check: judge_database(status), has_tables })
}

fn judge_database(status: Result<DatabaseStatus, StoreError>) -> DoctorCheck {
    let id = "store";
    match status {
        Ok(status) if status.unsafe_settings.is_empty() => {
            DoctorCheck::ok(id, describe_database(&status))
        }
        Ok(status) => {
            let names = status.unsafe_settings.join(" and ");
            let finding = format!("{}, with {names} off", describe_database(&status));
            let remedy = format!("turn {names} on, or a power failure may damage the database");
            DoctorCheck::warning(id, finding, remedy)
        }
        Err(error) => {
            let remedy = error.hint().unwrap_or_else(|| "check [store] of sallyport.toml".into());
            DoctorCheck::failed(id, error.to_string(), remedy)
        }
    }
}

fn describe_database(status: &DatabaseStatus) -> String {
    let DatabaseStatus { database, server_version, schema, sessions, .. } = status;
    let tables = match schema {
        SchemaState::Missing => "no tables yet; the first use creates them".to_owned(),
        SchemaState::Older { found, newest } => {
            format!("tables of version {found}; the next use migrates them to version {newest}")
        }
        SchemaState::Current { version } => {
            format!("tables of version {version}, {}", format_count(*sessions, "session"))
        }
    };
    format!("{database}: PostgreSQL {server_version}, {tables}")
}

/// Whether something may be stored: a database elsewhere is looked at, and a folder that is missing
/// is not made.
fn is_store_begun(settings: &HostSettings) -> bool {
    settings.store.is_some() || folder_bytes(&settings.paths.state).is_some()
}

/// Counts the connected accounts, and says where their key is. The check creates no database.
pub(super) async fn check_connections(settings: &HostSettings) -> DoctorCheck {
    let id = "connections";
    if !is_store_begun(settings) {
        return DoctorCheck::ok(id, "none yet");
    }
    let found = match setup::open_store(settings) {
        Ok(store) => store.connections.list_connections(LOCAL_USER).await.map_err(Into::into),
        Err(failure) => Err(failure),
    };
    match found {
        Ok(found) if found.is_empty() => DoctorCheck::ok(id, "none yet"),
        Ok(found) => {
            let key = settings.paths.state.join(KEY_FILE);
            let finding =
                format!("{} are kept, sealed with the key in {}", found.len(), key.display());
            match key.is_file() {
                true => DoctorCheck::ok(id, finding),
                false => DoctorCheck::warning(
                    id,
                    format!("{} is missing, so no account can be used", key.display()),
                    "restore it, or connect again with `sallyport connection add PLUGIN`",
                ),
            }
        }
        Err(failure) => DoctorCheck::from_failure(id, failure, "mend the folder"),
    }
}

/// Counts the stored sessions. The check creates no database.
pub(super) async fn check_sessions(settings: &HostSettings) -> DoctorCheck {
    let id = "sessions";
    if !is_store_begun(settings) {
        return DoctorCheck::ok(id, "none yet");
    }
    let found = match setup::open_store(settings) {
        Ok(store) => {
            store.sessions.list(SessionFilter::of_user(LOCAL_USER)).await.map_err(Into::into)
        }
        Err(failure) => Err(failure),
    };
    match found {
        Ok(found) => DoctorCheck::ok(id, format!("{} are kept", found.len())),
        Err(failure) => DoctorCheck::from_failure(id, failure, "mend the folder"),
    }
}

#[cfg(test)]
mod tests {
    use super::{super::CheckStatus, *};

    #[test]
    fn the_database_is_described_with_what_to_do() {
        let status = |schema, settings: &[&str]| {
            Ok(DatabaseStatus {
                database: "postgres://db/sp".to_owned(),
                server_version: "15.14".to_owned(),
                schema,
                sessions: 7,
                unsafe_settings: settings.iter().map(|name| (*name).to_owned()).collect(),
            })
        };
        let unreachable = StoreError::Unreachable {
            database: "postgres://db/sp".to_owned(),
            message: "refused".to_owned(),
        };
        let current = SchemaState::Current { version: 2 };
        let rows = [
            (status(current, &[]), CheckStatus::Ok, "15.14, tables of version 2, 7 sessions", ""),
            (status(SchemaState::Missing, &[]), CheckStatus::Ok, "the first use creates them", ""),
            (
                status(SchemaState::Older { found: 1, newest: 2 }, &[]),
                CheckStatus::Ok,
                "version 1; the next use migrates them to version 2",
                "",
            ),
            (
                status(current, &["fsync", "full_page_writes"]),
                CheckStatus::Warning,
                "7 sessions, with fsync and full_page_writes off",
                "turn fsync and full_page_writes on",
            ),
            (Err(unreachable), CheckStatus::Failed, "cannot be reached: refused", "server runs"),
        ];
        for (status, want, finding, remedy) in rows {
            let check = judge_database(status);
            assert_eq!(check.status, want, "{}", check.finding);
            assert!(check.finding.contains(finding), "{}", check.finding);
            assert!(check.remedy.unwrap_or_default().contains(remedy), "{}", check.finding);
        }
    }
}
