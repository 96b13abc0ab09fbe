//! The key of a provider: where it comes from, and where it is stored.

use sallyport_contract::Secret;
use sallyport_policy::SecretSource;
use sallyport_runtime::{
    config::{
        Env, HostSettings, ProviderDefinition,
        edit::KeyPlace,
        model::{KEYRING_SERVICE, default_key_file},
    },
    secrets::{SecretProblem, Vault, source},
};

use super::{KeyStore, SetupContext, is_interactive, prompts};
use crate::cli::{
    exit::{CommandFailure, ExitStatus},
    secret_input,
};

/// A key that is used for the model.
pub(super) struct ChosenKey {
    pub(super) value: Option<Secret>,
    pub(super) place: KeyPlace,
    /// Where the value has to be stored, if it is not yet.
    pub(super) unstored_at: Option<SecretSource>,
}

/// Returns the key that the flags, the environment or the user provide; `None` if the user skips
/// it.
pub(super) async fn choose_key(
    context: &SetupContext<'_>,
    settings: &HostSettings,
    provider: ProviderDefinition,
) -> Result<Option<ChosenKey>, CommandFailure> {
    let args = context.args;
    if let Some(variable) = &args.key_from_env {
        return key_from_variable(settings, provider, variable, args.base_url.is_some()).map(Some);
    }
    if args.key_from_stdin {
        return typed_key(context, settings, provider).await;
    }
    let from_env = provider.key_from_env(&settings.env);
    match from_env {
        Some((variable, _)) => {
            key_from_variable(settings, provider, variable, args.base_url.is_some()).map(Some)
        }
        None if provider.key_variables.is_empty() => {
            Ok(Some(ChosenKey { value: None, place: KeyPlace::Provider, unstored_at: None }))
        }
        None if is_interactive(context.out) => typed_key(context, settings, provider).await,
        None => Err(missing_key_failure(provider)),
    }
}

fn missing_key_failure(provider: ProviderDefinition) -> CommandFailure {
    let variable = provider.key_variables.first().copied().unwrap_or_default();
    let message = format!("{} needs a key, and {variable} is not set", provider.name);
    CommandFailure::new(ExitStatus::Credentials, message)
        .with_hint("pass --key-from-env VARIABLE or --key-from-stdin")
}

/// The provider's own variable is found at each start, unless the file names another address. A key
/// from the environment is sent to an address of the file only if the file names the variable.
fn key_from_variable(
    settings: &HostSettings,
    provider: ProviderDefinition,
    variable: &str,
    has_address: bool,
) -> Result<ChosenKey, CommandFailure> {
    let Some(value) = settings.env.get(variable) else {
        let message = format!("the environment variable {variable:?} is not set");
        let failure = CommandFailure::new(ExitStatus::Usage, message);
        return Err(failure.with_hint("set it before you start sallyport"));
    };
    let is_found = provider.key_from_env(&settings.env).is_some_and(|(own, _)| own == variable);
    let place = match is_found && !has_address {
        true => KeyPlace::Provider,
        false => KeyPlace::Variable(variable.to_owned()),
    };
    Ok(ChosenKey { value: Some(Secret::new(value)), place, unstored_at: None })
}

async fn typed_key(
    context: &SetupContext<'_>,
    settings: &HostSettings,
    provider: ProviderDefinition,
) -> Result<Option<ChosenKey>, CommandFailure> {
    let (args, out) = (context.args, context.out);
    let prompt = format!("Key of {} (it is not shown): ", provider.name);
    let value = match secret_input::read_secret(&prompt, out).await {
        Ok(Some(value)) => value,
        Ok(None) => return Err(prompts::interrupted_failure()),
        Err(failure) if args.key_from_stdin => return Err(failure),
        Err(failure) => {
            // Enter alone is no mistake.
            if !failure.message.ends_with(&SecretProblem::Empty.to_string()) {
                out.print_failure(&failure);
            }
            out.print_note("Without a key the model is skipped.");
            return Ok(None);
        }
    };
    let store = match args.store_key {
        Some(store) => store,
        None if args.key_from_stdin => KeyStore::File,
        None => ask_store(context).await?,
    };
    let (place, source) = match store {
        KeyStore::File => {
            let path = default_key_file(&settings.paths.config, provider.name);
            (KeyPlace::File(path.clone()), SecretSource::File(path))
        }
        KeyStore::Keyring => {
            let (service, account) = (KEYRING_SERVICE.to_owned(), provider.name.to_owned());
            let entry = format!("{service}/{account}");
            (KeyPlace::Keyring(entry), SecretSource::Keyring { service, account })
        }
    };
    Ok(Some(ChosenKey { value: Some(value), place, unstored_at: Some(source) }))
}

async fn ask_store(context: &SetupContext<'_>) -> Result<KeyStore, CommandFailure> {
    let question = "Store it in a file for you alone (Enter), or in the kernel's keyring, which \
                    forgets at a restart (k)? ";
    let answer = prompts::ask_line(question, context.out).await?;
    Ok(match answer.words().is_some_and(|answer| answer.eq_ignore_ascii_case("k")) {
        true => KeyStore::Keyring,
        false => KeyStore::File,
    })
}

impl ChosenKey {
    /// What storing the key would replace.
    pub(super) fn replaced(&self, env: &Env) -> Option<String> {
        let place = self.unstored_at.as_ref()?;
        let is_taken = match place {
            SecretSource::File(path) => path.exists(),
            SecretSource::Env(_) | SecretSource::Keyring { .. } => {
                Vault::new(env.clone()).get("key", place).is_ok()
            }
        };
        is_taken.then(|| format!("the key in {}", source::phrase(place)))
    }

    /// Stores the key, if it has to be stored.
    pub(super) fn store(
        &self,
        context: &SetupContext<'_>,
        settings: &HostSettings,
        provider: ProviderDefinition,
    ) -> Result<(), CommandFailure> {
        let (Some(place), Some(value)) = (&self.unstored_at, &self.value) else { return Ok(()) };
        Vault::new(settings.env.clone()).set(provider.name, place, value).map_err(|error| {
            let failure = CommandFailure::new(ExitStatus::Failed, error.to_string());
            failure.with_hint("choose another place with --store-key, or set the variable instead")
        })?;
        context.out.print_line(&format!("The key is in {}.", source::phrase(place)));
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn check_replaced(place: SecretSource) {
        let (env, value) = (Env::from_pairs([]), Secret::new("sk-1"));
        let unstored_at = Some(place.clone());
        let key = ChosenKey { value: Some(value.clone()), place: KeyPlace::Provider, unstored_at };
        assert_eq!(key.replaced(&env), None, "{place:?}");
        let vault = Vault::new(env.clone());
        match vault.set("key", &place, &value) {
            // A container may lack a keyring.
            Err(error) => assert!(error.to_string().contains("keyring cannot be used"), "{error}"),
            Ok(()) => {
                let replaced = key.replaced(&env);
                vault.remove("key", &place).unwrap();
                let location = source::location_text(&place);
                assert!(replaced.is_some_and(|text| text.ends_with(&location)), "{place:?}");
            }
        }
    }

    #[test]
    fn a_stored_key_is_named_before_it_is_replaced_wherever_it_is() {
        let folder = tempfile::tempdir().unwrap();
        check_replaced(SecretSource::File(folder.path().join("key")));
        // The entry's name is unique to this process.
        let service = format!("test-setup-{}", std::process::id());
        check_replaced(SecretSource::Keyring { service, account: "me".to_owned() });
    }
}
