//! `sallyport plugin list|show`: what is installed, what it asks for, what it gets.

use sallyport_contract::text;
use serde_json::{Value, json};

use super::{
    args::{Format, PluginCommand},
    compose,
    exit::{Exit, Failure},
    output::Output,
};
use crate::{
    config::Flags,
    registry::{Entry, Missing, Problem, State},
};

pub(super) async fn plugin(
    flags: &Flags,
    command: &PluginCommand,
    out: &Output,
) -> Result<Exit, Failure> {
    let settings = compose::settings(flags)?;
    let registry = compose::quiet_registry(&settings, out).await;
    match command {
        PluginCommand::List(args) => {
            let entries: Vec<&Entry> = registry.entries().collect();
            match args.output {
                Format::Text => list(&entries, registry.problems(), out),
                Format::Json => out.json(&list_json(&entries, registry.problems())),
            }
        }
        PluginCommand::Show { name, output } => {
            let entry = registry.plugin(name).map_err(Missing::into_failure)?;
            match output.output {
                Format::Text => show(entry, out),
                Format::Json => out.json(&entry_json(entry)),
            }
        }
    }
    registry.shutdown().await;
    Ok(Exit::Done)
}

fn list(entries: &[&Entry], problems: &[Problem], out: &Output) {
    if entries.is_empty() && problems.is_empty() {
        out.note("There is no plugin. Name a folder with --plugin-dir.");
    }
    let width = entries.iter().map(|entry| entry.name().as_str().len()).max().unwrap_or(0);
    for entry in entries {
        let state = match entry.state() {
            State::Ready => match entry.tools().len() {
                1 => "1 tool".to_owned(),
                n => format!("{n} tools"),
            },
            State::Disabled { reason } => format!("disabled: {}", text::one_line(reason)),
        };
        let version = text::one_line(&entry.manifest().version);
        let description = text::excerpt(&entry.manifest().description, 72);
        let line = format!("{version:8}  {state:9}  {description}");
        out.pair(entry.name().as_str(), width, line.trim_end());
    }
    for problem in problems {
        let name = problem.place.display().to_string();
        out.pair("rejected", width, &text::one_line(&format!("{name}: {}", problem.message)));
    }
}

fn show(entry: &Entry, out: &Output) {
    let manifest = entry.manifest();
    out.heading(&format!("{} {}", entry.name(), text::one_line(&manifest.version)));
    if !manifest.description.is_empty() {
        out.line(&text::visible(&manifest.description));
    }
    out.line("");
    out.pair("component", 9, &entry.component().display().to_string());
    out.pair("digest", 9, entry.digest());
    let state = match entry.state() {
        State::Ready => "ready".to_owned(),
        State::Disabled { reason } => format!("disabled: {}", text::one_line(reason)),
    };
    out.pair("state", 9, &state);
    section(
        "Tools",
        entry
            .tools()
            .iter()
            .map(|tool| format!("{}  {}", tool.id.tool, text::excerpt(&tool.description, 72))),
        out,
    );
    section("Requests", requests(entry), out);
    let powers = entry.grant().powers();
    section("Granted by the policy", powers.iter().map(|power| text::one_line(power)), out);
    section("Worth a look", entry.grant().notes().iter().map(|note| text::one_line(note)), out);
}

fn section(title: &str, lines: impl Iterator<Item = String>, out: &Output) {
    out.line("");
    out.heading(title);
    let mut any = false;
    for line in lines {
        any = true;
        out.line(&format!("  {line}"));
    }
    if !any {
        out.line("  nothing");
    }
}

fn requests(entry: &Entry) -> impl Iterator<Item = String> {
    let request = &entry.manifest().request;
    let net = request.net.iter().map(|r| (r.allow.to_string(), &r.why));
    let fs = request.fs.iter().map(|r| {
        let path = r.path.as_ref().map_or("a folder".into(), |path| path.display().to_string());
        (format!("{} {path}", r.access.word()), &r.why)
    });
    let env = request.env.iter().map(|r| (format!("the variable {}", r.name), &r.why));
    net.chain(fs).chain(env).map(|(what, why)| text::one_line(&format!("{what}  ({why})")))
}

fn list_json(entries: &[&Entry], problems: &[Problem]) -> Value {
    let rejected = problems.iter().map(|problem| {
        json!({ "place": problem.place, "message": problem.message, "hint": problem.hint })
    });
    json!({
        "plugins": entries.iter().map(|entry| entry_json(entry)).collect::<Value>(),
        "rejected": rejected.collect::<Value>(),
    })
}

fn entry_json(entry: &Entry) -> Value {
    let (state, reason) = match entry.state() {
        State::Ready => ("ready", None),
        State::Disabled { reason } => ("disabled", Some(reason)),
    };
    json!({
        "name": entry.name(),
        "version": entry.manifest().version,
        "description": entry.manifest().description,
        "component": entry.component(),
        "digest": entry.digest(),
        "state": state,
        "reason": reason,
        "tools": entry.tools().iter().map(|tool| &tool.id.tool).collect::<Vec<_>>(),
        "requests": requests(entry).collect::<Vec<_>>(),
        "granted": entry.grant().powers(),
        "notes": entry.grant().notes(),
    })
}

impl Missing {
    /// The words for a command that was asked for something that is not there.
    pub(super) fn into_failure(self) -> Failure {
        match self {
            Self::Unknown { message, near } => {
                let failure = Failure::new(Exit::Usage, message);
                match near {
                    Some(near) => failure.with_hint(format!("did you mean {near}?")),
                    None => failure.with_hint("`sallyport tool list` shows what there is"),
                }
            }
            Self::Unusable { message, hint, rejected } => {
                let exit = if rejected { Exit::PluginRejected } else { Exit::Policy };
                Failure { hint, ..Failure::new(exit, message) }
            }
        }
    }
}
