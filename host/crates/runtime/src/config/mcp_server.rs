//! What is configured about an MCP server, and its program or address.

use std::{
    collections::BTreeMap,
    fmt, fs,
    os::unix::fs::PermissionsExt,
    path::{Path, PathBuf},
    time::Duration,
};

use http::{HeaderMap, HeaderName, HeaderValue};
use sallyport_contract::{PluginName, Secret};
use sallyport_mcp_client::is_reserved_header;
use sallyport_policy::{
    HintedError, Manifest, NetPatternError, is_this_machine, url_without_secrets,
};
use sallyport_process::{ScriptError, ScriptProgram};
use url::Url;

use super::{Env, McpServerEntry, VariableText, display_address, expand_home};

/// How long a server may take until it is ready, unless the configuration sets another time. An
/// interpreter with many packages needs several seconds on a busy machine.
const START_TIME_DEFAULT: Duration = Duration::from_secs(30);

/// Executable by anyone.
const EXECUTABLE: u32 = 0o111;

/// The schemes before a key in a header, in lower case.
const AUTH_SCHEMES: [&str; 3] = ["basic", "bearer", "token"];

/// The shortest value of a variable that is removed from texts. A shorter one would occur in them by
/// chance.
const SECRET_BYTES_MIN: usize = 8;

/// What is configured about an MCP server.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct McpServerSettings {
    /// What the server is.
    pub endpoint: McpEndpoint,
    /// How long it may take until it is ready.
    pub start_time: Duration,
    /// Longest time for one call; without it, that of the policy.
    pub call_time: Option<Duration>,
}

/// What a server is.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum McpEndpoint {
    /// A program of this machine.
    Program(McpProgram),
    /// A server at an address.
    Address(McpAddress),
}

/// A server that is a program of this machine.
#[derive(Clone, PartialEq, Eq)]
pub struct McpProgram {
    /// The program and its arguments. A program without a `/` is searched in `PATH`.
    pub command: Vec<String>,
    /// The folder that it starts in, which has to be a granted one; without it, an empty one.
    pub folder: Option<PathBuf>,
    /// Its environment variables, besides the usual ones.
    pub env: BTreeMap<String, String>,
}

/// A server at an address.
#[derive(Clone, PartialEq, Eq)]
pub struct McpAddress {
    /// The address, as it is configured.
    pub url: String,
    /// Headers of every request, such as the one that signs in.
    pub headers: BTreeMap<String, String>,
}

impl fmt::Debug for McpProgram {
    /// Leaves out the values of variables.
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Self { command, env, .. } = self;
        f.debug_struct("McpProgram")
            .field("command", command)
            .field("env", &env.keys())
            .finish_non_exhaustive()
    }
}

impl fmt::Debug for McpAddress {
    /// Leaves out the query and the values of headers.
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("McpAddress")
            .field("url", &display_address(&self.url))
            .field("headers", &self.headers.keys())
            .finish()
    }
}

impl McpProgram {
    /// A program with this command, and with the defaults for everything else.
    pub fn from_command(command: Vec<String>) -> Self {
        Self { command, folder: None, env: BTreeMap::new() }
    }

    /// Finds and reads the program of the command.
    ///
    /// # Errors
    ///
    /// There is no command or program, or it cannot be used.
    pub(crate) fn read_program(&self, env: &Env) -> Result<ScriptProgram, McpServerError> {
        let program = self.command.first().filter(|program| !program.is_empty());
        let program = program.ok_or(McpServerError::NoCommand)?;
        let path = find_program(program, env);
        let path = path.ok_or_else(|| McpServerError::NoProgram(program.clone()))?;
        Ok(ScriptProgram::read_native(path)?)
    }
}

impl From<McpEndpoint> for McpServerSettings {
    fn from(endpoint: McpEndpoint) -> Self {
        Self { endpoint, start_time: START_TIME_DEFAULT, call_time: None }
    }
}

impl McpServerSettings {
    pub(super) fn from_entry(entry: McpServerEntry, env: &Env) -> Self {
        let texts = |map: BTreeMap<String, VariableText>| {
            map.into_iter().map(|(name, value)| (name, value.0)).collect()
        };
        let endpoint = match entry.url {
            Some(url) => McpEndpoint::Address(McpAddress { url, headers: texts(entry.headers) }),
            None => McpEndpoint::Program(McpProgram {
                command: entry.command.unwrap_or_default(),
                folder: entry.folder.map(|folder| expand_home(&folder, env)),
                env: texts(entry.env),
            }),
        };
        Self {
            endpoint,
            start_time: entry.start_time.map_or(START_TIME_DEFAULT, |time| time.0),
            call_time: entry.time.map(|time| time.0),
        }
    }

    /// Checks a server as the host does when it loads the plugins. Nothing is started or sent.
    ///
    /// # Errors
    ///
    /// The server cannot be used as it is configured.
    pub(super) fn check(&self, name: &PluginName, env: &Env) -> Result<(), McpServerError> {
        match &self.endpoint {
            McpEndpoint::Program(program) => program.read_program(env).map(drop),
            McpEndpoint::Address(address) => address.manifest(name.clone()).map(drop),
        }
    }

