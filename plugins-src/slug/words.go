package main

import (
	"strings"
	"unicode"
)

// plain spells letters in ASCII: accents are dropped, ligatures are taken apart, and Cyrillic and
// Greek are transliterated. The order within a string is that of its letters.
var plain = spellings(map[string]string{
	"àáâãåāăąǎ": "a", "ä": "ae", "æ": "ae", "çćĉċč": "c", "ďđð": "d", "èéêëēĕėęě": "e", "ĝğġģ": "g",
	"ĥħ": "h", "ìíîïĩīĭįı": "i", "ĵ": "j", "ķ": "k", "ĺļľŀł": "l", "ñńņňŋ": "n", "òóôõøōŏő": "o",
	"ö": "oe", "œ": "oe", "ŕŗř": "r", "śŝşšș": "s", "ß": "ss", "ţťŧț": "t", "þ": "th",
	"ùúûũūŭůűų": "u", "ü": "ue", "ŵ": "w", "ýÿŷ": "y", "źżž": "z",
	"а": "a", "б": "b", "в": "v", "г": "g", "ґ": "g", "д": "d", "её": "e", "є": "ye", "ж": "zh", "з": "z",
	"иі": "i", "ї": "yi", "й": "y", "к": "k", "л": "l", "м": "m", "н": "n", "о": "o", "п": "p", "р": "r",
	"с": "s", "т": "t", "у": "u", "ф": "f", "х": "kh", "ц": "ts", "ч": "ch", "ш": "sh", "щ": "shch",
	"ы": "y", "э": "e", "ю": "yu", "я": "ya", "ъь": "",
	"αά": "a", "β": "v", "γ": "g", "δ": "d", "εέ": "e", "ζ": "z", "ηή": "i", "θ": "th", "ιίϊΐ": "i",
	"κ": "k", "λ": "l", "μ": "m", "ν": "n", "ξ": "x", "οό": "o", "π": "p", "ρ": "r", "σς": "s", "τ": "t",
	"υύϋΰ": "y", "φ": "f", "χ": "ch", "ψ": "ps", "ωώ": "o",
})

func spellings(groups map[string]string) map[rune]string {
	all := map[rune]string{}
	for letters, spelling := range groups {
		for _, letter := range letters {
			all[letter] = spelling
		}
	}
	return all
}

// words splits a text into words of lower-case ASCII letters and digits. An apostrophe is within a
// word: "don't" is "dont".
func words(text string) []string {
	var found []string
	var word strings.Builder
	finish := func() {
		if word.Len() > 0 {
			found = append(found, word.String())
			word.Reset()
		}
	}
	for _, letter := range strings.ToLower(text) {
		spelling, isKnown := plain[letter]
		switch {
		case letter >= 'a' && letter <= 'z' || letter >= '0' && letter <= '9':
			word.WriteRune(letter)
		case isKnown:
			word.WriteString(spelling)
		case letter == '\'' || letter == '’' || unicode.Is(unicode.Mn, letter): // Mn: accents of their own
		default:
			finish()
		}
	}
	finish()
	return found
}

// join joins as many words as fit into a length. A first word that is too long is cut.
func join(words []string, separator string, length int) string {
	joined := ""
	for index, word := range words {
		if index == 0 {
			joined = word[:min(len(word), length)]
		} else if len(joined)+len(separator)+len(word) > length {
			break
		} else {
			joined += separator + word
		}
	}
	return joined
}
