//! Sixel: bands of six rows of pixels, one colour after the other.

use std::{collections::BTreeSet, fmt::Write as _};

use image::{Rgba, RgbaImage};

/// Levels of each colour channel. The colours form a cube, which needs no search for a palette and
/// fits the registers of every terminal (256).
const LEVELS: u32 = 6;

/// Rows of pixels in a band.
const BAND_ROWS: u32 = 6;

/// Least opacity of a pixel that is drawn.
const OPACITY_MIN: u8 = 128;

/// Thresholds of an ordered dither of 4 × 4 pixels.
const DITHER: [[u32; 4]; 4] = [[0, 8, 2, 10], [12, 4, 14, 6], [3, 11, 1, 9], [15, 7, 13, 5]];

/// Shortest run that is written as a count.
const RUN_MIN: usize = 4;

/// The codes of a picture. Transparent pixels keep the background.
pub(super) fn sixel_codes(picture: &RgbaImage) -> String {
    let (width, height) = picture.dimensions();
    let mut codes = format!("\x1bP0;1;0q\"1;1;{width};{height}");
    let colours: BTreeSet<u32> = picture
        .enumerate_pixels()
        .filter_map(|(x, y, pixel)| colour_register(x, y, *pixel))
        .collect();
    for colour in &colours {
        let percent = |level: u32| level * 100 / (LEVELS - 1);
        let (red, green, blue) =
            (colour / (LEVELS * LEVELS), colour / LEVELS % LEVELS, colour % LEVELS);
        let (red, green, blue) = (percent(red), percent(green), percent(blue));
        let _ = write!(codes, "#{colour};2;{red};{green};{blue}");
    }
    for top in (0..height).step_by(BAND_ROWS as usize) {
        push_band(&mut codes, picture, top);
    }
    codes.push_str("\x1b\\");
    codes
}

fn push_band(codes: &mut String, picture: &RgbaImage, top: u32) {
    let (width, height) = picture.dimensions();
    let rows = top..(top + BAND_ROWS).min(height);
    // The register of each pixel, by columns.
    let registers: Vec<Vec<Option<u32>>> = (0..width)
        .map(|x| rows.clone().map(|y| colour_register(x, y, *picture.get_pixel(x, y))).collect())
        .collect();
    let colours: BTreeSet<u32> = registers.iter().flatten().flatten().copied().collect();
    for colour in colours {
        let _ = write!(codes, "#{colour}");
        let sixels: Vec<u8> = registers.iter().map(|column| sixel(column, colour)).collect();
        push_runs(codes, &sixels);
        codes.push('$');
    }
    codes.push('-');
}

/// The character for the pixels of one column that have a colour.
fn sixel(column: &[Option<u32>], colour: u32) -> u8 {
    let bits = column.iter().enumerate().filter(|(_, register)| **register == Some(colour));
    b'?' + bits.map(|(row, _)| 1 << row).sum::<u8>()
}

fn push_runs(codes: &mut String, sixels: &[u8]) {
    for run in sixels.chunk_by(|one, next| one == next) {
        let character = char::from(run[0]);
        if run.len() >= RUN_MIN {
            let _ = write!(codes, "!{}{character}", run.len());
        } else {
            codes.extend(run.iter().map(|_| character));
        }
    }
}

/// The register of a pixel's colour, or `None` for a transparent pixel.
fn colour_register(x: u32, y: u32, Rgba([red, green, blue, opacity]): Rgba<u8>) -> Option<u32> {
    let threshold = DITHER[(y % 4) as usize][(x % 4) as usize];
    let level = |channel: u8| (u32::from(channel) * (LEVELS - 1) + threshold * 255 / 16) / 255;
    (opacity >= OPACITY_MIN).then(|| (level(red) * LEVELS + level(green)) * LEVELS + level(blue))
}
