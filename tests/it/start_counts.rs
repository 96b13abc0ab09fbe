//! What a start opens, in counts: times differ between machines, and these do not.

use std::{
    collections::BTreeMap,
    fs::{self, OpenOptions},
    mem::MaybeUninit,
    os::fd::OwnedFd,
    path::Path,
};

use rustix::fs::inotify::{self, CreateFlags, ReadFlags, WatchFlags};

use crate::support::{Home, patience::until_so};

/// Watches folders, and counts how often each file in them is opened.
struct OpenCounter {
    watches: OwnedFd,
}

impl OpenCounter {
    fn watch(folders: &[&Path]) -> Self {
        let watches = inotify::init(CreateFlags::CLOEXEC | CreateFlags::NONBLOCK).unwrap();
        for folder in folders {
            inotify::add_watch(&watches, *folder, WatchFlags::OPEN).unwrap();
        }
        Self { watches }
    }

    /// How often each file was opened since the last time, by name.
    fn take(&self) -> BTreeMap<String, usize> {
        let mut buffer = [MaybeUninit::uninit(); 64 * 1024];
        let mut events = inotify::Reader::new(&self.watches, &mut buffer);
        let mut counts = BTreeMap::new();
        while let Ok(event) = events.next() {
            if event.events().contains(ReadFlags::ISDIR) {
                continue;
            }
            if let Some(name) = event.file_name() {
                *counts.entry(name.to_string_lossy().into_owned()).or_default() += 1;
            }
        }
        counts
    }
}

/// Runs a command until nothing new is kept, and counts what each run opens: `most` by the end of a
/// file's name, in all folders together. A file that no row names must not be opened. A file that has
/// just been written could change again unnoticed, so its digest is not kept in the first seconds.
#[track_caller]
fn check(args: &[&str], plugins: &[&str], most: &[(&str, usize)]) {
    let home = Home::with_own_cache().plugins(plugins);
    home.run(args).ended(0);
    home.run(args).ended(0);
    let mut folders = vec![home.path("cache/compiled"), home.path("plugins")];
    folders.extend(plugins.iter().map(|plugin| home.path(&format!("plugins/{plugin}"))));
    let folders: Vec<&Path> = folders.iter().map(AsRef::as_ref).collect();
    let counter = OpenCounter::watch(&folders);
    let is_too_often = |(name, count): &(String, usize)| {
        let row = most.iter().find(|(end, _)| name.ends_with(end));
        *count > row.map_or(0, |(_, most)| *most)
    };
    until_so(&format!("a run of {args:?} that opens at most {most:?}"), || {
        home.run(args).ended(0);
        !counter.take().into_iter().any(|opened| is_too_often(&opened))
    });
}

#[test]
fn a_start_reads_no_component_that_has_not_changed() {
    let plugins = ["clock", "files", "weather"];
    let kept = [("plugin.toml", plugins.len()), ("digests", 1), (".json", 1)];
    check(&["tool", "list"], &plugins, &kept);
    check(&["plugin", "list"], &plugins, &kept);
    check(&["policy"], &plugins, &kept);
    // The code is opened to see its stamp, and then mapped.
    let called = [kept.as_slice(), &[(".sum", 1), (".cwasm", 2)]].concat();
    check(&["call", "clock.get_time"], &plugins, &called);
}

#[test]
fn a_component_that_changed_is_read_again() {
    let home = Home::with_own_cache().plugins(&["clock"]);
    let path = home.path("plugins/clock/clock.wasm");
    let counter = OpenCounter::watch(&[path.parent().unwrap()]);
    until_so("a run that does not open the component", || {
        home.run(&["tool", "list"]).ended(0);
        !counter.take().contains_key("clock.wasm")
    });
    // The same size and the same time: only the time of the change of its status is another.
    let modified = fs::metadata(&path).unwrap().modified().unwrap();
    let mut bytes = fs::read(&path).unwrap();
    let last = bytes.len() - 1;
    bytes[last] ^= 1;
    fs::write(&path, bytes).unwrap();
    OpenOptions::new().write(true).open(&path).unwrap().set_modified(modified).unwrap();
    counter.take();
    home.run(&["tool", "list"]);
    assert!(counter.take().contains_key("clock.wasm"));
}
