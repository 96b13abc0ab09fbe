//! The scripted user: what it types, and what it waits for first.

use anyhow::Result;

use super::terminal::DemoTerminal;

/// The prompt of the session.
const PROMPT: &str = "demo> ";

/// Types the whole conversation.
pub(super) fn type_conversation(terminal: &mut DemoTerminal) -> Result<()> {
    terminal.wait_for(PROMPT, 1)?;
    terminal.type_line("What time is it in Lisbon? Write it down in /notes/lisbon.md.")?;
    terminal.wait_for("[y] once", 1)?;
    terminal.press_keys("y")?;
    terminal.wait_for("written it down", 1)?;
    terminal.wait_for(PROMPT, 2)?;
    terminal.type_line("/cost")?;
    terminal.wait_for(PROMPT, 3)?;
    terminal.type_line("/quit")
}
