//! The entities of HTML and XML: `&amp;`, `&#39;`.

use std::collections::BTreeSet;

/// How an encoder writes the two quotes; `<`, `>` and `&` are written alike by all.
struct Habit {
    double: &'static str,
    single: &'static str,
}

const HABITS: [Habit; 8] = [
    Habit { double: "\"", single: "'" },
    Habit { double: "&quot;", single: "'" },
    Habit { double: "&quot;", single: "&#39;" },
    Habit { double: "&quot;", single: "&#039;" },
    Habit { double: "&quot;", single: "&#x27;" },
    Habit { double: "&quot;", single: "&apos;" },
    Habit { double: "&#34;", single: "&#39;" },
    Habit { double: "&#x22;", single: "&#x27;" },
];

pub(super) fn forms(value: &str) -> BTreeSet<String> {
    let mut forms = BTreeSet::new();
    for habit in &HABITS {
        let spelt = habit.spell(value);
        forms.insert(numbered_beyond_ascii(&spelt));
        forms.insert(spelt);
    }
    forms.insert(value.chars().map(|c| format!("&#{};", u32::from(c))).collect());
    forms.insert(value.chars().map(|c| format!("&#x{:x};", u32::from(c))).collect());
    forms.insert(value.chars().map(|c| format!("&#x{:X};", u32::from(c))).collect());
    forms
}

impl Habit {
    fn spell(&self, value: &str) -> String {
        value.chars().fold(String::new(), |mut spelt, c| {
            match c {
                '&' => spelt.push_str("&amp;"),
                '<' => spelt.push_str("&lt;"),
                '>' => spelt.push_str("&gt;"),
                '"' => spelt.push_str(self.double),
                '\'' => spelt.push_str(self.single),
                _ => spelt.push(c),
            }
            spelt
        })
    }
}

fn numbered_beyond_ascii(spelt: &str) -> String {
    spelt.chars().fold(String::new(), |mut out, c| {
        if c.is_ascii() {
            out.push(c);
        } else {
            out.push_str(&format!("&#{};", u32::from(c)));
        }
        out
    })
}
