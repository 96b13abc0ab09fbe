//! Compiling many components side by side, in a process that outlives the command that wants them.
//!
//! A command does not wait for a component that is slow to compile, and one that is stopped must not
//! lose what was begun, else a component of seven seconds is never ready where starts last six. So
//! the components that are not compiled yet go to a *queue*: this same program, started again with a
//! hidden first argument and in a session of its own. It compiles the smallest first, several at
//! once, keeps each as soon as it is ready, and ends. A worker behind walls does each compilation, as
//! everywhere; the queue itself reads files and writes to the cache.
//!
//! A queue ends by itself, because each component costs at most the limits. None is compiled twice: a
//! refusal is kept next to the code, under digest, engine and limits. A component that exports nothing
//! that the host calls is refused before it gets here (`interface`).

use std::{
    collections::VecDeque,
    ffi::{OsStr, OsString},
    io::{self, BufRead, BufReader, Read, Write},
    os::unix::{ffi::OsStrExt, process::CommandExt},
    path::{Path, PathBuf},
    process::{Child, Command, ExitCode, Stdio},
    sync::{Mutex, PoisonError},
    thread,
    time::Duration,
};

use tokio::sync::mpsc::{UnboundedReceiver, UnboundedSender, unbounded_channel};

use super::{Compiler, Limits};
use crate::{cache::Cache, component::ComponentFile, runtime::config};

/// The hidden first argument. It is followed by the limits, in bytes, milliseconds and seconds, and
/// the folder of the cache.
const ARGUMENT: &str = "__compile-queue";

/// Components that are compiled at once. More than there are processors, so that a few that are dear
/// leave room for the others; not many more, because each may take memory up to its limit.
const LANES: usize = 8;

/// Most bytes that are read of the list of components.
const LIST_BYTES_MAX: u64 = 16 * 1024 * 1024;

/// How much less the queue presses than what the user does, on the scale of `nice`.
const NICENESS: i32 = 5;

/// A component that is to be compiled.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct QueuedComponent {
    pub(crate) path: PathBuf,
    /// What its bytes have to be, in hexadecimal.
    pub(crate) digest: String,
}

/// Starts a queue; the digest of each component is received as soon as nothing more will be done for
/// it. The channel closes when the queue has ended, however it did.
///
/// # Errors
///
/// The program cannot be started.
pub(crate) fn start(
    program: &Path,
    limits: &Limits,
    cache: &Path,
    components: Vec<QueuedComponent>,
) -> io::Result<UnboundedReceiver<String>> {
    let child = spawn(program, limits, cache)?;
    let (sender, receiver) = unbounded_channel();
    thread::Builder::new()
        .name("compile-queue".to_owned())
        .spawn(move || attend(child, &components, &sender))?;
    Ok(receiver)
}

#[expect(clippy::disallowed_methods, reason = "the host starts itself, to compile")]
fn spawn(program: &Path, limits: &Limits, cache: &Path) -> io::Result<Child> {
    let mut command = Command::new(program);
    command.arg0("sallyport").args(arguments(limits)).arg(cache);
    command.env_clear().current_dir("/");
    // Its remarks are nobody's: how each component ended is in the cache.
    command.stdin(Stdio::piped()).stdout(Stdio::piped()).stderr(Stdio::null()).spawn()
}

/// Gives a queue its list and passes on what it finishes.
fn attend(mut child: Child, components: &[QueuedComponent], sender: &UnboundedSender<String>) {
    if let Some(mut input) = child.stdin.take() {
        // A queue that reads no further has ended, which is noticed below.
        let _ = input.write_all(&list(components));
    }
    if let Some(output) = child.stdout.take() {
        for digest in BufReader::new(output).lines().map_while(Result::ok) {
            if sender.send(digest).is_err() {
                break;
            }
        }
    }
    // Where the host goes on for long, an ended queue must not stay a zombie.
    let _ = child.wait();
}

/// The form in which a queue is told its components: digest and path, each ended by a zero byte.
fn list(components: &[QueuedComponent]) -> Vec<u8> {
    let parts =
        components.iter().flat_map(|one| [one.digest.as_bytes(), one.path.as_os_str().as_bytes()]);
    parts.flat_map(|part| part.iter().copied().chain([0])).collect()
}

