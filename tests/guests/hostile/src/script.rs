//! Files by script: a test says what to do with raw descriptors, step by step, and reads what came
//! of each step. What a program does between two steps is then known exactly.

use std::collections::BTreeMap;

use sallyport_sdk::prelude::*;
use wasip2::{
    clocks::{monotonic_clock::subscribe_duration, wall_clock::Datetime},
    filesystem::{
        preopens::get_directories,
        types::{
            Descriptor, DescriptorFlags, DirectoryEntryStream, ErrorCode, NewTimestamp, OpenFlags,
            PathFlags,
        },
    },
    io::streams::{InputStream, OutputStream, StreamError},
};

/// How often a step that waits for a file looks for it.
const LOOK_EVERY_NS: u64 = 1_000_000;

/// What to do.
#[derive(Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub(crate) struct Script {
    /// Steps, each a word and what belongs to it, with spaces between.
    steps: Vec<String>,
}

/// What came of a step: what it tells, or the error.
type Told = Result<String, ErrorCode>;

/// Everything that the script holds open.
struct Desk {
    folders: Vec<(Descriptor, String)>,
    open: BTreeMap<String, Descriptor>,
    inputs: BTreeMap<String, InputStream>,
    outputs: BTreeMap<String, OutputStream>,
    listings: BTreeMap<String, DirectoryEntryStream>,
}

/// Does one thing after the other and tells what came of each.
#[tool]
pub(crate) fn follows_script(args: Script) -> Vec<String> {
    let mut desk = Desk {
        folders: get_directories(),
        open: BTreeMap::new(),
        inputs: BTreeMap::new(),
        outputs: BTreeMap::new(),
        listings: BTreeMap::new(),
    };
    args.steps.iter().map(|step| desk.does(step)).collect()
}

impl Desk {
    fn does(&mut self, step: &str) -> String {
        let words: Vec<&str> = step.split(' ').collect();
        let told = self.path_step(&words).or_else(|| self.held_step(&words));
        match told.unwrap_or_else(|| panic!("no such step: {step}")) {
            Ok(told) if told.is_empty() => "ok".to_owned(),
            Ok(told) => told,
            Err(error) => format!("! {}", error.name()),
        }
    }

    /// Steps that name paths.
    fn path_step(&mut self, words: &[&str]) -> Option<Told> {
        Some(match *words {
            ["stat", path] => self.at(path, |d, p| stat(d, PathFlags::SYMLINK_FOLLOW, p)),
            ["lstat", path] => self.at(path, |d, p| stat(d, PathFlags::empty(), p)),
            ["hash", path] => self.at(path, |d, p| {
                d.metadata_hash_at(PathFlags::SYMLINK_FOLLOW, p).map(|hash| hash.lower.to_string())
            }),
            ["cat", path] => self.at(path, |d, p| all(&open(d, p, "r")?)),
            ["ls", path] => self.at(path, |d, p| names(&open(d, p, "d")?)),
            ["put", path, text] => self.at(path, |d, p| {
                open(d, p, "wc")?.write(text.as_bytes(), 0).map(|_| String::new())
            }),
            ["mkdir", path] => self.at(path, |d, p| nothing(d.create_directory_at(p))),
            ["rmdir", path] => self.at(path, |d, p| nothing(d.remove_directory_at(p))),
            ["rm", path] => self.at(path, |d, p| nothing(d.unlink_file_at(p))),
            ["sym", target, path] => self.at(path, |d, p| nothing(d.symlink_at(target, p))),
            ["readlink", path] => self.at(path, Descriptor::readlink_at),
            ["touch", path] => self.at(path, |d, p| nothing(touch(d, p))),
            ["mv", from, to] => self.between(from, to, Descriptor::rename_at),
            ["ln", from, to] => {
                self.between(from, to, |d, p, e, q| d.link_at(PathFlags::empty(), p, e, q))
            }
            ["wait", path] => self.at(path, wait),
            ["many", n, path] => self.at(path, |d, p| many(d, p, n.parse().unwrap())),
            ["open", name, path, how] => {
                let opened = self.at(path, |d, p| open(d, p, how));
                opened.map(|opened| {
                    self.open.insert(name.to_owned(), opened);
                    String::new()
                })
            }
            ["enter", name, path] => {
                let listing = self.at(path, |d, p| open(d, p, "d")?.read_directory());
                listing.map(|listing| {
                    self.listings.insert(name.to_owned(), listing);
                    String::new()
                })
            }
            _ => return None,
        })
    }

