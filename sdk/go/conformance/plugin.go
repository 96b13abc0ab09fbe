// The tools of the conformance set.
package main

import (
	"errors"
	"io"
	"io/fs"
	"net/http"
	"os"
	"strconv"
	"strings"

	"sallyport"
	"sallyport/httpclient"
	"sallyport/log"
	"sallyport/secrets"
	"sallyport/settings"
	"sallyport/state"
)

type none struct{}

type point struct {
	X float64 `json:"x"`
	Y float64 `json:"y"`
}

type typesArguments struct {
	Flag   bool     `json:"flag" desc:"A flag."`
	Count  int32    `json:"count" desc:"A count."`
	Big    uint64   `json:"big" desc:"A large count."`
	Ratio  float64  `json:"ratio" desc:"A ratio."`
	Text   string   `json:"text" desc:"A text."`
	Choice string   `json:"choice" desc:"A colour." enum:"red,green,blue"`
	Items  []string `json:"items" desc:"Texts."`
	Record point    `json:"record" desc:"A point."`
	Note   *string  `json:"note" desc:"A note."`
}

// Many programs round integers of more than 53 bits, so the result has the digits.
type typesResult struct {
	typesArguments
	Big string `json:"big"`
}

func types(_ *sallyport.Call, arguments typesArguments) (typesResult, error) {
	return typesResult{arguments, strconv.FormatUint(arguments.Big, 10)}, nil
}

type textArguments struct {
	Text string `json:"text" desc:"The text."`
}

func echo(_ *sallyport.Call, arguments textArguments) (*sallyport.Output, error) {
	return &sallyport.Output{Parts: []sallyport.Part{sallyport.Text(arguments.Text)}}, nil
}

type sizeArguments struct {
	Bytes int `json:"bytes" desc:"The size." min:"0"`
}

func large(_ *sallyport.Call, arguments sizeArguments) (*sallyport.Output, error) {
	text := strings.Repeat("x", arguments.Bytes)
	return &sallyport.Output{Parts: []sallyport.Part{sallyport.Text(text)}}, nil
}

type failArguments struct {
	Kind    string `json:"kind" desc:"The kind."`
	Message string `json:"message" desc:"The message."`
}

func fail(_ *sallyport.Call, arguments failArguments) (none, error) {
	makers := map[string]func(string, ...any) error{
		"invalid-arguments": sallyport.InvalidArguments,
		"not-found":         sallyport.NotFound,
		"denied":            sallyport.Denied,
		"unavailable":       sallyport.Unavailable,
		"failed":            sallyport.Failed,
	}
	if arguments.Kind == "auth-required" {
		return none{}, sallyport.SignIn(arguments.Message, "")
	}
	maker, isKnown := makers[arguments.Kind]
	if !isKnown {
		maker = sallyport.Other
	}
	return none{}, maker("%s", arguments.Message)
}

type lineArguments struct {
	Level string `json:"level" desc:"The level." enum:"trace,debug,info,warn,error"`
	Text  string `json:"text" desc:"The line."`
}

func logLine(_ *sallyport.Call, arguments lineArguments) (any, error) {
	levels := map[string]log.Level{"trace": log.LevelTrace, "debug": log.LevelDebug,
		"info": log.LevelInfo, "warn": log.LevelWarn, "error": log.LevelError}
	log.Logf(levels[arguments.Level], "%s", arguments.Text)
	return nil, nil
}

type keyArguments struct {
	Key string `json:"key" desc:"The key."`
}

func setting(_ *sallyport.Call, arguments keyArguments) (any, error) {
	value, _, err := settings.Get[any](arguments.Key)
	return value, err
}

type fetchArguments struct {
	URL    string  `json:"url" desc:"The address."`
	Method *string `json:"method" desc:"The method."`
}

type fetched struct {
	Status int    `json:"status"`
	Body   string `json:"body"`
}

func fetch(_ *sallyport.Call, arguments fetchArguments) (fetched, error) {
	method := http.MethodGet
	if arguments.Method != nil {
		method = *arguments.Method
	}
	request, err := http.NewRequest(method, arguments.URL, nil)
	if err != nil {
		return fetched{}, sallyport.InvalidArguments("%v", err)
	}
	response, err := httpclient.New().Do(request)
	if err != nil {
		return fetched{}, err
	}
	defer response.Body.Close()
	body, err := io.ReadAll(response.Body)
	return fetched{response.StatusCode, string(body)}, err
}

type pathArguments struct {
	Path string `json:"path" desc:"The file."`
}

// fileError says that a file is absent or refused.
func fileError(err error) error {
	switch {
	case errors.Is(err, fs.ErrNotExist):
		return sallyport.NotFound("%v", err)
	case errors.Is(err, fs.ErrPermission):
		return sallyport.Denied("%v", err)
	}
	return err
}

func readFile(_ *sallyport.Call, arguments pathArguments) (*sallyport.Output, error) {
	text, err := os.ReadFile(arguments.Path)
	if err != nil {
		return nil, fileError(err)
	}
	return &sallyport.Output{Parts: []sallyport.Part{sallyport.Text(string(text))}}, nil
}

type fileArguments struct {
	Path string `json:"path" desc:"The file."`
	Text string `json:"text" desc:"Its text."`
}

func writeFile(_ *sallyport.Call, arguments fileArguments) (any, error) {
	return nil, fileError(os.WriteFile(arguments.Path, []byte(arguments.Text), 0o644))
}

type valueArguments struct {
	Key   string `json:"key" desc:"The key."`
	Value string `json:"value" desc:"The value."`
}

func stateSet(_ *sallyport.Call, arguments valueArguments) (any, error) {
	return nil, state.Set(arguments.Key, []byte(arguments.Value))
}

func stateGet(_ *sallyport.Call, arguments keyArguments) (any, error) {
	value, found, err := state.Get(arguments.Key)
	if err != nil || !found {
		return nil, err
	}
	return string(value), nil
}

type nameArguments struct {
	Name string `json:"name" desc:"The name."`
}

func secretKnown(_ *sallyport.Call, arguments nameArguments) (bool, error) {
	_, err := secrets.Get(arguments.Name)
	return err == nil, nil
}

func trap(*sallyport.Call, none) (any, error) { panic("asked to trap") }

var turns int

func spin(*sallyport.Call, none) (any, error) {
	for {
		turns++
	}
}

var grown []byte

func grow(_ *sallyport.Call, arguments sizeArguments) (sizeArguments, error) {
	grown = make([]byte, arguments.Bytes)
	for at := range grown {
		grown[at] = 1
	}
	return arguments, nil
}

func init() {
	sallyport.Tool("types", "Returns its arguments.", types)
	sallyport.Tool("echo", "Returns a text.", echo)
	sallyport.Tool("large", "Returns a long text.", large)
	sallyport.Tool("fail", "Fails.", fail)
	sallyport.Tool("log_line", "Writes to the log.", logLine)
	sallyport.Tool("setting", "Returns a setting.", setting)
	sallyport.Tool("fetch", "Sends a request.", fetch, sallyport.OpenWorld())
	sallyport.Tool("read_file", "Returns a file's text.", readFile)
	sallyport.Tool("write_file", "Writes a file.", writeFile)
	sallyport.Tool("state_set", "Keeps a value.", stateSet)
	sallyport.Tool("state_get", "Returns a kept value.", stateGet)
	sallyport.Tool("secret_known", "Tells whether a secret is known.", secretKnown)
	sallyport.Tool("trap", "Stops the plugin.", trap)
	sallyport.Tool("spin", "Never ends.", spin)
	sallyport.Tool("grow", "Allocates memory.", grow)
}

func main() {}
