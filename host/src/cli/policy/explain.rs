//! `sallyport policy explain`: what the policy decides about one situation, and why.

use sallyport_contract::{Decision, PluginName, ToolId, text};
use sallyport_policy::{
    Capability, DecisionExplanation, ExplanationStep, FsAccess, Grant, Policy, PolicyQuestion,
    question::{ROLE_PREFIX, ROLE_RUNS},
};
use sallyport_runtime::{
    config::HostSettings,
    registry::{PluginSelection, RegisteredPlugin, Registry},
};
use serde_json::{Value, json};
use url::Url;

use super::args::ExplainArgs;
use crate::cli::{
    args::Format,
    call, compose,
    exit::{Exit, Failure},
    output::Output,
    show,
};

/// The subject of a question.
enum Situation {
    /// A call of the tool.
    Call,
    /// A request during a call: its method and URL, as written by the user.
    Net(String, String),
    /// An access to a file.
    Path(String, FsAccess),
    /// A page that the plugin opens in the browser.
    OpenUrl(Url),
    /// An action that needs a capability.
    Capability(Capability),
}

/// One explanation, and the tools that it applies to.
struct Answer {
    who: String,
    explanation: DecisionExplanation,
}

pub(super) async fn explain(
    settings: &HostSettings,
    args: &ExplainArgs,
    out: &Output,
) -> Result<Exit, Failure> {
    let (plugin, tool) = target(&args.target)?;
    let situation = situation(args)?;
    let arguments = arguments(&args.arguments)?;
    let registry =
        compose::registry_of(settings, PluginSelection::Only(plugin.clone()), out).await?;
    let entry = registry.find_plugin(plugin.as_str()).map_err(Failure::from)?;
    let tools = tools(entry, tool, &situation)?;
    remark(entry, &tools, &situation, &arguments, out);
    let answers = answers(&registry, entry, &tools, &situation, &arguments);
    // An allowed call still fails when it uses something that the plugin is not granted.
    let lacking = matches!(situation, Situation::Call).then_some(entry);
    match args.output.output {
        Format::Json => out.json(&answers.iter().map(|a| to_json(a, lacking)).collect::<Value>()),
        Format::Text => answers.iter().for_each(|a| print(a, lacking, settings, out)),
    }
    registry.shutdown().await;
    Ok(Exit::Done)
}

fn target(text: &str) -> Result<(PluginName, Option<ToolId>), Failure> {
    if text.contains('.') {
        let tool: ToolId =
            text.parse().map_err(|error| Failure::new(Exit::Usage, format!("{error}")))?;
        return Ok((tool.plugin.clone(), Some(tool)));
    }
    Ok((super::plugin_name(text)?, None))
}

fn situation(args: &ExplainArgs) -> Result<Situation, Failure> {
    let path = |path: &String, access| Situation::Path(path.clone(), access);
    let asked = [
        args.read.as_ref().map(|file| path(file, FsAccess::Read)),
        args.write.as_ref().map(|file| path(file, FsAccess::ReadWrite)),
        args.open_url.clone().map(Situation::OpenUrl),
        args.capability.map(Situation::Capability),
        args.net.as_deref().map(request_of).transpose()?,
    ];
    Ok(asked.into_iter().flatten().next().unwrap_or(Situation::Call))
}

/// Leaves the URL unparsed, because a decision about a repaired URL would not apply to this one.
fn request_of(request: &str) -> Result<Situation, Failure> {
    let parts = request.split_once(' ').filter(|(_, url)| url.contains("://"));
    parts.map(|(method, url)| Situation::Net(method.to_owned(), url.to_owned())).ok_or_else(|| {
        let message = format!("{:?} is no request", text::escape_excerpt(request, 80));
        let hint = "write the method and the full URL: \"GET https://example.org/path\"";
        Failure::new(Exit::Usage, message).with_hint(hint)
    })
}

fn arguments(text: &str) -> Result<Value, Failure> {
    let value: Option<Value> = serde_json::from_str(text).ok();
    value.filter(Value::is_object).ok_or_else(|| {
        let message = format!("{:?} is not a JSON object", text::escape_excerpt(text, 80));
        Failure::new(Exit::Usage, message)
            .with_hint("write the arguments as '{\"name\": \"value\"}'")
    })
}

/// Returns the tools that the question is about: one, or all of the plugin if that makes sense.
fn tools(
    entry: &RegisteredPlugin,
    tool: Option<ToolId>,
    situation: &Situation,
) -> Result<Vec<ToolId>, Failure> {
    let all = || entry.tools().iter().map(|tool| tool.id.clone());
    match (tool, situation) {
        (Some(tool), _) if all().chain(runs(entry.name())).any(|known| known == tool) => {
            Ok(vec![tool])
        }
        (Some(tool), _) => {
            let names: Vec<String> = all().map(|tool| tool.to_string()).collect();
            let failure = Failure::new(Exit::Usage, format!("there is no tool {tool}"));
            Err(failure.with_hint(format!("there is {}", names.join(", "))))
        }
        (None, Situation::Call) => {
            let message = format!("{} is a plugin, and only tools are called", entry.name());
            let hint = "name the tool as PLUGIN.TOOL, or ask with --net, --read, --write, --open-url or \
                        --capability";
            Err(Failure::new(Exit::Usage, message).with_hint(hint))
        }
        (None, _) if entry.tools().is_empty() => Ok(runs(entry.name())),
        (None, _) => Ok(all().collect()),
    }
}

