//! Checks step by step whether a provider plugin can be used.

use std::sync::Arc;

use sallyport_contract::LOCAL_USER;
use sallyport_model::{
    ChatMessage, ModelError, ModelRequest,
    catalog::{ModelCheckStatus, ModelCheckStep},
};
use sallyport_policy::PluginRole;
use sallyport_runtime::{
    config::{HostSettings, PluginModelConfig},
    registry::PluginSelection,
    roles::provider,
    session_id::new_session_id,
};

use crate::cli::{
    consent, exit::CommandFailure, observers::CallObservers, output::CliOutput, setup,
};

/// The question for the model. It costs a few tokens.
const QUESTION: &str = "Answer with the one word: yes";

/// Most characters of the answer that are shown.
const SHOWN_CHARS_MAX: usize = 60;

/// Follows the path of a conversation: finds the plugin and asks it a question.
///
/// The run passes the gate and is recorded like any other.
pub(super) async fn check_plugin_model(
    plugin: &PluginModelConfig,
    settings: &HostSettings,
    out: &CliOutput,
) -> Result<Vec<ModelCheckStep>, CommandFailure> {
    let consent = Arc::new(consent::TerminalConsent { out: *out });
    let only = PluginSelection::Only(plugin.plugin.clone());
    let host = setup::open_host(settings, consent, only, &CallObservers::default(), out).await?;
    let name = plugin.plugin.as_str();
    let steps = match host.roles().load_role_plugin(name, PluginRole::Provider) {
        Ok(role_plugin) => {
            let found =
                build_step("plugin", ModelCheckStatus::Ok, format!("{name} is a provider"), None);
            let session = new_session_id();
            let model =
                provider::plugin_chat_model(role_plugin, plugin.clone(), LOCAL_USER, &session);
            let messages = [ChatMessage::user(QUESTION)];
            let request = ModelRequest { messages: &messages, ..ModelRequest::default() };
            let answer = model.generate(request, &mut |_| {}).await;
            vec![
                found,
                answer.map_or_else(|error| failure_step(&error), |r| answer_step(&r.message.text)),
            ]
        }
        Err(error) => {
            let failure = CommandFailure::from(error);
            vec![build_step("plugin", ModelCheckStatus::Failed, failure.message, failure.hint)]
        }
    };
    setup::close_host(host, out).await.check_complete()?;
    Ok(steps)
}

fn answer_step(text: &str) -> ModelCheckStep {
    let text = sallyport_contract::text::escape_excerpt(text, SHOWN_CHARS_MAX);
    build_step("answer", ModelCheckStatus::Ok, format!("it says {text:?}"), None)
}

fn failure_step(error: &ModelError) -> ModelCheckStep {
    let (id, remedy) = match error {
        ModelError::Credentials { .. } => {
            ("credentials", "check the secret that the policy gives it")
        }
        ModelError::Unreachable { .. } => ("address", "check the network and its settings"),
        ModelError::Denied { .. } => (
            "policy",
            "run `sallyport run --emit-needed-grants` with it to print the policy that it needs",
        ),
        _ => {
            return build_step(
                "answer",
                ModelCheckStatus::Failed,
                error.to_string(),
                Some(error.hint().into()),
            );
        }
    };
    build_step(id, ModelCheckStatus::Failed, error.to_string(), Some(remedy.to_owned()))
}

fn build_step(
    id: &'static str,
    status: ModelCheckStatus,
    detail: String,
    remedy: Option<String>,
) -> ModelCheckStep {
    ModelCheckStep { id, status, detail, remedy }
}
