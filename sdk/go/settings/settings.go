// Package settings reads the settings of this plugin.
package settings

import (
	"encoding/json"

	"sallyport/internal/contract"
)

// Get reads a setting into a value of its type. It reports false if the setting is not set.
func Get[T any](key string) (T, bool, error) {
	var value T
	text, isSet := read(key)
	if !isSet {
		return value, false, nil
	}
	if err := json.Unmarshal([]byte(text), &value); err != nil {
		return value, false, contract.Errorf(contract.Unavailable, "the setting %s has another type: %v", key, err)
	}
	return value, true, nil
}

// Or reads a setting, or returns a value if it is not set or has another type.
func Or[T any](key string, absent T) T {
	value, isSet, err := Get[T](key)
	if err != nil || !isSet {
		return absent
	}
	return value
}
