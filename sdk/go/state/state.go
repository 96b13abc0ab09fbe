// Package state keeps values that outlive a call. It needs [[request.state]].
package state

import (
	"time"

	"sallyport/internal/contract"
)

// An Entry is a value that is kept.
type Entry struct {
	Value   []byte
	Version uint64 // another number after every change of its key
}

// A ConflictError says that a key was in another version than the one that Replace expected.
type ConflictError struct{ Version uint64 } // 0 if the key is absent

func (e *ConflictError) Error() string { return "the key is in another version" }

// Get reads a value. It reports false if there is none.
func Get(key string) ([]byte, bool, error) {
	entry, found, err := Load(key)
	return entry.Value, found, err
}

// Load reads a value with its version. It reports false if there is none.
func Load(key string) (Entry, bool, error) { return load(key) }

// Set keeps a value until it is removed.
func Set(key string, value []byte) error { return SetFor(key, value, 0) }

// SetFor keeps a value for a time, or until it is removed if that is 0.
func SetFor(key string, value []byte, keep time.Duration) error { return set(key, value, keep) }

// Replace keeps a value if its key is in the expected version, or absent if that is 0. Otherwise it
// returns a *ConflictError. The result is the new version.
func Replace(key string, expected uint64, value []byte) (uint64, error) {
	return replace(key, expected, value)
}

// Remove removes a value. It reports false if there was none.
func Remove(key string) (bool, error) { return remove(key) }

// Keys lists up to limit keys that start with prefix, after the key after, in the order of their
// bytes.
func Keys(prefix, after string, limit int) ([]string, error) {
	if limit <= 0 {
		return nil, contract.Errorf(contract.Failed, "the limit of a listing is %d and has to be positive", limit)
	}
	return keys(prefix, after, limit)
}
