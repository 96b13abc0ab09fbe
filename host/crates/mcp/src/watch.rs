//! Changes of the plugins' files, found by looking at them now and then.
//!
//! Looking is enough: a folder of plugins has few files, and a client notices a delay of seconds
//! less than a missed change, which the notifications of a file system can be.

use std::{
    fs,
    path::{Path, PathBuf},
    time::Duration,
};

use sallyport_untrusted_file::FileStamp;
use tokio::time::{Instant, sleep_until};

/// How often the files are looked at, unless the watcher is to be quicker.
const LOOK_EVERY: Duration = Duration::from_secs(2);

/// Most files that are looked at. A folder with more is not one of plugins.
const FILES_MAX: usize = 10_000;

/// A file or folder that was looked at.
type SeenFile = (PathBuf, FileStamp);

/// Reports when the files of plugins have changed.
#[derive(Debug)]
pub struct PluginWatch {
    folders: Vec<PathBuf>,
    lock_file: PathBuf,
    /// The files when the plugins were last loaded.
    loaded: Vec<SeenFile>,
    /// The files at the last look, if they differ from those.
    changed: Option<Vec<SeenFile>>,
    look_every: Duration,
    next_look: Instant,
}

impl PluginWatch {
    /// Watches folders of plugins, and the file that lists the accepted ones.
    pub fn new(folders: Vec<PathBuf>, lock_file: PathBuf) -> Self {
        let loaded = look(&folders, &lock_file);
        let next_look = Instant::now() + LOOK_EVERY;
        Self { folders, lock_file, loaded, changed: None, look_every: LOOK_EVERY, next_look }
    }

    /// Looks more often or less often.
    #[must_use]
    pub fn with_interval(self, look_every: Duration) -> Self {
        Self { look_every, next_look: Instant::now() + look_every, ..self }
    }

    /// Waits until the files differ from those at the last call, and then stay the same for a
    /// while, because a build writes a file in pieces. It may be dropped at any time: the next call
    /// goes on with what this one has seen.
    pub async fn wait_for_change(&mut self) {
        loop {
            sleep_until(self.next_look).await;
            let (folders, lock_file) = (self.folders.clone(), self.lock_file.clone());
            let seen = tokio::task::spawn_blocking(move || look(&folders, &lock_file)).await;
            self.next_look = Instant::now() + self.look_every;
            let Ok(seen) = seen else { continue };
            let was_changed = self.changed.take();
            if was_changed.as_ref() == Some(&seen) {
                self.loaded = seen;
                return;
            }
            self.changed = (seen != self.loaded).then_some(seen);
        }
    }

    /// Takes the files of this moment for known, because the plugins are about to be loaded.
    pub fn note_reload(&mut self) {
        self.loaded = look(&self.folders, &self.lock_file);
        self.changed = None;
    }
}

fn look(folders: &[PathBuf], lock_file: &Path) -> Vec<SeenFile> {
    let mut stamps: Vec<SeenFile> = stamp(lock_file).into_iter().collect();
    for folder in folders {
        for entry in entries(folder) {
            stamps.extend(stamp(&entry));
            if entry.is_dir() {
                stamps.extend(entries(&entry).iter().filter_map(|file| stamp(file)));
            }
        }
    }
    stamps.truncate(FILES_MAX);
    stamps
}

/// A folder that cannot be read has no entries. Loading the plugins reports why.
fn entries(folder: &Path) -> Vec<PathBuf> {
    let read = fs::read_dir(folder).into_iter().flatten();
    let mut paths: Vec<PathBuf> =
        read.take(FILES_MAX).flatten().map(|entry| entry.path()).collect();
    paths.sort();
    paths
}

fn stamp(path: &Path) -> Option<SeenFile> {
    Some((path.to_owned(), FileStamp::read(path).ok()?))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_change_of_a_plugin_is_seen() {
        let home = tempfile::tempdir().unwrap();
        let (folder, lock) = (home.path().join("plugins"), home.path().join("sallyport.lock"));
        let file = |name: &str| folder.join(name);
        let mut before = look(std::slice::from_ref(&folder), &lock);
        let mut check = |what: &str, change: &dyn Fn()| {
            change();
            let after = look(std::slice::from_ref(&folder), &lock);
            assert_ne!(after, before, "{what}");
            before = after;
        };
        check("a plugin", &|| fs::create_dir_all(file("clock")).unwrap());
        check("its manifest", &|| fs::write(file("clock/plugin.toml"), "a").unwrap());
        check("other bytes", &|| fs::write(file("clock/plugin.toml"), "ab").unwrap());
        check("an acceptance", &|| fs::write(&lock, "a").unwrap());
        check("a single file", &|| fs::write(file("clock.wasm"), "").unwrap());
        check("a removal", &|| fs::remove_dir_all(file("clock")).unwrap());
    }

    #[tokio::test]
    async fn a_change_was_not_seen_while_something_shorter_was_waited_for() {
        let home = tempfile::tempdir().unwrap();
        let folders = vec![home.path().to_owned()];
        let look_every = Duration::from_millis(20);
        let mut watch =
            PluginWatch::new(folders, home.path().join("sallyport.lock")).with_interval(look_every);
        fs::write(home.path().join("clock.wasm"), "").unwrap();
        let begun = Instant::now();
        while tokio::time::timeout(look_every / 2, watch.wait_for_change()).await.is_err() {
            assert!(begun.elapsed() < Duration::from_secs(60));
        }
    }
}
