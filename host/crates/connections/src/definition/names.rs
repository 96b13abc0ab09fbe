//! The parameters that a request may name in `{placeholders}`.

use serde_json::{Map, Value};

/// The parameters of an action, as its schema lists them.
pub(super) struct ParameterNames<'s> {
    schema: &'s Value,
}

impl<'s> ParameterNames<'s> {
    pub(super) fn new(schema: &'s Value) -> Self {
        Self { schema }
    }

    fn find(&self, name: &str) -> Option<&'s Value> {
        name.split('.').try_fold(self.schema, |schema, key| schema.get("properties")?.get(key))
    }

    /// Whether there is such a parameter: `content.subject`.
    pub(super) fn has(&self, name: &str) -> bool {
        self.find(name).is_some()
    }

    /// Whether each call has a value for it.
    pub(super) fn is_always_given(&self, name: &str) -> bool {
        let mut schema = self.schema;
        name.split('.').all(|key| {
            let required = schema.get("required").and_then(Value::as_array);
            let is_required = required.is_some_and(|all| all.iter().any(|own| own == key));
            let Some(property) = schema.get("properties").and_then(|all| all.get(key)) else {
                return false;
            };
            schema = property;
            is_required || property.get("default").is_some()
        })
    }

    pub(super) fn all(&self) -> Vec<&'s str> {
        let properties = self.schema.get("properties").and_then(Value::as_object);
        properties.into_iter().flatten().map(|(name, _)| name.as_str()).collect()
    }
}

/// Returns arguments with the defaults of their schema.
pub(super) fn with_defaults(schema: &Value, arguments: &Value) -> Value {
    let mut filled: Map<String, Value> = arguments.as_object().cloned().unwrap_or_default();
    let properties = schema.get("properties").and_then(Value::as_object);
    for (name, property) in properties.into_iter().flatten() {
        if let Some(default) = property.get("default") {
            filled.entry(name).or_insert_with(|| default.clone());
        }
    }
    Value::Object(filled)
}
