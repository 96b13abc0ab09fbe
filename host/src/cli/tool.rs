//! `sallyport tool list|show`: the tools that a model gets.

use sallyport_contract::{ToolDescriptor, ToolId, Toolbox, text};
use sallyport_runtime::{
    config::ConfigFlags,
    registry::{self, Registry},
};

use super::{
    args::{Format, ToolCommand},
    compose,
    exit::{Exit, Failure},
    output::Output,
};

pub(super) async fn tool(
    flags: &ConfigFlags,
    command: &ToolCommand,
    out: &Output,
) -> Result<Exit, Failure> {
    let settings = compose::settings(flags)?;
    let registry = compose::registry(&settings, out).await?;
    compose::show_problems(&registry, out);
    match command {
        ToolCommand::List(args) => match args.output {
            Format::Text => list(&registry, out),
            Format::Json => out.json(&registry.tool_definitions()),
        },
        ToolCommand::Show { name, output } => {
            let id: ToolId = name.parse().map_err(|e| Failure::new(Exit::Usage, format!("{e}")))?;
            let (_, tool) = registry.find_tool(&id).map_err(Failure::from)?;
            match output.output {
                Format::Text => show(tool, out),
                Format::Json => out.json(&registry::tool_definition(tool)),
            }
        }
    }
    registry.shutdown().await;
    Ok(Exit::Done)
}

fn list(registry: &Registry, out: &Output) {
    let width = registry.tools().iter().map(|tool| tool.id.to_string().len()).max().unwrap_or(0);
    for tool in registry.tools() {
        out.pair(&tool.id.to_string(), width, &text::escape_excerpt(&tool.description, 90));
    }
    if registry.tools().is_empty() {
        out.note("No tools found. Choose a folder of plugins with --plugin-dir.");
    }
}

fn show(tool: &ToolDescriptor, out: &Output) {
    out.heading(&tool.id.to_string());
    out.line(&text::escape_multiline(&tool.description));
    let hints = [
        ("changes nothing", tool.hints.read_only),
        ("destructive", tool.hints.destructive),
        ("safe to repeat", tool.hints.idempotent),
        ("reaches other machines", tool.hints.open_world),
    ];
    let claims = hints.iter().filter(|(_, claim)| *claim == Some(true)).map(|(text, _)| *text);
    let claims: Vec<&str> = claims.collect();
    if !claims.is_empty() {
        out.line(&format!("The author marks it {}.", claims.join(", ")));
    }
    out.line("");
    out.heading("Arguments");
    out.json(&tool.parameters);
    if let Some(output) = &tool.output {
        out.line("");
        out.heading("Result");
        out.json(output);
    }
}
