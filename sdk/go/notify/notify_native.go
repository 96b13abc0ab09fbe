//go:build !wasip1

package notify

// Sent are the messages of a native test. The package has it only there.
var Sent []string

func send(text, _ string) error {
	Sent = append(Sent, text)
	return nil
}
