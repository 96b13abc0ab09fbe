//! The model: chosen, tried once, and written to `sallyport.toml`.

use sallyport_model::{
    ModelEndpoint, ModelError,
    catalog::{self, CatalogModel, ModelCatalogError, ModelCheckStatus},
};
use sallyport_runtime::config::{
    self, HostSettings, ProviderDefinition,
    edit::{self, ConfigEditError, ConfigWriter, ModelTable},
};
use sallyport_terminal::listing::ListRow;

use super::{
    SetupContext, is_interactive,
    key::{self, ChosenKey},
    prompts::{self, TypedAnswer},
    provider,
};
use crate::cli::{
    exit::{CommandFailure, ExitStatus},
    model as model_command,
    policy::change::print_diff,
};

/// Most models that are listed without being asked for.
const MODELS_SHOWN_MAX: usize = 12;

/// Sets up a model, unless the user skips it.
pub(super) async fn set_up_model(context: &SetupContext<'_>) -> Result<(), CommandFailure> {
    let settings = context.read_settings()?;
    let Some(provider) = provider::choose_provider(context, &settings).await? else {
        return Ok(());
    };
    let Some((endpoint, key)) = choose_model(context, &settings, provider).await? else {
        return Ok(());
    };
    if !context.args.no_check && !try_model(context, provider, &endpoint).await? {
        return Ok(());
    }
    let table = ModelTable {
        name: provider.name.to_owned(),
        provider: provider.name.to_owned(),
        model: endpoint.model,
        base_url: context.args.base_url.clone(),
        key: key.place.clone(),
    };
    write_model(context, &settings, provider, &key, &table).await
}

/// Returns the model with its key; `None` if the user skips it. A key that the provider refuses is
/// asked for again.
async fn choose_model(
    context: &SetupContext<'_>,
    settings: &HostSettings,
    provider: ProviderDefinition,
) -> Result<Option<(ModelEndpoint, ChosenKey)>, CommandFailure> {
    loop {
        let Some(key) = key::choose_key(context, settings, provider).await? else {
            return Ok(None);
        };
        let server = settings.models.server_endpoint(provider.name)?;
        let base_url = context.args.base_url.clone().unwrap_or(server.base_url.clone());
        let endpoint = ModelEndpoint { key: key.value.clone(), base_url, ..server };
        if let Some(model) = context.args.model.clone() {
            return Ok(Some((ModelEndpoint { model, ..endpoint }, key)));
        }
        if !is_interactive(context.out) {
            let failure = CommandFailure::new(ExitStatus::Usage, "no model is named");
            return Err(failure.with_hint(format!(
                "pass --model NAME; `sallyport model list --remote --provider {}` lists them",
                provider.name
            )));
        }
        let listed = match catalog::list_models(&endpoint).await {
            Ok(listed) => listed,
            Err(error) => {
                context.out.print_failure(&model_command::catalog_failure(&error));
                let is_refused =
                    matches!(error, ModelCatalogError::Model(ModelError::Credentials { .. }));
                if is_refused && key.unstored_at.is_some() {
                    continue;
                }
                Vec::new()
            }
        };
        let model = ask_model(context, provider, &listed).await?;
        return Ok(model.map(|model| (ModelEndpoint { model, ..endpoint }, key)));
    }
}

async fn ask_model(
    context: &SetupContext<'_>,
    provider: ProviderDefinition,
    listed: &[CatalogModel],
) -> Result<Option<String>, CommandFailure> {
    let all: Vec<&str> = listed.iter().map(|model| model.name.as_str()).collect();
    let only = if let [only] = all.as_slice() { Some(*only) } else { None };
    let mut shown = likely_models(provider, &all);
    loop {
        let rows = shown.iter().zip(1..);
        let rows =
            rows.map(|(name, number): (_, usize)| ListRow::new([&number.to_string(), *name]));
        context.out.print_list(&rows.collect::<Vec<_>>());
        let rest = match all.len() - shown.len() {
            0 => String::new(),
            count => format!(", ? for {count} more"),
        };
        let number = if shown.is_empty() { "Name of the model" } else { "Number or name" };
        let enter =
            only.map_or("Enter to skip".to_owned(), |only| format!("Enter for {only}, s to skip"));
        let prompt = format!("{number}{rest}, {enter}: ");
        let answer = prompts::ask_line(&prompt, context.out).await?;
        match answer {
            TypedAnswer::Blank => return Ok(only.map(str::to_owned)),
            TypedAnswer::Skip => return Ok(None),
            TypedAnswer::Words(words) if words == "?" => shown.clone_from(&all),
            TypedAnswer::Words(words) => {
                let listed = prompts::find_named(&words, &shown).map(str::to_owned);
                return Ok(Some(listed.unwrap_or(words)));
            }
        }
    }
}

