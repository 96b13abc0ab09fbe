//! `[compile]`: how long a start waits for plugins that are not compiled yet, and what compiling one
//! may cost.

use std::time::Duration;

use sallyport_policy::{
    SourceError, TimeSpan,
    document::{Item, Section},
};
use sallyport_sandbox::compile::Limits;
use serde_json::{Map, Value, json};

use super::{Env, env};

/// `[compile]`, with what the environment says instead of the file.
#[derive(Debug, Default, Clone, Copy, PartialEq, Eq)]
pub struct CompileSettings {
    /// Longest wait of a start; what the command finds right when absent.
    pub wait: Option<Duration>,
    /// Most processor time of one compilation, over all its threads, in whole seconds.
    pub cpu_time: Option<Duration>,
}

impl CompileSettings {
    pub(super) fn read(table: &mut Section<'_>) -> Result<Self, SourceError> {
        Ok(Self {
            wait: table.optional("wait", time)?,
            cpu_time: table.optional("cpu_time", time)?,
        })
    }

    pub(super) fn over(self, below: Self) -> Self {
        Self { wait: self.wait.or(below.wait), cpu_time: self.cpu_time.or(below.cpu_time) }
    }

    /// Fills in what the environment says instead of the file. What is not a time is no wait that
    /// anybody asked for.
    pub(super) fn resolve(self, env: &Env) -> Self {
        let named = env.get(env::COMPILE_WAIT).and_then(|text| text.parse::<TimeSpan>().ok());
        Self { wait: named.map(|span| span.0).or(self.wait), ..self }
    }

    /// What one compilation may cost.
    pub fn limits(&self) -> Limits {
        let cpu_time = self.cpu_time.map_or(Limits::STANDARD.cpu_time, |time| {
            // The system counts processor time in seconds, and none at all would compile nothing.
            Duration::from_secs(time.as_secs().max(1))
        });
        Limits { cpu_time, time: Limits::STANDARD.time.max(cpu_time * 2), ..Limits::STANDARD }
    }

    /// Its values under the keys of the file.
    pub(super) fn shown(&self) -> Map<String, Value> {
        let shown = |time: Option<Duration>| json!(time.map(|time| TimeSpan(time).to_string()));
        Map::from_iter([
            ("wait".to_owned(), shown(self.wait)),
            ("cpu_time".to_owned(), shown(self.cpu_time)),
        ])
    }
}

fn time(item: Item<'_>) -> Result<Duration, SourceError> {
    Ok(item.time()?.0)
}
