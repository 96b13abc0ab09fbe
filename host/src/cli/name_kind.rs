//! What an argument of the command line names, for completions.

use clap::builder::ArgExt;

/// What an argument names. It is attached to the argument, where it is defined.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum NameKind {
    /// A plugin.
    Plugin,
    /// A tool, `plugin.tool`.
    Tool,
    /// A plugin or a tool.
    PluginOrTool,
    /// A model of the configuration.
    Model,
    /// A provider of models.
    Provider,
    /// A stored session.
    Session,
    /// A secret that the policy names.
    Secret,
    /// A command or a topic of the help.
    HelpTopic,
}

impl ArgExt for NameKind {}
