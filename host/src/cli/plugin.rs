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
    config::{Flags, Settings},
    lock::{Lock, Match},
    registry::{Entry, Missing, Problem, Registry, State, requests},
};

pub(super) async fn plugin(
    flags: &Flags,
    command: &PluginCommand,
    out: &Output,
) -> Result<Exit, Failure> {
    let settings = compose::settings(flags)?;
    let registry = compose::registry(&settings, out).await?;
    match command {
        PluginCommand::List(args) => {
            let entries: Vec<&Entry> = registry.entries().collect();
            match args.output {
                Format::Text => list(&entries, registry.problems(), out),
                Format::Json => out.json(&list_json(&entries, registry.problems())),
            }
        }
        PluginCommand::Accept { names } => {
            names.iter().try_for_each(|name| accept(&registry, &settings, name, out))?;
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
            State::Changed { differences } => {
                format!("changed: {}", text::one_line(&differences.join("; ")))
            }
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
        State::Changed { differences } => {
            format!("changed: {}", text::one_line(&differences.join("; ")))
        }
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
    section("Requests", request_lines(entry), out);
    let powers = entry.grant().powers();
    section("Granted by the policy", powers.iter().map(|power| text::one_line(power)), out);
    section("Worth a look", entry.grant().notes().iter().map(|note| text::one_line(note)), out);
}

/// Agrees to a plugin as it is now. A changed one has only been asked for its tools.
fn accept(
    registry: &Registry,
    settings: &Settings,
    name: &str,
    out: &Output,
) -> Result<(), Failure> {
    let entry = registry.plugin(name).map_err(Missing::into_failure)?;
    let lock = Lock::read(&settings.paths.lock())?;
    match lock.compare(entry.name(), &entry.pin()) {
        Match::Same => {
            out.line(&format!("{name} is what was agreed to already."));
            return Ok(());
        }
        Match::New => out.line(&format!("{name} is agreed to as it is.")),
        Match::Changed(differences) => {
            out.line(&format!("{name} is agreed to as it is now:"));
            differences.iter().for_each(|line| out.line(&format!("  {}", text::one_line(line))));
        }
    }
    lock.accept([(entry.name().clone(), entry.pin())])?;
    compose::record_policy(settings, entry.name(), "is agreed to as it is now")
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

fn request_lines(entry: &Entry) -> impl Iterator<Item = String> {
    let requests = requests(entry.manifest()).into_iter();
    requests.map(|(what, why)| text::one_line(&format!("{what}  ({why})")))
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
        State::Disabled { reason } => ("disabled", Some(reason.clone())),
        State::Changed { differences } => ("changed", Some(differences.join("; "))),
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
        "requests": request_lines(entry).collect::<Vec<_>>(),
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
