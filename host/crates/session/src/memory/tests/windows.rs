//! The contents of a window.

use super::*;

#[track_caller]
fn check(transcript: &str, messages_max: u64, pinned: &[usize], expected: &str) {
    let transcript = talk(transcript);
    let view = shown(window(messages_max), &transcript, pinned, None);
    assert_eq!(words(&view.messages), expected);
    assert_eq!(view.wants_summary, None);
}

#[test]
fn what_fits_is_shown_as_it_is() {
    let transcript = talk("s u-1 a u-2 a1 r1");
    for memory in [MemoryMode::None, window(6), window(100), summed_up(6)] {
        let view = shown(memory, &transcript, &[], None);
        assert!(matches!(view.messages, std::borrow::Cow::Borrowed(all) if all == transcript));
        assert_eq!((dropped(&view), view.wants_summary), (0, None));
    }
    assert_eq!(words(&shown(MemoryMode::None, &talk("u a u"), &[], None).messages), "u a u");
}

#[test]
fn whole_old_turns_fall_out_and_the_first_stays() {
    check("s u-1 a-1 u-2 a-2 u-3 a-3 u-4", 6, &[], "s u-1 a-1 u-3 a-3 u-4");
    check("u-1 a-1 u-2 a-2 u-3 a-3 u-4", 6, &[], "u-1 a-1 u-4");
    check("u-1 aa ra a-1 u-2 ab rb a-2 u-3", 6, &[], "u-1 a-1 u-3");
    check("u-1 aa ra a-1 u-2 ab rb a-2 u-3 ac rc", 6, &[], "u-1 a-1 u-3 ac rc");
    let transcript = talk("s u-1 a-1 u-2 a-2 u-3 a-3 u-4");
    assert_eq!(dropped(&shown(window(6), &transcript, &[], None)), 2);
}

#[test]
fn what_is_pinned_stays_with_its_turn() {
    let transcript = "u-1 a-1 u-2 ab rb ac rc a-2 u-3 a-3 u-4 a-4 u-5";
    check(transcript, 9, &[], "u-1 a-1 u-3 a-3 u-4 a-4 u-5");
    check(transcript, 9, &[2], "u-1 a-1 u-2 a-2 u-3 a-3 u-4 a-4 u-5");
    check(transcript, 9, &[4], "u-1 a-1 u-2 ab rb a-2 u-4 a-4 u-5");
    check(transcript, 9, &[5, 99], "u-1 a-1 u-2 ac rc a-2 u-4 a-4 u-5");
}

#[test]
fn the_newest_turn_is_cut_last_and_after_its_input() {
    check("u-1 a-1 u-2 a-2 u-3 aa ra ab rb", 7, &[], "u-1 a-1 u-3 aa ra ab rb");
    check("u-1 a-1 u-2 aa ra ab rb ac rc", 8, &[], "u-1 a-1 u-2* ac rc");
    check("u-1 aa ra ab rb ac rc ad rd", 8, &[], "u-1* ac rc ad rd");
    check("u-1 aa ra ab rb ac rc ad rd", 8, &[4], "u-1* ab rb ad rd");
}

#[test]
fn calls_and_results_stay_together_even_when_the_budget_is_nothing() {
    check("s u-1 a-1 u-2 a-2 u-3 aab ra rb acd rc rd", 0, &[], "s u-1 a-1 u-3* acd rc* rd*");
}

#[test]
fn a_result_that_is_too_long_is_cut_with_a_mark() {
    let mut transcript = talk("u-1 aa");
    transcript.push(message("ra", 100_000));
    let view = shown(window(20), &transcript, &[], None);
    let ChatMessage::Tool(result) = &view.messages[2] else { panic!("no result") };
    let cut: serde_json::Value = serde_json::from_str(&result.content).unwrap();
    assert_eq!(cut["bytes"], 100_000);
    assert!(cut["beginning"].as_str().unwrap().starts_with("ra.."), "{cut}");
    assert!(TokenMeter::new().estimate_tokens(&view.messages) <= 20 * MESSAGE);
    assert_eq!(dropped(&view), 0);
}

#[test]
fn the_window_moves_seldom() {
    let mut transcript = talk("s u-0 a-0");
    let mut beginnings = Vec::new();
    for turn in 1..200 {
        transcript.push(message(&format!("u-{turn}"), 160));
        let view = shown(window(40), &transcript, &[], None);
        beginnings.push(words(&view.messages[..4]));
        transcript.push(message(&format!("a-{turn}"), 160));
    }
    beginnings.dedup();
    // A quarter of forty messages is five turns.
    assert!(beginnings.len() <= 200 / 5, "{}", beginnings.len());
}
