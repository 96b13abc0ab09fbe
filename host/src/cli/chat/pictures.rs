//! Pictures in the results of calls: drawn where the terminal can, and named.

use sallyport_contract::{CallReport, ContentPart, Outcome, text};
use sallyport_runtime::config::{HostSettings, PictureMode};
use sallyport_terminal::picture::{self, PictureProtocol, PictureSpace};

use crate::cli::call_lines;

/// Most pictures of one call that are shown. More would push the answer out of sight.
const PICTURES_MAX: usize = 4;

/// Most characters of a media type that are shown.
const TYPE_CHARS_MAX: usize = 40;

/// A picture that is ready to be shown.
pub(super) struct ShownPicture {
    /// What it is, in words.
    pub(super) name: String,
    /// The codes that draw it, if the terminal can.
    pub(super) codes: Option<String>,
}

/// Returns how the terminal draws pictures, if it does.
pub(super) fn picture_protocol(settings: &HostSettings) -> Option<PictureProtocol> {
    match settings.terminal.images {
        PictureMode::Auto => PictureProtocol::from_environment(|name| settings.env.get(name)),
        PictureMode::Kitty => Some(PictureProtocol::Kitty),
        PictureMode::Iterm2 => Some(PictureProtocol::Iterm2),
        PictureMode::Sixel => Some(PictureProtocol::Sixel),
        PictureMode::Off => None,
    }
}

/// Prepares the pictures that a call returned.
pub(super) async fn prepare_pictures(
    report: &CallReport,
    protocol: Option<PictureProtocol>,
    space: PictureSpace,
) -> Vec<ShownPicture> {
    let Outcome::Completed(output) = &report.outcome else { return Vec::new() };
    let pictures = output.content.iter().filter_map(|part| match part {
        ContentPart::Image { media_type, data } => Some((media_type.clone(), data.clone())),
        _ => None,
    });
    let pictures: Vec<(String, Vec<u8>)> = pictures.take(PICTURES_MAX).collect();
    if pictures.is_empty() {
        return Vec::new();
    }
    // Decoding takes up to some 100 ms, during which keys and other sessions go on.
    let prepared = tokio::task::spawn_blocking(move || {
        let prepared = pictures.iter().map(|(media_type, data)| ShownPicture {
            name: picture_name(media_type, data),
            // A picture that cannot be drawn is named.
            codes: protocol.and_then(|protocol| picture::draw_picture(data, protocol, space).ok()),
        });
        prepared.collect()
    });
    prepared.await.unwrap_or_default()
}

/// Names a picture: `picture image/png 640×480, 34 KB`.
pub(super) fn picture_name(media_type: &str, data: &[u8]) -> String {
    let kind = text::escape_excerpt(media_type, TYPE_CHARS_MAX);
    let bytes = call_lines::format_size(data.len() as u64);
    match picture::picture_size(data) {
        Some((width, height)) => format!("picture {kind} {width}×{height}, {bytes}"),
        None => format!("picture {kind}, {bytes}"),
    }
}
