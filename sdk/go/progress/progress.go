// Package progress reports how far a call is. It needs [[request.progress]].
package progress

import "strings"

// Report reports the part that is done, between 0 and 1, with a message that may be empty.
func Report(part float64, message string) { report(&part, strings.ToValidUTF8(message, "\uFFFD")) }

// Message reports what happens, without a part.
func Message(message string) { report(nil, strings.ToValidUTF8(message, "\uFFFD")) }
