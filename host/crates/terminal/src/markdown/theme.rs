//! Styles of the parts of a text.

use anstyle::{AnsiColor, Style};

/// Code: a command, a name, a piece of source.
pub(super) const CODE: Style = AnsiColor::Cyan.on_default();

/// A heading.
pub(super) const HEADING: Style = AnsiColor::Magenta.on_default().bold();

/// The head of a table, the name of a quotation.
pub(super) const TITLE: Style = Style::new().bold();

/// Bars, bullets, labels: marks that are not in the text.
pub(super) const FAINT: Style = Style::new().dimmed();

/// Returns a style with the effects and the colour of another one added.
pub(super) fn overlay_style(below: Style, above: Style) -> Style {
    let style = below.effects(below.get_effects() | above.get_effects());
    style.fg_color(above.get_fg_color().or(below.get_fg_color()))
}
