//! Arguments, cut out of a sentence.
//!
//! Parameters are filled one after another, those whose value can be told by its look first. A
//! required parameter that finds nothing is reported, never invented.

mod choice;
mod clues;
pub(super) mod duration;
pub(super) mod moment;
mod number;
pub(super) mod params;
mod place;
mod sight;
mod text;

use serde_json::{Map, Value};

use self::clues::Clues;
use self::params::{Param, Sort};
use super::tokens::Sentence;
use crate::chat::ToolDefinition;

/// How deep objects and lists within parameters are filled.
const DEPTH_MAX: usize = 4;

/// What a sentence gives for a tool.
#[derive(Debug, Default)]
pub(super) struct Filled {
    pub(super) arguments: Map<String, Value>,
    pub(super) missing: Vec<Missing>,
}

/// A required parameter for which the sentence says nothing.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct Missing {
    /// Its name, with the names of the objects around it.
    pub(super) name: String,
    /// What its author says about it.
    pub(super) about: String,
    /// The values to choose from, where there are such.
    pub(super) choices: Vec<String>,
}

/// Fills the parameters of a tool. `naming` says for each word whether it named the tool.
pub(super) fn arguments(tool: &ToolDefinition, sentence: &Sentence<'_>, naming: &[bool]) -> Filled {
    let mut clues = Clues::new(sentence, naming);
    object(&mut clues, &tool.parameters, &tool.parameters, DEPTH_MAX)
}

fn object(clues: &mut Clues<'_, '_>, schema: &Value, root: &Value, depth: usize) -> Filled {
    let params = params::of(schema, root);
    let mut filled = Filled::default();
    for param in &params {
        match value(clues, param, &params, root, depth) {
            Ok(Some(value)) => drop(filled.arguments.insert(param.name.to_owned(), value)),
            Ok(None) if !param.required => {}
            Ok(None) => match param.schema.get("default") {
                Some(default) => {
                    drop(filled.arguments.insert(param.name.to_owned(), default.clone()))
                }
                None => filled.missing.push(Missing::new(param)),
            },
            Err(inner) if param.required => filled.missing.extend(inner),
            Err(_) => {}
        }
    }
    filled
}

/// Returns the value of a parameter. The error names what is missing inside of it.
fn value(
    clues: &mut Clues<'_, '_>,
    param: &Param<'_>,
    params: &[Param<'_>],
    root: &Value,
    depth: usize,
) -> Result<Option<Value>, Vec<Missing>> {
    let text = match &param.sort {
        Sort::Fixed(value) => return Ok(Some((*value).clone()).filter(|_| param.required)),
        Sort::Choice(values) => return Ok(choice::fill(clues, param, values)),
        Sort::Boolean => return Ok(choice::fill_boolean(clues, param)),
        Sort::Duration(unit) => return Ok(duration::fill(clues, param, *unit, params)),
        Sort::Number => return Ok(number::fill(clues, param, params)),
        Sort::List(items) => return Ok(list(clues, &param.item(items, root), param.required)),
        Sort::Object(schema) if depth > 0 => return inner(clues, param, schema, root, depth - 1),
        Sort::Object(_) => return Ok(None),
        Sort::Url => sight::url(clues),
        Sort::Path => sight::path(clues, param.required),
        Sort::Email => sight::email(clues),
        Sort::Moment => moment::fill(clues),
        Sort::Span => duration::fill_words(clues),
        Sort::Place => place::fill(clues, param),
        Sort::Content => text::content(clues, param),
        Sort::Label => text::label(clues, param),
        Sort::Text => text::text(clues, param),
    };
    Ok(text.filter(|text| has_fitting_length(param, text)).map(Value::String))
}

fn inner(
    clues: &mut Clues<'_, '_>,
    param: &Param<'_>,
    schema: &Value,
    root: &Value,
    depth: usize,
) -> Result<Option<Value>, Vec<Missing>> {
    let filled = object(clues, schema, root, depth);
    if filled.missing.is_empty() {
        let is_worth_it = param.required || !filled.arguments.is_empty();
        return Ok(is_worth_it.then_some(Value::Object(filled.arguments)));
    }
    let prefix =
        |missing: Missing| Missing { name: format!("{}.{}", param.name, missing.name), ..missing };
    Err(filled.missing.into_iter().map(prefix).collect())
}

/// Lists of simple things only; nobody says a list of objects in one sentence. An optional list is
/// filled only from what cannot be anything else.
fn list(clues: &mut Clues<'_, '_>, item: &Param<'_>, required: bool) -> Option<Value> {
    let values: Vec<Value> = match &item.sort {
        Sort::Choice(values) => choice::fill_all(clues, values),
        Sort::Number | Sort::Duration(_) if required => number::fill_all(clues, item),
        Sort::Url => std::iter::from_fn(|| sight::url(clues)).map(Value::String).collect(),
        Sort::Email => std::iter::from_fn(|| sight::email(clues)).map(Value::String).collect(),
        Sort::Path => std::iter::from_fn(|| sight::path(clues, false)).map(Value::String).collect(),
        Sort::Place | Sort::Content | Sort::Label | Sort::Text if required => {
            text::texts(clues).into_iter().map(Value::String).collect()
        }
        _ => Vec::new(),
    };
    (!values.is_empty()).then_some(Value::Array(values))
}

fn has_fitting_length(param: &Param<'_>, text: &str) -> bool {
    let limit = |key: &str| {
        param.schema.get(key).and_then(Value::as_u64).and_then(|limit| usize::try_from(limit).ok())
    };
    let length = text.chars().count();
    limit("minLength").is_none_or(|min| length >= min)
        && limit("maxLength").is_none_or(|max| length <= max)
}

impl Missing {
    fn new(param: &Param<'_>) -> Self {
        let choices = match &param.sort {
            Sort::Choice(values) => values
                .iter()
                .map(|value| value.as_str().map_or_else(|| value.to_string(), str::to_owned))
                .collect(),
            Sort::Boolean => vec!["yes".to_owned(), "no".to_owned()],
            _ => Vec::new(),
        };
        Self { name: param.name.to_owned(), about: param.about.to_owned(), choices }
    }
}
