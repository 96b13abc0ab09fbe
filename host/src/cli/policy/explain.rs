//! `sallyport policy explain`: what the policy decides about one situation, and why.

use sallyport_contract::{Decision, PluginName, ToolCallContext, ToolId, text};
use sallyport_policy::{
    Capability, DecisionExplanation, ExplanationStep, FsAccess, Grant, LoginGroups, Policy,
    PolicyQuestion,
    group::NO_LOGIN_GROUPS,
    question::{ROLE_PREFIX, ROLE_RUNS},
};
use sallyport_runtime::{
    config::HostSettings,
    host::HostError,
    permissions::missing_requests,
    registry::{PluginSelection, RegisteredPlugin, Registry},
};
use serde_json::{Value, json};
use url::Url;

use super::args::{ExplainArgs, NO_ARGUMENTS};
use crate::cli::{
    args::OutputFormat,
    call, call_display,
    exit::{CommandFailure, ExitStatus},
    output::CliOutput,
    setup,
};

/// The subject of a question.
enum ExplainSubject {
    /// A call of the tool.
    Call,
    /// A request during a call: its method and URL, as written by the user.
    Net(String, String),
    /// An access to a file.
    Path(String, FsAccess),
    /// A page that the plugin opens in the browser.
    Page(Url),
    /// An action that needs a capability.
    Capability(Capability),
}

/// One explanation, and the tools that it applies to.
struct ToolExplanation {
    tool_names: String,
    explanation: DecisionExplanation,
}

/// The user whose call is explained.
struct Asker {
    context: ToolCallContext,
    login_groups: LoginGroups,
}

pub(super) async fn run_explain_command(
    settings: &HostSettings,
    args: &ExplainArgs,
    out: &CliOutput,
) -> Result<ExitStatus, CommandFailure> {
    let (plugin, tool) = parse_target(&args.target)?;
    let subject = subject_from_args(args)?;
    let arguments = parse_arguments(&args.arguments)?;
    let registry =
        setup::load_selected_registry(settings, PluginSelection::Only(plugin.clone()), out).await?;
    let entry = registry.find_plugin(plugin.as_str()).map_err(CommandFailure::from)?;
    let tools = affected_tools(entry, tool, &subject)?;
    // Without arguments the question is about the tool, not about a call that has none.
    let call_arguments = (args.arguments != NO_ARGUMENTS).then_some(&arguments);
    warn_of_obstacles(entry, &tools, &subject, call_arguments, out);
    let asker = find_asker(&registry, settings, args).await?;
    let tool_explanations = explain_tools(&registry, entry, &tools, &subject, (&arguments, &asker));
    // An allowed call still fails when it uses something that the plugin is not granted.
    let ungranted_plugin = matches!(subject, ExplainSubject::Call).then_some(&**entry);
    match args.output.output {
        OutputFormat::Json => out.print_json(
            &tool_explanations
                .iter()
                .map(|a| explanation_to_json(a, ungranted_plugin))
                .collect::<Value>(),
        ),
        OutputFormat::Text => {
            tool_explanations.iter().for_each(|a| print_explanation(a, ungranted_plugin, out))
        }
    }
    registry.shutdown().await;
    Ok(ExitStatus::Done)
}

/// The user that the arguments name, with the groups of the last log-in unless they name others.
async fn find_asker(
    registry: &Registry,
    settings: &HostSettings,
    args: &ExplainArgs,
) -> Result<Asker, CommandFailure> {
    let command_context = call::command_call_context();
    let Some(user) = args.user.clone() else {
        return Ok(Asker { context: command_context, login_groups: NO_LOGIN_GROUPS.clone() });
    };
    let names_groups = registry.gate().policy_store.current().policy.names_login_groups();
    let groups = match (args.login_groups.is_empty(), names_groups) {
        (true, true) => {
            let store = setup::open_store(settings)?;
            store.users.login_groups(&user).await.map_err(HostError::Store)?
        }
        _ => args.login_groups.clone(),
    };
    let context = ToolCallContext { user_id: Some(user), ..command_context };
    Ok(Asker { context, login_groups: LoginGroups::Known(groups) })
}

