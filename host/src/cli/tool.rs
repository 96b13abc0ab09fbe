//! `sallyport tool list|show`: the tools that a model gets.

use clap::Subcommand;
use sallyport_contract::{Principal, ToolDescriptor, ToolId, text};
use sallyport_runtime::{
    config::ConfigFlags,
    registry::{self, CallCheck, Registry},
};
use sallyport_terminal::listing::ListRow;
use serde_json::json;

use super::{
    args::{OutputArgs, OutputFormat},
    exit::{CommandFailure, ExitStatus},
    name_kind::NameKind,
    output::CliOutput,
    setup,
};

#[derive(Debug, Subcommand)]
#[command(defer = true)]
pub(super) enum ToolCommand {
    /// List the tools; with --output json, the definitions that a model gets
    #[command(visible_alias = "ls")]
    List(OutputArgs),
    /// Check a call without making it: its arguments, its plugin's rules and the policy
    Check {
        /// The tool
        #[arg(value_name = "PLUGIN.TOOL", add = NameKind::Tool)]
        name: String,
        /// The arguments, as a JSON object
        #[arg(value_name = "JSON", default_value = "{}")]
        arguments: String,
        #[command(flatten)]
        output: OutputArgs,
    },
    /// Show one tool with the schema of its arguments
    Show {
        /// The tool
        #[arg(value_name = "PLUGIN.TOOL", add = NameKind::Tool)]
        name: String,
        #[command(flatten)]
        output: OutputArgs,
    },
}

pub(super) async fn run_tool_command(
    flags: &ConfigFlags,
    command: &ToolCommand,
    out: &CliOutput,
) -> Result<ExitStatus, CommandFailure> {
    let settings = setup::read_settings(flags)?;
    let registry = setup::load_registry_for_answer(&settings, out).await?;
    setup::print_load_problems(&registry, out);
    match command {
        ToolCommand::List(args) => match args.output {
            OutputFormat::Text => print_tools(&registry, out),
            OutputFormat::Json => out.print_json(&registry.tool_definitions()),
        },
        ToolCommand::Check { name, arguments, output } => {
            let id = parse_tool(name)?;
            let user = Principal::local();
            let check = registry.check_call(&user, id, arguments.clone()).await;
            let check = check.map_err(CommandFailure::from)?;
            match output.output {
                OutputFormat::Text => print_check(name, &check, out),
                OutputFormat::Json => out.print_json(&json!(check)),
            }
            registry.shutdown().await;
            return Ok(if check.valid { ExitStatus::Done } else { ExitStatus::Failed });
        }
        ToolCommand::Show { name, output } => {
            let id = parse_tool(name)?;
            let (_, tool) = registry.find_tool(&id).map_err(CommandFailure::from)?;
            match output.output {
                OutputFormat::Text => print_tool(tool, out),
                OutputFormat::Json => out.print_json(&registry::tool_definition(tool)),
            }
        }
    }
    registry.shutdown().await;
    Ok(ExitStatus::Done)
}

fn parse_tool(name: &str) -> Result<ToolId, CommandFailure> {
    name.parse().map_err(|error| CommandFailure::new(ExitStatus::Usage, format!("{error}")))
}

fn print_check(name: &str, check: &CallCheck, out: &CliOutput) {
    let name = text::escape_line(name);
    match (check.valid, check.blocked) {
        (true, _) if check.confirmations_required.is_empty() => {
            out.print_line(&format!("{name} may be called."));
        }
        (true, _) => out.print_line(&format!("{name} may be called after a confirmation:")),
        (false, true) => out.print_line(&format!("{name} is blocked:")),
        (false, false) => out.print_line(&format!("The arguments do not fit {name}:")),
    }
    for line in check.errors.iter().chain(&check.confirmations_required) {
        out.print_line(&format!("  {}", text::escape_line(line)));
    }
}

fn print_tools(registry: &Registry, out: &CliOutput) {
    let row = |tool: &ToolDescriptor| ListRow::new([&tool.id.to_string(), &tool.description]);
    out.print_list(&registry.tools().iter().map(row).collect::<Vec<_>>());
    if registry.tools().is_empty() {
        out.print_note("No tools found. Choose a folder of plugins with --plugin-dir.");
    }
}

pub(super) fn print_tool(tool: &ToolDescriptor, out: &CliOutput) {
    out.print_heading(&tool.id.to_string());
    out.print_line(&text::escape_multiline(&tool.description));
    let hints = [
        ("changes nothing", tool.hints.read_only),
        ("destructive", tool.hints.destructive),
        ("safe to repeat", tool.hints.idempotent),
        ("reaches other machines", tool.hints.open_world),
    ];
    let claims = hints.iter().filter(|(_, claim)| *claim == Some(true)).map(|(text, _)| *text);
    let claims: Vec<&str> = claims.collect();
    if !claims.is_empty() {
        out.print_line(&format!("The author marks it {}.", claims.join(", ")));
    }
    out.print_line("");
    out.print_heading("Arguments");
    out.print_json(&tool.parameters);
    if let Some(output) = &tool.output {
        out.print_line("");
        out.print_heading("Result");
        out.print_json(output);
    }
}
