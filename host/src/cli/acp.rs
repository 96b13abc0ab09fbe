//! `sallyport acp`: serves sessions to a client of the Agent Client Protocol, such as an editor.
//!
//! Standard output carries the protocol and nothing else. Everything for people goes to standard
//! error, which clients keep as the agent's log.

use std::{io::IsTerminal, sync::Arc};

use clap::Args as ClapArgs;
use sallyport_acp::{AcpServerParts, ClientEnd, serve_stdio};
use sallyport_runtime::{
    Host, HostOptions,
    config::{ConfigFlags, Env, HostSettings},
    registry::PluginSelection,
    session::SessionOverrides,
};
use sallyport_session::UnattendedConsent;

use super::{
    args::ModelArgs,
    consent,
    exit::{CommandFailure, ExitStatus},
    guided_setup::{self, SetupArgs},
    observers::CallObservers,
    output::{CliOutput, format_count},
    plugin_reload::PluginReloader,
    serving::{StopSignals, keep_served_plugins},
    setup, telemetry,
};

#[derive(Debug, ClapArgs)]
pub(super) struct AcpArgs {
    /// Set up a model in this terminal instead; editors run this when no model is configured
    #[arg(long)]
    setup: bool,

    #[command(flatten)]
    pub(super) model: ModelArgs,
}

pub(super) async fn run_acp_command(
    flags: &ConfigFlags,
    args: &AcpArgs,
    observers: &CallObservers,
    out: &CliOutput,
) -> Result<ExitStatus, CommandFailure> {
    if args.setup {
        return guided_setup::run_setup_command(flags, &SetupArgs::default(), out).await;
    }
    let signals = StopSignals::new();
    let settings = setup::read_settings(flags)?;
    // A change that comes while the plugins are being loaded counts as one after it.
    let reloader = PluginReloader::for_server(&settings)?;
    let host = Arc::new(Host::open(&settings, host_options(observers, out)).await?);
    telemetry::start(&settings, &host, out);
    setup::print_load_problems(&host.registry(), out);
    let tools = format_count(host.tools().len(), "tool");
    out.print_note(&format!("Serving {tools} over ACP on standard input."));
    if std::io::stdin().is_terminal() {
        out.print_hint("this command is for ACP clients, which start it; Ctrl-D ends it");
    }
    let exit = tokio::select! {
        exit = serve(&host, flags.clone(), (&args.model).into(), signals, out) => exit,
        never = keep_served_plugins(reloader, &host, flags, || host.tools().len(), out) => {
            match never {}
        }
    };
    setup::print_shutdown(host.close_shared().await, out).apply_to_result(Ok(exit))
}

async fn serve(
    host: &Arc<Host>,
    flags: ConfigFlags,
    overrides: SessionOverrides,
    mut signals: StopSignals,
    out: &CliOutput,
) -> ExitStatus {
    let parts = AcpServerParts {
        host: Arc::clone(host),
        read_settings: Box::new(move |folder| {
            let flags = ConfigFlags { folder: folder.map(Into::into), ..flags.clone() };
            HostSettings::resolve(&flags, Env::from_process()).map_err(|error| error.to_string())
        }),
        overrides,
    };
    let timekeeper = host.start_timekeeper();
    let end = serve_stdio(parts, signals.wait_for_stop()).await;
    timekeeper.stop().await;
    match end {
        ClientEnd::ClosedByClient => ExitStatus::Done,
        ClientEnd::Stopped => signals.exit_status(),
        ClientEnd::OutputFailed(error) => {
            out.print_write_error(&error);
            ExitStatus::Failed
        }
    }
}

/// Returns the options of the host. A changed plugin stays disabled until the user accepts it,
/// because standard input belongs to the client.
fn host_options(observers: &CallObservers, out: &CliOutput) -> HostOptions {
    let without_questions = CliOutput { can_ask: false, ..*out };
    let consent = Arc::new(UnattendedConsent);
    let options = observers.host_options(consent, PluginSelection::All, out);
    HostOptions {
        accepts_change: Box::new(move |plugin, differences| {
            consent::confirm_plugin_change(plugin, differences, &without_questions)
        }),
        ..options
    }
}
