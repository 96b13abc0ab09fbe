//! The world that bindings and component types are made from: all that a plugin can import, and the
//! tools that it exports.

use std::path::Path;

use anyhow::{Context, Result};
use wit_parser::{Resolve, SourceMap, UnresolvedPackageGroup, WorldId};

include!(concat!(env!("OUT_DIR"), "/embedded.rs"));

/// The name of the world. The C bindings use it as a prefix.
const WORLD: &str = "bindings";

/// The interfaces of `wit/` that the SDKs use, in addition to those of the world `tool-plugin`.
const INTERFACES: [&str; 5] = ["notify", "open-url", "progress", "secrets", "state"];

/// The WIT packages of WASI 0.2, as file name and text.
#[must_use]
pub fn wasi_wit() -> &'static [(&'static str, &'static str)] {
    WASI_WIT
}

/// The runtime module of the Go bindings, as path and text.
#[must_use]
pub fn go_runtime() -> &'static [(&'static str, &'static str)] {
    GO_RUNTIME
}

/// Resolves the world. `wit` is the folder of the package `sallyport:plugin`.
pub(crate) fn resolve_world(wit: &Path) -> Result<(Resolve, WorldId)> {
    let wit_context = || format!("the WIT files of {} are not usable", wit.display());
    let mut packages = vec![UnresolvedPackageGroup::parse_dir(wit).with_context(wit_context)?];
    for (name, text) in WASI_WIT {
        packages.push(parse_group(name, text)?);
    }
    let world = parse_group("bindings.wit", &world_text(&wasi_http_version()))?;
    let mut resolve = Resolve::default();
    let package = resolve.push_groups(world, packages)?;
    let world = resolve.select_world(&[package], Some(WORLD))?;
    Ok((resolve, world))
}

fn world_text(wasi_http: &str) -> String {
    let import = |name: &str| format!("    import sallyport:plugin/{name}@0.1.0;\n");
    let imports: String = INTERFACES.into_iter().map(import).collect();
    format!(
        "package sallyport:bindings;\n\nworld {WORLD} {{\n    include \
         sallyport:plugin/tool-plugin@0.1.0;\n{imports}    import \
         wasi:http/outgoing-handler@{wasi_http};\n}}\n"
    )
}

/// The version in the line `package wasi:http@VERSION;`.
fn wasi_http_version() -> String {
    let (_, text) = WASI_WIT.iter().find(|(name, _)| *name == "http.wit").unwrap_or(&("", ""));
    let version = text.split_once("package wasi:http@").and_then(|(_, rest)| rest.split_once(';'));
    version.map(|(version, _)| version.to_owned()).unwrap_or_default()
}

fn parse_group(name: &str, text: &str) -> Result<UnresolvedPackageGroup> {
    let mut sources = SourceMap::default();
    sources.push_str(name, text);
    sources.parse().map_err(|(sources, error)| anyhow::anyhow!(error.render(&sources)))
}
