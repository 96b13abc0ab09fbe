//! `sallyport call PLUGIN.TOOL JSON`: one call through the whole gate, without a model.

use std::sync::Arc;

use clap::Args as ClapArgs;
use sallyport_contract::{
    CallReport, ContentPart, FailureKind, Outcome, Principal, ResourceContents, ResourceData,
    ToolCallContext, ToolId, ToolOutput, text,
};
use sallyport_runtime::{
    Host, config::ConfigFlags, registry::PluginSelection, session_id::new_session_id,
};
use serde_json::json;

use super::{
    args::{OutputArgs, OutputFormat},
    call_display, consent,
    exit::{CommandFailure, ExitStatus},
    interrupt,
    name_kind::NameKind,
    observers::CallObservers,
    output::CliOutput,
    setup,
};

#[derive(Debug, ClapArgs)]
pub(super) struct CallArgs {
    /// The tool
    #[arg(value_name = "PLUGIN.TOOL", add = NameKind::Tool)]
    pub(super) tool: String,

    /// The arguments, as a JSON object
    #[arg(value_name = "JSON", default_value = "{}")]
    pub(super) arguments: String,

    /// Print the policy that denied calls need, instead of a result
    #[arg(long)]
    pub(super) emit_needed_grants: bool,

    #[command(flatten)]
    pub(super) output: OutputArgs,
}

pub(super) async fn run_call_command(
    flags: &ConfigFlags,
    args: &CallArgs,
    observers: &CallObservers,
    out: &CliOutput,
) -> Result<ExitStatus, CommandFailure> {
    let tool: ToolId = args
        .tool
        .parse()
        .map_err(|error| CommandFailure::new(ExitStatus::Usage, format!("{error}")))?;
    let settings = setup::read_settings(flags)?;
    let consent = Arc::new(consent::TerminalConsent { out: *out });
    let only = PluginSelection::Only(tool.plugin.clone());
    let host = setup::open_host(&settings, consent, only, observers, out).await?;
    let principal = Principal::local();
    let report = tokio::select! {
        // Poll the signal first, so that it is handled from the first question on.
        biased;
        () = interrupt::wait_for_interrupt() => Outcome::Cancelled.into(),
        report = host.call(&principal, tool.clone(), args.arguments.clone()) => report,
    };
    let lookup_error = tool_lookup_error(&host, &tool, &report.outcome);
    let audit_completeness = setup::close_host(host, out).await;
    if let Some(failure) = lookup_error {
        return Err(failure);
    }
    if args.emit_needed_grants
        && let Outcome::Denied(denial) = &report.outcome
    {
        out.print_error(&call_display::failure_reason(&report.outcome).unwrap_or_default());
        call_display::print_needed_grants([denial], out);
    } else {
        print_report(&report, args.output.output, observers.verbose, out);
    }
    audit_completeness.apply_to_result(Ok(ExitStatus::from_outcome(&report.outcome)))
}

/// Returns why there is no such tool, in the words for a user, if this is why the call failed.
fn tool_lookup_error(host: &Host, tool: &ToolId, outcome: &Outcome) -> Option<CommandFailure> {
    let Outcome::Failed(failure) = outcome else { return None };
    let may_lack_tool = matches!(failure.kind, FailureKind::NotFound | FailureKind::Unavailable);
    may_lack_tool.then(|| host.registry().find_tool(tool).err().map(CommandFailure::from))?
}

/// Returns the context of a call from the command line.
pub(super) fn command_call_context() -> ToolCallContext {
    Principal::local().call_context("call-1".to_owned(), &new_session_id())
}

fn print_report(report: &CallReport, format: OutputFormat, verbose: bool, out: &CliOutput) {
    match (&report.outcome, format) {
        (Outcome::Completed(output), OutputFormat::Text) => print_output(output, out),
        (outcome, OutputFormat::Json) => {
            out.print_json(&json!({
                "outcome": outcome.as_str(),
                "result": outcome.to_model_value(),
                "elapsed_ms": report.elapsed.as_secs_f64() * 1000.0,
                "memory_bytes_peak": report.memory_bytes_peak,
            }));
        }
        (outcome, OutputFormat::Text) => print_failure(outcome, verbose, out),
    }
}

fn print_output(output: &ToolOutput, out: &CliOutput) {
    out.print_json(&output.data);
    for part in &output.content {
        match part {
            ContentPart::Text { text } => out.print_line(&text::escape_multiline(text)),
            ContentPart::Image { media_type, data } | ContentPart::Audio { media_type, data } => {
                out.print_note(&format!("({media_type}, {} bytes)", data.len()));
            }
            ContentPart::Resource { uri, .. } => out.print_note(&format!("({uri})")),
            ContentPart::Embedded(resource) => print_resource(resource, out),
        }
    }
}

fn print_resource(resource: &ResourceContents, out: &CliOutput) {
    let ResourceContents { uri, data, .. } = resource;
    match data {
        ResourceData::Text(text) => {
            out.print_note(&format!("({uri})"));
            out.print_line(&text::escape_multiline(text));
        }
        ResourceData::Binary(data) => out.print_note(&format!("({uri}, {} bytes)", data.len())),
    }
}

fn print_failure(outcome: &Outcome, verbose: bool, out: &CliOutput) {
    out.print_error(&call_display::failure_reason(outcome).unwrap_or_default());
    if let Outcome::Denied(denial) = outcome {
        call_display::print_denial_fix(denial, out);
    }
    match (call_display::failure_detail(outcome), outcome) {
        (None, _) => {}
        // With -v, the trace has shown it.
        (Some(_), _) if verbose => {}
        // What is not available is outside of the plugin, where only the user can act.
        (Some(detail), Outcome::Failed(failure))
            if failure.kind == FailureKind::Unavailable && !detail.contains('\n') =>
        {
            out.print_hint(detail);
        }
        (Some(_), _) => out.print_hint("run again with -v for details"),
    }
}
