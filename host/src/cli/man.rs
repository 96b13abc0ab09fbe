//! `sallyport man`: manual pages, generated from the definition of the help.

use std::{fs, path::Path};

use clap_mangen::Man;

use super::{
    exit::{CommandFailure, ExitStatus},
    help,
    output::CliOutput,
};

/// Writes a page per command into a folder. Without a folder, prints the first page.
pub(super) fn run_man_command(
    folder: Option<&Path>,
    out: &CliOutput,
) -> Result<ExitStatus, CommandFailure> {
    let Some(folder) = folder else {
        let mut page = Vec::new();
        Man::new(help::command()).render(&mut page)?;
        out.print_generated(&page);
        return Ok(ExitStatus::Done);
    };
    let unwritable = |error: std::io::Error| {
        CommandFailure::new(
            ExitStatus::Failed,
            format!("cannot write to {}: {error}", folder.display()),
        )
        .with_hint("choose a folder that you can write to")
    };
    fs::create_dir_all(folder).map_err(unwritable)?;
    clap_mangen::generate_to(help::command(), folder).map_err(unwritable)?;
    out.print_note(&format!("Wrote the manual to {}. Start with sallyport.1.", folder.display()));
    Ok(ExitStatus::Done)
}
