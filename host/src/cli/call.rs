//! `sallyport call PLUGIN.TOOL JSON`: one call through the whole gate, without a model.

use std::sync::Arc;

use sallyport_contract::{
    CallReport, ContentPart, Outcome, RequestedCall, ToolCallContext, ToolId, ToolOutput, text,
};
use sallyport_runtime::{
    config::{ConfigFlags, HostSettings},
    host::new_session_id,
    registry::PluginSelection,
    services,
};
use serde_json::json;

use super::{
    args::{CallArgs, Format},
    compose, consent,
    exit::{Exit, Failure},
    output::Output,
    show,
    watch::Watch,
};

pub(super) async fn call(
    flags: &ConfigFlags,
    args: &CallArgs,
    watch: &Watch,
    out: &Output,
) -> Result<Exit, Failure> {
    let tool: ToolId =
        args.tool.parse().map_err(|error| Failure::new(Exit::Usage, format!("{error}")))?;
    let settings = compose::settings(flags)?;
    let consent = Arc::new(consent::AtTerminal { out: *out });
    let only = PluginSelection::Only(tool.plugin.clone());
    let host = compose::open_host(&settings, consent, only, watch, out).await?;
    host.registry().find_tool(&tool).map_err(Failure::from)?;
    let call = RequestedCall { context: context(), tool, arguments: args.arguments.clone() };
    let report = tokio::select! {
        // Poll the signal first, so that it is handled from the first question on.
        biased;
        () = compose::interrupted() => Outcome::Cancelled.into(),
        report = host.call_tool(call) => report,
    };
    let recorded = compose::close(host, out).await;
    if args.emit_needed_grants
        && let Outcome::Denied(denial) = &report.outcome
    {
        out.error(&show::reason(&report.outcome).unwrap_or_default());
        show::needed([denial], out);
    } else {
        print(&report, args.output.output, &settings, watch.verbose, out);
    }
    recorded.end(Ok(Exit::of_outcome(&report.outcome)))
}

/// Returns the context of a call from the command line.
pub(super) fn context() -> ToolCallContext {
    services::single_call_context("call-1".to_owned(), &new_session_id())
}

fn print(
    report: &CallReport,
    format: Format,
    settings: &HostSettings,
    verbose: bool,
    out: &Output,
) {
    match (&report.outcome, format) {
        (Outcome::Completed(output), Format::Text) => print_output(output, out),
        (outcome, Format::Json) => {
            out.json(&json!({
                "outcome": outcome.as_str(),
                "result": outcome.to_model_value(),
                "elapsed_ms": report.elapsed.as_secs_f64() * 1000.0,
                "memory_bytes_peak": report.memory_bytes_peak,
            }));
        }
        (outcome, Format::Text) => print_failure(outcome, settings, verbose, out),
    }
}

fn print_output(output: &ToolOutput, out: &Output) {
    out.json(&output.data);
    for part in &output.content {
        match part {
            ContentPart::Text { text } => out.line(&text::escape_multiline(text)),
            ContentPart::Image { media_type, data } | ContentPart::Audio { media_type, data } => {
                out.note(&format!("({media_type}, {} bytes)", data.len()));
            }
            ContentPart::Resource { uri, .. } => out.note(&format!("({uri})")),
        }
    }
}

fn print_failure(outcome: &Outcome, settings: &HostSettings, verbose: bool, out: &Output) {
    out.error(&show::reason(outcome).unwrap_or_default());
    if let Outcome::Denied(denial) = outcome {
        show::fix(denial, settings.policy.user_file(), out);
    }
    if show::detail(outcome).is_some() && !verbose {
        out.hint("run again with -v for details");
    }
}
