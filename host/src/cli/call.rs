//! `sallyport call PLUGIN.TOOL JSON`: one call through the whole gate, without a model.

use std::sync::Arc;

use sallyport_contract::{
    CallContext, CallReport, Content, Outcome, ToolCall, ToolId, ToolOutput, Toolbox, text,
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
use crate::{
    config::{Flags, Settings},
    registry::Selection,
};

pub(super) async fn call(
    flags: &Flags,
    args: &CallArgs,
    watch: &Watch,
    out: &Output,
) -> Result<Exit, Failure> {
    let tool: ToolId =
        args.tool.parse().map_err(|error| Failure::new(Exit::Usage, format!("{error}")))?;
    let settings = compose::settings(flags)?;
    let consent = Arc::new(consent::AtTerminal { out: *out });
    let only = Selection::Only(tool.plugin.clone());
    let tools = compose::tools(&settings, consent, only, watch, out).await?;
    tools.registry.find(&tool).map_err(|missing| missing.into_failure())?;
    let call = ToolCall { context: context(), tool, arguments: args.arguments.clone() };
    let report = tokio::select! {
        report = run(&*tools.toolbox, call) => report,
        () = compose::interrupted() => Outcome::Cancelled.into(),
    };
    tools.close(out).await;
    if args.emit_needed_grants
        && let Outcome::Denied(denial) = &report.outcome
    {
        out.error(&show::reason(&report.outcome).unwrap_or_default());
        show::needed([denial], out);
    } else {
        print(&report, args.output.output, &settings, watch.verbose, out);
    }
    Ok(Exit::of_outcome(&report.outcome))
}

async fn run(toolbox: &dyn Toolbox, call: ToolCall) -> CallReport {
    match toolbox.admit(call).await {
        Ok(admitted) => toolbox.run(admitted).await,
        Err(report) => *report,
    }
}

/// Where a call of the command line comes from.
pub(super) fn context() -> CallContext {
    let (call_id, session_id) = ("call-1".into(), compose::session_id());
    CallContext { call_id, session_id, ..CallContext::default() }
}

fn print(report: &CallReport, format: Format, settings: &Settings, verbose: bool, out: &Output) {
    match (&report.outcome, format) {
        (Outcome::Completed(output), Format::Text) => print_output(output, out),
        (outcome, Format::Json) => {
            out.json(&json!({
                "outcome": outcome.word(),
                "result": outcome.to_model(),
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
            Content::Text { text } => out.line(&text::visible(text)),
            Content::Image { media_type, data } | Content::Audio { media_type, data } => {
                out.note(&format!("({media_type}, {} bytes)", data.len()));
            }
            Content::Resource { uri, .. } => out.note(&format!("({uri})")),
        }
    }
}

fn print_failure(outcome: &Outcome, settings: &Settings, verbose: bool, out: &Output) {
    out.error(&show::reason(outcome).unwrap_or_default());
    if let Outcome::Denied(denial) = outcome {
        show::fix(denial, settings.policy.user_file(), out);
    }
    if show::detail(outcome).is_some() && !verbose {
        out.hint("-v shows more");
    }
}
