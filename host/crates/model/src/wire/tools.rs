//! Serializes the tools of a request once.
//!
//! A session sends the same tools with every request, up to a thousand of them in half a megabyte.
//! They are serialized when they change and copied otherwise.

use std::sync::{Arc, Mutex, PoisonError};

use serde::Serialize;
use serde_json::value::{RawValue, to_raw_value};

use crate::{
    chat::ModelToolDefinition,
    fit::{FittedTools, SchemaDialect},
};

/// The tools of the last request.
#[derive(Debug, Default)]
pub(crate) struct SerializedToolsCache(Mutex<Option<Arc<SerializedTools>>>);

/// Tools in the form of a provider.
#[derive(Debug)]
pub(crate) struct SerializedTools {
    source_tools: Vec<ModelToolDefinition>,
    /// The tools in a form that the provider accepts.
    pub(crate) fit: FittedTools,
    /// The serialized tools; `None` if there are none.
    pub(crate) json: Option<Box<RawValue>>,
}

impl SerializedToolsCache {
    /// Returns the tools as `write` serializes them, or the last result if the tools are the same.
    /// `write` is not called without tools.
    pub(crate) fn serialize_tools<T: Serialize>(
        &self,
        tools: &[ModelToolDefinition],
        dialect: SchemaDialect,
        write: impl FnOnce(&[ModelToolDefinition]) -> T,
    ) -> Arc<SerializedTools> {
        let mut last = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        if let Some(last) = last.as_ref().filter(|last| last.source_tools == tools) {
            return Arc::clone(last);
        }
        let fit = FittedTools::new(tools, dialect);
        let json = (!fit.tools().is_empty())
            .then(|| to_raw_value(&write(fit.tools())).expect("a JSON value can be written"));
        let written = Arc::new(SerializedTools { source_tools: tools.to_vec(), fit, json });
        *last = Some(Arc::clone(&written));
        written
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    const DIALECT: SchemaDialect = SchemaDialect::STRICTEST;

    fn tools(count: usize) -> Vec<ModelToolDefinition> {
        let tool = |n| ModelToolDefinition {
            name: format!("t{n}"),
            description: String::new(),
            parameters: json!({ "type": "object" }),
        };
        (0..count).map(tool).collect()
    }

    fn names(tools: &[ModelToolDefinition]) -> Vec<String> {
        tools.iter().map(|tool| tool.name.clone()).collect()
    }

    #[test]
    fn the_same_tools_are_written_once() {
        let written = SerializedToolsCache::default();
        let first = written.serialize_tools(&tools(2), DIALECT, names);
        assert_eq!(first.json.as_deref().unwrap().get(), r#"["t0","t1"]"#);
        let again =
            written.serialize_tools(&tools(2), DIALECT, |_| -> () { panic!("written twice") });
        assert!(Arc::ptr_eq(&first, &again));
    }

    #[test]
    fn other_tools_are_written_anew_and_none_are_not_written() {
        let written = SerializedToolsCache::default();
        let mut other = tools(2);
        other[1].parameters = json!({ "type": "object", "properties": {} });
        for (tools, want) in [(tools(1), 1), (tools(2), 2), (other, 2), (tools(1), 1)] {
            let mut count = 0;
            let written = written.serialize_tools(&tools, DIALECT, |tools| {
                count = tools.len();
                names(tools)
            });
            assert!(written.json.is_some());
            assert_eq!(count, want);
        }
        let none = written.serialize_tools(&[], DIALECT, |_| -> () { panic!("nothing to write") });
        assert!(none.json.is_none());
    }
}
