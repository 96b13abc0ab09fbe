//! Files and the environment: plain attempts, with the error as the system gives it.
#![expect(clippy::disallowed_methods, reason = "a guest looks at whatever it can see")]

use std::{fs, io};

use sallyport_sdk::prelude::*;
use wasip2::filesystem::{
    preopens::get_directories,
    types::{Descriptor, NewTimestamp, PathFlags},
};

/// A path.
#[derive(Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub(crate) struct OnePath {
    /// The path, as the guest sees it.
    pub(crate) path: String,
}

/// Two paths.
#[derive(Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub(crate) struct TwoPaths {
    /// What is there.
    from: String,
    /// What shall be there.
    to: String,
}

type Attempt<T> = Result<T, ToolError>;

fn told<T>(result: io::Result<T>) -> Attempt<T> {
    result.map_err(|error| ToolError::Failed(format!("{error}")))
}

/// Tells the whole environment and all arguments.
#[tool]
pub(crate) fn reads_environment() -> Value {
    let env: std::collections::BTreeMap<String, String> = std::env::vars().collect();
    let folders: Vec<String> = get_directories().into_iter().map(|(_, name)| name).collect();
    json!({
        "env": env,
        "args": std::env::args().collect::<Vec<_>>(),
        "folder": wasip2::cli::environment::initial_cwd(),
        "folders": folders,
    })
}

/// Lists a folder.
#[tool]
pub(crate) fn lists_path(args: OnePath) -> Attempt<Vec<String>> {
    let entries = told(fs::read_dir(args.path))?;
    Ok(entries.flatten().map(|entry| entry.file_name().to_string_lossy().into_owned()).collect())
}

/// Reads a file.
#[tool]
pub(crate) fn reads_path(args: OnePath) -> Attempt<String> {
    told(fs::read(args.path)).map(|bytes| String::from_utf8_lossy(&bytes).into_owned())
}

/// Writes into a file that is there.
#[tool]
pub(crate) fn writes_path(args: OnePath) -> Attempt<()> {
    let mut file = told(fs::OpenOptions::new().write(true).open(args.path))?;
    told(io::Write::write_all(&mut file, b"overwritten"))
}

/// Makes a file.
#[tool]
pub(crate) fn creates_path(args: OnePath) -> Attempt<()> {
    told(fs::write(args.path, "created"))
}

/// Empties a file.
#[tool]
pub(crate) fn truncates_path(args: OnePath) -> Attempt<()> {
    told(fs::OpenOptions::new().read(true).write(true).truncate(true).open(args.path)).map(drop)
}

/// Makes a folder.
#[tool]
pub(crate) fn makes_folder(args: OnePath) -> Attempt<()> {
    told(fs::create_dir(args.path))
}

/// Removes a file or an empty folder.
#[tool]
pub(crate) fn removes_path(args: OnePath) -> Attempt<()> {
    told(fs::remove_file(&args.path).or_else(|_| fs::remove_dir(&args.path)))
}

/// Renames.
#[tool]
pub(crate) fn renames_path(args: TwoPaths) -> Attempt<()> {
    told(fs::rename(args.from, args.to))
}

/// Makes a hard link.
#[tool]
pub(crate) fn links_path(args: TwoPaths) -> Attempt<()> {
    told(fs::hard_link(args.from, args.to))
}

/// Makes a symbolic link; `from` is what it says.
#[tool]
pub(crate) fn symlinks_path(args: TwoPaths) -> Attempt<()> {
    let (folder, name) = granted(&args.to)?;
    folder.symlink_at(&args.from, &name).map_err(|error| ToolError::Failed(format!("{error:?}")))
}

/// Sets the times of a file to 1970.
#[tool]
pub(crate) fn sets_times(args: OnePath) -> Attempt<()> {
    let (folder, name) = granted(&args.path)?;
    let now = NewTimestamp::Timestamp(wasip2::clocks::wall_clock::Datetime {
        seconds: 0,
        nanoseconds: 0,
    });
    folder
        .set_times_at(PathFlags::empty(), &name, now, now)
        .map_err(|error| ToolError::Failed(format!("{error:?}")))
}

/// Opens a file again and again and closes it never.
#[tool]
pub(crate) fn opens_many(args: OnePath) -> Attempt<usize> {
    let mut held = Vec::new();
    loop {
        match fs::File::open(&args.path) {
            Ok(file) => held.push(file),
            Err(error) => {
                return Err(ToolError::Failed(format!("{} are open: {error}", held.len())));
            }
        }
    }
}

/// The granted folder around a path, and the rest of the path.
fn granted(path: &str) -> Attempt<(Descriptor, String)> {
    let mut folders = get_directories().into_iter();
    folders
        .find_map(|(folder, name)| {
            let rest = path.strip_prefix(&name)?.trim_start_matches('/').to_owned();
            Some((folder, rest))
        })
        .ok_or_else(|| ToolError::NotFound("no granted folder is around it".to_owned()))
}
