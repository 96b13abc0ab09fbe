package sallyport

import (
	"encoding"
	"encoding/json"
	"fmt"
	"math"
	"reflect"
	"slices"
	"strings"
	"time"
)

// A schema is a JSON Schema. Maps are written in the order of their keys, so it is always the same.
type schema map[string]any

// depthMax is the deepest nesting of types. A type that contains itself has no end.
const depthMax = 32

var (
	timeType          = reflect.TypeFor[time.Time]()
	rawType           = reflect.TypeFor[json.RawMessage]()
	unmarshalerType   = reflect.TypeFor[json.Unmarshaler]()
	textUnmarshalType = reflect.TypeFor[encoding.TextUnmarshaler]()
)

// wideIntegers are written as a number or as decimal text, because many programs round integers of
// more than 53 bits.
var wideIntegers = map[reflect.Kind]schema{
	reflect.Int64: {"anyOf": []schema{
		{"type": "integer", "minimum": json.Number("-9223372036854775808"), "maximum": json.Number("9223372036854775807")},
		{"type": "string", "pattern": "^-?[0-9]{1,19}$"}}},
	reflect.Uint64: {"anyOf": []schema{
		{"type": "integer", "minimum": 0, "maximum": json.Number("18446744073709551615")},
		{"type": "string", "pattern": "^[0-9]{1,20}$"}}},
}

func parametersSchema(place, tool string, arguments reflect.Type) string {
	if arguments.Kind() != reflect.Struct {
		panic(fmt.Sprintf("%s: the arguments of the tool %s are %v. They have to be a struct, with a field for each.", place, tool, arguments))
	}
	made, err := structSchema(arguments, 0)
	if err != nil {
		panic(fmt.Sprintf("%s: the arguments of the tool %s have no schema: %v", place, tool, err))
	}
	return written(made)
}

func written(made schema) string {
	text, err := json.Marshal(made)
	if err != nil {
		panic(fmt.Sprintf("sallyport: a schema cannot be written: %v", err))
	}
	return string(text)
}

func typeSchema(of reflect.Type, depth int) (schema, error) {
	if depth > depthMax {
		return nil, fmt.Errorf("%v is nested deeper than %d levels, or contains itself", of, depthMax)
	}
	switch {
	case of == timeType:
		return schema{"type": "string", "format": "date-time"}, nil
	case of == rawType || of.Kind() == reflect.Interface:
		return schema{}, nil
	case reflect.PointerTo(of).Implements(unmarshalerType):
		return schema{}, nil
	case reflect.PointerTo(of).Implements(textUnmarshalType):
		return schema{"type": "string"}, nil
	}
	switch of.Kind() {
	case reflect.Pointer:
		return typeSchema(of.Elem(), depth+1)
	case reflect.Struct:
		return structSchema(of, depth)
	case reflect.Slice, reflect.Array:
		return listSchema(of, depth)
	case reflect.Map:
		return mapSchema(of, depth)
	}
	return plainSchema(of)
}

func plainSchema(of reflect.Type) (schema, error) {
	switch of.Kind() {
	case reflect.Bool:
		return schema{"type": "boolean"}, nil
	case reflect.String:
		return schema{"type": "string"}, nil
	case reflect.Float32, reflect.Float64:
		return schema{"type": "number"}, nil
	case reflect.Int64, reflect.Uint64:
		return schema{"anyOf": wideIntegers[of.Kind()]["anyOf"]}, nil
	case reflect.Int, reflect.Uint, reflect.Uintptr:
		return intSchema(of), nil
	case reflect.Int8, reflect.Int16, reflect.Int32:
		limit := int64(1) << (of.Bits() - 1)
		return schema{"type": "integer", "minimum": -limit, "maximum": limit - 1}, nil
	case reflect.Uint8, reflect.Uint16, reflect.Uint32:
		return schema{"type": "integer", "minimum": 0, "maximum": int64(1)<<of.Bits() - 1}, nil
	}
	return nil, fmt.Errorf("%v cannot be an argument. Use a struct, a list, a map, text, a number or a bool", of)
}

// intSchema describes int and uint, which authors use for counts. It names no limits of 64 bits,
// because they would only distract the model.
func intSchema(of reflect.Type) schema {
	made := schema{"type": "integer"}
	if of.Kind() != reflect.Int {
		made["minimum"] = 0
	}
	return made
}

func listSchema(of reflect.Type, depth int) (schema, error) {
	if of.Kind() == reflect.Slice && of.Elem().Kind() == reflect.Uint8 {
		return schema{"type": "string", "contentEncoding": "base64"}, nil
	}
	items, err := typeSchema(of.Elem(), depth+1)
	if err != nil {
		return nil, err
	}
	made := schema{"type": "array", "items": items}
	if of.Kind() == reflect.Array {
		made["minItems"], made["maxItems"] = of.Len(), of.Len()
	}
	return made, nil
}

func mapSchema(of reflect.Type, depth int) (schema, error) {
	if of.Key().Kind() != reflect.String {
		return nil, fmt.Errorf("%v has keys that are not texts. Use map[string]…", of)
	}
	values, err := typeSchema(of.Elem(), depth+1)
	if err != nil {
		return nil, err
	}
	return schema{"type": "object", "additionalProperties": values}, nil
}

