//! The composition root: builds the parts and puts them together.

use std::{future::Future, sync::Arc};

use sallyport_contract::{Consent, PluginName, Toolbox};
use sallyport_model::{ChatModel, Offline, OpenAi, OpenAiSettings};
use sallyport_sandbox::{Sandbox, SandboxOptions, SystemResolver};

use tokio::signal::unix::{SignalKind, signal};

use super::{
    exit::{Exit, Failure},
    output::Output,
    trace::Traced,
};
use crate::{
    config::{Env, Flags, ModelChoice, Settings},
    registry::{Registry, Selection},
    session::NobodyToAsk,
};

/// Longest wait for one whole answer of a model; slow local models think for minutes.
const ANSWER_TIME_MAX: std::time::Duration = std::time::Duration::from_secs(600);

/// Runs a command that makes at most one call: no thread is started for it.
pub(super) fn on_this_thread(
    work: impl Future<Output = Result<Exit, Failure>>,
) -> Result<Exit, Failure> {
    finish(tokio::runtime::Builder::new_current_thread().enable_all().build()?, work)
}

/// Runs a command that does several things at once.
pub(super) fn on_threads(
    work: impl Future<Output = Result<Exit, Failure>>,
) -> Result<Exit, Failure> {
    finish(tokio::runtime::Builder::new_multi_thread().enable_all().build()?, work)
}

fn finish(
    runtime: tokio::runtime::Runtime,
    work: impl Future<Output = Result<Exit, Failure>>,
) -> Result<Exit, Failure> {
    let result = runtime.block_on(work);
    // A guest's file operation may still hang on a pipe; the process does not wait for it.
    runtime.shutdown_background();
    result
}

/// Waits until the user or the system asks the program to stop: Ctrl-C, or a polite kill. Both end
/// a running guest first, so that nothing of it is left behind.
pub(super) async fn interrupted() {
    tokio::select! {
        _ = tokio::signal::ctrl_c() => {}
        () = terminated() => {}
    }
}

/// Waits until the system asks the program to stop.
pub(super) async fn terminated() {
    match (signal(SignalKind::terminate()), signal(SignalKind::hangup())) {
        (Ok(mut terminate), Ok(mut hangup)) => {
            tokio::select! {
                _ = terminate.recv() => {}
                _ = hangup.recv() => {}
            }
        }
        // Without a handler the system's own default applies.
        _ => std::future::pending().await,
    }
}

/// Reads the configuration.
pub(super) fn settings(flags: &Flags) -> Result<Settings, Failure> {
    Ok(Settings::resolve(flags, Env::of_process())?)
}

/// Makes the sandbox that the settings ask for.
pub(super) fn sandbox(settings: &Settings, out: &Output) -> Arc<Sandbox> {
    let (sandbox, warning) = Sandbox::new(SandboxOptions {
        cache_dir: Some(settings.paths.cache.join("compiled")),
        resolver: Arc::new(SystemResolver),
    });
    if let Some(warning) = warning {
        out.warn(&warning);
    }
    sandbox
}

/// Loads all plugins, and says on standard error what could not be loaded.
pub(super) async fn registry(
    settings: &Settings,
    consent: Arc<dyn Consent>,
    out: &Output,
) -> Arc<Registry> {
    let registry = load(settings, consent, Selection::All, out).await;
    for problem in registry.problems() {
        out.warn(&format!("{}: {}", problem.place.display(), problem.message));
        if let Some(hint) = &problem.hint {
            out.hint(hint);
        }
    }
    registry
}

/// Loads all plugins, for a command that shows the unusable ones itself.
pub(super) async fn quiet_registry(settings: &Settings, out: &Output) -> Arc<Registry> {
    load(settings, Arc::new(NobodyToAsk), Selection::All, out).await
}

/// Loads one plugin only; the others are looked at as far as names go.
pub(super) async fn one_plugin(
    settings: &Settings,
    consent: Arc<dyn Consent>,
    name: &PluginName,
    out: &Output,
) -> Arc<Registry> {
    load(settings, consent, Selection::Only(name.clone()), out).await
}

async fn load(
    settings: &Settings,
    consent: Arc<dyn Consent>,
    selection: Selection,
    out: &Output,
) -> Arc<Registry> {
    let sandbox = sandbox(settings, out);
    Arc::new(Registry::load(sandbox, settings, consent, selection).await)
}

/// The toolbox as a session sees it; with `-v`, each call is shown.
pub(super) fn toolbox(registry: Arc<Registry>, verbose: bool, out: &Output) -> Arc<dyn Toolbox> {
    if verbose { Arc::new(Traced::new(registry, *out)) } else { registry }
}

/// Makes the model, and says so when it is only the built-in matcher.
pub(super) fn model(settings: &Settings, out: &Output) -> Result<Arc<dyn ChatModel>, Failure> {
    match &settings.model {
        ModelChoice::Offline { on_purpose } => {
            if !on_purpose {
                out.note(
                    "No model is configured: the built-in offline matcher answers. It is no language \
                     model. To use one: --model NAME with OPENAI_API_KEY or OPENAI_BASE_URL set.",
                );
            }
            Ok(Arc::new(Offline))
        }
        ModelChoice::OpenAi { model, base_url, key, stream } => {
            let model = OpenAi::new(OpenAiSettings {
                base_url: base_url.clone(),
                model: model.clone(),
                key: key.clone(),
                stream: *stream,
                time_max: ANSWER_TIME_MAX,
                temperature: None,
            });
            let model = model.map_err(|error| {
                let hint = "an address looks like https://api.openai.com/v1";
                Failure::new(Exit::Policy, error.to_string()).with_hint(hint)
            })?;
            Ok(Arc::new(model))
        }
    }
}
