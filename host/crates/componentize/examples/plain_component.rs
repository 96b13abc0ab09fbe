//! `plain_component LANGUAGE WIT SOURCES OUT COMPILER`: makes a component of the world `plain` as
//! someone would who has never heard of Sallyport, with the generator of C or Go.
//!
//! `cargo xtask languages` runs it to show that such a component is a plugin.
#![expect(clippy::print_stderr, reason = "a program of its own says why it failed")]
#![expect(clippy::disallowed_methods, reason = "it runs the compiler that the task names")]

use std::{
    env,
    ffi::OsStr,
    fs,
    path::Path,
    process::{Command, ExitCode},
};

use anyhow::{Context, Result, bail, ensure};
use sallyport_componentize::{GO_VARIABLES, encode_world, go_runtime};
use wit_bindgen_core::{Files, WorldGenerator};
use wit_parser::{Resolve, WorldId};

/// The module of the Go bindings' runtime.
const GO_RUNTIME_MODULE: &str = "go.bytecodealliance.org/pkg";

fn main() -> ExitCode {
    match make_component() {
        Ok(()) => ExitCode::SUCCESS,
        Err(error) => {
            eprintln!("error: {error:#}");
            ExitCode::FAILURE
        }
    }
}

fn make_component() -> Result<()> {
    let args: Vec<String> = env::args().skip(1).collect();
    let [language, wit, sources, out, compiler] = args.as_slice() else {
        bail!("usage: plain_component c|go WIT SOURCES OUT COMPILER");
    };
    let (mut resolve, world) = resolve_plain(Path::new(wit))?;
    let sources = Path::new(sources);
    match language.as_str() {
        "c" => {
            generate(wit_bindgen_c::Opts::default().build(), &mut resolve, world, sources)?;
            compile_c(sources, compiler)?;
        }
        "go" => {
            let options = wit_bindgen_go::Opts {
                format: wit_bindgen_go::Format::False,
                pkg_name: Some("plain".to_owned()),
                ..Default::default()
            };
            generate(options.build(), &mut resolve, world, sources)?;
            write_go_runtime(&sources.join("runtime"))?;
            compile_go(sources, compiler)?;
        }
        other => bail!("there is no generator for {other}"),
    }
    let core = fs::read(sources.join("core.wasm"))?;
    Ok(fs::write(out, encode_world(core, &resolve, world)?)?)
}

fn resolve_plain(wit: &Path) -> Result<(Resolve, WorldId)> {
    let mut resolve = Resolve::default();
    let (package, _) = resolve.push_dir(wit)?;
    let world = resolve.select_world(&[package], Some("plain"))?;
    Ok((resolve, world))
}

fn generate(
    mut generator: Box<dyn WorldGenerator>,
    resolve: &mut Resolve,
    world: WorldId,
    sources: &Path,
) -> Result<()> {
    let mut files = Files::default();
    generator.generate(resolve, world, &mut files)?;
    files.iter().try_for_each(|(name, text)| write_file(&sources.join(name), text))
}

fn write_file(path: &Path, text: &[u8]) -> Result<()> {
    fs::create_dir_all(path.parent().context("a file has no folder")?)?;
    Ok(fs::write(path, text)?)
}

fn write_go_runtime(folder: &Path) -> Result<()> {
    let module = format!("module {GO_RUNTIME_MODULE}\n\ngo 1.25\n");
    write_file(&folder.join("go.mod"), module.as_bytes())?;
    go_runtime()
        .iter()
        .filter(|(path, _)| !path.ends_with("go.mod"))
        .try_for_each(|(path, text)| write_file(&folder.join(path), text.as_bytes()))
}

fn compile_c(sources: &Path, zig: &str) -> Result<()> {
    let files = ["app.c", "plain.c", "plain_component_type.o"];
    let flags = ["cc", "--target=wasm32-wasi", "-mexec-model=reactor", "-Os", "-s", "-o"];
    run(Command::new(zig).args(flags).arg("core.wasm").args(files), sources)
}

fn compile_go(sources: &Path, go: &str) -> Result<()> {
    let flags = ["build", "-buildmode=c-shared", "-ldflags=-s -w -checklinkname=0", "-o"];
    let mut command = Command::new(go);
    run(command.args(flags).args(["core.wasm", "."]).envs(GO_VARIABLES), sources)
}

fn run(command: &mut Command, folder: &Path) -> Result<()> {
    let status = command.current_dir(folder).status()?;
    let program = command.get_program().to_owned();
    ensure!(status.success(), "{} ended with {status}", AsRef::<OsStr>::as_ref(&program).display());
    Ok(())
}
