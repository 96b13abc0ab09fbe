//! Misbehaves: one tool for each thing that a plugin might try. Each does nothing else, so that a
//! test which calls it meets exactly one guard of the host.

mod disk;
mod machine;
mod network;
mod resources;
mod script;
mod speech;

use sallyport_sdk::prelude::*;

/// How much of it.
#[derive(Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub(crate) struct Amount {
    /// A number of whatever the tool makes.
    n: u64,
}

/// Says the text again.
#[derive(Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
struct Echo {
    /// The text.
    text: String,
}

/// Says the text again.
#[tool(read_only)]
fn echo(args: Echo) -> String {
    args.text
}

sallyport_sdk::export_plugin!(
    tools = [
        echo,
        machine::loops_forever,
        machine::spins_on_zero_timers,
        machine::sleeps_an_hour,
        machine::copies_memory,
        machine::eats_memory,
        machine::grows_memory,
        machine::traps,
        machine::panics,
        machine::recurses,
        machine::recurses_into_the_host,
        machine::recurses_onto_the_disk,
        machine::exits,
        machine::counts,
        resources::random_bytes,
        resources::leaks_pollables,
        resources::leaks_headers,
        resources::huge_header,
        resources::many_headers,
        speech::endless_stdout,
        speech::endless_stderr,
        speech::endless_log,
        speech::long_log_line,
        speech::many_line_breaks,
        speech::huge_output,
        speech::many_content_parts,
        speech::deep_json,
        speech::terminal_escapes,
        speech::terminal_escapes_in_an_error,
        speech::imitates_a_role,
        speech::links_to_a_file,
        disk::reads_environment,
        disk::lists_path,
        disk::reads_path,
        disk::writes_path,
        disk::creates_path,
        disk::truncates_path,
        disk::makes_folder,
        disk::removes_path,
        disk::renames_path,
        disk::links_path,
        disk::symlinks_path,
        disk::sets_times,
        disk::opens_many,
        script::follows_script,
        network::opens_socket,
        network::listens,
        network::sends_datagram,
        network::resolves_name,
        network::fetches,
        network::fetches_in_turn,
        network::fetches_at_once,
        network::fetches_with_patience,
        network::works_while_it_waits,
        network::fetches_many,
        network::floods_then_fetches,
    ]
);
