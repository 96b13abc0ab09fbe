//! The tools of a component before they are checked, and how many and how long they may be.

use sallyport_contract::ToolHints;

use super::RefusedFunction;
use crate::run_body::RunBody;

/// Most tools of one plugin. A model that is offered more chooses badly.
pub(crate) const TOOLS_MAX: usize = 256;

/// Longest description in bytes. It fits a page of text; a longer one would be aimed at the model
/// instead of describing the tool.
const DESCRIPTION_BYTES_MAX: usize = 8 * 1024;

/// A tool as the component describes it. Nothing in it has been validated.
#[derive(Debug)]
pub(crate) struct UncheckedTool {
    pub(crate) name: String,
    pub(crate) title: Option<String>,
    pub(crate) description: String,
    pub(crate) parameters: String,
    pub(crate) output: Option<String>,
    pub(crate) hints: ToolHints,
}

impl UncheckedTool {
    /// The bytes of its description and its schemas.
    pub(crate) fn text_bytes(&self) -> usize {
        let output = self.output.as_ref().map_or(0, String::len);
        self.description.len() + self.parameters.len() + output
    }
}

/// The tools of a component, or how to find them out.
pub(crate) enum ToolList<'a> {
    /// The component is asked for them.
    Listed(RunBody<Vec<UncheckedTool>>),
    /// They follow from its types, without running it. A tool that cannot be is left out. Each is
    /// described when it is taken, because the schemas of all may be far larger than those that a
    /// plugin may have.
    Derived {
        tools: Box<dyn Iterator<Item = UncheckedTool> + Send + 'a>,
        refused: Vec<RefusedFunction>,
    },
}

/// Cuts a description that is too long, with a mark that the model and the user both see.
pub(crate) fn shorten_description(text: String) -> String {
    if text.len() <= DESCRIPTION_BYTES_MAX {
        return text;
    }
    let end = text.floor_char_boundary(DESCRIPTION_BYTES_MAX);
    format!("{} … (cut: the description has {} bytes)", &text[..end], text.len())
}
