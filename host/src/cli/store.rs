//! `sallyport store …`: moving the store into a database.

use clap::Subcommand;
use sallyport_runtime::config::{ConfigFlags, HostSettings};
use sallyport_store::{
    DatabaseAddress, StoreError,
    database::{self, CopiedRows, HomeCopy},
};
use sallyport_terminal::listing::ListRow;
use serde_json::{Value, json};

use super::{
    args::{OutputArgs, OutputFormat},
    exit::{CommandFailure, ExitStatus},
    output::CliOutput,
    setup,
};

// Commands for the store.
#[derive(Debug, Subcommand)]
#[command(defer = true)]
pub(super) enum StoreCommand {
    /// Copy everything from your home into an empty PostgreSQL database
    Migrate {
        /// Address of the database; without it, that of [store] in sallyport.toml. Other users of
        /// this machine can see a command line, so keep an address with a password in the file
        #[arg(long, value_name = "URL")]
        to: Option<String>,
        #[command(flatten)]
        output: OutputArgs,
    },
}

pub(super) async fn run(
    flags: &ConfigFlags,
    command: &StoreCommand,
    out: &CliOutput,
) -> Result<ExitStatus, CommandFailure> {
    let StoreCommand::Migrate { to, output } = command;
    let settings = setup::read_settings(flags)?;
    let address = target_address(&settings, to.as_deref())?;
    let local = settings.database_folder();
    let copy = database::copy_to_database(&settings.paths.state, &address, &local).await?;
    match output.output {
        OutputFormat::Json => out.print_json(&copy_json(&address, &copy)),
        OutputFormat::Text => print_copy(&address, &copy, out),
    }
    if settings.store.is_none() {
        out.print_note("To use the database, put its address under [store] in sallyport.toml.");
    }
    Ok(ExitStatus::Done)
}

fn copy_json(address: &DatabaseAddress, copy: &HomeCopy) -> Value {
    let database = address.shown();
    match copy {
        HomeCopy::Copied(copied) => {
            let rows = copied.iter().map(|copied| (copied.what.to_owned(), json!(copied.rows)));
            json!({ "database": database, "copied": serde_json::Map::from_iter(rows) })
        }
        HomeCopy::CopiedBefore => json!({ "database": database, "copied_before": true }),
    }
}

fn print_copy(address: &DatabaseAddress, copy: &HomeCopy, out: &CliOutput) {
    let database = address.shown();
    match copy {
        HomeCopy::Copied(copied) => {
            let row = |copied: &CopiedRows| {
                ListRow::new([copied.rows.to_string(), copied.what.to_owned()])
            };
            out.print_list(&copied.iter().map(row).collect::<Vec<_>>());
            out.print_line(&format!("Copied to {database}. Your home is unchanged."));
        }
        HomeCopy::CopiedBefore => {
            let line = format!("{database} has all of your home already. Nothing was copied.");
            out.print_line(&line);
        }
    }
}

fn target_address(
    settings: &HostSettings,
    to: Option<&str>,
) -> Result<DatabaseAddress, CommandFailure> {
    let named = to.map(DatabaseAddress::parse).transpose()?;
    let address = named.map_or_else(|| settings.database_address(), |named| Ok(Some(named)))?;
    let why = "neither --to nor [store] names one".to_owned();
    Ok(address.ok_or(StoreError::InvalidAddress { why })?)
}
