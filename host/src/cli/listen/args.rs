//! The flags of `sallyport listen`, and the parts shared with `chat --ui`.

use std::collections::BTreeSet;

use clap::Args as ClapArgs;

use crate::cli::{
    args::{ChatArgs, ModelArgs, SessionArgs},
    name_kind::NameKind,
};

#[derive(Debug, ClapArgs)]
pub(in super::super) struct ListenArgs {
    /// A listener (repeatable); by default all that have a `listen` grant
    #[arg(long, value_name = "NAME", add = NameKind::Plugin)]
    pub(in super::super) listener: Vec<String>,

    /// Show the session with this plugin, which also answers approvals, instead of the terminal
    #[arg(long, value_name = "NAME", add = NameKind::Plugin)]
    pub(in super::super) ui: Option<String>,

    /// The secret to use as the token of the listeners, instead of a new one at each start
    #[arg(long, value_name = "SECRET", add = NameKind::Secret)]
    pub(in super::super) token: Option<String>,

    #[command(flatten)]
    pub(in super::super) model: ModelArgs,

    #[command(flatten)]
    pub(in super::super) session: SessionArgs,
}

/// The options of either command.
pub(super) struct AttendedSessionOptions<'a> {
    /// The selected listeners. A chat has none.
    pub(super) listeners: ListenerSelection<'a>,
    pub(super) ui: Option<&'a str>,
    /// Name of the secret that is the listeners' token.
    pub(super) token: Option<&'a str>,
    pub(super) model: &'a ModelArgs,
    pub(super) session: &'a SessionArgs,
}

/// Selection of listeners.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum ListenerSelection<'a> {
    None,
    /// Those with a `listen` grant.
    Granted,
    Named(&'a [String]),
}

impl<'a> AttendedSessionOptions<'a> {
    pub(super) fn from_listen(args: &'a ListenArgs) -> Self {
        let listeners = match &args.listener[..] {
            [] => ListenerSelection::Granted,
            names => ListenerSelection::Named(names),
        };
        let (ui, token) = (args.ui.as_deref(), args.token.as_deref());
        Self { listeners, ui, token, model: &args.model, session: &args.session }
    }

    /// Returns the command line that starts such a session again.
    pub(super) fn command_line(&self) -> String {
        let ui = self.ui.map(|ui| format!(" --ui {ui}")).unwrap_or_default();
        let listeners = match self.listeners {
            ListenerSelection::None => return format!("chat{ui}"),
            ListenerSelection::Granted => String::new(),
            ListenerSelection::Named(names) => {
                let names: BTreeSet<&String> = names.iter().collect();
                names.into_iter().map(|name| format!(" --listener {name}")).collect()
            }
        };
        format!("listen{listeners}{ui}")
    }

    pub(super) fn from_chat(args: &'a ChatArgs, ui: &'a str) -> Self {
        let (listeners, ui, token) = (ListenerSelection::None, Some(ui), None);
        Self { listeners, ui, token, model: &args.model, session: &args.session }
    }
}