    /// The values of its variables or headers, each with the name of its source. They are removed
    /// from all texts, because most of them are keys.
    pub fn secrets(&self, name: &PluginName) -> Vec<(String, Secret)> {
        let found = match &self.endpoint {
            McpEndpoint::Program(program) => {
                program.env.iter().map(|(key, value)| (format!("env.{key}"), &**value)).collect()
            }
            McpEndpoint::Address(address) => address.secrets(),
        };
        let long = found.into_iter().filter(|(_, value)| value.len() >= SECRET_BYTES_MIN);
        long.map(|(key, value)| (format!("mcp.{name}.{key}"), Secret::new(value.to_owned())))
            .collect()
    }
}

impl McpAddress {
    /// The values of its headers, without the scheme of a sign-in, and its query.
    fn secrets(&self) -> Vec<(String, &str)> {
        let headers = self.headers.iter();
        let headers = headers.map(|(key, value)| (format!("headers.{key}"), without_scheme(value)));
        let query = self.url.split_once('?').map(|(_, query)| ("url".to_owned(), query));
        headers.chain(query).collect()
    }

    /// The address without its query, checked.
    ///
    /// # Errors
    ///
    /// It is not an address of a server.
    pub fn bare_address(&self) -> Result<Url, McpServerError> {
        Ok(url_without_secrets(&self.parse()?.0))
    }

    /// What the plugin of the server requests from the policy.
    ///
    /// # Errors
    ///
    /// It is not an address of a server, or the policy cannot name it.
    pub(crate) fn manifest(&self, plugin: PluginName) -> Result<Manifest, McpServerError> {
        Ok(Manifest::for_mcp_address(plugin, self.bare_address()?.as_str())?)
    }

    /// The address as it may be shown: a key in it is hidden.
    pub fn shown_url(&self) -> String {
        display_address(&self.url)
    }

    /// The address and the headers, checked.
    pub(crate) fn parse(&self) -> Result<(Url, HeaderMap), McpServerError> {
        let wrong = || McpServerError::Url(display_address(&self.url));
        let url = Url::parse(&self.url).map_err(|_| wrong())?;
        let has_user = !url.username().is_empty() || url.password().is_some();
        if has_user || !url.has_host() || !matches!(url.scheme(), "https" | "http") {
            return Err(wrong());
        }
        if url.scheme() == "http" && !is_this_machine(&url) && !self.headers.is_empty() {
            return Err(McpServerError::OpenKey);
        }
        let mut headers = HeaderMap::new();
        for (name, value) in &self.headers {
            let wrong = || McpServerError::Header(name.clone());
            let known = HeaderName::try_from(name).map_err(|_| wrong())?;
            let value = HeaderValue::try_from(value).map_err(|_| wrong())?;
            if is_reserved_header(&known) {
                return Err(wrong());
            }
            headers.insert(known, value);
        }
        Ok((url, headers))
    }
}

/// The part of a header's value that is removed from texts, if it is long enough for a key.
pub(super) fn header_secret(value: &str) -> Option<&str> {
    Some(without_scheme(value)).filter(|secret| secret.len() >= SECRET_BYTES_MIN)
}

/// A header's value without the scheme of a sign-in: the key alone can occur in a text, too.
fn without_scheme(value: &str) -> &str {
    match value.split_once(' ') {
        Some((scheme, key)) if AUTH_SCHEMES.contains(&&*scheme.to_lowercase()) => key,
        _ => value,
    }
}

/// Why a server cannot be used as it is configured.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum McpServerError {
    /// The command is empty.
    #[error("its command is empty")]
    NoCommand,
    /// The program does not exist.
    #[error("there is no program {0}")]
    NoProgram(String),
    /// The program cannot be used.
    #[error(transparent)]
    Program(#[from] ScriptError),
    /// The address cannot be one of a server.
    #[error("{0:?} is not an address of a server")]
    Url(String),
    /// The policy cannot name the address.
    #[error("the policy cannot name its address: {0}")]
    Pattern(#[from] NetPatternError),
    /// A header cannot be sent.
    #[error("the header {0:?} cannot be set")]
    Header(String),
    /// Its headers would cross the network unencrypted.
    #[error("its headers would be sent unencrypted to another machine")]
    OpenKey,
}

impl McpServerError {
    /// Returns how to fix it.
    pub fn hint(&self) -> String {
        match self {
            Self::NoCommand => {
                "write command = [\"PROGRAM\", \"ARGUMENT\", …], or url = \"https://…\"".to_owned()
            }
            Self::NoProgram(_) => {
                "install it, or write the full path (`command -v` prints it)".to_owned()
            }
            Self::Program(error) => error.hint(),
            Self::Url(_) => "write url = \"https://HOST/PATH\", without a user name".to_owned(),
            Self::Pattern(error) => error.hint().unwrap_or_else(|| "check its url".to_owned()),
            Self::Header(_) => {
                "leave it out if it is one of the protocol, such as Accept; otherwise check its name \
                 and value"
                    .to_owned()
            }
            Self::OpenKey => "write https:// in its url, or leave out the headers".to_owned(),
        }
    }
}

fn find_program(program: &str, env: &Env) -> Option<PathBuf> {
    if program.contains('/') {
        let path = expand_home(program, env);
        return path.exists().then_some(path);
    }
    let folders = std::env::split_paths(env.get("PATH")?).filter(|folder| folder.is_absolute());
    let mut files = folders.map(|folder| folder.join(program));
    files.find(|file| is_executable(file))
}

fn is_executable(file: &Path) -> bool {
    fs::metadata(file)
        .is_ok_and(|metadata| metadata.is_file() && metadata.permissions().mode() & EXECUTABLE != 0)
}
