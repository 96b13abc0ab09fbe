//! Pictures of every format in every protocol, and what is not a picture.

use std::io::Cursor;

use image::{DynamicImage, ImageFormat, Rgba, RgbaImage};

use super::*;

const PROTOCOLS: [PictureProtocol; 3] =
    [PictureProtocol::Kitty, PictureProtocol::Iterm2, PictureProtocol::Sixel];

fn picture(width: u32, height: u32, format: ImageFormat) -> Vec<u8> {
    let pixel = |x: u32, y: u32| Rgba([(x * 7) as u8, (y * 5) as u8, 90, 255]);
    let picture = DynamicImage::from(RgbaImage::from_fn(width, height, pixel)).into_rgb8();
    let mut file = Cursor::new(Vec::new());
    picture.write_to(&mut file, format).unwrap();
    file.into_inner()
}

fn space() -> PictureSpace {
    PictureSpace::new(TerminalSize::new(80, 24), 800, 480)
}

/// The codes of the protocol around what may only be plain characters.
#[track_caller]
fn check_codes(codes: &str, protocol: PictureProtocol) {
    let pieces: Vec<&str> = match protocol {
        PictureProtocol::Kitty => codes
            .split_terminator("\x1b\\")
            .map(|piece| piece.strip_prefix("\x1b_G").expect("a piece"))
            .collect(),
        PictureProtocol::Iterm2 => {
            let inner =
                codes.strip_prefix("\x1b]1337;File=").and_then(|rest| rest.strip_suffix('\x07'));
            vec![inner.expect("one code")]
        }
        PictureProtocol::Sixel => {
            let inner =
                codes.strip_prefix("\x1bP0;1;0q").and_then(|rest| rest.strip_suffix("\x1b\\"));
            vec![inner.expect("one code")]
        }
    };
    for piece in pieces {
        assert!(piece.len() <= 4096 + 64 || protocol != PictureProtocol::Kitty);
        assert!(piece.bytes().all(|byte| byte.is_ascii_graphic()), "{piece:?}");
    }
}

#[test]
fn every_format_is_drawn_in_every_protocol() {
    for format in [ImageFormat::Png, ImageFormat::Jpeg, ImageFormat::Gif, ImageFormat::WebP] {
        let data = picture(64, 40, format);
        assert_eq!(picture_size(&data), Some((64, 40)), "{format:?}");
        for protocol in PROTOCOLS {
            check_codes(&draw_picture(&data, protocol, space()).unwrap(), protocol);
        }
    }
}

#[test]
fn a_large_picture_is_made_to_fit() {
    let data = picture(3000, 1000, ImageFormat::Png);
    let kitty = draw_picture(&data, PictureProtocol::Kitty, space()).unwrap();
    assert!(kitty.starts_with("\x1b_Ga=T,f=100,q=2,c=60,r=10,m="), "{}", &kitty[..60]);
    let sixel = draw_picture(&data, PictureProtocol::Sixel, space()).unwrap();
    assert!(sixel.contains("\"1;1;600;200#"), "{}", &sixel[..60]);
    let iterm2 = draw_picture(&picture(25, 25, ImageFormat::Png), PictureProtocol::Iterm2, space());
    assert!(iterm2.unwrap().contains(";width=3;"));
}

/// A plugin may send anything.
#[test]
fn what_is_not_a_picture_is_refused() {
    let whole = picture(64, 40, ImageFormat::Png);
    let mut bomb = whole.clone();
    bomb[16..24].copy_from_slice(&[0, 0, 0x30, 0, 0, 0, 0x30, 0]);
    let rows: [&[u8]; 7] = [
        b"",
        b"\x1b]1337;File=inline=1:\x07",
        &whole[..40],
        &whole[..whole.len() / 2],
        &bomb,
        b"GIF89a",
        b"<svg/>",
    ];
    for data in rows {
        for protocol in PROTOCOLS {
            assert!(draw_picture(data, protocol, space()).is_err(), "{data:?}");
        }
    }
    let too_large = vec![0; (10 << 20) + 1];
    assert!(matches!(
        draw_picture(&too_large, PictureProtocol::Kitty, space()),
        Err(PictureError::TooLarge(_))
    ));
}

#[test]
fn transparent_pixels_keep_the_background() {
    let clear = RgbaImage::from_pixel(8, 8, Rgba([255, 0, 0, 0]));
    assert_eq!(sixel::sixel_codes(&clear), "\x1bP0;1;0q\"1;1;8;8--\x1b\\");
    let white = RgbaImage::from_pixel(8, 2, Rgba([255, 255, 255, 255]));
    assert_eq!(sixel::sixel_codes(&white), "\x1bP0;1;0q\"1;1;8;2#215;2;100;100;100#215!8B$-\x1b\\");
}

#[test]
fn the_environment_tells_the_protocol() {
    use PictureProtocol::{Iterm2, Kitty, Sixel};
    let xterm = ("TERM", "xterm-256color");
    type Variables<'v> = &'v [(&'v str, &'v str)];
    let rows: [(Variables<'_>, Option<PictureProtocol>); 16] = [
        (&[], None),
        (&[xterm], None),
        (&[("TERM", "xterm-kitty")], Some(Kitty)),
        (&[("TERM", "xterm-ghostty")], Some(Kitty)),
        (&[xterm, ("TERM_PROGRAM", "ghostty")], Some(Kitty)),
        (&[xterm, ("TERM_PROGRAM", "iTerm.app")], Some(Iterm2)),
        (&[xterm, ("LC_TERMINAL", "iTerm2")], Some(Iterm2)),
        (&[xterm, ("TERM_PROGRAM", "WezTerm")], Some(Iterm2)),
        (&[xterm, ("TERM_PROGRAM", "Apple_Terminal"), ("LC_TERMINAL", "iTerm2")], None),
        (&[("TERM", "foot")], Some(Sixel)),
        (&[("TERM", "footer")], None),
        (&[("TERM", "tmux-256color"), ("TERM_PROGRAM", "ghostty")], None),
        (&[("TERM", "xterm-kitty"), ("TMUX", "/tmp/x")], None),
        // A window that was opened from another terminal inherits its variables.
        (&[xterm, ("KITTY_WINDOW_ID", "1")], None),
        (&[("TERM", "linux"), ("TERM_PROGRAM", "iTerm.app")], None),
        (&[("TERM", "dumb"), ("TERM_PROGRAM", "WezTerm")], None),
    ];
    for (variables, want) in rows {
        let variable = |name: &str| {
            variables.iter().find(|(known, _)| *known == name).map(|(_, value)| *value)
        };
        assert_eq!(PictureProtocol::from_environment(variable), want, "{variables:?}");
    }
}

#[test]
fn an_odd_terminal_still_has_space() {
    for (columns, rows, width, height) in [(0, 0, 0, 0), (1, 1, 65535, 65535), (65535, 65535, 1, 1)]
    {
        let space = PictureSpace::new(TerminalSize::new(columns, rows), width, height);
        assert!(space.width_pixels() >= 1 && space.height_pixels() >= 1);
        assert!(space.width_pixels() <= 6000 && space.height_pixels() <= 2000, "{space:?}");
    }
}