fn parse_target(text: &str) -> Result<(PluginName, Option<ToolId>), CommandFailure> {
    if text.contains('.') {
        let tool: ToolId = text
            .parse()
            .map_err(|error| CommandFailure::new(ExitStatus::Usage, format!("{error}")))?;
        return Ok((tool.plugin.clone(), Some(tool)));
    }
    Ok((super::parse_plugin_name(text)?, None))
}

fn subject_from_args(args: &ExplainArgs) -> Result<ExplainSubject, CommandFailure> {
    let path = |path: &String, access| ExplainSubject::Path(path.clone(), access);
    let subjects = [
        args.read.as_ref().map(|file| path(file, FsAccess::Read)),
        args.write.as_ref().map(|file| path(file, FsAccess::ReadWrite)),
        args.page.clone().map(ExplainSubject::Page),
        args.capability.map(ExplainSubject::Capability),
        args.net.as_deref().map(parse_request).transpose()?,
    ];
    Ok(subjects.into_iter().flatten().next().unwrap_or(ExplainSubject::Call))
}

/// Leaves the URL unparsed, because a decision about a repaired URL would not apply to this one.
fn parse_request(request: &str) -> Result<ExplainSubject, CommandFailure> {
    let parts = request.split_once(' ').filter(|(_, url)| url.contains("://"));
    parts.map(|(method, url)| ExplainSubject::Net(method.to_owned(), url.to_owned())).ok_or_else(
        || {
            let message = format!("{:?} is not a request", text::escape_excerpt(request, 80));
            let hint = "write the method and the full URL: \"GET https://example.org/path\"";
            CommandFailure::new(ExitStatus::Usage, message).with_hint(hint)
        },
    )
}

fn parse_arguments(text: &str) -> Result<Value, CommandFailure> {
    let value: Option<Value> = serde_json::from_str(text).ok();
    value.filter(Value::is_object).ok_or_else(|| {
        let message = format!("{:?} is not a JSON object", text::escape_excerpt(text, 80));
        CommandFailure::new(ExitStatus::Usage, message)
            .with_hint("write the arguments as '{\"name\": \"value\"}'")
    })
}

/// Returns the tools that the question is about: one, or all of the plugin if that makes sense.
fn affected_tools(
    entry: &RegisteredPlugin,
    tool: Option<ToolId>,
    subject: &ExplainSubject,
) -> Result<Vec<ToolId>, CommandFailure> {
    let all = || entry.tools().iter().map(|tool| tool.id.clone());
    match (tool, subject) {
        (Some(tool), _) if all().chain(role_runs(entry.name())).any(|known| known == tool) => {
            Ok(vec![tool])
        }
        (Some(tool), _) => {
            let names: Vec<String> = all().map(|tool| tool.to_string()).collect();
            let failure =
                CommandFailure::new(ExitStatus::Usage, format!("there is no tool {tool}"));
            Err(failure.with_hint(format!("there is {}", names.join(", "))))
        }
        (None, ExplainSubject::Call) => {
            let message = format!("{} is a plugin, and only tools are called", entry.name());
            let hint = "name the tool as PLUGIN.TOOL, or ask about something else, such as --net or \
                        --capability; `sallyport policy explain --help` lists all";
            Err(CommandFailure::new(ExitStatus::Usage, message).with_hint(hint))
        }
        (None, _) if entry.tools().is_empty() => Ok(role_runs(entry.name())),
        (None, _) => Ok(all().collect()),
    }
}

/// The runs of a plugin other than tool calls: those in a role.
fn role_runs(plugin: &PluginName) -> Vec<ToolId> {
    let run = |role| format!("{plugin}.{ROLE_PREFIX}{role}").parse().expect("it is a tool's id");
    ROLE_RUNS.into_iter().map(run).collect()
}

/// Warns about problems that would stop the call before the policy is evaluated.
fn warn_of_obstacles(
    entry: &RegisteredPlugin,
    tools: &[ToolId],
    subject: &ExplainSubject,
    arguments: Option<&Value>,
    out: &CliOutput,
) {
    if let Some((problem, hint)) = entry.availability().problem_and_hint(entry.name()) {
        out.print_warning(&format!("no tool of {} can be called: it {problem}", entry.name()));
        hint.iter().for_each(|hint| out.print_hint(hint));
    }
    if let (ExplainSubject::Call | ExplainSubject::Net(..), Some(facts)) =
        (subject, entry.component_facts())
    {
        facts.unrequested_imports.iter().for_each(|remark| out.print_warning(remark));
    }
    if let (ExplainSubject::Call, Some(denial)) = (subject, entry.unconditional_denial()) {
        out.print_warning(&format!("the call would fail before the policy is asked: {denial}"));
    }
    if let (ExplainSubject::Call, [tool], Some(arguments)) = (subject, tools, arguments)
        && let Err(argument_problems) = entry.check_arguments(tool, arguments)
    {
        let argument_problems = argument_problems.join("; ");
        out.print_warning(&format!(
            "the call would fail before the policy is asked: the arguments do not fit: {argument_problems}"
        ));
    }
}

