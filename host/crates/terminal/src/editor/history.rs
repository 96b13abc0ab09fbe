//! History of typed lines, stored in a private file.
//!
//! Each entry is a JSON string on one line, so an entry may span several lines and contain any
//! character. Invalid lines are skipped: another version or a killed process may have written them.

use std::{
    fs::{self, DirBuilder, File, OpenOptions},
    io::{self, Read, Write},
    os::unix::fs::{DirBuilderExt, OpenOptionsExt},
    path::{Path, PathBuf},
};

use reedline::{
    FileBackedHistory, History, HistoryItem, HistoryItemId, HistorySessionId, Result, SearchQuery,
};

/// Most entries that are kept. No user steps back through more.
const ENTRIES_MAX: usize = 2000;

/// Largest entry that is kept, in bytes. A longer one was pasted, and the session keeps it.
const ENTRY_BYTES_MAX: usize = 16 << 10;

/// Largest file that is read, in bytes: all entries at their maximum.
const FILE_BYTES_MAX: u64 = (ENTRIES_MAX * ENTRY_BYTES_MAX) as u64;

/// Name of the history file.
const FILE_NAME: &str = "history";

/// Entries in memory, and the file that stores them.
pub(super) struct PrivateHistory {
    memory: FileBackedHistory,
    file: Option<File>,
}

impl PrivateHistory {
    /// A history that is not stored.
    pub(super) fn in_memory() -> Self {
        // Fails only for a capacity of `usize::MAX`.
        let memory = FileBackedHistory::new(ENTRIES_MAX).unwrap_or_default();
        Self { memory, file: None }
    }

    /// Opens the history of a folder, which is created with access for its owner only.
    ///
    /// # Errors
    ///
    /// The folder or the file cannot be used.
    pub(super) fn open(folder: &Path) -> io::Result<Self> {
        DirBuilder::new().recursive(true).mode(0o700).create(folder)?;
        let path = folder.join(FILE_NAME);
        let mut history = Self::in_memory();
        let entries = read_entries(&path)?;
        let kept = &entries[entries.len().saturating_sub(ENTRIES_MAX)..];
        if entries.len() > 2 * ENTRIES_MAX {
            rewrite_entries(&path, kept)?;
        }
        for entry in kept {
            // Saving in memory cannot fail.
            let _ = history.memory.save(HistoryItem::from_command_line(entry));
        }
        history.file = Some(private_open_options().append(true).create(true).open(&path)?);
        Ok(history)
    }

    fn append_entry(&mut self, entry: &str) -> io::Result<()> {
        let line = format!("{}\n", serde_json::Value::from(entry));
        // A single write keeps the entries of several processes apart.
        self.file.as_mut().map_or(Ok(()), |file| file.write_all(line.as_bytes()))
    }
}

fn private_open_options() -> OpenOptions {
    let mut options = OpenOptions::new();
    options.mode(0o600);
    options
}

fn read_entries(path: &Path) -> io::Result<Vec<String>> {
    let mut bytes = Vec::new();
    match sallyport_untrusted_file::open_regular(path) {
        Ok(file) => file.take(FILE_BYTES_MAX).read_to_end(&mut bytes)?,
        Err(error) if error.kind() == io::ErrorKind::NotFound => return Ok(Vec::new()),
        Err(error) => return Err(error),
    };
    let entry = |line: &[u8]| serde_json::from_slice::<String>(line).ok();
    Ok(bytes
        .split(|b| *b == b'\n')
        .filter_map(entry)
        .map(|text| remove_control_chars(&text))
        .collect())
}

/// Writes the newest entries into a new file that replaces the old one.
fn rewrite_entries(path: &Path, entries: &[String]) -> io::Result<()> {
    let temp_path: PathBuf = path.with_extension(format!("new-{}", std::process::id()));
    let text: String = entries
        .iter()
        .map(|entry| format!("{}\n", serde_json::Value::from(entry.as_str())))
        .collect();
    let mut file = private_open_options().write(true).create_new(true).open(&temp_path)?;
    let written = file.write_all(text.as_bytes()).and_then(|()| file.sync_all());
    written.and_then(|()| fs::rename(&temp_path, path)).inspect_err(|_| {
        // The new file has no use under its temporary name.
        let _ = fs::remove_file(&temp_path);
    })
}

/// Removes control characters except line breaks and tabs. The editor paints its buffer unchanged.
pub(super) fn remove_control_chars(text: &str) -> String {
    let text = text.replace("\r\n", "\n").replace('\r', "\n");
    text.chars().filter(|c| !c.is_control() || matches!(c, '\n' | '\t')).collect()
}

impl History for PrivateHistory {
    fn save(&mut self, item: HistoryItem) -> Result<HistoryItem> {
        if item.command_line.len() > ENTRY_BYTES_MAX {
            return Ok(item);
        }
        let item = self.memory.save(item)?;
        // An entry that repeats the last one gets no id.
        if item.id.is_some() {
            self.append_entry(&item.command_line)?;
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