func structSchema(of reflect.Type, depth int) (schema, error) {
	properties, required := schema{}, []string{}
	if err := checkFields(of); err != nil {
		return nil, err
	}
	for _, field := range fieldsOf(of) {
		if _, isTaken := properties[field.name]; isTaken {
			return nil, fmt.Errorf("two fields have the name %s. Name one of them with the tag json", field.name)
		}
		if field.Anonymous && field.Type.Kind() == reflect.Pointer {
			return nil, fmt.Errorf("%s: embed the struct itself, not a pointer to it", field.name)
		}
		made, err := fieldSchema(field.StructField, depth)
		if err != nil {
			return nil, fmt.Errorf("%s: %w", field.name, err)
		}
		properties[field.name] = made
		if !field.isOptional {
			required = append(required, field.name)
		}
	}
	made := schema{"type": "object", "properties": properties, "additionalProperties": false}
	if len(required) > 0 {
		made["required"] = required
	}
	return made, nil
}

// otherTags are tags of other libraries, with ours.
var otherTags = map[string]string{
	"description": "desc", "doc": "desc", "jsonschema": "desc", "minimum": "min", "maximum": "max",
}

// checkFields finds fields that encoding/json would pass over in silence, and tags that are not ours.
func checkFields(of reflect.Type) error {
	for index := range of.NumField() {
		field := of.Field(index)
		_, hasJSON := field.Tag.Lookup("json")
		_, hasDescription := field.Tag.Lookup("desc")
		if !field.IsExported() && (hasJSON || hasDescription) {
			return fmt.Errorf("%s: the field is not exported. Begin its name with a capital letter", field.Name)
		}
		if field.Tag != "" && !hasJSON && !hasDescription && !strings.Contains(string(field.Tag), ":\"") {
			return fmt.Errorf("%s: the tag %s has no form such as json:\"name\"", field.Name, field.Tag)
		}
		for other, ours := range otherTags {
			if _, isOther := field.Tag.Lookup(other); isOther {
				return fmt.Errorf("%s: the tag %s is not known. Write %s", field.Name, other, ours)
			}
		}
	}
	return nil
}

func isNumber(of reflect.Type) bool {
	if of.Kind() == reflect.Pointer {
		of = of.Elem()
	}
	return of.Kind() >= reflect.Int && of.Kind() <= reflect.Float64
}

func fieldSchema(field reflect.StructField, depth int) (schema, error) {
	made, err := typeSchema(field.Type, depth+1)
	if err != nil {
		return nil, err
	}
	if text := field.Tag.Get("desc"); text != "" {
		made["description"] = text
	}
	for tag, key := range map[string]string{"min": "minimum", "max": "maximum"} {
		if limit := field.Tag.Get(tag); limit != "" {
			if !isNumber(field.Type) {
				return nil, fmt.Errorf("the tag %s:%q needs a number, and this is %v. Remove the tag", tag, limit, field.Type)
			}
			if number, err := json.Number(limit).Float64(); err != nil || !json.Valid([]byte(limit)) || math.IsNaN(number) {
				return nil, fmt.Errorf("the tag %s:%q is not a number. Write one such as %s:\"1\"", tag, limit, tag)
			}
			made[key] = json.Number(limit)
		}
	}
	if choices := field.Tag.Get("enum"); choices != "" {
		target := made
		if items, isList := made["items"].(schema); isList {
			target = items
		}
		if target["type"] != "string" {
			return nil, fmt.Errorf("the tag enum needs a text. Make the field a string, or remove the tag")
		}
		var listed []any
		for choice := range strings.SplitSeq(choices, ",") {
			listed = append(listed, choice)
		}
		target["enum"] = listed
	}
	if field.Type.Kind() == reflect.Pointer {
		allowNull(made)
	}
	return made, nil
}

// allowNull lets a schema accept null too, because models write either null or nothing.
func allowNull(made schema) {
	if of, isOne := made["type"].(string); isOne {
		made["type"] = []string{of, "null"}
	}
	if choices, isEnum := made["enum"].([]any); isEnum {
		made["enum"] = append(slices.Clone(choices), nil)
	}
	if kinds, isWide := made["anyOf"].([]schema); isWide {
		made["anyOf"] = append(slices.Clone(kinds), schema{"type": "null"})
	}
}

// A jsonField is a field of a struct, with what its json tag says.
type jsonField struct {
	reflect.StructField
	name       string
	isOptional bool
}

// fieldsOf lists the fields that encoding/json knows. The fields of an embedded struct are its own.
func fieldsOf(of reflect.Type) []jsonField {
	var fields []jsonField
	for _, field := range reflect.VisibleFields(of) {
		name, options, _ := strings.Cut(field.Tag.Get("json"), ",")
		isEmbedded := field.Anonymous && name == "" && field.Type.Kind() == reflect.Struct
		if !field.IsExported() || isEmbedded || name == "-" {
			continue
		}
		if name == "" {
			name = field.Name
		}
		omits := strings.Contains(options, "omitempty") || strings.Contains(options, "omitzero")
		fields = append(fields, jsonField{field, name, omits || field.Type.Kind() == reflect.Pointer})
	}
	return fields
}
