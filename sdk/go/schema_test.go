package sallyport

import (
	"reflect"
	"strings"
	"testing"

	"sallyport/internal/contract"
)

type inner struct {
	X float64 `json:"x"`
}

type outer struct {
	inner
	Text   string   `json:"text" desc:"A text."`
	Colour *string  `json:"colour" enum:"red,green"`
	Count  int32    `json:"count" min:"0"`
	Big    uint64   `json:"big"`
	Tags   []string `json:"tags,omitempty" enum:"a,b"`
	Hidden string   `json:"-"`
}

func TestSchemaFollowsTheTags(t *testing.T) {
	made := parametersSchema("plugin.go:1", "outer", reflect.TypeFor[outer]())
	for _, part := range []string{
		`"additionalProperties":false`,
		`"text":{"description":"A text.","type":"string"}`,
		`"colour":{"enum":["red","green",null],"type":["string","null"]}`,
		`"count":{"maximum":2147483647,"minimum":0,"type":"integer"}`,
		`"maximum":18446744073709551615`,
		`"tags":{"items":{"enum":["a","b"],"type":"string"},"type":"array"}`,
		`"required":["x","text","count","big"]`,
	} {
		if !strings.Contains(made, part) {
			t.Errorf("%s is not in %s", part, made)
		}
	}
	if strings.Contains(made, "Hidden") {
		t.Errorf("%s has a hidden field", made)
	}
}

type endless struct {
	Next *endless `json:"next"`
}

type wrongLimit struct {
	Count int `json:"count" min:"one"`
}

type wrongEnum struct {
	Count int `json:"count" enum:"1,2"`
}

type wrongKey struct {
	Names map[int]string `json:"names"`
}

type hidden struct {
	text string `json:"text"`
}

type twice struct {
	A string `json:"text"`
	B string `json:"text"`
}

type limitOfText struct {
	Text string `json:"text" min:"1"`
}

type otherTag struct {
	Text string `json:"text" description:"A text."`
}

type bareTag struct {
	Text string `text`
}

type channel struct {
	C chan int `json:"c"`
}

func TestMistakesOfAuthorsAreNamed(t *testing.T) {
	for _, row := range []struct {
		of   reflect.Type
		word string
	}{
		{reflect.TypeFor[string](), "have to be a struct"},
		{reflect.TypeFor[endless](), "contains itself"},
		{reflect.TypeFor[wrongLimit](), `min:"one" is not a number`},
		{reflect.TypeFor[wrongEnum](), "enum needs a text"},
		{reflect.TypeFor[wrongKey](), "keys that are not texts"},
		{reflect.TypeFor[channel](), "cannot be an argument"},
		{reflect.TypeFor[hidden](), "text: the field is not exported"},
		{reflect.TypeFor[twice](), "two fields have the name text"},
		{reflect.TypeFor[limitOfText](), `min:"1" needs a number`},
		{reflect.TypeFor[otherTag](), "the tag description is not known. Write desc"},
		{reflect.TypeFor[bareTag](), "has no form such as json"},
	} {
		message := panicOf(func() { parametersSchema("plugin.go:7", "tool", row.of) })
		if !strings.Contains(message, row.word) || !strings.HasPrefix(message, "plugin.go:7: ") {
			t.Errorf("%v gives %q, expected %q", row.of, message, row.word)
		}
	}
}

func TestMistakesInADeclarationAreNamed(t *testing.T) {
	type nothing struct{}
	act := func(*Call, nothing) (string, error) { return "", nil }
	Tool("taken", "Acts.", act)
	for _, row := range []struct {
		declare func()
		word    string
	}{
		{func() { Tool("act", " ", act) }, "the tool act has no description"},
		{func() { Tool("act now", "Acts.", act) }, `"act now" is not a name of a tool`},
		{func() { Tool("", "Acts.", act) }, `"" is not a name of a tool`},
		{func() { Tool("taken", "Acts.", act) }, "two tools have the name taken"},
		{func() {
			Tool("act", "Acts.", func(*Call, nothing) (chan int, error) { return nil, nil })
		}, "returns chan int, which cannot be written as JSON"},
	} {
		message := panicOf(row.declare)
		if !strings.Contains(message, row.word) || !strings.HasPrefix(message, "schema_test.go:") {
			t.Errorf("%q, expected %q", message, row.word)
		}
	}
}

func panicOf(run func()) (message string) {
	defer func() { message, _ = recover().(string) }()
	run()
	return ""
}

func TestArgumentsAreReadExactly(t *testing.T) {
	for _, row := range []struct{ arguments, problem string }{
		{`{"x":1,"text":"t","count":2.0,"big":18446744073709551615}`, ""},
		{`{"x":1,"text":"\u0000","count":1e3,"big":"18446744073709551615","colour":null}`, ""},
		{`{"x":1,"text":"t","count":2.5,"big":0}`, "count: expected an integer of 32 bits"},
		{`{"x":1,"text":"t","count":"2","big":0}`, "count: expected an integer of 32 bits"},
		{`{"x":1,"text":"t","count":2147483648,"big":0}`, "count: expected an integer of 32 bits"},
		{`{"x":1,"text":"t","count":1,"big":-1}`, "big: expected an integer of 64 bits that is not negative"},
		{`{"x":1,"text":"t","count":1,"big":18446744073709551616}`, "big: expected"},
		{`{"x":1e999,"text":"t","count":1,"big":0}`, "x: expected a number"},
		{`{"x":1,"text":7,"count":1,"big":0}`, "text: expected a text"},
		{`{"x":1,"count":1,"big":0}`, "text: expected a value, and it is missing"},
		{`{"x":1,"text":"t","count":1,"big":0,"tags":["a",1]}`, "tags[1]: expected a text"},
		{`[]`, "the arguments: expected an object"},
		{`{} {}`, "the arguments are not JSON"},
		{`{"x":NaN}`, "the arguments are not JSON"},
	} {
		var given outer
		err := decodeArguments(row.arguments, reflect.ValueOf(&given).Elem())
		switch {
		case err == nil && row.problem != "":
			t.Errorf("%s is accepted", row.arguments)
		case err != nil && (row.problem == "" || !strings.Contains(err.Message, row.problem)):
			t.Errorf("%s gives %q, expected %q", row.arguments, err.Message, row.problem)
		case err != nil && err.Kind != contract.InvalidArguments:
			t.Errorf("%s gives the kind %s", row.arguments, err.Kind)
		}
	}
}
