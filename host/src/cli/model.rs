//! `sallyport model`: lists models, and checks that one can be used.

mod plugin_check;

use std::borrow::Cow;

use clap::Subcommand;
use sallyport_contract::text;
use sallyport_model::{
    ModelEndpoint,
    catalog::{self, CatalogModel, ModelCatalogError, ModelCheckStatus, ModelCheckStep},
};
use sallyport_runtime::{
    config::{ChosenModel, ConfigFlags, HostSettings, ModelChoice},
    session::{ModelHandle, check_key},
};
use serde::Serialize;
use serde_json::json;

use super::{
    args::{Format, OutputArgs},
    compose,
    exit::{Exit, Failure},
    output::Output,
};

/// Commands for models.
#[derive(Debug, Subcommand)]
pub(super) enum ModelCommand {
    /// List the models of the configuration, and which one is used
    List {
        /// Ask the server which models it has
        #[arg(long)]
        remote: bool,
        /// Ask the server of this provider, instead of the current model's
        #[arg(long, requires = "remote", value_name = "PROVIDER")]
        provider: Option<String>,
        #[command(flatten)]
        output: OutputArgs,
    },
    /// Try a model step by step (costs a few tokens)
    Check {
        /// The model, as --model would name it
        name: Option<String>,
        #[command(flatten)]
        output: OutputArgs,
    },
}

pub(super) async fn model(
    flags: &ConfigFlags,
    command: &ModelCommand,
    out: &Output,
) -> Result<Exit, Failure> {
    let settings = compose::settings(flags)?;
    match command {
        ModelCommand::List { remote: false, output, .. } => list(&settings, output.output, out),
        ModelCommand::List { provider, output, .. } => {
            remote(&settings, provider.as_deref(), output.output, out).await?;
        }
        ModelCommand::Check { name, output } => {
            return check(&settings, name.as_deref(), output.output, out).await;
        }
    }
    Ok(Exit::Done)
}

/// A model in the list.
#[derive(Debug, Serialize)]
struct Shown<'a> {
    name: &'a str,
    provider: Cow<'static, str>,
    model: Option<&'a str>,
    used: bool,
}

/// Returns the models of the configuration. The current model is added if it has no table there.
fn shown(settings: &HostSettings) -> Vec<Shown<'_>> {
    let used = &settings.chosen;
    let entries = settings.models.entries.iter();
    let mut models: Vec<Shown<'_>> = entries
        .map(|(name, entry)| {
            let model = entry.model.as_deref();
            Shown { name, provider: entry.provider.name(), model, used: *name == used.name }
        })
        .collect();
    if models.iter().all(|model| !model.used) {
        let model = match &used.choice {
            ModelChoice::Endpoint(endpoint) => Some(endpoint.model.as_str()),
            ModelChoice::Plugin(plugin) => plugin.model.as_deref(),
            ModelChoice::Offline { .. } => None,
        };
        let provider = used.provider.name();
        models.push(Shown { name: &used.name, provider, model, used: true });
    }
    models
}

fn list(settings: &HostSettings, format: Format, out: &Output) {
    let (models, why) = (shown(settings), &settings.chosen.why);
    if format == Format::Json {
        return out.json(&json!({ "models": models, "why": why }));
    }
    let width = models.iter().map(|model| model.name.chars().count()).max().unwrap_or(0);
    for Shown { name, provider, model, used } in models {
        let why = used.then(|| format!("(used: {why})"));
        let parts = [Some(&*provider), model, why.as_deref()];
        out.pair(name, width, &parts.into_iter().flatten().collect::<Vec<_>>().join(" "));
    }
    if settings.model == (ModelChoice::Offline { on_purpose: false }) {
        out.hint(&settings.models.setup_advice());
    }
}

async fn remote(
    settings: &HostSettings,
    provider: Option<&str>,
    format: Format,
    out: &Output,
) -> Result<(), Failure> {
    let endpoint = match provider {
        Some(provider) => settings.models.server_endpoint(provider)?,
        None => endpoint(&settings.model, settings)?,
    };
    let asked = provider.unwrap_or(&settings.chosen.name);
    check_key(asked, endpoint.key.as_ref(), &endpoint.base_url)?;
    let listed = catalog::list_models(&endpoint).await.map_err(|error| lost(&error))?;
    match format {
        Format::Json => out.json(&json!({ "models": listed })),
        Format::Text => {
            let width = listed.iter().map(|model| model.name.chars().count()).max().unwrap_or(0);
            listed.iter().for_each(|model| out.pair(&model.name, width, &described(model)));
        }
    }
    Ok(())
}

fn described(model: &CatalogModel) -> String {
    let tokens = |what: &str, tokens: Option<u64>| tokens.map(|tokens| format!("{what} {tokens}"));
    let parts = [
        model.title.clone(),
        tokens("context", model.context_tokens),
        tokens("answer", model.output_tokens),
    ];
    parts.into_iter().flatten().collect::<Vec<_>>().join(", ")
}

