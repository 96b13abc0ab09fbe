//! `[compile]`: how long a start waits for uncompiled plugins, and how much one compilation may
//! use.

use std::time::Duration;

use sallyport_policy::{
    SourceError, TimeSpan,
    document::{TomlItem, TomlSection},
};
use sallyport_sandbox::compile::CompileLimits;
use serde_json::{Map, Value, json};

use super::{Env, env};

/// `[compile]`, after the environment's overrides.
#[derive(Debug, Default, Clone, Copy, PartialEq, Eq)]
pub struct CompileSettings {
    /// Longest wait at a start; the command's own default when absent.
    pub wait: Option<Duration>,
    /// Most processor time of one compilation, over all its threads, in whole seconds.
    pub cpu_time: Option<Duration>,
}

impl CompileSettings {
    pub(super) fn read_section(table: &mut TomlSection<'_>) -> Result<Self, SourceError> {
        Ok(Self {
            wait: table.read_optional("wait", read_duration)?,
            cpu_time: table.read_optional("cpu_time", read_duration)?,
        })
    }

    pub(super) fn merge_over(self, base: Self) -> Self {
        Self { wait: self.wait.or(base.wait), cpu_time: self.cpu_time.or(base.cpu_time) }
    }

    /// Applies the environment's overrides. A value that is not a time is ignored.
    pub(super) fn with_env_overrides(self, env: &Env) -> Self {
        let named = env.get(env::COMPILE_WAIT).and_then(|text| text.parse::<TimeSpan>().ok());
        Self { wait: named.map(|span| span.0).or(self.wait), ..self }
    }

    /// Limits of one compilation.
    pub fn compile_limits(&self) -> CompileLimits {
        let cpu_time = self.cpu_time.map_or(CompileLimits::STANDARD.cpu_time, |time| {
            // The system counts processor time in seconds, and a limit of zero would compile
            // nothing.
            Duration::from_secs(time.as_secs().max(1))
        });
        CompileLimits {
            cpu_time,
            time: CompileLimits::STANDARD.time.max(cpu_time * 2),
            ..CompileLimits::STANDARD
        }
    }

    /// Its values, under the keys of the file.
    pub(super) fn display_values(&self) -> Map<String, Value> {
        let shown = |time: Option<Duration>| json!(time.map(|time| TimeSpan(time).to_string()));
        Map::from_iter([
            ("wait".to_owned(), shown(self.wait)),
            ("cpu_time".to_owned(), shown(self.cpu_time)),
        ])
    }
}

fn read_duration(item: TomlItem<'_>) -> Result<Duration, SourceError> {
    Ok(item.read_time_span()?.0)
}
