//! Unknown names of models, and suggestions for them.
//!
//! A conversation is never sent to a model that was not named. The beginning of a name may show
//! whose model it is. The error then suggests that model, and the user decides.

use sallyport_policy::source::nearest_match;

use super::{ConfigError, ModelSources, OFFLINE};
use crate::config::provider;

impl ModelSources {
    pub(super) fn unknown_model_error(&self, name: &str) -> ConfigError {
        if name.trim().is_empty() {
            return ConfigError::Model {
                message: "the model that is asked for has no name".to_owned(),
                hint: "write PROVIDER/NAME".to_owned(),
            };
        }
        ConfigError::Model {
            message: format!("{name:?} is not the name of a model"),
            hint: self.suggest_model(name),
        }
    }

    pub(super) fn unknown_table_error(&self, name: &str) -> ConfigError {
        let known: Vec<&str> = self.entries.keys().map(String::as_str).collect();
        let known = format!("known models: {OFFLINE} {}", known.join(" ")).trim_end().to_owned();
        ConfigError::Model {
            message: format!("default_model is {name:?}, but there is no [model.{name}]"),
            hint: match nearest_match(name, self.table_names()) {
                Some(suggestion) => format!("did you mean {suggestion:?}? {known}"),
                None => known,
            },
        }
    }

    fn table_names(&self) -> impl Iterator<Item = &str> {
        self.entries.keys().map(String::as_str).chain([OFFLINE])
    }

    /// Suggests a similar table or provider, a provider of a known model family, or a model of a
    /// provider for which a variable is set.
    fn suggest_model(&self, name: &str) -> String {
        if let Some(suggestion) = nearest_match(name, self.table_names()) {
            return format!("did you mean {suggestion:?}?");
        }
        let (first, rest) = name.split_once('/').unwrap_or((name, ""));
        let providers = provider::ALL.map(|provider| provider.name);
        if let Some(suggestion) = nearest_match(first, providers) {
            let rest = if rest.is_empty() { "NAME" } else { rest };
            return format!("did you mean {suggestion}/{rest}?");
        }
        let last = name.rsplit('/').next().unwrap_or(name);
        let matching_providers = provider::ALL.into_iter().filter(|one| one.can_serve_model(last));
        let matching_providers: Vec<String> =
            matching_providers.map(|provider| format!("{}/{last}", provider.name)).collect();
        if !matching_providers.is_empty() {
            return format!(
                "if you mean the provider's model, write {}",
                matching_providers.join(" or ")
            );
        }
        let configured_providers =
            provider::ALL.into_iter().filter(|one| !one.variables_set(&self.env).is_empty());
        let configured_providers: Vec<String> =
            configured_providers.map(|provider| format!("{}/{name}", provider.name)).collect();
        match configured_providers.is_empty() {
            true => format!("write PROVIDER/NAME; the providers are {}", providers.join(", ")),
            false => {
                format!("write PROVIDER/NAME, for example {}", configured_providers.join(" or "))
            }
        }
    }
}
