package main

import (
	"testing"

	"sallyport"
)

func TestWordCount(t *testing.T) {
	for arguments, expected := range map[string]string{
		`{"text":"two words"}`: `{"words":2}`,
		`{"text":" a\tb\n"}`:   `{"words":2}`,
	} {
		if data, err := sallyport.Run("word_count", arguments); err != nil || data != expected {
			t.Errorf("%s gives %s, %v; expected %s", arguments, data, err, expected)
		}
	}
	if _, err := sallyport.Run("word_count", `{"text":""}`); err == nil || err.Error() != "text is empty" {
		t.Errorf("an empty text gives %v", err)
	}
}
