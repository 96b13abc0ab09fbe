//! What is configured about an MCP server, and its program.

use std::{
    collections::BTreeMap,
    fmt, fs,
    os::unix::fs::PermissionsExt,
    path::{Path, PathBuf},
    time::Duration,
};

use sallyport_contract::{PluginName, Secret};
use sallyport_process::{ScriptError, ScriptProgram};

use crate::config::{Env, McpServerEntry, expand_home};

/// How long a server may take until it is ready, unless the configuration says otherwise. An
/// interpreter with many packages needs several seconds on a busy machine.
pub const START_TIME_DEFAULT: Duration = Duration::from_secs(30);

/// Executable by anyone.
const EXECUTABLE: u32 = 0o111;

/// The shortest value of a variable that is removed from texts. A shorter one would occur in them by
/// chance.
const SECRET_BYTES_MIN: usize = 8;

/// What is configured about an MCP server that is a program of this machine.
#[derive(Clone, PartialEq, Eq)]
pub struct McpServerSettings {
    /// The program and its arguments. A program without a `/` is searched in `PATH`.
    pub command: Vec<String>,
    /// The folder that it starts in, which has to be a granted one; without it, an empty one.
    pub folder: Option<PathBuf>,
    /// Its environment variables, besides the usual ones.
    pub env: BTreeMap<String, String>,
    /// How long it may take until it is ready.
    pub start_time: Duration,
    /// Longest time for one call; without it, that of the policy.
    pub call_time: Option<Duration>,
}

impl fmt::Debug for McpServerSettings {
    /// Leaves out the values of variables.
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Self { command, env, .. } = self;
        f.debug_struct("McpServerSettings")
            .field("command", command)
            .field("env", &env.keys())
            .finish_non_exhaustive()
    }
}

impl McpServerSettings {
    /// A server with this command, and with the defaults for everything else.
    pub fn from_command(command: Vec<String>) -> Self {
        let (folder, env) = (None, BTreeMap::new());
        Self { command, folder, env, start_time: START_TIME_DEFAULT, call_time: None }
    }

    pub(crate) fn from_entry(entry: McpServerEntry, env: &Env) -> Self {
        Self {
            command: entry.command,
            folder: entry.folder.map(|folder| expand_home(&folder, env)),
            env: entry.env.into_iter().map(|(name, value)| (name, value.0)).collect(),
            start_time: entry.start_time.map_or(START_TIME_DEFAULT, |time| time.0),
            call_time: entry.time.map(|time| time.0),
        }
    }

    /// The values of its variables, each with the name of its source. They are removed from all
    /// texts, because most of them are keys.
    pub(crate) fn secrets(&self, name: &PluginName) -> impl Iterator<Item = (String, Secret)> {
        let long = self.env.iter().filter(|(_, value)| value.len() >= SECRET_BYTES_MIN);
        long.map(move |(key, value)| (format!("mcp.{name}.env.{key}"), Secret::new(value.clone())))
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
}

impl McpServerError {
    /// Returns how to fix it.
    pub fn hint(&self) -> String {
        match self {
            Self::NoCommand => "write command = [\"PROGRAM\", \"ARGUMENT\", …]".to_owned(),
            Self::NoProgram(_) => {
                "install it, or write the full path (`command -v` prints it)".to_owned()
            }
            Self::Program(error) => error.hint(),
        }
    }
}

/// Finds and reads the program of a command.
pub(super) fn read_program(command: &[String], env: &Env) -> Result<ScriptProgram, McpServerError> {
    let program = command.first().filter(|program| !program.is_empty());
    let program = program.ok_or(McpServerError::NoCommand)?;
    let path = find_program(program, env);
    let path = path.ok_or_else(|| McpServerError::NoProgram(program.clone()))?;
    Ok(ScriptProgram::read_native(path)?)
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

/// The digest of what is run: the command, its folder, the names of its variables and the program.
/// Values of variables are left out, because a key that is renewed does not make another server.
pub(super) fn command_digest(settings: &McpServerSettings, program: &ScriptProgram) -> String {
    let mut hasher = blake3::Hasher::new();
    let folder = settings.folder.as_ref().map(|folder| folder.to_string_lossy().into_owned());
    let parts =
        [&settings.command, &Vec::from_iter(folder), &Vec::from_iter(settings.env.keys().cloned())];
    for part in parts {
        hasher.update(&(part.len() as u64).to_le_bytes());
        for text in part {
            hasher.update(&(text.len() as u64).to_le_bytes()).update(text.as_bytes());
        }
    }
    hasher.update(program.path.as_os_str().as_encoded_bytes());
    hasher.update(program.digest.as_str().as_bytes());
    hasher.finalize().to_hex().to_string()
}
