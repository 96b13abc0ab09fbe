//! Compiles many components in parallel, in a process that outlives the command that needs them.
//!
//! A command does not wait for a component that is slow to compile. It must not lose work in
//! progress when it is stopped either, because otherwise a component that takes seven seconds would
//! never be ready where commands last six. So the components that are not compiled yet go to a
//! *queue*: this same program, started again with a hidden first argument and in a session of its
//! own. The queue compiles the smallest components first, several at a time, stores each as soon as
//! it is ready, and ends. A sandboxed worker does each compilation; the queue itself only reads
//! files and writes to the cache.
//!
//! A queue always ends: each component costs at most the limits. No component is compiled twice: a
//! refusal is stored next to the code, under its digest, engine and limits. A component that
//! exports nothing that the host calls is refused before it gets here (`interface_check`).

use std::{
    collections::VecDeque,
    ffi::{OsStr, OsString},
    io::{self, BufRead, BufReader, Read, Write},
    os::unix::{ffi::OsStrExt, process::CommandExt},
    path::{Path, PathBuf},
    process::{Child, Command, ExitCode, Stdio},
    sync::Mutex,
    thread,
};

use tokio::sync::mpsc::{UnboundedReceiver, UnboundedSender, unbounded_channel};

use crate::{
    cache::ComponentCache,
    compile::{CompileLimits, Compiler},
    component::ComponentFile,
    engine_config::engine_config,
    mutex::lock_mutex,
};

/// The hidden first argument. The limits follow, in bytes, milliseconds and seconds, and then the
/// cache folder.
const ARGUMENT: &str = "__compile-queue";

/// Most components that are compiled at the same time. There are several, so that a few expensive
/// ones leave room for the others, but not many: each may use memory up to its limit.
const WORKERS_MAX: usize = 8;

/// Most bytes that are read of the list of components.
const LIST_BYTES_MAX: u64 = 16 * 1024 * 1024;

/// How far the queue lowers its priority below the user's own work, on the scale of `nice`.
const NICENESS: i32 = 5;

/// A component to compile.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct QueuedComponent {
    pub(crate) path: PathBuf,
    /// The expected digest of its bytes, in hexadecimal.
    pub(crate) digest: String,
}

/// Starts a queue. The receiver yields the digest of each component as soon as nothing more will be
/// done for it, and closes when the queue ends for any reason.
///
/// # Errors
///
/// The program or the thread that attends it cannot be started.
pub(crate) fn start_queue(
    program: &Path,
    limits: &CompileLimits,
    cache: &Path,
    components: Vec<QueuedComponent>,
) -> io::Result<UnboundedReceiver<String>> {
    let child = spawn_queue(program, limits, cache)?;
    let (sender, receiver) = unbounded_channel();
    thread::Builder::new()
        .name("compile-queue".to_owned())
        .spawn(move || serve_queue(child, &components, &sender))?;
    Ok(receiver)
}

#[expect(clippy::disallowed_methods, reason = "the host starts itself, to compile")]
fn spawn_queue(program: &Path, limits: &CompileLimits, cache: &Path) -> io::Result<Child> {
    let mut command = Command::new(program);
    command.arg0("sallyport").arg(ARGUMENT).args(limits.to_arguments()).arg(cache);
    command.env_clear().current_dir("/");
    // Standard error is discarded: the cache records the result of each component.
    command.stdin(Stdio::piped()).stdout(Stdio::piped()).stderr(Stdio::null()).spawn()
}

/// Sends a queue its list and forwards the digests that it finishes.
fn serve_queue(mut child: Child, components: &[QueuedComponent], sender: &UnboundedSender<String>) {
    if let Some(mut input) = child.stdin.take() {
        // A queue that stops reading has ended, which is noticed below.
        let _ = input.write_all(&encode_components(components));
    }
    if let Some(output) = child.stdout.take() {
        for digest in BufReader::new(output).lines().map_while(Result::ok) {
            if sender.send(digest).is_err() {
                break;
            }
        }
    }
    // Reaped here: an ended queue would stay a zombie as long as the host runs.
    let _ = child.wait();
}

