// A plugin that makes slugs: "Crème brûlée & more" becomes "creme-brulee-more".
package main

import "sallyport"

// lengthDefault is what most sites cut slugs at, in characters.
const lengthDefault = 80

type slugArguments struct {
	Text      string  `json:"text" desc:"The title, in any language."`
	Separator *string `json:"separator" desc:"What joins the words: - unless given." enum:"-,_,."`
	Length    *int    `json:"length" desc:"Most characters of the slug; 80 unless given. Words are kept whole where possible." min:"1" max:"200"`
}

type slugResult struct {
	Slug string `json:"slug"`
}

func slug(_ *sallyport.Call, arguments slugArguments) (slugResult, error) {
	separator, length := "-", lengthDefault
	if arguments.Separator != nil {
		separator = *arguments.Separator
	}
	if arguments.Length != nil {
		length = *arguments.Length
	}
	made := join(words(arguments.Text), separator, length)
	if made == "" {
		return slugResult{}, sallyport.InvalidArguments("the text has no letters or digits that a slug can have")
	}
	return slugResult{made}, nil
}

func init() {
	sallyport.Tool("slug", "Makes a slug of lower-case ASCII letters and digits from a title.", slug,
		sallyport.ReadOnly(), sallyport.Idempotent())
}

// Nothing calls main: the host calls the tool.
func main() {}
