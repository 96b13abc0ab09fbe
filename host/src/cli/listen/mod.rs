//! Sessions that plugins attend: `sallyport listen`, which listeners feed, and `chat --ui`, which a
//! plugin shows.
//!
//! They differ only in the participants: the source of input, the display, and the answers to
//! questions. [`cast`] finds the plugins and binds their granted addresses before anything starts.
//! [`floor`] runs the session from its first event to its last. A UI draws on the [`canvas`].

mod args;
mod canvas;
mod cast;
mod floor;
mod questions;
mod waiting;

use std::{io::IsTerminal, sync::Arc};

use sallyport_contract::{Denial, Toolbox};
use sallyport_runtime::{
    Host,
    config::{ConfigFlags, HostSettings},
    registry::PluginSelection,
    session::{self as sessions, SessionConfig, SessionError, SessionSelector},
};
use sallyport_session::{self as session};

use super::{
    args::ChatArgs,
    compose,
    exit::{Exit, Failure},
    output::Output,
    show,
    watch::Watch,
};

pub(super) use args::ListenArgs;
use args::Plan;
use canvas::Screen;
use cast::Cast;
use floor::Floor;

/// The reason why the session cannot start.
enum Trouble {
    Failure(Failure),
    /// The policy does not grant the selected role to a plugin.
    Denied(Box<Denial>),
}

impl From<SessionError> for Trouble {
    fn from(error: SessionError) -> Self {
        Self::Failure(error.into())
    }
}

impl From<Failure> for Trouble {
    fn from(failure: Failure) -> Self {
        Self::Failure(failure)
    }
}

/// Runs a session with input from listeners.
pub(super) async fn listen(
    flags: &ConfigFlags,
    args: &ListenArgs,
    watch: &Watch,
    out: &Output,
) -> Result<Exit, Failure> {
    attend(flags, &Plan::of_listen(args), watch, out).await
}

/// Runs a session with a plugin as its UI.
pub(super) async fn chat(
    flags: &ConfigFlags,
    args: &ChatArgs,
    ui: &str,
    watch: &Watch,
    out: &Output,
) -> Result<Exit, Failure> {
    if !args.files.attach.is_empty() || args.files.audio.is_some() {
        let failure = Failure::new(Exit::Usage, "files cannot be sent along where a plugin shows");
        return Err(failure.with_hint("leave them out"));
    }
    attend(flags, &Plan::of_chat(args, ui), watch, out).await
}

async fn attend(
    flags: &ConfigFlags,
    plan: &Plan<'_>,
    watch: &Watch,
    out: &Output,
) -> Result<Exit, Failure> {
    let settings = compose::settings(flags)?;
    let talk = compose::open_session(&settings, &SessionSelector::from(plan.session), out)?;
    let voice = compose::model(&settings, out)?;
    let (desk, approvals) = session::approval::approval_channel();
    let tools =
        compose::open_host(&settings, Arc::new(desk), PluginSelection::All, watch, out).await?;
    compose::show_problems(tools.registry(), out);
    let played = async {
        let config = SessionConfig::from_settings(&plan.model.into(), &settings, &tools).await?;
        let parts = tools.session_parts(talk, &config, &voice, approvals)?;
        let session_id = parts.options.session_id.clone();
        let screen = Arc::new(Screen::new(*out));
        let cast = Cast::gather(plan, tools.roles(), &session_id, &screen).await?;
        announce(&cast, parts.model.name(), &tools, out);
        let (session, events) = tools.begin_session(parts, true)?;
        let timekeeper = tools.start_timekeeper();
        let floor = Floor::new(session, cast, &settings, screen);
        let held = floor.hold(events).await;
        timekeeper.stop().await;
        tell_way_back(plan, &settings, &session_id, out);
        held
    };
    let exit = settle(played.await, &settings, out);
    compose::close(tools, out).await.end(exit)
}

/// Prints how to resume the session if it can be resumed.
fn tell_way_back(plan: &Plan<'_>, settings: &HostSettings, session_id: &str, out: &Output) {
    let session = sessions::find_stored_session(settings, session_id);
    if session.is_some_and(|session| session.used.turns > 0) {
        out.note(&format!("Resume with: sallyport {} --session {session_id}", plan.command()));
    }
}

fn settle(
    played: Result<Exit, Trouble>,
    settings: &HostSettings,
    out: &Output,
) -> Result<Exit, Failure> {
    match played {
        Ok(exit) => Ok(exit),
        Err(Trouble::Failure(failure)) => Err(failure),
        Err(Trouble::Denied(denial)) => {
            out.error(&format!("{}: {}", denial.what, denial.why));
            show::fix(&denial, settings.policy.user_file(), out);
            Ok(Exit::Policy)
        }
    }
}

/// Prints the model, the tools and the addresses.
fn announce(cast: &Cast, model: &str, tools: &Host, out: &Output) {
    let end = if std::io::stdin().is_terminal() { " · Ctrl-C to leave" } else { "" };
    out.note(&format!("{model} · {} tools{end}", tools.registry().tools().len()));
    for place in cast.places() {
        out.note(&place);
    }
    if let Some(words) = cast.watching() {
        out.note(&words);
    }
}