/// Encodes the list of components: digest and path, each terminated by a zero byte.
fn encode_components(components: &[QueuedComponent]) -> Vec<u8> {
    let parts = components
        .iter()
        .flat_map(|queued| [queued.digest.as_bytes(), queued.path.as_os_str().as_bytes()]);
    parts.flat_map(|part| part.iter().copied().chain([0])).collect()
}

fn decode_components(bytes: &[u8]) -> Vec<QueuedComponent> {
    let parts: Vec<&[u8]> = bytes.split(|byte| *byte == 0).collect();
    let pairs = parts.chunks_exact(2);
    pairs
        .map(|pair| QueuedComponent {
            digest: String::from_utf8_lossy(pair[0]).into_owned(),
            path: OsStr::from_bytes(pair[1]).into(),
        })
        .collect()
}

/// Runs as a compile queue if this process was started as one. The caller exits with the returned
/// code.
pub fn run_as_queue() -> Option<ExitCode> {
    let mut arguments = std::env::args_os().skip(1);
    if arguments.next()? != ARGUMENT {
        return None;
    }
    Some(match run_queue(arguments) {
        Ok(()) => ExitCode::SUCCESS,
        Err(_) => ExitCode::FAILURE,
    })
}

fn run_queue(mut arguments: impl Iterator<Item = OsString>) -> io::Result<()> {
    let limits = CompileLimits::from_arguments(&mut arguments)?;
    let folder = arguments.next().ok_or_else(|| io::Error::other("the folder is missing"))?;
    detach_from_parent();
    let mut bytes = Vec::new();
    io::stdin().lock().take(LIST_BYTES_MAX).read_to_end(&mut bytes)?;
    let cache = ComponentCache::open(Path::new(&folder), &Compiler::from_current_program(limits))?;
    compile_all(&cache, sort_by_size(decode_components(&bytes)))
}

/// Leaves the terminal and process group of the parent, so that the queue outlives it.
fn detach_from_parent() {
    // Either call fails only if its effect is in place already or it is not permitted; the work
    // is done anyway.
    let _ = rustix::process::setsid();
    let _ = rustix::process::setpriority_process(None, NICENESS);
}

fn sort_by_size(mut components: Vec<QueuedComponent>) -> VecDeque<QueuedComponent> {
    components.sort_by_key(|queued| queued.path.metadata().map_or(0, |info| info.len()));
    components.into()
}

fn compile_all(cache: &ComponentCache, components: VecDeque<QueuedComponent>) -> io::Result<()> {
    let engine = wasmtime::Engine::new(&engine_config())
        .map_err(|error| io::Error::other(error.to_string()))?;
    let workers = WORKERS_MAX.min(components.len());
    let queue = Mutex::new(components);
    let next = || lock_mutex(&queue).pop_front();
    thread::scope(|scope| {
        for _ in 0..workers {
            scope.spawn(|| {
                while let Some(queued) = next() {
                    compile_one(cache, &engine, &queued);
                    // The process that started the queue may have ended.
                    let _ = writeln!(io::stdout(), "{}", queued.digest);
                }
            });
        }
    });
    Ok(())
}

fn compile_one(cache: &ComponentCache, engine: &wasmtime::Engine, queued: &QueuedComponent) {
    match ComponentFile::read(&queued.path) {
        Ok(file) if file.digest() == queued.digest => {
            // An error, such as a full disk or a missing folder, comes up again at the next start.
            let _ = cache.compile_into_folder(engine, &file);
        }
        // The file was replaced or removed since; the next start sees the current state.
        Ok(_) | Err(_) => {}
    }
}

#[cfg(test)]
mod tests {
    use std::os::unix::ffi::OsStringExt;

    use super::*;

    #[test]
    fn a_list_is_read_as_it_was_written_whatever_the_names() {
        let rows: [&[&[u8]]; 4] =
            [&[], &[b"/a/b.wasm"], &[b"/a b\n.wasm", b"/\xff\xfe"], &[b"/x", b"/y", b"/z"]];
        for paths in rows {
            let component = |path: &&[u8]| QueuedComponent {
                path: OsString::from_vec(path.to_vec()).into(),
                digest: "ab".repeat(32),
            };
            let components: Vec<_> = paths.iter().map(component).collect();
            assert_eq!(decode_components(&encode_components(&components)), components);
        }
    }
}
