package main

import (
	"testing"

	"sallyport"
)

func TestSlug(t *testing.T) {
	for _, row := range []struct{ arguments, expected string }{
		{`{"text":"Crème brûlée & more"}`, "creme-brulee-more"},
		{`{"text":"  Don't   panic!  "}`, "dont-panic"},
		{`{"text":"Straße in Köln"}`, "strasse-in-koeln"},
		{`{"text":"Борщ и щи"}`, "borshch-i-shchi"},
		{`{"text":"Καλημέρα κόσμε"}`, "kalimera-kosme"},
		{`{"text":"e\u0301clair"}`, "eclair"},
		{`{"text":"a b","separator":"_"}`, "a_b"},
		{`{"text":"one two three","length":8}`, "one-two"},
		{`{"text":"incomprehensible","length":5}`, "incom"},
		{`{"text":"İstanbul 2026"}`, "istanbul-2026"},
	} {
		data, err := sallyport.Run("slug", row.arguments)
		if expected := `{"slug":"` + row.expected + `"}`; err != nil || data != expected {
			t.Errorf("%s gives %s, %v; expected %s", row.arguments, data, err, expected)
		}
	}
	for _, arguments := range []string{`{"text":""}`, `{"text":"漢字"}`, `{"text":"!?"}`} {
		if data, err := sallyport.Run("slug", arguments); err == nil {
			t.Errorf("%s gives %s", arguments, data)
		}
	}
}