fn listed(bytes: &[u8]) -> Vec<QueuedComponent> {
    let parts: Vec<&[u8]> = bytes.split(|byte| *byte == 0).collect();
    let pairs = parts.chunks_exact(2);
    pairs
        .map(|pair| QueuedComponent {
            digest: String::from_utf8_lossy(pair[0]).into_owned(),
            path: OsStr::from_bytes(pair[1]).into(),
        })
        .collect()
}

fn arguments(limits: &Limits) -> [OsString; 5] {
    let numbers = [
        limits.memory_bytes,
        limits.code_bytes,
        u64::try_from(limits.time.as_millis()).unwrap_or(u64::MAX),
        limits.cpu_time.as_secs(),
    ];
    let [memory, code, time, cpu_time] = numbers.map(|number| OsString::from(number.to_string()));
    [ARGUMENT.into(), memory, code, time, cpu_time]
}

/// Works as a compile queue if this process was started as one; the caller ends with the code.
pub fn as_queue() -> Option<ExitCode> {
    let mut arguments = std::env::args_os().skip(1);
    if arguments.next()? != ARGUMENT {
        return None;
    }
    Some(match work(arguments) {
        Ok(()) => ExitCode::SUCCESS,
        Err(_) => ExitCode::FAILURE,
    })
}

fn work(mut arguments: impl Iterator<Item = OsString>) -> io::Result<()> {
    let mut number = || arguments.next()?.to_str()?.parse::<u64>().ok();
    let numbers = (number(), number(), number(), number());
    let (Some(memory_bytes), Some(code_bytes), Some(time), Some(cpu_time)) = numbers else {
        return Err(io::Error::other("the limits are missing"));
    };
    let (time, cpu_time) = (Duration::from_millis(time), Duration::from_secs(cpu_time));
    let limits = Limits { time, cpu_time, memory_bytes, code_bytes };
    let folder = arguments.next().ok_or_else(|| io::Error::other("the folder is missing"))?;
    stand_alone();
    let mut bytes = Vec::new();
    io::stdin().lock().take(LIST_BYTES_MAX).read_to_end(&mut bytes)?;
    let cache = Cache::open(Path::new(&folder), &Compiler::this_program(limits))?;
    compile_all(&cache, smallest_first(listed(&bytes)))
}

/// Leaves the terminal and the group of whoever started it, so that their end is not its own.
fn stand_alone() {
    // Either fails only where it is so already, or is not allowed; then the work is done all the same.
    let _ = rustix::process::setsid();
    let _ = rustix::process::setpriority_process(None, NICENESS);
}

fn smallest_first(mut components: Vec<QueuedComponent>) -> VecDeque<QueuedComponent> {
    components.sort_by_key(|one| one.path.metadata().map_or(0, |info| info.len()));
    components.into()
}

fn compile_all(cache: &Cache, components: VecDeque<QueuedComponent>) -> io::Result<()> {
    let engine =
        wasmtime::Engine::new(&config()).map_err(|error| io::Error::other(error.to_string()))?;
    let lanes = LANES.min(components.len());
    let queue = Mutex::new(components);
    let next = || queue.lock().unwrap_or_else(PoisonError::into_inner).pop_front();
    thread::scope(|scope| {
        for _ in 0..lanes {
            scope.spawn(|| {
                while let Some(one) = next() {
                    compile_one(cache, &engine, &one);
                    // Whoever started the queue may have ended.
                    let _ = writeln!(io::stdout(), "{}", one.digest);
                }
            });
        }
    });
    Ok(())
}

fn compile_one(cache: &Cache, engine: &wasmtime::Engine, one: &QueuedComponent) {
    match ComponentFile::read(&one.path) {
        Ok(file) if file.digest() == one.digest => {
            // A full disk, or a folder that is gone: the next start finds it so.
            let _ = cache.fill(engine, &file);
        }
        // It was replaced since; the next start sees the new one.
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
            assert_eq!(listed(&list(&components)), components);
        }
    }
}
