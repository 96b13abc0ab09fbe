//! The names that arguments take: what is installed, configured and stored.

use std::path::PathBuf;

use clap_complete::CompletionCandidate;
use sallyport_contract::LOCAL_USER;
use sallyport_runtime::{
    config::{
        ConfigFlags, Env, HostSettings,
        provider::{self, OFFLINE},
    },
    host, notice,
    registry::{InstalledPlugin, find_installed_plugins},
};
use sallyport_store::SessionFilter;

use crate::cli::{help, name_kind::NameKind, setup};

/// Most sessions that are offered, the newest ones. More are searched, not picked from a list.
const SESSIONS_MAX: usize = 100;

impl NameKind {
    /// Returns the known names. `words` is the line, whose flags may choose other files.
    pub(super) fn candidates(self, words: &[String]) -> Vec<CompletionCandidate> {
        if self == Self::HelpTopic {
            return help::topic_names().into_iter().map(CompletionCandidate::new).collect();
        }
        let Ok(settings) = HostSettings::resolve(&named_files(words), Env::from_process()) else {
            return Vec::new();
        };
        let names = self.known_names(&settings).into_iter();
        names.map(|(name, note)| CompletionCandidate::new(name).help(Some(note.into()))).collect()
    }

    /// The names, each with an explanation that may be empty.
    fn known_names(self, settings: &HostSettings) -> Vec<(String, String)> {
        let without_note = |name: String| (name, String::new());
        match self {
            Self::Plugin => plugin_names(&find_installed_plugins(settings)),
            Self::Tool => tool_names(&find_installed_plugins(settings)),
            Self::PluginOrTool => {
                let plugins = find_installed_plugins(settings);
                [plugin_names(&plugins), tool_names(&plugins)].concat()
            }
            Self::Model => {
                let configured = settings.models.entries.keys().cloned();
                configured.chain([OFFLINE.to_owned()]).map(without_note).collect()
            }
            Self::Provider => {
                provider::ALL.iter().map(|known| without_note(known.name.to_owned())).collect()
            }
            Self::Session => session_names(settings),
            Self::Secret => {
                let sources = host::secret_sources(settings, &notice::no_notices());
                sources.unwrap_or_default().into_keys().map(without_note).collect()
            }
            Self::HelpTopic => Vec::new(),
        }
    }
}

/// The flags of the line that choose files, even if the line is not complete yet.
fn named_files(words: &[String]) -> ConfigFlags {
    let values = |flag: &str| -> Vec<PathBuf> {
        let after = words.windows(2).filter(|pair| pair[0] == flag).map(|pair| pair[1].as_str());
        let joined = words.iter().filter_map(|word| word.strip_prefix(flag)?.strip_prefix('='));
        after.chain(joined).map(PathBuf::from).collect()
    };
    ConfigFlags {
        plugin_dirs: values("--plugin-dir"),
        config: values("--config").pop(),
        policy: values("--policy").pop(),
        ..ConfigFlags::default()
    }
}

fn plugin_names(plugins: &[InstalledPlugin]) -> Vec<(String, String)> {
    plugins.iter().map(|plugin| (plugin.name.to_string(), plugin.description.clone())).collect()
}

fn tool_names(plugins: &[InstalledPlugin]) -> Vec<(String, String)> {
    let tools = plugins.iter().flat_map(|plugin| &plugin.tools);
    tools.map(|tool| (tool.id.to_string(), tool.description.clone())).collect()
}

/// The sessions, last used first, with their titles.
fn session_names(settings: &HostSettings) -> Vec<(String, String)> {
    // Opening a store creates it.
    if !settings.paths.state.is_dir() {
        return Vec::new();
    }
    // A server that does not answer would keep the shell waiting.
    if settings.store.is_some() {
        return Vec::new();
    }
    let listed = setup::run_on_current_thread(async {
        let store = setup::open_store(settings)?;
        let filter =
            SessionFilter { limit: Some(SESSIONS_MAX), ..SessionFilter::of_user(LOCAL_USER) };
        Ok(store.sessions.list(filter).await?)
    });
    let mut sessions = listed.unwrap_or_default();
    sessions.retain(|session| session.records > 0);
    sessions.into_iter().map(|session| (session.id, session.title)).collect()
}
