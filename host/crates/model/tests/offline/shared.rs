//! Sentences by other authors than the matcher's, if they are available.

use std::path::Path;

use crate::{everyday::tools, say, told};

/// Least share of the English sentences for a tool that must be understood, in percent.
const UNDERSTOOD_PERCENT_MIN: usize = 75;

/// Returns true unless a sentence begins like one of the few that are not English.
fn is_english(sentence: &str) -> bool {
    let foreign = ["wie ", "¿", "rappelle", "rechne", "stelle "];
    !foreign.iter().any(|begin| sentence.starts_with(begin))
}

#[test]
fn nothing_is_done_that_a_strangers_sentence_does_not_say() {
    let path = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../../../shared/sentences.tsv");
    let Ok(text) = std::fs::read_to_string(path) else {
        println!("SKIPPED: there are no sentences beside the repository");
        return;
    };
    let (mut done_wrongly, mut understood, mut wanted, mut missed) = (Vec::new(), 0, 0, Vec::new());
    for line in text.lines().filter(|line| !line.starts_with('#')) {
        let [sentence, tool, word] = line.split('|').collect::<Vec<_>>()[..] else { continue };
        let message = say(sentence, &tools());
        let got = told(&message);
        let is_right = got.starts_with(tool) && !tool.is_empty() && got.contains(word);
        if !message.calls.is_empty() && !is_right {
            done_wrongly.push(format!("{sentence:?}: {got}"));
        }
        if is_english(sentence) && !tool.is_empty() {
            wanted += 1;
            understood += usize::from(is_right);
            if !is_right {
                missed.push(format!("{sentence:?}: {got}"));
            }
        }
    }
    println!("{understood} of {wanted} understood; missed:\n{}", missed.join("\n"));
    assert!(done_wrongly.is_empty(), "{}", done_wrongly.join("\n"));
    assert!(understood * 100 >= wanted * UNDERSTOOD_PERCENT_MIN, "{understood} of {wanted}");
}
