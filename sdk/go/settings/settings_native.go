//go:build !wasip1

package settings

import "encoding/json"

var values = map[string]string{}

func read(key string) (string, bool) {
	value, isSet := values[key]
	return value, isSet
}

// Set sets a setting in a native test. The package has it only there.
func Set(key string, value any) {
	text, err := json.Marshal(value)
	if err != nil {
		panic(err)
	}
	values[key] = string(text)
}
