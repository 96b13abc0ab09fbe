//! The tools of a request, written once.
//!
//! A session sends the same tools with every request, a thousand of them in half a megabyte. They
//! are written when they change and copied otherwise.

use std::sync::{Arc, Mutex, PoisonError};

use serde::Serialize;
use serde_json::value::{RawValue, to_raw_value};

use crate::chat::ToolDefinition;

/// The tools as they went out last.
#[derive(Debug, Default)]
pub(crate) struct WrittenTools(Mutex<Option<Written>>);

#[derive(Debug)]
struct Written {
    tools: Vec<ToolDefinition>,
    json: Arc<RawValue>,
}

impl WrittenTools {
    /// Returns the tools in the form that `write` gives them; the same JSON again while they are
    /// the same tools. Without tools there is nothing to write.
    pub(crate) fn json<T: Serialize>(
        &self,
        tools: &[ToolDefinition],
        write: impl FnOnce(&[ToolDefinition]) -> T,
    ) -> Option<Arc<RawValue>> {
        if tools.is_empty() {
            return None;
        }
        let mut last = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        if let Some(last) = last.as_ref().filter(|last| last.tools == tools) {
            return Some(Arc::clone(&last.json));
        }
        let json = to_raw_value(&write(tools)).expect("a JSON value can be written");
        let json = Arc::from(json);
        *last = Some(Written { tools: tools.to_vec(), json: Arc::clone(&json) });
        Some(json)
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    fn tools(count: usize) -> Vec<ToolDefinition> {
        let tool = |n| ToolDefinition {
            name: format!("t{n}"),
            description: String::new(),
            parameters: json!({ "type": "object" }),
        };
        (0..count).map(tool).collect()
    }

    fn names(tools: &[ToolDefinition]) -> Vec<String> {
        tools.iter().map(|tool| tool.name.clone()).collect()
    }

    #[test]
    fn the_same_tools_are_written_once() {
        let written = WrittenTools::default();
        let first = written.json(&tools(2), names).unwrap();
        assert_eq!(first.get(), r#"["t0","t1"]"#);
        let again = written.json(&tools(2), |_| -> () { panic!("written twice") }).unwrap();
        assert!(Arc::ptr_eq(&first, &again));
    }

    #[test]
    fn other_tools_are_written_anew_and_none_are_not_written() {
        let written = WrittenTools::default();
        let mut other = tools(2);
        other[1].parameters = json!({ "type": "object", "properties": {} });
        for (tools, want) in [(tools(1), 1), (tools(2), 2), (other, 2), (tools(1), 1)] {
            let mut count = 0;
            let json = written.json(&tools, |tools| {
                count = tools.len();
                names(tools)
            });
            assert!(json.is_some());
            assert_eq!(count, want);
        }
        assert!(written.json(&[], |_| -> () { panic!("nothing to write") }).is_none());
    }
}
