//! `sallyport man`: manual pages, generated from the definition of the help.

use std::{fs, path::Path};

use clap::CommandFactory;
use clap_mangen::Man;

use super::{
    args::Args,
    exit::{Exit, Failure},
    output::Output,
};

/// Writes a page per command into a folder. Without a folder, prints the first page.
pub(super) fn man(folder: Option<&Path>, out: &Output) -> Result<Exit, Failure> {
    let Some(folder) = folder else {
        let mut page = Vec::new();
        Man::new(Args::command()).render(&mut page)?;
        out.generated(&page);
        return Ok(Exit::Done);
    };
    let unwritable = |error: std::io::Error| {
        Failure::new(Exit::Failed, format!("cannot write to {}: {error}", folder.display()))
            .with_hint("choose a folder that you can write to")
    };
    fs::create_dir_all(folder).map_err(unwritable)?;
    clap_mangen::generate_to(Args::command(), folder).map_err(unwritable)?;
    out.note(&format!("Wrote the manual to {}. Start with sallyport.1.", folder.display()));
    Ok(Exit::Done)
}
