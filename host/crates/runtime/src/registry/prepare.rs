//! Prepares components for listing: reads each, compiles it if necessary, and asks it for its
//! tools.
//!
//! Components are compiled and asked concurrently, so that a slow one, such as a malicious one or a
//! whole interpreter, does not delay the others.

use std::{collections::BTreeSet, path::Path, time::Duration};

use futures::future::join_all;
use sallyport_policy::Manifest;
use sallyport_process::ProgramKind;
use sallyport_sandbox::{ComponentFile, ComponentMetadata, LoadError};
use tokio::time::timeout;

use super::{
    LoadParts,
    discover::{CandidateSource, PluginCandidate},
};

/// Shortest time that a compiled plugin has to list its tools, even if the start waits less for
/// compilers: an interpreter needs a moment to answer.
const INSPECTION_TIME_MIN: Duration = Duration::from_secs(1);

/// A component, prepared as far as a start needs it.
pub(super) struct PreparedComponent {
    pub(super) file: ComponentFile,
    pub(super) readiness: ComponentReadiness,
}

/// How much is known of a component.
pub(super) enum ComponentReadiness {
    /// Its tools.
    Tools(Box<ComponentMetadata>),
    /// It is a program, whose one tool its definition describes.
    Program,
    /// It is still being compiled or asked.
    Compiling,
}

/// Candidates with their components; `None` for one that does not run as a component.
pub(super) type PreparedCandidate = (PluginCandidate, Option<Result<PreparedComponent, LoadError>>);

/// Prepares candidates, in their order. Those that are not ready in time are
/// [`ComponentReadiness::Compiling`].
pub(super) async fn prepare_candidates(
    parts: &LoadParts<'_>,
    candidates: Vec<PluginCandidate>,
) -> Vec<PreparedCandidate> {
    let read: Vec<_> =
        candidates.iter().map(|candidate| read_candidate(parts, candidate)).collect();
    let uncompiled: Vec<&ComponentFile> =
        read.iter().flatten().flatten().filter_map(ReadComponent::uncompiled_file).collect();
    let unfinished = match uncompiled.as_slice() {
        [] => BTreeSet::new(),
        files => parts.sandbox.compile_ahead(files, parts.compile_wait, parts.progress).await,
    };
    parts.sandbox.save_digests();
    let prepared = candidates.iter().zip(read).map(|(candidate, read)| {
        let unfinished = &unfinished;
        async move {
            match read? {
                Ok(read) => {
                    Some(inspect_component(parts, &candidate.manifest, read, unfinished).await)
                }
                Err(error) => Some(Err(error)),
            }
        }
    });
    let prepared = join_all(prepared).await;
    candidates.into_iter().zip(prepared).collect()
}

/// A component whose digest is known.
struct ReadComponent {
    file: ComponentFile,
    is_program: bool,
    /// Its tools, from the metadata of an earlier start.
    cached_metadata: Option<Box<ComponentMetadata>>,
    is_compiled: bool,
}

impl ReadComponent {
    fn uncompiled_file(&self) -> Option<&ComponentFile> {
        (self.cached_metadata.is_none() && !self.is_compiled).then_some(&self.file)
    }
}

/// Reads a candidate's component, and looks up what is known of it without compiling it.
fn read_candidate(
    parts: &LoadParts<'_>,
    candidate: &PluginCandidate,
) -> Option<Result<ReadComponent, LoadError>> {
    match &candidate.source {
        CandidateSource::Component(path) => {
            Some(read_component_plugin(parts, &candidate.manifest, path))
        }
        CandidateSource::Script(script_plugin) => match script_plugin.script.program.kind {
            ProgramKind::Component => {
                let program = &script_plugin.script.program;
                Some(read_program(parts, &program.path, program.digest.as_str()))
            }
            ProgramKind::Native => None,
        },
        CandidateSource::Definition(plugin) => {
            let component = plugin.component.as_ref()?;
            Some(read_component_plugin(parts, &candidate.manifest, component))
        }
        CandidateSource::McpServer(_) | CandidateSource::Internal(_) => None,
    }
}

fn read_component_plugin(
    parts: &LoadParts<'_>,
    manifest: &Manifest,
    path: &Path,
) -> Result<ReadComponent, LoadError> {
    let file = parts.sandbox.open_component(path)?;
    let cached_metadata = parts.sandbox.cached_metadata(&file, manifest).transpose()?.map(Box::new);
    let is_compiled = cached_metadata.is_some() || parts.sandbox.is_compiled(&file)?;
    Ok(ReadComponent { file, is_program: false, cached_metadata, is_compiled })
}

/// Reads the component again. It must be the one that was read with the definition.
fn read_program(
    parts: &LoadParts<'_>,
    path: &Path,
    digest: &str,
) -> Result<ReadComponent, LoadError> {
    let file = parts.sandbox.open_component(path)?;
    if file.digest() != digest {
        return Err(LoadError::Changed { path: path.to_owned() });
    }
    parts.sandbox.check_program(&file)?;
    let is_compiled = parts.sandbox.is_compiled(&file)?;
    Ok(ReadComponent { file, is_program: true, cached_metadata: None, is_compiled })
}

/// Asks a component for its tools, unless they are known.
async fn inspect_component(
    parts: &LoadParts<'_>,
    manifest: &Manifest,
    read: ReadComponent,
    unfinished: &BTreeSet<String>,
) -> Result<PreparedComponent, LoadError> {
    let ReadComponent { file, is_program, cached_metadata, .. } = read;
    let time_max = parts.compile_wait.max(INSPECTION_TIME_MIN);
    let readiness = match cached_metadata {
        Some(cached_metadata) => Some(ComponentReadiness::Tools(cached_metadata)),
        None if unfinished.contains(file.digest()) => None,
        None if is_program => {
            let checked = timeout(time_max, parts.sandbox.check_compiles(&file)).await.ok();
            checked.transpose()?.map(|()| ComponentReadiness::Program)
        }
        None => {
            let inspection = parts.sandbox.inspect_component(&file, manifest);
            let metadata = timeout(time_max, inspection).await.ok();
            metadata.transpose()?.map(|metadata| ComponentReadiness::Tools(Box::new(metadata)))
        }
    };
    let readiness = readiness.unwrap_or(ComponentReadiness::Compiling);
    Ok(PreparedComponent { file, readiness })
}
