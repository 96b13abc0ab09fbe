//! A listener that submits lines of standard input, and prints the answers.

use sallyport_sdk::{
    inbox,
    listener::{Listener, Reply, Signal},
    prelude::*,
};

/// The origin of the input.
const ORIGIN: &str = "standard input";

/// A listener without state, since every line is an input of its own.
#[derive(Debug, Default)]
struct Lines;

impl Listener for Lines {
    fn handle(&mut self, _connection: &str, signal: Signal) -> Result<Vec<Reply>, ToolError> {
        match signal {
            Signal::Text(line) if line.trim().is_empty() => Ok(vec![]),
            Signal::Text(line) => {
                inbox::submit(line.trim_end_matches(['\r', '\n']), Some(ORIGIN))?;
                Ok(vec![])
            }
            Signal::Answered(answer) => Ok(vec![Reply::Text(answer)]),
            Signal::Opened(_) | Signal::Binary(_) | Signal::Closed | Signal::Other(_) => Ok(vec![]),
        }
    }
}

sallyport_sdk::export_plugin!(listener = Lines);

#[cfg(test)]
mod tests {
    use sallyport_sdk::testing::{self, Power};

    use super::*;

    fn handle(signal: Signal) -> Result<Vec<Reply>, ToolError> {
        Lines.handle("stdin", signal)
    }

    #[test]
    fn every_line_with_words_is_an_input() {
        testing::grant([Power::Inbox]);
        for line in ["What time is it?\r", "", " \t", "  indented"] {
            assert_eq!(handle(Signal::Text(line.to_owned())), Ok(vec![]));
        }
        let texts: Vec<_> = testing::submitted().into_iter().map(|(text, _)| text).collect();
        assert_eq!(texts, ["What time is it?", "  indented"]);
    }

    #[test]
    fn answers_are_written_out_and_other_signals_pass() {
        let answer = || "It is noon.".to_owned();
        assert_eq!(handle(Signal::Answered(answer())), Ok(vec![Reply::Text(answer())]));
        for signal in [Signal::Opened("stdin".to_owned()), Signal::Binary(vec![1]), Signal::Closed]
        {
            assert_eq!(handle(signal), Ok(vec![]));
        }
    }

    #[test]
    fn a_line_that_is_not_taken_is_an_error_for_the_log() {
        let error = handle(Signal::Text("Hello".to_owned())).unwrap_err();
        assert_eq!(error.kind(), "denied");
    }
}
