//! `sallyport secret list|check|set|remove`: the values of the policy's secrets.

use std::collections::BTreeMap;

use clap::Subcommand;
use sallyport_contract::redact::REDACTED_BYTES_MIN;
use sallyport_policy::SecretSource;
use sallyport_runtime::{
    config::ConfigFlags,
    secrets::{SecretRemark, Vault, check_writable, source},
};
use sallyport_terminal::listing::ListRow;
use serde_json::{Value, json};

use super::{
    args::{OutputArgs, OutputFormat},
    exit::{CommandFailure, ExitStatus},
    name_kind::NameKind,
    output::CliOutput,
    secret_input, setup,
};

/// Every secret in the policy.
type Sources = BTreeMap<String, SecretSource>;

#[derive(Debug, Subcommand)]
#[command(defer = true)]
pub(super) enum SecretCommand {
    /// List the secrets, where their values are, and which are missing; never prints a value
    #[command(visible_alias = "ls")]
    List(OutputArgs),
    /// Check that every secret has a value
    Check {
        /// This secret only
        #[arg(add = NameKind::Secret)]
        name: Option<String>,
    },
    /// Store a value from standard input in the place that the policy names
    Set {
        /// The secret
        #[arg(add = NameKind::Secret)]
        name: String,
    },
    /// Remove a value from the place that the policy names
    #[command(visible_alias = "rm")]
    Remove {
        /// The secret
        #[arg(add = NameKind::Secret)]
        name: String,
    },
}

pub(super) async fn run_secret_command(
    flags: &ConfigFlags,
    command: &SecretCommand,
    out: &CliOutput,
) -> Result<ExitStatus, CommandFailure> {
    let settings = setup::read_settings(flags)?;
    let sources = setup::secret_sources(&settings, out)?;
    let vault = Vault::new(settings.env);
    match command {
        SecretCommand::List(args) => print_secrets(&vault, &sources, args.output, out),
        SecretCommand::Check { name: None } => Ok(check_secrets(&vault, &sources, out)),
        SecretCommand::Check { name: Some(name) } => {
            let one = Sources::from([(name.clone(), find_source(&sources, name)?.clone())]);
            Ok(check_secrets(&vault, &one, out))
        }
        SecretCommand::Set { name } => {
            set_secret(&vault, name, find_source(&sources, name)?, out).await
        }
        SecretCommand::Remove { name } => {
            vault.remove(name, find_source(&sources, name)?)?;
            out.print_note(&format!("Removed the value of {name}."));
            Ok(ExitStatus::Done)
        }
    }
}

fn find_source<'s>(sources: &'s Sources, name: &str) -> Result<&'s SecretSource, CommandFailure> {
    sources.get(name).ok_or_else(|| {
        let hint = format!(
            "add a [secret.{name}] table with \"env\", \"file\" or \"keyring\" to your policy"
        );
        CommandFailure::new(ExitStatus::Policy, format!("no policy names the secret {name:?}"))
            .with_hint(hint)
    })
}

fn print_secrets(
    vault: &Vault,
    sources: &Sources,
    form: OutputFormat,
    out: &CliOutput,
) -> Result<ExitStatus, CommandFailure> {
    if form == OutputFormat::Json {
        out.print_json(
            &sources
                .iter()
                .map(|(name, secret_source)| secret_to_json(vault, name, secret_source))
                .collect(),
        );
        return Ok(ExitStatus::Done);
    }
    let row = |(name, secret_source): (&String, &SecretSource)| {
        let state = if vault.get(name, secret_source).is_ok() { "ready" } else { "no value" };
        ListRow::new([name.as_str(), state, &source::phrase(secret_source)])
    };
    out.print_list(&sources.iter().map(row).collect::<Vec<_>>());
    if sources.is_empty() {
        out.print_note("The policy names no secrets. Add a [secret.NAME] table to name one.");
    }
    Ok(ExitStatus::Done)
}

fn secret_to_json(vault: &Vault, name: &str, secret_source: &SecretSource) -> Value {
    let problem = vault.get(name, secret_source).err().map(|error| error.to_string());
    json!({
        "name": name,
        "source": source::kind_name(secret_source),
        "place": source::location_text(secret_source),
        "ready": problem.is_none(),
        "problem": problem,
    })
}

/// Reports every secret without a value, not only the first.
fn check_secrets(vault: &Vault, sources: &Sources, out: &CliOutput) -> ExitStatus {
    let mut exit = ExitStatus::Done;
    for (name, secret_source) in sources {
        match vault.get(name, secret_source) {
            Ok(_) => out.print_line(&format!("{name} is ready.")),
            Err(error) => exit = out.print_failure(&error.into()),
        }
    }
    for name in vault.redactor().too_short_names() {
        warn_of_short_value(name, out);
    }
    exit
}

async fn set_secret(
    vault: &Vault,
    name: &str,
    secret_source: &SecretSource,
    out: &CliOutput,
) -> Result<ExitStatus, CommandFailure> {
    // Check the place first, because the user should not type a value that cannot be stored.
    check_writable(name, secret_source)?;
    let prompt = format!("value of {name} (it is not shown): ");
    let Some(value) = secret_input::read_secret(&prompt, out).await? else {
        return Ok(ExitStatus::Interrupted);
    };
    vault.set(name, secret_source, &value)?;
    out.print_note(&format!("{name} is in {}.", source::phrase(secret_source)));
    if let SecretSource::Keyring { .. } = secret_source {
        out.print_note(&format!("Note that {}.", source::KEYRING_FORGETS));
    }
    if value.expose().trim().len() < REDACTED_BYTES_MIN {
        warn_of_short_value(name, out);
    }
    Ok(ExitStatus::Done)
}

fn warn_of_short_value(name: &str, out: &CliOutput) {
    out.print_warning(&SecretRemark::TooShort(name.to_owned()).to_string());
}
