//! The ways in which terminals draw pictures, and which one a terminal understands.

/// A way to draw a picture.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum PictureProtocol {
    /// The graphics protocol of kitty, which Ghostty and WezTerm understand too.
    Kitty,
    /// The inline images of iTerm2.
    Iterm2,
    /// Sixel, of foot, mlterm and others.
    Sixel,
}

/// Variables of terminal multiplexers, which swallow the codes or draw them in the wrong place.
const MULTIPLEXERS: [&str; 3] = ["TMUX", "STY", "ZELLIJ"];

/// Values of `TERM` that name one terminal, or begin its names.
const TERMS: [(&str, PictureProtocol); 8] = [
    ("xterm-kitty", PictureProtocol::Kitty),
    ("xterm-ghostty", PictureProtocol::Kitty),
    ("wezterm", PictureProtocol::Iterm2),
    ("foot", PictureProtocol::Sixel),
    ("mlterm", PictureProtocol::Sixel),
    ("yaft", PictureProtocol::Sixel),
    ("contour", PictureProtocol::Sixel),
    ("mintty", PictureProtocol::Iterm2),
];

impl PictureProtocol {
    /// Returns what the terminal understands, from the environment. Returns `None` for an unknown
    /// terminal and for one behind a multiplexer.
    pub fn from_environment<'e>(variable: impl Fn(&str) -> Option<&'e str>) -> Option<Self> {
        let is_set = |name: &str| variable(name).is_some_and(|value| !value.is_empty());
        let term = variable("TERM").unwrap_or_default();
        let is_multiplexed = term.starts_with("screen") || term.starts_with("tmux");
        if is_multiplexed || MULTIPLEXERS.into_iter().any(is_set) {
            return None;
        }
        if let Some((_, protocol)) = TERMS.iter().find(|(name, _)| {
            term.strip_prefix(name).is_some_and(|rest| rest.is_empty() || rest.starts_with('-'))
        }) {
            return Some(*protocol);
        }
        // Other variables are inherited: a terminal that was started from another one has them too.
        // Those that call themselves xterm at least skip the codes that they do not know.
        if !term.starts_with("xterm") {
            return None;
        }
        match (variable("TERM_PROGRAM"), variable("LC_TERMINAL")) {
            (Some("ghostty"), _) => Some(Self::Kitty),
            (Some("iTerm.app" | "WezTerm" | "mintty"), _) | (None, Some("iTerm2")) => {
                Some(Self::Iterm2)
            }
            _ => None,
        }
    }
}
