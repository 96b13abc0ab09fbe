//! Properties of every view of any conversation.

use proptest::{collection::vec, prelude::*};

use super::*;

/// Turns, each with the sizes of its input, of the results of its exchanges, and of its answer.
type Turns = Vec<(usize, Vec<Vec<usize>>, usize)>;

fn turns() -> impl Strategy<Value = Turns> {
    let exchange = vec(0..600usize, 1..4);
    vec((0..600usize, vec(exchange, 0..4), 0..600usize), 1..9)
}

/// Each message begins with a word of its own.
fn transcript(turns: &Turns, system: bool) -> Vec<ChatMessage> {
    let mut messages: Vec<ChatMessage> = system.then(|| message("s-0", 100)).into_iter().collect();
    for (input, exchanges, answer) in turns {
        messages.push(message(&format!("u-{}", messages.len()), *input));
        for results in exchanges {
            messages.extend(exchange(messages.len(), results));
        }
        messages.push(message(&format!("a-{}", messages.len()), *answer));
    }
    messages
}

fn exchange(place: usize, results: &[usize]) -> Vec<ChatMessage> {
    let id = |at: usize| format!("-{}", place + 1 + at);
    let calls = (0..results.len()).map(|at| ModelCallRequest {
        id: id(at),
        name: String::new(),
        arguments: String::new(),
    });
    let text = format!("a-{place}..");
    let answer = AssistantMessage { text, calls: calls.collect(), opaque: None };
    let results = results.iter().enumerate().map(|(at, bytes)| {
        let (call_id, content) = (id(at), "x".repeat(*bytes));
        ChatMessage::Tool(ToolResultMessage {
            call_id,
            name: String::new(),
            content,
            failed: false,
        })
    });
    [ChatMessage::Assistant(answer)].into_iter().chain(results).collect()
}

/// The positions in a transcript after which the model is asked.
fn requests(transcript: &[ChatMessage]) -> Vec<usize> {
    (1..=transcript.len())
        .filter(|end| transcript::check_messages(&transcript[..*end]).is_ok())
        .collect()
}

/// The positions of a view's messages in the transcript; a summary has none.
fn places(view: &ConversationView<'_>) -> Vec<usize> {
    let place = |message: &ChatMessage| {
        let word = word(message);
        word.trim_end_matches('*').split_once('-').and_then(|(_, place)| place.parse().ok())
    };
    view.messages.iter().filter_map(place).collect()
}

proptest! {
    #[test]
    fn every_view_is_valid_and_within_its_budget(
        turns in turns(),
        system: bool,
        tokens_max in 0..2_000u64,
        pinned in vec(0..60usize, 0..4),
        through in 0..60usize,
    ) {
        let transcript = transcript(&turns, system);
        let summary = ConversationSummary { text: "short".into(), through };
        for memory in [MemoryMode::SlidingWindow { tokens_max }, MemoryMode::Summary { tokens_max }] {
            for end in requests(&transcript) {
                let sent = &transcript[..end];
                let view = shown(memory, sent, &pinned, Some(&summary));
                let places = places(&view);
                let first = usize::from(system);
                prop_assert!(places.contains(&first));
                prop_assert!(pinned.iter().all(|pin| *pin >= end || places.contains(pin)));
                prop_assert!(places.is_sorted());
                prop_assert_eq!(dropped(&view), end - places.len());
                prop_assert_eq!(places.last(), Some(&(end - 1)));
                if TokenMeter::new().estimate_tokens(&view.messages) > tokens_max {
                    prop_assert_eq!(&places, &least(sent, &pinned));
                }
            }
        }
    }

    #[test]
    fn what_was_left_out_stays_out(
        turns in turns(),
        tokens_max in 0..2_000u64,
        pinned in vec(0..60usize, 0..4),
    ) {
        let transcript = transcript(&turns, true);
        let mut gone = BTreeSet::new();
        for end in requests(&transcript) {
            let view = shown(MemoryMode::SlidingWindow { tokens_max }, &transcript[..end], &pinned, None);
            let places: BTreeSet<usize> = places(&view).into_iter().collect();
            prop_assert!(gone.is_disjoint(&places));
            gone = (0..end).filter(|place| !places.contains(place)).collect();
        }
    }

    #[test]
    fn nothing_is_left_out_without_need(turns in turns(), system: bool) {
        let transcript = transcript(&turns, system);
        let end = requests(&transcript).pop().unwrap_or(1);
        let tokens_max = 2 * TokenMeter::new().estimate_tokens(&transcript);
        let view = shown(MemoryMode::SlidingWindow { tokens_max }, &transcript[..end], &[], None);
        prop_assert_eq!(&*view.messages, &transcript[..end]);
    }
}

/// The positions that cannot be left out: the system prompt, the input and the last answer of the
/// first turn and of those with a pinned message, the pinned messages, the newest input, the last
/// exchange.
fn least(transcript: &[ChatMessage], pinned: &[usize]) -> Vec<usize> {
    let is_input = |place: &usize| matches!(transcript[*place], ChatMessage::User(_));
    let is_result = |place: &usize| matches!(transcript[*place], ChatMessage::Tool(_));
    let unit = |place: usize| {
        let begin = (0..=place).rfind(|at| !is_result(at)).unwrap_or(0);
        let end = (begin + 1..transcript.len()).find(|at| !is_result(at));
        begin..end.unwrap_or(transcript.len())
    };
    let inputs: Vec<usize> = (0..transcript.len()).filter(is_input).collect();
    let mut least = BTreeSet::from([0]);
    for (number, begin) in inputs.iter().enumerate() {
        let end = inputs.get(number + 1).copied().unwrap_or(transcript.len());
        let pins: Vec<usize> =
            pinned.iter().copied().filter(|pin| (*begin..end).contains(pin)).collect();
        if number == 0 || !pins.is_empty() {
            least.insert(*begin);
            least.extend(unit(end - 1));
            least.extend(pins.into_iter().flat_map(unit));
        }
    }
    least.insert(inputs[inputs.len() - 1]);
    least.extend(unit(transcript.len() - 1));
    least.into_iter().collect()
}
