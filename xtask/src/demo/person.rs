//! The scripted user: what it types, and what it waits for first.

use anyhow::Result;

use super::terminal::Terminal;

/// The prompt of the session.
const PROMPT: &str = "demo> ";

/// Types the whole conversation.
pub(super) fn talk(terminal: &mut Terminal) -> Result<()> {
    terminal.wait_for(PROMPT, 1)?;
    terminal.line("What time is it in Lisbon? Write it down in /notes/lisbon.md.")?;
    terminal.wait_for("[y] once", 1)?;
    terminal.key("y")?;
    terminal.wait_for("written it down", 1)?;
    terminal.wait_for(PROMPT, 2)?;
    terminal.line("/cost")?;
    terminal.wait_for(PROMPT, 3)?;
    terminal.line("/quit")
}
