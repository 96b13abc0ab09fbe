//! The lines that were typed before, kept in a private file.
//!
//! Each entry is one line of JSON text, so that an entry may have several lines and hold anything.
//! A line of the file that is none is skipped: another version may have written it, or a process
//! that was killed.

use std::{
    fs::{self, DirBuilder, File, OpenOptions},
    io::{self, Read, Write},
    os::unix::fs::{DirBuilderExt, OpenOptionsExt},
    path::{Path, PathBuf},
};

use reedline::{
    FileBackedHistory, History, HistoryItem, HistoryItemId, HistorySessionId, Result, SearchQuery,
};

/// Most entries that are kept; more than anybody walks back through.
const ENTRIES_MAX: usize = 2000;

/// Largest entry that is kept: what is longer was pasted, and is found in its session.
const ENTRY_BYTES_MAX: usize = 16 << 10;

/// Largest file that is read: all entries at their largest.
const FILE_BYTES_MAX: u64 = (ENTRIES_MAX * ENTRY_BYTES_MAX) as u64;

/// The name of the file in its folder.
const FILE_NAME: &str = "history";

/// Entries in memory, and the file that they come from.
pub(super) struct PrivateHistory {
    memory: FileBackedHistory,
    file: Option<File>,
}

impl PrivateHistory {
    /// A history that ends with the program.
    pub(super) fn unkept() -> Self {
        // Fails for no capacity but the largest number there is.
        let memory = FileBackedHistory::new(ENTRIES_MAX).unwrap_or_default();
        Self { memory, file: None }
    }

    /// The history of a folder, which is created for its owner alone if it is not there.
    ///
    /// # Errors
    ///
    /// Folder or file cannot be used.
    pub(super) fn open(folder: &Path) -> io::Result<Self> {
        DirBuilder::new().recursive(true).mode(0o700).create(folder)?;
        let path = folder.join(FILE_NAME);
        let mut history = Self::unkept();
        let entries = read(&path)?;
        let kept = &entries[entries.len().saturating_sub(ENTRIES_MAX)..];
        if entries.len() > 2 * ENTRIES_MAX {
            rewrite(&path, kept)?;
        }
        for entry in kept {
            // Saving in memory cannot fail.
            let _ = history.memory.save(HistoryItem::from_command_line(entry));
        }
        history.file = Some(private().append(true).create(true).open(&path)?);
        Ok(history)
    }

    fn write(&mut self, entry: &str) -> io::Result<()> {
        let line = format!("{}\n", serde_json::Value::from(entry));
        // One write, so that entries of several processes do not mix.
        self.file.as_mut().map_or(Ok(()), |file| file.write_all(line.as_bytes()))
    }
}

fn private() -> OpenOptions {
    let mut options = OpenOptions::new();
    options.mode(0o600);
    options
}

fn read(path: &Path) -> io::Result<Vec<String>> {
    let mut bytes = Vec::new();
    match sallyport_untrusted_file::open(path) {
        Ok(file) => file.take(FILE_BYTES_MAX).read_to_end(&mut bytes)?,
        Err(error) if error.kind() == io::ErrorKind::NotFound => return Ok(Vec::new()),
        Err(error) => return Err(error),
    };
    let entry = |line: &[u8]| serde_json::from_slice::<String>(line).ok();
    Ok(bytes.split(|b| *b == b'\n').filter_map(entry).map(|text| clean(&text)).collect())
}

/// Writes the newest entries into a new file that takes the place of the old one.
fn rewrite(path: &Path, entries: &[String]) -> io::Result<()> {
    let beside: PathBuf = path.with_extension(format!("new-{}", std::process::id()));
    let text: String = entries
        .iter()
        .map(|entry| format!("{}\n", serde_json::Value::from(entry.as_str())))
        .collect();
    let mut file = private().write(true).create_new(true).open(&beside)?;
    let written = file.write_all(text.as_bytes()).and_then(|()| file.sync_all());
    written.and_then(|()| fs::rename(&beside, path)).inspect_err(|_| {
        // The file beside is of no use without its name.
        let _ = fs::remove_file(&beside);
    })
}

/// Takes out of a text what a terminal would obey; line breaks and tabs stay. The editor paints its
/// buffer as it is.
pub(super) fn clean(text: &str) -> String {
    let text = text.replace("\r\n", "\n").replace('\r', "\n");
    text.chars().filter(|c| !c.is_control() || matches!(c, '\n' | '\t')).collect()
}

impl History for PrivateHistory {
    fn save(&mut self, item: HistoryItem) -> Result<HistoryItem> {
        if item.command_line.len() > ENTRY_BYTES_MAX {
            return Ok(item);
        }
        let item = self.memory.save(item)?;
        // One that repeats the last has no number.
        if item.id.is_some() {
            self.write(&item.command_line)?;
        }
        Ok(item)
    }

    fn load(&self, id: HistoryItemId) -> Result<HistoryItem> {
        self.memory.load(id)
    }

    fn count(&self, query: SearchQuery) -> Result<i64> {
        self.memory.count(query)
    }

    fn search(&self, query: SearchQuery) -> Result<Vec<HistoryItem>> {
        self.memory.search(query)
    }

    fn update(
        &mut self,
        id: HistoryItemId,
        updater: &dyn Fn(HistoryItem) -> HistoryItem,
    ) -> Result<()> {
        self.memory.update(id, updater)
    }

    fn clear(&mut self) -> Result<()> {
        if let Some(file) = &self.file {
            file.set_len(0)?;
        }
        self.memory.clear()
    }

    fn delete(&mut self, id: HistoryItemId) -> Result<()> {
        self.memory.delete(id)
    }

    fn sync(&mut self) -> io::Result<()> {
        Ok(())
    }

    fn session(&self) -> Option<HistorySessionId> {
        None
    }
}
