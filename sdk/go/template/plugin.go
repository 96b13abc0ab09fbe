// The tools of the plugin {{name}}.
package main

import (
	"strings"

	"sallyport"
)

type wordCountArguments struct {
	Text string `json:"text" desc:"The text."`
}

type wordCountResult struct {
	Words int `json:"words"`
}

func wordCount(_ *sallyport.Call, arguments wordCountArguments) (wordCountResult, error) {
	if arguments.Text == "" {
		return wordCountResult{}, sallyport.InvalidArguments("text is empty")
	}
	return wordCountResult{Words: len(strings.Fields(arguments.Text))}, nil
}

func init() {
	sallyport.Tool("word_count", "Counts the words of a text.", wordCount,
		sallyport.ReadOnly(), sallyport.Idempotent())
}

// Nothing calls main: the host calls the tools.
func main() {}
