//! `sallyport model`: lists models, and checks that one can be used.

mod plugin_check;

use std::borrow::Cow;

use clap::Subcommand;
use sallyport_model::{
    ModelEndpoint,
    catalog::{self, CatalogModel, ModelCatalogError, ModelCheckStatus, ModelCheckStep},
};
use sallyport_runtime::{
    config::{ChosenModel, ConfigFlags, HostSettings, ModelChoice},
    session::{ModelHandle, check_key},
};
use sallyport_terminal::listing::ListRow;
use serde::Serialize;
use serde_json::json;

use super::{
    args::{OutputArgs, OutputFormat},
    doctor,
    exit::{CommandFailure, ExitStatus},
    name_kind::NameKind,
    output::CliOutput,
    setup,
};

// Commands for models.
#[derive(Debug, Subcommand)]
#[command(defer = true)]
pub(super) enum ModelCommand {
    /// List the models of the configuration, and which one is used
    #[command(visible_alias = "ls")]
    List {
        /// Ask the server which models it has
        #[arg(long)]
        remote: bool,
        /// Ask the server of this provider, instead of the current model's
        #[arg(long, requires = "remote", value_name = "PROVIDER", add = NameKind::Provider)]
        provider: Option<String>,
        #[command(flatten)]
        output: OutputArgs,
    },
    /// Try a model step by step (costs a few tokens)
    Check {
        /// The model, as --model would name it
        #[arg(add = NameKind::Model)]
        name: Option<String>,
        #[command(flatten)]
        output: OutputArgs,
    },
}

pub(super) async fn run_model_command(
    flags: &ConfigFlags,
    command: &ModelCommand,
    out: &CliOutput,
) -> Result<ExitStatus, CommandFailure> {
    let settings = setup::read_settings(flags)?;
    match command {
        ModelCommand::List { remote: false, output, .. } => {
            print_models(&settings, output.output, out)
        }
        ModelCommand::List { provider, output, .. } => {
            print_remote_models(&settings, provider.as_deref(), output.output, out).await?;
        }
        ModelCommand::Check { name, output } => {
            return check_model(&settings, name.as_deref(), output.output, out).await;
        }
    }
    Ok(ExitStatus::Done)
}

/// A model in the list.
#[derive(Debug, Serialize)]
struct ListedModel<'a> {
    name: &'a str,
    provider: Cow<'static, str>,
    model: Option<&'a str>,
    used: bool,
}

/// Returns the models of the configuration. The current model is added if it has no table there.
fn listed_models(settings: &HostSettings) -> Vec<ListedModel<'_>> {
    let used = &settings.chosen_model;
    let entries = settings.models.entries.iter();
    let mut models: Vec<ListedModel<'_>> = entries
        .map(|(name, entry)| {
            let model = entry.model.as_deref();
            ListedModel { name, provider: entry.provider.name(), model, used: *name == used.name }
        })
        .collect();
    if models.iter().all(|model| !model.used) {
        let model = match &used.choice {
            ModelChoice::Endpoint(endpoint) => Some(endpoint.model.as_str()),
            ModelChoice::Plugin(plugin) => plugin.model.as_deref(),
            ModelChoice::Offline { .. } => None,
        };
        let provider = used.provider.name();
        models.push(ListedModel { name: &used.name, provider, model, used: true });
    }
    models
}

fn print_models(settings: &HostSettings, format: OutputFormat, out: &CliOutput) {
    let (models, why) = (listed_models(settings), &settings.chosen_model.reason);
    if format == OutputFormat::Json {
        return out.print_json(&json!({ "models": models, "why": why }));
    }
    let row = |ListedModel { name, provider, model, used }: &ListedModel<'_>| {
        let why = used.then(|| format!("(used: {why})")).unwrap_or_default();
        let model = match model {
            Some(model) => format!("{provider} {model}"),
            // The offline matcher has the name of its provider.
            None if *name == provider.as_ref() => String::new(),
            None => provider.to_string(),
        };
        ListRow::new([*name, &model, &why])
    };
    out.print_list(&models.iter().map(row).collect::<Vec<_>>());
    if settings.model == (ModelChoice::Offline { is_explicit: false }) {
        out.print_hint(&settings.models.setup_advice());
    }
}

async fn print_remote_models(
    settings: &HostSettings,
    provider: Option<&str>,
    format: OutputFormat,
    out: &CliOutput,
) -> Result<(), CommandFailure> {
    let endpoint = match provider {
        Some(provider) => settings.models.server_endpoint(provider)?,
        None => {
            ModelHandle::from_choice(&settings.chosen_model)?;
            require_endpoint(&settings.model, settings)?
        }
    };
    let requested_name = provider.unwrap_or(&settings.chosen_model.name);
    check_key(requested_name, endpoint.key.as_ref(), &endpoint.base_url)?;
    let listed = catalog::list_models(&endpoint).await.map_err(|error| catalog_failure(&error))?;
    match format {
        OutputFormat::Json => out.print_json(&json!({ "models": listed })),
        OutputFormat::Text => {
            let row = |model: &CatalogModel| ListRow::new([&model.name, &describe_model(model)]);
            out.print_list(&listed.iter().map(row).collect::<Vec<_>>());
        }
    }
    Ok(())
}

fn describe_model(model: &CatalogModel) -> String {
    let tokens = |what: &str, tokens: Option<u64>| tokens.map(|tokens| format!("{what} {tokens}"));
    let parts = [
        model.title.clone(),
        tokens("context", model.context_tokens),
        tokens("answer", model.output_tokens),
    ];
    parts.into_iter().flatten().collect::<Vec<_>>().join(", ")
}

