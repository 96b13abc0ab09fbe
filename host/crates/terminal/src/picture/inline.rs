//! The protocols that take a picture as a PNG file in Base64.

use std::{fmt::Write as _, io::Cursor};

use data_encoding::BASE64;
use image::{ImageFormat, RgbaImage};

use super::{PictureError, PictureSpace};

/// Most characters of one piece in kitty's protocol.
const KITTY_PIECE_CHARS: usize = 4096;

/// The codes for kitty. `q=2` keeps the terminal from answering, since nobody reads the answer.
pub(super) fn kitty_codes(
    picture: &RgbaImage,
    space: PictureSpace,
) -> Result<String, PictureError> {
    let text = BASE64.encode(&png(picture)?);
    let (columns, rows) = space.cells_of(picture.width(), picture.height());
    let pieces = text.as_bytes().chunks(KITTY_PIECE_CHARS);
    let last = pieces.len() - 1;
    let mut codes = String::with_capacity(text.len() + 64);
    for (index, piece) in pieces.enumerate() {
        let more = u8::from(index < last);
        let keys =
            if index == 0 { format!("a=T,f=100,q=2,c={columns},r={rows},") } else { String::new() };
        let piece = String::from_utf8_lossy(piece);
        let _ = write!(codes, "\x1b_G{keys}m={more};{piece}\x1b\\");
    }
    Ok(codes)
}

/// The codes for iTerm2.
pub(super) fn iterm2_codes(
    picture: &RgbaImage,
    space: PictureSpace,
) -> Result<String, PictureError> {
    let file = png(picture)?;
    let (columns, _) = space.cells_of(picture.width(), picture.height());
    Ok(format!(
        "\x1b]1337;File=inline=1;size={};width={columns};preserveAspectRatio=1:{}\x07",
        file.len(),
        BASE64.encode(&file)
    ))
}

fn png(picture: &RgbaImage) -> Result<Vec<u8>, PictureError> {
    let mut file = Cursor::new(Vec::new());
    picture.write_to(&mut file, ImageFormat::Png)?;
    Ok(file.into_inner())
}
