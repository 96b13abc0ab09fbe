//! The MCP servers that a client brings along with its sessions.
//!
//! They become plugins of their names, as the servers of the configuration are: behind the walls,
//! with the grant that the policy gives to the name, and accepted before their tools are used. All
//! sessions of the client see them, and they end with the session that brought them.

use std::{
    collections::{BTreeMap, HashMap},
    fmt,
};

use sallyport_contract::{PluginName, text};
use sallyport_runtime::{
    config::{McpAddress, McpEndpoint, McpProgram, McpServerSettings},
    registry::Registry,
};
use serde::Deserialize;

/// Most servers of one session.
const SERVERS_MAX: usize = 32;

/// The longest name of a server that is shown, in characters.
const NAME_CHARS_MAX: usize = 60;

/// An MCP server that the client would have us use.
#[derive(Deserialize)]
pub(crate) struct ClientMcpServer {
    name: String,
    /// A server that is a program has none.
    #[serde(rename = "type")]
    kind: Option<String>,
    command: Option<String>,
    #[serde(default)]
    args: Vec<String>,
    #[serde(default)]
    env: Vec<NamedText>,
    url: Option<String>,
    #[serde(default)]
    headers: Vec<NamedText>,
}

impl fmt::Debug for ClientMcpServer {
    /// Leaves out what can have a key: variables, headers and the address.
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("ClientMcpServer").field("name", &self.name).finish_non_exhaustive()
    }
}

/// An environment variable or a header of a server.
#[derive(Deserialize)]
struct NamedText {
    name: String,
    value: String,
}

/// Servers by the names of their plugins.
pub(crate) type NamedServers = BTreeMap<PluginName, McpServerSettings>;

/// The servers of all open sessions.
#[derive(Debug, Default)]
pub(crate) struct ClientServers {
    by_session: HashMap<String, NamedServers>,
}

impl ClientServers {
    /// Replaces the servers of a session. A server whose name another session uses for another
    /// server is left out with a note. Returns whether the servers of all sessions have changed.
    pub(crate) fn set(
        &mut self,
        session_id: &str,
        mut servers: NamedServers,
        notes: &mut Vec<String>,
    ) -> bool {
        let before = self.all();
        self.by_session.remove(session_id);
        let others = self.all();
        servers.retain(|name, server| {
            let is_free = others.get(name).is_none_or(|other| other == server);
            if !is_free {
                notes.push(format!(
                    "The MCP server {name} is not used: another session has another server of this \
                     name."
                ));
            }
            is_free
        });
        if !servers.is_empty() {
            self.by_session.insert(session_id.to_owned(), servers);
        }
        self.all() != before
    }

    /// The servers of all sessions.
    pub(crate) fn all(&self) -> NamedServers {
        self.by_session.values().flatten().map(|(name, one)| (name.clone(), one.clone())).collect()
    }
}

/// The servers of a client as plugins. Each one that cannot be used leaves a note.
pub(crate) fn named_servers(
    offered: Vec<ClientMcpServer>,
    notes: &mut Vec<String>,
) -> NamedServers {
    let mut named = NamedServers::new();
    if offered.len() > SERVERS_MAX {
        notes.push(format!("Only the first {SERVERS_MAX} MCP servers of this client are used."));
    }
    for server in offered.into_iter().take(SERVERS_MAX) {
        let shown = text::escape_excerpt(&server.name, NAME_CHARS_MAX);
        match settings_of(server) {
            Ok((name, settings)) => {
                named.insert(name, settings);
            }
            Err(why) => notes.push(format!("The MCP server {shown} is not used: {why}.")),
        }
    }
    named
}

fn settings_of(server: ClientMcpServer) -> Result<(PluginName, McpServerSettings), &'static str> {
    let ClientMcpServer { name, kind, command, args, env, url, headers } = server;
    let texts =
        |texts: Vec<NamedText>| texts.into_iter().map(|one| (one.name, one.value)).collect();
    let endpoint = match kind.as_deref() {
        None | Some("stdio") => {
            let command = command.filter(|command| !command.is_empty());
            let command = [vec![command.ok_or("it has no command")?], args].concat();
            let program = McpProgram { env: texts(env), ..McpProgram::from_command(command) };
            McpEndpoint::Program(program)
        }
        Some("http") => {
            let url = url.filter(|url| !url.is_empty()).ok_or("it has no address")?;
            McpEndpoint::Address(McpAddress { url, headers: texts(headers) })
        }
        Some(_) => return Err("it is neither a program nor at an address of streamable HTTP"),
    };
    let name = plugin_name(&name).ok_or("no plugin can have its name")?;
    Ok((name, endpoint.into()))
}

