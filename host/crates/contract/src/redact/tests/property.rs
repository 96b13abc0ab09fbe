//! Properties over random secrets, neighbours, encodings and cuts. The encoders know nothing of the
//! recognition.

use proptest::{collection, prelude::*, sample};

use super::{redactor, scanned, streamed};
use crate::redact::matcher::LINE_LETTERS_MIN;

/// Secrets of all kinds of characters. Brackets are left out: with the brackets of the mark, a form
/// could arise where two texts meet that contain none.
fn secret() -> impl Strategy<Value = String> {
    let words = prop_oneof![
        "[a-zA-Z0-9_-]{6,40}",
        "[!-Z\\\\^-~]{6,24}",
        "[!-Zé漢😀\n\t^-~]{8,20}",
        // Text that looks like escapes.
        "(%[0-9a-f]{2}|\\\\[nux\"]|&[#lt;]|[a-z]){6,12}",
    ];
    words.prop_filter("long enough", |word| word.trim().len() >= 6)
}

fn neighbour() -> impl Strategy<Value = String> {
    prop_oneof!["[ -Z^-~é]{0,12}", "[a-zA-Z0-9+/=]{0,8}", "(%[0-9]|u00|&#x|\\\\|=){0,4}"]
}

/// The encoding of one character.
#[derive(Debug, Clone, Copy)]
enum Spelling {
    Plain,
    Percent { is_upper: bool },
    Unit { is_upper: bool },
    Short,
    Byte,
    Number { zeros: usize, is_hex: bool },
}

fn spelling() -> impl Strategy<Value = Spelling> {
    let number = (0..6usize, any::<bool>());
    prop_oneof![
        Just(Spelling::Plain),
        any::<bool>().prop_map(|is_upper| Spelling::Percent { is_upper }),
        any::<bool>().prop_map(|is_upper| Spelling::Unit { is_upper }),
        Just(Spelling::Short),
        Just(Spelling::Byte),
        number.prop_map(|(zeros, is_hex)| Spelling::Number { zeros, is_hex }),
    ]
}

fn hex(number: u32, digits: usize, is_upper: bool) -> String {
    if is_upper { format!("{number:0digits$X}") } else { format!("{number:0digits$x}") }
}

impl Spelling {
    fn spell(self, c: char) -> String {
        let bytes = c.to_string().into_bytes();
        match self {
            Self::Plain => c.to_string(),
            Self::Percent { is_upper } => {
                bytes.iter().map(|byte| format!("%{}", hex((*byte).into(), 2, is_upper))).collect()
            }
            Self::Unit { is_upper } => {
                let units = c.encode_utf16(&mut [0; 2]).to_vec();
                units
                    .iter()
                    .map(|unit| format!("\\u{}", hex((*unit).into(), 4, is_upper)))
                    .collect()
            }
            Self::Short if c.is_ascii_punctuation() => format!("\\{c}"),
            Self::Short => c.escape_debug().to_string(),
            Self::Byte => bytes.iter().map(|byte| format!("\\x{byte:02x}")).collect(),
            Self::Number { zeros, is_hex: true } => {
                format!("&#x{}{:X};", "0".repeat(zeros), u32::from(c))
            }
            Self::Number { zeros, is_hex: false } => {
                format!("&#{}{};", "0".repeat(zeros), u32::from(c))
            }
        }
    }
}

/// Encodes each character on its own. Text that would look like an escape is escaped, as every
/// encoder does whose text can be read again.
fn spelt(text: &str, ways: &[Spelling]) -> String {
    let spell = |(c, way): (char, &Spelling)| match (c, way) {
        ('%' | '&' | '\\', Spelling::Plain) | ('%' | '&', Spelling::Short) => {
            Spelling::Percent { is_upper: true }.spell(c)
        }
        _ => way.spell(c),
    };
    text.chars().zip(ways.iter().cycle()).map(spell).collect()
}

/// A text as transported bytes: verbatim, encoded, and broken into lines.
fn carried(text: &str, way: u8, width: usize) -> Vec<u8> {
    let base64 = data_encoding::BASE64.encode(text.as_bytes());
    let hex: Vec<String> = text.bytes().map(|byte| format!("{byte:02X}")).collect();
    let lines = |end: &str| {
        let lines = base64.as_bytes().chunks(width).map(String::from_utf8_lossy);
        lines.collect::<Vec<_>>().join(end).into_bytes()
    };
    match way {
        0 => text.as_bytes().to_vec(),
        1 => base64.clone().into_bytes(),
        2 => data_encoding::BASE64URL_NOPAD.encode(text.as_bytes()).into_bytes(),
        3 => lines("\r\n"),
        4 => lines("\n"),
        5 => hex.concat().into_bytes(),
        6 => hex.join(":").into_bytes(),
        7 => text.encode_utf16().flat_map(u16::to_le_bytes).collect(),
        8 => text.encode_utf16().flat_map(u16::to_be_bytes).collect(),
        _ => {
            text.bytes().map(|byte| format!("={byte:02X}")).collect::<Vec<_>>().join("=\r\n").into()
        }
    }
}

