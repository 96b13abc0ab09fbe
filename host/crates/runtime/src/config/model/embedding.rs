//! Chooses the embedding model.

use sallyport_model::EmbeddingEndpoint;

use super::{ChosenModel, ConfigError, ModelChoice, ModelEntry, ModelSources, ProviderChoice};
use crate::config::file::EmbeddingEntry;

impl ModelSources {
    /// The embedding model: the one that `[embedding]` names, or the default one of the chosen
    /// model's provider. Returns `None` without either.
    ///
    /// # Errors
    ///
    /// `[embedding]` names no model, and its provider has no default one.
    pub(in crate::config) fn choose_embedder(
        &self,
        entry: Option<&EmbeddingEntry>,
        chosen: &ChosenModel,
    ) -> Result<Option<EmbeddingEndpoint>, ConfigError> {
        if let Some(entry) = entry {
            return self.embedder_from_entry(entry);
        }
        let (ModelChoice::Endpoint(endpoint), ProviderChoice::Provider(provider)) =
            (&chosen.choice, &chosen.provider)
        else {
            return Ok(None);
        };
        Ok(provider.embedder.map(|model| EmbeddingEndpoint::from_chat_endpoint(endpoint, model)))
    }

    fn embedder_from_entry(
        &self,
        entry: &EmbeddingEntry,
    ) -> Result<Option<EmbeddingEndpoint>, ConfigError> {
        let entry = &ModelEntry {
            model: entry.model.clone(),
            base_url: entry.base_url.clone(),
            key: entry.key.clone(),
            ..ModelEntry::from_provider(entry.provider.clone())
        };
        let ProviderChoice::Provider(provider) = &entry.provider else { return Ok(None) };
        let Some(protocol) = provider.protocol else { return Ok(None) };
        let model = entry.model.as_deref().filter(|model| !model.is_empty());
        let model = model.or(provider.embedder).ok_or_else(|| ConfigError::Model {
            message: "[embedding] has no `model`".to_owned(),
            hint: "add model = \"…\" to it".to_owned(),
        })?;
        let (address, _) = self.server_address(entry, provider);
        let key = self.server_key(entry, provider).map(|(key, _)| key);
        Ok(Some(EmbeddingEndpoint { key, ..EmbeddingEndpoint::new(protocol, address, model) }))
    }
}
