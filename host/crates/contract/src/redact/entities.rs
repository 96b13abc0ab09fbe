//! The named characters of markup: ASCII signs, and Latin-1.

/// Longest name here, in bytes.
pub(super) const NAME_BYTES_MAX: usize = 16;

/// ASCII signs by name; a name needs its semicolon.
const SIGNS: [(&str, char); 45] = [
    ("Tab", '\t'),
    ("NewLine", '\n'),
    ("excl", '!'),
    ("quot", '"'),
    ("QUOT", '"'),
    ("num", '#'),
    ("dollar", '$'),
    ("percnt", '%'),
    ("amp", '&'),
    ("AMP", '&'),
    ("apos", '\''),
    ("lpar", '('),
    ("rpar", ')'),
    ("ast", '*'),
    ("midast", '*'),
    ("plus", '+'),
    ("comma", ','),
    ("period", '.'),
    ("sol", '/'),
    ("colon", ':'),
    ("semi", ';'),
    ("lt", '<'),
    ("LT", '<'),
    ("equals", '='),
    ("gt", '>'),
    ("GT", '>'),
    ("quest", '?'),
    ("commat", '@'),
    ("lsqb", '['),
    ("lbrack", '['),
    ("bsol", '\\'),
    ("rsqb", ']'),
    ("rbrack", ']'),
    ("Hat", '^'),
    ("lowbar", '_'),
    ("UnderBar", '_'),
    ("grave", '`'),
    ("DiacriticalGrave", '`'),
    ("lcub", '{'),
    ("lbrace", '{'),
    ("verbar", '|'),
    ("vert", '|'),
    ("VerticalLine", '|'),
    ("rcub", '}'),
    ("rbrace", '}'),
];

/// Names that browsers also accept without a semicolon.
const BARE_SIGNS: [&str; 8] = ["amp", "AMP", "lt", "LT", "gt", "GT", "quot", "QUOT"];

/// The characters from U+00A0 on, in order; browsers also accept them without a semicolon.
const LATIN_1: &str = "nbsp iexcl cent pound curren yen brvbar sect uml copy ordf laquo not shy reg \
    macr deg plusmn sup2 sup3 acute micro para middot cedil sup1 ordm raquo frac14 frac12 frac34 \
    iquest Agrave Aacute Acirc Atilde Auml Aring AElig Ccedil Egrave Eacute Ecirc Euml Igrave Iacute \
    Icirc Iuml ETH Ntilde Ograve Oacute Ocirc Otilde Ouml times Oslash Ugrave Uacute Ucirc Uuml \
    Yacute THORN szlig agrave aacute acirc atilde auml aring aelig ccedil egrave eacute ecirc euml \
    igrave iacute icirc iuml eth ntilde ograve oacute ocirc otilde ouml divide oslash ugrave uacute \
    ucirc uuml yacute thorn yuml";

/// Returns the character for a name that ends with a semicolon.
pub(super) fn named_entity(name: &[u8]) -> Option<char> {
    let sign = SIGNS.iter().find(|(own, _)| own.as_bytes() == name);
    sign.map(|(_, c)| *c).or_else(|| latin_1_entity(name))
}

/// Returns the character for a name that needs no semicolon.
pub(super) fn bare_entity(name: &[u8]) -> Option<char> {
    let is_bare = BARE_SIGNS.iter().any(|own| own.as_bytes() == name);
    if is_bare { named_entity(name) } else { latin_1_entity(name) }
}

fn latin_1_entity(name: &[u8]) -> Option<char> {
    let place = LATIN_1.split_ascii_whitespace().position(|own| own.as_bytes() == name)?;
    char::from_u32(0xa0 + u32::try_from(place).ok()?)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_mean_what_browsers_take_them_for() {
        for (name, want) in
            [("sol", '/'), ("nbsp", '\u{a0}'), ("eacute", 'é'), ("Eacute", 'É'), ("yuml", 'ÿ')]
        {
            assert_eq!(named_entity(name.as_bytes()), Some(want), "{name}");
        }
        assert_eq!(LATIN_1.split_ascii_whitespace().count(), 96);
        assert!(SIGNS.iter().all(|(name, _)| name.len() <= NAME_BYTES_MAX));
        assert_eq!(
            (bare_entity(b"sol"), bare_entity(b"amp"), bare_entity(b"uuml")),
            (None, Some('&'), Some('ü'))
        );
    }
}
