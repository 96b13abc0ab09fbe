//! Recordings of live services, if they are available.

use std::{
    collections::BTreeMap,
    path::{Path, PathBuf},
};

use saphyr::{LoadableYamlNode, Yaml};
use serde_json::Value;

use crate::wires::{self, Wire};

/// One request with the answer of a live service.
pub(crate) struct Exchange {
    pub(crate) file: String,
    pub(crate) wire: &'static dyn Wire,
    pub(crate) path: String,
    pub(crate) request: Value,
    pub(crate) status: u16,
    pub(crate) content_type: String,
    pub(crate) body: String,
}

/// All recordings.
#[derive(Default)]
pub(crate) struct Recordings {
    pub(crate) conversations: Vec<Exchange>,
    /// Lists of models, or refusals to give one.
    pub(crate) lists: Vec<Exchange>,
    /// Refusals of embedding requests.
    pub(crate) embeddings: Vec<Exchange>,
    /// The total number of documents.
    pub(crate) documents: usize,
    /// The number of documents that are none of these, by kind.
    pub(crate) left_out: BTreeMap<String, usize>,
}

/// Returns the recordings; `None`, with a message, if the folder does not exist.
pub(crate) fn recordings() -> Option<Recordings> {
    let folder = folder()?;
    let mut recordings = Recordings::default();
    for path in files(&folder) {
        let file = path.strip_prefix(&folder).unwrap_or(&path).display().to_string();
        match std::fs::read_to_string(&path) {
            Ok(text) => recordings.read(&text, &file),
            Err(_) => recordings.leave_out("a file that cannot be read as text"),
        }
    }
    Some(recordings)
}

/// Returns the files unchanged.
pub(crate) fn texts() -> Option<Vec<String>> {
    let files = files(&folder()?);
    Some(files.iter().filter_map(|path| std::fs::read_to_string(path).ok()).collect())
}

/// The folder next to the repository.
fn folder() -> Option<PathBuf> {
    let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../../../shared/cassettes");
    if !folder.is_dir() {
        crate::say("SKIPPED: there are no recordings beside the repository");
        return None;
    }
    Some(folder)
}

fn files(folder: &Path) -> Vec<PathBuf> {
    let mut files = Vec::new();
    collect(folder, &mut files);
    files.sort();
    files
}

impl Recordings {
    /// Reads a file of recordings. Documents of another form are left out and counted.
    pub(crate) fn read(&mut self, text: &str, file: &str) {
        let Ok(documents) = Yaml::load_from_str(text) else {
            return self.leave_out("a file that is no YAML");
        };
        for document in documents {
            self.documents += 1;
            if let Err(why) = self.take(&document, file) {
                self.leave_out(why);
            }
        }
    }

    fn leave_out(&mut self, why: impl Into<String>) {
        *self.left_out.entry(why.into()).or_default() += 1;
    }

    fn take(&mut self, document: &Yaml<'_>, file: &str) -> Result<(), String> {
        let path = get(document, "when").and_then(|when| text(when, "path"));
        let path = path.ok_or("no request with a path")?;
        if let Some(wire) = wires::of(&path) {
            let exchange = exchange(document, file, path, wire)?;
            wires::model(&exchange.path, &exchange.request).ok_or("a request without a model")?;
            if exchange.status == 200 && !wires::says_something(&exchange.body) {
                return Err("an answer that says nothing".to_owned());
            }
            self.conversations.push(exchange);
        } else if let Some(wire) = wires::of_list(&path) {
            let exchange = exchange(document, file, path, wire)?;
            let body: Value = serde_json::from_str(&exchange.body).unwrap_or_default();
            if !body["data"].is_array() && !body["error"]["message"].is_string() {
                return Err("a list of models in another form".to_owned());
            }
            self.lists.push(exchange);
        } else if let Some(wire) = wires::of_embeddings(&path) {
            let exchange = exchange(document, file, path, wire)?;
            let body: Value = serde_json::from_str(&exchange.body).unwrap_or_default();
            wires::model(&exchange.path, &exchange.request).ok_or("a request without a model")?;
            if exchange.status < 400 || !body["error"]["message"].is_string() {
                return Err("vectors".to_owned());
            }
            self.embeddings.push(exchange);
        } else {
            return Err(not_a_conversation(&path));
        }
        Ok(())
    }
}

fn collect(folder: &Path, files: &mut Vec<PathBuf>) {
    for entry in std::fs::read_dir(folder).into_iter().flatten().flatten() {
        let path = entry.path();
        if path.is_dir() {
            collect(&path, files);
        } else if path.extension().is_some_and(|extension| extension == "yaml") {
            files.push(path);
        }
    }
}

fn exchange(
    document: &Yaml<'_>,
    file: &str,
    path: String,
    wire: &'static dyn Wire,
) -> Result<Exchange, &'static str> {
    let then = get(document, "then").ok_or("no answer")?;
    let headers = get(then, "header").and_then(Yaml::as_sequence).into_iter().flatten();
    let mut types =
        headers.filter(|header| text(header, "name").as_deref() == Some("content-type"));
    let request = get(document, "when").and_then(|when| text(when, "body"));
    let request = request.map(|body| serde_json::from_str(&body)).transpose();
    let status = get(then, "status").and_then(Yaml::as_integer);
    Ok(Exchange {
        file: file.to_owned(),
        wire,
        path,
        request: request.map_err(|_| "a request that is no JSON")?.unwrap_or_default(),
        status: status
            .and_then(|status| status.try_into().ok())
            .ok_or("an answer without a status")?,
        content_type: types.next().and_then(|header| text(header, "value")).unwrap_or_default(),
        body: text(then, "body").ok_or("an answer without a body")?,
    })
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

fn get<'a, 'b>(value: &'a Yaml<'b>, key: &str) -> Option<&'a Yaml<'b>> {
    value.as_mapping_get(key)
}

fn text(value: &Yaml<'_>, key: &str) -> Option<String> {
    get(value, key)?.as_str().map(str::to_owned)
}
