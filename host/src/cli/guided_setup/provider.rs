//! The choice of a provider: what is ready on this machine comes first.

use std::time::Duration;

use sallyport_model::{ModelEndpoint, catalog};
use sallyport_policy::is_this_machine;
use sallyport_runtime::config::{
    HostSettings, ProviderDefinition,
    provider::{self, OFFLINE},
};
use sallyport_terminal::listing::ListRow;

use super::{
    SetupContext,
    prompts::{self, TypedAnswer},
};
use crate::cli::{
    exit::{CommandFailure, ExitStatus},
    output::format_count,
};

/// Longest wait for a server on this machine. One that runs answers at once.
const LOCAL_TIME_MAX: Duration = Duration::from_secs(2);

/// The provider whose server is looked for on this machine.
const OLLAMA: &str = "ollama";

/// A provider that can be chosen.
struct ListedProvider {
    definition: ProviderDefinition,
    /// Whether it can be used as it is.
    is_ready: bool,
    note: String,
}

/// Returns the provider that the flag names or the user chooses; `None` if the user skips it.
pub(super) async fn choose_provider(
    context: &SetupContext<'_>,
    settings: &HostSettings,
) -> Result<Option<ProviderDefinition>, CommandFailure> {
    if let Some(name) = &context.args.provider {
        return find_provider(name).map(Some);
    }
    let listed = list_providers(settings).await;
    let out = context.out;
    out.print_heading("Which model should answer?");
    let rows = listed.iter().enumerate().map(|(index, provider)| {
        let number = (index + 1).to_string();
        ListRow::new([number.as_str(), provider.definition.name, &provider.note])
    });
    out.print_list(&rows.collect::<Vec<_>>());
    let first = listed.first().filter(|provider| provider.is_ready);
    let enter = first.map_or("Enter to skip".to_owned(), |provider| {
        format!("Enter for {}, s to skip", provider.definition.name)
    });
    let names: Vec<&str> = listed.iter().map(|provider| provider.definition.name).collect();
    loop {
        let answer = prompts::ask_line(&format!("Number or name, {enter}: "), out).await?;
        let answer = match answer {
            TypedAnswer::Words(words) => words,
            TypedAnswer::Blank => return Ok(first.map(|provider| provider.definition)),
            TypedAnswer::Skip => return Ok(None),
        };
        match prompts::find_named(&answer, &names) {
            Some(name) => return find_provider(name).map(Some),
            None => out.print_note("That is not in the list."),
        }
    }
}

fn find_provider(name: &str) -> Result<ProviderDefinition, CommandFailure> {
    let found = ProviderDefinition::from_name(name).filter(|provider| provider.name != OFFLINE);
    found.ok_or_else(|| {
        let names = provider::ALL.map(|provider| provider.name);
        let names = names.into_iter().filter(|name| *name != OFFLINE).collect::<Vec<_>>();
        CommandFailure::new(ExitStatus::Usage, format!("there is no provider {name:?}"))
            .with_hint(format!("the providers are {}", names.join(", ")))
    })
}

async fn list_providers(settings: &HostSettings) -> Vec<ListedProvider> {
    let mut listed = Vec::new();
    for definition in provider::ALL.into_iter().filter(|provider| provider.name != OFFLINE) {
        listed.push(describe_provider(definition, settings).await);
    }
    // A stable sort: those that are ready keep their order.
    listed.sort_by_key(|provider| !provider.is_ready);
    listed
}

async fn describe_provider(
    definition: ProviderDefinition,
    settings: &HostSettings,
) -> ListedProvider {
    if let Some((variable, _)) = definition.key_from_env(&settings.env) {
        let note = format!("{variable} is set");
        return ListedProvider { definition, is_ready: true, note };
    }
    if definition.name == OLLAMA
        && let Some(count) = count_local_models(settings).await
    {
        let note = format!("runs here, with {}", format_count(count, "model"));
        return ListedProvider { definition, is_ready: count > 0, note };
    }
    let note = match definition.key_variables.is_empty() {
        true => format!("a server at {}", definition.base_url),
        false => "needs a key".to_owned(),
    };
    ListedProvider { definition, is_ready: false, note }
}

/// Returns the number of models of the Ollama server. No server outside of this machine is asked
/// before the user has chosen one.
async fn count_local_models(settings: &HostSettings) -> Option<usize> {
    let endpoint = settings.models.server_endpoint(OLLAMA).ok()?;
    if !is_loopback(&endpoint.base_url) {
        return None;
    }
    let endpoint = ModelEndpoint { time_max: LOCAL_TIME_MAX, ..endpoint };
    catalog::list_models(&endpoint).await.ok().map(|models| models.len())
}

fn is_loopback(address: &str) -> bool {
    url::Url::parse(address).is_ok_and(|url| is_this_machine(&url))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_servers_on_this_machine_are_looked_for() {
        for (address, want) in [
            ("http://localhost:11434", true),
            ("http://127.0.0.1:1", true),
            ("http://[::1]:11434", true),
            ("http://10.0.0.1:11434", false),
            ("https://ollama.example", false),
            ("localhost", false),
        ] {
            assert_eq!(is_loopback(address), want, "{address}");
        }
    }
}
