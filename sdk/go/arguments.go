package sallyport

import (
	"encoding/json"
	"fmt"
	"io"
	"math"
	"reflect"
	"strconv"
	"strings"

	"sallyport/internal/contract"
)

// decodeArguments reads a call's arguments into a struct. The host has checked them against the
// schema. This reads what the schema allows and encoding/json does not: 2.0 for an integer, and an
// integer of 64 bits as text. Its errors name the place.
func decodeArguments(text string, into reflect.Value) *Error {
	decoder := json.NewDecoder(strings.NewReader(text))
	decoder.UseNumber()
	var given any
	err := decoder.Decode(&given)
	if err == nil {
		if _, end := decoder.Token(); end != io.EOF {
			err = fmt.Errorf("there is text after the value")
		}
	}
	if err != nil {
		return contract.Errorf(contract.InvalidArguments, "the arguments are not JSON: %v", err)
	}
	if err := decode(given, into, ""); err != nil {
		return contract.Errorf(contract.InvalidArguments, "%v", err)
	}
	return nil
}

func misfit(place, wanted string) error {
	if place == "" {
		place = "the arguments"
	}
	return fmt.Errorf("%s: expected %s", place, wanted)
}

func decode(given any, into reflect.Value, place string) error {
	of := into.Type()
	switch {
	case given == nil && (of.Kind() == reflect.Pointer || of.Kind() == reflect.Interface):
		return nil
	case of.Kind() == reflect.Pointer:
		into.Set(reflect.New(of.Elem()))
		return decode(given, into.Elem(), place)
	case of.Kind() == reflect.Interface || decodesItself(of):
		return decodeByJSON(given, into, place)
	}
	switch of.Kind() {
	case reflect.Struct:
		return decodeStruct(given, into, place)
	case reflect.Slice, reflect.Array:
		return decodeList(given, into, place)
	case reflect.Map:
		return decodeMap(given, into, place)
	}
	return decodePlain(given, into, place)
}

func decodesItself(of reflect.Type) bool {
	pointer := reflect.PointerTo(of)
	isBytes := of.Kind() == reflect.Slice && of.Elem().Kind() == reflect.Uint8
	return isBytes || pointer.Implements(unmarshalerType) || pointer.Implements(textUnmarshalType)
}

func decodeByJSON(given any, into reflect.Value, place string) error {
	text, err := json.Marshal(given)
	if err == nil {
		err = json.Unmarshal(text, into.Addr().Interface())
	}
	if err != nil {
		return misfit(place, fmt.Sprintf("a %v (%v)", into.Type(), err))
	}
	return nil
}

func below(place, name string) string {
	if place == "" {
		return name
	}
	return place + "." + name
}

func decodeStruct(given any, into reflect.Value, place string) error {
	members, isObject := given.(map[string]any)
	if !isObject {
		return misfit(place, "an object")
	}
	for _, field := range fieldsOf(into.Type()) {
		member, isGiven := members[field.name]
		if !isGiven && field.isOptional {
			continue
		}
		if !isGiven {
			return misfit(below(place, field.name), "a value, and it is missing")
		}
		if err := decode(member, into.FieldByIndex(field.Index), below(place, field.name)); err != nil {
			return err
		}
	}
	return nil
}

func decodeList(given any, into reflect.Value, place string) error {
	items, isList := given.([]any)
	if !isList {
		return misfit(place, "a list")
	}
	if into.Kind() == reflect.Slice {
		into.Set(reflect.MakeSlice(into.Type(), len(items), len(items)))
	} else if len(items) != into.Len() {
		return misfit(place, fmt.Sprintf("a list of %d", into.Len()))
	}
	for index, item := range items {
		if err := decode(item, into.Index(index), fmt.Sprintf("%s[%d]", place, index)); err != nil {
			return err
		}
	}
	return nil
}

func decodeMap(given any, into reflect.Value, place string) error {
	members, isObject := given.(map[string]any)
	if !isObject {
		return misfit(place, "an object")
	}
	into.Set(reflect.MakeMapWithSize(into.Type(), len(members)))
	for name, member := range members {
		value := reflect.New(into.Type().Elem()).Elem()
		if err := decode(member, value, below(place, name)); err != nil {
			return err
		}
		into.SetMapIndex(reflect.ValueOf(name).Convert(into.Type().Key()), value)
	}
	return nil
}

func decodePlain(given any, into reflect.Value, place string) error {
	switch into.Kind() {
	case reflect.Bool:
		value, isBool := given.(bool)
		if !isBool {
			return misfit(place, "true or false")
		}
		into.SetBool(value)
	case reflect.String:
		value, isText := given.(string)
		if !isText {
			return misfit(place, "a text")
		}
		into.SetString(value)
	case reflect.Float32, reflect.Float64:
		return decodeFloat(given, into, place)
	default:
		return decodeInteger(given, into, place)
	}
	return nil
}

func decodeFloat(given any, into reflect.Value, place string) error {
	number, isNumber := given.(json.Number)
	value, err := number.Float64()
	if !isNumber || err != nil || into.OverflowFloat(value) {
		return misfit(place, fmt.Sprintf("a number of %d bits", into.Type().Bits()))
	}
	into.SetFloat(value)
	return nil
}

func decodeInteger(given any, into reflect.Value, place string) error {
	text, isText := given.(string)
	if number, isNumber := given.(json.Number); isNumber {
		text = wholeNumber(number.String())
	} else if !isText || into.Type().Bits() < 64 {
		text = ""
	}
	bits := into.Type().Bits()
	if into.CanInt() {
		value, err := strconv.ParseInt(text, 10, bits)
		if err != nil {
			return misfit(place, fmt.Sprintf("an integer of %d bits", bits))
		}
		into.SetInt(value)
		return nil
	}
	value, err := strconv.ParseUint(text, 10, bits)
	if err != nil {
		return misfit(place, fmt.Sprintf("an integer of %d bits that is not negative", bits))
	}
	into.SetUint(value)
	return nil
}

// wholeNumber writes 2.0 and 1e3 without a point and an exponent, if that loses nothing.
func wholeNumber(text string) string {
	if !strings.ContainsAny(text, ".eE") {
		return text
	}
	value, err := strconv.ParseFloat(text, 64)
	if err != nil || value != math.Trunc(value) || math.Abs(value) > 1<<53 {
		return ""
	}
	return strconv.FormatFloat(value, 'f', 0, 64)
}