    /// Steps with what is open.
    fn held_step(&mut self, words: &[&str]) -> Option<Told> {
        let fd = self.open.get(*words.get(1)?);
        Some(match (words, fd) {
            (["close", name], _) => {
                self.open.remove(*name);
                self.inputs.remove(*name);
                self.outputs.remove(*name);
                Ok(String::new())
            }
            (["read", _, n], Some(fd)) => fd.read(n.parse().unwrap(), 0).map(|(b, _)| text(b)),
            (["write", _, at, text], Some(fd)) => {
                fd.write(text.as_bytes(), at.parse().unwrap()).map(|n| n.to_string())
            }
            (["fill", _, n], Some(fd)) => fill(fd, n.parse().unwrap()),
            (["size", _, n], Some(fd)) => nothing(fd.set_size(n.parse().unwrap())),
            (["fstat", _], Some(fd)) => fd.stat().map(|stat| stat.size.to_string()),
            (["flags", _], Some(fd)) => fd.get_flags().map(|flags| format!("{flags:?}")),
            (["sync", _], Some(fd)) => nothing(fd.sync()),
            (["list", _], Some(fd)) => names(fd),
            (["input", name, _], Some(fd)) => fd.read_via_stream(0).map(|stream| {
                self.inputs.insert((*name).to_owned(), stream);
                String::new()
            }),
            (["output", name, how], Some(fd)) => output(fd, how).map(|stream| {
                self.outputs.insert((*name).to_owned(), stream);
                String::new()
            }),
            (["next", name], _) => self.listings[*name]
                .read_directory_entry()
                .map(|entry| entry.map_or("end".to_owned(), |entry| entry.name)),
            (["pull", name, n], _) => {
                streamed(self.inputs[*name].blocking_read(n.parse().unwrap())).map(text)
            }
            (["push", name, text], _) => {
                let pushed = self.outputs[*name].blocking_write_and_flush(text.as_bytes());
                streamed(pushed).map(|()| String::new())
            }
            _ => return None,
        })
    }

    /// Does something with a path below what is open under its first name, or below a mount.
    fn at<T>(
        &self,
        path: &str,
        act: impl FnOnce(&Descriptor, &str) -> Result<T, ErrorCode>,
    ) -> Result<T, ErrorCode> {
        let (folder, below) = self.folder(path);
        act(folder, below)
    }

    fn between(
        &self,
        from: &str,
        to: &str,
        act: impl FnOnce(&Descriptor, &str, &Descriptor, &str) -> Result<(), ErrorCode>,
    ) -> Told {
        let ((old, from), (new, to)) = (self.folder(from), self.folder(to));
        nothing(act(old, from, new, to))
    }

    /// `name:path` lies below what is open, any other path below a mount.
    fn folder<'a>(&self, path: &'a str) -> (&Descriptor, &'a str) {
        if let Some((name, below)) = path.split_once(':') {
            return (&self.open[name], below);
        }
        let mount = self.folders.iter().find_map(|(folder, name)| {
            let below = path.strip_prefix(name.as_str())?;
            Some((folder, below.strip_prefix('/').unwrap_or(below)))
        });
        let (folder, below) = mount.unwrap_or_else(|| panic!("no mount is around {path}"));
        (folder, if below.is_empty() { "." } else { below })
    }
}

fn nothing(done: Result<(), ErrorCode>) -> Told {
    done.map(|()| String::new())
}