/// The name of a server as that of a plugin: lower case, with `-` for what a name cannot have.
fn plugin_name(name: &str) -> Option<PluginName> {
    let fits = |c: char| c.is_ascii_lowercase() || c.is_ascii_digit() || c == '-' || c == '_';
    let lower = name.to_lowercase();
    let plain: String = lower.chars().map(|c| if fits(c) { c } else { '-' }).collect();
    plain.trim_matches('-').parse().ok()
}

/// Why servers that were loaded cannot be used, as notes.
pub(crate) fn unusable_servers(registry: &Registry, servers: &NamedServers) -> Vec<String> {
    let problem = |name: &PluginName| {
        let problem = registry.problems().iter().find(|one| one.plugin.as_ref() == Some(name));
        if let Some(problem) = problem {
            let hint = problem.hint.as_ref().map(|hint| format!("; {hint}")).unwrap_or_default();
            return Some(format!("The MCP server {name} is not used: {}{hint}.", problem.message));
        }
        let entry = registry.find_plugin(name.as_str()).ok()?;
        let (reason, hint) = entry.availability().problem_and_hint(name)?;
        let hint = hint.map(|hint| format!("; {hint}")).unwrap_or_default();
        Some(format!("The MCP server {name} {reason}{hint}."))
    };
    servers.keys().filter_map(problem).collect()
}

#[cfg(test)]
mod tests {
    use serde_json::{Value, json};

    use super::*;

    fn named(servers: Value) -> (NamedServers, Vec<String>) {
        let mut notes = Vec::new();
        let named = named_servers(serde_json::from_value(servers).unwrap(), &mut notes);
        (named, notes)
    }

    #[test]
    fn servers_of_a_client_become_plugins_or_notes() {
        let rows = [
            (json!({ "name": "My Notes", "command": "/bin/a" }), Some("my-notes"), ""),
            (json!({ "name": "a", "type": "stdio", "command": "/bin/a" }), Some("a"), ""),
            (json!({ "name": "a", "type": "http", "url": "https://a/" }), Some("a"), ""),
            (json!({ "name": "a", "type": "http" }), None, "no address"),
            (json!({ "name": "a", "type": "sse", "url": "https://a/" }), None, "streamable HTTP"),
            (json!({ "name": "a", "command": "" }), None, "no command"),
            (json!({ "name": "a" }), None, "no command"),
            (json!({ "name": "…", "command": "/bin/a" }), None, "no plugin can have its name"),
        ];
        for (server, name, words) in rows {
            let (named, notes) = named(json!([server]));
            let names: Vec<&str> = named.keys().map(PluginName::as_str).collect();
            assert_eq!(names, Vec::from_iter(name), "{server}");
            assert!(notes.concat().contains(words), "{notes:?}");
            assert_eq!(notes.is_empty(), name.is_some(), "{notes:?}");
        }
        let many = json!(vec![json!({ "name": "a", "command": "b" }); SERVERS_MAX + 1]);
        assert!(named(many).1[0].contains("Only the first 32"));
    }

    #[test]
    fn a_server_ends_with_the_last_session_that_brought_it() {
        let server = |command: &str| named(json!([{ "name": "a", "command": command }])).0;
        let (mut servers, mut notes) = (ClientServers::default(), Vec::new());
        assert!(servers.set("one", server("x"), &mut notes));
        assert!(!servers.set("two", server("x"), &mut notes), "it is the same");
        assert!(!servers.set("three", server("y"), &mut notes));
        assert!(notes[0].contains("another session"), "{notes:?}");
        assert!(!servers.set("one", NamedServers::new(), &mut notes));
        assert!(servers.set("two", NamedServers::new(), &mut notes));
        assert!(servers.all().is_empty());
    }
}
