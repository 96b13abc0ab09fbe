//! `sallyport secret list|check|set|remove`: the values of the policy's secrets.

use std::collections::BTreeMap;

use sallyport_contract::redact::REDACTED_BYTES_MIN;
use sallyport_policy::SecretSource;
use sallyport_runtime::{
    config::ConfigFlags,
    secrets::{Vault, check_writable, source},
};
use serde_json::{Value, json};

use super::{
    args::{Format, SecretCommand},
    compose,
    exit::{Exit, Failure},
    hidden,
    output::Output,
};

/// Every secret in the policy.
type Sources = BTreeMap<String, SecretSource>;

pub(super) async fn secret(
    flags: &ConfigFlags,
    command: &SecretCommand,
    out: &Output,
) -> Result<Exit, Failure> {
    let settings = compose::settings(flags)?;
    let sources = compose::secret_sources(&settings, out)?;
    let vault = Vault::new(settings.env);
    match command {
        SecretCommand::List(args) => list(&vault, &sources, args.output, out),
        SecretCommand::Check { name: None } => Ok(check(&vault, &sources, out)),
        SecretCommand::Check { name: Some(name) } => {
            let one = Sources::from([(name.clone(), place(&sources, name)?.clone())]);
            Ok(check(&vault, &one, out))
        }
        SecretCommand::Set { name } => set(&vault, name, place(&sources, name)?, out).await,
        SecretCommand::Remove { name } => {
            vault.remove(name, place(&sources, name)?)?;
            out.note(&format!("Removed the value of {name}."));
            Ok(Exit::Done)
        }
    }
}

fn place<'s>(sources: &'s Sources, name: &str) -> Result<&'s SecretSource, Failure> {
    sources.get(name).ok_or_else(|| {
        let hint = format!(
            "add a [secret.{name}] table with \"env\", \"file\" or \"keyring\" to your policy"
        );
        Failure::new(Exit::Policy, format!("no policy names the secret {name:?}")).with_hint(hint)
    })
}

fn list(vault: &Vault, sources: &Sources, form: Format, out: &Output) -> Result<Exit, Failure> {
    if form == Format::Json {
        out.json(&sources.iter().map(|(name, place)| to_json(vault, name, place)).collect());
        return Ok(Exit::Done);
    }
    let width = sources.keys().map(String::len).max().unwrap_or(0);
    for (name, place) in sources {
        let state = if vault.get(name, place).is_ok() { "ready" } else { "no value" };
        out.pair(name, width, &format!("{state:8}  {}", source::phrase(place)));
    }
    if sources.is_empty() {
        out.note("The policy names no secrets. Add a [secret.NAME] table to name one.");
    }
    Ok(Exit::Done)
}

fn to_json(vault: &Vault, name: &str, place: &SecretSource) -> Value {
    let problem = vault.get(name, place).err().map(|error| error.to_string());
    json!({
        "name": name,
        "source": source::kind_name(place),
        "place": source::location_text(place),
        "ready": problem.is_none(),
        "problem": problem,
    })
}

/// Reports every secret without a value, not only the first.
fn check(vault: &Vault, sources: &Sources, out: &Output) -> Exit {
    let mut exit = Exit::Done;
    for (name, place) in sources {
        match vault.get(name, place) {
            Ok(_) => out.line(&format!("{name} is ready.")),
            Err(error) => exit = out.failure(&error.into()),
        }
    }
    for name in vault.redactor().too_short_names() {
        warn_of_length(name, out);
    }
    exit
}

async fn set(
    vault: &Vault,
    name: &str,
    place: &SecretSource,
    out: &Output,
) -> Result<Exit, Failure> {
    // Check the place first, because the user should not type a value that cannot be stored.
    check_writable(name, place)?;
    let prompt = format!("value of {name} (it is not shown): ");
    let Some(value) = hidden::read(&prompt, out).await? else { return Ok(Exit::Interrupted) };
    vault.set(name, place, &value)?;
    out.note(&format!("{name} is in {}.", source::phrase(place)));
    if let SecretSource::Keyring { .. } = place {
        out.note(&format!("Note that {}.", source::KEYRING_FORGETS));
    }
    if value.expose().trim().len() < REDACTED_BYTES_MIN {
        warn_of_length(name, out);
    }
    Ok(Exit::Done)
}

fn warn_of_length(name: &str, out: &Output) {
    out.warn(&format!(
        "{name} is shorter than {REDACTED_BYTES_MIN} bytes: it is not taken out of what plugins \
         and servers answer"
    ));
}