fn text(bytes: Vec<u8>) -> String {
    String::from_utf8_lossy(&bytes).into_owned()
}

/// Opens: r reads, w writes, c creates, x exclusively, t truncates, d a folder, n no link.
fn open(folder: &Descriptor, path: &str, how: &str) -> Result<Descriptor, ErrorCode> {
    let has = |letter| how.contains(letter);
    let path_flags = if has('n') { PathFlags::empty() } else { PathFlags::SYMLINK_FOLLOW };
    let mut open_flags = OpenFlags::empty();
    for (letter, flag) in [
        ('c', OpenFlags::CREATE),
        ('x', OpenFlags::EXCLUSIVE),
        ('t', OpenFlags::TRUNCATE),
        ('d', OpenFlags::DIRECTORY),
    ] {
        open_flags = if has(letter) { open_flags | flag } else { open_flags };
    }
    let mut flags = DescriptorFlags::empty();
    for (letter, flag) in [('r', DescriptorFlags::READ), ('w', DescriptorFlags::WRITE)] {
        flags = if has(letter) { flags | flag } else { flags };
    }
    folder.open_at(path_flags, path, open_flags, flags)
}

fn stat(folder: &Descriptor, flags: PathFlags, path: &str) -> Told {
    folder.stat_at(flags, path).map(|stat| format!("{:?} {}", stat.type_, stat.size))
}

fn all(file: &Descriptor) -> Told {
    let mut bytes = Vec::new();
    loop {
        let (more, is_end) = file.read(1 << 20, bytes.len() as u64)?;
        bytes.extend(more);
        if is_end {
            return Ok(text(bytes));
        }
    }
}

fn names(folder: &Descriptor) -> Told {
    let listing = folder.read_directory()?;
    let mut names = Vec::new();
    while let Some(entry) = listing.read_directory_entry()? {
        names.push(entry.name);
    }
    names.sort();
    Ok(names.join(" "))
}

fn touch(folder: &Descriptor, path: &str) -> Result<(), ErrorCode> {
    let then = NewTimestamp::Timestamp(Datetime { seconds: 1, nanoseconds: 2 });
    folder.set_times_at(PathFlags::SYMLINK_FOLLOW, path, then, then)
}

/// Waits until a file is there.
fn wait(folder: &Descriptor, path: &str) -> Told {
    while folder.stat_at(PathFlags::empty(), path).is_err() {
        subscribe_duration(LOOK_EVERY_NS).block();
    }
    Ok(String::new())
}

/// Makes empty files until one cannot be made, and tells how many there are.
fn many(folder: &Descriptor, path: &str, n: u64) -> Told {
    for i in 0..n {
        if let Err(error) = open(folder, &format!("{path}{i}"), "wc") {
            return Ok(format!("{i} {}", error.name()));
        }
    }
    Ok(n.to_string())
}

/// Writes n bytes, and tells how many there are when no more can be written.
fn fill(file: &Descriptor, n: u64) -> Told {
    let chunk = [b'x'; 64 * 1024];
    let mut at = 0;
    while at < n {
        let bytes = &chunk[..chunk.len().min((n - at) as usize)];
        match file.write(bytes, at) {
            Ok(written) => at += written,
            Err(error) => return Ok(format!("{at} {}", error.name())),
        }
    }
    Ok(at.to_string())
}

fn output(file: &Descriptor, how: &str) -> Result<OutputStream, ErrorCode> {
    match how {
        "append" => file.append_via_stream(),
        at => file.write_via_stream(at.parse().unwrap()),
    }
}

fn streamed<T>(result: Result<T, StreamError>) -> Result<T, ErrorCode> {
    result.map_err(|error| match error {
        StreamError::Closed => ErrorCode::Pipe,
        StreamError::LastOperationFailed(error) => {
            wasip2::filesystem::types::filesystem_error_code(&error).unwrap_or(ErrorCode::Io)
        }
    })
}
