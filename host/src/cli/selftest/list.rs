//! The list: what is said, and what has to come of it.

use std::{
    fs, io,
    path::{Component, Path},
};

use sallyport_contract::ToolId;
use sallyport_policy::{
    SourceError,
    document::{Document, Item, Section},
};
use sallyport_runtime::config::{self, ConfigError};
use serde_json::{Map, Value};

/// The list that is said unless another is named.
const EVERYDAY: &str = include_str!("everyday.toml");

/// What the list of the program is called in messages.
const EVERYDAY_NAME: &str = "the built-in list";

/// What stands for the folder of the test in its policy.
const FOLDER: &str = "{folder}";

/// The home of the test, below its folder.
pub(super) const HOME: &str = "sallyport";

/// The words for how a call can end.
const OUTCOMES: [(&str, &str); 6] = [
    ("completed", "completed"),
    ("failed", "failed"),
    ("denied", "denied"),
    ("invalid-arguments", "invalid-arguments"),
    ("timed-out", "timed-out"),
    ("cancelled", "cancelled"),
];

/// A list of sentences, with what they need.
pub(super) struct List {
    /// The policy's text.
    policy: String,
    /// Files below the folder of the test.
    files: Vec<(String, String)>,
    pub(super) sentences: Vec<Sentence>,
}

/// A sentence, and what has to come of it.
pub(super) struct Sentence {
    pub(super) say: String,
    /// The tool to be called; none may be when absent.
    pub(super) tool: Option<ToolId>,
    /// Arguments that the call has to have, beside others.
    pub(super) arguments: Map<String, Value>,
    /// The word for how the call has to end.
    pub(super) outcome: &'static str,
    /// Words that the answer has to hold.
    pub(super) answer: Option<String>,
}

impl List {
    /// Reads a list: of a file, or the one that comes with the program.
    pub(super) fn read(file: Option<&Path>) -> Result<Self, ConfigError> {
        let Some(path) = file else { return Ok(Self::parse(EVERYDAY_NAME, EVERYDAY)?) };
        Ok(Self::parse(&path.display().to_string(), &config::read(path, true)?)?)
    }

    fn parse(file: &str, text: &str) -> Result<Self, SourceError> {
        Document::read(file, text, |root| {
            let policy = root.optional("policy", Item::string)?.unwrap_or_default();
            let files = root.named("files", |name, text| Ok((below(name)?, text.string()?)))?;
            let sentences = root.list("sentence", |item| item.section(sentence))?;
            match sentences.is_empty() {
                true => Err(root.lacks(&["sentence"], "there is no sentence in this list")),
                false => Ok(Self { policy, files, sentences }),
            }
        })
    }

    /// The policy for a folder.
    pub(super) fn policy(&self, folder: &Path) -> String {
        self.policy.replace(FOLDER, &folder.display().to_string())
    }

    /// Writes the files below a folder.
    ///
    /// # Errors
    ///
    /// One cannot be written, as where another lies in the place of its folder.
    pub(super) fn lay_out(&self, folder: &Path) -> io::Result<()> {
        for (name, text) in &self.files {
            let path = folder.join(name);
            let made = fs::create_dir_all(path.parent().unwrap_or(folder));
            made.and_then(|()| fs::write(path, text)).map_err(|error| {
                io::Error::new(error.kind(), format!("cannot write the list's {name}: {error}"))
            })?;
        }
        Ok(())
    }
}

fn sentence(section: &mut Section<'_>) -> Result<Sentence, SourceError> {
    let say = section.required("say", Item::prose)?;
    let tool = section.optional("tool", Item::parsed)?;
    let place = section.place();
    let arguments =
        section.named("arguments", |name, value| Ok((name.string()?, value.json()?)))?;
    let outcome = section.optional("outcome", |item| item.choice(&OUTCOMES))?;
    let answer = section.optional("answer", Item::prose)?;
    if tool.is_none() && (outcome.is_some() || !arguments.is_empty()) {
        let message = "\"arguments\" and \"outcome\" need a \"tool\"";
        return Err(place.error(message));
    }
    let arguments = Map::from_iter(arguments);
    Ok(Sentence { say, tool, arguments, outcome: outcome.unwrap_or("completed"), answer })
}

/// A path that leads nowhere but below the folder.
fn below(item: Item<'_>) -> Result<String, SourceError> {
    let place = item.place();
    let path = item.prose()?;
    let is_plain = |part| matches!(part, Component::Normal(_));
    if !Path::new(&path).components().all(is_plain) {
        return Err(place.error("files must be below the folder of the test"));
    }
    if Path::new(&path).starts_with(HOME) {
        return Err(place.error(format!("\"{HOME}\" is reserved for the test")));
    }
    Ok(path)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_lists_own_words_are_sound() {
        let list = List::read(None).unwrap();
        assert!(list.sentences.len() >= 20);
        let policy = list.policy(Path::new("/tmp/x"));
        assert!(policy.contains("\"/tmp/x/notes\"") && !policy.contains(FOLDER));
    }

    #[test]
    fn mistakes_are_told_with_their_place() {
        let rows = [
            ("", "1:1", "no sentence"),
            ("sentence = []", "1:1", "no sentence"),
            ("[[sentence]]\nsay = ''", "2:7", "say"),
            ("[[sentence]]\ntool = 'a.b'", "1:1", "say"),
            ("[[sentence]]\nsay = 'x'\ntool = 'a'", "3:8", "tool"),
            ("[[sentence]]\nsay = 'x'\noutcome = 'denied'", "1:1", "need a \"tool\""),
            ("[[sentence]]\nsay = 'x'\ntool = 'a.b'\noutcome = 'fine'", "4:11", "outcome"),
            ("[[sentence]]\nsay = 'x'\nsays = 'y'", "3:1", "unknown key"),
            ("[files]\n'../x' = ''\n[[sentence]]\nsay = 'x'", "2:1", "below"),
            ("[files]\n'sallyport/policy.toml' = ''\n[[sentence]]\nsay = 'x'", "2:1", "reserved"),
            ("[files]\n'/x' = ''\n[[sentence]]\nsay = 'x'", "2:1", "below"),
        ];
        for (text, place, words) in rows {
            let error = List::parse("l", text).err().unwrap_or_else(|| panic!("{text}"));
            let told = error.to_string();
            assert!(told.contains(&format!("l:{place}")) && told.contains(words), "{told}");
        }
    }
}
