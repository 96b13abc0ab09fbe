//! Decodes pictures of plugins within limits of size, memory and format.

use std::io::Cursor;

use image::{ImageError, ImageReader, Limits, RgbaImage};

/// Largest picture that is decoded, in bytes: as large as one that may be attached.
const PICTURE_BYTES_MAX: usize = 10 << 20;

/// Widest and highest picture, in pixels. Cameras stay below it.
const SIDE_PIXELS_MAX: u32 = 16_384;

/// Most memory of a decoder, in bytes. It fits 16 million pixels with their colours.
const DECODER_BYTES_MAX: u64 = 96 << 20;

/// Why a picture is not shown.
#[derive(Debug, thiserror::Error)]
pub enum PictureError {
    /// It has too many bytes.
    #[error("it has {0} bytes, at most {PICTURE_BYTES_MAX} are decoded")]
    TooLarge(usize),
    /// It cannot be decoded.
    #[error("it cannot be decoded: {0}")]
    Decode(#[from] ImageError),
}

/// Returns the width and the height of a picture in pixels, from its first bytes. Returns `None` if
/// the data is not a picture of a known format.
pub fn picture_size(data: &[u8]) -> Option<(u32, u32)> {
    reader(data).ok()?.into_dimensions().ok()
}

/// Decodes a picture. One that is larger than this, in pixels, is made smaller.
pub(super) fn decode_to_fit(
    data: &[u8],
    width: u32,
    height: u32,
) -> Result<RgbaImage, PictureError> {
    let picture = reader(data)?.decode()?;
    let is_larger = picture.width() > width || picture.height() > height;
    Ok(if is_larger { picture.thumbnail(width, height) } else { picture }.into_rgba8())
}

fn reader(data: &[u8]) -> Result<ImageReader<Cursor<&[u8]>>, PictureError> {
    if data.len() > PICTURE_BYTES_MAX {
        return Err(PictureError::TooLarge(data.len()));
    }
    // The stated media type may be wrong, so the format is detected from the contents.
    let mut reader =
        ImageReader::new(Cursor::new(data)).with_guessed_format().map_err(ImageError::from)?;
    let mut limits = Limits::default();
    limits.max_image_width = Some(SIDE_PIXELS_MAX);
    limits.max_image_height = Some(SIDE_PIXELS_MAX);
    limits.max_alloc = Some(DECODER_BYTES_MAX);
    reader.limits(limits);
    Ok(reader)
}
