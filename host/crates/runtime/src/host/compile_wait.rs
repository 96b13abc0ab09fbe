//! How long a start waits for plugins that are not compiled.

use std::time::Duration;

use crate::{config::HostSettings, registry::PluginSelection};

/// How long a command that only lists plugins waits for compilation. Users do not notice this
/// delay.
const LIST_COMPILE_WAIT: Duration = Duration::from_millis(80);

/// How long a program that goes on after its start waits for compilation. Small plugins compile
/// within this time; larger ones are loaded later.
const START_COMPILE_WAIT: Duration = Duration::from_secs(2);

/// The wait of callers that need the result of compilation. The limits of the compiler end it
/// earlier.
const UNLIMITED_COMPILE_WAIT: Duration = Duration::from_secs(24 * 60 * 60);

/// How long to wait for plugins that are not compiled.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum CompileWait {
    /// So briefly that a user does not notice, unless the configuration sets a time.
    Short,
    /// As long as a start may take of a program that loads the others later, unless the
    /// configuration sets a time.
    Start,
    /// Until every plugin is compiled or rejected, unless the configuration sets a time. A program
    /// that answers once needs this, because for its answer there is no later.
    OneAnswer,
    /// Until every plugin is compiled or rejected, whatever the configuration sets.
    Complete,
}

impl CompileWait {
    /// Returns the time to wait. Plugins that are selected by name are always waited for.
    pub(super) fn time_max(self, settings: &HostSettings, selection: &PluginSelection) -> Duration {
        let default = match self {
            Self::Complete => return UNLIMITED_COMPILE_WAIT,
            Self::OneAnswer => UNLIMITED_COMPILE_WAIT,
            Self::Start => START_COMPILE_WAIT,
            Self::Short => LIST_COMPILE_WAIT,
        };
        match selection {
            PluginSelection::Only(_) | PluginSelection::File(_) => UNLIMITED_COMPILE_WAIT,
            PluginSelection::All | PluginSelection::AnyOf(_) => {
                settings.compile.wait.map_or(default, |time| time.0)
            }
        }
    }
}
