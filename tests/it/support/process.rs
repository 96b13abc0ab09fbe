//! The processes of a test, by what the system tells of them in `/proc`.

use std::{
    fs,
    path::{Path, PathBuf},
};

/// Most of a command line that is shown.
const LINE_CHARS_MAX: usize = 200;

/// The processes of a parent.
pub(crate) fn children(parent: u32) -> Vec<u32> {
    all().filter(|pid| state(*pid).is_some_and(|(_, of)| of == parent)).collect()
}

fn all() -> impl Iterator<Item = u32> {
    let folders = fs::read_dir("/proc").unwrap().flatten();
    folders.filter_map(|folder| folder.file_name().to_str()?.parse().ok())
}

/// The state of a process, and its parent.
pub(crate) fn state(pid: u32) -> Option<(char, u32)> {
    let stat = stat(pid)?;
    Some((stat[0].chars().next()?, stat[1].parse().ok()?))
}

/// What the system tells of a process, from its state on.
pub(crate) fn stat(pid: u32) -> Option<Vec<String>> {
    let stat = fs::read_to_string(format!("/proc/{pid}/stat")).ok()?;
    Some(stat.rsplit_once(')')?.1.split_whitespace().map(str::to_owned).collect())
}

/// A process and all that it has started, the process first.
pub(crate) fn family(pid: u32) -> Vec<u32> {
    let rest = children(pid).into_iter().flat_map(family);
    [pid].into_iter().chain(rest).collect()
}

/// What a family of processes is doing: where each thread waits, and which files are open.
pub(crate) fn doing(pid: u32) -> String {
    family(pid).into_iter().map(doing_of_one).collect()
}

/// What those are doing who hold a pipe, but for this process.
pub(crate) fn holders(pipe: &Path) -> String {
    let holds = |pid: &u32| {
        let files = entries(Path::new(&format!("/proc/{pid}/fd")));
        files.into_iter().any(|file| fs::read_link(file).is_ok_and(|link| link == pipe))
    };
    let others = all().filter(|pid| *pid != std::process::id());
    others.filter(holds).map(doing_of_one).collect()
}

fn doing_of_one(pid: u32) -> String {
    let folder = PathBuf::from(format!("/proc/{pid}"));
    let line = text(&folder.join("cmdline")).replace('\0', " ");
    let line: String = line.chars().take(LINE_CHARS_MAX).collect();
    let tasks = entries(&folder.join("task")).into_iter().map(|task| {
        let told = ["comm", "wchan", "syscall"].map(|name| text(&task.join(name)));
        let state = text(&task.join("status"));
        let state = state.lines().find_map(|line| line.strip_prefix("State:")).unwrap_or_default();
        format!("  {} is {}: {}, {}\n", told[0], state.trim(), told[1], told[2])
    });
    let tasks: String = tasks.collect();
    let files = entries(&folder.join("fd")).into_iter().filter_map(|file| {
        let link = fs::read_link(&file).ok()?;
        Some(format!("  {}: {}\n", file.file_name()?.display(), link.display()))
    });
    format!("process {pid}: {line}\n{tasks}{}", files.collect::<String>())
}

/// Whoever has just ended has nothing to tell.
fn text(path: &Path) -> String {
    fs::read_to_string(path).unwrap_or_default().trim().to_owned()
}

fn entries(folder: &Path) -> Vec<PathBuf> {
    fs::read_dir(folder).into_iter().flatten().flatten().map(|entry| entry.path()).collect()
}
