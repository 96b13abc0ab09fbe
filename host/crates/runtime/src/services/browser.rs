//! The user's browser.
//!
//! Without a desktop, a watching user or a browser that starts, the address is shown to the user.

use sallyport_contract::services::{UrlOpenResult, UrlOpener};

use crate::{environment::Env, gate::MessageSink};

/// The setting for no browser.
pub const NO_BROWSER: &str = "none";

/// One of these variables is set if there is a desktop.
const DISPLAY_VARIABLES: [&str; 2] = ["WAYLAND_DISPLAY", "DISPLAY"];

/// Opens pages.
pub struct Browser {
    open_method: PageOpenMethod,
    message_sink: MessageSink,
}

/// The means by which pages are opened.
#[derive(Debug, Clone, PartialEq, Eq)]
enum PageOpenMethod {
    /// Shows the address, so that the user opens it.
    PrintAddress,
    /// The desktop's default program.
    Desktop,
    /// A program that the operator chose. It receives the address.
    Program(String),
}

impl Browser {
    /// Creates a browser from the configuration. `is_watched` is whether a user is at the terminal;
    /// `tell` shows the user an address.
    pub fn new(
        command: Option<&str>,
        env: &Env,
        is_watched: bool,
        message_sink: MessageSink,
    ) -> Self {
        Self { open_method: PageOpenMethod::new(command, env, is_watched), message_sink }
    }
}

impl PageOpenMethod {
    fn new(command: Option<&str>, env: &Env, is_watched: bool) -> Self {
        // Only Linux has variables that indicate a desktop.
        let is_desktop =
            !cfg!(target_os = "linux") || DISPLAY_VARIABLES.iter().any(|n| env.get(n).is_some());
        match command {
            Some(NO_BROWSER) => Self::PrintAddress,
            Some(program) => Self::Program(program.to_owned()),
            None if is_desktop && is_watched => Self::Desktop,
            None => Self::PrintAddress,
        }
    }

    /// Starts the program that opens the page. It is not waited for, because a browser may run for
    /// days.
    fn open(&self, url: &str) -> bool {
        match self {
            Self::PrintAddress => false,
            Self::Desktop => open::that_detached(url).is_ok(),
            Self::Program(program) => open::with_detached(url, program).is_ok(),
        }
    }
}

impl UrlOpener for Browser {
    fn open_page(&self, address: &str) -> UrlOpenResult {
        if self.open_method.open(address) {
            return UrlOpenResult::Browser;
        }
        (self.message_sink)(&format!("open this page: {address}"));
        UrlOpenResult::Shown
    }
}

#[cfg(test)]
mod tests {
    use std::sync::{Arc, Mutex};

    use super::*;

    #[test]
    fn a_page_is_opened_where_there_is_a_desktop_and_somebody_to_see_it() {
        let desk = [("DISPLAY", ":0")];
        let program = || PageOpenMethod::Program("lynx".to_owned());
        type Row<'r> = (Option<&'r str>, &'r [(&'r str, &'r str)], bool, PageOpenMethod);
        let rows: [Row<'_>; 7] = [
            (None, &desk, true, PageOpenMethod::Desktop),
            (None, &[("WAYLAND_DISPLAY", "w")], true, PageOpenMethod::Desktop),
            (None, &desk, false, PageOpenMethod::PrintAddress),
            (None, &[("DISPLAY", "")], true, PageOpenMethod::PrintAddress),
            (Some("none"), &desk, true, PageOpenMethod::PrintAddress),
            (Some("lynx"), &desk, true, program()),
            (Some("lynx"), &[], false, program()),
        ];
        for (command, env, is_watched, want) in rows {
            let way =
                PageOpenMethod::new(command, &Env::from_pairs(env.iter().copied()), is_watched);
            assert_eq!(way, want, "{command:?} {env:?} {is_watched}");
        }
    }

    #[test]
    fn what_cannot_be_opened_is_shown() {
        let shown = Arc::new(Mutex::new(Vec::new()));
        for command in ["none", "/there/is/no/such/program"] {
            let told = Arc::clone(&shown);
            let message_sink =
                Arc::new(move |line: &str| told.lock().unwrap().push(line.to_owned()));
            let browser = Browser::new(Some(command), &Env::from_pairs([]), true, message_sink);
            assert_eq!(browser.open_page("https://example.com/"), UrlOpenResult::Shown);
        }
        assert_eq!(*shown.lock().unwrap(), ["open this page: https://example.com/"; 2]);
    }
}
