// Package sallyport is the SDK for plugins in Go.
//
//	type addArguments struct {
//		A float64 `json:"a" desc:"The first number."`
//		B float64 `json:"b" desc:"The second number."`
//	}
//
//	func add(_ *sallyport.Call, arguments addArguments) (float64, error) {
//		return arguments.A + arguments.B, nil
//	}
//
//	func init() { sallyport.Tool("add", "Adds two numbers.", add) }
//
//	func main() {}
//
// Tools are registered in init, because nothing calls main. What a plugin can use besides is in the
// packages log, settings, state, secrets, notify, progress, openurl and httpclient. A component
// imports the interfaces of those packages that the plugin uses, and no others.
package sallyport

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"path/filepath"
	"reflect"
	"runtime"
	"slices"
	"strings"

	"sallyport/internal/contract"
)

// A Call says where a call comes from.
type Call = contract.Call

// An Output is the data of a result with further parts. A tool that has only data returns the data.
type Output = contract.Output

// A Part is one part of an output, next to its data: see Text, Image, Audio, Link and Resource.
type Part = contract.Part

// An Error is a failed call. See InvalidArguments and the other functions that make one.
type Error = contract.Error

// An Option describes a tool further.
type Option func(*contract.Tool)

// Title sets a short name for people.
func Title(title string) Option {
	return func(tool *contract.Tool) { tool.Title = title }
}

// OutputSchema sets the JSON Schema of a tool's result.
func OutputSchema(schema string) Option {
	return func(tool *contract.Tool) { tool.Output = schema }
}

// ReadOnly claims that a tool changes nothing.
func ReadOnly() Option {
	return func(tool *contract.Tool) { tool.Hints.ReadOnly = new(true) }
}

// Destructive claims that a tool may destroy something.
func Destructive() Option {
	return func(tool *contract.Tool) { tool.Hints.Destructive = new(true) }
}

// Idempotent claims that calling a tool twice is the same as calling it once.
func Idempotent() Option {
	return func(tool *contract.Tool) { tool.Hints.Idempotent = new(true) }
}

// OpenWorld claims that a tool reaches things outside of this machine.
func OpenWorld() Option {
	return func(tool *contract.Tool) { tool.Hints.OpenWorld = new(true) }
}

// Tool registers a function as a tool. Call it from init.
//
// The arguments A are a struct, whose tags make the schema: json names a parameter, desc describes
// it, enum lists the allowed texts ("red,green"), min and max limit numbers. A pointer is optional,
// and nil if it is left out. The result R is anything that encoding/json writes, or *Output.
//
// An error that is not an *Error is reported as failed. Tool panics if A has no schema, so that such
// a mistake shows at the first load.
func Tool[A, R any](name, description string, run func(*Call, A) (R, error), options ...Option) {
	place := callerPlace()
	checkTool(place, name, description, reflect.TypeFor[R]())
	tool := &contract.Tool{
		Name:        name,
		Description: description,
		Parameters:  parametersSchema(place, name, reflect.TypeFor[A]()),
	}
	tool.Run = func(call *Call, text string) (string, *Output, *Error) {
		var given A
		if err := decodeArguments(text, reflect.ValueOf(&given).Elem()); err != nil {
			return "", nil, err
		}
		result, err := run(call, given)
		if err != nil {
			return "", nil, toError(err)
		}
		return encodeResult(result)
	}
	for _, option := range options {
		option(tool)
	}
	contract.Tools = append(contract.Tools, tool)
}

// nameBytesMax is the length of the longest name.
const nameBytesMax = 128

// callerPlace is the file and the line that registers a tool.
func callerPlace() string {
	_, file, line, isKnown := runtime.Caller(2)
	if !isKnown {
		return "sallyport"
	}
	return fmt.Sprintf("%s:%d", filepath.Base(file), line)
}

