//! The link of the released program, kept so that it can be done again with other arguments: compiling
//! takes minutes, and linking half a second.
//!
//! Rustc starts this program as its linker. It keeps the arguments and copies of the files that rustc
//! removes afterwards, and then starts the real linker.

use std::{
    env, fs,
    os::unix::fs::symlink,
    path::{Path, PathBuf},
    process::{Command, ExitCode},
};

use anyhow::{Context, Result, ensure};

use crate::process::{run_command, run_for_status};

/// The linker that rustc starts by itself. A link of this name starts this program, because rustc
/// chooses the form of the arguments by the name.
const LINKER: &str = "cc";

/// The variable with the folder that keeps the link.
const FOLDER: &str = "SALLYPORT_XTASK_LINK";

/// The arguments, each on a line.
const ARGUMENTS: &str = "arguments";

/// The argument that removes the names of functions.
const STRIP: &str = "-Wl,--strip-all";

/// A folder that keeps a link.
pub(super) struct KeptLink {
    folder: PathBuf,
}

impl KeptLink {
    /// The kept link of a folder, which is made if it is missing.
    pub(super) fn new(folder: PathBuf) -> Result<Self> {
        fs::create_dir_all(&folder)?;
        let linker = folder.join(LINKER);
        if linker.symlink_metadata().is_ok() {
            fs::remove_file(&linker)?;
        }
        symlink(env::current_exe()?, linker)?;
        Ok(Self { folder })
    }

    /// Adds to a `cargo rustc` command that the link is kept. It ends with arguments of rustc.
    pub(super) fn keep(&self, command: &mut Command) {
        let linker = self.folder.join(LINKER);
        command.env(FOLDER, &self.folder).args(["--", "-C"]);
        command.arg(format!("linker={}", linker.display()));
    }

    /// Whether a link has been kept.
    pub(super) fn is_kept(&self) -> bool {
        self.folder.join(ARGUMENTS).is_file()
    }

    /// Whether a program has been linked after the link was kept.
    pub(super) fn is_older_than(&self, program: &Path) -> bool {
        let changed = |file: &Path| fs::metadata(file)?.modified();
        matches!(
            (changed(&self.folder.join(ARGUMENTS)), changed(program)),
            (Ok(kept), Ok(linked)) if kept < linked
        )
    }

    /// Whether the linker can put functions in an order.
    pub(super) fn has_order(&self) -> Result<bool> {
        Ok(self.arguments()?.iter().any(|argument| argument == "-fuse-ld=lld"))
    }

    /// Links again, with the names of functions.
    pub(super) fn link_with_names(&self, program: &Path) -> Result<()> {
        let mut arguments = self.arguments()?;
        arguments.retain(|argument| argument != STRIP);
        link(arguments, program)
    }

    /// Links again, with the functions that a file names at the front and in its order. Names that
    /// the program does not have are passed over.
    pub(super) fn link_in_order(&self, program: &Path, order: &Path) -> Result<()> {
        let mut arguments = self.arguments()?;
        arguments.push(format!("-Wl,--symbol-ordering-file={}", order.display()));
        arguments.push("-Wl,--no-warn-symbol-ordering".to_owned());
        link(arguments, program)
    }

    fn arguments(&self) -> Result<Vec<String>> {
        let text = fs::read_to_string(self.folder.join(ARGUMENTS))?;
        Ok(text.lines().map(str::to_owned).collect())
    }
}

fn link(mut arguments: Vec<String>, program: &Path) -> Result<()> {
    let output = arguments.iter().position(|argument| argument == "-o");
    let output = output.context("the kept link has no output")? + 1;
    arguments[output] = program.to_str().context("the path of the program is no text")?.to_owned();
    run_command(Command::new(LINKER).args(arguments))
}

/// Links if rustc started this program as its linker.
pub(crate) fn run_if_linker() -> Option<ExitCode> {
    let folder = PathBuf::from(env::var_os(FOLDER)?);
    let name = PathBuf::from(env::args_os().next()?);
    if name.file_name()? != LINKER {
        return None;
    }
    let arguments: Vec<String> = env::args().skip(1).collect();
    let linked = keep_link(&folder, &arguments)
        .and_then(|()| run_for_status(Command::new(LINKER).args(&arguments)));
    Some(match linked {
        Ok(status) if status.success() => ExitCode::SUCCESS,
        Ok(_) => ExitCode::FAILURE,
        Err(error) => {
            eprintln!("error: {error:#}");
            ExitCode::FAILURE
        }
    })
}

/// Keeps the arguments, and the files among them that rustc has made for this link alone.
fn keep_link(folder: &Path, arguments: &[String]) -> Result<()> {
    let _ = fs::remove_file(folder.join(ARGUMENTS));
    let inputs = folder.join("inputs");
    if inputs.exists() {
        fs::remove_dir_all(&inputs)?;
    }
    fs::create_dir_all(&inputs)?;
    let mut kept = Vec::new();
    for argument in arguments {
        ensure!(!argument.contains('\n'), "an argument of the linker has two lines");
        let file = Path::new(argument);
        let is_input = file.is_absolute() && file.is_file();
        kept.push(match file.file_name().filter(|_| is_input) {
            Some(name) => {
                let copy = inputs.join(name);
                ensure!(!copy.exists(), "two inputs of the linker are called {name:?}");
                fs::copy(file, &copy)?;
                copy.to_str().context("the path of an input is no text")?.to_owned()
            }
            None => argument.clone(),
        });
    }
    Ok(fs::write(folder.join(ARGUMENTS), kept.join("\n"))?)
}
