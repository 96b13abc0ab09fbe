// Package notify sends messages to the user. It needs [[request.notify]].
package notify

import "strings"

// Send shows a message in the conversation.
func Send(text string) error { return send(valid(text), "") }

// Speak shows a message, and says another text aloud where that is possible.
func Speak(text, speech string) error { return send(valid(text), valid(speech)) }

func valid(text string) string { return strings.ToValidUTF8(text, "\uFFFD") }
