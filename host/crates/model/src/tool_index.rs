//! Finds tools by words.

use sallyport_lexical::{FieldWeight, LexicalIndex, LexicalMatch};
use serde_json::Value;

use crate::chat::ModelToolDefinition;

const NAME: FieldWeight = FieldWeight { boost: 3.0, words_usual: 4.0, words_max: 40 };
const DESCRIPTION: FieldWeight = FieldWeight { boost: 1.0, words_usual: 30.0, words_max: 200 };
const PARAMETER_NAMES: FieldWeight = FieldWeight { boost: 1.0, words_usual: 8.0, words_max: 100 };
const PARAMETER_DESCRIPTIONS: FieldWeight =
    FieldWeight { boost: 0.5, words_usual: 40.0, words_max: 300 };

/// Most levels of a schema that are searched for parameters: enough for nested objects, and a bound
/// for endless schemas.
const DEPTH_MAX: usize = 4;

/// Most parameters of one tool that are indexed.
const PARAMETERS_MAX: usize = 200;

/// An index of tool definitions, shared by tool search and the offline matcher.
#[derive(Debug)]
pub struct ToolIndex(LexicalIndex);

impl ToolIndex {
    /// Indexes tools by name, description and parameters.
    pub fn new(tools: &[ModelToolDefinition]) -> Self {
        let mut index = LexicalIndex::default();
        for tool in tools {
            let mut parameters = ParameterTexts::default();
            parameters.collect_texts(&tool.parameters, DEPTH_MAX);
            index.add_document([
                (NAME, vec![tool.name.as_str()]),
                (DESCRIPTION, vec![tool.description.as_str()]),
                (PARAMETER_NAMES, parameters.names),
                (PARAMETER_DESCRIPTIONS, parameters.descriptions),
            ]);
        }
        Self(index)
    }

    /// Returns the tools that contain a word of the query, the best first, and equal ones in their
    /// original order. [`LexicalMatch::document`] is the tool's index in the list.
    pub fn find_tools(&self, query: &str) -> Vec<LexicalMatch> {
        self.0.find_documents(query)
    }
}

/// The texts of a tool's parameters.
#[derive(Debug, Default)]
struct ParameterTexts<'a> {
    names: Vec<&'a str>,
    descriptions: Vec<&'a str>,
}

impl<'a> ParameterTexts<'a> {
    fn collect_texts(&mut self, schema: &'a Value, depth: usize) {
        let Some(below) = depth.checked_sub(1) else { return };
        for (name, parameter) in schema["properties"].as_object().into_iter().flatten() {
            if self.names.len() >= PARAMETERS_MAX {
                return;
            }
            self.names.push(name);
            self.descriptions.extend(parameter["description"].as_str());
            self.collect_texts(parameter, below);
            self.collect_texts(&parameter["items"], below);
        }
    }
}