/// The runs of a plugin other than tool calls: those in a role.
fn runs(plugin: &PluginName) -> Vec<ToolId> {
    let run = |role| format!("{plugin}.{ROLE_PREFIX}{role}").parse().expect("it is a tool's id");
    ROLE_RUNS.into_iter().map(run).collect()
}

/// Warns about problems that would stop the call before the policy is evaluated.
fn remark(
    entry: &RegisteredPlugin,
    tools: &[ToolId],
    situation: &Situation,
    arguments: &Value,
    out: &Output,
) {
    if let Some((trouble, hint)) = entry.availability().problem_and_hint(entry.name()) {
        out.warn(&format!("no tool of {} can be called: it {trouble}", entry.name()));
        hint.iter().for_each(|hint| out.hint(hint));
    }
    if let (Situation::Call, Some(denial)) = (situation, entry.unconditional_denial()) {
        out.warn(&format!(
            "the call would fail before the policy is asked: {}: {}",
            denial.what, denial.why
        ));
    }
    if let (Situation::Call, [tool]) = (situation, tools)
        && let Err(complaints) = entry.check_arguments(tool, arguments)
    {
        let complaints = complaints.join("; ");
        out.warn(&format!(
            "the call would fail before the policy is asked: the arguments do not fit: {complaints}"
        ));
    }
}

/// Returns the explanations. Tools with the same explanation share one.
fn answers(
    registry: &Registry,
    entry: &RegisteredPlugin,
    tools: &[ToolId],
    situation: &Situation,
    arguments: &Value,
) -> Vec<Answer> {
    let policy = registry.gate().standing.current().policy;
    let (grant, context) = (entry.grant(), call::context());
    let explained = |tool: &ToolId| {
        let question =
            PolicyQuestion { tool, digest: entry.digest(), arguments, context: &context };
        situation.explained(&policy, &question, &grant)
    };
    let mut answers: Vec<Answer> = Vec::new();
    for tool in tools {
        let explanation = explained(tool);
        match answers.iter_mut().find(|answer| answer.explanation == explanation) {
            Some(answer) => answer.who.push_str(&format!(", {tool}")),
            None => answers.push(Answer { who: tool.to_string(), explanation }),
        }
    }
    answers
}

impl Situation {
    fn explained(
        &self,
        policy: &Policy,
        question: &PolicyQuestion<'_>,
        grant: &Grant,
    ) -> DecisionExplanation {
        match self {
            Self::Call => policy.explain_call(question, grant),
            Self::Net(method, url) => policy.explain_net(question, grant, method, url),
            Self::Path(path, wanted) => policy.explain_path(grant, path, *wanted),
            Self::OpenUrl(url) => policy.explain_open_url(question, grant, url),
            Self::Capability(capability) => policy.explain_capability(grant, *capability),
        }
    }
}

fn print(
    answer: &Answer,
    lacking: Option<&RegisteredPlugin>,
    settings: &HostSettings,
    out: &Output,
) {
    let Answer { who, explanation } = answer;
    let decision = explanation.decision.as_str();
    out.line(&format!("{who}: {decision}, {}", text::escape_line(&explanation.reason)));
    // A denied call never reaches the missing grants.
    let lacking = lacking.filter(|_| explanation.decision < Decision::Deny);
    if let Some(entry) = lacking.filter(|entry| entry.grant().lacks_needed_request()) {
        out.line(&format!(
            "  but {} is not granted all that it requests, and what needs it is refused:",
            entry.name()
        ));
    }
    for line in lacking.into_iter().flat_map(show::ungranted) {
        out.line(&format!("  {line}"));
    }
    for step in &explanation.steps {
        let mark = if step.won { "→" } else { " " };
        out.line(&format!("  {mark} {}  {}", step.place, text::escape_line(&step.text)));
    }
    if let Some(fix) = &explanation.fix {
        let file = settings.policy.user_file();
        out.line(&format!("  To allow it, {}:", show::where_to_put(fix, file)));
        fix.lines().for_each(|line| out.line(&format!("    {line}")));
    }
}

fn to_json(answer: &Answer, lacking: Option<&RegisteredPlugin>) -> Value {
    let explanation = &answer.explanation;
    json!({
        "tools": answer.who.split(", ").collect::<Vec<_>>(),
        "decision": explanation.decision,
        "reason": explanation.reason,
        "steps": explanation.steps.iter().map(step_json).collect::<Value>(),
        "fix": explanation.fix,
        "ungranted": lacking.map(show::ungranted_json),
    })
}

fn step_json(step: &ExplanationStep) -> Value {
    json!({
        "file": step.place.file,
        "line": step.place.line,
        "text": step.text,
        "won": step.won,
    })
}