fn require_endpoint(
    choice: &ModelChoice,
    settings: &HostSettings,
) -> Result<ModelEndpoint, CommandFailure> {
    let name_provider = || "name a provider with --provider".to_owned();
    let (message, hint) = match choice {
        ModelChoice::Endpoint(endpoint) => return Ok(ModelEndpoint::clone(endpoint)),
        ModelChoice::Plugin(plugin) => (
            format!("the plugin {} answers itself and has no server", plugin.plugin),
            name_provider(),
        ),
        ModelChoice::Offline { is_explicit: true } => {
            ("the offline matcher has no server".to_owned(), name_provider())
        }
        ModelChoice::Offline { is_explicit: false } => {
            ("no model is configured".to_owned(), settings.models.setup_advice())
        }
    };
    Err(CommandFailure::new(ExitStatus::Policy, message).with_hint(hint))
}

pub(super) fn catalog_failure(error: &ModelCatalogError) -> CommandFailure {
    let exit = match error {
        ModelCatalogError::Settings(_) => ExitStatus::Policy,
        ModelCatalogError::Model(error) => ExitStatus::from_model_error(error),
    };
    CommandFailure::new(exit, error.to_string()).with_hint(error.hint())
}

async fn check_model(
    settings: &HostSettings,
    name: Option<&str>,
    format: OutputFormat,
    out: &CliOutput,
) -> Result<ExitStatus, CommandFailure> {
    let chosen = match name {
        Some(name) => settings.models.resolve_model_name(name)?,
        None => settings.chosen_model.clone(),
    };
    let steps = match &chosen.choice {
        ModelChoice::Plugin(plugin) => {
            plugin_check::check_plugin_model(plugin, settings, out).await?
        }
        _ => check_steps(&chosen, settings).await?,
    };
    match format {
        OutputFormat::Json => out.print_json(&json!({ "model": chosen.name, "steps": steps })),
        OutputFormat::Text => {
            let key = chosen.origins.key.map(|origin| format!("; the key is from {origin}"));
            let address = match &chosen.choice {
                ModelChoice::Endpoint(_) => format!("; the address is {}", chosen.origins.address),
                ModelChoice::Offline { .. } | ModelChoice::Plugin(_) => String::new(),
            };
            out.print_note(&format!("{}{address}{}", chosen.name, key.unwrap_or_default()));
            out.print_list(&steps.iter().map(step_row).collect::<Vec<_>>());
        }
    }
    Ok(match ModelHandle::from_choice(&chosen).map_err(CommandFailure::from) {
        Ok(_) => exit_from_steps(&steps),
        Err(failure) => failure.exit,
    })
}

async fn check_steps(
    chosen: &ChosenModel,
    settings: &HostSettings,
) -> Result<Vec<ModelCheckStep>, CommandFailure> {
    if chosen.choice == (ModelChoice::Offline { is_explicit: true }) {
        return Ok(vec![offline_step()]);
    }
    let endpoint = require_endpoint(&chosen.choice, settings)?;
    let model_handle = ModelHandle::from_choice(chosen).map_err(CommandFailure::from);
    if let Err(CommandFailure { exit: ExitStatus::Credentials, message, hint, .. }) = model_handle {
        return Ok(vec![ModelCheckStep {
            id: "credentials",
            status: ModelCheckStatus::Failed,
            detail: message,
            remedy: hint,
        }]);
    }
    let steps = catalog::check_endpoint(&endpoint).await;
    Ok(match model_handle {
        Ok(_) => steps.into_iter().map(|step| with_advice(step, chosen)).collect(),
        // The steps report already what is wrong with the settings.
        Err(_) => steps,
    })
}

/// The result for the built-in matcher, which is always available.
fn offline_step() -> ModelCheckStep {
    let detail = "the built-in matcher needs no server and no key".to_owned();
    ModelCheckStep { id: "answer", status: ModelCheckStatus::Ok, detail, remedy: None }
}

/// Adds remedies that name the origin of the key and the address. The steps do not know it.
fn with_advice(step: ModelCheckStep, chosen: &ChosenModel) -> ModelCheckStep {
    let remedy = match (step.status, step.id) {
        (ModelCheckStatus::Failed, "credentials") => Some(chosen.key_advice()),
        (ModelCheckStatus::Failed, "address") => Some(chosen.address_advice()),
        _ => step.remedy,
    };
    ModelCheckStep { remedy, ..step }
}

/// The exit code follows from the first step that failed.
pub(super) fn exit_from_steps(steps: &[ModelCheckStep]) -> ExitStatus {
    let failed = steps.iter().find(|step| step.status == ModelCheckStatus::Failed);
    match failed.map(|step| step.id) {
        None => ExitStatus::Done,
        Some("credentials") => ExitStatus::Credentials,
        Some("address") => ExitStatus::Unreachable,
        Some("plugin" | "policy") => ExitStatus::Policy,
        Some(_) => ExitStatus::Failed,
    }
}

pub(super) fn step_row(step: &ModelCheckStep) -> ListRow {
    let status = match step.status {
        ModelCheckStatus::Ok => "ok",
        ModelCheckStatus::Failed => "failed",
        ModelCheckStatus::Skipped => "skipped",
    };
    doctor::step_row(step.id, status, &step.detail, step.remedy.as_deref())
}
