//! Recordings of live services, where they are at hand.

use std::{
    collections::BTreeMap,
    path::{Path, PathBuf},
};

use saphyr::{LoadableYamlNode, Yaml};
use serde_json::Value;

use crate::wires::{self, Wire};

/// One request with the answer that a live service gave.
pub(crate) struct Exchange {
    pub(crate) file: String,
    pub(crate) wire: &'static dyn Wire,
    pub(crate) path: String,
    pub(crate) request: Value,
    pub(crate) status: u16,
    pub(crate) content_type: String,
    pub(crate) body: String,
}

/// All that was recorded.
#[derive(Default)]
pub(crate) struct Recordings {
    pub(crate) conversations: Vec<Exchange>,
    /// Lists of models, or refusals to give one.
    pub(crate) lists: Vec<Exchange>,
    /// Refusals to make vectors.
    pub(crate) embeddings: Vec<Exchange>,
    /// How many others there are, by what they are.
    pub(crate) left_out: BTreeMap<String, usize>,
}

/// Returns what was recorded; nothing, and says so, where the folder is not there.
pub(crate) fn recordings() -> Option<Recordings> {
    // Beside the repository, not in it.
    let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../../../shared/cassettes");
    if !folder.is_dir() {
        crate::say("SKIPPED: there are no recordings beside the repository");
        return None;
    }
    let (mut files, mut recordings) = (Vec::new(), Recordings::default());
    collect(&folder, &mut files);
    files.sort();
    for path in &files {
        let text = std::fs::read_to_string(path).unwrap();
        let file = path.strip_prefix(&folder).unwrap().display().to_string();
        for document in Yaml::load_from_str(&text).unwrap() {
            recordings.take(&document, &file);
        }
    }
    Some(recordings)
}

impl Recordings {
    fn take(&mut self, document: &Yaml<'_>, file: &str) {
        let path = text(get(get(document, "when"), "path"));
        if let Some(wire) = wires::of(&path) {
            self.conversations.push(exchange(document, file, path, wire));
        } else if let Some(wire) = wires::of_list(&path) {
            self.lists.push(exchange(document, file, path, wire));
        } else if let Some(wire) = wires::of_embeddings(&path) {
            self.embeddings.push(exchange(document, file, path, wire));
        } else {
            *self.left_out.entry(not_a_conversation(&path)).or_default() += 1;
        }
    }
}

fn collect(folder: &Path, files: &mut Vec<PathBuf>) {
    for entry in std::fs::read_dir(folder).unwrap() {
        let path = entry.unwrap().path();
        if path.is_dir() {
            collect(&path, files);
        } else if path.extension().is_some_and(|extension| extension == "yaml") {
            files.push(path);
        }
    }
}

fn exchange(document: &Yaml<'_>, file: &str, path: String, wire: &'static dyn Wire) -> Exchange {
    let (when, then) = (get(document, "when"), get(document, "then"));
    let headers = get(then, "header").as_sequence().unwrap();
    let content_type = headers.iter().find(|header| text(get(header, "name")) == "content-type");
    let request = when.as_mapping_get("body").and_then(Yaml::as_str);
    Exchange {
        file: file.to_owned(),
        wire,
        path,
        request: request.map(|body| serde_json::from_str(body).unwrap()).unwrap_or_default(),
        status: get(then, "status").as_integer().unwrap().try_into().unwrap(),
        content_type: content_type.map(|header| text(get(header, "value"))).unwrap_or_default(),
        body: text(get(then, "body")),
    }
}

fn not_a_conversation(path: &str) -> String {
    let reason = [
        ("/interactions", "another interface of Gemini, which is not spoken"),
        ("/cachedContents", "a cache that is filled by hand"),
        ("/files", "a store of files"),
        ("/rerank", "an order of documents"),
    ];
    let reason = reason.iter().find(|(part, _)| path.contains(part));
    reason.map_or_else(|| format!("unknown: {path}"), |(_, reason)| (*reason).to_owned())
}

fn get<'a, 'b>(value: &'a Yaml<'b>, key: &str) -> &'a Yaml<'b> {
    value.as_mapping_get(key).unwrap()
}

fn text(value: &Yaml<'_>) -> String {
    value.as_str().unwrap().to_owned()
}
