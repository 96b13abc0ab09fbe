// Package contract has the types that the tools, the packages of the SDK and the generated bindings
// share. Plugins use them through package sallyport.
package contract

import (
	"fmt"
	"time"
)

// A Kind says why a call did not work.
type Kind string

// The kinds of the contract.
const (
	InvalidArguments Kind = "invalid-arguments"
	NotFound         Kind = "not-found"
	Denied           Kind = "denied"
	AuthRequired     Kind = "auth-required"
	Unavailable      Kind = "unavailable"
	Failed           Kind = "failed"
	Other            Kind = "other"
)

// An Error is a failed call. The message is for the model to read and act on.
type Error struct {
	Kind    Kind
	Message string
	// Connection and Scopes say what to sign in to, if Kind is AuthRequired.
	Connection string
	Scopes     []string
}

func (e *Error) Error() string { return e.Message }

// Errorf makes an error with a message like fmt.Sprintf.
func Errorf(kind Kind, format string, args ...any) *Error {
	return &Error{Kind: kind, Message: fmt.Sprintf(format, args...)}
}

// A Call says where a call comes from.
type Call struct {
	ID             string
	SessionID      string
	UserID         string
	ConversationID string        // empty where there is no conversation
	TimeLeft       time.Duration // until the host stops the call; 0 if it did not say
}

// A PartKind says what a Part is.
type PartKind int

// The kinds of parts.
const (
	TextPart PartKind = iota
	ImagePart
	AudioPart
	LinkPart
	ResourcePart
)

// A Part is one part of an output, next to its data.
type Part struct {
	Kind      PartKind
	Text      string // of TextPart and ResourcePart
	Data      []byte // of ImagePart and AudioPart
	MediaType string
	URI       string // of LinkPart and ResourcePart
	Title     string // of LinkPart
}

// An Output is the data of a result with further parts.
type Output struct {
	Data   any // anything that encoding/json can write
	Parts  []Part
	Speech string // said to the user as it is, if the session is a spoken one
}

// Hints are the author's claims about a tool. Nil claims nothing.
type Hints struct {
	ReadOnly, Destructive, Idempotent, OpenWorld *bool
}

// A Tool is a registered tool.
type Tool struct {
	Name, Title, Description string
	Parameters, Output       string // JSON Schema; Output may be empty
	Hints                    Hints
	// Run returns the JSON of the result's data and the output that it is from.
	Run func(call *Call, arguments string) (string, *Output, *Error)
}

// Tools are the tools of this plugin, in the order of their registration.
var Tools []*Tool

// Run runs a tool by its name.
func Run(call *Call, name, arguments string) (string, *Output, *Error) {
	for _, tool := range Tools {
		if tool.Name == name {
			return tool.Run(call, arguments)
		}
	}
	return "", nil, Errorf(NotFound, "there is no tool %s", name)
}
