//! Compiles Go with the author's own toolchain.

use std::{ffi::OsString, fs, path::Path};

use crate::{
    BuildError, BuildTools,
    bindings::go_bindings,
    project::{BUILD_FOLDER, copy_folder, update_file},
    toolchain::run_compiler,
    world::go_runtime,
};

/// The environment of the compiler. Nothing is fetched during a build: a module that is missing is
/// reported, and the author's `go get` brings it. `-mod=mod` is needed for a project without
/// `go.sum`.
pub const GO_VARIABLES: [(&str, &str); 7] = [
    ("CGO_ENABLED", "0"),
    ("GOARCH", "wasm"),
    ("GOFLAGS", "-mod=mod"),
    ("GOOS", "wasip1"),
    ("GOPROXY", "off"),
    ("GOTOOLCHAIN", "local"),
    ("GOWORK", "off"),
];

/// The arguments that do not depend on the project. Paths and the state of the repository would
/// change the bytes. `-checklinkname=0` lets the bindings' runtime allocate before Go's own has
/// started: Go allows it only to the module that the runtime is in otherwise.
const ARGS: [&str; 7] = [
    "build",
    "-buildmode=c-shared",
    "-buildvcs=false",
    "-trimpath",
    "-ldflags=-s -w -buildid= -checklinkname=0",
    "-o",
    ".build/core.wasm",
];

/// The folders of the SDK that are not part of its module.
const OTHER_FOLDERS: [&str; 3] = ["conformance", "template", ".build"];

/// The module of the bindings' runtime, and the package of the SDK that contains it here.
const RUNTIME: (&str, &str) = ("go.bytecodealliance.org/pkg/wit/", "sallyport/internal/runtime/");

/// Compiles a project and returns its core module.
pub(crate) fn compile(project: &Path, tools: &BuildTools) -> Result<Vec<u8>, BuildError> {
    let go = tools.go()?;
    let build = project.join(BUILD_FOLDER);
    write_sdk(&build.join("sdk"), tools)?;
    let args: Vec<OsString> = ARGS.into_iter().chain(["."]).map(OsString::from).collect();
    run_compiler(go, project, &args, &GO_VARIABLES)?;
    let core = build.join("core.wasm");
    fs::read(&core).map_err(BuildError::at(&core))
}

/// Writes the module `sallyport`, which the project's `go.mod` names by this folder.
fn write_sdk(folder: &Path, tools: &BuildTools) -> Result<(), BuildError> {
    copy_folder(&tools.sdk.join("go"), folder, &|name| OTHER_FOLDERS.contains(&name))?;
    let bindings =
        go_bindings(&tools.wit).map_err(|error| BuildError::Component(format!("{error:#}")))?;
    let internal = folder.join("internal");
    for (name, text) in bindings.iter() {
        write_package(&internal.join("wit").join(name), &String::from_utf8_lossy(text))?;
    }
    let is_runtime = |(path, _): &&(&str, &str)| path.starts_with("wit/");
    go_runtime().iter().filter(is_runtime).try_for_each(|(path, text)| {
        write_package(&internal.join("runtime").join(path.trim_start_matches("wit/")), text)
    })
}

/// Writes a file that may import the runtime. It is a package of the SDK instead of a module of its
/// own, so that a project needs to name only one module.
fn write_package(path: &Path, text: &str) -> Result<(), BuildError> {
    update_file(path, text.replace(RUNTIME.0, RUNTIME.1).as_bytes())
}