fn endpoint(choice: &ModelChoice, settings: &HostSettings) -> Result<ModelEndpoint, Failure> {
    match choice {
        ModelChoice::Endpoint(endpoint) => Ok(ModelEndpoint::clone(endpoint)),
        ModelChoice::Plugin(plugin) => {
            let message = format!("the plugin {} answers itself and has no server", plugin.plugin);
            let failure = Failure::new(Exit::Policy, message);
            Err(failure.with_hint("name a provider with --provider"))
        }
        ModelChoice::Offline { on_purpose: true } => {
            let failure = Failure::new(Exit::Policy, "the offline matcher has no server");
            Err(failure.with_hint("name a provider with --provider"))
        }
        ModelChoice::Offline { on_purpose: false } => {
            let failure = Failure::new(Exit::Policy, "no model is configured");
            Err(failure.with_hint(settings.models.setup_advice()))
        }
    }
}

fn lost(error: &ModelCatalogError) -> Failure {
    let exit = match error {
        ModelCatalogError::Settings(_) => Exit::Policy,
        ModelCatalogError::Model(error) => Exit::of_model(error),
    };
    Failure::new(exit, error.to_string()).with_hint(error.hint())
}

async fn check(
    settings: &HostSettings,
    name: Option<&str>,
    format: Format,
    out: &Output,
) -> Result<Exit, Failure> {
    let chosen = match name {
        Some(name) => settings.models.resolve_model_name(name)?,
        None => settings.chosen.clone(),
    };
    let steps = match &chosen.choice {
        ModelChoice::Plugin(plugin) => plugin_check::steps(plugin, settings, out).await?,
        _ => steps(&chosen, settings).await?,
    };
    match format {
        Format::Json => out.json(&json!({ "model": chosen.name, "steps": steps })),
        Format::Text => {
            let key = chosen.sources.key.map(|origin| format!("; the key is from {origin}"));
            let address = match &chosen.choice {
                ModelChoice::Endpoint(_) => format!("; the address is {}", chosen.sources.address),
                ModelChoice::Offline { .. } | ModelChoice::Plugin(_) => String::new(),
            };
            out.note(&format!("{}{address}{}", chosen.name, key.unwrap_or_default()));
            steps.iter().for_each(|step| print(step, out));
        }
    }
    Ok(match ModelHandle::from_choice(&chosen).map_err(Failure::from) {
        Ok(_) => exit(&steps),
        Err(failure) => failure.exit,
    })
}

async fn steps(
    chosen: &ChosenModel,
    settings: &HostSettings,
) -> Result<Vec<ModelCheckStep>, Failure> {
    if chosen.choice == (ModelChoice::Offline { on_purpose: true }) {
        return Ok(vec![built_in()]);
    }
    let endpoint = endpoint(&chosen.choice, settings)?;
    let voice = ModelHandle::from_choice(chosen).map_err(Failure::from);
    if let Err(Failure { exit: Exit::Credentials, message, hint, .. }) = voice {
        return Ok(vec![ModelCheckStep {
            id: "credentials",
            status: ModelCheckStatus::Failed,
            detail: message,
            remedy: hint,
        }]);
    }
    let steps = catalog::check_endpoint(&endpoint).await;
    Ok(match voice {
        Ok(_) => steps.into_iter().map(|step| advised(step, chosen)).collect(),
        // The steps report already what is wrong with the settings.
        Err(_) => steps,
    })
}

/// The result for the built-in matcher, which is always available.
fn built_in() -> ModelCheckStep {
    let detail = "the built-in matcher needs no server and no key".to_owned();
    ModelCheckStep { id: "answer", status: ModelCheckStatus::Ok, detail, remedy: None }
}

/// Adds remedies that name the origin of the key and the address. The steps do not know it.
fn advised(step: ModelCheckStep, chosen: &ChosenModel) -> ModelCheckStep {
    let remedy = match (step.status, step.id) {
        (ModelCheckStatus::Failed, "credentials") => Some(chosen.key_advice()),
        (ModelCheckStatus::Failed, "address") => Some(chosen.address_advice()),
        _ => step.remedy,
    };
    ModelCheckStep { remedy, ..step }
}

/// The exit code follows from the first step that failed.
fn exit(steps: &[ModelCheckStep]) -> Exit {
    let failed = steps.iter().find(|step| step.status == ModelCheckStatus::Failed);
    match failed.map(|step| step.id) {
        None => Exit::Done,
        Some("credentials") => Exit::Credentials,
        Some("address") => Exit::Unreachable,
        Some("plugin" | "policy") => Exit::Policy,
        Some(_) => Exit::Failed,
    }
}

fn print(step: &ModelCheckStep, out: &Output) {
    let status = match step.status {
        ModelCheckStatus::Ok => "ok",
        ModelCheckStatus::Failed => "failed",
        ModelCheckStatus::Skipped => "skipped",
    };
    out.pair(step.id, 11, &format!("{status:8} {}", text::escape_line(&step.detail)));
    if let Some(remedy) = &step.remedy {
        out.pair("", 11, &format!("{:8} → {}", "", text::escape_line(remedy)));
    }
}