/// Returns the explanations. Tools with the same explanation share one.
fn explain_tools(
    registry: &Registry,
    entry: &RegisteredPlugin,
    tools: &[ToolId],
    subject: &ExplainSubject,
    (arguments, asker): (&Value, &Asker),
) -> Vec<ToolExplanation> {
    let policy = registry.gate().policy_store.current().policy;
    let grant = entry.grant();
    let Asker { context, login_groups } = asker;
    let explain_tool = |tool: &ToolId| {
        let question =
            PolicyQuestion { tool, digest: entry.digest(), arguments, context, login_groups };
        subject.explain(&policy, &question, &grant)
    };
    let mut tool_explanations: Vec<ToolExplanation> = Vec::new();
    for tool in tools {
        let explanation = explain_tool(tool);
        match tool_explanations
            .iter_mut()
            .find(|tool_explanation| tool_explanation.explanation == explanation)
        {
            Some(tool_explanation) => tool_explanation.tool_names.push_str(&format!(", {tool}")),
            None => tool_explanations
                .push(ToolExplanation { tool_names: tool.to_string(), explanation }),
        }
    }
    tool_explanations
}

impl ExplainSubject {
    fn explain(
        &self,
        policy: &Policy,
        question: &PolicyQuestion<'_>,
        grant: &Grant,
    ) -> DecisionExplanation {
        match self {
            Self::Call => policy.explain_call(question, grant),
            Self::Net(method, url) => policy.explain_net(question, grant, method, url),
            Self::Path(path, wanted) => policy.explain_path(grant, path, *wanted),
            Self::Page(url) => policy.explain_page(question, grant, url),
            Self::Capability(capability) => policy.explain_capability(grant, *capability),
        }
    }
}

fn print_explanation(
    tool_explanation: &ToolExplanation,
    ungranted_plugin: Option<&RegisteredPlugin>,
    out: &CliOutput,
) {
    let ToolExplanation { tool_names, explanation } = tool_explanation;
    let decision = explanation.decision.as_str();
    out.print_text(&format!(
        "{tool_names}: {decision}, {}",
        text::escape_line(&explanation.reason)
    ));
    // A denied call never reaches the missing grants.
    let ungranted_plugin = ungranted_plugin.filter(|_| explanation.decision < Decision::Deny);
    if let Some(entry) = ungranted_plugin.filter(|entry| entry.grant().lacks_needed_request()) {
        out.print_text(&format!(
            "  but {} is not granted all that it requests, and what needs it is refused:",
            entry.name()
        ));
    }
    for line in ungranted_plugin.into_iter().flat_map(call_display::ungranted_lines) {
        out.print_text(&format!("  {line}"));
    }
    for step in &explanation.steps {
        let mark = if step.is_decisive { "→" } else { " " };
        out.print_text(&format!("  {mark} {}  {}", step.place, text::escape_line(&step.text)));
    }
    if let Some(fix) = &explanation.fix {
        out.print_text(&format!("  To allow it: {}", fix.command()));
    }
}

fn explanation_to_json(
    tool_explanation: &ToolExplanation,
    ungranted_plugin: Option<&RegisteredPlugin>,
) -> Value {
    let explanation = &tool_explanation.explanation;
    json!({
        "tools": tool_explanation.tool_names.split(", ").collect::<Vec<_>>(),
        "decision": explanation.decision,
        "reason": explanation.reason,
        "steps": explanation.steps.iter().map(step_json).collect::<Value>(),
        "fix": explanation.fix,
        "ungranted": ungranted_plugin.map(missing_requests),
    })
}

fn step_json(step: &ExplanationStep) -> Value {
    json!({
        "file": step.place.file,
        "line": step.place.line,
        "text": step.text,
        "won": step.is_decisive,
    })
}
