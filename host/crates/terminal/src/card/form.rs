//! The part of a card about a question of an MCP server.

use anstyle::Style;
use sallyport_contract::{FormQuestion, ToolId, text};

use crate::style::StyledLine;

const DIM: Style = Style::new().dimmed();

/// The title of the card. It names who reads the answer.
pub(super) fn form_title(tool: &ToolId) -> String {
    format!("the MCP server of {} asks you", tool.plugin)
}

/// The rows of the card, each with its name. The bar keeps the server's words from looking like
/// another row.
pub(super) fn form_rows(form: &FormQuestion) -> Vec<(&'static str, Vec<StyledLine>)> {
    let plain = |words: String| StyledLine::plain(text::escape_line(&words));
    let said = form.message.split('\n').map(|line| plain(format!("│ {line}")));
    let mut rows = vec![("says", said.collect::<Vec<_>>())];
    rows.extend(form.page.iter().map(|page| ("page", vec![plain(page.clone())])));
    let mut fields: Vec<StyledLine> =
        form.fields.iter().map(|field| plain(field.summary())).collect();
    let note = match (&form.page, form.needs_values()) {
        (Some(_), _) => "a yes opens the page; look at its address first",
        (None, true) => "the server reads what you answer; type no passwords",
        (None, false) => "a yes is the whole answer",
    };
    fields.push(StyledLine::styled(note, DIM));
    rows.push(("answer", fields));
    rows
}