/// The models to show first: those of the provider's own families, if the list is long.
fn likely_models<'n>(provider: ProviderDefinition, all: &[&'n str]) -> Vec<&'n str> {
    if all.len() <= MODELS_SHOWN_MAX {
        return all.to_vec();
    }
    let own = all.iter().copied().filter(|name| provider.can_serve_model(name));
    let own: Vec<&str> = own.take(MODELS_SHOWN_MAX).collect();
    if own.is_empty() { all[..MODELS_SHOWN_MAX].to_vec() } else { own }
}

/// Tries the model. Returns whether it is to be used.
async fn try_model(
    context: &SetupContext<'_>,
    provider: ProviderDefinition,
    endpoint: &ModelEndpoint,
) -> Result<bool, CommandFailure> {
    let out = context.out;
    out.print_note(&format!("Trying {}/{} …", provider.name, endpoint.model));
    let steps = catalog::check_endpoint(endpoint).await;
    let failed = steps.iter().filter(|step| step.status == ModelCheckStatus::Failed);
    let failed: Vec<_> = failed.collect();
    if failed.is_empty() {
        out.print_line(&format!("{}/{} answers and calls tools.", provider.name, endpoint.model));
        return Ok(true);
    }
    out.print_list(&failed.into_iter().map(model_command::step_row).collect::<Vec<_>>());
    if is_interactive(out) {
        return prompts::confirm("Use it all the same?", out).await;
    }
    let message = format!("{}/{} cannot be used", provider.name, endpoint.model);
    let failure = CommandFailure::new(model_command::exit_from_steps(&steps), message);
    Err(failure.with_hint("pass --no-check to write it nevertheless"))
}

async fn write_model(
    context: &SetupContext<'_>,
    settings: &HostSettings,
    provider: ProviderDefinition,
    key: &ChosenKey,
    table: &ModelTable,
) -> Result<(), CommandFailure> {
    let path = &settings.config_file;
    let before = config::read_config_file(path, false)?;
    let after = edit::set_default_model(path, &before, table, &settings.env)?;
    if after == before && key.unstored_at.is_none() {
        context.out.print_line(&format!("{} says so already.", path.display()));
        return Ok(());
    }
    print_diff(path, &before, &after, context.out);
    let settings_replaced = edit::replaced_settings(&before, table).into_iter();
    let replaced: Vec<String> =
        settings_replaced.map(|setting| setting.key).chain(key.replaced(&settings.env)).collect();
    if !context.confirm_change(&replaced).await? {
        return Ok(());
    }
    let unwritable = |error: std::io::Error| {
        let message = format!("cannot write {}: {error}", path.display());
        CommandFailure::new(ExitStatus::Failed, message)
            .with_hint("check the folder's permissions and free space")
    };
    // Nobody else may write between the comparison and the end.
    let writer = ConfigWriter::lock(path).map_err(unwritable)?;
    if config::read_config_file(path, false)? != before {
        let message = format!("{} changed in the meantime; nothing was written", path.display());
        return Err(CommandFailure::new(ExitStatus::Failed, message).with_hint("run it again"));
    }
    // The key comes first, because the file must not name a key that is not there.
    key.store(context, settings, provider)?;
    writer.write(&after).map_err(unwritable)?;
    context.out.print_line(&format!("Saved. {} is the model now.", table.name));
    Ok(())
}

impl From<ConfigEditError> for CommandFailure {
    fn from(error: ConfigEditError) -> Self {
        match error {
            ConfigEditError::Config(error) => error.into(),
            ConfigEditError::Text { .. } => {
                Self::new(ExitStatus::Policy, error.to_string()).with_hint("correct the file first")
            }
            ConfigEditError::McpServer(error) => {
                Self::new(ExitStatus::Usage, error.to_string()).with_hint(error.hint())
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_long_list_shows_the_models_of_the_provider_first() {
        let openai = ProviderDefinition::from_name("openai").unwrap();
        let few = ["b", "gpt-5"];
        assert_eq!(likely_models(openai, &few), few);
        let many: Vec<String> = (0..40).map(|number| format!("x{number}")).collect();
        let mut many: Vec<&str> = many.iter().map(String::as_str).collect();
        assert_eq!(likely_models(openai, &many).len(), MODELS_SHOWN_MAX);
        many.push("gpt-5");
        assert_eq!(likely_models(openai, &many), ["gpt-5"]);
    }
}