// checkTool panics if the author has described a tool wrongly. `sallyport plugin build` prints why.
func checkTool(place, name, description string, result reflect.Type) {
	isOther := func(letter rune) bool {
		return !(letter >= 'a' && letter <= 'z' || letter >= 'A' && letter <= 'Z' ||
			letter >= '0' && letter <= '9' || strings.ContainsRune("_-.:", letter))
	}
	isTaken := func(tool *contract.Tool) bool { return tool.Name == name }
	switch {
	case name == "" || len(name) > nameBytesMax || strings.ContainsFunc(name, isOther):
		panic(fmt.Sprintf("%s: %q is not a name of a tool. Use up to %d letters, digits, '_', '-', '.' and ':'.", place, name, nameBytesMax))
	case strings.TrimSpace(description) == "":
		panic(fmt.Sprintf("%s: the tool %s has no description. A model chooses tools by it.", place, name))
	case slices.ContainsFunc(contract.Tools, isTaken):
		panic(fmt.Sprintf("%s: two tools have the name %s. Rename one.", place, name))
	}
	switch result.Kind() {
	case reflect.Chan, reflect.Func, reflect.Complex64, reflect.Complex128:
		panic(fmt.Sprintf("%s: the tool %s returns %v, which cannot be written as JSON. Return a struct, a map, a list, text or a number.", place, name, result))
	}
}

// Run calls a tool in a native test, and returns the JSON of its data.
func Run(name, arguments string) (string, error) {
	call := &Call{ID: "call", SessionID: "session", UserID: "local"}
	data, _, err := contract.Run(call, name, arguments)
	if err != nil {
		return "", err
	}
	return data, nil
}

func encodeResult(result any) (string, *Output, *Error) {
	output, isOutput := result.(*Output)
	if !isOutput || output == nil {
		output = &Output{Data: result}
	}
	var written bytes.Buffer
	encoder := json.NewEncoder(&written)
	encoder.SetEscapeHTML(false)
	if err := encoder.Encode(output.Data); err != nil {
		return "", nil, contract.Errorf(contract.Failed, "the tool's result cannot be written as JSON: %v", err)
	}
	return strings.TrimSuffix(written.String(), "\n"), output, nil
}

func toError(err error) *Error {
	if known, ok := errors.AsType[*Error](err); ok {
		wrapped := *known
		wrapped.Message = err.Error()
		return &wrapped
	}
	return contract.Errorf(contract.Failed, "%v", err)
}

// InvalidArguments makes an error that says which argument makes no sense, and why.
func InvalidArguments(format string, args ...any) error {
	return contract.Errorf(contract.InvalidArguments, format, args...)
}

// NotFound makes an error for a thing that does not exist.
func NotFound(format string, args ...any) error {
	return contract.Errorf(contract.NotFound, format, args...)
}

// Denied makes an error for something that was refused to the tool.
func Denied(format string, args ...any) error {
	return contract.Errorf(contract.Denied, format, args...)
}

// SignIn makes an error that asks the user to sign in to a connection, which may be empty.
func SignIn(message, connection string, scopes ...string) error {
	return &Error{Kind: contract.AuthRequired, Message: message, Connection: connection, Scopes: scopes}
}

// Unavailable makes an error for a service that is missing now and may work later.
func Unavailable(format string, args ...any) error {
	return contract.Errorf(contract.Unavailable, format, args...)
}

// Failed makes an error of any other kind.
func Failed(format string, args ...any) error {
	return contract.Errorf(contract.Failed, format, args...)
}

// Other makes an error that fits none of the kinds.
func Other(format string, args ...any) error {
	return contract.Errorf(contract.Other, format, args...)
}

// Text makes a part of plain text.
func Text(text string) Part { return Part{Kind: contract.TextPart, Text: text} }

// Image makes a part with the bytes of an image file.
func Image(mediaType string, data []byte) Part {
	return Part{Kind: contract.ImagePart, MediaType: mediaType, Data: data}
}

// Audio makes a part with the bytes of an audio file.
func Audio(mediaType string, data []byte) Part {
	return Part{Kind: contract.AudioPart, MediaType: mediaType, Data: data}
}

// Link makes a part that refers to something. The host shows it and never fetches it.
func Link(uri, title string) Part { return Part{Kind: contract.LinkPart, URI: uri, Title: title} }

// Resource makes a part with a resource and its text.
func Resource(uri, mediaType, text string) Part {
	return Part{Kind: contract.ResourcePart, URI: uri, MediaType: mediaType, Text: text}
}
