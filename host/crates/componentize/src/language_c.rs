//! Compiles C and C++ with Zig's Clang.

use std::{ffi::OsString, fs, path::Path};

use crate::{
    BuildError, BuildTools, CompiledLanguage,
    bindings::c_bindings,
    project::{BUILD_FOLDER, copy_folder, update_file},
    toolchain::run_compiler,
};

/// Size of the stack in bytes. Zig's own 16 MiB would count against each call's memory limit.
const STACK_BYTES: usize = 1 << 20;

/// The sources of the SDK, in the folder `sdk` of the build folder.
const SDK_SOURCES: [&str; 5] =
    ["bindings.c", "sallyport.c", "sallyport_host.c", "sallyport_http.c", "yyjson.c"];

/// The flags of both languages.
const FLAGS: [&str; 7] = [
    "--target=wasm32-wasi",
    "-Os",
    "-g0",
    "-Wall",
    "-Wextra",
    "-I.build/sdk",
    "-ffile-prefix-map=.build/sdk=sdk",
];

/// The flags of a language: its standard, and no exceptions, because their runtime is not part of
/// Zig's library for WASI.
fn language_flags(is_cpp: bool) -> &'static [&'static str] {
    match is_cpp {
        // A tool sets the fields that it needs, in the way of C.
        true => &[
            "-std=gnu++20",
            "-fno-exceptions",
            "-Wno-c99-designator",
            "-Wno-missing-designated-field-initializers",
        ],
        false => &["-std=gnu17"],
    }
}

/// Compiles a project and returns its core module.
pub(crate) fn compile(
    language: CompiledLanguage,
    project: &Path,
    tools: &BuildTools,
) -> Result<Vec<u8>, BuildError> {
    let zig = tools.zig()?;
    let build = project.join(BUILD_FOLDER);
    write_sdk(&build.join("sdk"), tools)?;
    let sdk = SDK_SOURCES.map(|source| format!("{BUILD_FOLDER}/sdk/{source}"));
    let sources = [author_sources(project)?, sdk.to_vec()].concat();
    let mut objects = Vec::new();
    for source in &sources {
        objects.push(compile_source(zig, project, source)?);
    }
    link(language, zig, project, &objects)?;
    let core = build.join("core.wasm");
    fs::read(&core).map_err(BuildError::at(&core))
}

/// Compiles one file and returns its object. Zig keeps the objects of files that did not change.
fn compile_source(zig: &Path, project: &Path, source: &str) -> Result<String, BuildError> {
    let is_cpp = !source.ends_with(".c");
    let object = format!("{BUILD_FOLDER}/objects/{}.o", source.replace('/', "_"));
    let folder = project.join(BUILD_FOLDER).join("objects");
    fs::create_dir_all(&folder).map_err(BuildError::at(&folder))?;
    let mut args = vec![if is_cpp { "c++" } else { "cc" }];
    args.extend(FLAGS);
    args.extend(language_flags(is_cpp));
    args.extend(["-c", source, "-o", &object]);
    run_zig(zig, project, &args)?;
    Ok(object)
}

fn link(
    language: CompiledLanguage,
    zig: &Path,
    project: &Path,
    objects: &[String],
) -> Result<(), BuildError> {
    let stack = format!("-Wl,-z,stack-size={STACK_BYTES}");
    let driver = if language == CompiledLanguage::Cpp { "c++" } else { "cc" };
    let mut args = vec![driver, "--target=wasm32-wasi", "-mexec-model=reactor", "-Os", "-s"];
    args.extend([stack.as_str(), "-o", ".build/core.wasm"]);
    args.extend(objects.iter().map(String::as_str));
    run_zig(zig, project, &args)
}

fn run_zig(zig: &Path, project: &Path, args: &[&str]) -> Result<(), BuildError> {
    let args: Vec<OsString> = args.iter().map(OsString::from).collect();
    run_compiler(zig, project, &args, &[])
}

/// The author's files, relative to the project: those in its folder and in `src`, without tests.
fn author_sources(project: &Path) -> Result<Vec<String>, BuildError> {
    let mut sources = Vec::new();
    for (folder, prefix) in [(project.to_owned(), ""), (project.join("src"), "src/")] {
        if !folder.is_dir() {
            continue;
        }
        for entry in fs::read_dir(&folder).map_err(BuildError::at(&folder))? {
            let name = entry.map_err(BuildError::at(&folder))?.file_name();
            let name = name.to_string_lossy();
            if is_author_source(&name) {
                sources.push(format!("{prefix}{name}"));
            }
        }
    }
    sources.sort();
    Ok(sources)
}

fn is_author_source(name: &str) -> bool {
    let Some((stem, ending)) = name.rsplit_once('.') else { return false };
    let is_test = stem.starts_with("test_") || stem.ends_with("_test");
    matches!(ending, "c" | "cc" | "cpp" | "cxx") && !is_test
}

/// Writes the SDK and its bindings, where editors find the headers too.
fn write_sdk(folder: &Path, tools: &BuildTools) -> Result<(), BuildError> {
    copy_folder(&tools.sdk.join("c/src"), folder, &|_| false)?;
    let bindings =
        c_bindings(&tools.wit).map_err(|error| BuildError::Component(format!("{error:#}")))?;
    bindings.iter().try_for_each(|(name, text)| update_file(&folder.join(name), text))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn tests_and_headers_are_not_compiled() {
        let names =
            ["plugin.c", "crc32.cpp", "crc32_test.c", "test_all.c", "plugin.h", "README.md"];
        let compiled: Vec<&str> = names.into_iter().filter(|name| is_author_source(name)).collect();
        assert_eq!(compiled, ["plugin.c", "crc32.cpp"]);
    }
}
