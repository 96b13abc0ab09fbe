//! Pictures inside the terminal, for terminals that can show them.
//!
//! A picture comes from a plugin, so its bytes are never sent as they are: it is decoded within
//! limits, made smaller, and encoded again. A picture that cannot be decoded is not shown. Which
//! protocol a terminal speaks follows from the environment. The terminal is not asked, because one
//! that does not answer would delay the start, and a late answer would be taken for typed keys.

mod decode;
mod inline;
mod protocol;
mod sixel;

pub use decode::{PictureError, picture_size};
pub use protocol::PictureProtocol;

use super::screen::TerminalSize;

/// Widest and highest picture, in columns and rows. It leaves room for the text that it belongs to.
const COLUMNS_MAX: u16 = 60;
const ROWS_MAX: u16 = 20;

/// Size of a cell in pixels, for a terminal that does not report it.
const CELL_WIDTH_UNKNOWN: u16 = 10;
const CELL_HEIGHT_UNKNOWN: u16 = 20;

/// Largest cell in pixels. A terminal that reports more is mistaken.
const CELL_PIXELS_MAX: u16 = 100;

/// The space for a picture.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct PictureSpace {
    columns: u16,
    rows: u16,
    cell_width: u16,
    cell_height: u16,
}

impl PictureSpace {
    /// The space in a terminal of this size, which has so many pixels in all; 0 if it does not know.
    pub fn new(size: TerminalSize, width_pixels: u16, height_pixels: u16) -> Self {
        let cells = |count: usize| u16::try_from(count).unwrap_or(u16::MAX).max(1);
        let (columns, rows) = (cells(size.columns()), cells(size.rows()));
        let cell = |pixels: u16, cells: u16, unknown: u16| match pixels / cells {
            0 => unknown,
            known => known.min(CELL_PIXELS_MAX),
        };
        Self {
            columns: columns.saturating_sub(1).clamp(1, COLUMNS_MAX),
            rows: (rows / 2).clamp(1, ROWS_MAX),
            cell_width: cell(width_pixels, columns, CELL_WIDTH_UNKNOWN),
            cell_height: cell(height_pixels, rows, CELL_HEIGHT_UNKNOWN),
        }
    }

    fn width_pixels(self) -> u32 {
        u32::from(self.columns) * u32::from(self.cell_width)
    }

    fn height_pixels(self) -> u32 {
        u32::from(self.rows) * u32::from(self.cell_height)
    }

    /// The columns and rows that a picture of this size in pixels takes.
    fn cells_of(self, width: u32, height: u32) -> (u32, u32) {
        let columns = width.div_ceil(self.cell_width.into()).clamp(1, self.columns.into());
        let rows = height.div_ceil(self.cell_height.into()).clamp(1, self.rows.into());
        (columns, rows)
    }
}

/// Returns the codes that draw a picture from the beginning of a line. The cursor is then in the
/// last line of the picture, or below it.
///
/// # Errors
///
/// The data is not a picture of a known format, or is too large.
pub fn draw_picture(
    data: &[u8],
    protocol: PictureProtocol,
    space: PictureSpace,
) -> Result<String, PictureError> {
    let picture = decode::decode_to_fit(data, space.width_pixels(), space.height_pixels())?;
    match protocol {
        PictureProtocol::Kitty => inline::kitty_codes(&picture, space),
        PictureProtocol::Iterm2 => inline::iterm2_codes(&picture, space),
        PictureProtocol::Sixel => Ok(sixel::sixel_codes(&picture)),
    }
}

#[cfg(test)]
mod tests;
