//! The list: sentences with their expected results.

use std::{
    collections::BTreeSet,
    fs, io,
    path::{Component, Path},
};

use sallyport_contract::{Outcome, PluginName, ToolId};
use sallyport_policy::{
    SourceError,
    document::{TomlDocument, TomlItem, TomlSection},
};
use sallyport_runtime::config::{self, ConfigError};
use serde_json::{Map, Value};

/// The default list.
const DEFAULT_LIST: &str = include_str!("everyday.toml");

/// Name of the default list in messages.
const DEFAULT_LIST_NAME: &str = "the built-in list";

/// Placeholder for the test folder in its policy.
const FOLDER_PLACEHOLDER: &str = "{folder}";

/// The home of the test, inside its folder.
pub(super) const HOME: &str = "sallyport";

/// A list of sentences, with the files and the policy that they need.
pub(super) struct SentenceList {
    /// Text of the policy.
    policy: String,
    /// Files inside the test folder, as path and text.
    files: Vec<(String, String)>,
    pub(super) sentences: Vec<TestSentence>,
}

/// A sentence with its expected result.
pub(super) struct TestSentence {
    pub(super) say: String,
    /// The expected tool. `None` means that no tool may be called.
    pub(super) tool: Option<ToolId>,
    /// Arguments that the call must have. Others are allowed.
    pub(super) arguments: Map<String, Value>,
    /// The expected outcome.
    pub(super) outcome: &'static str,
    /// Text that the answer must contain, ignoring case.
    pub(super) answer: Option<String>,
}

impl SentenceList {
    /// Reads the list in a file, or the default list.
    pub(super) fn read_or_default(file: Option<&Path>) -> Result<Self, ConfigError> {
        let Some(path) = file else { return Ok(Self::parse(DEFAULT_LIST_NAME, DEFAULT_LIST)?) };
        Ok(Self::parse(&path.display().to_string(), &config::read_config_file(path, true)?)?)
    }

    /// The plugins whose tools the sentences expect.
    pub(super) fn plugins(&self) -> BTreeSet<PluginName> {
        let tools = self.sentences.iter().filter_map(|sentence| sentence.tool.as_ref());
        tools.map(|tool| tool.plugin.clone()).collect()
    }

    fn parse(file: &str, text: &str) -> Result<Self, SourceError> {
        TomlDocument::read_with(file, text, |root| {
            let policy = root.read_optional("policy", TomlItem::read_string)?.unwrap_or_default();
            let files = root.read_named_items("files", |name, text| {
                Ok((parse_relative_path(name)?, text.read_string()?))
            })?;
            let sentences = root.read_list("sentence", |item| item.read_section(parse_sentence))?;
            match sentences.is_empty() {
                true => {
                    Err(root.missing_keys_error(&["sentence"], "there is no sentence in this list"))
                }
                false => Ok(Self { policy, files, sentences }),
            }
        })
    }

    /// Returns the policy for a test folder.
    pub(super) fn policy_text(&self, folder: &Path) -> String {
        self.policy.replace(FOLDER_PLACEHOLDER, &folder.display().to_string())
    }

    /// Writes the files into a folder.
    ///
    /// # Errors
    ///
    /// A file cannot be written, for example if another file has the name of its folder.
    pub(super) fn write_files(&self, folder: &Path) -> io::Result<()> {
        for (name, text) in &self.files {
            let path = folder.join(name);
            let created = fs::create_dir_all(path.parent().unwrap_or(folder));
            created.and_then(|()| fs::write(path, text)).map_err(|error| {
                io::Error::new(error.kind(), format!("cannot write the list's {name}: {error}"))
            })?;
        }
        Ok(())
    }
}

fn parse_sentence(section: &mut TomlSection<'_>) -> Result<TestSentence, SourceError> {
    let say = section.read_required("say", TomlItem::read_nonblank_string)?;
    let tool = section.read_optional("tool", TomlItem::read_parsed)?;
    let place = section.place();
    let arguments = section.read_named_items("arguments", |name, value| {
        Ok((name.read_string()?, value.read_json()?))
    })?;
    let outcomes = Outcome::NAMES.map(|name| (name, name));
    let outcome = section.read_optional("outcome", |item| item.read_choice(&outcomes))?;
    let answer = section.read_optional("answer", TomlItem::read_nonblank_string)?;
    if tool.is_none() && (outcome.is_some() || !arguments.is_empty()) {
        let message = "\"arguments\" and \"outcome\" need a \"tool\"";
        return Err(place.into_error(message));
    }
    let arguments = Map::from_iter(arguments);
    Ok(TestSentence { say, tool, arguments, outcome: outcome.unwrap_or("completed"), answer })
}

/// Parses a path that stays inside the test folder.
fn parse_relative_path(item: TomlItem<'_>) -> Result<String, SourceError> {
    let place = item.place();
    let path = item.read_nonblank_string()?;
    let is_plain = |part| matches!(part, Component::Normal(_));
    if !Path::new(&path).components().all(is_plain) {
        return Err(place.into_error("files must be below the folder of the test"));
    }
    if Path::new(&path).starts_with(HOME) {
        return Err(place.into_error(format!("\"{HOME}\" is reserved for the test")));
    }
    Ok(path)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_lists_own_words_are_sound() {
        let list = SentenceList::read_or_default(None).unwrap();
        assert!(list.sentences.len() >= 20);
        let policy = list.policy_text(Path::new("/tmp/x"));
        assert!(policy.contains("\"/tmp/x/notes\"") && !policy.contains(FOLDER_PLACEHOLDER));
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
            let error = SentenceList::parse("l", text).err().unwrap_or_else(|| panic!("{text}"));
            let told = error.to_string();
            assert!(told.contains(&format!("l:{place}")) && told.contains(words), "{told}");
        }
    }
}
