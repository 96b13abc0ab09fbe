//! The names that an author's conditions and messages may use besides `args` and `context`.
//!
//! One rule defines them, for the schema of the action's parameters:
//!
//! - A parameter's own name is its value.
//! - `total_X` and `X_count` count. `X` is the name of a property anywhere in the schema, or that
//!   name in the singular ("recipient" for "recipients", "entry" for "entries"). A list counts its
//!   entries; an object counts the entries of all lists in it, also of those that the schema does not
//!   name, because a call could otherwise pass a limit with a list of another name. A missing list
//!   has no entries.
//! - A property of a name that counts has to be unique, since a sum of two would surprise.

use serde_json::Value;

use crate::source::{HintedError, nearest_match, quoted};

/// Deepest properties of a schema that have names here: deeper than anyone can read.
const DEPTH_MAX: usize = 8;

/// Most properties of a schema that have names here. A schema with more is machine-made.
const PROPERTIES_MAX: usize = 1000;

/// The words around the name of what is counted.
const TOTAL_PREFIX: &str = "total_";
const COUNT_SUFFIX: &str = "_count";

/// The keys that lead from the arguments to a value.
pub(crate) type ArgumentPath = Vec<String>;

/// The names that the parameters of an action define.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ArgumentNames {
    properties: Vec<NamedProperty>,
}

#[derive(Debug, Clone, PartialEq, Eq)]
struct NamedProperty {
    path: ArgumentPath,
    is_list: bool,
}

/// The meaning of a name.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) enum NameMeaning {
    /// The value of a parameter.
    Argument(ArgumentPath),
    /// The number of entries of this list, or of all lists in this object.
    Count(ArgumentPath),
}

/// Why a name has no meaning.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub(crate) enum NameMeaningError {
    #[error("nothing defines {}", quoted(name))]
    Undefined { name: String, near: Option<String>, counted: Option<String> },
    #[error("{} counts nothing, because {} contains no list", quoted(name), quoted(property))]
    NoList { name: String, property: String },
    #[error("{} could count {}", quoted(name), places.join(" or "))]
    Ambiguous { name: String, places: Vec<String> },
}

impl HintedError for NameMeaningError {
    fn hint(&self) -> Option<String> {
        Some(match self {
            Self::Undefined { near: Some(near), .. } => format!("did you mean {near}?"),
            Self::Undefined { counted: Some(counted), .. } => {
                format!("a list {counted} in \"parameters\" would define it")
            }
            Self::Undefined { name, .. } => {
                format!("a property {} in \"parameters\" would define it", quoted(name))
            }
            Self::NoList { property, .. } => {
                format!("a property of the type \"array\" in {} would define it", quoted(property))
            }
            Self::Ambiguous { .. } => {
                "rename one of the properties, or write size(args.NAME)".into()
            }
        })
    }
}

impl ArgumentNames {
    /// Reads the names from the JSON Schema of parameters.
    pub fn from_schema(parameters: &Value) -> Self {
        let mut names = Self { properties: Vec::new() };
        names.add_properties(parameters, &[]);
        names
    }

    fn add_properties(&mut self, schema: &Value, path: &[String]) {
        let properties = schema.get("properties").and_then(Value::as_object);
        if path.len() >= DEPTH_MAX {
            return;
        }
        for (name, property) in properties.into_iter().flatten() {
            if self.properties.len() >= PROPERTIES_MAX {
                return;
            }
            let path = [path, std::slice::from_ref(name)].concat();
            let is_list = is_list_schema(property);
            self.properties.push(NamedProperty { path: path.clone(), is_list });
            if !is_list {
                self.add_properties(property, &path);
            }
        }
    }

    /// Returns the meaning of a name.
    ///
    /// # Errors
    ///
    /// Nothing defines the name, or more than one property does.
    pub(crate) fn meaning(&self, name: &str) -> Result<NameMeaning, NameMeaningError> {
        if self.parameter_names().any(|own| own == name) {
            return Ok(NameMeaning::Argument(vec![name.to_owned()]));
        }
        let counted = counted_word(name);
        let fits = |property: &&NamedProperty| {
            let own = property.path.last().map_or("", String::as_str);
            counted.is_some_and(|counted| is_same_or_plural(counted, own))
        };
        let found: Vec<&NamedProperty> = self.properties.iter().filter(fits).collect();
        match (counted, found.as_slice()) {
            (Some(_), [one]) => self.count_in(name, one),
            (Some(_), [_, _, ..]) => {
                let places = found.iter().map(|property| property.path.join(".")).collect();
                Err(NameMeaningError::Ambiguous { name: name.to_owned(), places })
            }
            (_, _) => Err(NameMeaningError::Undefined {
                name: name.to_owned(),
                near: nearest_match(name, self.known_names().iter().map(String::as_str))
                    .map(str::to_owned),
                counted: counted.map(quoted),
            }),
        }
    }

