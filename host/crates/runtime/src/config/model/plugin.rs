//! A plugin that acts as a model, as the configuration describes it.

use std::time::Duration;

use sallyport_contract::PluginName;
use sallyport_model::{TokenPrice, ToolCallingMode, prices};

use super::{ChosenModel, ModelChoice, ModelEntry, ModelSources, SettingOrigin};
use crate::config::setting_rows::ModelOrigins;

/// Default timeout of one answer, over all attempts. The plugin's own limit, `limits.time` of its
/// policy, is usually reached first.
const TIME_MAX: Duration = Duration::from_secs(600);

/// A plugin that acts as a model.
#[derive(Debug, Clone, PartialEq)]
pub struct PluginModelConfig {
    /// The plugin.
    pub plugin: PluginName,
    /// The model that it is to use, if it knows several.
    pub model: Option<String>,
    /// Whether the answer is shown while it arrives.
    pub stream: bool,
    /// Sampling temperature.
    pub temperature: Option<f64>,
    /// Most tokens of one answer.
    pub output_tokens_max: Option<u32>,
    /// How tools are described to it.
    pub tool_calling: ToolCallingMode,
    /// Timeout of one answer.
    pub time_max: Duration,
    /// The price of its tokens.
    pub price: Option<TokenPrice>,
}

impl ModelSources {
    pub(super) fn model_from_plugin(
        &self,
        name: &str,
        entry: &ModelEntry,
        plugin: &PluginName,
    ) -> ChosenModel {
        let time = self.answer_time_max(entry);
        let model = entry.model.clone().filter(|model| !model.is_empty());
        let price =
            model.as_deref().and_then(|model| prices::configured_price(model, &self.prices));
        let choice = PluginModelConfig {
            plugin: plugin.clone(),
            model,
            stream: self.stream && entry.stream,
            temperature: entry.temperature.map(|amount| amount.0),
            output_tokens_max: entry.max_output_tokens.map(|tokens| tokens.0),
            tool_calling: entry.tools,
            time_max: time.map_or(TIME_MAX, |(time, _)| time),
            price,
        };
        ChosenModel {
            name: name.to_owned(),
            choice: ModelChoice::Plugin(Box::new(choice)),
            provider: entry.provider.clone(),
            context_tokens: entry.context_tokens.map(|tokens| tokens.0),
            origins: ModelOrigins {
                time: time.map_or(SettingOrigin::Default, |(_, o)| o),
                ..ModelOrigins::NONE
            },
            key_problem: None,
            reason: String::new(),
        }
    }
}
