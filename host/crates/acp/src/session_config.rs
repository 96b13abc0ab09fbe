//! What the client may choose in a session: the mode, and the model.

use sallyport_runtime::config::{ChosenModel, HostSettings, ModelChoice, provider::OFFLINE};
use serde_json::{Value, json};

use crate::rpc::RpcError;

/// The id of the choice of a model.
pub(crate) const MODEL_OPTION: &str = "model";

/// What happens to a question.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum QuestionMode {
    /// The client's user answers it.
    Ask,
    /// It is answered with no. What the policy allows still runs.
    DenyAll,
}

impl QuestionMode {
    const ALL: [Self; 2] = [Self::Ask, Self::DenyAll];

    fn id(self) -> &'static str {
        match self {
            Self::Ask => "ask",
            Self::DenyAll => "deny-all",
        }
    }

    /// The mode with this id.
    pub(crate) fn from_id(id: &str) -> Result<Self, RpcError> {
        let found = Self::ALL.into_iter().find(|mode| mode.id() == id);
        found.ok_or_else(|| RpcError::invalid_params("the modes are ask and deny-all"))
    }

    fn describe(self) -> Value {
        let (name, description) = match self {
            Self::Ask => ("Ask", "Asks you where the policy says so"),
            Self::DenyAll => {
                ("Deny what needs a question", "Runs only what the policy allows without asking")
            }
        };
        json!({ "id": self.id(), "name": name, "description": description })
    }
}

/// The modes, and the current one.
pub(crate) fn mode_state(mode: QuestionMode) -> Value {
    let all: Vec<Value> = QuestionMode::ALL.into_iter().map(QuestionMode::describe).collect();
    json!({ "currentModeId": mode.id(), "availableModes": all })
}

/// The choices besides the mode: the models of the configuration.
pub(crate) fn config_options(settings: &HostSettings, current: &str) -> Value {
    let mut names: Vec<&str> = settings.models.entries.keys().map(String::as_str).collect();
    for name in [settings.chosen_model.name.as_str(), current, OFFLINE] {
        if !names.contains(&name) {
            names.push(name);
        }
    }
    let options: Vec<Value> =
        names.into_iter().map(|name| json!({ "value": name, "name": name })).collect();
    json!([{
        "id": MODEL_OPTION,
        "name": "Model",
        "description": "The model that answers from the next turn on",
        "category": "model",
        "type": "select",
        "currentValue": current,
        "options": options,
    }])
}

/// Whether the user has not said yet which model answers.
pub(crate) fn has_no_model(chosen: &ChosenModel) -> bool {
    chosen.choice == ModelChoice::Offline { is_explicit: false }
}
