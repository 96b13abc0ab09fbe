//! The page as HTML. All texts are escaped where they are inserted.

use maud::{DOCTYPE, Markup, PreEscaped, html};
use sallyport_contract::FormQuestion;
use sallyport_runtime::{
    gate::sealed_question::{AnswerWord, SealedQuestion},
    question_text::question_text,
};
use sallyport_store::StoredQuestion;

/// How often a page without a question looks for one, in seconds.
const LOOK_EVERY_SECONDS: &str = "2";

/// Light and dark, for a narrow screen.
const STYLE: &str = "\
:root{color-scheme:light dark;font:17px/1.45 system-ui,sans-serif}\
body{max-width:42rem;margin:0 auto;padding:1rem}\
article{border:1px solid #8888;border-radius:.6rem;padding:.8rem;margin:1rem 0}\
pre{white-space:pre-wrap;overflow-wrap:anywhere;font:14px/1.45 ui-monospace,monospace;margin:.4rem 0}\
button,input{font:inherit;padding:.7rem;border-radius:.5rem;border:1px solid #8888;width:100%;\
box-sizing:border-box;margin:.3rem 0}\
button.yes{background:#1a7f37;color:#fff}button.no{background:#b3261e;color:#fff}\
small{opacity:.75}";

fn document(refresh: Option<&str>, content: &Markup) -> Markup {
    html! {
        (DOCTYPE)
        html lang="en" {
            head {
                meta charset="utf-8";
                meta name="viewport" content="width=device-width, initial-scale=1";
                @if let Some(refresh) = refresh { meta http-equiv="refresh" content=(refresh); }
                title { "Sallyport approvals" }
                style { (PreEscaped(STYLE)) }
            }
            body { h1 { "Sallyport" } (content) }
        }
    }
}

/// A page with one sentence.
pub(crate) fn message(text: &str) -> Markup {
    document(None, &html! { p { (text) } })
}

/// The page behind the link.
pub(crate) fn link_page(key: &str) -> Markup {
    document(
        None,
        &html! {
            p { "This browser will answer the questions of the chat. The link then works nowhere else." }
            form method="post" action={ "/link/" (key) } {
                button.yes { "Use this browser" }
            }
        },
    )
}

/// What became of an answer; the questions follow.
pub(crate) fn answered(text: &str) -> Markup {
    document(
        Some("2; url=/"),
        &html! {
            p role="status" { (text) }
            p { a href="/" { "Back to the questions" } }
        },
    )
}

/// The questions that wait. While there is one, the page stays as it is, so that no button moves
/// under a finger.
pub(crate) fn question_list(open: &[StoredQuestion], now_ms: u64) -> Markup {
    let refresh = open.is_empty().then_some(LOOK_EVERY_SECONDS);
    document(
        refresh,
        &html! {
            @if open.is_empty() { p role="status" { "No question waits for an answer." } }
            @for stored in open { (question_card(stored, now_ms)) }
            @if !open.is_empty() { p { a href="/" { "Look for other questions" } } }
        },
    )
}

fn question_card(stored: &StoredQuestion, now_ms: u64) -> Markup {
    let minutes = stored.expires_ms.saturating_sub(now_ms).div_ceil(60_000);
    let question = SealedQuestion::open(&stored.text, &stored.hash).ok();
    let text = question.as_ref().and_then(|question| question_text(&question.request));
    html! {
        article {
            @match (&question, &text) {
                (Some(question), Some(text)) if needs_values(question) => {
                    pre { (text) }
                    p { "The values cannot be filled in here. Answer it where it was asked." }
                    (refusal_form(stored))
                }
                (Some(question), Some(text)) => {
                    pre { (text) }
                    (answer_form(stored, question))
                }
                _ => {
                    p { "This question cannot be shown whole. Answer it where it was asked." }
                    (refusal_form(stored))
                }
            }
            small { "Expires in " (minutes) " min. Hash " (&stored.hash[..16.min(stored.hash.len())]) }
        }
    }
}

fn needs_values(question: &SealedQuestion) -> bool {
    question.request.form_question().is_some_and(FormQuestion::needs_values)
}

fn answer_form(stored: &StoredQuestion, question: &SealedQuestion) -> Markup {
    let needs_folder = question.request.needs_folder();
    html! {
        form method="post" action="/answer" {
            (hidden_fields(stored))
            @if needs_folder {
                label { "Folder " input name="folder" autocomplete="off" placeholder="/home/…"; }
            }
            @for word in question.offered_words().iter().filter_map(|word| AnswerWord::from_word(word)) {
                @if word == AnswerWord::No {
                    label { "Reason, for the model " input name="reason" autocomplete="off"; }
                }
                button name="answer" value=(word.as_str())
                    class=(if word == AnswerWord::No { "no" } else { "yes" }) { (button_words(word)) }
            }
        }
    }
}

fn refusal_form(stored: &StoredQuestion) -> Markup {
    html! {
        form method="post" action="/answer" {
            (hidden_fields(stored))
            button.no name="answer" value="no" { (button_words(AnswerWord::No)) }
        }
    }
}

fn hidden_fields(stored: &StoredQuestion) -> Markup {
    html! {
        input type="hidden" name="id" value=(stored.id);
        input type="hidden" name="hash" value=(stored.hash);
    }
}

fn button_words(word: AnswerWord) -> &'static str {
    match word {
        AnswerWord::Once => "Allow once",
        AnswerWord::Session => "Allow until the session ends",
        AnswerWord::Always => "Allow always, as the rule above",
        AnswerWord::No => "Refuse",
    }
}

/// What an answer has done.
pub(crate) fn answer_words(word: AnswerWord) -> &'static str {
    match word {
        AnswerWord::Once => "Allowed once.",
        AnswerWord::Session => "Allowed until the session ends.",
        AnswerWord::Always => "Allowed always.",
        AnswerWord::No => "Refused.",
    }
}
