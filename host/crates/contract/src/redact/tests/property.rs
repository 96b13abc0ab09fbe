//! Properties over random secrets, neighbours, spellings and cuts.

use proptest::{collection, prelude::*, sample};

use super::{redactor, scanned, streamed};
use crate::redact::forms;

/// Secrets of all kinds of characters. Brackets are left out: with the mark's own, a form could
/// come to be where two things meet that hold nothing.
fn secret() -> impl Strategy<Value = String> {
    let words = prop_oneof!["[a-zA-Z0-9_-]{6,40}", "[!-Z\\\\^-~]{6,24}", "[!-Zé漢😀\n\t^-~]{8,20}"];
    words.prop_filter("long enough", |word| word.trim().len() >= 6)
}

fn neighbour() -> impl Strategy<Value = String> {
    prop_oneof!["[ -Z^-~é]{0,12}", "[a-zA-Z0-9+/=]{0,8}", "(%[0-9]|u00|&#x|\\\\){0,4}"]
}

fn pieces(data: &[u8], cuts: Vec<sample::Index>) -> Vec<&[u8]> {
    let mut places: Vec<usize> = cuts.iter().map(|cut| cut.index(data.len() + 1)).collect();
    places.extend([0, data.len()]);
    places.sort_unstable();
    places.windows(2).map(|pair| &data[pair[0]..pair[1]]).collect()
}

fn holds(data: &[u8], form: &str) -> bool {
    String::from_utf8_lossy(data).contains(form)
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 200, failure_persistence: None, ..ProptestConfig::default() })]

    #[test]
    fn no_form_of_a_secret_comes_out(
        secrets in collection::vec(secret(), 1..4),
        which in any::<sample::Index>(),
        spelling in any::<sample::Index>(),
        (before, behind) in (neighbour(), neighbour()),
        cuts in collection::vec(any::<sample::Index>(), 0..6),
    ) {
        let named: Vec<_> = secrets.iter().map(|secret| ("n", secret.as_str())).collect();
        let redactor = redactor(&named);
        let all: Vec<String> = secrets.iter().flat_map(|secret| forms::of(secret)).collect();
        let secret: &String = which.get(&secrets);
        let forms: Vec<String> = forms::of(secret).into_iter().collect();
        let text = format!("{before}{}{behind}", spelling.get(&forms));
        let pieces = pieces(text.as_bytes(), cuts);
        let out = streamed(&redactor, pieces.iter().copied());
        prop_assert!(all.iter().all(|form| !holds(&out, form)), "{:?}", String::from_utf8_lossy(&out));
        prop_assert_eq!(&out, &*redactor.bytes(text.as_bytes()));
        prop_assert!(scanned(&redactor, pieces));
    }

    #[test]
    fn what_holds_no_form_passes_unchanged(
        secret in secret(),
        text in "[ -~é]{0,200}",
        cuts in collection::vec(any::<sample::Index>(), 0..6),
    ) {
        let redactor = redactor(&[("n", &secret)]);
        prop_assume!(forms::of(&secret).iter().all(|form| !holds(text.as_bytes(), form)));
        let out = streamed(&redactor, pieces(text.as_bytes(), cuts));
        prop_assert_eq!(out, text.as_bytes());
        prop_assert_eq!(redactor.finds(text.as_bytes()), None);
    }

    /// Few letters make many beginnings that break off, overlap and contain each other.
    #[test]
    fn any_cut_gives_the_same(
        secrets in collection::vec("[ab]{6,9}", 1..5),
        text in "[ab.]{0,120}",
        cuts in collection::vec(any::<sample::Index>(), 0..9),
    ) {
        let named: Vec<_> = secrets.iter().map(|secret| ("n", secret.as_str())).collect();
        let redactor = redactor(&named);
        let out = streamed(&redactor, pieces(text.as_bytes(), cuts));
        prop_assert_eq!(&out, &*redactor.bytes(text.as_bytes()));
        prop_assert!(secrets.iter().all(|secret| !holds(&out, secret)));
    }
}