/// The transports that [`carried`] supports.
const WAYS: u8 = 10;

fn pieces(data: &[u8], cuts: Vec<sample::Index>) -> Vec<&[u8]> {
    let mut places: Vec<usize> = cuts.iter().map(|cut| cut.index(data.len() + 1)).collect();
    places.extend([0, data.len()]);
    places.sort_unstable();
    places.windows(2).map(|pair| &data[pair[0]..pair[1]]).collect()
}

fn holds(data: &[u8], form: &[u8]) -> bool {
    data.windows(form.len()).any(|window| window == form)
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 200, failure_persistence: None, ..ProptestConfig::default() })]

    #[test]
    fn no_form_of_a_secret_comes_out(
        secrets in collection::vec(secret(), 1..4),
        which in any::<sample::Index>(),
        (once, again) in (collection::vec(spelling(), 1..8), collection::vec(spelling(), 1..8)),
        times in 0..3usize,
        (before, behind) in (neighbour(), neighbour()),
        cuts in collection::vec(any::<sample::Index>(), 0..6),
    ) {
        let named: Vec<_> = secrets.iter().map(|secret| ("n", secret.as_str())).collect();
        let redactor = redactor(&named);
        let secret: &String = which.get(&secrets);
        let form = match times {
            0 => secret.clone(),
            1 => spelt(secret, &once),
            _ => spelt(&spelt(secret, &once), &again),
        };
        // Half an escape before a text that is escaped twice is not seen through.
        let before = if times > 1 { before.replace(['%', '\\', '&'], "") } else { before };
        let text = format!("{before}{form}{behind}");
        let pieces = pieces(text.as_bytes(), cuts);
        let out = streamed(&redactor, pieces.iter().copied());
        prop_assert!(!holds(&out, form.as_bytes()), "{text:?} {:?}", String::from_utf8_lossy(&out));
        prop_assert_eq!(&out, &*redactor.redact_bytes(text.as_bytes()));
        let (left, is_all) = scanned(&redactor, pieces);
        // The text before it may combine with its first sign to an escape.
        prop_assert!(!is_all && left.len() <= before.len() + 6, "{text:?} {left:?}");
    }

    /// Of an encoded text at most the letters at its edges are left, which are not the secret's
    /// alone, and the first letters of the first line.
    #[test]
    fn no_encoding_of_a_secret_comes_out(
        secret in secret(),
        (way, width) in (0..WAYS, 1..80usize),
        (before, behind) in ("[ -~]{0,5}", "[ -~]{0,5}"),
        cuts in collection::vec(any::<sample::Index>(), 0..6),
    ) {
        let redactor = redactor(&[("n", &secret)]);
        let data = carried(&format!("{before}{secret}{behind}"), way, width);
        let pieces = pieces(&data, cuts);
        let out = streamed(&redactor, pieces.iter().copied());
        prop_assert_eq!(&out, &*redactor.redact_bytes(&data));
        let clean = String::from_utf8_lossy(&out).replace("[secret n]", "");
        prop_assert!(clean.len() < out.len(), "{:?}", String::from_utf8_lossy(&data));
        let per_byte = data.len().div_ceil(before.len() + secret.len() + behind.len()) + 1;
        let left_max = (before.len() + behind.len()) * per_byte + 4 * LINE_LETTERS_MIN + 4;
        prop_assert!(clean.len() <= left_max, "{clean:?} of {:?}", String::from_utf8_lossy(&data));
        let (left, is_all) = scanned(&redactor, pieces);
        prop_assert!(!is_all && left.len() <= before.len() * per_byte + 6, "{left:?}");
    }

    #[test]
    fn what_holds_no_form_passes_unchanged(
        secret in "[k-m]{6,12}",
        text in "[ -jn-~é]{0,200}",
        cuts in collection::vec(any::<sample::Index>(), 0..6),
    ) {
        // Without the letters of the secret only an encoding could spell it, and none is this
        // short.
        let redactor = redactor(&[("n", &secret)]);
        prop_assume!(redactor.find_secret(text.as_bytes()).is_none());
        let out = streamed(&redactor, pieces(text.as_bytes(), cuts.clone()));
        prop_assert_eq!(out, text.as_bytes());
        let (left, is_all) = scanned(&redactor, pieces(text.as_bytes(), cuts));
        prop_assert!(is_all);
        prop_assert_eq!(left, text.as_bytes());
    }

    /// Few letters make many beginnings that break off, overlap and contain each other.
    #[test]
    fn any_cut_gives_the_same(
        secrets in collection::vec("[ab]{6,9}", 1..5),
        text in "([ab.]|%61|&#98;|\\\\|%2|\n){0,120}",
        cuts in collection::vec(any::<sample::Index>(), 0..9),
    ) {
        let named: Vec<_> = secrets.iter().map(|secret| ("n", secret.as_str())).collect();
        let redactor = redactor(&named);
        let out = streamed(&redactor, pieces(text.as_bytes(), cuts));
        prop_assert_eq!(&out, &*redactor.redact_bytes(text.as_bytes()));
        prop_assert!(secrets.iter().all(|secret| !holds(&out, secret.as_bytes())));
    }
}