    fn count_in(
        &self,
        name: &str,
        property: &NamedProperty,
    ) -> Result<NameMeaning, NameMeaningError> {
        match self.contains_list(property) {
            true => Ok(NameMeaning::Count(property.path.clone())),
            false => {
                let property = property.path.join(".");
                Err(NameMeaningError::NoList { name: name.to_owned(), property })
            }
        }
    }

    fn contains_list(&self, property: &NamedProperty) -> bool {
        self.properties.iter().any(|list| list.is_list && list.path.starts_with(&property.path))
    }

    /// The arguments with the number of entries of each list and of each object with lists, under
    /// keys that no text can write ([`count_key`]).
    pub(crate) fn with_counts(&self, arguments: &Value) -> Value {
        let mut counted = arguments.clone();
        let Value::Object(fields) = &mut counted else { return counted };
        for property in self.properties.iter().filter(|property| self.contains_list(property)) {
            let count = NameMeaning::count_entries(&property.path, arguments);
            fields.insert(count_key(&property.path), count.into());
        }
        counted
    }

    fn parameter_names(&self) -> impl Iterator<Item = &str> {
        self.properties.iter().filter_map(|property| match property.path.as_slice() {
            [name] => Some(name.as_str()),
            _ => None,
        })
    }

    /// The names that can be written, for suggestions.
    fn known_names(&self) -> Vec<String> {
        let lists = self.properties.iter().filter(|property| property.is_list);
        let counted = lists.flat_map(|list| list.path.iter());
        let counts = counted
            .flat_map(|name| [format!("{TOTAL_PREFIX}{name}"), format!("{name}{COUNT_SUFFIX}")]);
        self.parameter_names().map(str::to_owned).chain(counts).collect()
    }
}

impl NameMeaning {
    /// The number of entries of a list, or of all lists in an object, in these arguments.
    pub(crate) fn count_entries(path: &ArgumentPath, arguments: &Value) -> usize {
        let counted = path.iter().try_fold(arguments, |value, key| value.get(key));
        counted.map_or(0, |value| count_lists(value, DEPTH_MAX))
    }
}

/// The entries of the lists in a value, down to a depth. A list in a list counts as one entry.
fn count_lists(value: &Value, depth: usize) -> usize {
    match value {
        Value::Array(entries) => entries.len(),
        Value::Object(fields) if depth > 0 => {
            fields.values().map(|field| count_lists(field, depth - 1)).sum()
        }
        Value::Null | Value::Bool(_) | Value::Number(_) | Value::String(_) | Value::Object(_) => 0,
    }
}

/// The key of a number of entries among the arguments of a condition.
pub(crate) fn count_key(path: &ArgumentPath) -> String {
    format!("\0count of {}", path.join("."))
}

/// Whether a condition may count.
pub(crate) fn may_count(condition: &str) -> bool {
    condition.contains(TOTAL_PREFIX) || condition.contains(COUNT_SUFFIX)
}

/// The word in a name that counts: `recipients` in `total_recipients`.
fn counted_word(name: &str) -> Option<&str> {
    let word = name.strip_prefix(TOTAL_PREFIX).or_else(|| name.strip_suffix(COUNT_SUFFIX));
    word.filter(|word| !word.is_empty())
}

/// Whether a property has this name, or is its plural.
fn is_same_or_plural(word: &str, property: &str) -> bool {
    let stem_of_y = word.strip_suffix('y');
    property == word
        || property.strip_suffix('s') == Some(word)
        || property.strip_suffix("es") == Some(word)
        || stem_of_y.is_some_and(|stem| property.strip_suffix("ies") == Some(stem))
}

fn is_list_schema(schema: &Value) -> bool {
    let is_array = |kind: &Value| kind.as_str() == Some("array");
    match schema.get("type") {
        Some(Value::Array(kinds)) => kinds.iter().any(is_array),
        Some(kind) => is_array(kind),
        None => schema.get("items").is_some(),
    }
}

/// Returns the number that a name such as `source_count` has in a result: the entries of the list
/// `sources`, at the top of the result.
pub fn count_in_result(name: &str, result: &Value) -> Option<usize> {
    let word = counted_word(name)?;
    let mut fields = result.as_object()?.iter();
    let list = fields.find(|(own, value)| is_same_or_plural(word, own) && value.is_array())?;
    list.1.as_array().map(Vec::len)
}
